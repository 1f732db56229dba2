"""C^T = B^T A^T on the emulator: the epilogues and the reduction of splits that write a transposed C."""

import itertools

import pytest

from combinations import sample
from contraction_text import contraction
from epilogue_payloads import KINDS, payload
from pair_payloads import PairPayload
from reduction_payloads import FOLDS, Reduced, reduction_payload
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.payload import reference_export
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.verify.check import check_exact
from test_epilogues import check

KNOBS = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "stages": 2, "swap_operands": True}
DIRECT = {**KNOBS, "epilogue": "registers"}
SPLIT = {**DIRECT, "persistent_blocks": 0, "split_k": 2}
HALF = {"a_type": "bf16", "b_type": "bf16", "c_type": "bf16", "accumulate": False}

# Edges in both directions; an odd number of matrices of eight columns; boxes that two warps share, of f32; tiles whose
# columns are several boxes, of which the last is smaller or beyond C.
CASES = [
    ((40, 136, 64), HALF, {**KNOBS, "block_n": 24}),
    ((40, 136, 64), {}, KNOBS),
    ((24, 72, 64), {"accumulate": False}, {**KNOBS, "block_n": 24, "epilogue_stages": 1}),
    ((33, 264, 64), HALF, {**KNOBS, "block_m": 128, "block_n": 16, "schedule": "pingpong"}),
    ((33, 264, 64), {"b_layout": "column"}, {**KNOBS, "block_m": 128, "block_n": 40, "consumer_warpgroups": 2}),
    ((72, 264, 64), HALF, {**KNOBS, "cluster_m": 2, "cluster_n": 2, "persistent_blocks": 4}),
    ((140, 72, 64), HALF, {**KNOBS, "block_n": 72}),
    ((136, 136, 64), HALF, {**KNOBS, "block_m": 128, "block_n": 136, "consumer_warpgroups": 2, "epilogue_stages": 1}),
    ((200, 136, 64), {}, {**KNOBS, "block_n": 104, "epilogue_stages": 1}),
    ((168, 200, 64), HALF | {"accumulate": True}, {**KNOBS, "block_m": 128, "block_n": 88, "schedule": "pingpong"}),
    ((33, 66, 64), HALF, DIRECT),
    ((40, 136, 128), HALF, SPLIT),
    ((33, 132, 128), {"b_layout": "column"}, {**SPLIT, "split_k": 4, "block_n": 24}),
    ((33, 66, 128), HALF, {**SPLIT, "block_m": 128, "consumer_warpgroups": 2}),
    ((33, 66, 128), {}, {**SPLIT, "split_k_workspace": "memory"}),
]
TWO_TYPES = {"a_type": "f8E4M3FN", "b_type": "f8E5M2", "b_layout": "column", "accumulate": False}


@pytest.mark.parametrize("shape, types, knobs", [*sample(CASES, 2), ((24, 72, 64), TWO_TYPES, KNOBS)])
def test_transposed_c_is_right(
    shape: tuple[int, int, int], types: dict[str, bool | str], knobs: dict[str, bool | int | str]
) -> None:
    text = matmul_text(*shape, **types)
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", knobs))
        expected = reference_export.export(parse_payload(text, "payload.mlir"), run.matmul.roles)
        executor = EmulatedExecutor(Emulation(parse_payload(run.steps[-1].text, "last")), expected.roles, count=False)
        report = check_exact(run.matmul.problem, expected, executor, 0)
    assert report.passed, report.describe()
    assert not executor.findings, executor.findings[0].render()


# Tiles beyond both edges; 33 rows of C are an odd number of columns of the exchanged product.
EPILOGUES = {
    "registers": DIRECT,
    "tma": {**KNOBS, "block_n": 24, "persistent_blocks": 2},
    "pingpong": {**KNOBS, "block_m": 128, "block_n": 40, "schedule": "pingpong"},
    "boxes": {**KNOBS, "block_n": 72, "persistent_blocks": 1},
    "cluster": SPLIT,
    "memory": {**SPLIT, "split_k_workspace": "memory"},
}


@pytest.mark.parametrize("kind, rows, where", sample(list(itertools.product(KINDS, (33, 40), EPILOGUES)), 14))
def test_epilogues_are_right(kind: str, rows: int, where: str) -> None:
    stored = "f16" if rows % 2 else "f32"
    check(payload(kind, rows, 72, 80, stored=stored), "wgmma", EPILOGUES[where], levels="last")


LAYOUTS = ("row", "column")
BATCHES = list(itertools.product(LAYOUTS, LAYOUTS, ("", "a", "b", "ab"), EPILOGUES))


@pytest.mark.parametrize("a_layout, b_layout, broadcast, where", sample(BATCHES, 6))
def test_batches_are_right(a_layout: str, b_layout: str, broadcast: str, where: str) -> None:
    layouts = {"a_layout": a_layout, "b_layout": b_layout, "broadcast": broadcast}
    text = matmul_text(40, 72, 80, batch=2, c_type="f16", accumulate=False, **layouts)
    check(text, "wgmma", EPILOGUES[where], levels="last")


@pytest.mark.parametrize("where", ("registers", "tma"))
def test_matrices_of_a_batch_between_rows_are_right(where: str) -> None:
    sizes = {"b": 2, "m": 40, "n": 72, "k": 80}
    check(contraction("mbk,bkn->mbn", sizes), "wgmma", EPILOGUES[where], levels="last")


REFUSED = {
    "does not support reductions of the product": reduction_payload(64, 64, 64, [Reduced(next(iter(FOLDS)), 1)]),
    "requires a single product, not a pair": PairPayload().text(),
}


@pytest.mark.parametrize("message", REFUSED)
def test_epilogues_that_are_refused(message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=f"swap_operands .*{message}"):
        run_pipeline(REFUSED[message], "payload.mlir", Request("wgmma", KNOBS))


def test_stream_k_is_refused() -> None:
    text = matmul_text(40, 136, 64)
    with mlir_context(), pytest.raises(StepladderError, match="swap_operands requires tile_scheduler = data_par"):
        run_pipeline(text, "payload.mlir", Request("wgmma", {**KNOBS, "tile_scheduler": "stream_k"}))
