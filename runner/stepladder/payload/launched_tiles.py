"""The tiles that a block multiplies, in a dump: where they are, and whether the block copies to them."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import origin, walk
from stepladder.mlir.types import is_workgroup_memory
from stepladder.payload.raised_views import VIEWS

_ALLOCATIONS = ("memref.alloc", "memref.alloca")
_COPY, _MATMUL = "linalg.copy", "linalg.matmul"


def tiles_of(launch: ir.Operation) -> list[ir.Value]:
    """Returns the buffers that matmuls of a block read and write, each once.

    Args:
        launch: a `gpu.launch`.
    """
    operands = [operand for matmul in walk(launch, _MATMUL) for operand in matmul.operands]
    return list(dict.fromkeys(origin(operand, VIEWS) for operand in operands))


def has_private_tiles(module: ir.Module) -> bool:
    """Returns whether each thread of a block has such a tile of its own, so that none sees what others copied.

    Args:
        module: a dump.
    """
    for launch in walk(module, "gpu.launch"):
        allocations = [allocation.results[0] for allocation in walk(launch, *_ALLOCATIONS)]
        if any(tile in allocations and not is_workgroup_memory(tile.type) for tile in tiles_of(launch)):
            return True
    return False


def has_copied_tiles(module: ir.Module) -> bool:
    """Returns whether a block copies to such tiles, so that a barrier must follow the matmul that reads them.

    Args:
        module: a dump.
    """
    for launch in walk(module, "gpu.launch"):
        tiles = tiles_of(launch)
        if any(origin(copy.operands[1], VIEWS) in tiles for copy in walk(launch, _COPY)):
            return True
    return False
