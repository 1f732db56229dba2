"""Asynchronous copies: cp.async by threads, bulk copies, and boxes of TMA.

Source: PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.dialects import nvvm
from stepladder.emulator.hardware import asynchronous, bulk_stores, mbarriers, remote_stores, tensor_maps, tma
from stepladder.emulator.memory.memory import Allocation
from stepladder.emulator.ptx import syntax
from stepladder.emulator.ptx.arguments import tensor_map_at
from stepladder.emulator.ptx.instructions import addresses
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.hardware.mbarriers import MBarrier
    from stepladder.emulator.ptx.site import Site

_U32 = PtxType("u32", "u", 32)
_B16 = PtxType("b16", "b", 16)
_S32 = PtxType("s32", "s", 32)
_PRED = PtxType("pred", "pred", 1)
_TO_SHARED = ("shared::cluster", "shared::cta")
_SIZES = {"ca": (4, 8, 16), "cg": (16,)}
_CLUSTER = 16  # most blocks


# cp.async.


@instruction("cp.async")
def cp_async(site: Site) -> None:
    """Begins to copy 4, 8 or 16 bytes to shared memory; zeros follow the last operand's bytes."""
    cache = site.choice(("ca", "cg"))
    site.choice(("shared", "shared::cta"))
    site.choice(("global",))
    has_hint = site.flag("L2::cache_hint")
    site.hints()
    operands = site.operands[: len(site.operands) - has_hint]
    if len(operands) not in (3, 4):
        raise site.error(f"with {len(operands)} operands: expected 3 or 4")
    size = site.number(2)
    if size not in _SIZES[cache]:
        raise site.error(f"of {size} bytes: expected {' or '.join(map(str, _SIZES[cache]))}")
    target, target_offset = site.address(0)
    source, source_offset = site.address(1)
    more: list[int] = []
    ignores = False
    if len(operands) == 4:
        register = site.scope.register(str(operands[3]))
        ignores = register is not None and register.type.kind == "pred"
        more = [site.read(operands[3], _PRED if ignores else _U32)]

    def execute(fiber: Fiber, op: Instruction, to: Value, from_: Value, *limit: Value) -> None:
        if ignores:
            limit = (np.where(values.lanes(np.asarray(limit[0]), fiber.count), 0, size),)
        nvvm.cp_async_shared_global(
            fiber, op, addresses.at(to, target_offset), addresses.at(from_, source_offset), *limit
        )

    site.emit(execute, [target, source, *more], (), {"size": size})


@instruction("cp.async.commit_group")
def commit_group(site: Site) -> None:
    """Makes a group of copies."""
    site.count(0)
    site.emit(lambda fiber, op: asynchronous.commit_copies(fiber), (), ())


@instruction("cp.async.wait_group", "cp.async.wait_all")
def wait_group(site: Site) -> None:
    """Waits for all groups of copies but the latest, or for all copies."""
    latest = None
    if site.family.endswith("all"):
        site.count(0)
    else:
        site.count(1)
        latest = site.number(0)
    site.emit(lambda fiber, op: asynchronous.wait_for_copies(fiber, latest), (), ())


@instruction("cp.async.bulk.commit_group")
def commit_bulk(site: Site) -> None:
    """Makes a group of bulk copies to global memory."""
    site.count(0)
    site.emit(lambda fiber, op: bulk_stores.commit(fiber), (), ())


@instruction("cp.async.bulk.wait_group")
def wait_bulk(site: Site) -> None:
    """Waits for all groups of bulk copies but the latest: until they have read their source, or are done."""
    read = site.flag("read")
    site.count(1)
    latest = site.number(0)
    site.emit(lambda fiber, op: bulk_stores.wait(fiber, latest, read=read), (), ())


@instruction("cp.async.bulk.prefetch", "cp.async.bulk.prefetch.tensor", is_pure=True)
def prefetch(site: Site) -> None:
    """Nothing: there are no caches."""
    site.rest.clear()


# Bulk copies and boxes, begun by each thread that executes them.


def _targets(
    fiber: Fiber, op: Instruction, lane: int, address: int, barrier: int, mask: int | None
) -> tuple[int, list[tuple[int, MBarrier]]]:
    """Returns the byte in shared memory that a thread's copy goes to, and the blocks with their mbarriers."""
    group = fiber.group
    own = int(group.block_of_lane[lane])
    rank = (address >> addresses.RANK_SHIFT) - 1
    block = own if rank < 0 else rank
    blocks = [block] if mask is None else [target for target in range(_CLUSTER) if mask >> target & 1]
    if max(blocks, default=0) >= group.blocks:
        group.sanitizer.report(
            "out-of-bounds", f"its destination is block {max(blocks)} of a cluster of {group.blocks} blocks", op
        )
        blocks = [target for target in blocks if target < group.blocks]
    place = addresses.inside_block(barrier)
    warp = [group.warp_of_lane[lane]]
    barriers = [(target, mbarriers.find_mbarrier(fiber, op, target, place, warp)) for target in blocks]
    return addresses.inside_block(address), [
        (target, mbarrier) for target, mbarrier in barriers if mbarrier is not None
    ]


