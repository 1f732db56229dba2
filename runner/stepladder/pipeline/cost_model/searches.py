"""Which knobs of a family of kernels are searched, and which of their settings give different kernels."""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.space import Proposal, Search
from stepladder.pipeline.cost_model.terms import INSTRUCTION_ROWS, Size, blocks_that_fit, ceil_divide, cut
from stepladder.pipeline.cost_model.warp import splits_f32

# Tiles whose rows are no multiples of those of an instruction: rows are multiples of _EIGHT up to _MAX_ROWS, those of a
# box of TMA, and up to _PARTIAL_ROWS are of one warpgroup; splits of k, and waves of blocks.
_EIGHT, _MAX_ROWS, _PARTIAL_ROWS = 8, 256, 192
_PARTIAL_WAVES = ((1, 1), (1, 2), (1, 3), (2, 1))

# A setting for which one of these does not hold makes the same kernel as another, or one that is never faster. Sums of
# 32 bits: beyond 208 registers of them a warpgroup spills, or 192 with stream-K or elementwise ops, and of three
# warpgroups beyond 96, since the register file is divided evenly at the start of a block. Those of the ping-pong
# schedule with more than 192 are slower than predicted. Tiles whose width is an odd multiple of eight take longer than
# predicted, but for the narrowest and those of swapped operands. Source: model_208_columns.json,
# choices_208_columns_bf16-bf16.json, model_forms_seen_bf16-bf16.json and model_exchanged_seen_bf16-bf16.json in
# docs/results.
_USEFUL_WARPGROUP = (
    "block_n % 16 == 0 or block_n < 32 or c_layout == 'column'",
    (
        "block_m * block_n * products * acc_bits "
        "<= (192 if schedule == 'pingpong' or tile_scheduler == 'stream_k' or has_elementwise else 208) * 128 * 32 "
        "* (1 if schedule == 'pingpong' else consumer_warpgroups)"
    ),
    ("schedule == 'pingpong' or consumer_warpgroups < 3 or block_m * block_n * products * acc_bits <= 96 * 384 * 32"),
    "schedule == 'cooperative' or consumer_warpgroups == 1",
    "block_k * a_bits >= 1024 or block_k >= k",
    # Products of fp8 that are divided, as registers hold the sums of a part of the columns, were not faster. Source:
    # docs/results/fp8/divided.json.
    "not promotes or holds_two or k_steps == 1",
    "split_k > 1 or split_k_workspace == 'cluster'",
    "split_k > 1 or persistent_blocks > 0 or min_blocks_per_sm > 1 or block_m % 64",
    # Two blocks on a multiprocessor must fit: their shared memory does, and ptxas refuses a wgmma whose accumulators
    # take nearly all registers of a thread.
    "min_blocks_per_sm < 2 or persistent_blocks == 0 and schedule == 'cooperative' and products == 1",
    "min_blocks_per_sm < 2 or min_blocks_per_sm * (shared_bytes + 1024) <= shared_memory_limit + 1024",
    "min_blocks_per_sm < 2 or block_n // 2 + 26 <= 32768 // threads // 8 * 8",
    "min_blocks_per_sm < 2 or accumulator_registers * tile_warpgroups <= 144",
    (
        "split_k > 1 or epilogue == 'tma' or block_m % 64 or (m * c_bits % 128 if c_layout == 'column' else "
        "block_n * c_bits % 256 or n * c_bits % 128) or products > 1 and m < block_m "
        "or results > 1 and (m * result_bits % 128 if c_layout == 'column' else "
        "block_n * result_bits % 256 or n * result_bits % 128)"
    ),
    # A pair of few rows, or a product with elementwise ops: boxes of A are as high as it in blocks by themselves; the
    # slices of a cluster have zeros to fill. Tiles of fewer columns of both B took longer than predicted. Measured.
    "products == 1 and not has_elementwise or cluster_n == 1 or m >= block_m",
    "products == 1 or block_n >= 32 or m >= block_m or tiles <= persistent_blocks",
    # Fragments of A in registers, and what they are made from, beside the sums.
    (
        "producers == 'kernels' or block_m * block_n * products * acc_bits // 4096 + block_m * block_k // 128 "
        "<= (120 if schedule == 'cooperative' and consumer_warpgroups > 2 else 192) "
        "* (1 if schedule == 'pingpong' else consumer_warpgroups)"
    ),
    # Of f32, A is split in registers where it is the larger operand, and of batches, whose preceding kernel would write
    # both parts of all matrices to memory.
    "split_f32 == 'kernels' or is_f32 and not allow_tf32",
    "split_f32 != 'registers' or batched or m >= 4 * n and n <= 512",
    # B is split in shared memory where TMA loads it as it is; an N-major B is transposed there.
    "split_f32 != 'shared' or schedule == 'cooperative' and (n if b_transposed == 1 else k) * b_bits % 128 == 0",
    "split_f32 != 'shared' or b_transposed == 0 or block_n * block_k <= 4096 * consumer_warpgroups",
    # Rows of C that TMA does not take are stored as whole rows, where these can begin anywhere.
    "epilogue != 'rows' or n * result_bits % 128",
    (
        "epilogue != 'registers' or split_k > 1 or n * result_bits % 128 == 0 or c_layout == 'column' "
        "or batch > 1 and m * n * result_bits % 128"
    ),
    "epilogue != 'registers' or epilogue_stages == 2",
    # A matrix that is added is copied to the boxes of C, as many as there are.
    "epilogue_stages <= 2 or epilogue == 'rows' or copies_boxes and epilogue_stages <= c_boxes",
    "epilogue_stages != 3 or copies_boxes",
    "epilogue != 'rows' or epilogue_stages == 1 or block_n * row_bits * products > epilogue_stages * 512",
    "tile_scheduler == 'data_parallel' or tiles > persistent_blocks and tiles % persistent_blocks != 0",
)
# Where splits of k may take more than one wave: in clusters. In global memory, blocks wait for splits that have not
# begun; no problem of docs/results/model_*.json has such a setting as the fastest one. The first text, which follows
# from the other one and the requirements of `split_k`, is known before the workspace is.
_SPLITS_IN_WAVES = ("split_k <= 8 and cluster_m * cluster_n == 1", "split_k_workspace == 'cluster'")
# Rows that one wgmma multiplies: tiles of others have rows in shared memory that no load fills.
_FULL_ROWS = f"block_m % {INSTRUCTION_ROWS} == 0"
# Two blocks on a multiprocessor, for the small matmuls of a batch: each hides what the other waits for, so that neither
# loops over tiles. With less than four stages, those that split k among them, they took longer than predicted
# (docs/results/two_blocks.json).
_TWO_BLOCKS_OF_BATCHES = ("batch > 1", "stages >= 4 and split_k == 1")
# And for few rows, where one block loads weights while the other begins and ends; measured in forms of these kinds
# (docs/results/early_weights_grid.json).
_TWO_BLOCKS_OF_FEW_ROWS = (
    f"batch > 1 or n <= block_n and cluster_m * cluster_n == 1 and block_m <= {2 * INSTRUCTION_ROWS} and {_FULL_ROWS}",
    "split_k_workspace == 'cluster'",
    "batch == 1 or stages >= 4 and split_k == 1",
)
# Such tiles were measured for products of few rows whose kernels load weights early, in forms of these kinds.
_USEFUL_PARTIAL = (
    "block_n < n + 8",
    f"schedule == 'cooperative' and consumer_warpgroups == (block_m + {_PARTIAL_ROWS - 1}) // {_PARTIAL_ROWS}",
    "cluster_m * cluster_n == 1 and split_k_workspace == 'cluster'",
)
# Of kernels that load early, blocks of several such tiles were not measured.
_USEFUL_EARLY_PARTIAL = "persistent_blocks == 0"
# A thread's registers: its accumulators, two sets of fragments, or one and tiles on their way through registers, and 40
# besides. It has 255 at most, and a block 65536; beyond that it spills.
_SUMS = "products * warp_m * warp_n * acc_bits // 1024"
_SUMS_AND_FRAGMENTS = f"({_SUMS} + (warp_m + products * warp_n) // 2 + 40)"
# Vectors of less than 16 bytes: each has a condition or a value in a register.
_VECTORS = "(block_m * block_k // (threads * a_run) + products * (block_k * block_n // (threads * b_run)))"
_USEFUL_WARP = (
    f"({_SUMS_AND_FRAGMENTS} if {_SUMS_AND_FRAGMENTS} < 255 else 255) * threads <= 65536",
    (f"not through_registers or {_SUMS} + (warp_m + products * warp_n) // 4 + a_registers + b_registers + 40 <= 255"),
    f"not is_narrow or {_VECTORS} <= 96",
    f"not is_narrow or {_SUMS_AND_FRAGMENTS} + {_VECTORS} <= 220",
    f"not is_narrow or ({_SUMS_AND_FRAGMENTS} + {_VECTORS}) * threads <= 60000",
    # The conditions of a pair's vectors beside two accumulators: a warp of 64 x 32 by itself spills.
    f"products == 1 or not has_edges or {_SUMS_AND_FRAGMENTS} + {_VECTORS} <= 255",
    # Addresses and two sets of fragments of long warp tiles do not fit beside 128 sums; WMMA loads one set.
    f"fragment_n > 8 or acc_bits != 32 or {_SUMS} + (warp_m + products * warp_n) // 2 <= 192",
    "block_k * a_bits >= 256",
    # Longer k steps of masked copies took longer. Measured on an H200.
    "fragment_n > 8 or not has_edges or through_registers or block_k * a_bits <= 1024",
    # 3xTF32 splits the fragments of each k sub-step: a thread spills with more than four of them. More stages than
    # three are slower with more than four warps, and faster with four. Blocks of fewer warps, and the smallest warp
    # tiles, which split fragments for few products, were never the fastest. Measured on an H200.
    "a_bits != 32 or allow_tf32 or block_k <= 32 and stages <= (3 if threads > 128 else 4)",
    "a_bits != 32 or allow_tf32 or threads >= 128 and warp_m * warp_n >= 512",
    # The sums of instructions of fp8, which are added in f32, do not fit beside the largest warp tiles.
    "not promotes or products * warp_m * warp_n < 4096",
    "prefetch == 'registers' or stages > 1",
    "prefetch == 'cp_async' or stages <= 2",
)
# C = AB + C with masked copies, swizzled addresses and the largest warp tiles: a thread spills. Warps of 32 x 64 do
# not, and are as fast at 4104^3 of f16 on an H200.
_USEFUL_WARP_ADDING = ("fragment_n > 8 or not has_edges or through_registers or products * warp_m * warp_n < 4096",)


