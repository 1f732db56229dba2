"""nvgpu: fragments and products of warps, asynchronous copies, mbarriers, TMA, and products of warpgroups.

Descriptors of TMA are `tma.Descriptor`, a group of mbarriers is the address of its first, accumulators are
`asynchronous.Sums` of shape (T, rows / 64, columns / 2). Tokens are nothing: the ops below wait by numbers of groups.
"""

from __future__ import annotations

import re

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Unsupported
from stepladder.emulator.core.registry import executes, shared
from stepladder.emulator.hardware import (
    asynchronous,
    fragments,
    synchronization,
    tma,
    warpgroups,
)
from stepladder.emulator.hardware.warps import narrowed
from stepladder.emulator.memory import memory

_MBARRIER_BYTES = 8


def segments(op, operands) -> list[tuple]:
    """Returns an op's operands by segment."""
    parts, rest = [], operands
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(rest[:size])
        rest = rest[size:]
    return parts


def where(fiber, predicate):
    """Returns the fiber of the active lanes for which an optional predicate, () or (value,), holds; None for none."""
    if not predicate:
        return fiber
    mask = fiber.active & values.lanes(np.asarray(predicate[0], bool), fiber.count)
    return narrowed(fiber, mask) if mask.any() else None


def of_lane(value, lane: int) -> int:
    """Returns what a lane has of a number, uniform or (T,)."""
    return int(value[lane]) if isinstance(value, np.ndarray) else int(value)


def address_of(view):
    """Returns the address of a view's first element, uniform or (T,)."""
    return view.memory.address + view.start + view.offset * view.element.bytes


# Asynchronous copies by threads.


@executes("nvgpu.device_async_copy")
def device_async_copy(fiber, op, *operands):
    """Begins to copy neighbours from global to shared memory; beyond `srcElements` of them come zeros."""
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
    for view, indices, touched in ((source, from_, valid), (target, to, None)):
        *outer, last = (_beside(index) for index in indices)
        access = memory.locate(fiber, op, view, [*outer, last + number], (count,), touched)
        accesses.append(access if access.per_lane else memory.with_lanes(access, len(fiber.lanes)))
        check_alignment(fiber, op, accesses[-1], count * view.element.bytes)
    if fiber.group.counters is not None:
        for access, kind in zip(accesses, ("load", "store")):
            fiber.group.counters.access(fiber, op, access, kind)
    asynchronous.copy(fiber, op, *accesses)


def _beside(index):
    """Returns an index for an access of several elements: with a dimension for them."""
    return index.reshape(-1, 1) if isinstance(index, np.ndarray) else index


def check_alignment(fiber, op, access, alignment: int) -> None:
    """Reports where what each lane touches, in neighbours, does not begin at a multiple of `alignment` bytes."""
    first = access.positions[:, 0] if access.valid is None else access.positions[access.valid[:, 0], 0]
    wrong = first * access.element.bytes % alignment != 0
    if wrong.any():
        fiber.group.sanitizer.misaligned(fiber, op, int(first[wrong.argmax()]) * access.element.bytes, alignment)


@executes("nvgpu.device_async_create_group")
def device_async_create_group(fiber, op, *tokens):
    """Makes a group of the copies since the last one."""
    asynchronous.commit_copies(fiber)


@executes("nvgpu.device_async_wait")
def device_async_wait(fiber, op, token) -> None:
    """Waits for all groups but the latest `numGroups`, as the cp.async.wait_group that it becomes."""
    asynchronous.wait_for_copies(fiber, op.attributes.get("numGroups", 0))


# Fragments of warps.


