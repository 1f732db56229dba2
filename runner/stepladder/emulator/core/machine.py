"""Threads, blocks and clusters, and who runs next.

A `Fiber` is a set of threads of one group that run in step: it has a place in the instructions and the values of its
threads, in lanes. Where threads part, at a branch that they take differently, the fiber becomes two, which come
together again behind it (`Convergence`). Where all that is left waits, those warps of a fiber that could go on leave
the others behind, as they would on hardware. A `Group` is a block, or the blocks of a cluster, which see each other's
shared memory: all its threads are lanes of the same arrays.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from stepladder.emulator import MAX_STEPS
from stepladder.emulator.core import values
from stepladder.emulator.core.program import Body, Function, Instruction, Program
from stepladder.emulator.memory.memory import Allocation, Heap
from stepladder.emulator.memory.sanitizer import WARP, Findings, NoSanitizer, Sanitizer
from stepladder.runtime.errors import FAILED, StepladderError


class Unsupported(StepladderError):
    """A form of an op that the emulator does not know; says where it stands."""

    def __init__(self, op: Instruction, text: str):
        super().__init__(f"the emulator does not know {op.name} {text}", location=op.location)


class Blocked(Exception):
    """The op cannot go on yet, and is executed again later.

    Args:
        reason: what it waits for, for the message about a deadlock.
        ready: bool array (T,) of lanes that could go on without the others, or None.
    """

    def __init__(self, reason: str, ready: np.ndarray | None = None):
        super().__init__(reason)
        self.reason = reason
        self.ready = ready


class Left(Exception):
    """The fiber is no longer what runs: it ended, parted, or waits for others to come together with."""


class Convergence:
    """Where threads that parted come together: behind a branch or a loop.

    Attributes:
        place: of the instruction that they meet at.
        expected, arrived: bool arrays (T,).
        parts: the lanes that came together, with their values for `slots`.
    """

    __slots__ = ("arrived", "expected", "group", "last", "parts", "place", "slots")

    def __init__(self, group: Group, place: int, slots: Sequence[int], expected: np.ndarray):
        self.group = group
        self.place = place
        self.slots = slots
        self.expected = expected.copy()
        self.arrived = np.zeros_like(expected)
        self.parts: list[tuple[np.ndarray, list]] = []
        self.last: Fiber | None = None
        group.convergences.append(self)

    def arrive(self, fiber: Fiber, mask: np.ndarray, arrived: list) -> None:
        """Lets lanes of a fiber arrive, with their values; goes on with all when the last are here."""
        self.arrived |= mask
        self.parts.append((mask, arrived))
        self.last = fiber
        if (self.arrived == self.expected).all():
            self._go_on(self.expected)

    def release(self) -> bool:
        """Lets those warps go on of which all threads have arrived; returns whether there are any."""
        group = self.group
        missing = np.zeros(group.warps, bool)
        missing[group.warp_of_lane[self.expected & ~self.arrived]] = True
        ready = self.arrived & ~missing[group.warp_of_lane]
        if not ready.any():
            return False
        self._go_on(ready)
        return True

    def _go_on(self, mask: np.ndarray) -> None:
        group, last = self.group, self.last
        env = list(last.env)
        masks = [part & mask for part, _ in self.parts]
        here = [number for number, part in enumerate(masks) if part.any()]
        for number, slot in enumerate(self.slots):
            env[slot] = values.merge(
                [self.parts[part][1][number] for part in here],
                [masks[part] for part in here],
                group.count,
                group.rank_of(slot),
            )
        stack = last.stack[: last.stack.index(self)] if self in last.stack else list(last.stack)
        group.ready.append(Fiber(group, last.code, self.place + 1, env, mask, stack))
        self.parts = [(part & ~mask, arrived) for part, arrived in self.parts if (part & ~mask).any()]
        self.expected = self.expected & ~mask
        self.arrived = self.arrived & ~mask
        if not self.expected.any():
            group.convergences.remove(self)


class Fiber:
    """Threads of one group that run in step.

    Attributes:
        group: the blocks that they belong to.
        count: T, the number of lanes, active or not.
        mask: bool array (T,) of those that are active, or None for all.
        lanes: their numbers.
        warps: the numbers of their warps, each once.
        env: values by slot.
        stack: where they will come together with others, the outermost first.
        pending: what the op that waits has done already; it is executed again.
    """

    __slots__ = ("blocked", "code", "count", "env", "group", "lanes", "mask", "pending", "place", "stack", "warps")

    def __init__(
        self,
        group: Group,
        code: list[Instruction],
        place: int,
        env: list,
        mask: np.ndarray | None,
        stack: list | None = None,
    ):
        self.group = group
        self.code = code
        self.place = place
        self.env = env
        self.stack = stack or []
        self.pending = None
        self.blocked: Blocked | None = None
        self.count = group.count
        self.narrow(mask)

    def narrow(self, mask: np.ndarray | None) -> None:
        """Makes these lanes the active ones."""
        self.mask = None if mask is None or mask.all() else mask
        self.lanes = np.arange(self.count) if self.mask is None else np.flatnonzero(mask)
        self.warps = np.unique(self.group.warp_of_lane[self.lanes])

    @property
    def active(self) -> np.ndarray:
        """The active lanes as a bool array (T,)."""
        return np.ones(self.count, bool) if self.mask is None else self.mask

    def split(self, mask: np.ndarray) -> Fiber:
        """Parts from these lanes; returns the fiber that they are."""
        other = Fiber(self.group, self.code, self.place, list(self.env), mask, list(self.stack))
        other.pending = self.pending
        self.narrow(self.active & ~mask)
        return other

    def representatives(self) -> Fiber:
        """Returns the same fiber with one thread a warp: for what a warp does as one."""
        mask = np.zeros(self.count, bool)
        mask[self.lanes[np.unique(self.group.warp_of_lane[self.lanes], return_index=True)[1]]] = True
        return Fiber(self.group, self.code, self.place, self.env, mask, self.stack)

    def first(self, value, rank: int = 0):
        """Returns what the first active lane has of a value."""
        return value if values.is_uniform(value, rank) else value[self.lanes[0]]

    def agreed(self, value):
        """Returns a number as a uniform one if all active lanes have the same, else as it is."""
        if not isinstance(value, np.ndarray):
            return value
        own = value[self.lanes]
        return own[0].item() if (own == own[0]).all() else value

    def evaluate(self, body: Body, arguments: Sequence) -> list:
        """Returns what a body without control flow yields for values of its arguments."""
        env = self.env
        for slot, value in zip(body.arguments, arguments):
            env[slot] = value
        for op in body.code:
            result = op.execute(self, op, *[env[slot] for slot in op.operands])
            if len(op.results) == 1:
                env[op.results[0]] = result
            elif op.results:
                for slot, value in zip(op.results, result):
                    env[slot] = value
        return [env[slot] for slot in body.yields]


class Group:
    """Blocks that see each other's shared memory: one, or those of a cluster; the host is a group of one thread.

    Attributes:
        number: among the groups of a launch; `name` says it to people.
        block_ids: of each block, arrays (blocks, 3).
        threads: of a block; `count` of all.
        thread_id, block_id: x, y, z, each an int array (T,), or an int where there is one.
        warp_of_lane, block_of_lane, thread_of_lane: int arrays (T,).
        window: shared memory, one copy a block; `layout` says what stands where in it.
        state: what dialects keep for the group, by a key of theirs.
        at_end: called when all threads have ended; `on_deadlock` where they cannot.
    """

    def __init__(
        self,
        machine: Machine,
        number: int,
        name: str,
        block_ids: np.ndarray,
        block_dims: Sequence[int],
        grid_dims: Sequence[int] = (1, 1, 1),
        cluster_dims: Sequence[int] = (1, 1, 1),
        *,
        window_bytes: int = 0,
        layout: dict | None = None,
        is_host: bool = False,
    ):
        self.machine = machine
        self.number = number
        self.name = name
        self.block_ids = block_ids
        self.block_dims = tuple(block_dims)
        self.grid_dims = tuple(grid_dims)
        self.cluster_dims = tuple(cluster_dims)
        self.is_host = is_host
        self.blocks = len(block_ids)
        self.threads = math.prod(block_dims)
        self.count = self.blocks * self.threads
        lane = np.arange(self.count)
        self.thread_of_lane = lane % self.threads
        self.block_of_lane = lane // self.threads
        x, y, _ = self.block_dims
        self.thread_id = tuple(
            0 if size == 1 else place
            for size, place in zip(
                self.block_dims, (self.thread_of_lane % x, self.thread_of_lane // x % y, self.thread_of_lane // (x * y))
            )
        )
        self.block_id = tuple(
            int(block_ids[0, axis])
            if (block_ids[:, axis] == block_ids[0, axis]).all()
            else block_ids[self.block_of_lane, axis]
            for axis in range(3)
        )
        self.warps_per_block = -(-self.threads // WARP)
        self.warp_of_lane = self.block_of_lane * self.warps_per_block + self.thread_of_lane // WARP
        self.warps = self.blocks * self.warps_per_block
        self.window = None if is_host else Allocation(window_bytes, copies=self.blocks, space="shared")
        self.layout = layout or {}
        self.state: dict = {}
        self.at_end: list[Callable[[], None]] = []
        self.on_deadlock: list[Callable[[], None]] = []
        self.ready: deque[Fiber] = deque()
        self.blocked: list[Fiber] = []
        self.convergences: list[Convergence] = []
        self.finished = np.zeros(self.count, bool)
        self.private: dict = {}
        self.counters = machine.counters
        self.sanitizer = machine.new_sanitizer()
        self.sanitizer.attach(self)

    # Names for messages.

    def thread_name(self, lane: int) -> str:
        """Returns a thread's name."""
        if self.is_host:
            return "the host"
        block = self.block_ids[self.block_of_lane[lane]]
        return f"thread {self.thread_of_lane[lane]} of block ({', '.join(map(str, block))})"

    def warp_name(self, warp: int) -> str:
        """Returns a warp's name."""
        block, number = divmod(int(warp), self.warps_per_block)
        return f"warp {number} of block ({', '.join(map(str, self.block_ids[block]))})"

    # What instructions ask.

    def rank_of(self, slot: int) -> int:
        """Returns the number of dimensions of a slot's values."""
        return self.machine.program.slot_types[slot].rank

    def copy_of_lane(self, memory: Allocation) -> np.ndarray:
        """Returns, for each lane, which copy of an allocation is its own."""
        return self.block_of_lane if memory.space == "shared" else np.arange(self.count)

    # Running.

    def start(self, code: list[Instruction], env: list) -> None:
        """Begins with all threads at the first instruction."""
        self.ready.append(Fiber(self, code, 0, env, None))

    @property
    def is_done(self) -> bool:
        """Whether all threads have ended."""
        return not (self.ready or self.blocked or self.convergences)

    def run(self) -> bool:
        """Runs until all threads have ended or all wait; returns whether any instruction was executed."""
        ran = False
        while True:
            while self.ready:
                ran |= self._execute(self.ready.popleft())
            if not self.blocked and not self.convergences:
                for end in self.at_end:
                    end()
                return True
            waiting, self.blocked = self.blocked, []
            if any([self._execute(fiber) for fiber in waiting]):
                ran = True
            elif not (any(convergence.release() for convergence in list(self.convergences)) or self._part()):
                return ran

    def _part(self) -> bool:
        """Lets warps that could go on leave those behind that cannot; returns whether there are any."""
        for fiber in self.blocked:
            ready = fiber.blocked.ready
            if ready is None:
                continue
            stays = np.zeros(self.warps, bool)
            stays[self.warp_of_lane[fiber.active & ~ready]] = True
            goes = fiber.active & ~stays[self.warp_of_lane]
            if goes.any() and not (goes == fiber.active).all():
                self.ready.append(fiber.split(goes))
                return True
        return False

    def _execute(self, fiber: Fiber) -> bool:
        """Runs a fiber until it waits, parts or ends; returns whether it executed anything."""
        code, env, machine = fiber.code, fiber.env, self.machine
        done = 0
        allowed = machine.max_steps - machine.steps
        fiber.blocked = None
        try:
            while True:
                op = code[fiber.place]
                fiber.place += 1
                result = op.execute(fiber, op, *[env[slot] for slot in op.operands])
                results = op.results
                if len(results) == 1:
                    env[results[0]] = result
                elif results and result is not None:
                    for slot, value in zip(results, result):
                        env[slot] = value
                done += 1
                if done > allowed:
                    raise StepladderError(
                        f"stopped after {machine.max_steps} steps, at {op.name}: an endless loop?",
                        location=op.location,
                        status=FAILED,
                        notes=["--max-steps allows more"],
                    )
        except Blocked as blocked:
            fiber.place -= 1
            fiber.blocked = blocked
            self.blocked.append(fiber)
        except Left:
            done += 1
        finally:
            machine.steps += done
        return done > 0

    def waiting(self) -> list[str]:
        """Returns who waits for what, a line each, for the message about a deadlock."""
        lines = []
        for fiber in self.blocked:
            op = fiber.code[fiber.place]
            names = ", ".join(self.warp_name(warp) for warp in fiber.warps[:4])
            more = f" and {len(fiber.warps) - 4} more" if len(fiber.warps) > 4 else ""
            lines.append(f"{names}{more} at {op.describe()}: {fiber.blocked.reason}")
        return lines


