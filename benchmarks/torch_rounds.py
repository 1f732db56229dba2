"""Times of calls beside PyTorch's: contestants in turn, and CUDA graphs of calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 7
SECONDS = 0.05  # of a contestant in a round


def captured(torch: Any, call: Callable[[], object]) -> Callable[[], object] | None:  # noqa: ANN401
    """Returns the replay of a CUDA graph of a call; None where it cannot be captured.

    Args:
        torch: the module.
        call: what is captured.
    """
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    except Exception as error:  # of PyTorch's compiler and of the driver, of many kinds
        print(f"note: not captured: {error}", file=sys.stderr)
        return None
    return graph.replay


def in_turn(torch: Any, calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:  # noqa: ANN401
    """Returns the microseconds of a call of each contestant, in every round.

    Args:
        torch: the module.
        calls: of the contestants, by name.
    """
    counts: dict[str, int] = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        counts[name] = max(10, int(SECONDS / ((time.perf_counter() - began) / 10)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS):
        names = list(calls)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(counts[name]):
                calls[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / counts[name] * 1e3)
    return times
