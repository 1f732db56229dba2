"""The addresses of PTX instructions: the state space, the threads that give them, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.hardware import synchronization
from stepladder.emulator.memory import memory, pointers
from stepladder.emulator.memory.memory import RANK_SHIFT, Access, Allocation, contiguous
from stepladder.emulator.ptx import syntax, types

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.types import Scalar
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "const",
    "param",
    "param::entry",
    "param::func",
)
_GENERIC = ("global", "shared", "local")
_OWN_BLOCK = ("shared", "shared::cta")
_SHARED_END = 17 << RANK_SHIFT


def space_of(site: Site, operand: int) -> str:
    """Consumes the modifier that states the state space; returns "generic" where there is none.

    Args:
        site: the instruction.
        operand: the index of its address.

    Raises:
        StepladderError: a variable of another space.
    """
    space = site.choice(SPACES, "generic")
    for name in syntax.names_in(site.operands[operand]):
        declared_space = site.scope.space(name)
        accepted_spaces = _GENERIC if space == "generic" else (space.split("::")[0],)
        if declared_space == "param::entry" and site.family == "st":
            raise site.error(f"of {name}, a parameter of the kernel: expected memory that is written")
        if declared_space is not None and declared_space.split("::")[0] not in accepted_spaces:
            raise site.error(
                f"of {name}, which is in .{declared_space}: expected a variable in .{', .'.join(accepted_spaces)}"
            )
    return space


def at(address: Value, offset: int) -> Value:
    """Returns an address plus an offset, in 64 bits.

    Args:
        address: uniform or (T,).
        offset: bytes.
    """
    if isinstance(address, np.ndarray):
        address = address.astype(np.int64, copy=False)
        return address + types.wrap(offset, 64) if offset else address
    return types.wrap(address + offset, 64)


def of_lane(value: Value, lane: int | np.integer) -> int:
    """Returns one lane's value.

    Args:
        value: uniform or (T,).
        lane: its index.
    """
    return int(value[lane]) if isinstance(value, np.ndarray) else int(value)


def parts(
    fiber: Fiber, op: Instruction, space: str, address: Value, item: int, shape: tuple[int, ...]
) -> Iterator[tuple[Fiber, Allocation, Value, bool]]:
    """Yields the threads, grouped by the allocation that they access.

    Misaligned addresses, and addresses of another state space, are findings; the latter are left out.

    Args:
        fiber: the threads.
        op: the instruction.
        space: the state space that the instruction states.
        address: uniform or (T,).
        item: bytes of an element.
        shape: elements that one thread accesses.

    Returns:
        (fiber, allocation, byte in the allocation, whether the address names a block of the cluster).
    """
    pointers.check_alignment(fiber, op, address, item * math.prod(shape))
    if space in _OWN_BLOCK:
        yield fiber, fiber.group.shared, address, False
        return
    for part, allocation, start in pointers.parts(fiber, op, address):
        is_shared = allocation is part.group.window
        if is_shared and space in ("global", "local", "const", "param"):
            part.group.sanitizer.report(
                "out-of-bounds",
                f"{part.group.thread_name(int(part.lanes[0]))}: {int(part.first(start)):#x} is an address of shared "
                f"memory, and the access is to .{space}",
                op,
            )
            continue
        if space == "shared::cluster" and not is_shared:
            part.group.sanitizer.report(
                "out-of-bounds",
                f"{part.group.thread_name(int(part.lanes[0]))}: {int(part.first(address)):#x} is not an address of "
                "shared memory",
                op,
            )
            continue
        own = start if values.is_uniform(start) else start[part.lanes]
        yield part, allocation, start, bool(is_shared and np.any(np.asarray(own) >= 1 << RANK_SHIFT))


def access(
    fiber: Fiber,
    op: Instruction,
    allocation: Allocation,
    start: Value,
    element: Scalar,
    shape: tuple[int, ...],
    *,
    of_any_block: bool,
    verb: str,
) -> Access:
    """Returns the access of adjacent elements, from a byte of an allocation on.

    Args:
        fiber: the threads.
        op: the instruction, for findings.
        allocation: that they access.
        start: the byte of the first element, uniform or (T,).
        element: the type.
        shape: elements that one thread accesses.
        of_any_block: whether `start` names a block of the cluster.
        verb: what the instruction does, for findings.
    """
    offsets = pointers.offsets_in(shape)
    if not of_any_block:
        view, places = pointers.elements(allocation, start, element, offsets, len(shape))
        return memory.locate(fiber, op, view, [places], shape)
    group = fiber.group
    address = values.lanes(np.asarray(start), fiber.count)
    block = block_of(fiber, address)
    if group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, f"{verb} shared memory")
    size = allocation.size // element.bytes
    first = (address % (1 << RANK_SHIFT))[fiber.lanes] // element.bytes
    places = first.reshape(-1, *(1,) * len(shape)) + offsets
    own = block[fiber.lanes].reshape(-1, *(1,) * len(shape))
    inside = (places < size) & (own < group.blocks)
    if not inside.all():
        view = contiguous(allocation, element, (size,))
        group.sanitizer.out_of_bounds(fiber, op, view, [memory.spread(fiber, places)], ~inside, len(shape))
    return Access(allocation, element, own * size + places, None if inside.all() else inside, True)


def block_of(fiber: Fiber, address: Value) -> np.ndarray:
    """Returns, for each lane, the block whose shared memory an address is in.

    Args:
        fiber: the threads.
        address: uniform or (T,).

    Returns:
        int array (T,).
    """
    rank = (values.lanes(np.asarray(address), fiber.count) >> RANK_SHIFT) - 1
    return np.where(rank < 0, fiber.group.block_of_lane, rank)


def inside_block(address: Value) -> Value:
    """Returns an address in shared memory without the block that it names.

    Args:
        address: uniform or (T,).
    """
    return address % (1 << RANK_SHIFT)


def is_own(address: Value) -> bool:
    """Whether addresses name no block of the cluster, so that they are of each thread's own block.

    Args:
        address: uniform or (T,).
    """
    return bool(np.all(np.asarray(address) < 1 << RANK_SHIFT))


def is_shared_address(address: Value) -> bool:
    """Whether integers are addresses of shared memory.

    Args:
        address: uniform or (T,).
    """
    return int(np.max(np.asarray(address))) < _SHARED_END
