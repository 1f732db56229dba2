"""Which kernels of a sequence may start while the one before ends, where some read buffers before they wait for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CONTROL = re.compile(r"\bgriddepcontrol\.(\w+)")


@dataclass(frozen=True)
class Access:
    """The accesses of a kernel of a sequence, as ranges of addresses.

    Attributes:
        writes: what it may write.
        early: what it reads before it waits for the kernel before it, but for what nothing writes.
        is_early: whether it reads anything before it waits.
        waits: whether it waits before it accesses anything, and may start while any kernel ends.
        triggers_late: whether it lets the next one start only after its own wait, so that all kernels before it have
            ended then. One that reads early does.
        is_kept: whether nothing that is enqueued before the sequence, and may still run, writes what it reads early;
            but the sequence may precede itself.
    """

    writes: tuple[range, ...]
    early: tuple[range, ...] = ()
    is_early: bool = False
    waits: bool = False
    triggers_late: bool = False
    is_kept: bool = False


def triggers_late(ptx: str) -> bool:
    """Returns whether a kernel lets the next one start only after its own wait.

    One that waits and has no trigger does: the next one starts when its blocks have exited. What these have written may
    not be visible by then (PTX ISA, griddepcontrol: only `wait` is for the memory of a grid), as with a trigger.

    Args:
        ptx: the kernel, of one body or of several, which all have the trigger at the same position.
    """
    kinds = _CONTROL.findall(ptx)
    behind_wait = ["wait", "launch_dependents"] * (len(kinds) // 2)
    return bool(kinds) and kinds in (behind_wait, ["wait"] * len(kinds))


def overlapping(kernels: Sequence[Access]) -> list[bool]:
    """Returns which kernels may start while those before them end (programmatic dependent launch).

    A kernel that waits first always may. One that reads early may where no kernel that has not ended writes what it
    reads early. What has not ended goes back to a kernel that is launched without overlap, or to one that lets the next
    one start after its own wait: other kernels do before they wait. What is enqueued before the sequence may write
    anything but what is kept.

    Of a kernel that waits and one that reads early after it, only one may overlap where those before them write what
    is read early. It is the one that reads early: it has more to do before it waits.

    Args:
        kernels: in the order of their launches on one stream.
    """
    overlaps: list[bool] = []
    for place, kernel in enumerate(kernels):
        overlaps.append(kernel.waits or (kernel.is_early and _is_unwritten(kernels, overlaps, place)))
        if kernel.is_early and not overlaps[place] and place and kernels[place - 1].waits:
            overlaps[place - 1] = False
            overlaps[place] = _is_unwritten(kernels, overlaps, place)
            overlaps[place - 1] = not overlaps[place]
    return overlaps


def _is_unwritten(kernels: Sequence[Access], overlaps: Sequence[bool], place: int) -> bool:
    """Returns whether no kernel that may still run writes what a kernel reads early."""
    early = kernels[place].early
    if not early:
        return True
    for earlier in range(place - 1, -1, -1):
        if _is_written(early, kernels[earlier : earlier + 1]):
            return False
        if not overlaps[earlier] or kernels[earlier].is_early or kernels[earlier].triggers_late:
            return True
    return kernels[place].is_kept and not _is_written(early, kernels)


def _is_written(ranges: Sequence[range], kernels: Sequence[Access]) -> bool:
    """Returns whether one of some kernels may write one of some ranges."""
    return any(_meet(range_, part) for kernel in kernels for range_ in kernel.writes for part in ranges)


def _meet(left: range, right: range) -> bool:
    return max(left.start, right.start) < min(left.stop, right.stop)
