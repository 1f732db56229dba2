"""The grid of output tiles of a launch: which block, or cluster of blocks, computes which tile.

Columns of tiles are along x, rows along y, and the matmuls of a batch along z.
"""

from __future__ import annotations

from stepladder.extension.lib.launches import CLUSTER, GRID, launch_sizes
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk

# Blocks of the largest portable cluster, and of the largest one of Hopper's GPUs.
PORTABLE_CLUSTER_SIZE, LARGEST_CLUSTER_SIZE = 8, 16

Ids = tuple[ir.Operation | None, ir.Operation | None]


def _by_dimension(launch: ir.Operation, kind: str) -> dict[str, ir.Operation]:
    return {types.dimension_of(op): op for op in walk(launch, kind)}


def _ids(launch: ir.Operation, kind: str) -> Ids:
    ids = _by_dimension(launch, kind)
    return ids.get("x"), ids.get("y")


def batch_id(launch: ir.Operation) -> ir.Operation | None:
    """Returns the `gpu.block_id` along z, which numbers the matmuls of a batch, or None where it is not used.

    Args:
        launch: a `gpu.launch`.
    """
    return _by_dimension(launch, "gpu.block_id").get("z")


def batch_of(launch: ir.Operation) -> int:
    """Returns how many matmuls the grid has along z: 1 without a batch.

    Args:
        launch: a `gpu.launch` of constant sizes.
    """
    return launch_sizes(launch, GRID)[2]


def block_ids(launch: ir.Operation) -> Ids:
    """Returns the `gpu.block_id` ops along x and y, None for a dimension that is not used.

    Args:
        launch: a `gpu.launch`.
    """
    return _ids(launch, "gpu.block_id")


def tile_ids(launch: ir.Operation) -> Ids:
    """Returns the ops that number the tiles of a launch along x and y, None for a dimension that is not used.

    They are the ids of clusters where the launch has clusters, else those of blocks.

    Args:
        launch: a `gpu.launch`.
    """
    return _ids(launch, "gpu.cluster_id" if walk(launch, "gpu.cluster_id") else "gpu.block_id")


def grid_of_tiles(launch: ir.Operation) -> tuple[int, int, int]:
    """Returns width and height of the grid that `tile_ids` number, and the number of blocks of each of its cells.

    Args:
        launch: a `gpu.launch` of constant sizes.
    """
    width, height, _ = launch_sizes(launch, GRID)
    size = launch_sizes(launch, CLUSTER)[0]
    return width // size, height, size
