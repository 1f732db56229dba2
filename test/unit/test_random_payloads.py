"""Random payloads: what compiles gives the numbers of the payload, and everything else is refused.

STEPLADDER_RANDOM_PAYLOADS=N runs N of them, STEPLADDER_TEST_SEED=S those of another seed.
"""

import collections
import os

import numpy as np
import pytest

from combinations import sample
from random_payloads import TYPES, Payload, random_payload
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.fibers import Unsupported
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.mlir.bindings import ir
from stepladder.payload import reference_export
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.bundle import parse_reference
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.verify import arrays
from stepladder.verify.check import check_matmul
from stepladder.verify.reference_evaluation import Evaluation

COUNT = int(os.environ.get("STEPLADDER_RANDOM_PAYLOADS", "100"))
SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
PARTS = 10  # tests, for several processes to share
WARPS = {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}
TILES = {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1}
TF32 = {"allow_tf32": True}
SPLIT = {"persistent_blocks": 0, "epilogue": "registers", "split_k": 2}
# Pipelines with small tiles, and what to write for them: types of inputs and sums that they know, forms, layouts.
HALF = (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))
ANY = (HALF, ("tensors", "normal", "buffers"))
PIPELINES = [
    ("wgmma", TILES, ANY, True),
    ("wgmma", {**TILES, **SPLIT}, ANY, True),
    ("mma_sync", {**WARPS, **TF32}, (TYPES, ANY[1]), True),
    ("wgmma", {**TILES, **SPLIT, "split_k_workspace": "memory"}, ANY, True),
    ("wmma", WARPS, (HALF[:2], ANY[1]), True),
    ("wgmma_multistage", TILES, ANY, True),
    ("wgmma", {**TILES, **TF32}, (TYPES, ANY[1]), True),
    ("wgmma_single_stage", TILES, ANY, True),
    ("wmma_upstream", WARPS, (HALF[:2], ("normal", "normal", "tensors")), True),
]


def payload_of(number: int) -> tuple[tuple, Payload]:
    """Returns a pipeline, and the payload for it."""
    pipeline = PIPELINES[number // PARTS % len(PIPELINES)]
    return pipeline, random_payload(SEED * 1_000_003 + number, *pipeline[2], columns=pipeline[3])


def compiled(text: str, name: str, pipeline: str, knobs: dict[str, int | str]) -> tuple[Run, Emulation] | None:
    """Returns the finished run of a pipeline, and the last IR that can be run, or None if it is refused."""
    try:
        run = run_pipeline(text, name, Request(pipeline, knobs))
    except StepladderError as error:
        # Refused before anything ran, or by an op of this project that names what it cannot take.
        assert error.status == BAD_INPUT or ": tc." in error.message, error.render()
        assert error.location.startswith(name), error.render()
        return None
    for step in reversed(run.steps):
        try:
            emulation = Emulation(parse_payload(step.text, step.name))
            return run, emulation
        except StepladderError:
            continue
    raise AssertionError("none of the IR can be run")


@pytest.mark.parametrize("part", sample(range(PARTS), 2))
def test_right_or_refused(part: int) -> None:
    outcomes = collections.Counter()
    for number in range(part, COUNT, PARTS):
        (pipeline, knobs, *_), payload = payload_of(number)
        name = f"payload{number}.mlir"
        with mlir_context():
            found = compiled(payload.text, name, pipeline, knobs)
            outcomes[found is not None] += 1
            if found is None:
                continue
            run, emulation = found
            expected = reference_export.export(parse_payload(payload.text, name), run.matmul.roles)
            executor = EmulatedExecutor(emulation, expected.roles)
            reports = check_matmul(run.matmul.problem, expected, executor, seed=number, repeats=False)
        for report in reports:
            assert report.passed, f"{payload.text}\n{pipeline}, {knobs}\n{report.describe()}"
        assert not executor.findings, payload.text
    assert min(outcomes[True], outcomes[False]) * 10 >= outcomes.total(), outcomes


@pytest.mark.parametrize("part", range(PARTS))
def test_reference_is_what_the_payload_computes(part: int) -> None:
    """The emulator runs the payload's own ops one by one; the reference program, as JSON, gives the same numbers."""
    compared = 0
    for number in range(part, COUNT, PARTS):
        payload = payload_of(number)[1]
        text = payload.text
        if "from nothing" in payload.features:  # any number is right
            continue
        with mlir_context():
            module = parse_payload(text, "payload.mlir")
            try:
                exported = reference_export.export(module, {})
                emulation = Emulation(module)
                # Integers, which no type of the payload rounds.
                inputs = integers(emulation, number)
                outcome = emulation.run(inputs)
            except (StepladderError, Unsupported, ir.MLIRError):
                continue
        program = parse_reference(exported.to_text().encode(), "reference.json")
        evaluation = Evaluation(program, dict(enumerate(inputs)), arrays.NumPyArrays())
        pairs = [
            (argument.after, held)
            for argument, held in zip(program.arguments, outcome.arguments)
            if argument.after is not None
        ]
        pairs += [(result.value, held) for result, held in zip(program.results, outcome.results)]
        assert pairs, text
        for value, held in pairs:
            np.testing.assert_array_equal(evaluation.whole(value), held.astype(np.float64), err_msg=text)
            np.testing.assert_array_equal(evaluation.rows(value, slice(8, 24)), held[8:24].astype(np.float64))
            compared += 1
    assert compared * 2 >= COUNT // PARTS


def integers(emulation: Emulation, seed: int) -> list:
    """Returns an array of -1, 0 and 1 for each argument, and 0 for a number."""
    generator = np.random.default_rng(seed)
    return [
        generator.integers(-1, 2, type_.shape).astype(type_.element.dtype) if type_.shape else 0
        for type_ in emulation.function.argument_types
    ]
