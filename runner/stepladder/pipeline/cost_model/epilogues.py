"""Predicted time after the main loop of a kernel on wgmma: the epilogue, and the reduction of splits."""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.loading import has_odd_rows
from stepladder.pipeline.cost_model.terms import (
    INSTRUCTION_ROWS,
    LINE_BYTES,
    Size,
    Tiles,
    ceil_divide,
    join,
    stored_rows,
    widest_box,
)

_WARPGROUP_THREADS, _REGISTER_BYTES = 128, 4
# Rate of stores from registers, as a fraction of that by TMA, by the clocks of a tile of f32 with each. Measured.
_REGISTER_STORE_RATE = 0.67
# Of rows of 16 bits with an odd number of elements from registers, one by one, as a fraction of that; and of stores by
# whole rows, as a fraction of the rate by TMA: docs/results/odd_epilogues.json.
_SINGLE_ELEMENT_RATE = 0.1
_ROW_STORE_RATE = 0.625
# Lines that take as long as the parts of lines which a row of a tile begins and ends with, from the same results.
_PARTIAL_LINES = 6.0
# Nanoseconds of a warpgroup for an element of a pair of products, which at least an activation is computed of.
# Measured on an H200.
_PAIR_ELEMENT_NS = 1.2
# Microseconds that elementwise ops take for an element of a thread; beside that, for one of a matrix that stores from
# registers load in between, but for the first few. Source: docs/results/forms_epilogues.json.
_ELEMENT, _LOADED_ELEMENT, _LOADED_AT_ONCE = 0.005, 0.065, 4
# The same for one of a matrix that TMA stores of a transposed C and of a row-major one load in between, where the boxes
# of C do not hold it; and for all that are loaded to registers before the last MMA ends. Source:
# docs/results/added_matrices.json.
_TRANSPOSED_ELEMENT, _ROW_ELEMENT, _EARLY_LOADS = 0.016, 0.018, 0.3
# Splits of a tile in global memory for which no block waits longer than for its own.
_OVERLAPPED_SPLITS = 12
# Rows of a tile above which few stages fit beside the buffers of its epilogue.
_TALL_TILE_ROWS = 192
# The fraction that an epilogue takes longer with one stage, which waits for its store before the next box. By the mean
# errors of docs/results/model_boxes_*.json with one stage and with two.
_SINGLE_BUFFER_SLOWDOWN = 0.6


def writes_elements(knobs: Columns, size: Size) -> Array:
    """Returns which settings write a transposed C element by element: direct stores, and the reduction of splits in
    global memory. TMA stores and the reduction in a cluster transpose the tile in shared memory.

    Args:
        knobs: with the epilogue, the splits and where they are reduced.
        size: of the product, with the layout of C.
    """
    by_tma = knobs.equals("epilogue", "tma", "registers")
    in_cluster = knobs.equals("split_k_workspace", "cluster", "cluster")
    return np.asarray((size.c_layout == "column") & ~by_tma & ~((knobs.floats("split_k", 1) > 1) & in_cluster))


def _rows_of_warpgroup(knobs: Columns) -> Array:
    """Returns how many rows of a tile a warpgroup writes."""
    pingpong = knobs.equals("schedule", "pingpong", "cooperative")
    return knobs.floats("block_m") / np.where(pingpong, 1.0, knobs.floats("consumer_warpgroups", 1))


def _store_rate(knobs: Columns, size: Size) -> Array:
    """Returns the rate at which a warpgroup stores its rows, as a fraction of that by TMA, but for elements of a
    transposed C. Stores by whole rows have a part of each row that the buffer holds to begin and to end: as much as
    another line."""
    by_tma, by_rows = (knobs.equals("epilogue", kind, "registers") for kind in ("tma", "rows"))
    is_single = size.c_layout == "row" and size.out_bytes == 2 and size.n % 2 == 1
    run = np.minimum(knobs.floats("block_n") * size.out_bytes, knobs.floats("epilogue_stages", 2) * LINE_BYTES)
    from_registers = _REGISTER_STORE_RATE * np.where(is_single, _SINGLE_ELEMENT_RATE, 1.0)
    return np.where(by_tma, 1.0, np.where(by_rows, _ROW_STORE_RATE / (1 + LINE_BYTES / run), from_registers))


