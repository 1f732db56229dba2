"""Random functions of contractions and other ops on a GPU: exact at each of several calls, or refused with one message.

Their buffers are other ones at each call, and their kernels overlap (programmatic dependent launch).
STEPLADDER_TEST_SEED=S draws others; STEPLADDER_RANDOM_FUNCTIONS=N of them, 300 with STEPLADDER_TEST_PROFILE=random.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import random_functions
import stepladder
from conftest import PROFILE
from exact_values import Function
from random_functions import drawn_function, drawn_kernel
from stepladder.runtime.errors import StepladderError

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_FUNCTIONS", 300 if PROFILE == "random" else 12))
PARTS, CALLS = 6, 3
SETTINGS: tuple[dict[str, Any], ...] = (*({},) * 3, {"groups": True}, {"pipeline": "mma_sync"}, {"pipeline": "wmma"})
LARGER = (*random_functions.SIZES, 48, 65, 96, 128, 200, 256)

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("needs_ptxas")]


def results(kernel: Callable[..., Any], function: Function) -> list[np.ndarray]:
    found = kernel(*(np.copy(argument) for argument in function.arguments))
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("drawn", [drawn_function, drawn_kernel])
@pytest.mark.parametrize("sizes", [random_functions.SIZES, LARGER], ids=["small", "larger"])
@pytest.mark.parametrize("part", range(PARTS))
def test_exact_at_each_call(
    part: int, sizes: tuple[int, ...], drawn: Callable[[int], Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_functions, "SIZES", sizes)
    for number in range(part, COUNT, PARTS):
        seed = SEED * 1_000_003 + number
        function, settings = drawn(seed), random.Random(seed).choice(SETTINGS)
        try:
            kernel = stepladder.compile(function.text, **settings)
        except StepladderError as error:
            assert "\n" not in error.message and "raised" not in error.message, f"{error.message}\n{function.text}"
            continue
        for call in range(CALLS):
            pairs = zip(results(kernel, function), function.wanted, strict=True)
            assert all(np.array_equal(got, wanted) for got, wanted in pairs), f"{seed}, call {call}\n{function.text}"
