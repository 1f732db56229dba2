"""A matrix that the epilogue of `wgmma` reads is copied to the boxes of C during the main loop."""

import pytest

from epilogue_payloads import payload
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.payload import reference_export
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.verify.check import check_matmul
from test_epilogues import TILES

STEP = "tma_store_epilogue"
SWAPPED = {**TILES, "swap_operands": True, "epilogue": "tma"}
# By name: knobs, m, n and k, and the type of the matrix and of C.
CASES = {
    "both boxes": ({**TILES, "block_n": 128}, (128, 128, 96), "bf16"),
    "in different steps": ({**TILES, "block_n": 128}, (64, 128, 256), "bf16"),
    "first of two": ({**TILES, "block_n": 64, "epilogue_stages": 1}, (128, 128, 96), "f32"),
    "edges": ({**TILES, "consumer_warpgroups": 2, "block_m": 128, "block_n": 64}, (200, 88, 72), "bf16"),
    "ping-pong": ({**TILES, "schedule": "pingpong"}, (256, 64, 64), "f32"),
    "two instructions of rows": ({**TILES, "block_m": 128, "block_n": 64}, (200, 88, 72), "bf16"),
    "transposed": ({**SWAPPED, "block_n": 128}, (128, 128, 96), "bf16"),
    "transposed, first of four": (
        {**SWAPPED, "block_m": 128, "block_n": 128, "epilogue_stages": 1},
        (128, 128, 96),
        "bf16",
    ),
    "transposed, boxes of 48 and of 40 rows": (
        {**SWAPPED, "block_m": 128, "block_n": 88, "consumer_warpgroups": 2, "epilogue_stages": 3},
        (200, 264, 96),
        "bf16",
    ),
    "transposed edges": ({**SWAPPED, "block_n": 40, "schedule": "pingpong"}, (84, 72, 96), "bf16"),
    "stores by warps": ({**TILES, "block_m": 128, "store_threads": 32, "epilogue_stages": 1}, (200, 88, 72), "f32"),
}
KINDS = {"bf16": "add_matrix_bf16", "f32": "add_matrix"}


def checked(case: str, without: str = "") -> tuple[bool, set[str]]:
    """Returns whether the IR after the step has right numbers, and the kinds of what the sanitizer finds.

    Args:
        case: of `CASES`.
        without: an op that is left out of the IR, each time that it occurs.
    """
    knobs, sizes, stored = CASES[case]
    text = payload(KINDS[stored], *sizes, stored=stored)
    with mlir_context():
        run = run_pipeline(text, "p.mlir", Request("wgmma", knobs, through=STEP))
        expected = reference_export.export(parse_payload(text, "p.mlir"), run.matmul.roles)
        lowered = run.steps[-1].text
        assert "nvgpu.device_async_copy" in lowered
        if without:
            assert without in lowered
            lowered = "".join(line for line in lowered.splitlines(keepends=True) if without not in line)
        executor = EmulatedExecutor(Emulation(parse_payload(lowered, "lowered.mlir")), expected.roles, count=False)
        reports = check_matmul(run.matmul.problem, expected, executor, 0, repeats=False)
    return all(report.passed for report in reports), {finding.kind for finding in executor.findings}


@pytest.mark.parametrize("case", CASES)
def test_right_from_boxes(case: str) -> None:
    assert checked(case) == (True, set())


@pytest.mark.parametrize(
    "case, without",
    [
        ("both boxes", "nvvm.cp.async.wait.group 0"),
        ("in different steps", "nvvm.cp.async.wait.group 0"),
        ("transposed", "nvvm.cp.async.wait.group 0"),
        ("ping-pong", "nvvm.cp.async.bulk.wait_group 0 {read}"),
        ("transposed edges", "nvvm.cp.async.bulk.wait_group 0 {read}"),
        ("stores by warps", "nvvm.cp.async.bulk.wait_group 0 {read}"),
        ("stores by warps", "nvvm.bar.warp.sync"),
    ],
)
def test_a_wait_that_is_left_out_is_found(case: str, without: str) -> None:
    _, found = checked(case, without)
    assert found
