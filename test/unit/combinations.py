"""Which combinations of several parameters a test runs."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

from conftest import PROFILE

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))


def combinations(first: Iterable[Any], *others: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Returns each value of the first parameter once, with the combinations of the others in turn; with
    STEPLADDER_TEST_PROFILE=random, all combinations."""
    values, rest = list(first), list(itertools.product(*map(list, others)))
    if PROFILE == "random":
        return [(value, *combination) for value in values for combination in rest]
    # Neighbours in a list of values are alike: steps of about the golden section give them unlike combinations.
    step = next(step for step in range(round(len(rest) * 0.618) or 1, 2 * len(rest)) if math.gcd(step, len(rest)) == 1)
    return [(value, *rest[number * step % len(rest)]) for number, value in enumerate(values)]


def sample(values: Sequence[Any], every: int) -> Sequence[Any]:
    """Returns one of `every` neighbours in a list of parameters, another one for another STEPLADDER_TEST_SEED; with
    STEPLADDER_TEST_PROFILE=random, all of them."""
    return values if PROFILE == "random" else values[SEED % every :: every]
