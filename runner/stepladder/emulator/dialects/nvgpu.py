"""nvgpu: fragments and products of warps, asynchronous copies and mbarriers.

A group of mbarriers is the address of its first one. Tokens are empty: waits count groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes, shared
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.hardware import (
    asynchronous,
    fragments,
    mbarriers,
    sparse_operands,
    synchronization,
    warpgroups,
)
from stepladder.emulator.hardware.warps import narrowed, together
from stepladder.emulator.memory import alignment, memory
from stepladder.mlir.types import mbarrier_count

if TYPE_CHECKING:
    pass

MBARRIER_BYTES = 8


def segments(op: Instruction, operands: Sequence[Value]) -> list[tuple]:
    """Returns the operands of an op by segment.

    Args:
        op: with the attribute `operandSegmentSizes`.
        operands: all of them.
    """
    parts, remaining = [], operands
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(remaining[:size])
        remaining = remaining[size:]
    return parts


def where(fiber: Fiber, predicate: Value) -> Value:
    """Returns the fiber of the active lanes for which an optional predicate holds; None where it holds for none.

    Args:
        fiber: the threads.
        predicate: () or (value,).
    """
    if not predicate:
        return fiber
    mask = fiber.active & values.lanes(np.asarray(predicate[0], bool), fiber.count)
    return narrowed(fiber, mask) if mask.any() else None


def of_lane(value: Value, lane: int | np.integer) -> int:
    """Returns one lane's value.

    Args:
        value: uniform or (T,).
        lane: its index.
    """
    return int(value[lane]) if isinstance(value, np.ndarray) else int(value)


def address_of(view: MemRef) -> Value:
    """Returns the address of the first element of a view, uniform or (T,).

    Args:
        view: of memory.
    """
    return view.memory.address + view.start + view.offset * view.element.bytes


# Asynchronous copies by threads.


@executes("nvgpu.device_async_copy")
def device_async_copy(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Starts a copy of adjacent elements from global to shared memory; elements beyond `srcElements` are zeros."""
    (target,), to, (source,), from_, limit = segments(op, operands)
    count = op.attributes["dstElements"]
    number = np.arange(count)
    valid = None
    if limit:
        valid = (
            number < values.lanes(limit[0], fiber.count).reshape(-1, 1)
            if isinstance(limit[0], np.ndarray)
            else number < int(limit[0])
        )
    accesses = []
    for view, indices, active in ((source, from_, valid), (target, to, None)):
        *outer, last = (_beside(index) for index in indices)
        access = memory.locate(fiber, op, view, [*outer, last + number], (count,), active)
        accesses.append(access if access.per_lane else memory.with_lanes(access, len(fiber.lanes)))
        alignment.check_access(fiber, op, accesses[-1], count * view.element.bytes)
    if fiber.group.counters is not None:
        for access, kind in zip(accesses, ("load", "store")):
            fiber.group.counters.access(fiber, op, access, kind)
    asynchronous.copy(fiber, op, *accesses)


def _beside(index: Value) -> Value:
    """Returns an index for an access of several elements: with a dimension for them."""
    return index.reshape(-1, 1) if isinstance(index, np.ndarray) else index


@executes("nvgpu.device_async_create_group")
def device_async_create_group(fiber: Fiber, op: Instruction, *tokens: Value) -> None:
    """Makes a group of the copies since the last one."""
    asynchronous.commit_copies(fiber)


@executes("nvgpu.device_async_wait")
def device_async_wait(fiber: Fiber, op: Instruction, token: Value) -> None:
    """Waits for all groups but the latest `numGroups`, as the cp.async.wait_group that it becomes."""
    asynchronous.wait_for_copies(fiber, op.attributes.get("numGroups", 0))


# Fragments of warps.


