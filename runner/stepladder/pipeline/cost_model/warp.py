"""Predicted time of a kernel on mma.sync or WMMA (pipelines `mma_sync` and `wmma`), for columns of knob settings.

Several blocks share a multiprocessor, as many as its registers, shared memory and threads allow. A block computes one
tile; its warps load the next tiles while they multiply.
"""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARP
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.terms import (
    Size,
    ceil_divide,
    cut,
    join,
    memory_bytes,
)

# Registers of a thread besides its accumulators and fragments, and the most that it can have.
_OTHER_REGISTERS, _MAX_REGISTERS = 40, 255
# Shared memory that the system keeps of a block.
_RESERVED_BYTES = 1024
# Cost of hidden HBM traffic: small, but not zero, since it takes power. It decides between orders of tiles.
_HIDDEN_TRAFFIC_COST = 0.02


def threads_of(knobs: Columns) -> Array:
    """Returns the threads of a block: a warp for each warp tile.

    Args:
        knobs: with the block and warp tiles.
    """
    return knobs.floats("block_m") / knobs.floats("warp_m") * knobs.floats("block_n") / knobs.floats("warp_n") * 32


def blocks_a_multiprocessor(knobs: Columns, size: Size, gpu: Gpu) -> Array:
    """Returns how many blocks share a multiprocessor, 1 at least. Source: CUDA C++ Programming Guide, occupancy; the
    registers of a thread are estimated: its accumulators, two sets of fragments, and what else it needs. 3xTF32 sums
    its products in as many registers as the accumulators have, splits fragments into two, and takes 24 more.

    Args:
        knobs: with the tiles, and `shared_bytes`.
        size: of the product.
        gpu: whose registers, shared memory and threads are limits.
    """
    threads = threads_of(knobs)
    columns = size.products * knobs.floats("warp_n")
    accumulators = knobs.floats("warp_m") * columns / 32 * (0.5 if size.acc_type == "f16" else 1.0)
    fragments = (knobs.floats("warp_m") + columns) * 16 * 2 / 4 / 32 * 2
    parts, temporaries = np.where(splits_f32(knobs, size), [[2.0], [_F32_REGISTERS]], [[1.0], [0.0]])
    needed_registers = (accumulators + fragments) * parts + temporaries + _OTHER_REGISTERS
    registers = np.minimum(np.ceil(needed_registers / 8) * 8, _MAX_REGISTERS)
    by_registers = np.floor(gpu.registers / (registers * threads))
    by_memory = np.floor(gpu.shared_bytes / (knobs.floats("shared_bytes", 0) + _RESERVED_BYTES))
    by_threads = np.floor(gpu.threads / threads)
    return np.maximum(1.0, np.minimum(np.minimum(by_registers, by_memory), by_threads))


# Matrix units of a multiprocessor: with fewer warps, some have nothing to do.
_MATRIX_UNITS = 4.0
# Products of tf32 that one product of f32 takes (`multiply_as_3xtf32`). Each depends on the previous one. _F32_WARPS
# warps of a multiprocessor hide that with tiles of 32 x 32; with larger tiles, which have more independent products,
# half as many do. At 1000^3, in one wave, four warps of 64 x 32 reach 48.5 TFLOP/s, eight of 32 x 32 41.4 (H200).
_F32_PRODUCTS = 3.0
_F32_WARPS, _F32_TILE = 8.0, 2048.0
_F32_REGISTERS = 24.0
_F32_BYTES = 4


def splits_f32(knobs: Columns, size: Size) -> Array:
    """Returns which settings multiply f32 by three products of tf32.

    Args:
        knobs: with `allow_tf32`, where the pipeline has it.
        size: of the product.
    """
    return np.asarray(size.in_bytes == _F32_BYTES) & ~np.asarray(knobs.column("allow_tf32", 1), bool)


def _issued(knobs: Columns) -> Array:
    """Returns the instructions of a product by 3xTF32, over those in a warp tile of 64 x 32: a lane of m16n8k8 has four
    sums to add for three products, and three instructions split an element of a fragment. They bound the kernel."""

    def instructions(rows: Array | float, columns: Array | float) -> Array | float:
        return 3 / 128 + 4 / 128 + 3 / 4 * (1 / rows + 1 / columns)

    return np.asarray(instructions(knobs.floats("warp_m"), knobs.floats("warp_n")) / instructions(64.0, 32.0))


def matrix_step(knobs: Columns, size: Size, gpu: Gpu, factor: float) -> Array:
    """Returns the time of the matrix unit for a k step of one block. Source: peak rate of the data sheet, or of
    mma.sync as measured, times a fitted factor.

    Args:
        knobs: with the block tile.
        size: of the product.
        gpu: whose peak rate holds.
        factor: fitted, on the time at the peak rate.

    Returns:
        Microseconds.
    """
    rate = gpu.multiply_adds(WARP, size.acc_type) * 2.0 / size.in_bytes
    rate = rate / np.where(splits_f32(knobs, size), _F32_PRODUCTS * _issued(knobs), 1.0)
    columns = size.products * knobs.floats("block_n")
    return gpu.microseconds(knobs.floats("block_m") * columns * knobs.floats("block_k") / rate) * factor


