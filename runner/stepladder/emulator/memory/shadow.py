"""Shadow memory: for each granule, which threads wrote and read it, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory.pages import Pages
from stepladder.emulator.memory.touches import PAGE_BYTES, SEVERAL, Touch

if TYPE_CHECKING:
    from stepladder.emulator.memory.memory import Allocation


class _Shadow:
    """What the shadows of all memory have.

    Attributes:
        atomically: whether the last write of each granule is an update.
        has_updates: whether any may be: most memory has none.
    """

    def __init__(self, count: int) -> None:
        self.atomically = np.zeros(count, bool)
        self.has_updates = False

    def note_kind(self, touch: Touch, *, updates: bool) -> None:
        """Notes whether a write is an update.

        Args:
            touch: what is written.
            updates: whether it is.
        """
        if updates or self.has_updates:
            touch.put(self.atomically, updates)
            self.has_updates = True


class SharedShadow(_Shadow):
    """The state of each granule of shared memory: its last writer and readers, their times, and what is in flight."""

    def __init__(self, allocation: Allocation, granule: int, actors: int) -> None:
        count = -(-len(allocation.data) // granule)
        super().__init__(count)
        self.pages = Pages(count, PAGE_BYTES // granule, actors)
        self.initialized = np.zeros(count, bool)
        self.writer = np.full(count, -1, np.int32)
        self.written_at = np.zeros(count, np.int32)
        self.written_by = np.full(count, -1, np.int32)  # instruction
        self.asynchronously = np.zeros(count, bool)
        # The lane that wrote it, and the one that read it: `SEVERAL` where not one thread alone did.
        self.writing_lane = np.full(count, SEVERAL, np.int32)
        self.reading_lane = np.full(count, SEVERAL, np.int32)
        self.read_at = np.zeros((actors, count), np.int32)
        self.read_by = np.full(count, -1, np.int32)
        # Of what runs on its own: which instruction writes, and, of those that read, what and which instruction.
        self.busy_writing = np.full(count, -1, np.int32)
        self.updating = np.zeros(count, np.int16)  # operations in flight that update it (`updates`)
        # Where it is an mbarrier, `busy_writing` is what initialized that.
        self.is_mbarrier = np.zeros(count, bool)
        self.under_way: list[tuple[Touch, int]] = []

    @property
    def written(self) -> np.ndarray:
        """Whether each granule has been written."""
        return self.initialized

    def busy_reading(self, touch: Touch) -> np.ndarray:
        """Returns the instruction in flight that reads what a touch covers.

        Args:
            touch: the access.

        Returns:
            For each pair of the touch the number of the instruction, -1 for none; (1,) of -1 where no page is read.
        """
        if not np.count_nonzero(self.pages.readers[self.pages.of(touch)]):
            return np.full(1, -1)
        reads = np.full(len(self.writer), -1, np.int32)
        for other, op in self.under_way:
            other.put(reads, op)
        return touch.of(reads)

    def end_reading(self, touch: Touch) -> None:
        """Notes that an operation in flight has read.

        Args:
            touch: the object that was given at its begin.
        """
        self.under_way = [pair for pair in self.under_way if pair[0] is not touch]
        self.pages.end_read(touch)

    def room_for(self, actors: int) -> None:
        """Extends the arrays for more actors.

        Args:
            actors: how many there are in all.
        """
        # Pages of zeros are not resident: only the rows of actors that have read anything are copied.
        readers = np.flatnonzero(self.pages.read_at.any(axis=1))
        for of in (self, self.pages):
            read_at = np.zeros((actors, of.read_at.shape[1]), np.int32)
            read_at[readers] = of.read_at[readers]
            of.read_at = read_at


class Last:
    """The last write, or the last read, of each granule of global memory.

    Attributes:
        owner: the number of the group of blocks plus one, 0 where there is none; pages of zeros are not resident.
        actor, at, by: which actor of that, when, and by which instruction.
        any: whether there is any.
    """

    def __init__(self, count: int) -> None:
        self.owner = np.zeros(count, np.int32)
        self.actor = np.zeros(count, np.int32)
        self.at = np.zeros(count, np.int32)
        self.by = np.zeros(count, np.int32)
        self.any = False


class GlobalShadow(_Shadow):
    """Shadow of global memory: for each granule, the last write and the last read, by which block and actor."""

    def __init__(self, allocation: Allocation, granule: int) -> None:
        count = -(-len(allocation.data) // granule)
        super().__init__(count)
        self.write = Last(count)
        self.read = Last(count)

    @property
    def written(self) -> np.ndarray:
        """Whether each granule has been written."""
        return self.write.owner > 0


def together(left: np.ndarray | None, right: np.ndarray | None) -> np.ndarray | None:
    """Returns the joined knowledge of two clocks.

    Args:
        left, right: int arrays (actors,), or None for a clock that knows nothing.
    """
    if left is None or right is None:
        return right if left is None else left
    return joined(left, right)


def joined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns the element-wise maximum of two clocks.

    Args:
        left, right: int arrays (actors,); the shorter one is extended by zeros.
    """
    if len(left) != len(right):
        size = max(len(left), len(right))
        left, right = (np.pad(clock, (0, size - len(clock))) for clock in (left, right))
    return np.maximum(left, right)
