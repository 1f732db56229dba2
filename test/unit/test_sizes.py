"""Sizes that tiles do not divide, on the pipelines of warps: random ones, the smallest, and default kernels.

STEPLADDER_TEST_SEED=S draws other problems, STEPLADDER_RANDOM_SIZES=N of them, and STEPLADDER_TEST_PROFILE=random ten
times as many.
"""

import os
import re

import pytest

from batches import check_batch, check_text
from combinations import SEED, combinations, sample
from conftest import examples
from random_sizes import random_size
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError

COUNT = int(os.environ.get("STEPLADDER_RANDOM_SIZES", examples(3)))
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
PIPELINES = ("mma_sync", "wmma")
# The padding and the mask of a read.
MASKED = re.compile(r"%cst\w*, %\d+ \{in_bounds")


@pytest.mark.parametrize("number", range(COUNT))
def test_random_sizes(number: int) -> None:
    """The input, steps in the middle and the last are right, and the sanitizer finds nothing."""
    problem = random_size(1000 * SEED + number, most=70)
    print(problem.name)
    with mlir_context():
        check_text(problem.text, Request(problem.pipeline, problem.knobs))


SIZES = [(1, 1, 1), (1, 40, 7), (33, 1, 32), (32, 32, 33), (31, 64, 64), (64, 63, 32)]


@pytest.mark.parametrize("size, pipeline, accumulate", sample(combinations(SIZES, PIPELINES, (True, False)), 2))
def test_small_sizes(size: tuple[int, int, int], pipeline: str, accumulate: bool) -> None:
    """One element, vectors, and an edge along each dimension alone."""
    text = matmul_text(*size, accumulate=accumulate)
    with mlir_context():
        check_text(text, Request(pipeline, WARPS))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_i8_whose_rows_are_whole_vectors(pipeline: str) -> None:
    """Upstream makes no cp.async of copies of i8 with a mask, although a vector has 16 bytes."""
    types = {"a_type": "i8", "b_type": "i8", "acc_type": "i32", "c_type": "i32"}
    text = matmul_text(33, 48, 80, **types)
    with mlir_context():
        check_text(text, Request(pipeline, WARPS))
        if pipeline == "wmma":
            with pytest.raises(StepladderError, match=r"i8 tiles .* must be copied through registers"):
                run_pipeline(text, "m.mlir", Request(pipeline, {**WARPS, "prefetch": "cp_async"}))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_matrix_times_itself_in_one_tile(pipeline: str) -> None:
    """The tiles of A and B hold the same elements, and are two buffers."""
    text = """func.func @square(%A: tensor<12x12xf16>, %C: tensor<12x12xf32>) -> tensor<12x12xf32> {
  %c = linalg.matmul ins(%A, %A : tensor<12x12xf16>, tensor<12x12xf16>) outs(%C : tensor<12x12xf32>)
    -> tensor<12x12xf32>
  return %c : tensor<12x12xf32>
}
"""
    with mlir_context():
        check_text(text, Request(pipeline, WARPS))


@pytest.mark.parametrize("pipeline, broadcast", sample([(name, which) for name in PIPELINES for which in ("a", "")], 4))
def test_batches(pipeline: str, broadcast: str) -> None:
    """Tiles take nothing of the next matrix, and write nothing to it."""
    types = {"a_type": "f16", "b_type": "f16", "acc_type": "f32", "c_type": "f32"}
    check_batch(pipeline, WARPS, (2, 33, 35, 20), **types, accumulate=True, broadcast=broadcast)


@pytest.mark.parametrize("pipeline", sample(PIPELINES, 2))
def test_only_edges_have_conditions(pipeline: str) -> None:
    """Tiles that divide m, n and k make the kernel that they made; an edge of C leaves the copies of k alone."""
    with mlir_context():
        whole = run_pipeline(matmul_text(64, 64, 64), "m.mlir", Request(pipeline, WARPS))
        edge = run_pipeline(matmul_text(64, 40, 64), "m.mlir", Request(pipeline, WARPS, through="map_masked_copies"))
    names = [step.name for step in whole.steps]
    assert not {"prepare_edges", "map_masked_copies", "map_masked_consumer", "lower_masked_copies"} & set(names)
    reads = [line for line in edge.steps[-1].text.splitlines() if "vector.transfer_read" in line]
    rows = {pitch: [line for line in reads if f"strided<[{pitch}, 1]" in line] for pitch in (64, 40)}  # of A and B
    assert rows[64] and rows[40] and len(reads) == len(rows[64]) + len(rows[40])
    assert not any(MASKED.search(line) for line in rows[64]) and all(MASKED.search(line) for line in rows[40])


REFUSED = [
    ({"prefetch": "cp_async"}, {}, "must have at least 4 bytes, the minimum of cp.async"),
    ({}, {"without": ("stage_in_shared_memory", "prefetch_to_registers")}, "must be staged in shared memory"),
    ({}, {"without": ("hoist_accumulators",)}, "hoist_accumulators must run"),
]


@pytest.mark.parametrize("knobs, options, message", REFUSED)
def test_refused(knobs: dict[str, str], options: dict[str, tuple[str, ...]], message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=message):
        run_pipeline(matmul_text(33, 35, 37), "m.mlir", Request("wmma", {**WARPS, **knobs}, **options))


# Sizes beside 4096 whose rows take vectors of 16, 8, 4 and 2 bytes.
@pytest.mark.parametrize("size, pipeline", sample(combinations((4104, 4100, 4098, 4097), PIPELINES), 4))
def test_default_kernels_do_not_spill(size: int, pipeline: str) -> None:
    with mlir_context():
        built = build.build(matmul_text(size, size, size), "m.mlir", Request(pipeline, {"target": "sm_90"}, tuned=True))
    assert not any(built.manifest.spills.values()), built.manifest.knobs
    assert built.manifest.knobs["block_m"] * built.manifest.knobs["block_n"] >= 128 * 128
