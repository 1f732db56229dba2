"""Terms of batches, whose kernels on wgmma take other times than for one matmul of as many tiles.

Source of all constants: docs/results/forms_batches.json, h100/forms_batches.json and forms_triggers.json, 64 random
batches whose matmuls have matrices of their own; of `_EDGE_TIME` and of two blocks per multiprocessor,
forms_seen.json, forms_blocks.json and forms_suspects.json.
"""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.loading import Loads, misalignment
from stepladder.pipeline.cost_model.terms import Number, Size

# Of one matmul's time for rows of zeros, what those of a batch take: its tiles at edges are adjacent.
_EDGE_TIME = 0.3
# Microseconds, and a part of the main loop, that two blocks on a multiprocessor take longer than if they shared it
# evenly.
_TWO_BLOCKS, _TWO_BLOCKS_LOOP = 0.4, 0.15
# Factors of the main loop of blocks without a cluster, relative to that of one matmul, where each matmul of a batch has
# matrices of its own. Few blocks read each tile. With an early trigger, they run on other multiprocessors at each
# launch, next to different halves of the L2 cache; with a trigger at exit, neighbours are next to the same half. There
# it also matters whether L2 holds all matrices, of at most this part of its bytes. Batches whose A and B are smaller
# than a part of it gain nothing.
_EARLY, _AT_EXIT_HELD, _AT_EXIT, _HELD, _MIN_OPERANDS = 1.1, 0.95, 1.05, 0.8, 1 / 8
# How much longer than by the data sheet's rate of the L2 cache a multiprocessor waits for the bytes that it requests of
# such matrices, where L2 does not hold them, as part of a cluster and for misaligned rows. Of one matmul, more blocks
# request the same tile at a time, and L2 answers them together.
_CLUSTER_REQUESTS, _ODD_REQUESTS = 0.4, 0.6


def depends_on_placement(size: Size, gpu: Gpu) -> Array:
    """Returns whether it matters on which multiprocessors the blocks of a problem run.

    It does for a batch whose matmuls have an A and a B each, which together fill a part of L2 (`_MIN_OPERANDS`).

    Args:
        size: of the problem.
        gpu: whose L2 cache holds operands.
    """
    of_each = (np.minimum(size.a_matrices, size.b_matrices) >= size.batch) & (np.asarray(size.batch) > 1)
    return np.asarray(of_each & (size.operand_bytes >= _MIN_OPERANDS * gpu.l2_bytes))


def main_loop_factor(cluster: Array, splits: Array, in_place: Array, size: Size, gpu: Gpu) -> Array:
    """Returns what the time of a main loop is multiplied by.

    Args:
        cluster: blocks of a cluster.
        splits: of k.
        in_place: whether blocks of the next launch begin after the exit of all blocks.
        size: of the problem.
        gpu: whose L2 cache holds operands.
    """
    is_held = size.operand_bytes + size.stored_bytes <= _HELD * gpu.l2_bytes
    factor = np.where(in_place, np.where(is_held, _AT_EXIT_HELD, _AT_EXIT), _EARLY)
    return np.where(depends_on_placement(size, gpu) & (cluster < 2) & (splits == 1), factor, 1.0)


def request_step(parts: list[Loads], shared: list[Array], missing: Number, size: Size, gpu: Gpu) -> Array:
    """Returns the least time of a k step's requests to the L2 cache, in us; 0 where the problem is no batch of matrices
    of its own, or L2 holds them.

    Args:
        parts: what a block loads of each operand.
        shared: blocks of a cluster that share each.
        missing: part of the operands that L2 does not hold.
        size: of the problem.
        gpu: whose L2 cache delivers.
    """
    bytes_ = sum(
        part.rows * part.row_bytes / blocks * (1 + _ODD_REQUESTS * misalignment(part, 1.0))
        for part, blocks in zip(parts, shared)
    )
    per_byte = 1 + _CLUSTER_REQUESTS * (shared[0] * shared[1] > 1)
    time = gpu.microseconds(bytes_ * per_byte / gpu.l2_bytes_per_clock)
    return np.where(depends_on_placement(size, gpu), time * missing, 0.0)


def edge_factor(size: Size) -> Array:
    """Returns what the time for rows of zeros in tiles at edges is multiplied by.

    Args:
        size: of the problem.
    """
    return np.where(np.asarray(size.batch) > 1, _EDGE_TIME, 1.0)


def time_of_two_blocks(blocks: Array, main_loop: Array, size: Size) -> Array:
    """Returns the microseconds that two blocks on a multiprocessor take longer than if they shared it evenly.

    Args:
        blocks: on a multiprocessor.
        main_loop: its time, in us.
        size: of the problem.
    """
    return np.where((blocks > 1) & (np.asarray(size.batch) > 1), _TWO_BLOCKS + _TWO_BLOCKS_LOOP * main_loop, 0.0)
