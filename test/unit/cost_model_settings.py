"""Problems, settings and facts for the tests of the cost model."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from stepladder.payload.writing import matmul_text
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.cost_model import gpu, warpgroup
from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.space import Space
from stepladder.pipeline.cost_model.terms import Size
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request

H200 = gpu.load("h200")
TILE = {
    "block_m": 128,
    "block_n": 256,
    "block_k": 64,
    "consumer_warpgroups": 2,
    "schedule": "cooperative",
    "stages": 4,
    "persistent_blocks": 132,
    "cluster_m": 1,
    "cluster_n": 1,
    "split_k": 1,
    "split_k_workspace": "cluster",
    "raster_group": 8,
    "epilogue": "tma",
    "epilogue_stages": 2,
    "tile_scheduler": "data_parallel",
}
WARP_TILE = {
    "block_m": 128,
    "block_n": 128,
    "block_k": 64,
    "warp_m": 64,
    "warp_n": 64,
    "stages": 3,
    "raster_group": 8,
    "prefetch": "cp_async",
    "shared_bytes": 98304,
}


def size(
    m: int, n: int, k: int, in_bytes: float = 2.0, out_bytes: float = 2.0, layouts: tuple[str, str] = ("row", "row")
) -> Size:
    return Size(m, n, k, in_bytes, out_bytes, "f32", False, *layouts)


def columns(base: dict[str, int | str], **changes: str | int | list[int | str]) -> Columns:
    """Settings of a base and changes; a list gives one setting for each of its values."""
    count = max((len(value) for value in changes.values() if isinstance(value, list)), default=1)
    values = {
        name: np.array(value if isinstance(value, list) else [value] * count)
        for name, value in {**base, **changes}.items()
    }
    return Columns(values, {}, count)


def predicted(problem: Size, card: Gpu = H200, **changes: str | int) -> dict[str, np.ndarray]:
    return warpgroup.predict(columns(TILE, **changes), problem, card)


def pipeline_space(name: str) -> Space:
    with mlir_context():
        return knob_choice.space_of(library.load(name), ())


def facts_of(name: str, *sizes: int, c_type: str = "f32") -> Mapping[str, int | bool | str | list[int]]:
    """Facts of a problem of f16 operands, as the engine gives them."""
    with mlir_context():
        pipeline = library.load(name)
        text = matmul_text(*sizes, c_type=c_type, accumulate=False)
        return read_query(pipeline, Request(name), text, "payload.mlir").facts


def with_constants(**changes: float) -> Gpu:
    """Returns the H200 with other constants of warpgroup kernels."""
    return replace(H200, constants={**H200.constants, WARPGROUP: {**H200.constants[WARPGROUP], **changes}})
