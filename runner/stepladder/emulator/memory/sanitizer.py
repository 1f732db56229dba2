"""What an access must not do: findings, and the knowledge about memory and threads that they rest on.

Order between threads is kept by vector clocks, one entry for each warp and each agent that copies on its own (TMA
completing on an mbarrier). A warp's threads count as one: they run in step, which is what programs for matrix units
rely on. `clocks[w, x]` is how much of x's past w has been told of, by barriers, mbarriers, releases and waits; an
access of x at its time t is in w's past where `clocks[w, x] >= t`. Two accesses of which one writes, and neither is in
the other's past, are a race, whatever order they happened to run in here.
"""

from __future__ import annotations

import numpy as np

from stepladder.emulator.memory.findings import Findings
from stepladder.emulator.memory.shadow import (
    GlobalShadow,
    SharedShadow,
    Touch,
    together,
)

WARP = 32
_AGENTS = 8  # room for clocks grows by so many


class Sanitizer:
    """Checks the accesses of one group of blocks.

    Attributes:
        findings: where they go, shared by all groups of a run.
        clocks: int array (actors, actors).
    """

    enabled = True

    def __init__(self, findings: Findings, instructions, *, granule: int = 2):
        self.findings = findings
        self.instructions = instructions
        self.granule = granule
        self.group = None
        self.actors = 0
        self.clocks = np.zeros((0, 0), np.int32)
        self.fenced = np.zeros(0, np.int32)  # when each warp last made its writes visible to the async proxy
        self.known: dict[int, np.ndarray] = {}  # group -> the clocks of its actors that this one has been told of
        self.told: dict[int, tuple[int, int]] = {}  # group -> the warp that was told last, and when

    def attach(self, group) -> None:
        """Begins with a group of blocks: a clock for each of its warps."""
        self.group = group
        self.actors = group.warps
        self._grow(group.warps + _AGENTS)
        self.clocks[np.arange(group.warps), np.arange(group.warps)] = 1

    def _grow(self, room: int) -> None:
        clocks = np.zeros((room, room), np.int32)
        old = len(self.clocks)
        clocks[:old, :old] = self.clocks
        self.clocks = clocks
        fenced = np.zeros(room, np.int32)
        fenced[:old] = self.fenced
        self.fenced = fenced
        window = self.group.window
        if window is not None and window.shadow is not None:
            window.shadow.room_for(room)

    def agent(self) -> int:
        """Returns a new actor: one that is no warp."""
        if self.actors == len(self.clocks):
            self._grow(self.actors + _AGENTS)
        self.actors += 1
        self.clocks[self.actors - 1, self.actors - 1] = 1
        return self.actors - 1

    # What tells threads of each other.

    def release(self, actors) -> np.ndarray:
        """Returns what these actors know, together, and lets their time go on: what they do later is not in it."""
        actors = np.asarray(actors)
        known = self.clocks[actors].max(axis=0)
        self.clocks[actors, actors] += 1
        return known

    def acquire(self, actors, known: np.ndarray | None) -> None:
        """Tells actors of a past that `release` returned."""
        if known is None:
            return
        actors = np.asarray(actors)
        size = len(known)
        own = self.clocks[actors, actors]
        self.clocks[actors, :size] = np.maximum(self.clocks[actors, :size], known)
        self.clocks[actors, actors] = own

    def knows(self, actors, past: np.ndarray) -> np.ndarray:
        """Returns, for each actor, whether it knows all of a past."""
        return (self.clocks[np.asarray(actors), : len(past)] >= past).all(axis=1)

    def meet(self, actors) -> None:
        """Lets actors know of each other's past: a barrier among them."""
        self.acquire(actors, self.release(actors))

    def fence_proxy(self, warps) -> None:
        """Makes what these warps wrote visible to the async proxy."""
        warps = np.asarray(warps)
        self.fenced[warps] = self.clocks[warps, warps]
        self.clocks[warps, warps] += 1

    def learn(self, warp: int, known: dict[int, np.ndarray]) -> None:
        """Tells this group of what others, by group, had released to the whole GPU when this warp acquired it."""
        self.clocks[warp, warp] += 1  # fences before this are none behind it
        for group, clocks in known.items():
            more = together(self.known.get(group), clocks)
            if not np.array_equal(more, self.known.get(group)):
                self.known[group] = more
                self.told[group] = warp, self.clocks[warp, warp]

    # Accesses of threads.

    def read(self, fiber, op, access) -> None:
        """Checks that threads may read what they are about to read, and notes it."""
        touch = self.touch(fiber, access)
        if touch is not None:
            self.check(op, touch, writes=False)
            self.note(op, touch, writes=False)

    def write(self, fiber, op, access, values) -> None:
        """Checks that threads may write what they are about to write, and notes it."""
        touch = self.touch(fiber, access)
        if touch is not None:
            self.check(op, touch, writes=True)
            self.note(op, touch, writes=True)

    def update(self, fiber, op, access) -> None:
        """Checks that threads may update what they are about to update atomically, and notes it.

        Updates are in no order and no race with each other, but they are with other accesses.
        """
        touch = self.touch(fiber, access)
        if touch is None:
            return
        shadow = self._shadow(touch.memory)
        after_update = shadow.atomically[touch.places]
        rest = Touch(touch.memory, touch.actors[~after_update], touch.places[~after_update])
        updated = Touch(touch.memory, touch.actors[after_update], touch.places[after_update])
        if rest.places.size:
            if touch.memory.space != "global":
                self._check_initialized(op, rest, shadow)
            self.check(op, rest, writes=True)
        if updated.places.size:
            if touch.memory.space == "global":
                self._check_global(op, updated, shadow.read, True, "read")
            else:
                self._check_readers(op, updated, shadow)
        self.note(op, touch, writes=True)
        shadow.atomically[touch.places] = True

    def written(self, fiber, op, access, values) -> None:
        """Checks, behind a write, that no two threads wrote different values to one place."""
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

    def touch(self, fiber, access) -> Touch | None:
        """Returns what an access touches, or None where nobody else can touch it."""
        if access.memory.space == "private" or fiber.group.is_host:
            return None
        item = access.element.dtype.itemsize
        positions, valid = access.positions, access.valid
        if access.per_lane:
            actors = np.broadcast_to(
                fiber.group.warp_of_lane[fiber.lanes].reshape(-1, *(1,) * (positions.ndim - 1)), positions.shape
            )
            positions, actors = (
                (positions.reshape(-1), actors.reshape(-1)) if valid is None else (positions[valid], actors[valid])
            )
        else:
            positions = positions.reshape(-1) if valid is None else positions[valid]
            actors = np.repeat(fiber.warps, positions.size)
            positions = np.tile(positions, len(fiber.warps))
        if positions.size == 0:
            return None
        if item <= self.granule:
            return Touch(access.memory, actors, positions * item // self.granule)
        per = item // self.granule
        return Touch(access.memory, np.repeat(actors, per), ((positions * per)[:, None] + np.arange(per)).reshape(-1))

    def bytes_touched(self, memory, actor: int, addresses: np.ndarray) -> Touch:
        """Returns the Touch of one actor and the granules that bytes of an allocation lie in, each once."""
        places = np.unique(addresses // self.granule)
        return Touch(memory, np.full(places.shape, actor), places)

    def _shadow(self, memory):
        if memory.shadow is None:
            memory.shadow = (
                GlobalShadow(memory, self.granule)
                if memory.space == "global"
                else SharedShadow(memory, self.granule, len(self.clocks))
            )
        return memory.shadow

    def check(self, op, touch: Touch, *, writes: bool) -> None:
        """Adds findings about an access."""
        shadow = self._shadow(touch.memory)
        if touch.memory.space == "global":
            self._check_global(op, touch, shadow.write, writes, "wrote")
            if writes:
                self._check_global(op, touch, shadow.read, writes, "read")
            return
        verb = "writes" if writes else "reads"
        places = touch.places
        busy = shadow.busy_writing[places] >= 0
        if busy.any():
            place = places[busy.argmax()]
            self._add(
                "in-flight",
                f"{verb} {self.where(touch.memory, place)} while an asynchronous copy writes it: "
                "nothing has waited for the copy",
                op,
                shadow.busy_writing[place],
            )
        if writes:
            in_use = shadow.readers[places] > 0
            if in_use.any():
                place = places[in_use.argmax()]
                self._add(
                    "in-flight",
                    f"writes {self.where(touch.memory, place)} while an operation in flight reads "
                    "it: nothing has waited for that",
                    op,
                    shadow.busy_reading[place],
                )
        else:
            self._check_initialized(op, touch, shadow)
        writer = shadow.writer[places]
        unordered = (
            (writer >= 0)
            & (writer != touch.actors)
            & (self.clocks[touch.actors, writer] < shadow.written_at[places])
            & ~busy
        )
        if unordered.any():
            first = unordered.argmax()
            self._race(op, touch, first, verb, "wrote", writer[first], shadow.written_by[places[first]])
        if writes:
            self._check_readers(op, touch, shadow)

    def _check_initialized(self, op, touch: Touch, shadow: SharedShadow) -> None:
        fresh = ~(shadow.initialized[touch.places] | (shadow.busy_writing[touch.places] >= 0))
        if fresh.any():
            self._add(
                "uninitialized",
                f"reads {self.where(touch.memory, touch.places[fresh.argmax()])}, which nothing has written",
                op,
            )

    def _check_readers(self, op, touch: Touch, shadow: SharedShadow) -> None:
        read = shadow.read_at[: self.actors, touch.places]
        late = read > self.clocks[touch.actors, : self.actors].T
        late &= np.arange(self.actors)[:, None] != touch.actors
        if late.any():
            actor, first = (int(number[0]) for number in np.nonzero(late))
            self._race(op, touch, first, "writes", "read", actor, shadow.read_by[touch.places[first]])

    def _check_global(self, op, touch: Touch, last: dict, writes: bool, did: str) -> None:
        verb = "writes" if writes else "reads"
        group = last["group"][touch.places]
        own = group == self.group.number
        if own.any():
            actor = last["actor"][touch.places]
            unordered = own & (actor != touch.actors) & (self.clocks[touch.actors, actor] < last["at"][touch.places])
            if unordered.any():
                first = unordered.argmax()
                self._race(op, touch, first, verb, did, actor[first], last["by"][touch.places[first]])
        foreign = (group >= 0) & ~own
        if foreign.any():
            for number in np.unique(group[foreign]):
                known = self.known.get(int(number), np.zeros(1, np.int32))
                actor = last["actor"][touch.places]
                told = np.where(actor < len(known), known[np.minimum(actor, len(known) - 1)], 0)
                late = (group == number) & (last["at"][touch.places] > told)
                if late.any():
                    place = touch.places[late.argmax()]
                    self._add(
                        "race",
                        f"a thread of {self.group.name} {verb} {self.where(touch.memory, place)}, which "
                        f"another block {did}, and nothing orders them",
                        op,
                        last["by"][place],
                    )
                    return

    def note(self, op, touch: Touch, *, writes: bool, asynchronously: bool = False) -> None:
        """Notes an access."""
        shadow = self._shadow(touch.memory)
        now = self.clocks[touch.actors, touch.actors]
        if writes:
            shadow.atomically[touch.places] = False
        if touch.memory.space == "global":
            last = shadow.write if writes else shadow.read
            for name, value in (("group", self.group.number), ("actor", touch.actors), ("at", now), ("by", op.number)):
                last[name][touch.places] = value
        elif writes:
            shadow.initialized[touch.places] = True
            shadow.writer[touch.places] = touch.actors
            shadow.written_at[touch.places] = now
            shadow.written_by[touch.places] = op.number
            shadow.asynchronously[touch.places] = asynchronously
        else:
            shadow.read_at[touch.actors, touch.places] = now
            shadow.read_by[touch.places] = op.number

    # Accesses of what runs on its own: copies, and products of wgmma.

    def begin_write(self, op, touch: Touch) -> None:
        """An asynchronous copy by these threads begins to write: until `end_write` nobody may touch the places."""
        self.check(op, touch, writes=True)
        if touch.memory.space == "global":
            self._check_proxy(op, touch, "writes")
        else:
            self._shadow(touch.memory).busy_writing[touch.places] = op.number

    def end_write(self, op, touch: Touch, *, proxy: bool = True) -> None:
        """An asynchronous copy has written: for those who are told of the actors of `touch`."""
        if touch.memory.space != "global":
            self._shadow(touch.memory).busy_writing[touch.places] = -1
        self.note(op, touch, writes=True, asynchronously=proxy)

    def begin_read(self, op, touch: Touch, *, proxy: bool = True) -> None:
        """An operation in flight begins to read (each place once): until `end_read` nobody may write the places.

        With `proxy` it reads through the async proxy, which sees what threads wrote only behind a fence.
        """
        self.check(op, touch, writes=False)
        if touch.memory.space == "global":
            self._check_proxy(op, touch, "reads")
            self.note(op, touch, writes=False)
            return
        shadow = self._shadow(touch.memory)
        places = touch.places
        if proxy:
            writer = shadow.writer[places]
            unseen = (writer >= 0) & ~shadow.asynchronously[places] & (shadow.written_at[places] > self.fenced[writer])
            if unseen.any():
                place = places[unseen.argmax()]
                self._add(
                    "proxy",
                    f"reads {self.where(touch.memory, place)} through the async proxy, and no "
                    "fence.proxy.async is behind the write of it",
                    op,
                    shadow.written_by[place],
                )
        shadow.readers[places] += 1
        shadow.busy_reading[places] = op.number

    def end_read(self, op, touch: Touch) -> None:
        """An operation in flight has read: a write is in order for those who are told of the actors of `touch`."""
        if touch.memory.space != "global":
            self._shadow(touch.memory).readers[touch.places] -= 1
            self.note(op, touch, writes=False)

    def _check_proxy(self, op, touch: Touch, verb: str) -> None:
        """Checks that a fence is between a wait for another block and what TMA does to what that block wrote."""
        groups = self._shadow(touch.memory).write["group"][touch.places]
        for number, (warp, time) in self.told.items():
            theirs = groups == number
            if theirs.any() and self.fenced[warp] < time:
                place = touch.places[theirs.argmax()]
                self._add(
                    "proxy",
                    f"{verb} {self.where(touch.memory, place)} through the async proxy, and no "
                    "fence.proxy.async is behind the wait for the block that wrote it",
                    op,
                )

    # Messages.

    def out_of_bounds(self, fiber, op, view, coordinates, wrong: np.ndarray, rank: int) -> None:
        """Adds the finding that lanes (or all) touch elements outside of a view."""
        first = tuple(np.argwhere(wrong)[0])
        lane = fiber.lanes[first[0]] if wrong.ndim > rank and wrong.shape[0] == len(fiber.lanes) else fiber.lanes[0]
        place = []
        for coordinate in coordinates:
            if isinstance(coordinate, np.ndarray):
                full = np.broadcast_to(
                    coordinate,
                    np.broadcast_shapes(
                        coordinate.shape, (1,) * (coordinate.ndim - rank) + wrong.shape[wrong.ndim - rank :]
                    ),
                )
                coordinate = (
                    full[(lane, *first[wrong.ndim - rank :])]
                    if full.ndim > rank and full.shape[0] > 1
                    else full[(0,) * (full.ndim - rank) + first[wrong.ndim - rank :]]
                )
            place.append(int(coordinate))
        sizes = [int(np.ravel(size)[0]) for size in view.sizes]
        self._add(
            "out-of-bounds",
            f"{fiber.group.thread_name(lane)} touches element {place} of "
            f"{'x'.join(map(str, sizes))}x{view.element.name}"
            f"{f' ({view.memory.name})' if view.memory.name else ''}",
            op,
        )

    def misaligned(self, fiber, op, address: int, alignment: int) -> None:
        """Adds the finding that an address is no multiple of what the access needs."""
        self._add(
            "misaligned",
            f"{fiber.group.thread_name(fiber.lanes[0])}: address {address:#x} is no multiple of {alignment} bytes",
            op,
        )

    def report(self, kind: str, message: str, op, other=None) -> None:
        """Adds a finding of another kind."""
        self.findings.add(kind, message, op, other)

    def _add(self, kind: str, message: str, op, other: int = -1) -> None:
        self.findings.add(kind, message, op, self.instructions[other] if other >= 0 else None)

    def _race(self, op, touch: Touch, first: int, verb: str, did: str, actor: int, by: int) -> None:
        self._add(
            "race",
            f"{self._actor(touch.actors[first])} {verb} {self.where(touch.memory, touch.places[first])}, "
            f"which {self._actor(actor)} {did}, and nothing orders them",
            op,
            by,
        )

    def _actor(self, actor: int) -> str:
        return self.group.warp_name(actor) if actor < self.group.warps else "an asynchronous copy"

    def where(self, memory, place: int) -> str:
        """Returns the address of a granule, for a message."""
        offset = int(place) * self.granule
        if memory.space == "shared":
            block, offset = divmod(offset, memory.size)
            rank = f" of the cluster's block {block}" if memory.copies > 1 else ""
            return f"byte {offset:#x} of shared memory{rank}"
        return f"byte {offset:#x} of {memory.name or 'global memory'}"