def _descriptor(fiber: Fiber, op: Instruction, value: Value, lane: int) -> tma.Descriptor | None:
    """Returns the TMA descriptor that an address is of; a finding where there is none."""
    if isinstance(value, tma.Descriptor):
        return value
    address = addresses.of_lane(value, lane)
    descriptor = tensor_map_at(fiber.group.machine, address)
    if isinstance(descriptor, tma.Descriptor):
        tensor_maps.check_fenced(fiber.group, op, address)
        return descriptor
    reason = f": {descriptor}" if descriptor else ""
    fiber.group.sanitizer.report("descriptor", f"there is no TMA descriptor at {address:#x}{reason}", op)
    return None


@instruction("cp.async.bulk.tensor")
def tensor(site: Site) -> None:
    """Begins to load a box to shared memory of one block or of several, or to store one."""
    rank = site.match(r"([1-5])d")
    assert rank is not None  # by the table of forms
    if mode := site.match(r"im2col.*|tile::.*"):
        raise site.error(f"with .{mode[0]}: expected .tile")
    spaces = site.choice((*_TO_SHARED, "global")), site.choice((*_TO_SHARED, "global"))
    site.flag("tile")
    has_hint = site.flag("L2::cache_hint")
    if spaces[0] == "global":
        site.choice(("bulk_group",))
        site.count(2 + has_hint)
        store_box(site, int(rank[1]), None)
        return
    site.choice(("mbarrier::complete_tx::bytes",))
    multicast = site.flag("multicast::cluster")
    site.count(3 + multicast + has_hint)
    _load_box(site, int(rank[1]), multicast=multicast)


def _map(site: Site, operand: syntax.Operand, rank: int) -> tuple[int, int, list[int]]:
    """Returns the slot of a TMA descriptor, the bytes that are added to it, and the slots of coordinates."""
    if not isinstance(operand, syntax.Address) or len(operand.parts) != 2:
        raise site.error(f"of {operand}: expected a descriptor and coordinates in brackets")
    base, offset = site.place(operand.parts[0])
    coordinates = site.elements(operand.parts[1])
    if len(coordinates) != rank:
        raise site.error(f"with {len(coordinates)} coordinates of {rank}")
    return base, offset, [site.read(coordinate, _S32) for coordinate in coordinates]


def _load_box(site: Site, rank: int, *, multicast: bool) -> None:
    target, target_offset = site.address(0)
    map_, map_offset, coordinates = _map(site, site.operands[1], rank)
    barrier, barrier_offset = site.address(2)
    mask = [site.read(3, _B16)] if multicast else []

    def execute(fiber: Fiber, op: Instruction, to: Value, from_: Value, complete: Value, *numbers: Value) -> None:
        at, masks = numbers[:rank], numbers[rank:]
        from_ = from_ if isinstance(from_, tma.Descriptor) else addresses.at(from_, map_offset)
        for lane in map(int, fiber.lanes):
            descriptor = _descriptor(fiber, op, from_, lane)
            if descriptor is None:
                continue
            blocks = addresses.of_lane(masks[0], lane) & 0xFFFF if masks else None
            place, barriers = _targets(
                fiber,
                op,
                lane,
                addresses.of_lane(to, lane) + target_offset,
                addresses.of_lane(complete, lane) + barrier_offset,
                blocks,
            )
            origin = [addresses.of_lane(number, lane) for number in reversed(at)]
            tma.load(fiber, op, descriptor, origin, lane=lane, address=place, barriers=barriers)

    site.emit(execute, [target, map_, barrier, *coordinates, *mask], ())


def store_box(site: Site, rank: int, combine: Callable | None, elements: Sequence[str] = ()) -> None:
    """Emits the store of a box.

    Args:
        site: the instruction, whose operands are the tensor with coordinates, and the source.
        rank: dimensions of the tensor.
        combine: combines arrays of what memory holds and of the copied data; None replaces what memory holds.
        elements: types of elements that it combines.
    """
    map_, map_offset, coordinates = _map(site, site.operands[0], rank)
    source, source_offset = site.address(1)

    def execute(fiber: Fiber, op: Instruction, to: Value, from_: Value, *at: Value) -> None:
        to = to if isinstance(to, tma.Descriptor) else addresses.at(to, map_offset)
        for lane in map(int, fiber.lanes):
            descriptor = _descriptor(fiber, op, to, lane)
            if descriptor is not None and combine is not None and descriptor.element.name not in elements:
                fiber.group.sanitizer.report(
                    "descriptor", f"combines {descriptor.element.name}: expected one of {', '.join(elements)}", op
                )
            elif descriptor is not None:
                tma.store(
                    fiber,
                    op,
                    descriptor,
                    [addresses.of_lane(number, lane) for number in reversed(at)],
                    lane=lane,
                    address=addresses.of_lane(from_, lane) + source_offset,
                    combine=combine,
                )

    site.emit(execute, [map_, source, *coordinates], ())


# Bulk copies without a tensor map: bytes one after the other, as a box of one dimension.


_BYTES_OF_BULK = 16  # alignment of addresses, and of the size


