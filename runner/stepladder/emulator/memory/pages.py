"""Pages of shared memory: a summary of their granules that rules findings out for most accesses of whole tiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepladder.emulator.memory.touches import Touch

_END = np.iinfo(np.int32).max  # of time
_NOBODY, _DIFFERENT = -1, -2  # in place of the actor that wrote a page


class Pages:
    """A summary of the granules of each page, by which most accesses are found to have no finding.

    The summary is conservative: where it does not rule a finding out, each granule is checked.

    Attributes:
        per: granules of a page.
        writer: the actor whose one write covers the whole page, at the time `at`; or none, or several actors.
        asynchronous: whether that was through the async proxy.
        busy: whether anything in a page may be what a copy writes, or an mbarrier.
        by_lanes: whether any granule of a page may have one lane that wrote or read it.
        readers: operations in flight that read any of a page.
        read_at: int array (actors, pages), when each actor read any of a page last.
    """

    def __init__(self, count: int, per: int, actors: int) -> None:
        size = -(-count // per)
        self.per = per
        self.writer = np.full(size, _NOBODY, np.int32)
        self.at = np.zeros(size, np.int32)
        self.asynchronous = np.zeros(size, bool)
        self.busy = np.zeros(size, bool)
        self.by_lanes = np.zeros(size, bool)
        self.readers = np.zeros(size, np.int32)
        self.read_at = np.zeros((actors, size), np.int32)

    def of(self, touch: Touch) -> np.ndarray | slice:
        """Returns the indices of the pages of a touch, in any order, each at least once.

        Args:
            touch: of the memory.
        """
        return self._of_pairs(touch) if touch.pages is None else touch.pages.numbers

    def _of_pairs(self, touch: Touch) -> np.ndarray:
        """Returns the page of each pair of a touch."""
        if touch.page_of_pair is None:
            touch.page_of_pair = touch.places // self.per
        return touch.page_of_pair

    def begin_write(self, touch: Touch) -> None:
        """Notes that an operation in flight begins to write, or that bytes become an mbarrier.

        Args:
            touch: what is written.
        """
        self.busy[self.of(touch)] = True

    def end_write(self, touch: Touch) -> None:
        """Notes that an operation in flight has written; pages of which it is only a part stay busy.

        Args:
            touch: what is written.
        """
        if touch.pages is not None and touch.pages.whole:
            self.busy[touch.pages.numbers] = False

    def begin_read(self, touch: Touch) -> None:
        """Notes that an operation in flight begins to read.

        Args:
            touch: what is read.
        """
        self.readers[self._each_once(touch)] += 1

    def end_read(self, touch: Touch) -> None:
        """Notes that an operation in flight has read.

        Args:
            touch: what is read.
        """
        self.readers[self._each_once(touch)] -= 1

    def _each_once(self, touch: Touch) -> np.ndarray | slice:
        return np.unique(touch.places // self.per) if touch.pages is None else touch.pages.numbers

    def wrote(self, touch: Touch, times: np.ndarray, *, asynchronously: bool) -> None:
        """Notes a write.

        Args:
            touch: what is written.
            times: the time of each actor of the touch.
            asynchronously: whether the write is through the async proxy.
        """
        pages = touch.pages
        if pages is None or not pages.whole:
            self.writer[self.of(touch)] = _DIFFERENT
        else:
            self.writer[pages.numbers] = touch.actors
            self.at[pages.numbers] = times
            self.asynchronous[pages.numbers] = asynchronously

    def read(self, touch: Touch, times: np.ndarray) -> None:
        """Notes a read.

        Args:
            touch: what is read.
            times: the time of each actor of the touch.
        """
        self.read_at[touch.actors, self.of(touch)] = times

    def reads_in_order(
        self, clocks: np.ndarray, touch: Touch, fenced: Callable[[int], np.ndarray] | None = None
    ) -> bool:
        """Whether what an actor reads is written, nothing is under way there, and the writes are in its past.

        Args:
            clocks: of all actors.
            touch: what is read.
            fenced: returns when the fence of each warp was that makes its writes visible to the async proxy, for reads
                by an actor through that.
        """
        if touch.pages is None:
            return False
        pages, actor = touch.pages.numbers, touch.actors
        writer, at = self.writer[pages], self.at[pages]
        if writer.min() < 0 or np.count_nonzero(self.busy[pages]):
            return False
        if fenced is not None:
            assert isinstance(actor, int)
            generic = ~self.asynchronous[pages]
            if generic.any() and (at > fenced(actor)[writer])[generic].any():
                return False
        return bool(((clocks[actor, writer] >= at) | (writer == actor)).all())

    def follows_reads(self, clocks: np.ndarray, touch: Touch) -> bool:
        """Whether all reads by others of the pages of a touch are in the past of its actors.

        Args:
            clocks: int array (actors, actors).
            touch: the access.
        """
        # Each pair of an actor and a page once.
        count = len(self.writer)
        (pairs,) = np.bincount(self._of_pairs(touch) + touch.actors * count).nonzero()
        actors, pages = np.divmod(pairs, count)
        late = self.read_at[:, pages] > clocks[actors].T
        late[actors, np.arange(len(actors))] = False
        return not np.count_nonzero(late)

    def writes_in_order(self, clocks: np.ndarray, touch: Touch) -> bool:
        """Whether nothing in the pages of a write is in flight, and the earlier accesses are in the past of its actor.

        Args:
            clocks: int array (actors, actors).
            touch: what is written.
        """
        if touch.pages is None or touch.lanes is not None:
            return False
        pages, actor = touch.pages.numbers, touch.actors
        writer = self.writer[pages]
        if writer.min() < _NOBODY or np.count_nonzero(self.busy[pages]) or np.count_nonzero(self.readers[pages]):
            return False
        past = clocks[actor].copy()
        past[actor] = _END
        # Memory without a write has the time 0, which happens before every access.
        return bool((past[writer] >= self.at[pages]).all() and (self.read_at[:, pages].max(axis=1) <= past).all())