def _partial_tiles(size: Size, gpu: Gpu) -> list[tuple[int, int]]:
    """Returns the rows and splits of tiles that make even waves, the rows in multiples of eight.

    A product that HBM bounds ends when the last multiprocessor has read its weights: with tiles in multiples of 64
    rows, few extents divide well by the number of multiprocessors.
    """
    partial_tiles = []
    for splits, waves in _PARTIAL_WAVES:
        tiles = int(blocks_that_fit(np.array([float(splits)]), gpu)[0]) // splits * waves
        rows = int(ceil_divide(ceil_divide(size.m, tiles), _EIGHT)) * _EIGHT
        if rows % INSTRUCTION_ROWS and rows <= _MAX_ROWS:
            partial_tiles.append((rows, splits))
    return partial_tiles


def _useful(size: Size, gpu: Gpu, is_early: bool, waits: bool) -> tuple[str, ...]:
    """Returns the expressions that a setting is dropped for if one of them does not hold."""
    tiles = _partial_tiles(size, gpu) if (is_early or waits) and size.a_layout == "row" else []
    rows = [f"block_m == {rows}" for rows in sorted({rows for rows, _ in tiles})]
    tile_conditions = [f"block_m == {rows} and split_k == {splits}" for rows, splits in tiles]
    partial = _USEFUL_PARTIAL if waits else (*_USEFUL_PARTIAL, _USEFUL_EARLY_PARTIAL)
    kinds = [f"{_FULL_ROWS} or {text}" for text in partial]
    block_conditions = _TWO_BLOCKS_OF_FEW_ROWS if is_early or waits else _TWO_BLOCKS_OF_BATCHES
    kinds += [f"min_blocks_per_sm < 2 or ({text})" for text in block_conditions]
    return (
        *(f"split_k == 1 or {text} or tiles * split_k <= {gpu.multiprocessors}" for text in _SPLITS_IN_WAVES),
        " or ".join([_FULL_ROWS, *rows]),
        " or ".join([_FULL_ROWS, *tile_conditions]),
        *kinds,
        *_USEFUL_WARPGROUP,
    )