def _span(fiber: Fiber, op: Instruction, lane: int, address: int, size: int, element: PtxType) -> tma.Descriptor | None:
    """Returns bytes in global memory as a tensor of one dimension that is one box; a finding where there are none."""
    allocation: Allocation | None = fiber.group.machine.heap.find(address)
    sanitizer = fiber.group.sanitizer
    if address % _BYTES_OF_BULK or size % _BYTES_OF_BULK:
        sanitizer.misaligned(fiber, op, address if address % _BYTES_OF_BULK else size, _BYTES_OF_BULK)
    if allocation is None or address + size > allocation.address + allocation.size:
        name = fiber.group.thread_name(lane)
        sanitizer.report("out-of-bounds", f"{name}: {size} bytes from {address:#x} are not in global memory", op)
        return None
    count = size // element.bytes
    start = address - allocation.address
    scalar = Scalar(element.name, element.dtype, element.bits)
    return tma.Descriptor(allocation, start, scalar, (count,), (1,), (count,), 0, alignment=_BYTES_OF_BULK)


_BYTE = PtxType("u8", "u", 8)


@instruction("cp.async.bulk")
def bulk(site: Site) -> None:
    """Begins to copy bytes between global and shared memory, or from a block's shared memory to that of another."""
    target_space = site.choice((*_TO_SHARED, "global"))
    source_space = site.choice(("global", "shared::cta"))
    has_hint = site.flag("L2::cache_hint")
    if (target_space, source_space) == ("global", "shared::cta"):
        site.choice(("bulk_group",))
        site.count(3 + has_hint)
        store_bytes(site, _BYTE, None)
        return
    site.choice(("mbarrier::complete_tx::bytes",))
    if source_space != "global":
        site.count(4)
        move_to_block(site, np.dtype(np.uint8), None)
        return
    multicast = site.flag("multicast::cluster")
    site.count(4 + multicast + has_hint)
    target, target_offset = site.address(0)
    source, source_offset = site.address(1)
    barrier, barrier_offset = site.address(3)
    mask = [site.read(4, _B16)] if multicast else []

    def execute(
        fiber: Fiber, op: Instruction, to: Value, from_: Value, size: Value, complete: Value, *masks: Value
    ) -> None:
        for lane in map(int, fiber.lanes):
            address = addresses.of_lane(from_, lane) + source_offset
            descriptor = _span(fiber, op, lane, address, addresses.of_lane(size, lane), _BYTE)
            if descriptor is None:
                continue
            place, barriers = _targets(
                fiber,
                op,
                lane,
                addresses.of_lane(to, lane) + target_offset,
                addresses.of_lane(complete, lane) + barrier_offset,
                addresses.of_lane(masks[0], lane) & 0xFFFF if masks else None,
            )
            tma.load(fiber, op, descriptor, [0], lane=lane, address=place, barriers=barriers)

    site.emit(execute, [target, source, site.read(2, _U32), barrier, *mask], ())


def move_to_block(site: Site, dtype: np.dtype, combine: Callable | None) -> None:
    """Emits a copy from a block's shared memory to that of another.

    Args:
        site: the instruction, whose operands are the destination, the source, the bytes and the mbarrier.
        dtype: of the numbers.
        combine: combines arrays of what memory holds and of the copied data; None replaces what memory holds.
    """
    target, target_offset = site.address(0)
    source, source_offset = site.address(1)
    barrier, barrier_offset = site.address(3)

    def execute(fiber: Fiber, op: Instruction, to: Value, from_: Value, size: Value, complete: Value) -> None:
        for lane in map(int, fiber.lanes):
            address = addresses.inside_block(addresses.of_lane(from_, lane) + source_offset)
            count = addresses.of_lane(size, lane)
            place, barriers = _targets(
                fiber,
                op,
                lane,
                addresses.of_lane(to, lane) + target_offset,
                addresses.of_lane(complete, lane) + barrier_offset,
                None,
            )
            for block, mbarrier in barriers:
                remote_stores.copy(fiber, op, lane, address, count, block, place, mbarrier, dtype, combine)

    site.emit(execute, [target, source, site.read(2, _U32), barrier], ())


def store_bytes(site: Site, element: PtxType, combine: Callable | None) -> None:
    """Emits a copy of bytes to global memory.

    Args:
        site: the instruction, whose operands are the destination, the source and the bytes.
        element: type of the numbers.
        combine: combines arrays of what memory holds and of the copied data; None replaces what memory holds.
    """
    target, target_offset = site.address(0)
    source, source_offset = site.address(1)

    def execute(fiber: Fiber, op: Instruction, to: Value, from_: Value, size: Value) -> None:
        for lane in map(int, fiber.lanes):
            address = addresses.of_lane(to, lane) + target_offset
            descriptor = _span(fiber, op, lane, address, addresses.of_lane(size, lane), element)
            if descriptor is not None:
                place = addresses.of_lane(from_, lane) + source_offset
                tma.store(fiber, op, descriptor, [0], lane=lane, address=place, combine=combine)

    site.emit(execute, [target, source, site.read(2, _U32)], ())