class Machine:
    """Executes a program.

    Attributes:
        heap: global memory.
        globals: views of the module's globals in global memory, by name.
        published: by address of a number in global memory, what each knew who released it: clocks by group.
        findings: what the sanitizer found.
        counters: `counters.Counters`, or None.
        steps: instructions executed so far, of at most `max_steps`.
    """

    def __init__(
        self,
        program: Program,
        *,
        sanitize: bool = True,
        counters=None,
        max_steps: int = MAX_STEPS,
        granule: int = 2,
        progress: Callable[[int, int], None] | None = None,
    ):
        self.program = program
        self.heap = Heap()
        self.globals: dict = {}
        self.published: dict = {}
        self.findings = Findings()
        self.sanitize = sanitize
        self.granule = granule
        self.counters = counters
        self.max_steps = max_steps
        self.steps = 0
        self.progress = progress

    def new_sanitizer(self) -> Sanitizer | NoSanitizer:
        """Returns what checks the accesses of a new group."""
        return (
            Sanitizer(self.findings, self.program.instructions, granule=self.granule)
            if self.sanitize
            else NoSanitizer()
        )

    def call(self, function: Function, arguments: Sequence) -> list:
        """Runs a function on the host and returns its results."""
        group = Group(self, -1, "the host", np.zeros((1, 3), int), (1, 1, 1), is_host=True)
        env: list = [None] * len(self.program.slot_types)
        for slot, value in zip(function.arguments, arguments):
            env[slot] = value
        group.start(function.code, env)
        with np.errstate(all="ignore"):
            group.run()
        if not group.is_done:
            self._deadlock([group])
        return group.state.get("returned", [])

    def launch(
        self,
        code: list[Instruction],
        env_of: Callable[[Group], list],
        grid: Sequence[int],
        block: Sequence[int],
        cluster: Sequence[int],
        window_bytes: int,
        layout: dict,
    ) -> None:
        """Runs a grid of blocks to its end, those of a cluster together.

        Args:
            env_of: makes the values that a group begins with.
            window_bytes: shared memory of a block; `layout` says where in it what stands.
        """
        if self.counters is not None:
            self.counters.blocks += math.prod(grid)
        clusters = [size // of for size, of in zip(grid, cluster)]
        total = math.prod(clusters)
        active: list[Group] = []
        done = 0
        for number in range(total):
            active.append(self._group(number, grid, block, cluster, clusters, window_bytes, layout))
            active[-1].start(code, env_of(active[-1]))
            # Blocks run one after the other; one that waits for another waits until that has run.
            while any([group.run() for group in active]) and len(active) > 1:
                active = [group for group in active if not group.is_done]
            active = [group for group in active if not group.is_done]
            done = number + 1 - len(active)
            if self.progress:
                self.progress(done, total)
        if active:
            self._deadlock(active)
        # What follows a launch is behind all of it.
        self.heap.forget()
        self.published.clear()

    def _group(self, number: int, grid, block, cluster, clusters, window_bytes: int, layout: dict) -> Group:
        first = [number % clusters[0], number // clusters[0] % clusters[1], number // (clusters[0] * clusters[1])]
        ids = np.array(
            [
                [first[0] * cluster[0] + x, first[1] * cluster[1] + y, first[2] * cluster[2] + z]
                for z in range(cluster[2])
                for y in range(cluster[1])
                for x in range(cluster[0])
            ]
        )
        place = ", ".join(map(str, ids[0]))
        name = f"block ({place})" if len(ids) == 1 else f"the cluster at block ({place})"
        return Group(self, number, name, ids, block, grid, cluster, window_bytes=window_bytes, layout=layout)

    def _deadlock(self, groups: list[Group]) -> None:
        for group in groups:
            for explain in group.on_deadlock:
                explain()
        lines = [line for group in groups[:2] for line in group.waiting()]
        fiber = next(fiber for group in groups for fiber in group.blocked)
        self.findings.add("deadlock", "nobody can go on: " + "; ".join(lines), fiber.code[fiber.place])
