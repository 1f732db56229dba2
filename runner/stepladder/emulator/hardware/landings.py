"""Asynchronous copies that complete on an mbarrier: their data arrives at a wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stepladder.emulator.hardware.mbarriers import MBarrier, mbarriers

if TYPE_CHECKING:
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.program import Instruction


class Landing(Protocol):
    """The arrival of what `op` copies to shared memory."""

    op: Instruction

    def __call__(self) -> None:
        """Makes it happen."""
        ...


def add(group: Group, barrier: MBarrier, landing: Landing) -> None:
    """Adds a copy to those in flight; one that nothing waits for until the blocks end is a finding.

    Args:
        group: of blocks.
        barrier: that the copy completes on.
        landing: its arrival.
    """
    if "landings" not in group.state:
        group.state["landings"] = True
        group.at_end.append(lambda: _report_unwaited(group))
    barrier.copies.append(landing)


def _report_unwaited(group: Group) -> None:
    """Reports, when the blocks end, the copies that no thread has waited for."""
    for barrier in mbarriers(group).values():
        for landing in barrier.copies:
            group.sanitizer.report(
                "unwaited", "still writes shared memory when the block exits: no wait for its mbarrier", landing.op
            )
