"""The PTX of kernels is right on the emulator, and gives the same bits as the IR that it is made of."""

import dataclasses

import numpy as np
import pytest

from combinations import sample
from default_kernels import default_payload, defaults
from faults import BASES
from ptx_kernels import compiled, executor
from stepladder.emulator import matmul
from stepladder.emulator.core.emulation import Emulation
from stepladder.payload.matmul import find_matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.build import Build, build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.knobs import choose_knobs
from stepladder.pipeline.request import Request
from stepladder.verify.check import check_exact
from stepladder.verify.inputs import initial_c, random_inputs


def check(made: Build) -> None:
    """Checks a kernel against the reference, and against its IR on random numbers, in the current context."""
    problem = made.manifest.problem
    of_ptx = executor(made.code.ptx, made.manifest)
    report = check_exact(problem, made.reference, of_ptx, seed=0)
    assert report.passed, report.describe()
    last = made.run.steps[-1]
    of_ir = matmul.EmulatedExecutor(Emulation(parse_payload(last.text, f"{last.name}.mlir")), made.reference.roles)
    a, b, c = random_inputs(problem, 1)
    results = []
    for runs in (of_ptx, of_ir):
        runs.load(a, b)
        results.append(runs.launch(initial_c(problem, c)))
        assert not runs.findings, runs.findings[0].render()
    assert np.array_equal(*(result.view(np.uint8) for result in results))


# `test_emulator_pipelines.py` runs the last IR of more of them.
@pytest.mark.parametrize("pipeline, knobs, size, types", sample(defaults(), 24))
def test_every_default(
    pipeline: str, knobs: dict[str, bool | int | str], size: tuple[int, int, int], types: tuple[int, int]
) -> None:
    """Every kernel that `compile` chooses by itself, for a small problem with the same edges."""
    text = default_payload(pipeline, size, types)
    request = Request(pipeline, knobs)
    with mlir_context():
        found = find_matmul(parse_payload(text, "payload.mlir")).problem
        small = matmul.small_problem(found, choose_knobs(library.load(pipeline), request))
        check(build(matmul.payload_of(small), "payload.mlir", dataclasses.replace(request, tuned=False)))


@pytest.mark.parametrize("base", BASES)
def test_other_knobs(base: str) -> None:
    """Schedules, epilogues, clusters and edges that no default has."""
    with mlir_context():
        check(compiled(base))


# Types of operands, sums and C, layouts of A and B, and knobs.
TYPES = [
    ("wmma", ("f16", "f16", "f16"), ("row", "row"), {}),
    ("wmma", ("bf16", "f32", "bf16"), ("row", "column"), {}),
    ("mma_sync", ("bf16", "f32", "f32"), ("row", "row"), {}),
    ("mma_sync", ("f16", "f32", "f32"), ("column", "row"), {}),
    ("mma_sync", ("f16", "f32", "f32"), ("row", "column"), {}),
    ("mma_sync", ("f32", "f32", "f32"), ("row", "row"), {"allow_tf32": True}),
    ("mma_sync", ("i8", "i32", "i32"), ("row", "row"), {"block_k": 64}),
    ("wgmma", ("bf16", "f32", "bf16"), ("row", "row"), {}),
    ("wgmma", ("f16", "f16", "f16"), ("column", "column"), {}),
    ("wgmma", ("f32", "f32", "f32"), ("row", "column"), {"block_n": 64, "block_k": 32, "allow_tf32": True}),
    ("wgmma", ("f8E4M3FN", "f32", "f16"), ("row", "column"), {}),
    ("wgmma", ("f8E5M2", "f32", "f32"), ("row", "column"), {}),
]


@pytest.mark.parametrize("pipeline, types, layouts, knobs", sample(TYPES, 2))
def test_types(
    pipeline: str, types: tuple[str, str, str], layouts: tuple[str, str], knobs: dict[str, bool | int]
) -> None:
    """Types and layouts that a pipeline takes."""
    operands, sums, c_type = types
    a_layout, b_layout = layouts
    text = matmul_text(
        128,
        128,
        128,
        a_type=operands,
        b_type=operands,
        acc_type=sums,
        c_type=c_type,
        a_layout=a_layout,
        b_layout=b_layout,
        accumulate=False,
    )
    with mlir_context():
        check(build(text, "payload.mlir", Request(pipeline, knobs)))
