"""Successive halving: finds the fastest of several kernels by alternating measurements."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Rounds before half of the kernels are dropped; rounds at most until the last two are distinguished.
ROUNDS, MAX_ROUNDS = 3, 15

# Times the named contestants once each, in turn; returns name -> us of a launch.
Round = Callable[[Sequence[str]], dict[str, float]]


@dataclass(frozen=True)
class Selection:
    """The fastest contestant.

    Args:
        winner: its name.
        apart: whether its times and those of the second differ: the middle half of their ratios is below 1.
        samples: name -> us of a launch, in every round that it was in.
        ratios: name -> the reference's time over its own, in every round; empty without a reference.
    """

    winner: str
    apart: bool
    samples: dict[str, list[float]]
    ratios: dict[str, list[float]]

    def microseconds(self) -> float:
        """Returns the winner's median time of a launch in us."""
        return statistics.median(self.samples[self.winner])

    def of_reference(self) -> float | None:
        """Returns the median ratio of the reference's time to the winner's."""
        return statistics.median(self.ratios[self.winner]) if self.ratios else None


def select(names: Sequence[str], reference: str | None, measure: Round) -> Selection:
    """Returns the fastest contestant.

    Every round times all that are still in, and the reference. After ROUNDS the slower half is dropped, by the median
    of what is compared within a round; the last two run until their times differ, or MAX_ROUNDS.

    Args:
        names: of the contestants, at least one, each once.
        reference: a contestant that is timed in every round and cannot win; None for none.
        measure: times one round.
    """
    samples: dict[str, list[float]] = {name: [] for name in names}
    ratios: dict[str, list[float]] = {name: [] for name in names} if reference is not None else {}
    remaining = list(names)
    rounds = 0

    def run() -> None:
        nonlocal rounds
        turn = rounds % len(remaining)
        order = [*remaining[turn:], *remaining[:turn]]
        times = measure([reference, *order] if reference is not None else order)
        rounds += 1
        for name in remaining:
            samples[name].append(times[name])
            if reference is not None:
                ratios[name].append(times[reference] / times[name])

    def by_speed() -> list[str]:
        if reference is not None:
            return sorted(remaining, key=lambda name: -statistics.median(ratios[name]))
        return sorted(remaining, key=lambda name: statistics.median(samples[name]))

    while True:
        for _ in range(ROUNDS):
            run()
        if len(remaining) <= 2:
            break
        remaining = by_speed()[: (len(remaining) + 1) // 2]
    apart = len(remaining) == 1
    while not apart:
        first, second = by_speed()
        apart = _apart(samples[first], samples[second])
        if apart or rounds >= MAX_ROUNDS:
            break
        run()
    return Selection(by_speed()[0], apart, samples, ratios)


def _apart(fast: Sequence[float], slow: Sequence[float]) -> bool:
    """Returns whether one is faster than the other in the middle half of the rounds that both were in."""
    rounds = min(len(fast), len(slow))
    ratios = [fast_time / slow_time for fast_time, slow_time in zip(fast[-rounds:], slow[-rounds:])]
    return statistics.quantiles(ratios, n=4, method="inclusive")[2] < 1
