"""Checks of accesses to global memory, where blocks meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.memory import lone_arrivals
from stepladder.emulator.memory.reports import Reports
from stepladder.emulator.memory.shadow import GlobalShadow, Last, SharedShadow

if TYPE_CHECKING:
    from stepladder.emulator.core.granularity import Granularity
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.memory.findings import Findings
    from stepladder.emulator.memory.memory import Allocation
    from stepladder.emulator.memory.touches import Touch


class GlobalChecks(Reports):
    """Checks the accesses of one group of blocks to global memory.

    Attributes:
        through_proxy: indices of instructions that wrote global memory through the async proxy.
    """

    def __init__(self, findings: Findings, instructions: Sequence[Instruction], *, granularity: Granularity) -> None:
        super().__init__(findings, instructions, granularity=granularity)
        self.through_proxy: set[int] = set()

    def shadow_of(self, memory: Allocation) -> SharedShadow | GlobalShadow:
        """Returns the shadow of an allocation; the first use creates it.

        Args:
            memory: global or shared memory.
        """
        if memory.shadow is None:
            granule = self.granule_of(memory)
            memory.shadow = (
                GlobalShadow(memory, granule)
                if memory.space == "global"
                else SharedShadow(memory, granule, len(self.clocks))
            )
        return memory.shadow

    def shadow_of_shared(self, memory: Allocation) -> SharedShadow:
        """Returns the shadow of shared memory.

        Args:
            memory: an allocation of shared memory.
        """
        shadow = self.shadow_of(memory)
        assert isinstance(shadow, SharedShadow)
        return shadow

    def shadow_of_global(self, memory: Allocation) -> GlobalShadow:
        """Returns the shadow of global memory.

        Args:
            memory: an allocation of global memory.
        """
        shadow = self.shadow_of(memory)
        assert isinstance(shadow, GlobalShadow)
        return shadow

    def check_launch(self, op: Instruction, touch: Touch, before: int, *, writes: bool) -> None:
        """Adds a finding about an array that the previous launch may still write, or read.

        Args:
            op: the instruction.
            touch: what it accesses.
            before: the actor that represents the previous launch.
            writes: whether the access is a write.
        """
        early = np.atleast_1d(self.clocks[touch.actors, before] == 0)
        memory = touch.memory
        if memory.is_kept and not writes and not memory.recently_written:
            return
        if early.any() and memory.is_array:
            place = int(touch.places[early.argmax()])
            verb, may = ("writes", "read or write") if writes else ("reads", "write")
            states = ", which the program states it does not" if memory.is_kept and not writes else ""
            self.add(
                "race",
                f"{verb} {self.where(memory, place)} before griddepcontrol.wait: the launch before may still "
                f"{may} it{states}",
                op,
            )

    def check_trigger(self, op: Instruction, warps: Sequence[int] | np.ndarray) -> None:
        """Adds a finding where a warp lets the next launch begin before it waits, though the kernel states otherwise.

        Args:
            op: the instruction.
            warps: indices of the warps that execute it.
        """
        if self.triggers_late and self.launch_before is not None:
            launch_times = self.clocks[np.asarray(warps), self.launch_before]
            if (launch_times == 0).any():
                self.add(
                    "race",
                    "lets the next launch begin before griddepcontrol.wait, which the program states it does not: that "
                    "one may read early what the launches before this one still write",
                    op,
                )

    def check_exit(self, op: Instruction) -> None:
        """Adds a finding where a block exits, which lets the next launch begin, and none of its warps has waited,
        though the kernel states otherwise.

        Args:
            op: an instruction of the kernel.
        """
        assert self.launch_before is not None
        launch_times = self.clocks[: self.group.warps, self.launch_before].reshape(self.group.blocks, -1)
        if not launch_times.any(axis=1).all():
            self.add(
                "race",
                "a block exits without griddepcontrol.wait, which lets the next launch begin: the program states that "
                "all launches before this one have ended then",
                op,
            )

    def check_global(self, op: Instruction, touch: Touch, last: Last, writes: bool, did: str) -> None:
        """Adds a finding about an access that nothing orders with an earlier one.

        Args:
            op: the instruction.
            touch: what it accesses.
            last: the last writes, or the last reads, of the memory.
            writes: whether the access is a write.
            did: what the earlier access did, for the message: "wrote" or "read".
        """
        if not last.any:
            return
        owner = touch.of(last.owner)
        if not np.count_nonzero(owner):
            return
        verb = "writes" if writes else "reads"
        group = owner - 1
        own = group == self.group.number
        if np.count_nonzero(own):
            actor = touch.of(last.actor)
            times = touch.of(last.at)
            is_unordered = own & (actor != touch.actors) & (self.clocks[touch.actors, actor] < times)
            if self.lone and is_unordered.any():
                is_unordered &= ~lone_arrivals.excused(self, touch.actors, actor, times, None, wrote=True)
            if is_unordered.any():
                first = int(is_unordered.argmax())
                self.race(op, touch, first, verb, did, int(actor[first]), int(last.by[touch.places[first]]))
        foreign = (group >= 0) & ~own
        if np.count_nonzero(foreign):
            for number in np.unique(group[foreign]):
                known_times = self.known_of(int(number), touch.of(last.actor), touch.actors)
                late = (group == number) & (touch.of(last.at) > known_times)
                if late.any():
                    place = int(touch.places[late.argmax()])
                    self.add(
                        "race",
                        f"a thread of {self.group.name} {verb} {self.where(touch.memory, place)}, which another "
                        f"block {did}, without synchronization between them",
                        op,
                        int(last.by[place]),
                    )
                    return
