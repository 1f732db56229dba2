"""A matrix that the epilogue of `wgmma` reads is copied to the boxes of C during the main loop."""

import pytest

from epilogue_payloads import payload
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.payload import reference_export
from stepladder.payload.writing import matmul_text
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
    "a tile without rows": ({**TILES, "persistent_blocks": 8, "cluster_m": 2}, (264, 72, 96), "bf16"),
    "transposed, a tile without rows": ({**SWAPPED, "persistent_blocks": 8, "cluster_m": 4}, (72, 264, 96), "bf16"),
    "stores by warps": ({**TILES, "block_m": 128, "store_threads": 32, "epilogue_stages": 1}, (200, 88, 72), "f32"),
}
KINDS = {"bf16": "add_matrix_bf16", "f32": "add_matrix"}
# The same for C = AB + C: the matrix is C.
ADDED_TO = {
    "both boxes": ({**TILES, "block_n": 128}, (128, 128, 96)),
    "edges": ({**TILES, "consumer_warpgroups": 2, "block_m": 128, "block_n": 64}, (200, 88, 72)),
    "a warpgroup without rows": ({**TILES, "consumer_warpgroups": 2, "block_m": 128, "block_n": 64}, (40, 72, 96)),
    "stores by warps": ({**TILES, "block_m": 128, "store_threads": 32, "epilogue_stages": 1}, (200, 88, 72)),
    "transposed edges": ({**SWAPPED, "block_n": 40, "block_m": 128, "consumer_warpgroups": 2}, (84, 40, 96)),
    "transposed, ping-pong": ({**SWAPPED, "block_n": 88, "schedule": "pingpong", "epilogue_stages": 3}, (264, 128, 64)),
}


def checked(case: str, without: str = "") -> tuple[bool, set[str]]:
    """Returns whether the IR after the step has right numbers, and the kinds of what the sanitizer finds.

    Args:
        case: of `CASES`.
        without: an op that is left out of the IR, each time that it occurs.
    """
    knobs, sizes, stored = CASES[case]
    return checked_text(payload(KINDS[stored], *sizes, stored=stored), knobs, without)


def checked_text(text: str, knobs: dict[str, int | str | bool], without: str = "") -> tuple[bool, set[str]]:
    """Returns the same for a payload.

    Args:
        text: of the payload.
        knobs: of the kernel.
        without: as for `checked`.
    """
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


@pytest.mark.parametrize("case", ADDED_TO)
def test_c_itself_is_copied_to_its_boxes(case: str) -> None:
    knobs, sizes = ADDED_TO[case]
    text = matmul_text(*sizes, a_type="bf16", b_type="bf16", c_type="bf16", accumulate=True)
    assert checked_text(text, knobs) == (True, set())


def test_one_of_two_matrices_is_copied() -> None:
    tensor = "tensor<128x128xbf16>"
    body = """    %h = arith.extf %d : bf16 to f32
      %f = arith.extf %g : bf16 to f32
      %t = arith.mulf %x, %f : f32
      %s = arith.addf %t, %h : f32
      %r = arith.truncf %s : f32 to bf16
      linalg.yield %r : bf16"""
    text = f"""#id = affine_map<(i, j) -> (i, j)>
func.func @matmul(%A: tensor<128x96xbf16>, %B: tensor<96x128xbf16>, %D: {tensor}, %G: {tensor}) -> {tensor} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<128x96xbf16>, tensor<96x128xbf16>) outs(%z : tensor<128x128xf32>)
      -> tensor<128x128xf32>
  %o = tensor.empty() : {tensor}
  %q = linalg.generic {{indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %D, %G : tensor<128x128xf32>, {tensor}, {tensor}) outs(%o : {tensor}) {{
    ^bb0(%x: f32, %d: bf16, %g: bf16, %out: bf16):
  {body}
  }} -> {tensor}
  return %q : {tensor}
}}
"""
    assert checked_text(text, {**TILES, "block_n": 128}) == (True, set())
