"""Shadow memory: for each granule, which threads wrote and read it, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepladder.emulator.memory.memory import Allocation


SEVERAL = -1  # lanes, or one that does what others would do as well


class SharedShadow:
    """What is known of each granule of shared memory: who wrote and read it and when, and what is under way."""

    def __init__(self, allocation: Allocation, granule: int, actors: int) -> None:
        count = -(-len(allocation.data) // granule)
        self.initialized = np.zeros(count, bool)
        self.writer = np.full(count, -1, np.int32)
        self.written_at = np.zeros(count, np.int32)
        self.written_by = np.full(count, -1, np.int32)  # instruction
        self.asynchronously = np.zeros(count, bool)
        # The lane that wrote it, and the one that read it: `SEVERAL` where not one thread alone did.
        self.writing_lane = np.full(count, SEVERAL, np.int32)
        self.reading_lane = np.full(count, SEVERAL, np.int32)
        self.atomically = np.zeros(count, bool)
        self.read_at = np.zeros((actors, count), np.int32)
        self.read_by = np.full(count, -1, np.int32)
        # Of what runs on its own: which instruction writes, how many read, and which instruction reads.
        self.busy_writing = np.full(count, -1, np.int32)
        # Where it is an mbarrier, `busy_writing` is what initialized that.
        self.is_mbarrier = np.zeros(count, bool)
        self.readers = np.zeros(count, np.int16)
        self.busy_reading = np.full(count, -1, np.int32)

    @property
    def written(self) -> np.ndarray:
        """Whether each granule has been written."""
        return self.initialized

    def room_for(self, actors: int) -> None:
        """Makes room for more actors."""
        more = actors - len(self.read_at)
        self.read_at = np.concatenate([self.read_at, np.zeros((more, self.read_at.shape[1]), np.int32)])


class GlobalShadow:
    """What is known of each granule of global memory: the last write and the last read, by which block and actor."""

    def __init__(self, allocation: Allocation, granule: int) -> None:
        count = -(-len(allocation.data) // granule)

        def last() -> dict[str, np.ndarray]:
            return {
                "group": np.full(count, -1, np.int32),
                "actor": np.zeros(count, np.int32),
                "at": np.zeros(count, np.int32),
                "by": np.full(count, -1, np.int32),
            }

        self.write = last()
        self.read = last()
        self.atomically = np.zeros(count, bool)

    @property
    def written(self) -> np.ndarray:
        """Whether each granule has been written."""
        return self.write["group"] >= 0


@dataclass
class Touch:
    """What an access touches: pairs of an actor and a granule.

    Attributes:
        memory: the allocation.
        actors: int array (pairs,), or the one actor of all pairs.
        places: int array (pairs,), the granules.
        index: the granules as an index of the shadow's arrays: a slice where they are neighbours, which makes a view
            of what would be a copy.
        lanes: int array (pairs,), the lane of each pair or `SEVERAL`; None where that is not known.
    """

    memory: Allocation
    actors: np.ndarray | int
    places: np.ndarray
    index: np.ndarray | slice
    lanes: np.ndarray | None = None

    @classmethod
    def by(
        cls, memory: Allocation, actors: np.ndarray | int, places: np.ndarray, lanes: np.ndarray | None = None
    ) -> Touch:
        """Returns a touch of granules in any order; a granule may stand there more than once."""
        return cls(memory, actors, places, places, lanes)

    @classmethod
    def once(cls, memory: Allocation, actor: int, places: np.ndarray) -> Touch:
        """Returns one actor's touch of granules of which each stands there once, in any order."""
        first, last = int(places.min()), int(places.max())
        if last - first + 1 != places.size:
            return cls(memory, actor, places, places)
        return cls(memory, actor, np.arange(first, last + 1), slice(first, last + 1))

    def where(self, mask: np.ndarray) -> Touch:
        """Returns the pairs of a bool array (pairs,)."""
        actors = self.actors if isinstance(self.actors, int) else self.actors[mask]
        return Touch.by(self.memory, actors, self.places[mask], None if self.lanes is None else self.lanes[mask])

    def actor(self, pair: int) -> int:
        """Returns the actor of a pair."""
        return self.actors if isinstance(self.actors, int) else int(self.actors[pair])


def together(left: np.ndarray | None, right: np.ndarray | None) -> np.ndarray | None:
    """Returns what those with the one and those with the other past know together."""
    if left is None or right is None:
        return right if left is None else left
    return joined(left, right)


def joined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns what those with two pasts know together."""
    if len(left) != len(right):
        size = max(len(left), len(right))
        left, right = (np.pad(known, (0, size - len(known))) for known in (left, right))
    return np.maximum(left, right)