def shared_step(knobs: Columns, size: Size, gpu: Gpu, fraction: float) -> Array:
    """Returns the time of shared memory for a k step of one block: tiles are written, and every warp reads its rows of
    A and its columns of B.

    Args:
        knobs: with the block and warp tiles.
        size: of the product.
        gpu: whose shared memory delivers the bytes.
        fraction: fitted, of the peak rate of shared memory.

    Returns:
        Microseconds.
    """
    warps = threads_of(knobs) / 32
    rows = warps * knobs.floats("warp_m") + knobs.floats("block_m")
    columns = warps * knobs.floats("warp_n") + knobs.floats("block_n")
    elements = rows + size.products * columns
    bytes_ = elements * knobs.floats("block_k") * size.in_bytes
    return gpu.microseconds(bytes_ / (gpu.shared_bytes_per_clock * fraction))


def l2_step(knobs: Columns, size: Size, gpu: Gpu, fraction: float) -> Array:
    """Returns the time in which a multiprocessor reads the tiles of one k step of one block from L2.

    Args:
        knobs: with the block tile.
        size: of the product.
        gpu: whose L2 cache delivers the bytes.
        fraction: fitted, of the peak rate of a multiprocessor's port.

    Returns:
        Microseconds.
    """
    rows = knobs.floats("block_m") + size.products * knobs.floats("block_n")
    bytes_ = rows * knobs.floats("block_k") * size.in_bytes
    return gpu.microseconds(bytes_ / (gpu.l2_bytes_per_clock * fraction))


def predict(knobs: Columns, size: Size, gpu: Gpu, instruction: str) -> dict[str, Array]:
    """Returns the predicted time of a launch and its terms, in us, by name; see `warpgroup.predict`.

    Args:
        knobs: columns of the pipeline's knobs.
        size: the problem.
        gpu: what runs it.
        instruction: "mma_sync" or "wmma".
    """
    constants = gpu.constants[WARP]
    tiles = cut(size, knobs)
    steps = ceil_divide(size.k, knobs.floats("block_k"))
    most = blocks_a_multiprocessor(knobs, size, gpu)
    room = gpu.multiprocessors * most
    full_waves = np.floor(tiles.count / room)
    rest = tiles.count - full_waves * room
    resident = ceil_divide(rest, gpu.multiprocessors)  # blocks that share a multiprocessor in the last wave
    registers = knobs.equals("prefetch", "registers", "cp_async")
    registers = registers | np.asarray(knobs.column("through_registers", False), bool)
    ahead = np.where(registers, 1.0, np.maximum(1.0, knobs.floats("stages", 2) - 1))
    matrix = matrix_step(knobs, size, gpu, constants[f"matrix_{instruction}"])
    shared = shared_step(knobs, size, gpu, constants["shared"])
    l2 = l2_step(knobs, size, gpu, constants["l2"])
    warps = threads_of(knobs) / 32
    slower = np.where(registers, constants["through_registers"], 1.0)
    exposed_step = np.where(registers & (knobs.floats("stages", 2) < 2), constants["step"], 0.0)

    is_large = knobs.floats("warp_m") * knobs.floats("warp_n") >= _F32_TILE
    busy_warps = np.where(splits_f32(knobs, size), np.where(is_large, 0.5, 1.0) * _F32_WARPS, 0.0)

    def wave(blocks: Array) -> dict[str, Array]:
        all_warps = np.maximum(blocks, 1.0) * warps
        few_warps = (np.maximum(all_warps, _MATRIX_UNITS) + constants["few_warps"]) / all_warps
        few_warps = np.maximum(few_warps, busy_warps / all_warps)
        limits = {
            "matrix unit": blocks * matrix * few_warps,
            "shared memory": blocks * shared,
            "L2": blocks * l2,
            "latency": np.where(blocks > 0, (constants["latency"] + l2) / ahead, 0.0),
        }
        step_time = join(*limits.values()) * slower + np.where(blocks > 0, constants["step"] + exposed_step, 0.0)
        return {"main loop": step_time * steps} | {name: limit * steps for name, limit in limits.items()}

    full, last = wave(most), wave(resident)
    parts = {name: full_waves * full[name] + last[name] for name in full}
    waves = full_waves + (rest > 0)
    tile_bytes = knobs.floats("block_m") * knobs.floats("block_n") * size.out_bytes * (2 if size.accumulate else 1)
    epilogue = (full_waves * most + resident) * tile_bytes / constants["store"] * 1e-3
    prologue = waves * constants["prologue"] + (full_waves * most + resident) * constants["block"]
    at_once = np.minimum(tiles.count, room)
    traffic = memory_bytes(size, tiles, knobs, gpu, at_once, constants["cached"])
    hbm = traffic / (gpu.hbm_bytes_per_us * constants["hbm"])
    kernel = parts["main loop"] + epilogue + prologue
    total = join(kernel, hbm + constants["prologue"]) + _HIDDEN_TRAFFIC_COST * hbm + constants["launch"]
    times = {
        "total": total,
        **parts,
        "prologue": prologue,
        "epilogue": epilogue,
        "reduction": 0.0,
        "launch": constants["launch"],
        "HBM": hbm,
        "waves": tiles.count / room,
    }
    return {name: np.broadcast_to(np.asarray(value, float), (knobs.count,)) for name, value in times.items()}
