"""Tuning: successive halving."""

from collections.abc import Callable, Sequence

import pytest

from stepladder.measure.tuning import halving


def rounds_of(
    times: dict[str, float], noise: Callable[..., float] = lambda name, number: 1.0
) -> tuple[Callable[[Sequence[str]], dict[str, float]], list[list[str]]]:
    calls = []

    def measure(names: Sequence[str]) -> dict[str, float]:
        calls.append(list(names))
        return {name: times[name] * noise(name, len(calls)) for name in names}

    return measure, calls


def test_the_fastest_wins_and_the_slow_leave_early() -> None:
    times = {f"k{number}": 10.0 + number for number in range(8)} | {"cublas": 12.0}
    measure, calls = rounds_of(times)
    found = halving.select([name for name in times if name != "cublas"], "cublas", measure)
    assert found.winner == "k0" and found.apart and found.microseconds() == 10.0
    assert found.of_reference() == pytest.approx(1.2)
    assert len(calls[0]) == 9 and len(found.samples["k7"]) == halving.ROUNDS < len(found.samples["k0"])
    assert all(call[0] == "cublas" for call in calls)


def test_two_that_cannot_be_told_apart_end_after_the_most_rounds() -> None:
    measure, calls = rounds_of(
        {"a": 10.0, "b": 10.0}, lambda name, number: 1.05 if (name == "a") == (number % 2) else 1.0
    )
    found = halving.select(["a", "b"], None, measure)
    assert not found.apart and len(calls) == halving.MAX_ROUNDS and found.of_reference() is None


def test_one_alone_wins() -> None:
    measure, calls = rounds_of({"a": 10.0})
    assert halving.select(["a"], None, measure).winner == "a" and len(calls) == halving.ROUNDS
