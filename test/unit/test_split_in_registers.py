"""Products of f32 with A split in registers, and B in a preceding kernel or in shared memory: right at every step, as
accurate as with both split by a preceding kernel, in PTX and cubin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from combinations import sample
from conftest import some_steps
from fault_edits import Edit, drop
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import StepReport, check_steps
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import StepladderError
from test_not_finite import operands
from test_types import check_numbers

KNOBS = {
    "split_f32": "registers",
    "block_m": 64,
    "block_n": 32,
    "block_k": 32,
    "consumer_warpgroups": 1,
    "persistent_blocks": 2,
    "stages": 2,
}
ALONE = {"persistent_blocks": 0, "epilogue": "registers"}
F32 = {"a_type": "f32", "b_type": "f32", "accumulate": False}
SMALLER, TURNED = {"swap_operands": True}, {"a_layout": "column"}
SHARED = {"split_f32": "shared"}
# Extents, knobs and form: A by rows and columns of its own, splits of k, both schedules, edges along all sides.
FORMS = [
    ((130, 40, 72), {}, {}),
    ((132, 40, 77), {}, TURNED),
    ((32, 132, 96), {**SMALLER, "block_m": 128, "consumer_warpgroups": 2}, {}),
    ((24, 100, 64), {**SMALLER, "block_k": 64}, {"b_layout": "column"}),
    ((192, 32, 96), {"schedule": "pingpong"}, {}),
    ((64, 64, 160), {**ALONE, "split_k": 2}, {"b_layout": "column"}),
    ((128, 32, 256), {**ALONE, "split_k": 4, "split_k_workspace": "memory", "block_m": 128}, TURNED),
    ((64, 32, 32), {**ALONE, "stages": 1}, {"accumulate": True}),
    ((100, 40, 64), {}, {"batch": 2}),
    ((65, 33, 36), ALONE, {"batch": 2, "a_layout": "column", "b_layout": "column"}),
]
# Rows of A, and of its transpose, that TMA does not take: a kernel in front copies A.
ODD = [((66, 32, 33), ALONE, {}), ((67, 32, 32), ALONE, TURNED), ((16, 65, 32), {**ALONE, **SMALLER}, {})]


# B split in shared memory: forms in which TMA loads its rows; vectors that the threads have one, several and two of.
SHARED_FORMS = [
    FORMS[2],
    FORMS[3],
    FORMS[5],
    ODD[2],
    ((20, 200, 96), {**SMALLER, "block_m": 192, "consumer_warpgroups": 3, "block_n": 24, "block_k": 64}, {}),
    ((100, 64, 256), {**ALONE, **SMALLER, "block_n": 104, "block_k": 128, "split_k": 2}, {"b_layout": "column"}),
    ((64, 32, 40), {**ALONE, "stages": 1}, {"accumulate": True, "b_layout": "column"}),
    ((65, 33, 68), {**ALONE, "split_k": 2}, {"batch": 3, "b_layout": "column"}),
]
# Rows of B along n, which the threads transpose: boxes of 32, 64 and 128 bytes, several along n and along k, edges, a
# thread with several vectors and some threads with none.
TRANSPOSED_FORMS = [
    ((100, 8, 72), {**ALONE, "block_n": 8, "block_k": 64}, {"accumulate": True}),
    ((100, 48, 72), {**ALONE, "block_n": 48}, {}),
    ((128, 64, 160), {"block_m": 128, "block_n": 64, "consumer_warpgroups": 2}, TURNED),
    ((100, 100, 72), {"block_m": 128, "block_n": 104, "consumer_warpgroups": 2}, {}),
    ((40, 132, 96), {**SMALLER, "block_n": 24, "block_k": 64}, {"a_layout": "column", "b_layout": "column"}),
    ((65, 36, 68), {**ALONE, "split_k": 2}, {"batch": 3}),
    ((100, 40, 72), {}, {"batch": 2, "a_layout": "column"}),
]


def right_steps(text: str, knobs: dict, chosen: Callable[[int], bool] = lambda _: True) -> list[StepReport]:
    """Checks that every chosen step is right, and returns the reports."""
    reports: list[StepReport] = []
    with mlir_context():
        check_steps(text, "payload.mlir", Request("wgmma", knobs), reports.append, is_chosen_step=chosen)
    assert [report.step for report in reports if report.passed is not True or report.findings] == []
    return reports


@pytest.mark.parametrize("shape, knobs, form", [*sample(FORMS, 5), *sample(ODD, 3)])
def test_every_step_is_right(shape: tuple[int, int, int], knobs: dict, form: dict) -> None:
    text = matmul_text(*shape, **{**F32, **form})
    steps = {report.step for report in right_steps(text, {**KNOBS, **knobs})}
    assert "split_a_into_tf32" in steps and "split_into_tf32" not in steps
    assert check_numbers(text, Request("wgmma", {**KNOBS, **knobs})).compute_type == "f32"


@pytest.mark.parametrize("shape, knobs, form", [*sample(SHARED_FORMS, 8), *sample(TRANSPOSED_FORMS, 7)])
def test_every_step_is_right_with_b_in_shared_memory(shape: tuple[int, int, int], knobs: dict, form: dict) -> None:
    text = matmul_text(*shape, **{**F32, **form})
    steps = {report.step for report in right_steps(text, {**KNOBS, **knobs, **SHARED})}
    assert {"split_a_into_tf32", "split_b_in_shared_memory"} <= steps
    assert check_numbers(text, Request("wgmma", {**KNOBS, **knobs, **SHARED})).compute_type == "f32"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("knobs", [{}, {**SMALLER, **SHARED}])
def test_numbers_that_are_not_finite(knobs: dict, turned: bool) -> None:
    """Infinite and NaN where sums in f32 are, with the infinities and the subnormal numbers in either operand."""
    a, b = operands()
    if turned:
        a, b = np.ascontiguousarray(b.T), np.ascontiguousarray(a.T)
    c = stepladder.matmul(a, b, pipeline="wgmma", target="sm_90a", device="emulator", **{**KNOBS, **knobs})
    other = {**KNOBS, **knobs, "split_f32": "kernels"}
    expected = stepladder.matmul(a, b, pipeline="wgmma", target="sm_90a", device="emulator", **other)
    assert np.isnan(expected).any() and np.isinf(expected).any()
    np.testing.assert_array_equal(c, expected)


def _host(text: str, knobs: dict) -> str:
    """Returns what is in front of the launch behind the step."""
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", {**KNOBS, **knobs}))
    step = next(step.text for step in run.steps if step.name == "split_a_into_tf32")
    return step[: step.index("gpu.launch")]


def test_only_b_is_in_workspaces() -> None:
    """A is loaded as it is in both orders; one whose rows TMA does not take from a copy."""
    for form in ({}, TURNED):
        host = _host(matmul_text(64, 32, 64, **{**F32, **form}), {})
        assert host.count("memref.alloc() {workspace}") == 2 and "memref.copy" not in host
        assert re.search(r"memref.cast %A : .* to memref<\*xf32>", host)
    batch = _host(matmul_text(64, 32, 64, **{**F32, **TURNED}, batch=2), {})
    assert batch.count("memref.alloc() {workspace}") == 2 and "memref.copy" not in batch
    odd = _host(matmul_text(66, 32, 33, **{**F32, **TURNED}), {})
    assert odd.count("memref.copy") == 1


@pytest.mark.parametrize(
    "layouts, block_n", [(("row", "column"), 64), (("row", "column"), 32), (("column", "row"), 64)]
)
def test_one_buffer_is_a_and_b(layouts: tuple[str, str], block_n: int) -> None:
    """A product of a matrix by its transpose, of which TMA has one descriptor or two."""
    text = matmul_text(64, 64, 64, **{**F32, "a_layout": layouts[0], "b_layout": layouts[1]})
    text = text.replace(", %B: memref<64x64xf32>", "").replace("%B", "%A")
    right_steps(text, {**KNOBS, "block_n": block_n, "epilogue": "registers"}, some_steps(layouts, block_n))


@pytest.mark.parametrize("where", ["registers", "shared"])
def test_one_batch_is_a_and_b(where: str) -> None:
    """Products of matrices by their transposes: both are tiles of one buffer, which the parts of B leave as it is."""
    text = matmul_text(64, 64, 64, **{**F32, "b_layout": "column"}, batch=2)
    text = text.replace(", %B: memref<2x64x64xf32>", "").replace("%B", "%A")
    right_steps(text, {**KNOBS, "block_n": 64, "epilogue": "registers", "split_f32": where}, some_steps(where))


@pytest.mark.parametrize(
    "knobs, form, message",
    [
        ({"cluster_n": 2}, {}, "clusters of one block"),
        ({"tile_scheduler": "stream_k", "epilogue": "tma"}, {}, "data_parallel"),
        ({"block_m": 48}, {}, "multiple of 64"),
        ({"block_m": 256, "block_n": 64}, {}, "fragment_registers"),
        ({**SHARED, "block_n": 192}, {}, "requires block_n \\* block_k <= 4096 \\* consumer_warpgroups"),
        ({**SHARED, "epilogue": "registers"}, {"n": 33}, "rows of B are 33 x f32, 132 bytes"),
        ({**SHARED, "epilogue": "registers"}, {"b_layout": "column", "k": 33}, "rows of B are 33 x f32, 132 bytes"),
        ({**SHARED, "schedule": "pingpong"}, {"b_layout": "column"}, "schedule = cooperative and stagger = 0"),
        ({**SHARED, "stagger": 2, "stages": 3}, {"b_layout": "column"}, "schedule = cooperative and stagger = 0"),
    ],
)
def test_refused_settings(knobs: dict, form: dict, message: str) -> None:
    text = matmul_text(**{"m": 256, "n": 64, "k": 96, **F32, **form})
    with mlir_context(), pytest.raises(StepladderError, match=message):
        run_pipeline(text, "f.mlir", Request("wgmma", {**KNOBS, **knobs}))


def test_the_knob_changes_nothing_without_parts() -> None:
    """Operands of 16 bits, and f32 that is multiplied as tf32, have no parts."""
    for form, knobs in (({"a_type": "f16", "b_type": "f16"}, {}), (F32, {"allow_tf32": True})):
        text = matmul_text(64, 32, 64, **form)
        ends = []
        for where in ("kernels", "registers"):
            with mlir_context():
                run = run_pipeline(text, "f.mlir", Request("wgmma", {**KNOBS, **knobs, "split_f32": where}))
            ends.append(run.steps[-1].text)
        assert ends[0] == ends[1]


def test_no_kernel_precedes_with_b_in_shared_memory() -> None:
    """B has no workspace, the producer loads one tile of it in each step, and no other thread splits."""
    with mlir_context():
        knobs = {**KNOBS, **SHARED, **ALONE, "block_n": 24}
        run = run_pipeline(matmul_text(64, 24, 96, **{**F32, "b_layout": "column"}), "f.mlir", Request("wgmma", knobs))
    text = next(step.text for step in run.steps if step.name == "specialize_warps")
    assert "{workspace}" not in text
    producer, consumers = re.split(r"nvvm.setmaxregister increase", text)
    assert producer.count("nvgpu.tma.async.load") == 2 and "nvvm.vote" not in producer
    assert re.search(r"expect_tx .*, %c11264 ", producer)  # 64 x 32 of A and 24 x 32 of B
    # 192 vectors for 128 threads: half of the threads have a second one.
    assert consumers.count("vector.load") == 2 and consumers.count("vector.store") == 4
    assert re.search(r"arith.cmpi ult, %thread_id_x, %c64 ", consumers)
    ops = re.findall(r"vector.store|nvvm.fence.proxy|nvvm.barrier id|nvvm.vote.sync|warpgroup_mma_3xtf32", consumers)
    assert ops[4:8] == ["nvvm.fence.proxy", "nvvm.barrier id", "nvvm.vote.sync", "warpgroup_mma_3xtf32"]


@pytest.mark.parametrize(
    "layout, fault, kinds",
    [
        ("column", None, set()),
        ("column", drop("nvvm.fence.proxy"), {"proxy"}),
        ("column", drop("nvvm.barrier"), {"proxy", "race"}),
        ("row", None, set()),
        ("row", drop("nvvm.fence.proxy"), {"proxy"}),
        ("row", drop("nvvm.barrier"), {"race"}),
    ],
)
def test_stores_of_parts_are_ordered(layout: str, fault: Edit | None, kinds: set[str]) -> None:
    """Before the products, by the fence and by the barrier, and after the reads of a tile that is transposed, by the
    first barrier: without either, the emulator finds what is read too early or too late."""
    knobs = {**KNOBS, **SHARED, "consumer_warpgroups": 2, "block_m": 128}
    with mlir_context():
        text = matmul_text(128, 32, 64, **{**F32, "b_layout": layout})
        run = run_pipeline(text, "f.mlir", Request("wgmma", knobs))
        step = next(step.text for step in run.steps if step.name == "specialize_warps")
        emulation = Emulation(parse_payload(fault(step) if fault else step, "f.mlir"))
        given = [np.ones(type_.static_shape, np.float32) for type_ in emulation.function.argument_types]  # pyright: ignore
        found = {finding.kind for finding in emulation.run(given, count=False).findings}
    assert found == kinds


def test_tiles_of_b_are_split_and_transposed_without_bank_conflicts() -> None:
    """The kernel that splits them has more wavefronts than one that does not, and as many conflicts."""
    counters = []
    for where in ("registers", "shared"):
        knobs = {**KNOBS, "split_f32": where, "consumer_warpgroups": 2, "block_m": 128, "block_n": 64}
        with mlir_context():
            run = run_pipeline(matmul_text(128, 64, 128, **F32), "f.mlir", Request("wgmma", knobs))
            step = next(step.text for step in run.steps if step.name == "specialize_warps")
            emulation = Emulation(parse_payload(step, "f.mlir"))
            given = [np.ones(type_.static_shape, np.float32) for type_ in emulation.function.argument_types]  # pyright: ignore
            counters.append(emulation.run(given).counters)
    wavefronts, conflicts = ([each.total(name, "shared") for each in counters] for name in ("wavefronts", "conflicts"))
    assert wavefronts[1] > wavefronts[0] and conflicts[1] == conflicts[0]


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("form", [{}, TURNED])
def test_the_kernel_multiplies_without_waits_between(form: dict, tmp_path: Path) -> None:
    """Twelve products a step of k, and nothing but their instructions from the fence to the wait; no spills."""
    knobs = {**KNOBS, "block_m": 128, "consumer_warpgroups": 2, "block_n": 64}
    with mlir_context():
        text = matmul_text(1024, 64, 1024, **{**F32, **form})
        build(text, "f.mlir", Request("wgmma", knobs)).write(tmp_path / "f")
    manifest = read_bundle(tmp_path / "f").manifest
    assert set(manifest.spills.values()) == {0}
    assert len(manifest.workspaces) == 2
    ptx = (tmp_path / "f" / "kernel.ptx").read_text()
    between = ptx[ptx.index("wgmma.fence") : ptx.index("wgmma.wait_group")]
    products = re.findall(
        r"wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {.*}, {(.*)}, %rd\d+, (\d), 1, 1;", between
    )
    assert [keeps for _, keeps in products] == ["0", *["1"] * 11]
    assert len({registers for registers, _ in products}) == 8
    assert not re.search(r"\t(add|sub|and|selp|mov|ld)\.[a-z]*32", between)
