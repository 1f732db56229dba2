"""Which kernels of a sequence may start while the one before ends."""

import pytest

from stepladder.runtime.overlap import Access, overlapping

WEIGHTS, OTHER = range(64), range(128, 192)
PLAIN = Access((OTHER,))
WAITING = Access((OTHER,), waits=True)
EARLY = Access((OTHER,), (WEIGHTS,), is_early=True)
CONSTANT = Access((OTHER,), (), is_early=True)


def writer(kernel: Access) -> Access:
    """Returns a kernel that also writes a part of the weights."""
    return Access((*kernel.writes, range(60, 70)), kernel.early, kernel.is_early, kernel.waits)


@pytest.mark.parametrize(
    "kernels, overlaps",
    [
        # What precedes the sequence may write the weights, but not constants.
        ([EARLY], [False]),
        ([CONSTANT], [True]),
        ([WAITING, EARLY], [True, False]),
        # A kernel that is launched by itself has seen all before it end.
        ([PLAIN, EARLY], [False, True]),
        ([PLAIN, WAITING, EARLY], [False, True, True]),
        # A kernel that waits lets the next one begin before its own wait: the writer before it may still run.
        ([writer(PLAIN), EARLY], [False, False]),
        ([writer(PLAIN), WAITING, EARLY], [False, True, False]),
        ([PLAIN, writer(WAITING), EARLY], [False, True, False]),
        # One that reads early lets it begin behind the wait: the writer before it has ended.
        ([PLAIN, writer(WAITING), CONSTANT, EARLY], [False, True, True, True]),
        ([PLAIN, writer(CONSTANT), EARLY], [False, True, False]),
        ([writer(PLAIN), PLAIN, EARLY, EARLY], [False, False, True, True]),
        ([EARLY, EARLY], [False, True]),
    ],
)
def test_overlaps(kernels: list[Access], overlaps: list[bool]) -> None:
    assert overlapping(kernels) == overlaps
