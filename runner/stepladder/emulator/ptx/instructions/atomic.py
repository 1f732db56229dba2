"""Atomic updates, and fences.

Source: PTX ISA, "atom", "red", "membar/fence".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.dialects import nvvm
from stepladder.emulator.hardware import mbarriers
from stepladder.emulator.memory import atomics, pointers
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import addresses, order, tensor_maps
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_OPERATIONS = ("exch", "cas", "add", "inc", "dec", "min", "max", "and", "or", "xor")
_WIDE = Scalar("i128", np.dtype([("lower", np.int64), ("upper", np.int64)]), 128)
_BITS: dict[str, Callable] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_OF_FLOATS: dict[str, Callable] = {"add": np.add, "min": np.fmin, "max": np.fmax}
_OF_INTEGERS: dict[str, Callable] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": lambda old, own: np.where(old >= own, 0, old + 1),
    "dec": lambda old, own: np.where((old == 0) | (old > own), own, old - 1),
}


def combination(operation: str, type_: PtxType) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns the function that an atomic instruction applies to the bits in memory and those of its operand.

    Args:
        operation: its name, such as "add".
        type_: of the operands.

    Returns:
        A function of two arrays of bits, which returns an array.
    """
    if operation == "exch":
        return lambda old, own: own
    if operation in _BITS:
        return _BITS[operation]
    if type_.kind == "f":
        of_floats = _OF_FLOATS[operation]
        return lambda old, own: types.from_floats(
            of_floats(types.floats(old, type_), types.floats(own, type_)).astype(type_.dtype), type_
        )
    of_integers = _OF_INTEGERS[operation]
    return lambda old, own: types.stored(of_integers(types.number(old, type_), types.number(own, type_)), type_.width)


@instruction("atom", "red")
def atom(site: Site) -> None:
    """An atomic update of a value in memory, or of each of several adjacent ones; `atom` returns the previous value."""
    ordering = site.choice(("relaxed", "acquire", "release", "acq_rel"), "relaxed")
    scope = order.scope_of(site, "gpu")
    space = addresses.space_of(site, 1 if site.family == "atom" else 0)
    operation = site.choice(_OPERATIONS)
    site.flag("noftz")
    site.hints()
    vector = site.match("v[248]")
    count = int(vector[0][1:]) if vector else 1
    is_wide = site.flag("b128")
    type_ = PtxType("b64", "b", 64) if is_wide else site.types(1)[0]
    gives = site.family == "atom"
    operand_count = 1 + gives + (2 if operation == "cas" else 1)
    site.count(operand_count, operand_count + 1)
    base, offset = site.address(1 if gives else 0)
    places = range(1 + gives, operand_count)
    element = _WIDE if is_wide else types.register(type_.width)
    combine = combination(operation, type_) if operation != "cas" else None

    def execute(fiber: Fiber, op: Instruction, address: Value, *numbers: Value) -> Value:
        address = addresses.at(address, offset)
        if is_wide:
            before = update(
                fiber, op, address, *(_paired(fiber, *halves) for halves in zip(numbers[::2], numbers[1::2]))
            )
            return before["lower"], before["upper"]
        if count == 1:
            return update(fiber, op, address, *numbers)
        pointers.check_alignment(fiber, op, address, count * element.bytes)
        return [update(fiber, op, address + place * element.bytes, number) for place, number in enumerate(numbers)]

    def update(fiber: Fiber, op: Instruction, address: Value, *numbers: Value) -> Value:
        own = [values.lanes(np.asarray(number, element.dtype), fiber.count) for number in numbers]
        before = np.zeros(fiber.count, element.dtype)
        for part, allocation, start, remote in addresses.parts(fiber, op, space, address, element.bytes, ()):
            access = addresses.access(part, op, allocation, start, element, (), of_any_block=remote, verb="updates")

            def after(numbers: np.ndarray, old: np.ndarray, part: Fiber = part) -> np.ndarray:
                lanes = part.lanes[numbers]
                if combine is None:
                    return np.where(old == own[0][lanes], own[1][lanes], old)
                return combine(old, own[0][lanes])

            before[part.lanes] = atomics.update(part, op, access, after, None, of_arrays=True)
        _synchronize(fiber, space, address, scope, ordering)
        return before

    parts = [part for number in places for part in site.elements(number)]
    targets = site.elements(0) if gives else ()
    registers = 2 if is_wide else count
    if len(parts) != len(places) * registers or (gives and len(targets) != registers):
        raise site.error(f"with other registers than for {count} elements")
    operands = [base, *(site.read(part, type_) for part in parts)]
    if gives:
        site.emit(execute, operands, [site.write(target, type_.width) for target in targets])
    else:
        site.emit(lambda fiber, op, *parts: _without_result(execute, fiber, op, *parts), operands, ())


