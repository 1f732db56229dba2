"""The sanitizer: checks accesses, and holds the state of memory and threads that the checks need.

Two accesses are a race if one of them writes and neither is in the other's past (`clocks`), whatever the order of
execution in the emulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory import initialized, lanes_of_warps, lone_arrivals, proxies
from stepladder.emulator.memory import updates as updating
from stepladder.emulator.memory.global_checks import GlobalChecks
from stepladder.emulator.memory.shadow import GlobalShadow, SharedShadow
from stepladder.emulator.memory.touches import Touch, first_in_granules

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.memory import Access

WARP = 32


class Sanitizer(GlobalChecks):
    """Checks the accesses of one group of blocks."""

    enabled = True

    # Accesses of threads.

    def read(self, fiber: Fiber, op: Instruction, access: Access) -> None:
        """Checks a read by threads, and records it.

        Args:
            fiber: the threads.
            op: the instruction.
            access: the elements.
        """
        touch = self.touch(fiber, access)
        if touch is not None:
            initialized.check_access(self, op, access)
            self.check(op, touch, writes=False)
            self.note(op, touch, writes=False)

    def write(self, fiber: Fiber, op: Instruction, access: Access, values: np.ndarray) -> None:
        """Checks a write by threads, and records it.

        Args:
            fiber: the threads.
            op: the instruction.
            access: the elements.
            values: that are written.
        """
        touch = self.touch(fiber, access)
        if touch is not None:
            self.check(op, touch, writes=True)
            self.note(op, touch, writes=True)

    def update(self, fiber: Fiber, op: Instruction, access: Access, *, reads: bool = True) -> None:
        """Checks that threads may update what they are about to update atomically, and notes it.

        Updates are in no order and no race with each other, but they are with other accesses. One that only writes
        (`reads`) needs nothing to be there.
        """
        updating.by_threads(self, fiber, op, access, reads=reads)

    def written(self, fiber: Fiber, op: Instruction, access: Access, values: np.ndarray) -> None:
        """Checks, after a write, that no two threads wrote different values to one address.

        Args:
            fiber: the threads.
            op: the instruction.
            access: the elements.
            values: that each lane wrote, in the shape of the access.
        """
        if access.memory.space == "private" or not access.per_lane or fiber.group.is_host:
            return
        bits = np.dtype(f"u{access.element.dtype.itemsize}")
        own, places = np.ascontiguousarray(values).view(bits), access.positions
        if access.valid is not None:
            own, places = own[access.valid], places[access.valid]
        wrong = access.memory.typed(access.element.dtype).view(bits)[places] != own
        if np.count_nonzero(wrong):
            place = places[wrong][0] * access.element.dtype.itemsize // self.granule_of(access.memory)
            self.findings.add(
                "race", f"two threads write different values to {self.where(access.memory, place)} at once", op, op
            )

    def touch(self, fiber: Fiber, access: Access) -> Touch | None:
        """Returns the granules of an access, or None where no other thread can access them.

        Args:
            fiber: the threads.
            access: the elements.
        """
        if access.memory.space == "private" or fiber.group.is_host:
            return None
        item, granule = access.element.dtype.itemsize, self.granule_of(access.memory)
        positions, valid = access.positions, access.valid
        if positions.size == 0:
            return None
        if valid is None and item < granule:
            positions = first_in_granules(positions, granule // item, per_lane=access.per_lane)
        if valid is not None and not access.per_lane:
            positions = positions[valid]
        count = positions.size // len(fiber.lanes) if access.per_lane else positions.size
        lanes = lanes_of_warps.touching(fiber, access, count)
        actors = None
        if len(fiber.warps) > 1:
            actors = (fiber.group.warp_of_lane[fiber.lanes] if access.per_lane else fiber.warps).repeat(count)
        if not access.per_lane:
            positions = positions.reshape(1, -1).repeat(len(fiber.warps), 0)
        elif valid is not None:
            is_touched = valid.reshape(-1)
            positions = positions[valid]
            actors = None if actors is None else actors[is_touched]
            lanes = None if lanes is None else lanes[is_touched]
        if positions.size == 0:
            return None
        positions = positions.reshape(-1)
        if item > granule:
            per = item // granule
            positions = ((positions * per)[:, None] + np.arange(per)).reshape(-1)
            actors = None if actors is None else actors.repeat(per)
            lanes = None if lanes is None else lanes.repeat(per)
        elif item < granule:
            positions = positions * item // granule
        return Touch.by(access.memory, int(fiber.warps[0]) if actors is None else actors, positions, lanes)

    def check(self, op: Instruction, touch: Touch, *, writes: bool) -> None:
        """Adds findings about an access.

        Args:
            op: the instruction.
            touch: the access.
            writes: whether it is a write.
        """
        shadow = self.shadow_of(touch.memory)
        if isinstance(shadow, GlobalShadow):
            if self.launch_before is not None:
                self.check_launch(op, touch, self.launch_before, writes=writes)
            self.check_global(op, touch, shadow.write, writes, "wrote")
            if writes:
                self.check_global(op, touch, shadow.read, writes, "read")
            return
        pages = shadow.pages
        if pages.writes_in_order(self.clocks, touch) if writes else pages.reads_in_order(self.clocks, touch):
            return
        verb = "writes" if writes else "reads"
        places, index = touch.places, touch.shared_index
        busy = None
        if np.count_nonzero(pages.busy[pages.of(touch)]):
            busy = shadow.busy_writing[index] >= 0
            if np.count_nonzero(busy):
                self._check_busy(op, touch, shadow, busy, verb)
        if writes and shadow.under_way:
            reads = shadow.busy_reading(touch)
            in_use = reads >= 0
            if np.count_nonzero(in_use):
                first = int(in_use.argmax())
                place = places[first]
                self.add(
                    "in-flight",
                    f"writes {self.where(touch.memory, place)} while an asynchronous operation "
                    "reads it: no wait for its completion",
                    op,
                    int(reads[first]),
                )
        if not writes:
            self.check_initialized(op, touch, shadow)
        writer = shadow.writer[index]
        is_unordered = self.clocks[touch.actors, writer] < shadow.written_at[index]
        if np.count_nonzero(is_unordered):  # rarely: the rest is looked at only then
            is_unordered &= (writer >= 0) & (writer != touch.actors)
            if busy is not None:
                is_unordered &= ~busy
            self._check_unordered(op, touch, shadow, is_unordered, verb)
        if writes and not pages.follows_reads(self.clocks, touch):
            self.check_readers(op, touch, shadow)
        lanes_of_warps.check(self, op, touch, shadow, writes=writes)

    def _check_unordered(
        self, op: Instruction, touch: Touch, shadow: SharedShadow, is_unordered: np.ndarray, verb: str
    ) -> None:
        """Adds a finding about granules that others have written, and nothing orders that before the access."""
        writer = shadow.writer[touch.shared_index]
        if self.lone and is_unordered.any():
            lanes, times = touch.of(shadow.writing_lane), touch.of(shadow.written_at)
            is_unordered &= ~lone_arrivals.excused(self, touch.actors, writer, times, lanes, wrote=True)
        if is_unordered.any():
            first = int(is_unordered.argmax())
            by = int(shadow.written_by[touch.places[first]])
            self.race(op, touch, first, verb, "wrote", int(writer[first]), by)

    def check_update(self, op: Instruction, touch: Touch) -> None:
        """Adds findings about an update by threads that completes later.

        Args:
            op: the instruction.
            touch: the access.
        """
        updating.check(self, op, touch)

    def check_lanes(self, op: Instruction, touch: Touch, warp: int, lane: int) -> None:
        """Checks what a copy is about to write against what other threads of the warp that issues it did.

        Args:
            op: the instruction of the copy.
            touch: what it writes in shared memory.
            warp: of the thread that issues the copy.
            lane: the thread.
        """
        shadow = self.shadow_of_shared(touch.memory)
        if shadow.pages.by_lanes[shadow.pages.of(touch)].any():
            lanes = np.full(touch.places.shape, lane)
            own = Touch(touch.memory, warp, touch.index, places=touch.places, lanes=lanes)
            lanes_of_warps.check(self, op, own, shadow, writes=True)

    def _check_busy(self, op: Instruction, touch: Touch, shadow: SharedShadow, busy: np.ndarray, verb: str) -> None:
        """Adds findings about bytes that an asynchronous copy writes, or that are of an mbarrier."""
        is_mbarrier = touch.of(shadow.is_mbarrier)
        for kind, wrong, reason in (
            ("mbarrier", busy & is_mbarrier, "which is part of an mbarrier that has not been invalidated"),
            ("in-flight", busy & ~is_mbarrier, "while an asynchronous copy writes it: no wait for its completion"),
        ):
            if wrong.any():
                place = touch.places[wrong.argmax()]
                comma = "," if kind == "mbarrier" else ""
                text = f"{verb} {self.where(touch.memory, place)}{comma} {reason}"
                self.add(kind, text, op, int(shadow.busy_writing[place]))

    def check_initialized(self, op: Instruction, touch: Touch, shadow: SharedShadow) -> None:
        """Adds a finding about a read of shared memory that nothing has written.

        Args:
            op: the instruction.
            touch: the read.
            shadow: of the memory.
        """
        initialized = touch.of(shadow.initialized)
        if np.count_nonzero(initialized) == initialized.size:
            return
        fresh = ~initialized
        if fresh.any():
            fresh &= touch.of(shadow.busy_writing) < 0
        if fresh.any():
            self.add(
                "uninitialized",
                f"reads {self.where(touch.memory, touch.places[fresh.argmax()])}, which nothing has written",
                op,
            )

    def check_readers(self, op: Instruction, touch: Touch, shadow: SharedShadow) -> None:
        """Adds a finding about a write that is not ordered after the reads of others.

        Args:
            op: the instruction.
            touch: the write.
            shadow: of the memory.
        """
        read_times = shadow.read_at[: self.actors, touch.shared_index]
        late = read_times > self.clocks[np.atleast_1d(touch.actors), : self.actors].T
        late &= np.arange(self.actors)[:, None] != touch.actors
        for warp in {warp for warp, _ in self.lone}:
            lanes = touch.of(shadow.reading_lane)
            late[warp] &= ~lone_arrivals.excused(self, touch.actors, warp, read_times[warp], lanes, wrote=False)
        if late.any():
            actor, first = (int(number[0]) for number in np.nonzero(late))
            self.race(op, touch, first, "writes", "read", actor, int(shadow.read_by[touch.places[first]]))

    def note(self, op: Instruction, touch: Touch, *, writes: bool, asynchronously: bool = False) -> None:
        """Records an access.

        Args:
            op: the instruction.
            touch: the access.
            writes: whether it is a write.
            asynchronously: whether it is through the async proxy.
        """
        shadow = self.shadow_of(touch.memory)
        times = self.clocks[touch.actors, touch.actors]
        if touch.lanes is not None:
            self.touched_at[touch.actors] = times
        if writes:
            shadow.note_kind(touch, updates=False)
        if isinstance(shadow, GlobalShadow):
            last = shadow.write if writes else shadow.read
            last.any = True
            touch.put(last.owner, self.group.number + 1)
            touch.put(last.actor, touch.actors)
            touch.put(last.at, times)
            touch.put(last.by, op.number)
            return
        index = touch.shared_index
        if writes:
            shadow.pages.wrote(touch, times, asynchronously=asynchronously)
            shadow.initialized[index] = True
            shadow.writer[index] = touch.actors
            shadow.written_at[index] = times
            shadow.written_by[index] = op.number
            shadow.asynchronously[index] = asynchronously
            lanes_of_warps.note(shadow.pages, shadow.writing_lane, touch)
        else:
            shadow.pages.read(touch, times)
            shadow.read_at[touch.actors, index] = times
            shadow.read_by[index] = op.number
            lanes_of_warps.note(shadow.pages, shadow.reading_lane, touch)

    # Mbarriers: threads may access their bytes only by what is made for that.

    def begin_mbarrier(self, op: Instruction, touch: Touch) -> None:
        """Bytes become an mbarrier: until `end_mbarrier` no thread and no copy may access them."""
        shadow = self.shadow_of_shared(touch.memory)
        if not touch.of(shadow.is_mbarrier).any():
            self.check(op, touch, writes=True)
        self.note(op, touch, writes=True)
        shadow.pages.begin_write(touch)
        touch.put(shadow.busy_writing, op.number)
        touch.put(shadow.is_mbarrier, True)

    def end_mbarrier(self, op: Instruction, touch: Touch) -> None:
        """Bytes are no mbarrier any more: nothing is in them."""
        shadow = self.shadow_of_shared(touch.memory)
        self.note(op, touch, writes=True)
        touch.put(shadow.busy_writing, -1)
        touch.put(shadow.is_mbarrier, False)
        touch.put(shadow.initialized, False)

    # Accesses of what runs on its own: copies, and products of wgmma.

    def begin_write(self, op: Instruction, touch: Touch, *, updates: bool = False, proxy: bool = True) -> None:
        """An asynchronous copy begins to write: until `end_write` no thread may access these bytes of shared memory;
        those of global memory only actors that are ordered after the actor of `touch`.

        With `updates` it combines its data with what memory holds: it is in no race with other updates. With
        `proxy` it does so through the async proxy.
        """
        if updates:
            updating.check(self, op, touch)
        else:
            self.check(op, touch, writes=True)
        if touch.memory.space == "global":
            proxies.check_global(self, op, touch, "writes")
            self.through_proxy.add(op.number)
            self.note(op, touch, writes=True, asynchronously=True)
            if updates:
                self.shadow_of(touch.memory).note_kind(touch, updates=True)
            return
        shadow = self.shadow_of_shared(touch.memory)
        if updates:
            if proxy:
                proxies.check_shared(self, op, touch, shadow)
            updating.begin(op, touch, shadow)
        else:
            shadow.pages.begin_write(touch)
            touch.put(shadow.busy_writing, op.number)

    def end_write(self, op: Instruction, touch: Touch, *, updates: bool = False, proxy: bool = True) -> None:
        """An asynchronous copy has written shared memory, as the actors of `touch`; as `begin_write` takes it."""
        shadow = self.shadow_of_shared(touch.memory)
        if updates:
            updating.end(touch, shadow)
        else:
            shadow.pages.end_write(touch)
            touch.put(shadow.busy_writing, -1)
        self.note(op, touch, writes=True, asynchronously=proxy)
        if updates:
            shadow.note_kind(touch, updates=True)

    def begin_read(self, op: Instruction, touch: Touch, *, proxy: bool = True) -> None:
        """An operation in flight begins to read (each byte once): until `end_read` no thread may write these bytes.

        With `proxy` it reads through the async proxy, which sees the writes of threads only after a fence.
        """
        if touch.memory.space == "global":
            self.check(op, touch, writes=False)
            initialized.check_touch(self, op, touch)
            proxies.check_global(self, op, touch, "reads")
            self.note(op, touch, writes=False)
            return
        shadow = self.shadow_of_shared(touch.memory)
        if not shadow.pages.reads_in_order(self.clocks, touch, self.fenced_for if proxy else None):
            self.check(op, touch, writes=False)
            if proxy:
                proxies.check_shared(self, op, touch, shadow)
        shadow.pages.begin_read(touch)
        shadow.under_way.append((touch, op.number))

    def end_read(self, op: Instruction, touch: Touch) -> None:
        """An operation in flight has read, as the actors of `touch`: a write must be ordered after them."""
        if touch.memory.space != "global":
            shadow = self.shadow_of_shared(touch.memory)
            shadow.end_reading(touch)
            self.note(op, touch, writes=False)
