"""Which kernels of a sequence may start while the one before ends."""

import dataclasses
import itertools
from collections.abc import Sequence

import pytest

from stepladder.runtime.overlap import Access, overlapping, triggers_late

WEIGHTS, OTHER = range(64), range(128, 192)
PLAIN = Access((OTHER,))
WAITING = Access((OTHER,), waits=True)
EARLY = Access((OTHER,), (WEIGHTS,), is_early=True)
KEPT = Access((OTHER,), (WEIGHTS,), is_early=True, is_kept=True)
CONSTANT = Access((OTHER,), (), is_early=True)
FIRST = Access((OTHER,), waits=True, triggers_late=True)


def writer(kernel: Access) -> Access:
    """Returns a kernel that also writes a part of the weights."""
    return dataclasses.replace(kernel, writes=(*kernel.writes, range(60, 70)))


@pytest.mark.parametrize(
    "kernels, overlaps",
    [
        # What precedes the sequence may write the weights, but not constants.
        ([EARLY], [False]),
        ([CONSTANT], [True]),
        ([WAITING, WAITING], [True, True]),
        # Of a kernel that waits and the next, which reads early, only one may start before all before it have ended.
        ([WAITING, EARLY], [False, True]),
        ([WAITING, WAITING, EARLY, EARLY], [True, False, True, True]),
        ([WAITING, writer(WAITING), EARLY], [True, True, False]),
        ([EARLY, WAITING, EARLY], [False, True, True]),
        # A kernel that is launched by itself has seen all before it end.
        ([PLAIN, EARLY], [False, True]),
        ([Access((range(64, 128),)), EARLY], [False, True]),  # bytes behind the weights
        ([PLAIN, WAITING, EARLY], [False, True, True]),
        # A kernel that waits lets the next one begin before its own wait: the writer before it may still run.
        ([writer(PLAIN), EARLY], [False, False]),
        ([writer(PLAIN), WAITING, EARLY], [False, False, True]),
        ([PLAIN, writer(WAITING), EARLY], [False, True, False]),
        # One that reads early lets it begin behind the wait: the writer before it has ended.
        ([PLAIN, writer(WAITING), CONSTANT, EARLY], [False, True, True, True]),
        ([PLAIN, writer(CONSTANT), EARLY], [False, True, False]),
        ([writer(PLAIN), PLAIN, EARLY, EARLY], [False, False, True, True]),
        ([EARLY, EARLY], [False, True]),
        ([FIRST, EARLY], [True, True]),
        ([writer(PLAIN), FIRST, EARLY], [False, True, True]),
        ([PLAIN, writer(FIRST), EARLY], [False, True, False]),
        ([PLAIN, writer(FIRST), FIRST, EARLY], [False, True, True, True]),
        # Nothing before the sequence writes what is kept; kernels of the sequence do.
        ([KEPT], [True]),
        ([WAITING, KEPT], [True, True]),
        ([WAITING, writer(WAITING), WAITING, KEPT], [True, True, False, True]),
        ([writer(WAITING), KEPT], [True, False]),
        # The sequence may precede itself.
        ([KEPT, writer(WAITING)], [False, True]),
    ],
)
def test_overlaps(kernels: list[Access], overlaps: list[bool]) -> None:
    assert overlapping(kernels) == overlaps


BEFORE = -1  # what is enqueued before the sequence


def running(kernels: Sequence[Access], overlaps: Sequence[bool], place: int) -> set[int]:
    """Returns what may run when a kernel starts: found forwards, by what programmatic dependent launch guarantees."""
    known = {BEFORE}
    for number in range(place + 1):
        if not overlaps[number]:
            known = set()
        # The one before lets it start behind its own wait.
        elif number and (kernels[number - 1].is_early or kernels[number - 1].triggers_late):
            known = {number - 1}
        if number < place:
            known = known | {number}
    return known


def is_safe(kernels: Sequence[Access], overlaps: Sequence[bool]) -> bool:
    """Returns whether no kernel that may run writes what another one reads early."""
    for place, kernel in enumerate(kernels):
        if not kernel.is_early or not kernel.early or not overlaps[place]:
            continue
        for other in running(kernels, overlaps, place):
            if other == BEFORE and (not kernel.is_kept or any(len(item.writes) > 1 for item in kernels)):
                return False
            if other != BEFORE and len(kernels[other].writes) > 1:  # the weights too
                return False
    return True


def test_every_short_sequence() -> None:
    """No early read meets a write, and no further kernel could overlap."""
    kinds = [PLAIN, WAITING, EARLY, KEPT, CONSTANT, FIRST]
    kinds += [writer(kind) for kind in kinds]
    for kernels in itertools.chain.from_iterable(itertools.product(kinds, repeat=length) for length in range(1, 5)):
        found = overlapping(kernels)
        assert is_safe(kernels, found), (kernels, found)
        for place, kernel in enumerate(kernels):
            if not found[place] and (kernel.waits or kernel.is_early):
                assert not is_safe(kernels, [*found[:place], True, *found[place + 1 :]]), (kernels, found, place)


@pytest.mark.parametrize(
    "kinds, is_late",
    [
        (["wait", "launch_dependents"], True),
        (["wait", "launch_dependents"] * 2, True),  # of two bodies in one kernel
        (["launch_dependents", "wait"], False),
        (["wait", "launch_dependents", "launch_dependents", "wait"], False),
        (["wait"], True),  # at the exit of its blocks
        (["wait"] * 2, True),
        (["wait", "launch_dependents", "wait"], False),  # or of a body that waits, and one that triggers first
        ([], False),
    ],
)
def test_when_a_kernel_lets_the_next_one_start(kinds: list[str], is_late: bool) -> None:
    assert triggers_late("".join(f"\tgriddepcontrol.{kind};\n" for kind in kinds)) == is_late
