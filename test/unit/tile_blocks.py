"""Blocks, loops and shared tiles of a launch, for the tests of what they compute."""

from collections.abc import Iterator

from hypothesis import HealthCheck

from indices import index_of
from stepladder.extension.lib import launches
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.runtime.reference import Operation

QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck)}
CLUSTERS = [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (4, 2), (2, 4)]


def ids(x: int, y: int, size: int) -> dict[str, int]:
    """Returns what a block knows of its place: in a grid that is `y` high, in a cluster of `size` blocks."""
    return {
        "gpu.block_id x": x,
        "gpu.block_id y": y,
        "gpu.cluster_id x": x // size,
        "gpu.cluster_id y": y,
        "gpu.cluster_block_id x": x % size,
        "gpu.thread_id x": 0,
    }


def blocks_of(launch: Operation) -> Iterator[dict[str, int]]:
    """Yields what each block of a launch knows of its place."""
    width, height, _ = launches.launch_sizes(launch, launches.GRID)
    size = launches.launch_sizes(launch, launches.CLUSTER)[0]
    for y in range(height):
        for x in range(width):
            yield ids(x, y, size)


def range_of(loop: Operation, known: dict[ir.Value | str, int]) -> range:
    """Evaluates the range of an `scf.for`."""
    return range(*(index_of(loop.operands[number], known) for number in range(3)))


def view_of_c(root: Operation, launch: Operation) -> Operation | None:
    """Returns the view of C below an op."""
    c = launch.parent.regions[0].blocks[0].arguments[2]
    return next((view for view in walk(root, "memref.subview") if view.operands[0] == c), None)


def mark(tile: Operation) -> str | None:
    """Returns which matrix an alloc holds tiles of."""
    return next(matrix for matrix in "abc" if f"operand_{matrix}" in tile.attributes)
