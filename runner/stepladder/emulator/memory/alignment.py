"""Alignment: assertions of ops about their addresses, and requirements of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import MemRef, Value
    from stepladder.emulator.memory.memory import Access


def check_access(fiber: Fiber, op: Instruction, access: Access, alignment: int) -> None:
    """Reports lanes whose adjacent elements do not begin at a multiple of `alignment` bytes.

    Args:
        fiber: the threads of the access.
        op: the instruction, for findings.
        access: its first element of each lane is checked.
        alignment: bytes.
    """
    positions, memory = access.positions, access.memory
    count = len(positions) if access.per_lane else 1
    first = positions.reshape(count, -1)[:, 0] * access.element.bytes
    if access.per_lane and memory.copies > 1:
        item = access.element.bytes
        first = first - fiber.group.copy_of_lane(memory)[fiber.lanes] * (memory.size // item * item)
    wrong = (memory.address + first) % alignment != 0
    if access.valid is not None:
        wrong &= access.valid.reshape(count, -1)[:, 0]
    if wrong.any():
        fiber.group.sanitizer.misaligned(fiber, op, memory.address + int(first[wrong.argmax()]), alignment)


def check_element(fiber: Fiber, op: Instruction, view: MemRef, starts: Sequence[Value], alignment: int) -> None:
    """Reports an element of a view whose address is not a multiple of `alignment` bytes.

    Args:
        fiber: the threads that access it.
        op: the instruction, for findings.
        view: of memory.
        starts: the coordinates of the element, each uniform or (T,).
        alignment: bytes; 0 or 1 allows any address.
    """
    if alignment <= 1:
        return
    place = view.offset
    for start, stride in zip(starts, view.strides):
        place = place + start * stride
    address = view.memory.address + view.start + place * view.element.bytes
    own = address[fiber.lanes] if isinstance(address, np.ndarray) and address.ndim else np.array([address])
    wrong = own[own % alignment != 0]
    if wrong.size:
        fiber.group.sanitizer.misaligned(fiber, op, int(wrong[0]), alignment)