def warps_of(fiber: Fiber, op: Instruction) -> np.ndarray:
    """Returns the threads of the active warps: int array (warps, 32); warps that are not whole are a finding.

    Args:
        fiber: the threads.
        op: the instruction.

    Raises:
        Unsupported: a block that is not a multiple of 32 threads.
    """
    group = fiber.group
    if group.threads % fragments.WARP:
        raise Unsupported(op, f"in blocks of {group.threads} threads, which is not a multiple of a warp")
    if len(fiber.lanes) != len(fiber.warps) * fragments.WARP:
        group.sanitizer.report(
            "divergent-barrier",
            f"{len(fiber.lanes)} threads of {len(fiber.warps)} warps execute it: all threads of a warp must",
            op,
        )
    return fiber.warps[:, None] * fragments.WARP + np.arange(fragments.WARP)


def load_matrices(
    fiber: Fiber, op: Instruction, view: MemRef, indices: Sequence[Value], count: int, *, transposed: bool
) -> np.ndarray:
    """Returns the elements of 8 x 8 matrices that threads hold (T, count, elements), as ldmatrix loads them.

    Args:
        fiber: the threads, in whole warps.
        op: the instruction.
        view: of shared memory.
        indices: of the first element of the row of 16 bytes that a thread provides the address of.
        count: matrices of a warp.
        transposed: whether ldmatrix transposes them.
    """
    lanes = warps_of(fiber, op)
    item = view.element.bytes
    per = fragments.ROW_BYTES // item
    threads = count * fragments.MATRIX_ROWS  # that give an address
    valid = None
    if threads < fragments.WARP:
        valid = np.repeat((fiber.group.thread_of_lane % fragments.WARP < threads)[:, None], per, axis=1)
    *outer, last = (_beside(index) for index in indices)
    access = memory.locate(fiber, op, view, [*outer, last + np.arange(per)], (per,), valid)
    if not access.per_lane:
        access = memory.with_lanes(access, len(fiber.lanes))
    alignment.check_access(fiber, op, access, fragments.ROW_BYTES)
    group = fiber.group
    group.sanitizer.read(together(fiber), op, access)
    is_valid = np.ones(len(fiber.lanes), bool) if access.valid is None else access.valid[:, 0]
    if group.counters is not None and is_valid.any():
        thread = fiber.lanes[is_valid]
        group.counters.ldmatrix(op, thread // fragments.MATRIX_ROWS, access.positions[is_valid, 0] * item)
    rows = memory.spread(fiber, memory.gather(access))[lanes][:, :threads]
    matrices = rows.reshape(len(lanes), count, fragments.MATRIX_ROWS, per)
    fragments_ = fragments.matrix(8 * item, transposed=transposed).divide(matrices)
    result = np.zeros((fiber.count, count, fragments_.shape[-1]), fragments_.dtype)
    result[lanes] = np.swapaxes(fragments_, 1, 2)
    return result


@executes("nvgpu.ldmatrix")
def ldmatrix(fiber: Fiber, op: Instruction, view: MemRef, *indices: Value) -> Value:
    """Loads one, two or four 8 x 8 matrices of 16 bits, or what has as many bytes."""
    return load_matrices(fiber, op, view, indices, op.attributes["numTiles"], transposed=op.attributes["transpose"])


def multiply_in_warps(
    fiber: Fiber,
    op: Instruction,
    a: Value,
    b: Value,
    c: Value,
    shape: Sequence[int],
    *,
    tf32: bool = False,
    saturates: bool = False,
    differs: bool = False,
    sparsity: sparse_operands.Sparsity | None = None,
) -> np.ndarray:
    """Returns C plus the product of fragments, as mma.sync computes it: arrays (T, registers, elements).

    Args:
        fiber: the threads, in whole warps.
        op: the instruction.
        a, b, c: fragments, (registers, elements) or with leading lanes.
        shape: rows, columns and k of the instruction.
        tf32: whether float32 operands are truncated to tf32.
        saturates: whether sums of integers saturate.
        differs: whether factors are bits, and a product is whether they differ.
        sparsity: where in A its elements are, of which there are half; None if it has all.
    """
    rows, columns, k = shape
    lanes = warps_of(fiber, op)
    bits = fragments.REGISTER_BITS // a.shape[-1] if a.shape[-1] > 1 else 8 * a.itemsize
    registers = [values.lanes(array, fiber.count, 2)[lanes] for array in (a, b, c)]
    left = fragments.mma_a(rows, k if sparsity is None else k // 2, bits).join(registers[0])
    if sparsity is not None:
        left = sparsity.expand(fiber, op, left, lanes, bits)
    right = fragments.mma_b(k, columns, bits).join(registers[1])
    sums = fragments.mma_c(rows, columns)
    if a.dtype == np.float64:
        total = sums.join(registers[2]) + left @ right
    else:
        kind = "tf32" if tf32 else "s8" if a.dtype.kind in "iu" else ""
        left, right = warpgroups.exact(left, kind), warpgroups.exact(right, kind)
        product = left @ right
        if differs:
            product = left.sum(axis=-1)[..., None] + right.sum(axis=-2)[..., None, :] - 2 * product
        total = warpgroups.added(sums.join(registers[2]), product, saturates=saturates)
    if fiber.group.counters is not None:
        fiber.group.counters.products(fiber, op, rows * columns * k)
    result = np.zeros((fiber.count, *registers[2].shape[2:]), total.dtype)
    result[lanes] = sums.divide(total)
    return result


@executes("nvgpu.mma.sync")
def mma_sync(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value) -> Value:
    """A product of a warp. Integers saturate, as the instruction does that the op becomes."""
    if op.operand_types[0].element.width < 8:
        raise Unsupported(op, f"of {op.operand_types[0].element.name}")
    rows, columns, k = op.attributes["mmaShape"]
    return multiply_in_warps(
        fiber, op, a, b, c, (rows, columns, k), tf32="tf32Enabled" in op.attributes, saturates=True
    )


@executes("nvgpu.mma.sp.sync")
def mma_sparse(fiber: Fiber, op: Instruction, a: Value, b: Value, c: Value, metadata: Value) -> Value:
    """A product of a warp, of which A has half of its elements."""
    element = op.operand_types[0].element
    rows, columns, k = op.attributes["mmaShape"]
    selector = int(op.attributes.get("sparsitySelector") or 0)
    if element.width < 8 or selector >= sparse_operands.selectors(element.width, k):
        raise Unsupported(
            op,
            f"of {element.name} with k = {k} and selector {selector}: expected elements of 8 bits or more, and a "
            f"selector below {sparse_operands.selectors(element.width, k)}",
        )
    metadata_registers = np.ascontiguousarray(values.lanes(np.asarray(metadata, np.int16), fiber.count, 1))
    return multiply_in_warps(
        fiber,
        op,
        a,
        b,
        c,
        (rows, columns, k),
        tf32="tf32Enabled" in op.attributes,
        saturates=True,
        sparsity=sparse_operands.Sparsity(metadata_registers.view(np.int32)[:, 0], selector),
    )


# mbarriers.


@shared("nvgpu.mbarrier.create")
def _mbarrier_shared(op: Instruction) -> tuple[int | None, int, object] | None:
    return MBARRIER_BYTES * mbarrier_count(op.result_types[0].text), MBARRIER_BYTES, None


@executes("nvgpu.mbarrier.create")
def mbarrier_create(fiber: Fiber, op: Instruction) -> Value:
    """A group of mbarriers in shared memory."""
    return fiber.group.layout[op.number]


@executes("nvgpu.mbarrier.get")
def mbarrier_get(fiber: Fiber, op: Instruction, barriers: Value, number: Value) -> Value:
    """The address of an mbarrier."""
    return mbarrier_at(fiber, op, barriers, number)


def mbarrier_at(fiber: Fiber, op: Instruction, barriers: Value, number: Value, *, operand: int = 0) -> Value:
    """Returns the address of an mbarrier of a group; an index that the group does not have is a finding.

    Args:
        fiber: whose active lanes use it.
        op: for the finding.
        barriers: address of the group, uniform or (T,).
        number: of the mbarrier, uniform or (T,).
        operand: which operand of the op the group is.
    """
    count = op.cache.get("mbarriers")
    if count is None:
        count = op.cache["mbarriers"] = mbarrier_count(op.operand_types[operand].text)
    own = number[fiber.lanes] if isinstance(number, np.ndarray) else np.asarray(number)
    wrong = (own < 0) | (own >= count)
    if wrong.any():
        fiber.group.sanitizer.report(
            "out-of-bounds", f"there is no mbarrier {int(own[wrong].flat[0])} in a group of {count}", op
        )
    return barriers + number * MBARRIER_BYTES


@executes("nvgpu.mbarrier.init")
def mbarrier_init(
    fiber: Fiber, op: Instruction, barriers: Value, count: Value, number: Value, *predicate: Value
) -> None:
    """Initializes an mbarrier that `count` arrive at."""
    fiber = where(fiber, predicate)
    if fiber is not None:
        mbarriers.initialize(fiber, op, mbarrier_at(fiber, op, barriers, number), count)


def phases(fiber: Fiber, op: Instruction, address: Value) -> Value:
    """Returns the phase of the mbarriers at an address, which is the token of an arrival: int64 array (T,).

    Args:
        fiber: the threads.
        op: the instruction.
        address: uniform or (T,).
    """
    token = np.zeros(fiber.count, np.int64)
    for mask, (block, place) in synchronization.by_block(fiber, address):
        barrier = mbarriers.find_mbarrier(fiber, op, block, place, synchronization.warps_of(fiber, mask))
        token[mask] = barrier.phase if barrier is not None else 0
    return token


@executes("nvgpu.mbarrier.arrive")
def mbarrier_arrive(fiber: Fiber, op: Instruction, barriers: Value, number: Value) -> Value:
    """Arrives."""
    address = mbarrier_at(fiber, op, barriers, number)
    token = phases(fiber, op, address)
    mbarriers.arrive_at(fiber, op, address)
    return token


@executes("nvgpu.mbarrier.arrive.nocomplete")
def mbarrier_arrive_nocomplete(fiber: Fiber, op: Instruction, barriers: Value, number: Value, count: Value) -> Value:
    """Arrives `count` times, where the phase does not end by that."""
    address = mbarrier_at(fiber, op, barriers, number)
    token = phases(fiber, op, address)
    mbarriers.arrive_at(fiber, op, address, arrivals=count)
    return token


@executes("nvgpu.mbarrier.arrive.expect_tx")
def mbarrier_arrive_expect_tx(
    fiber: Fiber, op: Instruction, barriers: Value, bytes_: Value, number: Value, *predicate: Value
) -> None:
    """Arrives, and announces bytes."""
    fiber = where(fiber, predicate)
    if fiber is not None:
        mbarriers.arrive_at(fiber, op, mbarrier_at(fiber, op, barriers, number), expected=bytes_)


@executes("nvgpu.mbarrier.test.wait")
def mbarrier_test_wait(fiber: Fiber, op: Instruction, barriers: Value, token: Value, number: Value) -> Value:
    """Whether the phase of a token has ended. The op waits for that: IR repeats the test until it succeeds."""
    mbarriers.wait_at(fiber, op, mbarrier_at(fiber, op, barriers, number), values.lanes(token, fiber.count) % 2)
    return True


@executes("nvgpu.mbarrier.try_wait.parity")
def mbarrier_try_wait_parity(
    fiber: Fiber, op: Instruction, barriers: Value, parity: Value, ticks: Value, number: Value
) -> None:
    """Waits for the end of the phase with a parity."""
    mbarriers.wait_at(fiber, op, mbarrier_at(fiber, op, barriers, number), parity)
