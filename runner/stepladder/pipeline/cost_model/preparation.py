"""Predicted times of what makes or copies A or B: preceding kernels, or ops in registers of `wgmma`."""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.loading import PITCH_BYTES
from stepladder.pipeline.cost_model.terms import INSTRUCTION_ROWS, Number, Size

# Source of all constants: measured on an H200, docs/results/producers.json.
# Microseconds from the launch of a preceding kernel to that of the matmul, besides its traffic.
_PRECEDING_KERNEL_US = 4.5
# Elements a ns that a preceding kernel makes from elements of less than a byte, of which threads make two each.
_SUB_BYTE_RATE = 380.0
# Nanoseconds in which a warpgroup makes an element of A, and for each unit of what its ops cost.
_MADE, _MADE_BY_COST = 0.037, 0.0105
# Of products of f32; source: measured on an H200, docs/results/f32_settings.json and f32_thin.json.
# Clocks of a lane that split an element of A in registers, and one of B in shared memory; lanes of a multiprocessor.
_SPLIT_IN_REGISTERS, _SPLIT_IN_SHARED, _LANES = 12.5, 14.7, 128
# Which part of its products a k step waits for, where B is split by a preceding kernel and in shared memory.
_WAITING_IN_REGISTERS, _WAITING_IN_SHARED = 0.67, 1.08
# Microseconds of a k step beside these, and where two stages or fewer are not enough to load the next one meanwhile.
_STEP_IN_REGISTERS, _STEP_IN_SHARED = 0.06, 0.05
_FEW_STAGES, _FEW_IN_REGISTERS, _FEW_IN_SHARED = 2, 0.12, 0.3
# By how much making an element is longer for each warpgroup beyond two; and which part of its own products a warpgroup
# that has the multiprocessor to itself waits for.
_MANY, _ALONE = 0.65, 0.35
_TWO_WARPGROUPS = 2.0
# Microseconds that a preceding kernel takes longer which splits f32. Source: docs/results/f32_settings.json.
_SPLIT_KERNEL_US = 2.0


def preparing_time(size: Size, gpu: Gpu, constants: dict[str, float]) -> float:
    """Returns the time of the preceding kernels that make A and B: each element is read and written once, at the rate
    of HBM, or at that of two elements a thread.

    Args:
        size: of the product.
        gpu: whose HBM holds operands.
        constants: fitted, of kernels on wgmma.

    Returns:
        Microseconds; 0 where no kernel makes an operand.
    """
    total = 0.0
    a_elements, b_elements = size.a_matrices * size.m * size.k, size.products * size.b_matrices * size.n * size.k
    operands = ((0.0 if size.in_registers else size.a_source_bytes, a_elements), (size.b_source_bytes, b_elements))
    for source_bytes, elements in operands:
        if source_bytes:
            traffic = (source_bytes + size.in_bytes) * elements / (gpu.hbm_bytes_per_us * constants["hbm"])
            conversion = elements / _SUB_BYTE_RATE * 1e-3 if source_bytes < 1 else 0.0
            total += float(np.maximum(traffic, conversion)) + _PRECEDING_KERNEL_US
    return total


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
    for columns, extent, count, factor in operands:
        traffic = (1 + factor) * extent * size.k * size.in_bytes / (gpu.hbm_bytes_per_us * constants["hbm"])
        is_copied = (np.asarray(columns * size.in_bytes % PITCH_BYTES) > 0) | (np.asarray(factor) > 1)
        total = total + np.where(is_copied, traffic, 0.0) * count
        is_launched = np.maximum(is_launched, is_copied)
    split_time = _SPLIT_KERNEL_US * (np.maximum(split, a_split) > 1)
    return total + is_launched * (constants["launch"] + constants["prologue"]) + split_time


def split_step(knobs: Columns, matrix: Array, gpu: Gpu) -> Array:
    """Returns the time of a k step whose warpgroups split A of f32 in registers, and B in a preceding kernel or in
    shared memory, before they multiply them.

    The lanes of the multiprocessor share the work. A warpgroup does not multiply meanwhile; with B in shared memory,
    where all of them wait for each other, none does.

    Args:
        knobs: with the tile and its warpgroups.
        matrix: time of the matrix unit for the three products of a k step of all warpgroups.
        gpu: with its clock.

    Returns:
        Microseconds.
    """
    in_shared = knobs.equals("split_f32", "shared", "kernels")
    rows = np.ceil(knobs.floats("block_m") / INSTRUCTION_ROWS) * INSTRUCTION_ROWS
    split_b = np.where(in_shared, _SPLIT_IN_SHARED * knobs.floats("block_n"), 0.0)
    instructions = (_SPLIT_IN_REGISTERS * rows + split_b) * knobs.floats("block_k")
    time = np.asarray(gpu.microseconds(instructions / _LANES))
    waits = np.where(in_shared, _WAITING_IN_SHARED, _WAITING_IN_REGISTERS) * matrix
    latency = np.where(in_shared, _FEW_IN_SHARED, _FEW_IN_REGISTERS) * (knobs.floats("stages", 1) <= _FEW_STAGES)
    return time + waits + latency + np.where(in_shared, _STEP_IN_SHARED, _STEP_IN_REGISTERS)


def register_step(knobs: Columns, size: Size, matrix: Array) -> Array:
    """Returns the time of a k step in which a warpgroup makes its elements of A and then multiplies them, which it does
    one after the other: another warpgroup multiplies meanwhile.

    Args:
        knobs: with the tile and its warpgroups.
        size: of the product.
        matrix: time of the matrix unit for a k step of all warpgroups.

    Returns:
        Microseconds.
    """
    return _made_and_multiplied(knobs, matrix, _MADE + _MADE_BY_COST * size.a_cost)


def _made_and_multiplied(knobs: Columns, matrix: Array, time_by_element: float) -> Array:
    """Returns the time of a k step of a warpgroup, given the nanoseconds in which it makes an element."""
    pingpong = knobs.equals("schedule", "pingpong", "cooperative")
    warpgroups = np.where(pingpong, 1.0, knobs.floats("consumer_warpgroups", 1))
    elements = knobs.floats("block_m") * knobs.floats("block_k") / warpgroups
    preparation = elements * time_by_element * 1e-3
    waits = np.where((warpgroups < _TWO_WARPGROUPS) & ~pingpong, _ALONE, 1.0)
    return preparation * (1 + _MANY * np.maximum(0.0, warpgroups - _TWO_WARPGROUPS)) + waits * matrix / warpgroups
