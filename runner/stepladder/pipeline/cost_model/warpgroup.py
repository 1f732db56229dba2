"""Predicted time of a warp-specialized kernel on wgmma and TMA (pipeline `wgmma`), for columns of knob settings.

A block has a multiprocessor to itself. Its producer issues loads as many k steps ahead as there are stages. A k step
takes as long as the slowest of the matrix unit, shared memory, TMA, the L2 cache, and the latency of the pipeline.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepladder.pipeline.cost_model import batches
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARPGROUP
from stepladder.pipeline.cost_model.epilogues import elementwise_time, epilogue_time, reduction_time, writes_elements
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.launch_triggers import is_at_exit
from stepladder.pipeline.cost_model.loading import PITCH_BYTES, are_neighbours, fill_step, l2_step, loads
from stepladder.pipeline.cost_model.preparation import preparing_time, register_step, split_step
from stepladder.pipeline.cost_model.terms import (
    BOX_BYTES,
    INSTRUCTION_ROWS,
    Number,
    Size,
    Tiles,
    blocks_that_fit,
    ceil_divide,
    cut,
    held_bytes,
    join,
    memory_bytes,
    readers_of,
    uncached,
)

# Lanes of a multiprocessor that add in f32, and the microseconds from the last product of a step to its sum. Measured.
_ADDING_LANES, _DRAIN_US = 128, 0.06
# What part of the operands a kernel by itself may read from HBM, to be chosen before a dependent one.
_MAX_EVICTED = 0.5
# Splits of k up to which loads take no longer than without; beyond, they read as many distant columns of A at a time.
_SPLITS_WITHOUT_SLOWDOWN = 4
# Boxes along k up to which the start of a cluster takes this part of its time: no block waits for another's stages.
# Source: docs/results/forms_seen.json and the other measured kernels.
_FEW_BOXES, _CLUSTER_OF_FEW = 2, 0.5
# Microseconds by which a dependent launch begins sooner where the one in front leaves as many multiprocessors idle as
# it has blocks, of products with more rows and columns than these. Source: docs/results/forms_seen.json and
# forms_suspects.json.
_IDLE_START, _FEW_ROWS = 0.2, 64
# Of the peak rate of shared memory that products of split operands reach. Source: docs/results/f32_tiles.json.
_SPLIT_SHARED_RATE = 1.0
# Microseconds that a preceding kernel takes longer which splits f32. Source: docs/results/f32_settings.json.
_SPLIT_KERNEL_US = 2.0
# Of an element of a partial accumulator in global memory.
_PARTIAL_BYTES = 4
# What HBM traffic costs where it is hidden: a little, since it takes power. It decides between orders of tiles.
_HIDDEN_TRAFFIC_COST = 0.02


def matrix_step(block_m: Array, block_n: Array, block_k: Array, size: Size, gpu: Gpu, factor: float) -> Array:
    """Returns the time of the matrix unit for a k step. Source: peak rate of the data sheet, times a fitted factor for
    the clock that power allows.

    Args:
        block_m, block_n, block_k: of the tile and the step.
        size: of the problem.
        gpu: with its peak rate.
        factor: fitted.
    """
    rate = gpu.multiply_adds(WARPGROUP, size.acc_type) * 2.0 / size.in_bytes
    return gpu.microseconds(block_m * block_n * block_k / rate) * factor


def products_of(split: Array | float) -> Array | float:
    """Returns how many products of tiles are one product: three of operands of f32 in two parts (`split_into_tf32`).

    Args:
        split: parts of an operand.
    """
    return 2 * split - 1


def shared_step(
    block_m: Array,
    block_n: Array,
    block_k: Array,
    size: Size,
    gpu: Gpu,
    fraction: float,
    split: Array | float = 1.0,
    a_split: Array | float = 1.0,
) -> Array:
    """Returns the time of shared memory for a k step: every 64 rows of A are read with all of B's tile, and TMA writes
    both. Source: PTX ISA, wgmma.mma_async: both operands from shared memory.

    What A is made from in registers is read once; so is A of f32 that threads split (`split_a_into_tf32`).

    Args:
        block_m, block_n, block_k: of the tile and the step.
        size: of the problem.
        gpu: with the peak rate of shared memory.
        fraction: of that rate, fitted.
        split: parts of B, 2 of one that is split; see `products_of`.
        a_split: parts of A in shared memory.
    """
    rows = block_m / INSTRUCTION_ROWS
    read_a = INSTRUCTION_ROWS * size.a_bytes * products_of(a_split)
    read = rows * (read_a + block_n * size.in_bytes * products_of(split))
    written = 0.5 * (block_m * size.a_bytes * a_split + block_n * size.in_bytes * split)
    of_peak = np.where(np.asarray(split) > 1, _SPLIT_SHARED_RATE, fraction)
    return gpu.microseconds((read + written) * block_k / (gpu.shared_bytes_per_clock * of_peak))


def waves_of(tiles: Tiles, knobs: Columns, gpu: Gpu) -> tuple[Array, Array, Array]:
    """Returns waves, blocks that run at once, and waves with the last one counted by what it has to do.

    Persistent blocks loop over tiles; other blocks have one tile each. More persistent clusters than fit wait for a
    second pass. With stream-K, each block gets a share of the tail, of half a tile at least. Source: counting;
    how many clusters fit is measured (`Gpu.clusters`).

    Args:
        tiles: that blocks compute.
        knobs: with the cluster, the splits and the scheduler.
        gpu: whose multiprocessors run blocks.
    """
    split = knobs.floats("split_k", 1)
    in_cluster = np.where(knobs.equals("split_k_workspace", "cluster", "cluster"), split, 1.0)
    cluster = knobs.floats("cluster_m", 1) * knobs.floats("cluster_n", 1) * in_cluster
    room = blocks_that_fit(cluster, gpu) * knobs.floats("min_blocks_per_sm", 1)
    blocks = tiles.count * split
    wanted = np.asarray(knobs.floats("persistent_blocks", 0))
    persistent = wanted > 0
    resident = np.floor(wanted / cluster) * cluster
    width = np.where(persistent, np.maximum(np.minimum(resident, blocks), 1.0), room)
    passes = np.where(persistent, ceil_divide(width, room), 1.0)
    waves = ceil_divide(blocks, width) * passes
    whole = np.floor(blocks / width)
    rest = blocks / width - whole
    stream_k = (whole + np.where(rest > 0, np.maximum(rest, 0.5), 0.0)) * passes
    shared = knobs.equals("tile_scheduler", "stream_k", "data_parallel")
    return waves, np.minimum(np.minimum(blocks, width), room), np.where(shared, stream_k, waves)


def repacking_time(
    size: Size,
    gpu: Gpu,
    constants: dict[str, float],
    split: Array | float = 1.0,
    a_split: Array | float = 1.0,
) -> Number:
    """Returns the time of the kernel that copies operands whose rows are no multiple of 16 bytes, or splits operands
    into parts: each element is read once and written once for each part, at the rate of HBM, and the kernel takes a
    launch and a prologue. Source: counting.

    Copies to transposes (`transpose_operands`) are left out: the layouts are those of the copies. All settings of a
    problem have the same ones, so that their order is the same without.

    Args:
        size: of the problem.
        gpu: with the rate of its memory.
        constants: fitted, of kernels on wgmma.
        split: parts of B; see `products_of`.
        a_split: parts of A that the kernel makes.
    """
    total: Number = 0.0
    is_launched: Number = 0.0
    operands = (
        (size.k if size.a_layout == "row" else size.m, size.a_matrices * size.m, 1.0, a_split),
        (size.n if size.b_layout == "row" else size.k, size.b_matrices * size.n, size.products, split),
    )
    for columns, extent, count, own in operands:
        traffic = (1 + own) * extent * size.k * size.in_bytes / (gpu.hbm_bytes_per_us * constants["hbm"])
        is_copied = (np.asarray(columns * size.in_bytes % PITCH_BYTES) > 0) | (np.asarray(own) > 1)
        total = total + np.where(is_copied, traffic, 0.0) * count
        is_launched = np.maximum(is_launched, is_copied)
    splitting = _SPLIT_KERNEL_US * (np.maximum(split, a_split) > 1)
    return total + is_launched * (constants["launch"] + constants["prologue"]) + splitting


def launches_differ(size: Size, gpu: Gpu) -> bool:
    """Tells whether the L2 cache keeps more of a problem's operands where launches are not dependent: blocks then
    return to their multiprocessors, and each part of the cache keeps their tiles. Source: measured,
    docs/results/model_edge_bf16-bf16.json.

    Args:
        size: of the problem.
        gpu: whose L2 cache holds operands.
    """
    constants = gpu.constants[WARPGROUP]
    parts = [uncached(size, gpu, constants[name], constants["evicted"]) for name in ("cached", "cached_in_place")]
    return bool(np.any((parts[0] > parts[1]) | batches.depends_on_placement(size, gpu)))


def is_kept_in_place(size: Size, gpu: Gpu) -> bool:
    """Tells whether the L2 cache keeps half of a problem's operands at least where launches are not dependent. Where it
    keeps less, a dependent launch is faster. Source: measured, docs/results/decode_limits.json and
    decode_settings.json; batches of own matrices, where neighbours share it: forms_triggers.json.

    Args:
        size: of the problem.
        gpu: whose L2 cache holds operands.
    """
    constants = gpu.constants[WARPGROUP]
    evicted = uncached(size, gpu, constants["cached_in_place"], constants["evicted"])
    return bool(np.all((evicted <= _MAX_EVICTED) | batches.depends_on_placement(size, gpu)))


def predict(knobs: Columns, size: Size, gpu: Gpu) -> dict[str, Array]:
    """Returns the predicted time of a launch and its terms, in us, by name.

    Args:
        knobs: columns of the pipeline's knobs; those that it does not have get their neutral value. Where
            `dependent_launch` has a row for each launch, so have the results.
        size: the problem.
        gpu: what runs it.

    Returns:
        `total`; `main loop`, `prologue`, `epilogue`, `reduction`, `launch`, and `repacking` where there is any, which
        make it up; and what bounds the main
        loop, each as if it were alone: `matrix unit`, `shared memory`, `TMA`, `L2`, `latency`, `HBM`; and `waves`, a
        number.
    """
    constants = gpu.constants[WARPGROUP]
    block_m, block_n, block_k = (knobs.floats(name) for name in ("block_m", "block_n", "block_k"))
    cluster_m, cluster_n = knobs.floats("cluster_m", 1), knobs.floats("cluster_n", 1)
    cluster = cluster_m * cluster_n
    tiles = cut(size, knobs)
    waves, at_once, rounds = waves_of(tiles, knobs, gpu)
    splits = knobs.floats("split_k", 1)
    steps = ceil_divide(ceil_divide(size.k, block_k), splits)
    split, a_split = knobs.floats("parts", 1), knobs.floats("a_parts", 1)
    # Parts of B that a preceding kernel writes, and TMA loads.
    b_loaded = np.where(knobs.equals("split_f32", "shared", "kernels"), 1.0, split)

    loaded = replace(size, in_bytes=size.a_bytes)
    # A pair of products multiplies tiles of A by tiles of both B side by side.
    columns = block_n * size.products
    parts = [
        loads(size.a_layout == "row", size.m, block_m, tiles.mean_rows, tiles.last_rows, cluster_n, block_k, loaded),
        loads(
            size.b_layout == "column",
            size.n,
            block_n,
            tiles.mean_columns,
            tiles.last_columns,
            cluster_m,
            block_k,
            size,
        ),
    ]
    parts = [
        replace(part, rows=part.rows * count, zero_rows=part.zero_rows * count)
        for part, count in zip(parts, (a_split, b_loaded * size.products))
    ]
    # Source: measured, where rows of B lie along n: those of a tile begin within a sector of the L2 cache.
    odd = np.where((np.asarray(block_n) % 16 == 8) & (size.b_layout == "row"), constants["odd_eights"], 1.0)
    # Blocks on one multiprocessor share what a step takes of it, but not its latency.
    sharing = np.maximum(1.0, at_once / gpu.multiprocessors)
    matrix = matrix_step(block_m, columns, block_k, size, gpu, constants["matrix"]) * odd * products_of(split) * sharing
    shared = shared_step(block_m, columns, block_k, size, gpu, constants["shared"], split, a_split) * odd * sharing
    # The multiprocessors share the memory system that TMA loads from: loads are faster where some of them are idle.
    idle = np.maximum(0.0, 1 - at_once / gpu.multiprocessors)
    fill = fill_step(parts, [cluster_n, cluster_m], gpu, constants) * (1 - constants["fill_idle"] * idle) * sharing
    # Source: measured, docs/results/model_long_bf16-bf16.json. Blocks of a cluster read tiles that they share once.
    doublings = np.log2(np.maximum(splits / _SPLITS_WITHOUT_SLOWDOWN, 1.0))
    scattered = 1 + constants["split_loads"] * doublings / cluster ** constants["split_shared"]
    fill = fill * scattered
    fill = fill * (1 + constants["neighbours"] * are_neighbours(cluster_m, cluster_n, size))
    # Blocks of a cluster that lie beyond C load their slices, and fill the others with zeros.
    fill = fill * (1 + constants["empty"] * tiles.empty)
    # Operands that a block reads alone, and that L2 does not hold, arrive with the latency of HBM.
    alone = (size.m < 1.5 * block_m) | (size.n < 1.5 * block_n)
    by_itself = ~np.asarray(knobs.column("dependent_launch", True), bool)
    at_exit = is_at_exit(knobs)
    # After the exit of all blocks, those of the next launch are spread over pairs of multiprocessors.
    spread = np.where(at_exit, 1 - constants["loads_at_exit"] * idle, 1.0)
    fill = fill * spread
    # Blocks of a dependent launch begin where multiprocessors are idle, and those of the next one at other places.
    moved = constants["cached"] * (1 - constants["cached_idle"] * idle)
    cached = np.where(by_itself | at_exit, constants["cached_in_place"], moved)
    held = held_bytes(size, readers_of(tiles, knobs), constants["cached_halves"])
    absent = uncached(size, gpu, cached, constants["evicted"], held)
    missing = np.where(alone, absent, 0.0)
    only = [size.n <= block_n * cluster_n, size.m <= block_m * cluster_m]
    l2 = l2_step(parts, [cluster_n, cluster_m], only, at_once, absent, gpu, constants) * scattered * spread
    latency = (
        constants["latency"] * (1 - missing)
        + constants["memory_latency"] * missing
        + constants["cluster_latency"] * (cluster > 1)
        + constants["cluster_doubling"] * np.maximum(0.0, np.log2(cluster) - 1)
    )

    boxes = np.maximum(1.0, block_k * size.in_bytes / BOX_BYTES)
    if size.in_registers:
        computed = register_step(knobs, size, matrix)
    else:
        computed = np.where(split > a_split, split_step(knobs, matrix, gpu), 0.0)

    # The loads of the first stages are issued at once: the prologue waits for them.
    stages = knobs.floats("stages", 1)
    all_steps = rounds * steps
    waiting = np.maximum(0.0, all_steps - stages) / np.maximum(all_steps, 1.0) / stages

    def pipeline_latency(filling: Array) -> Array:
        return (latency + np.maximum(filling, l2) + constants["held"] * matrix) * waiting

    pingpong = knobs.equals("schedule", "pingpong", "cooperative")
    in_memory = (splits > 1) & knobs.equals("split_k_workspace", "memory", "cluster")
    # Sums of split operands are added to the accumulator after each step: a warpgroup that multiplies alone waits.
    alone_in_step = pingpong | (knobs.floats("consumer_warpgroups", 1) < 2)
    added = np.where(
        (split > 1) & alone_in_step, gpu.microseconds(block_m * block_n / _ADDING_LANES) + _DRAIN_US, np.zeros(1)
    )

    def step(filling: Array) -> Array:
        return (
            join(matrix, shared, filling, l2, pipeline_latency(filling), computed) + constants["step"] * boxes + added
        )

    # Tiles with rows of zeros: those of the last row, of A, and of the last column, of B. One tile has both.
    edges = [np.where(part.zero_rows > 0, 1 / count, 0.0) for part, count in zip(parts, (tiles.rows, tiles.columns))]
    at_edge = np.minimum(edges[0] + edges[1], 1.0)
    crowd = [(at_once / gpu.multiprocessors * edge) ** constants["zero_sharing"] for edge in edges]
    zeros = parts[0].zero_rows * crowd[0] + parts[1].zero_rows * crowd[1]
    filled = fill + constants["zero_row"] * 1e-3 * zeros
    inner = step(fill)
    edge = (step(filled) - inner) * steps * np.where(at_edge > 0, np.maximum(1.0, waves * at_edge), 0.0)
    edge = edge * batches.edge_factor(size)

    persistent = knobs.floats("persistent_blocks", 0) > 0
    epilogue = epilogue_time(knobs, size, np.maximum(0.0, block_m - tiles.mean_rows), at_once, gpu, constants)
    epilogue = epilogue + elementwise_time(knobs, size)
    loop = steps * inner
    # In the ping-pong schedule the epilogue of one warpgroup overlaps the main loop of the other.
    hidden = np.where(pingpong, join(loop, (loop + epilogue) / 2) - loop, epilogue)
    main_loop = (rounds * loop + edge) * batches.main_loop_factor(cluster, splits, by_itself | at_exit, size, gpu)
    epilogues = rounds * hidden + np.where(pingpong, epilogue, 0.0)
    warpgroups = np.where(pingpong, constants["pingpong_start"], knobs.floats("consumer_warpgroups", 1))
    start = constants["prologue"] + constants["warpgroup"] * warpgroups
    of_cluster = constants["cluster"] * np.where(steps * boxes <= _FEW_BOXES, _CLUSTER_OF_FEW, 1.0)
    prologue = np.where(persistent, 1.0, waves) * start + np.where(cluster > 1, of_cluster, 0.0)
    reduction_of_wave = reduction_time(knobs, constants)
    reduction = reduction_of_wave * np.where(splits > 1, waves, 1.0)
    halves = constants["hbm_halves"]
    traffic = memory_bytes(size, tiles, knobs, gpu, at_once, cached, constants["evicted"], halves, held)
    partial = np.where(in_memory, size.stored_bytes / size.out_bytes * splits * _PARTIAL_BYTES, 0.0)
    traffic = traffic + constants["hbm_partial"] * partial * absent
    side_by_side = 1 + constants["hbm_cluster"] * (1 - 1 / cluster)
    hbm = traffic / (gpu.hbm_bytes_per_us * constants["hbm"] * side_by_side) * (1 + constants["hbm_idle"] * idle)
    # The blocks of the last wave reduce and store when all loads have arrived.
    from_memory = constants["prologue"] + hbm + constants["hbm_end"] * (epilogue + reduction_of_wave)
    has_room = (at_once <= gpu.multiprocessors / 2) & (np.minimum(size.m, size.n) > _FEW_ROWS)
    launch = constants["launch"] + np.where(by_itself, constants["launch_by_itself"], -_IDLE_START * has_room)
    launch = launch + np.where(at_exit, constants["launch_at_exit"], 0.0)
    kernel = main_loop + epilogues + prologue + reduction
    kernel = kernel + batches.time_of_two_blocks(knobs.floats("min_blocks_per_sm", 1), main_loop, size)
    busy = rounds * steps * matrix / kernel * (at_once / gpu.multiprocessors)
    kernel = kernel * (1 + constants["throttle"] * np.maximum(0.0, busy - constants["throttle_from"]))
    by_elements = np.where(writes_elements(knobs, size), constants["column_write"], 1.0)
    written = size.result_bytes / (constants["write"] * 1e6) * by_elements
    total = join(kernel, from_memory, written + constants["prologue"]) + _HIDDEN_TRAFFIC_COST * hbm + launch
    repacking = repacking_time(size, gpu, constants, b_loaded, a_split)
    preparing = preparing_time(size, gpu, constants)
    total = total + repacking + preparing
    times = {
        "total": total,
        "main loop": main_loop,
        "prologue": prologue,
        "epilogue": epilogues,
        "reduction": reduction,
        "launch": launch,
        **({"repacking": repacking} if np.any(repacking) else {}),
        **({"preparing": preparing} if preparing else {}),
        "matrix unit": rounds * steps * matrix,
        "shared memory": rounds * steps * shared,
        "TMA": rounds * steps * fill + edge,
        "L2": rounds * steps * l2,
        "latency": rounds * steps * pipeline_latency(fill),
        "HBM": hbm,
        "writes": written,
        "waves": rounds,
    }
    shape = np.broadcast_shapes((knobs.count,), np.shape(at_exit))
    return {name: np.broadcast_to(np.asarray(value, float), shape) for name, value in times.items()}