def _persistent_blocks(size: Size, gpu: Gpu) -> Proposal:
    """Returns what to try for the number of persistent blocks: none; as many as fit; and as few as take no more waves
    than those, which then all end together."""

    def propose(columns: Columns) -> list[Array]:
        cluster = columns.floats("cluster_m", 1) * columns.floats("cluster_n", 1)
        room = blocks_that_fit(cluster, gpu)
        tiles = cut(size, columns).count
        balanced = ceil_divide(ceil_divide(tiles, ceil_divide(tiles, room)), cluster) * cluster
        balanced = np.where(tiles > room, np.minimum(balanced, room), room)
        return [np.broadcast_to(values, (columns.count,)).astype(np.int64) for values in (0, room, balanced)]

    return Proposal(("block_m", "block_n", "cluster_m", "cluster_n"), propose)


def _min_blocks_per_sm(size: Size) -> Proposal:
    """Returns what to try for the blocks that must fit on a multiprocessor: one for products of f32 by three of tf32.
    Where ptxas aims at two, it takes the three products of a sum one after the other, and each waits for the last
    (docs/results/f32_front.json).
    """

    def propose(columns: Columns) -> list[Array]:
        return [np.broadcast_to(splits_f32(columns, size), (columns.count,)).astype(np.int64)]

    return Proposal(("allow_tf32",), propose)


