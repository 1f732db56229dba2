"""Renumbered blocks: every block of the grid is still computed once, whatever grid and group."""

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conftest import examples
from indices import offsets_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline

TILE = 128


def tiles_in_order(width: int, height: int, group: int) -> list[tuple[float, ...]]:
    """Returns the (row, column) of the tile of C that each block computes, in the order of the blocks' numbers."""
    with mlir_context():
        run = run_pipeline(
            matmul_text(height * TILE, width * TILE, 32),
            "matmul.mlir",
            Request("mma_sync", {"raster_group": group}, through="rasterize_blocks"),
        )
        views = [
            view
            for view in walk(run.module, "memref.subview")
            if list(ir.DenseI64ArrayAttr(view.attributes["static_sizes"])) == [TILE, TILE]
        ]
        if not views:
            assert width == height == 1  # the tile is all of C
            return [(0, 0)]
        return [
            tuple(offset / TILE for offset in offsets_of(views[-1], {"gpu.block_id x": x, "gpu.block_id y": y}))
            for y in range(height)
            for x in range(width)
        ]


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 24), st.integers(1, 24), st.sampled_from([1, 2, 4, 8, 16, 32]))
@example(1, 8, 8)
@example(8, 1, 8)
@example(7, 16, 8)
@example(5, 12, 8)
@example(5, 3, 8)
@example(64, 32, 8)
def test_renumbering_is_a_bijection_of_the_grid(width: int, height: int, group: int) -> None:
    tiles = tiles_in_order(width, height, group)
    assert sorted(tiles) == [(row, column) for row in range(height) for column in range(width)]
    # Down a column of `group` block rows, then the next column; then the next rows, of which the last may be fewer.
    assert tiles == [
        (row, column)
        for first in range(0, height, group)
        for column in range(width)
        for row in range(first, min(first + group, height))
    ]
