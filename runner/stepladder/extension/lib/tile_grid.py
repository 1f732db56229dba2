"""The grid of tiles of a launch: which block, or cluster of blocks, computes which tile."""

from __future__ import annotations

from stepladder.extension.lib import building
from stepladder.mlir.traverse import walk

# Blocks of a portable cluster.
CLUSTER_LIMIT = 8


def _ids(launch, kind: str) -> list:
    """Returns the ops of a kind that number blocks along x and y, None for an axis that is not used."""
    found = {str(op.attributes["dimension"]): op for op in walk(launch, kind)}
    return [next((op for key, op in found.items() if f"dim {axis}" in key), None) for axis in "xy"]


def block_ids(launch) -> list:
    """Returns the `gpu.block_id` ops along x and y, None for an axis that is not used."""
    return _ids(launch, "gpu.block_id")


def tile_ids(launch) -> list:
    """Returns the ops that number the tiles of a launch along x and y, None for an axis that is not used: the ids of
    clusters where the launch has clusters, else those of blocks."""
    return _ids(launch, "gpu.cluster_id" if walk(launch, "gpu.cluster_id") else "gpu.block_id")


def grid_of_tiles(launch) -> tuple[int, int, int]:
    """Returns width and height of the grid that `tile_ids` number, and the number of blocks of one of its cells."""
    width, height, _ = building.launch_sizes(launch, building.GRID)
    size = building.launch_sizes(launch, building.CLUSTER)[0]
    return width // size, height, size