def search_of(family: str, size: Size, gpu: Gpu, is_early: bool, waits: bool = False) -> Search:
    """Returns what is searched for a problem.

    Args:
        family: of the kernels, WARPGROUP or WARP.
        size: of the problem.
        gpu: that runs it.
        is_early: whether kernels may load weights early; see `early_weights.applies`.
        waits: whether they would if the launch before them could not write weights; see `early_weights.may_not`.
    """
    # Products of fp8 have sums of f32, unless the knob is set.
    values = {"fast_accum": size.in_bytes != 1 or size.acc_type != "f32"}
    if family == WARPGROUP:
        return Search(
            (
                "block_m",
                "block_n",
                "consumer_warpgroups",
                "schedule",
                "split_f32",
                "block_k",
                "cluster_m",
                "cluster_n",
                "split_k",
                "split_k_workspace",
                "min_blocks_per_sm",
                "persistent_blocks",
                "epilogue",
                "tile_scheduler",
                "epilogue_stages",
                "fast_accum",
            ),
            "stages",
            {"persistent_blocks": _persistent_blocks(size, gpu)},
            values,
            _useful(size, gpu, is_early, waits),
        )
    useful = (*_USEFUL_WARP, *(_USEFUL_WARP_ADDING if size.accumulate else ()))
    tile = ("block_m", "block_n", "warp_m", "warp_n", "block_k")
    proposals = {"min_blocks_per_sm": _min_blocks_per_sm(size)}
    return Search((*tile, "prefetch", "stages", *proposals, *values), "", proposals, values, useful)
