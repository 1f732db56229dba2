"""The sanitizer: checks accesses, and holds the state of memory and threads that the checks need.

Two accesses are a race if one of them writes and neither is in the other's past (`clocks`), whatever the order of
execution in the emulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory import initialized, lanes_of_warps, proxies
from stepladder.emulator.memory.reports import Reports
from stepladder.emulator.memory.shadow import (
    SEVERAL,
    GlobalShadow,
    SharedShadow,
    Touch,
)

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.findings import Findings
    from stepladder.emulator.memory.memory import Access, Allocation

WARP = 32


class Sanitizer(Reports):
    """Checks the accesses of one group of blocks."""

    enabled = True

    def __init__(self, findings: Findings, instructions: Sequence[Instruction], *, granule: int = 2) -> None:
        super().__init__(findings, instructions, granule=granule)
        # Numbers of instructions that wrote global memory through the async proxy.
        self.through_proxy: set[int] = set()

    # Accesses of threads.

    def read(self, fiber: Fiber, op: Instruction, access: Access) -> None:
        """Checks that threads may read what they are about to read, and notes it."""
        touch = self.touch(fiber, access)
        if touch is not None:
            initialized.check_access(self, op, access)
            self.check(op, touch, writes=False)
            self.note(op, touch, writes=False)

    def write(self, fiber: Fiber, op: Instruction, access: Access, values: np.ndarray) -> None:
        """Checks that threads may write what they are about to write, and notes it."""
        touch = self.touch(fiber, access)
        if touch is not None:
            self.check(op, touch, writes=True)
            self.note(op, touch, writes=True)

    def update(self, fiber: Fiber, op: Instruction, access: Access, *, reads: bool = True) -> None:
        """Checks that threads may update what they are about to update atomically, and notes it.

        Updates are in no order and no race with each other, but they are with other accesses. One that only writes
        (`reads`) needs nothing to be there.
        """
        touch = self.touch(fiber, access)
        if touch is None:
            return
        if reads:
            initialized.check_access(self, op, access)
        shadow = self._shadow(touch.memory)
        after_update = shadow.atomically[touch.places]
        rest, updated = touch.where(~after_update), touch.where(after_update)
        if rest.places.size:
            if isinstance(shadow, SharedShadow) and reads:
                self._check_initialized(op, rest, shadow)
            self.check(op, rest, writes=True)
        if updated.places.size:
            if isinstance(shadow, GlobalShadow):
                self._check_global(op, updated, shadow.read, True, "read")
            else:
                self._check_readers(op, updated, shadow)
        self.note(op, touch, writes=True)
        shadow.atomically[touch.places] = True

    def written(self, fiber: Fiber, op: Instruction, access: Access, values: np.ndarray) -> None:
        """Checks, after a write, that no two threads wrote different values to one address."""
        if access.memory.space == "private" or not access.per_lane or fiber.group.is_host:
            return
        bits = np.dtype(f"u{access.element.dtype.itemsize}")
        now = access.memory.typed(access.element.dtype).view(bits)[
            np.where(True if access.valid is None else access.valid, access.positions, 0)
        ]
        wrong = now != np.ascontiguousarray(values).view(bits)
        if access.valid is not None:
            wrong &= access.valid
        if wrong.any():
            place = access.positions[wrong][0] * access.element.dtype.itemsize // self.granule
            self.findings.add(
                "race", f"two threads write different values to {self.where(access.memory, place)} at once", op, op
            )

    def touch(self, fiber: Fiber, access: Access) -> Touch | None:
        """Returns the granules of an access, or None where no other thread can access them."""
        if access.memory.space == "private" or fiber.group.is_host:
            return None
        item = access.element.dtype.itemsize
        positions, valid = access.positions, access.valid
        if access.per_lane:
            actors = np.broadcast_to(
                fiber.group.warp_of_lane[fiber.lanes].reshape(-1, *(1,) * (positions.ndim - 1)), positions.shape
            )
            lanes = lanes_of_warps.touching(fiber, access)
            positions, actors = (
                (positions.reshape(-1), actors.reshape(-1)) if valid is None else (positions[valid], actors[valid])
            )
        else:
            positions = positions.reshape(-1) if valid is None else positions[valid]
            actors = np.repeat(fiber.warps, positions.size)
            positions = np.tile(positions, len(fiber.warps))
            alone = len(fiber.lanes) == len(fiber.warps) and not fiber.acts_for
            lanes = np.repeat(fiber.lanes if alone else np.full(len(fiber.warps), SEVERAL), access.positions.size)
            if fiber.acts_for == "others" or access.memory.space != "shared" or valid is not None:
                lanes = None
        if positions.size == 0:
            return None
        if item <= self.granule:
            return Touch.by(access.memory, actors, positions * item // self.granule, lanes)
        per = item // self.granule
        granules = (positions * per)[:, None] + np.arange(per)
        lanes = None if lanes is None else np.repeat(lanes, per)
        return Touch.by(access.memory, np.repeat(actors, per), granules.reshape(-1), lanes)

    def bytes_touched(self, memory: Allocation, actor: int, addresses: np.ndarray) -> Touch:
        """Returns the Touch of one actor and the granules that bytes of an allocation lie in, each once."""
        return Touch.once(memory, actor, np.unique(addresses // self.granule))

    def _shadow(self, memory: Allocation) -> SharedShadow | GlobalShadow:
        if memory.shadow is None:
            memory.shadow = (
                GlobalShadow(memory, self.granule)
                if memory.space == "global"
                else SharedShadow(memory, self.granule, len(self.clocks))
            )
        return memory.shadow

    def _shared(self, memory: Allocation) -> SharedShadow:
        shadow = self._shadow(memory)
        assert isinstance(shadow, SharedShadow)
        return shadow

    def global_shadow(self, memory: Allocation) -> GlobalShadow:
        """Returns what is known of global memory."""
        shadow = self._shadow(memory)
        assert isinstance(shadow, GlobalShadow)
        return shadow

    def check(self, op: Instruction, touch: Touch, *, writes: bool) -> None:
        """Adds findings about an access."""
        shadow = self._shadow(touch.memory)
        if isinstance(shadow, GlobalShadow):
            if self.launch_before is not None:
                self._check_launch(op, touch, self.launch_before, writes=writes)
            self._check_global(op, touch, shadow.write, writes, "wrote")
            if writes:
                self._check_global(op, touch, shadow.read, writes, "read")
            return
        verb = "writes" if writes else "reads"
        places, index = touch.places, touch.index
        busy = shadow.busy_writing[index] >= 0
        if busy.any():
            self._check_busy(op, touch, shadow, busy, verb)
        if writes:
            in_use = shadow.readers[index] > 0
            if in_use.any():
                place = places[in_use.argmax()]
                self.add(
                    "in-flight",
                    f"writes {self.where(touch.memory, place)} while an operation in flight reads "
                    "it: nothing has waited for that",
                    op,
                    int(shadow.busy_reading[place]),
                )
        else:
            self._check_initialized(op, touch, shadow)
        writer = shadow.writer[index]
        unordered = (
            (writer >= 0)
            & (writer != touch.actors)
            & (self.clocks[touch.actors, writer] < shadow.written_at[index])
            & ~busy
        )
        if unordered.any():
            first = int(unordered.argmax())
            self.race(op, touch, first, verb, "wrote", int(writer[first]), int(shadow.written_by[places[first]]))
        if writes:
            self._check_readers(op, touch, shadow)
        lanes_of_warps.check(self, op, touch, shadow, writes=writes)

    def check_lanes(self, op: Instruction, touch: Touch | None) -> None:
        """Checks what a thread is about to let a copy write against what others of its warp did."""
        if touch is not None:
            lanes_of_warps.check(self, op, touch, self._shared(touch.memory), writes=True)

    def _check_launch(self, op: Instruction, touch: Touch, before: int, *, writes: bool) -> None:
        """Adds a finding about an array that the launch before may still write, or read."""
        early = np.broadcast_to(self.clocks[touch.actors, before] == 0, touch.places.shape)
        if early.any() and touch.memory.is_array:
            place = int(touch.places[early.argmax()])
            verb, may = ("writes", "read or write") if writes else ("reads", "write")
            self.add(
                "race",
                f"{verb} {self.where(touch.memory, place)} before griddepcontrol.wait: the launch before may still "
                f"{may} it",
                op,
            )

    def _check_busy(self, op: Instruction, touch: Touch, shadow: SharedShadow, busy: np.ndarray, verb: str) -> None:
        """Adds findings about bytes that an asynchronous copy writes, or that are of an mbarrier."""
        held = shadow.is_mbarrier[touch.index]
        for kind, wrong, what in (
            ("mbarrier", busy & held, "which is part of an mbarrier that has not been invalidated"),
            ("in-flight", busy & ~held, "while an asynchronous copy writes it: nothing has waited for the copy"),
        ):
            if wrong.any():
                place = touch.places[wrong.argmax()]
                comma = "," if kind == "mbarrier" else ""
                text = f"{verb} {self.where(touch.memory, place)}{comma} {what}"
                self.add(kind, text, op, int(shadow.busy_writing[place]))

    def _check_initialized(self, op: Instruction, touch: Touch, shadow: SharedShadow) -> None:
        fresh = ~(shadow.initialized[touch.index] | (shadow.busy_writing[touch.index] >= 0))
        if fresh.any():
            self.add(
                "uninitialized",
                f"reads {self.where(touch.memory, touch.places[fresh.argmax()])}, which nothing has written",
                op,
            )

    def _check_readers(self, op: Instruction, touch: Touch, shadow: SharedShadow) -> None:
        read = shadow.read_at[: self.actors, touch.index]
        late = read > self.clocks[np.atleast_1d(touch.actors), : self.actors].T
        late &= np.arange(self.actors)[:, None] != touch.actors
        if late.any():
            actor, first = (int(number[0]) for number in np.nonzero(late))
            self.race(op, touch, first, "writes", "read", actor, int(shadow.read_by[touch.places[first]]))

    def _check_global(self, op: Instruction, touch: Touch, last: dict, writes: bool, did: str) -> None:
        verb = "writes" if writes else "reads"
        group = last["group"][touch.index]
        own = group == self.group.number
        if own.any():
            actor = last["actor"][touch.index]
            unordered = own & (actor != touch.actors) & (self.clocks[touch.actors, actor] < last["at"][touch.index])
            if unordered.any():
                first = int(unordered.argmax())
                self.race(op, touch, first, verb, did, int(actor[first]), int(last["by"][touch.places[first]]))
        foreign = (group >= 0) & ~own
        if foreign.any():
            for number in np.unique(group[foreign]):
                known = self.known_of(int(number), last["actor"][touch.index], touch.actors)
                late = (group == number) & (last["at"][touch.index] > known)
                if late.any():
                    place = int(touch.places[late.argmax()])
                    self.add(
                        "race",
                        f"a thread of {self.group.name} {verb} {self.where(touch.memory, place)}, which "
                        f"another block {did}, and nothing orders them",
                        op,
                        int(last["by"][place]),
                    )
                    return

    def note(self, op: Instruction, touch: Touch, *, writes: bool, asynchronously: bool = False) -> None:
        """Notes an access."""
        shadow = self._shadow(touch.memory)
        now = self.clocks[touch.actors, touch.actors]
        if writes:
            shadow.atomically[touch.index] = False
        if isinstance(shadow, GlobalShadow):
            last = shadow.write if writes else shadow.read
            for name, value in (("group", self.group.number), ("actor", touch.actors), ("at", now), ("by", op.number)):
                last[name][touch.index] = value
        elif writes:
            shadow.initialized[touch.index] = True
            shadow.writer[touch.index] = touch.actors
            shadow.written_at[touch.index] = now
            shadow.written_by[touch.index] = op.number
            shadow.asynchronously[touch.index] = asynchronously
            lanes_of_warps.note(shadow.writing_lane, touch)
        else:
            shadow.read_at[touch.actors, touch.index] = now
            shadow.read_by[touch.index] = op.number
            lanes_of_warps.note(shadow.reading_lane, touch)

    # Mbarriers: threads may access their bytes only by what is made for that.

    def begin_mbarrier(self, op: Instruction, touch: Touch) -> None:
        """Bytes become an mbarrier: until `end_mbarrier` no thread and no copy may access them."""
        shadow = self._shared(touch.memory)
        if not shadow.is_mbarrier[touch.index].any():
            self.check(op, touch, writes=True)
        self.note(op, touch, writes=True)
        shadow.busy_writing[touch.index] = op.number
        shadow.is_mbarrier[touch.index] = True

    def end_mbarrier(self, op: Instruction, touch: Touch) -> None:
        """Bytes are no mbarrier any more: nothing is in them."""
        shadow = self._shared(touch.memory)
        self.note(op, touch, writes=True)
        shadow.busy_writing[touch.index] = -1
        shadow.is_mbarrier[touch.index] = False
        shadow.initialized[touch.index] = False

    # Accesses of what runs on its own: copies, and products of wgmma.

    def begin_write(self, op: Instruction, touch: Touch, *, updates: bool = False) -> None:
        """An asynchronous copy by these threads begins to write: until `end_write` no thread may access these bytes.

        With `updates` it combines what it brings with what global memory holds: it is in no race with other updates.
        """
        if updates:
            after_update = self.global_shadow(touch.memory).atomically[touch.index]
            rest, updated = touch.where(~after_update), touch.where(after_update)
            if rest.places.size:
                self.check(op, rest, writes=True)
            if updated.places.size:
                self._check_global(op, updated, self.global_shadow(touch.memory).read, True, "read")
        else:
            self.check(op, touch, writes=True)
        if touch.memory.space == "global":
            proxies.check_global(self, op, touch, "writes")
        else:
            self._shared(touch.memory).busy_writing[touch.index] = op.number

    def end_write(self, op: Instruction, touch: Touch, *, proxy: bool = True, updates: bool = False) -> None:
        """An asynchronous copy has written: for those who are told of the actors of `touch`; `updates` as above."""
        if touch.memory.space != "global":
            self._shared(touch.memory).busy_writing[touch.index] = -1
        else:
            self.through_proxy.add(op.number)
        self.note(op, touch, writes=True, asynchronously=proxy)
        if updates:
            self._shadow(touch.memory).atomically[touch.index] = True

    def begin_read(self, op: Instruction, touch: Touch, *, proxy: bool = True) -> None:
        """An operation in flight begins to read (each byte once): until `end_read` no thread may write these bytes.

        With `proxy` it reads through the async proxy, which sees the writes of threads only after a fence.
        """
        self.check(op, touch, writes=False)
        if touch.memory.space == "global":
            initialized.check_touch(self, op, touch)
            proxies.check_global(self, op, touch, "reads")
            self.note(op, touch, writes=False)
            return
        shadow = self._shared(touch.memory)
        places, index = touch.places, touch.index
        if proxy:
            writer = shadow.writer[index]
            unseen = (writer >= 0) & ~shadow.asynchronously[index] & (shadow.written_at[index] > self.fenced[writer])
            if unseen.any():
                place = places[unseen.argmax()]
                self.add(
                    "proxy",
                    f"reads {self.where(touch.memory, place)} through the async proxy, and no "
                    "fence.proxy.async is after the write of it",
                    op,
                    int(shadow.written_by[place]),
                )
        shadow.readers[index] += 1
        shadow.busy_reading[index] = op.number

    def end_read(self, op: Instruction, touch: Touch) -> None:
        """An operation in flight has read: a write is in order for those who are told of the actors of `touch`."""
        if touch.memory.space != "global":
            self._shared(touch.memory).readers[touch.index] -= 1
            self.note(op, touch, writes=False)