def _synchronize(fiber: Fiber, space: str, address: Value, scope: str, ordering: str) -> None:
    """Acquires and releases at the address of each thread, after an update."""
    if ordering == "relaxed" and order.is_idle(fiber):
        return
    for lane in fiber.lanes:
        place = addresses.of_lane(address, lane)
        memory_space = "shared" if "shared" in space or addresses.is_shared_address(place) else "global"
        order.acquire(fiber, int(lane), memory_space, place, scope, is_relaxed=ordering not in order.ACQUIRES)
        order.release(
            fiber, int(lane), memory_space, place, scope, is_relaxed=ordering not in order.RELEASES, replaces=False
        )


def _paired(fiber: Fiber, lower: Value, upper: Value) -> np.ndarray:
    """Returns two halves as one number of each thread."""
    pairs = np.zeros(fiber.count, _WIDE.dtype)
    pairs["lower"], pairs["upper"] = lower, upper
    return pairs


def _without_result(execute: Callable, fiber: Fiber, op: Instruction, *operands: Value) -> None:
    execute(fiber, op, *operands)


# Fences.


@instruction("membar", is_pure=True)
def membar(site: Site) -> None:
    """Orders the accesses of a thread before the fence and after it."""
    scope = {"cta": "cta", "gl": "gpu", "sys": "sys"}[site.choice(("cta", "gl", "sys"))]
    site.count(0)
    site.emit(lambda fiber, op: order.fence(fiber, scope), (), ())


@instruction("fence", is_pure=True)
def fence(site: Site) -> None:
    """Orders the accesses of a thread before the fence and after it, with acquire or release semantics or both."""
    kind = site.choice(("sc", "acq_rel", "acquire", "release"), "acq_rel")
    if site.flag("sync_restrict::shared::cta", "sync_restrict::shared::cluster"):
        site.choice(order.SCOPES)
        return
    scope = order.scope_of(site)
    site.count(0)
    site.emit(
        lambda fiber, op: order.fence(fiber, scope, acquires=kind != "release", releases=kind != "acquire"), (), ()
    )


@instruction("fence.mbarrier_init")
def fence_mbarrier_init(site: Site) -> None:
    """Makes initialized mbarriers visible to TMA and to the cluster."""
    site.choice(("release",))
    site.choice(("cluster",))
    site.count(0)
    site.emit(lambda fiber, op: mbarriers.fence_initialization(fiber), (), ())


@instruction("fence.proxy")
def fence_proxy(site: Site) -> None:
    """Orders what a thread did through the generic proxy and another one, in one memory or in all."""
    kind = site.choice(("async", "alias", "tensormap::generic", "async::generic"))
    if kind == "tensormap::generic" and site.choice(("acquire", "release")) == "acquire":
        tensor_maps.acquire(site)
        return
    if kind != "async":
        site.count(0)
        # There is one address for each element.
        site.rest.clear()
        return
    space = site.choice(("global", "shared::cta", "shared::cluster"), "")
    site.count(0)

    def execute(fiber: Fiber, op: Instruction) -> None:
        nvvm.fence_async(fiber, op, space.split("::")[0])

    site.emit(execute, (), ())
