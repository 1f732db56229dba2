"""Threads, blocks and clusters, and the scheduling of their fibers.

A `Fiber` is a set of threads of one group that execute in step: it has a program counter and the values of its
threads, in lanes. At a divergent branch it splits into two fibers, which reconverge after the branch (`Convergence`).
When no fiber of a group can proceed, the warps of a fiber that could proceed alone split from the others, as on
hardware. A `Group` is a block, or the blocks of a cluster, which access each other's shared memory: all its threads are
lanes of the same arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.fibers import Blocked, Convergence, Fiber, Left, TooManySteps
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.memory.memory import PRIVATE_BASE, Allocation
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.blocks import Blocks
    from stepladder.emulator.core.machine import Machine

# Entries of `Group.layout` that are values of the launch, not offsets.
DYNAMIC, LAUNCHED = "dynamic bytes", "registers of a thread"
_ENDS = ("ret", "exit", "llvm.return", "gpu.return", "gpu.terminator")  # ops that a thread ends in
_OWN_ALIGNMENT = 1024  # bytes, of what a thread has for itself
# Exceptions of an op whose form or types are not supported.
_SURPRISES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


def _thread_ids(thread_of_lane: np.ndarray, block_dims: Sequence[int]) -> tuple:
    """Returns x, y and z of each lane's thread; 0 along an axis of one thread."""
    x, y, _ = block_dims
    places = (thread_of_lane % x, thread_of_lane // x % y, thread_of_lane // (x * y))
    return tuple(0 if size == 1 else place for size, place in zip(block_dims, places))


def _block_ids(block_of_lane: np.ndarray, block_ids: np.ndarray) -> tuple:
    """Returns x, y and z of each lane's block; an int along an axis where all blocks have the same."""
    return tuple(
        int(of_blocks[0]) if (of_blocks == of_blocks[0]).all() else of_blocks[block_of_lane]
        for of_blocks in block_ids.transpose()
    )


class Group:
    """Blocks that see each other's shared memory: one, or those of a cluster; the host is a group of one thread.

    Attributes:
        number: of the group in its launch; `name` is its text in messages.
        block_ids: of each block, arrays (blocks, 3).
        threads: of a block; `count` of all.
        warp: threads of a warp, or of a subgroup where a kernel states its size.
        thread_id, block_id: x, y, z, each an int array (T,), or an int where there is one.
        warp_of_lane, block_of_lane, thread_of_lane: int arrays (T,).
        all_lanes, all_warps: their indices; `all_active` is the mask (T,) of all threads.
        window: shared memory, one copy a block; `layout` maps its contents to offsets, `DYNAMIC` and
            `LAUNCHED` to values.
        state: what dialects keep for the group, by a key of theirs.
        at_end: called when all threads have ended; `on_deadlock` where they cannot.
    """

    def __init__(
        self,
        machine: Machine,
        number: int,
        name: str,
        block_ids: np.ndarray,
        launched: Blocks,
        *,
        is_host: bool = False,
    ) -> None:
        self.machine = machine
        self.number = number
        self.name = name
        self.block_ids = block_ids
        self.block_dims = tuple(launched.block)
        self.grid_dims = tuple(launched.grid)
        self.cluster_dims = tuple(launched.cluster)
        self.is_host = is_host
        self.warp = launched.warp
        self.blocks = len(block_ids)
        self.threads = launched.threads
        self.count = self.blocks * self.threads
        lane = np.arange(self.count)
        self.thread_of_lane = lane % self.threads
        self.block_of_lane = lane // self.threads
        self.thread_id = _thread_ids(self.thread_of_lane, self.block_dims)
        self.block_id = _block_ids(self.block_of_lane, block_ids)
        self.warps_per_block = -(-self.threads // self.warp)
        self.warp_of_lane = self.block_of_lane * self.warps_per_block + self.thread_of_lane // self.warp
        self.warps = self.blocks * self.warps_per_block
        self.all_lanes = lane
        self.all_warps = np.arange(self.warps)
        self.all_active = np.ones(self.count, bool)
        self.all_active.flags.writeable = False
        self.window = None if is_host else Allocation(launched.window_bytes, copies=self.blocks, space="shared")
        self.layout = launched.layout
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

    @property
    def shared(self) -> Allocation:
        """Shared memory, which the host does not have."""
        assert self.window is not None
        return self.window

    # Names for messages.

    def thread_name(self, lane: int | np.integer) -> str:
        """Returns the name of a thread, for messages.

        Args:
            lane: its index in the group.
        """
        if self.is_host:
            return "the host"
        block = self.block_ids[self.block_of_lane[lane]]
        return f"thread {self.thread_of_lane[lane]} of block ({', '.join(map(str, block))})"

    def warp_name(self, warp: int) -> str:
        """Returns the name of a warp, for messages.

        Args:
            warp: its index in the group.
        """
        block, number = divmod(int(warp), self.warps_per_block)
        return f"warp {number} of block ({', '.join(map(str, self.block_ids[block]))})"

    # Recorded by the timeline, if there is one.

    def begins(self, row: str, op: Instruction, flight: object, description: str = "") -> None:
        """Notes that an asynchronous operation begins.

        Args:
            row: of the timeline.
            op: that begins it.
            flight: the operation; the same object is given to `ends`.
            description: details, for the timeline.
        """
        if self.machine.timeline is not None:
            self.machine.timeline.begins(self, row, op, flight, description)

    def ends(self, flight: object) -> None:
        """Notes that an asynchronous operation is complete.

        Args:
            flight: the object given to `begins`.
        """
        if self.machine.timeline is not None:
            self.machine.timeline.ends(flight)

    # Queries of instructions.

    def rank_of(self, slot: int) -> int:
        """Returns the number of dimensions of a slot's values.

        Args:
            slot: of the program.
        """
        return self.machine.program.slot_types[slot].rank

    def copy_of_lane(self, memory: Allocation) -> np.ndarray:
        """Returns the index of the copy of an allocation that each lane accesses: int array (T,).

        Args:
            memory: with a copy for each block ("shared") or for each thread ("private").
        """
        return self.block_of_lane if memory.space == "shared" else np.arange(self.count)

    def own_memory(self, size: int) -> Allocation:
        """Returns a new allocation with a copy for each thread.

        Args:
            size: bytes of one copy.
        """
        end = max((memory.address + memory.size for memory in self.private.values()), default=PRIVATE_BASE)
        address = -(-end // _OWN_ALIGNMENT) * _OWN_ALIGNMENT
        return Allocation(size, copies=self.count, space="private", address=address, name="a thread's own memory")

    # Running.

    def start(self, code: list[Instruction], env: list) -> None:
        """Makes all threads ready to execute from the first instruction.

        Args:
            code: the instructions.
            env: values by slot.
        """
        self.ready.append(Fiber(self, code, 0, env, None))

    @property
    def is_done(self) -> bool:
        """Whether all threads have ended."""
        return not (self.ready or self.blocked or self.convergences)

    def about_to_end(self) -> np.ndarray:
        """Returns the threads that have ended, or wait for others only to end beside them: bool array (T,)."""
        threads = self.finished.copy()
        for convergence in self.convergences:
            if convergence.is_in_front_of(_ENDS):
                threads |= convergence.arrived
        return threads

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
        """Splits the warps that can proceed from those that cannot; returns whether there are any."""
        for fiber in self.blocked:
            ready = fiber.wait.ready
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
        """Runs a fiber until it waits, splits or ends; returns whether it executed anything."""
        code, env, machine = fiber.code, fiber.env, self.machine
        machine.current = fiber
        executed_steps = 0
        step_limit = machine.max_steps - machine.steps
        timeline = machine.timeline
        began, first = (timeline.now, code[fiber.place]) if timeline is not None else (0, None)
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
                executed_steps += 1
                if timeline is not None:
                    timeline.now += 1
                if executed_steps > step_limit:
                    text = f"stopped after {machine.max_steps} steps, at {op.name}: an endless loop?"
                    raise TooManySteps(text, op.location)
        except Blocked as blocked:
            fiber.place -= 1
            fiber.blocked = blocked
            self.blocked.append(fiber)
            if blocked.pauses:
                machine.steps += executed_steps
                return False
        except _SURPRISES as error:
            raise StepladderError(
                f"the emulator cannot execute {op.name} in this form ({type(error).__name__}: {error})",
                location=op.location,
            ) from error
        except StepladderError as error:
            error.location = error.location or op.location
            raise
        except Left:
            executed_steps += 1
            if machine.stopped:
                self.ready.clear()
                self.blocked.clear()
                self.convergences.clear()
        finally:
            machine.steps += executed_steps
            if timeline is not None and first is not None:
                reason = fiber.blocked.reason if fiber.blocked is not None else None
                timeline.executed(fiber, began, first, op, reason)
        return executed_steps > 0

    def waiting(self) -> list[str]:
        """Returns a line for each wait, for the message about a deadlock."""
        lines = []
        for fiber in self.blocked:
            op = fiber.code[fiber.place]
            names = ", ".join(self.warp_name(warp) for warp in fiber.warps[:4])
            more = f" and {len(fiber.warps) - 4} more" if len(fiber.warps) > 4 else ""
            lines.append(f"{names}{more} at {op.describe()}: {fiber.wait.reason}")
        return lines
