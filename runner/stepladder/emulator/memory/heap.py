"""Allocations in global memory."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.memory.memory import Allocation

# First address of allocations in global memory; far from those of shared memory, which begin at 0.
_GLOBAL_BASE = 0x7F00_0000_0000
_ALIGNMENT = 1024
# Addresses between two allocations: an access beyond one of them does not reach the other.
_GAP = 1 << 30


class Heap:
    """Allocations in global memory, with the addresses they have."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self._next = _GLOBAL_BASE

    def allocate(self, size: int, name: str = "") -> Allocation:
        """Returns a new allocation.

        Args:
            size: in bytes.
            name: for messages.
        """
        allocation = Allocation(size, address=self._next, name=name)
        self._next += -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT + _GAP
        self.allocations.append(allocation)
        return allocation

    def find(self, address: int) -> Allocation | None:
        """Returns the allocation that holds an address, or None.

        Args:
            address: of a byte.
        """
        return next(
            (
                allocation
                for allocation in self.allocations
                if allocation.address <= address < allocation.address + max(allocation.size, 1)
            ),
            None,
        )

    def forget(self, *, dependent: bool = False) -> None:
        """Drops the records of accesses, but not whether anything has been written.

        Args:
            dependent: whether the launch that made them began before the one before had ended: that one may not have
                ended when the next one begins.
        """
        for allocation in self.allocations:
            allocation.recently_written &= dependent
            if allocation.shadow is not None:
                is_written = allocation.shadow.written
                allocation.recently_written |= bool(is_written.any())
                before = allocation.ever_written
                allocation.ever_written = is_written if before is None else before | is_written
            allocation.shadow = None

    def array(self, array: np.ndarray, name: str = "") -> Allocation:
        """Returns a new allocation with the content of an array.

        Args:
            array: of any shape and type.
            name: for messages.
        """
        allocation = self.allocate(array.nbytes, name)
        allocation.data[: array.nbytes] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        return allocation
