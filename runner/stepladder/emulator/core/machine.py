"""The machine: executes a program, with its memory and its launches, and schedules groups of blocks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator import MAX_STEPS
from stepladder.emulator.core import processes
from stepladder.emulator.core.blocks import Blocks
from stepladder.emulator.core.fibers import Stopped, TooManySteps
from stepladder.emulator.core.granularity import Granularity
from stepladder.emulator.core.groups import Group
from stepladder.emulator.core.places import Places
from stepladder.emulator.core.program import Function, Instruction, Program
from stepladder.emulator.hardware import dependent_launch, launch_limits
from stepladder.emulator.memory.findings import Findings, NoSanitizer
from stepladder.emulator.memory.heap import Heap
from stepladder.emulator.memory.memory import Allocation
from stepladder.emulator.memory.sanitizer import Sanitizer
from stepladder.runtime.errors import FAILED, StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.timeline import Timeline
    from stepladder.emulator.hardware.counters import Counters

# Nested calls on the host, each of which takes several of Python.
_DEPTH = 100
# Times that threads may poll the same value when nothing else can make progress.
_SPINS = 1000


class Machine:
    """Executes a program.

    Attributes:
        heap: global memory.
        globals: views of the module's globals in global memory, by name.
        published: by address of a value in global memory, the clocks of each release of it, by group.
        findings: what the sanitizer found.
        counters: `counters.Counters`, or None.
        steps: instructions executed so far, of at most `max_steps`.
        ticks: that clocks show beside the steps (`dialects.nvvm_threads`).
        views: memrefs that are elements of memory, by the integer that represents each there.
        output: what the program prints, as pieces of text.
        unfinished: blocks of asynchronous launches that wait for what is launched later.
        timeline: notes what is executed and what is in flight, or None.
        current: the fiber that executes, or did last.
        stopped: whether the program has ended before its end, as `abort` does.
        reverses_blocks: whether the blocks of a launch begin with the last.
        processes: that may run the blocks of a launch at once.
    """

    def __init__(
        self,
        program: Program,
        *,
        sanitize: bool = True,
        counters: Counters | None = None,
        max_steps: int = MAX_STEPS,
        granularity: Granularity | None = None,
        progress: Callable[[int, int], None] | None = None,
        stops_at_assertions: bool = True,
        timeline: Timeline | None = None,
        reverses_blocks: bool = False,
        parts: int = 1,
    ) -> None:
        self.program = program
        self.processes = parts
        self.reverses_blocks = reverses_blocks
        self.timeline = timeline
        self.heap = Heap()
        self.globals: dict = {}
        self.published: dict = {}
        self.blocks_meet = False  # whether a block has learned what another one did
        self.current: Fiber | None = None
        self.findings = Findings(explain=Places(self).notes)
        self.sanitize = sanitize
        self.granularity = granularity or Granularity()
        self.counters = counters
        self.max_steps = max_steps
        self.steps = 0
        self.ticks = 0
        self._depth = 0  # of calls on the host
        self._begun = 0  # blocks
        self.progress = progress
        self.output: list[str] = []
        self.unfinished: list[Group] = []
        self.stopped = False
        self.views: list = []
        self.stops_at_assertions = stops_at_assertions
        self._launches = 0
        self._is_dependent = False  # the last launch

    def free(self, op: Instruction, memory: Allocation) -> None:
        """Frees memory of the heap; a second free, or a later access, is a finding.

        Args:
            op: that frees it.
            memory: an allocation of the heap.
        """
        if self.sanitize and memory.freed is not None:
            self.findings.add("use-after-free", "frees memory that has already been freed", op, memory.freed)
        memory.freed = op

    def new_sanitizer(self) -> Sanitizer | NoSanitizer:
        """Returns the sanitizer of a new group."""
        return (
            Sanitizer(self.findings, self.program.instructions, granularity=self.granularity)
            if self.sanitize
            else NoSanitizer()
        )

    def call(self, function: Function, arguments: Sequence) -> list:
        """Runs a function on the host and returns its results.

        Args:
            function: of the host.
            arguments: a value for each of its arguments, in the forms of `values`.

        Raises:
            Stopped: the program ended itself, as `abort` does.
            StepladderError: an op in a form that the emulator does not support, or more than `max_steps`.
        """
        if self._depth == _DEPTH:
            raise StepladderError(
                f"calls are nested more than {_DEPTH} deep, at @{function.name}: does it call itself endlessly?",
                location=function.location,
                status=FAILED,
            )
        group = Group(self, -1, "the host", np.zeros((1, 3), int), Blocks((1, 1, 1)), is_host=True)
        env: list = [None] * len(self.program.slot_types)
        for slot, value in zip(function.arguments, arguments):
            env[slot] = value
        group.start(function.code, env)
        self._depth += 1
        with np.errstate(all="ignore"):
            group.run()
        self._depth -= 1
        if not group.is_done:
            self._deadlock([group])
        if self.stopped:
            raise Stopped
        return group.state.get("returned", [])

    def run(self, function: Function, arguments: Sequence) -> list:
        """Runs the program from a function of the host to its end; returns the results, none where it stopped.

        Args:
            function: of the host.
            arguments: a value for each of its arguments, in the forms of `values`.

        Raises:
            StepladderError: an op in a form that the emulator does not support, or more than `max_steps`.
        """
        try:
            results = self.call(function, arguments)
        except Stopped:
            return []
        self.finish_launches()
        return results

    def launch(
        self,
        code: list[Instruction],
        env_of: Callable[[Group], list],
        blocks: Blocks,
        *,
        asynchronously: bool = False,
        dependent: bool = False,
        triggers_late: bool = False,
    ) -> None:
        """Runs a grid of blocks to its end, those of a cluster together.

        Args:
            code: the instructions of the kernel.
            env_of: returns the initial values of a group by slot.
            blocks: of the grid.
            asynchronously: whether blocks that cannot end may wait for later launches.
            dependent: whether the launch may begin before the previous one has ended, as one that waits for that may.
            triggers_late: whether it states that it lets the next one begin only after it has waited.
        """
        if self.counters is not None:
            self.counters.blocks += math.prod(blocks.grid)
        total = blocks.clusters
        resident_limit: float = (
            launch_limits.resident(blocks.threads, blocks.window_bytes) if self.sanitize else math.inf
        )
        self._is_dependent = dependent or dependent_launch.is_dependent(code)
        active, self.unfinished = self.unfinished, []
        waiting = len(active)
        first = self._launches if active else 0
        self._launches = first + total
        several = not active and processes.can_part(self, code)

        def start(number: int) -> Group:
            cluster = total - 1 - number if self.reverses_blocks else number
            group = self._group(blocks, cluster, first + cluster)
            self._begin(group, code, env_of, triggers_late=triggers_late)
            return group

        for number in range(total):
            began = time.process_time() if several else 0.0  # a system call
            active.append(start(number))
            # Blocks run one after the other; one that waits for another waits until that has run.
            while any([group.run() for group in active]) and len(active) > 1:
                active = [group for group in active if not group.is_done]
            active = [group for group in active if not group.is_done]
            if number + 1 < total and sum(group.blocks for group in active) >= resident_limit:
                self._report_residency(active, resident_limit)
                resident_limit = math.inf
            several = several and not active
            if several and (total - 1 - number) * (time.process_time() - began) > processes.WORTH:
                several = False
                if processes.run_parts(self, range(number + 1, total), start):
                    break
            if self.progress:
                self.progress(max(0, number + 1 + waiting - len(active)), total)
        self.unfinished = active
        if not asynchronously or not active:
            self.finish_launches()

    def _begin(
        self, group: Group, code: list[Instruction], env_of: Callable[[Group], list], *, triggers_late: bool
    ) -> None:
        """Begins to run the blocks of a group; the arguments are those of `launch`."""
        if self._is_dependent:
            group.sanitizer.begin_before_launch(triggers_late)
            if triggers_late:
                group.at_end.append(lambda: group.sanitizer.check_exit(code[-1]))
        group.start(code, env_of(group))
        self._count_block(code)

    def _count_block(self, code: list[Instruction]) -> None:
        """Holds the blocks that have begun against `max_steps` too: those of an empty kernel take time as well."""
        self._begun += 1
        if self._begun > self.max_steps:
            text = f"stopped when {self.max_steps} blocks had begun: is the grid too large?"
            raise TooManySteps(text, code[0].location if code else "")

    def finish_launches(self) -> None:
        """Waits for all launches: blocks that cannot end are a deadlock. Later accesses are after all of them."""
        active, self.unfinished = self.unfinished, []
        for _ in range(_SPINS):
            if not any(fiber.wait.pauses for group in active for fiber in group.blocked):
                break
            for group in active:
                group.run()
            active = [group for group in active if not group.is_done]
        if active:
            self._deadlock(active)
        self.heap.forget(dependent=self._is_dependent)
        self.published.clear()

    def _group(self, blocks: Blocks, cluster: int, number: int) -> Group:
        """Returns the group of a cluster of a launch; `number` is its index in all unfinished launches."""
        ids = blocks.ids(cluster)
        place = ", ".join(map(str, ids[0]))
        name = f"block ({place})" if len(ids) == 1 else f"the cluster at block ({place})"
        return Group(self, number, name, ids, blocks)

    def _report_residency(self, waiting: list[Group], resident_limit: float) -> None:
        """Reports as many blocks that wait as a GPU holds, where others have not begun."""
        fiber = next((fiber for group in waiting for fiber in group.blocked), None)
        if fiber is None:
            return
        self.findings.add(
            "deadlock",
            f"{int(resident_limit)} resident blocks, as many as a GPU holds, wait for blocks that have not started: "
            f"{waiting[0].waiting()[0]}",
            fiber.code[fiber.place],
        )

    def _deadlock(self, groups: list[Group]) -> None:
        for group in groups:
            for explain in group.on_deadlock:
                explain()
        lines = [line for group in groups[:2] for line in group.waiting()]
        fiber = next(fiber for group in groups for fiber in group.blocked)
        self.findings.add("deadlock", "no thread can continue: " + "; ".join(lines), fiber.code[fiber.place])
