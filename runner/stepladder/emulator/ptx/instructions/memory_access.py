"""Loads and stores.

Source: PTX ISA, "Data Movement and Conversion Instructions: ld", "st".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Blocked
from stepladder.emulator.memory import atomics, memory
from stepladder.emulator.memory.shadow import GlobalShadow, SharedShadow
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import addresses, order
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.memory.memory import Access
    from stepladder.emulator.ptx.site import Site
    from stepladder.emulator.ptx.syntax import Statement

_B64 = PtxType("b64", "b", 64)
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def _form(site: Site, operand: int) -> tuple[str, str, str, PtxType, int]:
    """Returns the order, the scope, the space, the type and the elements of a load or a store.

    Args:
        site: the instruction.
        operand: the index of its address.
    """
    site.flag("mmio")  # which is relaxed for the whole system
    ordering = site.choice(order.ORDERS, "weak")
    scope = order.scope_of(site)
    space = addresses.space_of(site, operand)
    count = _VECTORS[site.choice(tuple(_VECTORS), "")] if any(name in site.rest for name in _VECTORS) else 1
    if site.flag("b128"):
        count, type_ = 2, _B64
    else:
        type_ = site.type("subf", (8, 16, 32, 64))
    site.hints()
    return ordering, scope, space, type_, count


def _is_strong(statement: Statement) -> bool:
    return any(name in statement.opcode for name in order.ORDERS[1:])


@instruction("ld", "ldu", is_pure=True, asks=_is_strong)
def ld(site: Site) -> None:
    """A load: of one element or of several adjacent ones; narrow ones are extended to the register."""
    ordering, scope, space, type_, count = _form(site, 1)
    site.count(2, 3)
    targets = site.elements(0)
    base, offset = site.address(1)
    if len(targets) != count:
        raise site.error(f"with {len(targets)} registers for {count} elements")
    widths = [site.width(target) for target in targets]
    shape = (count,) if count > 1 else ()
    is_strong = ordering != "weak"
    spin = site.spin

    def execute(fiber: Fiber, op: Instruction, address: Value) -> Value:
        address = addresses.at(address, offset)
        value = _read(fiber, op, space, address, type_, shape, is_strong=is_strong)
        if spin is not None:
            _wait_for_change(fiber, spin, address, value)
        elif is_strong:
            atomics.spin(fiber, op, np.asarray(value).tobytes(), False)
        if ordering != "weak":
            for lane in fiber.lanes:
                place = addresses.of_lane(address, lane)
                memory_space = "shared" if "shared" in space or addresses.is_shared_address(place) else "global"
                order.acquire(fiber, int(lane), memory_space, place, scope, is_relaxed=ordering != "acquire")
        columns = [value[..., number] for number in range(count)] if shape else [value]
        results = [_extended(column, type_, width) for column, width in zip(columns, widths)]
        return results if shape else results[0]

    site.emit(execute, [base], [site.write(target, type_.bits, wider=True) for target in targets])


def _extended(value: Value, type_: PtxType, width: int) -> Value:
    value = types.plain(value)
    return value if width == type_.bits else types.extended(value, type_, width)


def read(fiber: Fiber, op: Instruction, space: str, address: Value, type_: PtxType) -> Value:
    """Returns an element in memory, by a weak read.

    Args:
        fiber: the threads.
        op: that reads it.
        space: the state space.
        address: uniform or (T,).
        type_: of the element.
    """
    return _read(fiber, op, space, address, type_, (), is_strong=False)


def _read(
    fiber: Fiber,
    op: Instruction,
    space: str,
    address: Value,
    type_: PtxType,
    shape: tuple[int, ...],
    *,
    is_strong: bool,
) -> Value:
    element = types.register(type_.bits)
    parts_read, masks = [], []
    for part, allocation, start, remote in addresses.parts(fiber, op, space, address, element.bytes, shape):
        access = addresses.access(part, op, allocation, start, element, shape, of_any_block=remote, verb="reads")
        elements = _take_strong(part, op, access) if is_strong else memory.take(part, op, access)
        parts_read.append(memory.spread(part, elements) if access.per_lane else elements)
        masks.append(part.active)
    if not parts_read:
        return np.zeros(shape, element.dtype)
    return parts_read[0] if len(parts_read) == 1 else values.merge(parts_read, masks, fiber.count, len(shape))


def _take_strong(fiber: Fiber, op: Instruction, access: Access) -> np.ndarray:
    """Reads what others may write at the same time, strongly too: only what threads wrote weakly is a race."""
    group = fiber.group
    touch = group.sanitizer.touch(fiber, access) if group.sanitizer.enabled else None
    if touch is not None:
        shadow = access.memory.shadow
        if isinstance(shadow, (GlobalShadow, SharedShadow)):
            touch = touch.where(~shadow.atomically[touch.places])
        if touch.places.size:
            group.sanitizer.check(op, touch, writes=False)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "load")
    return memory.gather(access)


def _wait_for_change(fiber: Fiber, spin: object, address: Value, value: Value) -> None:
    """Blocks where a loop polls a value that has not changed."""
    group = fiber.group
    array = np.asarray(value)
    current = np.broadcast_to(array, (fiber.count, *array.shape)) if values.is_uniform(value) else array
    last, is_set = group.state.setdefault(spin, (current.copy(), np.zeros(fiber.count, bool)))
    lanes = fiber.lanes
    is_same = is_set[lanes] & (last[lanes] == current[lanes]).reshape(len(lanes), -1).all(axis=1)
    if is_same.all():
        lane = int(lanes[0])
        raise Blocked(f"another number than {int(np.ravel(current[lane])[0])} at {addresses.of_lane(address, lane):#x}")
    last[lanes] = current[lanes]
    is_set[lanes] = True


@instruction("st")
def st(site: Site) -> None:
    """A store: of one element or of several adjacent ones; of wider registers the lower bits."""
    ordering, scope, space, type_, count = _form(site, 0)
    site.count(2 + ("L2::cache_hint" in site.statement.opcode))
    base, offset = site.address(0)
    sources = site.elements(1)
    if len(sources) != count:
        raise site.error(f"with {len(sources)} registers for {count} elements")
    element = types.register(type_.bits)
    shape = (count,) if count > 1 else ()

    def execute(fiber: Fiber, op: Instruction, address: Value, *numbers: Value) -> None:
        address = addresses.at(address, offset)
        columns = [types.stored(number, type_.bits) for number in numbers]
        if shape:
            if any(isinstance(column, np.ndarray) for column in columns):
                columns = [values.lanes(np.asarray(column, element.dtype), fiber.count) for column in columns]
            value: Value = np.stack([np.asarray(column, element.dtype) for column in columns], axis=-1)
        else:
            value = np.asarray(columns[0], element.dtype)
        _write(fiber, op, space, address, type_, value, shape, is_strong=ordering != "weak")
        if ordering == "weak":
            return
        for lane in fiber.lanes:
            place = addresses.of_lane(address, lane)
            memory_space = "shared" if "shared" in space or addresses.is_shared_address(place) else "global"
            order.release(
                fiber, int(lane), memory_space, place, scope, is_relaxed=ordering not in order.RELEASES, replaces=True
            )

    reads = [site.read(source, PtxType(f"b{type_.bits}", type_.kind, type_.bits), wider=True) for source in sources]
    site.emit(execute, [base, *reads], ())


def _write(
    fiber: Fiber,
    op: Instruction,
    space: str,
    address: Value,
    type_: PtxType,
    value: np.ndarray,
    shape: tuple[int, ...],
    *,
    is_strong: bool,
) -> None:
    element = types.register(type_.bits)
    for part, allocation, start, remote in addresses.parts(fiber, op, space, address, element.bytes, shape):
        access = addresses.access(part, op, allocation, start, element, shape, of_any_block=remote, verb="writes")
        own = value
        if value.ndim > len(shape):
            own = value[part.lanes]
            if not access.per_lane:  # every thread writes its own value to one address
                access = memory.with_lanes(access, len(part.lanes))
        own = values.broadcast(own, access.positions.shape)
        if not is_strong:
            memory.put(part, op, access, own)
            continue
        part.group.sanitizer.update(part, op, access, reads=False)
        if part.group.counters is not None:
            part.group.counters.access(part, op, access, "store")
        memory.scatter(access, own)


def write(fiber: Fiber, op: Instruction, space: str, address: Value, type_: PtxType, number: Value) -> None:
    """Writes an element to memory, by a weak write.

    Args:
        fiber: the threads.
        op: that writes it.
        space: the state space.
        address: uniform or (T,).
        type_: of the element.
        number: its bits, uniform or (T,).
    """
    value = np.asarray(number, types.register(type_.bits).dtype)
    _write(fiber, op, space, address, type_, value, (), is_strong=False)


@instruction("prefetch", "prefetchu", "discard", "applypriority", is_pure=True)
def nothing(site: Site) -> None:
    """Nothing: there are no caches."""
    site.rest.clear()
