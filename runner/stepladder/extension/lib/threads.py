"""Positions of threads, warps and warpgroups in a block, and of blocks in a cluster, at the current insertion point.

Blocks are one-dimensional, and so are clusters: the rank of a block in its cluster is its x coordinate.
"""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import apply, integer
from stepladder.mlir.bindings import arith, gpu, ir

WARP = 32  # threads
WARPGROUP = 128  # threads


def thread_id() -> ir.Value:
    """Returns the index of a thread in its block."""
    return gpu.thread_id(gpu.Dimension.x)


def warpgroup_id() -> ir.Value:
    """Returns the index of a thread's warpgroup in its block."""
    return apply(lambda thread: ir.AffineExpr.get_floor_div(thread, WARPGROUP), thread_id())


def _uniform(number: ir.Value) -> ir.Value:
    """Returns an index that is the same for the threads of a warp, as a value that ptxas knows to be so."""
    uniform, _ = gpu.shuffle(
        arith.index_cast(ir.IntegerType.get_signless(32), number), integer(0, 32), integer(32, 32), gpu.ShuffleMode.IDX
    )
    return arith.index_cast(ir.IndexType.get(), uniform)


def uniform_warp_id() -> ir.Value:
    """Returns the index of a thread's warp in its block, as a warp-uniform value."""
    return _uniform(apply(lambda thread: ir.AffineExpr.get_floor_div(thread, WARP), thread_id()))


def uniform_warpgroup_id() -> ir.Value:
    """Returns the index of a thread's warpgroup in its block, as a warp-uniform value.

    ptxas does not know that `thread / 128` is uniform in a warp. It serializes `wgmma` instructions in a branch or loop
    whose condition it does not know to be uniform; a shuffle makes it so.
    """
    return _uniform(warpgroup_id())


def thread_in_warpgroup() -> ir.Value:
    """Returns the index of a thread in its warpgroup."""
    return apply(lambda thread: ir.AffineExpr.get_mod(thread, WARPGROUP), thread_id())


def block_rank_in_cluster() -> ir.Value:
    """Returns the rank of a block in its cluster."""
    return gpu.cluster_block_id(gpu.Dimension.x)