def shared_lines(knobs: Columns, size: Size) -> Array:
    """Returns how many lines of the L2 cache a block writes in part, another part of which the block of another cluster
    writes: at both ends of each row of its tile, where tiles end within lines. The blocks of a cluster write lines
    together in one part of the GPU. Source: counting.

    Args:
        knobs: with the tile, the cluster and the splits.
        size: of the product, with the layout of C.
    """
    is_column = size.c_layout == "column"
    width, rows = (knobs.floats(name) for name in (("block_m", "block_n") if is_column else ("block_n", "block_m")))
    cluster = knobs.floats("cluster_m" if is_column else "cluster_n", 1)
    row_bytes = np.asarray((size.m if is_column else size.n) * size.out_bytes)
    tiles = ceil_divide(row_bytes, width * size.out_bytes)
    bits = LINE_BYTES | row_bytes.astype(int) | (width * size.out_bytes).astype(int)
    begins = bits & -bits  # the largest power of two that divides all three
    ends = 2 * (ceil_divide(tiles, cluster) - 1) / tiles
    return ends * (1 - begins / LINE_BYTES) * rows / knobs.floats("split_k", 1)


def epilogue_time(
    knobs: Columns, size: Size, outside: Array, at_once: Array, gpu: Gpu, constants: dict[str, float]
) -> Array:
    """Returns the time in which a block writes its tile: each warpgroup its rows, by TMA or, more slowly, by whole rows
    or from registers; or in which all blocks write theirs, in whole lines of L2 where the boxes of TMA are narrower.
    With split-K each block writes a share of the tile. Source: fitted.

    Of a pair of products, elements outside of C are computed for shared memory, and skipped by stores from registers.

    Args:
        knobs: with the tile, the epilogue and the schedule.
        size: of the product.
        outside: rows of a tile that are outside of C.
        at_once: blocks that run at once.
        gpu: whose multiprocessors share the L2 cache.
        constants: fitted, of kernels on wgmma.

    Returns:
        Microseconds.
    """
    by_tma, by_rows = (knobs.equals("epilogue", kind, "registers") for kind in ("tma", "rows"))
    pingpong = knobs.equals("schedule", "pingpong", "cooperative")
    writers = np.where(pingpong, 1.0, knobs.floats("consumer_warpgroups", 1))
    bytes_ = knobs.floats("block_m") * knobs.floats("block_n") * size.out_bytes * (2 if size.accumulate else 1)
    bytes_ = bytes_ / knobs.floats("split_k", 1)
    elements = writes_elements(knobs, size)
    rate = constants["store"] * _store_rate(knobs, size) * np.where(elements, constants["column_store"], 1)
    tall = np.where(knobs.floats("block_m") > _TALL_TILE_ROWS, constants["store_tall"], 1.0)
    waits = np.where(by_tma & (knobs.floats("epilogue_stages", 2) < 2), 1 + _SINGLE_BUFFER_SLOWDOWN, 1.0)
    row_bytes = _row_bytes(knobs, size)
    lines = bytes_ * np.maximum(1.0, LINE_BYTES / stored_row_bytes(knobs, size)) ** constants["store_narrow"]
    lines = lines * np.where(elements, constants["column_write"], 1.0)
    lines = lines * np.where(by_rows, 1 + _PARTIAL_LINES * LINE_BYTES / row_bytes, 1.0)
    together = lines * (at_once / gpu.multiprocessors) / (constants["store_together"] * 10)
    contention = shared_lines(knobs, size) * (at_once / gpu.multiprocessors) * constants["shared_line"]
    is_pair = np.asarray(size.products) > 1
    pair_time = np.where(
        is_pair & (by_tma | by_rows), outside * knobs.floats("block_n") / writers * _PAIR_ELEMENT_NS, 0.0
    )
    return constants["tile"] + (join(bytes_ / writers / rate * waits * tall, together) + contention + pair_time) * 1e-3


def _row_bytes(knobs: Columns, size: Size) -> Array:
    """Returns the bytes of a row of a tile in C; a box of a transposed C has 64 rows of the tile.

    Args:
        knobs: with the tile.
        size: of the product, with the layout of C.
    """
    columns = np.asarray(float(INSTRUCTION_ROWS)) if size.c_layout == "column" else knobs.floats("block_n")
    return columns * size.out_bytes


def stored_row_bytes(knobs: Columns, size: Size) -> Array:
    """Returns the bytes of a row of C that are stored together: those of a box of TMA, or a line of L2.

    Args:
        knobs: with the tile and the epilogue.
        size: of the product, with the layout of C.
    """
    by_tma = knobs.equals("epilogue", "tma", "registers")
    return np.where(by_tma, widest_box(_row_bytes(knobs, size)), float(LINE_BYTES))


