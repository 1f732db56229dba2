"""Touches: which granules of memory an access is of, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepladder.emulator.memory.memory import Allocation

SEVERAL = -1  # lanes, or one that does what others would do as well
TOGETHER = -2  # all lanes of a warp: each has a part of a matrix, and an element is of any of them
PAGE_BYTES = 1024  # of shared memory (`pages`)


class PagesTouched:
    """The pages that a touch is of, each once, and whether it is of all of their granules."""

    __slots__ = ("numbers", "whole")

    def __init__(self, places: np.ndarray, per: int) -> None:
        numbers, counts = np.unique(places // per, return_counts=True)
        self.whole = bool((counts == per).all())
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        self.numbers: np.ndarray | slice = slice(first, last) if last - first == len(numbers) else numbers


@dataclass(frozen=True)
class Rows:
    """Granules, or elements, of a row-major matrix: `count` rows of `width`, each `pitch` after the one before it."""

    first: int
    pitch: int
    count: int
    width: int

    def of(self, array: np.ndarray) -> np.ndarray:
        """Returns a view (count, width) of an array of the shadow.

        Args:
            array: with one element for each granule.
        """
        skipped_rows, begin = divmod(self.first, self.pitch)
        if begin + self.width <= self.pitch:
            # All rows of the matrix but what its last one lacks: such a view takes less than one with strides.
            rows = array[: len(array) // self.pitch * self.pitch].reshape(-1, self.pitch)
            if skipped_rows + self.count <= len(rows):
                return rows[skipped_rows : skipped_rows + self.count, begin : begin + self.width]
        return np.lib.stride_tricks.as_strided(
            array[self.first :],
            (self.count, self.width),
            (self.pitch * array.itemsize, array.itemsize),
        )

    def is_within(self, size: int) -> bool:
        """Whether all rows are within an array, and none overlaps another.

        Args:
            size: elements of the array.
        """
        end = self.first + (self.count - 1) * self.pitch + self.width
        return self.first >= 0 and self.pitch >= self.width and end <= size

    def in_granules(self, item: int, granule: int) -> Rows | None:
        """Returns rows of elements as rows of granules; None where the rows are not whole granules.

        Args:
            item: bytes of an element.
            granule: bytes of a granule.
        """
        sizes = self.first * item, self.pitch * item, self.width * item
        if any(size % granule for size in sizes):
            return None
        return Rows(sizes[0] // granule, sizes[1] // granule, self.count, sizes[2] // granule)

    def places(self) -> np.ndarray:
        """Returns the granules."""
        rows = self.first + self.pitch * np.arange(self.count)
        return (rows[:, None] + np.arange(self.width)).reshape(-1)


class Granules:
    """Granules of which each is there once.

    Attributes:
        places: int array (granules,), in any order.
        index: the same as an index of the shadow's arrays: a slice where they are neighbours, which makes a view of
            what would be a copy.
    """

    __slots__ = ("_pages", "index", "places")

    def __init__(self, places: np.ndarray) -> None:
        self.places = places
        self.index: np.ndarray | slice = places
        first, last = int(places.min()), int(places.max())
        if last - first + 1 == places.size:
            self.places = np.arange(first, last + 1)
            self.index = slice(first, last + 1)
        self._pages: PagesTouched | None = None

    def pages(self, per: int) -> PagesTouched:
        """Returns the pages of the granules.

        Args:
            per: granules of a page; the same in all calls.
        """
        if self._pages is None:
            self._pages = PagesTouched(self.places, per)
        return self._pages


class Touch:
    """The granules that an access touches: pairs of an actor and a granule.

    Attributes:
        memory: the allocation.
        actors: int array (pairs,), or the one actor of all pairs.
        index: the granules as an index of the shadow's arrays: an int array (pairs,), or a slice or rows, which make
            a view of what would be a copy.
        lanes: int array (pairs,), the lane of each pair or `SEVERAL`; None where that is not known.
        pages: of shared memory, where one actor touches each granule once; else None.
        page_of_pair: int array (pairs,); None until `Pages` first looks at each pair.
    """

    __slots__ = ("_places", "actors", "index", "lanes", "memory", "page_of_pair", "pages")

    def __init__(
        self,
        memory: Allocation,
        actors: np.ndarray | int,
        index: np.ndarray | slice | Rows,
        *,
        places: np.ndarray | None = None,
        lanes: np.ndarray | None = None,
        pages: PagesTouched | None = None,
    ) -> None:
        self.memory = memory
        self.actors = actors
        self.index = index
        self.lanes = lanes
        self.pages = pages
        self.page_of_pair: np.ndarray | None = None
        self._places = index if isinstance(index, np.ndarray) else places

    @property
    def places(self) -> np.ndarray:
        """The granules, an int array (pairs,)."""
        if self._places is None:
            assert isinstance(self.index, Rows)
            self._places = self.index.places()
        return self._places

    @property
    def shared_index(self) -> np.ndarray | slice:
        """The index of a touch of shared memory."""
        assert not isinstance(self.index, Rows), "rows are of global memory"
        return self.index

    @classmethod
    def by(
        cls, memory: Allocation, actors: np.ndarray | int, places: np.ndarray, lanes: np.ndarray | None = None
    ) -> Touch:
        """Returns a touch of granules in any order, repeated or not.

        Args:
            memory: the allocation.
            actors: int array (pairs,), or the one actor of all pairs.
            places: the granule of each pair, int array (pairs,).
            lanes: the lane of each pair, int array (pairs,); None where it is not known.
        """
        return cls(memory, actors, places, lanes=lanes)

    @classmethod
    def once(cls, memory: Allocation, actor: int, granules: Granules, granule: int) -> Touch:
        """Returns a touch of granules by one actor.

        Args:
            memory: the allocation.
            actor: of all pairs.
            granules: each once.
            granule: bytes of one.
        """
        pages = granules.pages(PAGE_BYTES // granule) if memory.space == "shared" else None
        return cls(memory, actor, granules.index, places=granules.places, pages=pages)

    def of(self, array: np.ndarray) -> np.ndarray:
        """Returns the elements of an array of the shadow, one for each pair.

        Args:
            array: with one element for each granule.
        """
        return self.index.of(array).reshape(-1) if isinstance(self.index, Rows) else array[self.index]

    def put(self, array: np.ndarray, value: np.ndarray | int) -> None:
        """Sets the elements of an array of the shadow.

        Args:
            array: with one element for each granule; it is modified.
            value: one for all pairs, or an array (pairs,).
        """
        if isinstance(self.index, Rows):
            self.index.of(array)[...] = value
        else:
            array[self.index] = value

    def where(self, mask: np.ndarray) -> Touch:
        """Returns the touch of some of the pairs.

        Args:
            mask: bool array (pairs,).
        """
        actors = self.actors if isinstance(self.actors, int) else self.actors[mask]
        return Touch.by(self.memory, actors, self.places[mask], None if self.lanes is None else self.lanes[mask])

    def actor(self, pair: int) -> int:
        """Returns the actor of a pair.

        Args:
            pair: its index.
        """
        return self.actors if isinstance(self.actors, int) else int(self.actors[pair])


def first_in_granules(positions: np.ndarray, per: int, *, per_lane: bool) -> np.ndarray:
    """Returns the first element of each granule, where elements are neighbours in whole granules; else all of them.

    Args:
        positions: of the elements of an access.
        per: elements of a granule.
        per_lane: whether the first dimension is that of lanes.
    """
    size = positions.shape[-1] if positions.ndim > per_lane else 1
    if size % per:
        return positions
    rows = positions.reshape(-1, size)
    firsts = rows[:, ::per]
    if np.count_nonzero(firsts % per) or np.count_nonzero(rows[:, 1:] - rows[:, :-1] != 1):
        return positions
    return firsts
