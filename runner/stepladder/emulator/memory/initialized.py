"""Global memory that a program allocates: which of its bytes anything has written, for kernels that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.memory import Access, Allocation
    from stepladder.emulator.memory.reports import Reports
    from stepladder.emulator.memory.touches import Touch


def begin(allocation: Allocation) -> None:
    """Starts to record which bytes of an allocation are written; none is at first.

    Args:
        allocation: with undefined content.
    """
    allocation.written = np.zeros(len(allocation.data), bool)


def note(allocation: Allocation, item: int, positions: np.ndarray | int) -> None:
    """Notes that elements are written.

    Args:
        allocation: the memory.
        item: bytes of an element.
        positions: of the elements, from the allocation's first.
    """
    if allocation.written is not None:
        _by_element(allocation.written, item)[positions] = True


def _by_element(is_written: np.ndarray, item: int) -> np.ndarray:
    return is_written[: len(is_written) // item * item].reshape(-1, item)


def check_access(sanitizer: Reports, op: Instruction, access: Access) -> None:
    """Reports elements that threads read before anything has written them.

    Args:
        sanitizer: of the group.
        op: the instruction.
        access: what it reads.
    """
    is_written = access.memory.written
    if is_written is None:
        return
    positions = access.positions if access.valid is None else access.positions[access.valid]
    item = access.element.bytes
    fresh = ~_by_element(is_written, item)[positions.reshape(-1)].all(axis=1)
    if fresh.any():
        _report(sanitizer, op, access.memory, int(positions.reshape(-1)[fresh.argmax()]) * item)


def check_touch(sanitizer: Reports, op: Instruction, touch: Touch) -> None:
    """Reports bytes that an asynchronous operation reads before anything has written them.

    Args:
        sanitizer: of the group.
        op: the instruction that began the operation.
        touch: what it reads.
    """
    is_written = touch.memory.written
    if is_written is None:
        return
    granule = sanitizer.granule_of(touch.memory)
    fresh = ~is_written[touch.places * granule]
    if fresh.any():
        _report(sanitizer, op, touch.memory, int(touch.places[fresh.argmax()]) * granule)


def _report(sanitizer: Reports, op: Instruction, memory: Allocation, byte: int) -> None:
    place = sanitizer.where(memory, byte // sanitizer.granule_of(memory))
    sanitizer.report("uninitialized", f"reads {place}, which nothing has written since it was allocated", op)