def store_excess(knobs: Columns, size: Size, tiles: Tiles, at_once: Array, constants: dict[str, float]) -> Array:
    """Returns by how much more time HBM takes to store C than to read as many bytes, as a multiple of the latter.

    Boxes of rows that begin within sectors of the L2 cache write two sectors of a row in part. Stores to many rows at
    once are further apart in memory, and so are those of warpgroups that take turns. Source: constants that are set to
    docs/results/forms_outer.json and model_large_c_f16-f16.json.

    Args:
        knobs: with the tile, the epilogue and the order of blocks.
        size: of the product, with the layout of C.
        tiles: that blocks compute.
        at_once: blocks that run at once.
        constants: fitted, of kernels on wgmma.
    """
    pitch = size.m if size.c_layout == "column" else size.n
    halves = has_odd_rows(pitch, size.out_bytes) * LINE_BYTES / stored_row_bytes(knobs, size)
    doublings = np.log2(np.maximum(stored_rows(tiles, knobs, at_once, size) / INSTRUCTION_ROWS, 1.0))
    excess = constants["hbm_store"] - 1 + constants["hbm_odd_store"] * halves
    alternating = constants["hbm_alternating_store"] * knobs.equals("schedule", "pingpong", "cooperative")
    return excess + constants["hbm_store_rows"] * doublings + alternating


def elementwise_time(knobs: Columns, size: Size) -> Array:
    """Returns how much longer an epilogue takes that computes elementwise ops, for the elements of a thread.

    Args:
        knobs: with the tile, the epilogue and the schedule.
        size: of the product, with what its elementwise ops read.

    Returns:
        Microseconds; 0 where there are none, and for pairs of products, which `epilogue_time` counts.
    """
    if not size.has_elementwise or size.products > 1:
        return np.zeros(1)
    elements = _rows_of_warpgroup(knobs) * knobs.floats("block_n") / _WARPGROUP_THREADS / knobs.floats("split_k", 1)
    if np.all(np.asarray(size.read_matrices) == 0):
        return _ELEMENT * elements
    from_registers = _LOADED_ELEMENT * np.maximum(0.0, elements - _LOADED_AT_ONCE)
    by_tma = knobs.equals("epilogue", "tma", "registers")
    held = np.minimum(knobs.floats("epilogue_stages", 2) / np.maximum(knobs.floats("c_boxes", 1), 1.0), 1.0)
    left = (size.read_matrices - knobs.floats("copies_boxes", 0) * held) * elements
    read_time = np.where(by_tma, _loading_time(knobs, size, left), size.read_matrices * from_registers)
    return _ELEMENT * elements + read_time


def _loading_time(knobs: Columns, size: Size, left: Array) -> Array:
    """Returns the time in which a thread loads its elements of matrices, with stores by TMA, in microseconds. Of a
    row-major C, as many as registers hold are loaded before the last MMA ends.

    Args:
        knobs: with the tile and the schedule.
        size: of the product, with the layout of C.
        left: elements that were not copied to boxes of C during the main loop.
    """
    if size.c_layout == "column":
        return _TRANSPOSED_ELEMENT * left
    early = np.clip(knobs.floats("operand_registers", 0) * _REGISTER_BYTES / size.out_bytes, 0.0, left)
    return _EARLY_LOADS * (early > 0) + _ROW_ELEMENT * (left - early)


def reduction_time(knobs: Columns, constants: dict[str, float]) -> Array:
    """Returns the time of the reduction of splits: in a cluster, in global memory, or in C with stream-K. Every block
    writes its partial accumulator and reads as many elements. A thread reduces four adjacent elements over all splits
    in a pass; passes do not overlap. A block waits until all splits of its tile have arrived in global memory, which
    shows beyond twelve of them. Source: fitted.

    Args:
        knobs: with the tile, the splits and the scheduler.
        constants: fitted, of kernels on wgmma.

    Returns:
        Microseconds; 0 for settings without splits or stream-K.
    """
    split = knobs.floats("split_k", 1)
    in_cluster = knobs.equals("split_k_workspace", "cluster", "cluster")
    elements = knobs.floats("block_m") * knobs.floats("block_n")
    bytes_ = 2 * 4 * elements * 1e-3
    passes = ceil_divide(elements, split * 4 * _WARPGROUP_THREADS * knobs.floats("consumer_warpgroups", 1))

    def reduction(workspace: str) -> Array:
        return constants[workspace] + bytes_ / constants[f"{workspace}_rate"] + passes * constants[f"{workspace}_pass"]

    shared = knobs.equals("tile_scheduler", "stream_k", "data_parallel")
    in_c = constants["reduce_memory"] + bytes_ / constants["reduce_memory_rate"]
    wait_time = np.maximum(0.0, split - _OVERLAPPED_SPLITS) * constants["reduce_memory_many"]
    times = np.where(in_cluster, reduction("reduce_cluster"), reduction("reduce_memory") + wait_time)
    return np.where(split > 1, times, np.where(shared, in_c, 0.0))