def warps_of(fiber, op) -> np.ndarray:
    """Returns the threads of the active warps, int array (warps, 32); a finding where some of a warp are missing."""
    group = fiber.group
    if group.threads % fragments.WARP:
        raise Unsupported(op, f"in blocks of {group.threads} threads, which make no whole warps")
    if len(fiber.lanes) != len(fiber.warps) * fragments.WARP:
        group.sanitizer.report(
            "divergent-barrier",
            f"{len(fiber.lanes)} threads of {len(fiber.warps)} warps come to it, which works on whole warps",
            op,
        )
    return fiber.warps[:, None] * fragments.WARP + np.arange(fragments.WARP)


def load_matrices(fiber, op, view, indices, count: int, *, transposed: bool) -> np.ndarray:
    """Returns what threads hold of `count` 8 x 8 matrices of a warp (T, count, elements), as ldmatrix loads them.

    Args:
        indices: of the first element of the row of 16 bytes that a thread gives the address of.
    """
    lanes = warps_of(fiber, op)
    item = view.element.bytes
    per = fragments.ROW_BYTES // item
    asked = (fiber.group.thread_of_lane % fragments.WARP < count * fragments.MATRIX_ROWS)[:, None]
    *outer, last = (_beside(index) for index in indices)
    access = memory.locate(
        fiber, op, view, [*outer, last + np.arange(per)], (per,), np.broadcast_to(asked, (fiber.count, per))
    )
    check_alignment(fiber, op, access, fragments.ROW_BYTES)
    group = fiber.group
    group.sanitizer.read(fiber, op, access)
    given = access.valid[:, 0]
    if group.counters is not None and given.any():
        thread = fiber.lanes[given]
        group.counters.ldmatrix(op, thread // fragments.MATRIX_ROWS, access.positions[given, 0] * item)
    rows = memory.spread(fiber, memory.gather(access))[lanes][:, : count * fragments.MATRIX_ROWS]
    matrices = rows.reshape(len(lanes), count, fragments.MATRIX_ROWS, per)
    held = fragments.matrix(8 * item, transposed=transposed).divide(matrices)
    result = np.zeros((fiber.count, count, held.shape[-1]), held.dtype)
    result[lanes] = np.swapaxes(held, 1, 2)
    return result


@executes("nvgpu.ldmatrix")
def ldmatrix(fiber, op, view, *indices):
    """Loads one, two or four 8 x 8 matrices of 16 bits, or what has as many bytes."""
    transposed = op.attributes["transpose"]
    if transposed and view.element.bytes != 2:
        raise Unsupported(op, f"that transposes {view.element.name}")
    return load_matrices(fiber, op, view, indices, op.attributes["numTiles"], transposed=transposed)


def multiply_in_warps(fiber, op, a, b, c, shape, *, tf32: bool = False, saturates: bool = False) -> np.ndarray:
    """Returns C plus the product of fragments, as mma.sync computes it: arrays (T, registers, elements).

    Args:
        shape: rows, columns and k of the instruction.
    """
    rows, columns, k = shape
    lanes = warps_of(fiber, op)
    bits = 8 * a.itemsize
    held = [values.lanes(array, fiber.count, 2)[lanes] for array in (a, b, c)]
    left = fragments.mma_a(rows, k, bits).join(held[0])
    right = fragments.mma_b(k, columns, bits).join(held[1])
    sums = fragments.mma_c(rows, columns)
    if a.dtype == np.float64:
        total = sums.join(held[2]) + left @ right
    else:
        kind = "tf32" if tf32 else "s8" if a.dtype.kind in "iu" else ""
        total = warpgroups.added(
            sums.join(held[2]), warpgroups.exact(left, kind) @ warpgroups.exact(right, kind), saturates=saturates
        )
    if fiber.group.counters is not None:
        fiber.group.counters.products(fiber, op, rows * columns * k)
    result = np.zeros((fiber.count, *held[2].shape[2:]), total.dtype)
    result[lanes] = sums.divide(total)
    return result


@executes("nvgpu.mma.sync")
def mma_sync(fiber, op, a, b, c):
    """A product of a warp. Integers saturate, as the instruction does that the op becomes."""
    if op.operand_types[0].element.width < 8:
        raise Unsupported(op, f"of {op.operand_types[0].element.name}")
    rows, columns, k = op.attributes["mmaShape"]
    return multiply_in_warps(
        fiber, op, a, b, c, (rows, columns, k), tf32="tf32Enabled" in op.attributes, saturates=True
    )


# mbarriers.


@shared("nvgpu.mbarrier.create")
def _mbarrier_shared(op):
    found = re.search(r"num_barriers = (\d+)", op.result_types[0].text)
    return _MBARRIER_BYTES * (int(found.group(1)) if found else 1), _MBARRIER_BYTES, None


@executes("nvgpu.mbarrier.create")
def mbarrier_create(fiber, op):
    """A group of mbarriers in shared memory."""
    return fiber.group.layout[op.number]


@executes("nvgpu.mbarrier.get")
def mbarrier_get(fiber, op, barriers, number):
    """The address of an mbarrier."""
    return barriers + number * _MBARRIER_BYTES


@executes("nvgpu.mbarrier.init")
def mbarrier_init(fiber, op, barriers, count, number, *predicate) -> None:
    """Initializes an mbarrier that `count` arrive at."""
    fiber = where(fiber, predicate)
    if fiber is not None:
        synchronization.initialize(fiber, op, barriers + number * _MBARRIER_BYTES, count)


def phases(fiber, op, address):
    """Returns the phase that the mbarriers at an address are in: what an arrival's token is."""
    token = np.zeros(fiber.count, np.int64)
    for mask, (block, place) in synchronization.by_block(fiber, address):
        barrier = synchronization.find_mbarrier(fiber, op, block, place, synchronization.warps_of(fiber, mask))
        token[mask] = barrier.phase if barrier is not None else 0
    return token


@executes("nvgpu.mbarrier.arrive")
def mbarrier_arrive(fiber, op, barriers, number):
    """Arrives."""
    address = barriers + number * _MBARRIER_BYTES
    token = phases(fiber, op, address)
    synchronization.arrive_at(fiber, op, address)
    return token


@executes("nvgpu.mbarrier.arrive.nocomplete")
def mbarrier_arrive_nocomplete(fiber, op, barriers, number, count):
    """Arrives `count` times, where the phase does not end by that."""
    address = barriers + number * _MBARRIER_BYTES
    token = phases(fiber, op, address)
    synchronization.arrive_at(fiber, op, address, arrivals=int(fiber.first(count)))
    return token


@executes("nvgpu.mbarrier.arrive.expect_tx")
def mbarrier_arrive_expect_tx(fiber, op, barriers, bytes_, number, *predicate) -> None:
    """Arrives, and announces bytes."""
    fiber = where(fiber, predicate)
    if fiber is not None:
        synchronization.arrive_at(fiber, op, barriers + number * _MBARRIER_BYTES, expected=bytes_)


@executes("nvgpu.mbarrier.test.wait")
def mbarrier_test_wait(fiber, op, barriers, token, number):
    """Whether the phase of a token has ended: it is waited for, since IR that asks asks again until it has."""
    synchronization.wait_at(fiber, op, barriers + number * _MBARRIER_BYTES, values.lanes(token, fiber.count) % 2)
    return True


@executes("nvgpu.mbarrier.try_wait.parity")
def mbarrier_try_wait_parity(fiber, op, barriers, parity, ticks, number) -> None:
    """Waits for the end of the phase with a parity."""
    synchronization.wait_at(fiber, op, barriers + number * _MBARRIER_BYTES, parity)


# TMA.


@executes("nvgpu.tma.create.descriptor")
def tma_create_descriptor(fiber, op, view, *box):
    """A descriptor of a tensor; what the hardware does not take is a finding."""
    text = op.result_types[0].text
    swizzle = re.search(r"swizzle = swizzle_(\d+)b", text)
    for setting in ("interleave = none", "oob = zero"):
        if setting not in text:
            raise Unsupported(op, f"of {text}: only with {setting}")
    item = view.element.bytes
    descriptor = tma.Descriptor(
        view.memory,
        view.start + int(view.offset) * item,
        view.element,
        tuple(int(size) for size in view.sizes),
        tuple(int(stride) for stride in view.strides),
        tuple(int(size) for size in box),
        int(swizzle.group(1)) if swizzle else 0,
    )
    for problem in descriptor.problems():
        fiber.group.sanitizer.report("descriptor", problem, op)
    return descriptor


@executes("nvgpu.tma.prefetch.descriptor", "nvgpu.tma.fence.descriptor")
def tma_prefetch_descriptor(fiber, op, *operands) -> None:
    """Nothing: descriptors do not change."""


@executes("nvgpu.tma.async.load")
def tma_async_load(fiber, op, *operands) -> None:
    """Lets each thread begin to load a box to its block, or to the blocks of a mask."""
    (view,), (barriers,), (descriptor,), coordinates, (number,), multicast, predicate = segments(op, operands)
    _check_box(op, view, descriptor)
    load_boxes(
        fiber, op, descriptor, coordinates, address_of(view), barriers + number * _MBARRIER_BYTES, multicast, predicate
    )


def load_boxes(fiber, op, descriptor, coordinates, address, barrier, multicast=(), predicate=()) -> None:
    """Lets each thread begin to load a box.

    Args:
        coordinates: the innermost first.
        address, barrier: in shared memory, of the box and of the mbarrier that counts its bytes.
        multicast: (mask of blocks,), or () for the thread's own.
        predicate: (whether a thread does it,), or ().
    """
    fiber = where(fiber, predicate)
    if fiber is None:
        return
    group = fiber.group
    for lane in fiber.lanes:
        block = int(group.block_of_lane[lane])
        blocks = [block]
        if multicast:
            mask = of_lane(multicast[0], lane)
            blocks = [target for target in range(16) if mask >> target & 1]
        if max(blocks, default=0) >= group.blocks:
            group.sanitizer.report(
                "out-of-bounds", f"is multicast to block {max(blocks)} of a cluster of {group.blocks}", op
            )
            blocks = [target for target in blocks if target < group.blocks]
        place = of_lane(barrier, lane)
        warp = [group.warp_of_lane[lane]]
        found = [(target, synchronization.find_mbarrier(fiber, op, target, place, warp)) for target in blocks]
        tma.load(
            fiber,
            op,
            descriptor,
            [of_lane(at, lane) for at in reversed(coordinates)],
            lane=int(lane),
            address=of_lane(address, lane),
            barriers=[pair for pair in found if pair[1] is not None],
        )


def _check_box(op, view, descriptor) -> None:
    if tuple(size for size in view.sizes if size != 1) != tuple(size for size in descriptor.box if size != 1):
        raise Unsupported(op, f"of a box of {list(descriptor.box)} in shared memory of {list(view.sizes)}")


@executes("nvgpu.tma.async.store")
def tma_async_store(fiber, op, *operands) -> None:
    """Lets each thread begin to store a box."""
    (view,), (descriptor,), coordinates, predicate = segments(op, operands)
    _check_box(op, view, descriptor)
    store_boxes(fiber, op, descriptor, coordinates, address_of(view), predicate)


def store_boxes(fiber, op, descriptor, coordinates, address, predicate=(), *, add: bool = False) -> None:
    """Lets each thread begin to store a box, or to add it to what is there; args as for `load_boxes`."""
    fiber = where(fiber, predicate)
    if fiber is None:
        return
    for lane in fiber.lanes:
        tma.store(
            fiber,
            op,
            descriptor,
            [of_lane(at, lane) for at in reversed(coordinates)],
            lane=int(lane),
            address=of_lane(address, lane),
            add=add,
        )


# Products of warpgroups.
