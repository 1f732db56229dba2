"""Timing of kernels in turn.

A tensor core's speed depends on the GPU's temperature and power at the moment, and on the data: rates of separate runs
do not compare. Every round times every kernel once, one after the other, in an order that rotates from round to round,
so that each kernel follows each other one. Two kernels are compared by the median, over the rounds, of the ratio within
a round.

There are two modes. A **burst** is about 30 ms of launches after a pause: large problems do not reach the GPU's power
limit. **Sustained** is 0.8 s or more without pauses: they reach it. Launches are replayed from a CUDA graph and timed
by events around all replays, so that the time does not include the host's.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from stepladder.measure.power import Monitor
from stepladder.measure.spread import Sample, summarize
from stepladder.runtime.driver import CoreEvent

# Names of the kernels that all others are compared with.
REFERENCES = ("cublas", "ceiling")

WARM_UP_LAUNCHES = 2
MINIMUM_LAUNCHES = 10
# In a shorter replay the time between replays shows.
REPLAY_SECONDS = 1e-3


@dataclass(frozen=True)
class Mode:
    """How long a kernel runs in a round.

    Attributes:
        seconds: kernel time to fill, with at least MINIMUM_LAUNCHES launches.
        pause_seconds: idle time before.
    """

    seconds: float
    pause_seconds: float


MODES = {"burst": Mode(0.03, 0.1), "sustained": Mode(0.8, 0.0)}


class Replay(Protocol):
    """The part of `runtime.graph.Graph` in use."""

    launches: int

    def replay(self) -> None: ...

    def free(self) -> None: ...


class Timer(Protocol):
    """The part of `runtime.device.Device` that measures."""

    def capture(self, enqueue: Callable[[], object], launches: int, /) -> Replay: ...

    def record_event(self) -> CoreEvent: ...

    def elapsed_ms(self, start: CoreEvent, end: CoreEvent, /) -> float: ...

    def synchronize(self) -> None: ...


@dataclass(frozen=True)
class Contestant:
    """A kernel, baseline or ceiling in a measurement.

    Attributes:
        name: in tables and results; unique.
        flops: arithmetic operations of one launch, of floating-point numbers or integers.
        enqueue: enqueues one launch.
        restore: enqueues a reset of the data that launches change; None if they change none.
        restore_every: most launches between two resets; None for no limit.
        cycle: launches after which `enqueue` begins anew; a replay is a multiple of it, and so is `restore_every`.
    """

    name: str
    flops: int
    enqueue: Callable[[], object]
    restore: Callable[[], None] | None = None
    restore_every: int | None = None
    cycle: int = 1


class Runner:
    """Times one contestant in round after round.

    Args:
        timer: the GPU.
        contestant: what is timed.

    Attributes:
        timer, contestant: as given.
        launch_ms: estimated milliseconds of one launch, to size the measurements.
        graph: the launches of one replay.
    """

    def __init__(self, timer: Timer, contestant: Contestant) -> None:
        self.timer = timer
        self.contestant = contestant
        for _ in range(WARM_UP_LAUNCHES):
            contestant.enqueue()
        timer.synchronize()
        probe = timer.capture(contestant.enqueue, WARM_UP_LAUNCHES)
        self.launch_ms = self._time([(probe, 1), (probe, 2)])[-1] / (2 * WARM_UP_LAUNCHES)
        probe.free()
        # Enough launches to fill a replay, but no more than may run on the same C.
        limit = contestant.restore_every or sys.maxsize
        cycles = math.ceil(REPLAY_SECONDS * 1e3 / self.launch_ms / contestant.cycle)
        launches = min(cycles * contestant.cycle, limit)
        self.graph = timer.capture(contestant.enqueue, launches)
        self.replays_before_restore = max(1, limit // launches)

    def measure(self, mode: Mode, sleep: Callable[[float], None] = time.sleep) -> Sample:
        """Runs the contestant for one round.

        Args:
            mode: how long.
            sleep: pauses for a number of seconds.

        Returns:
            The launches, their time and rate.
        """
        minimum = max(MINIMUM_LAUNCHES, math.ceil(mode.seconds * 1e3 / self.launch_ms))
        replays = math.ceil(minimum / self.graph.launches)
        segments: list[tuple[Replay, int]] = []
        while replays > 0:
            segments.append((self.graph, min(replays, self.replays_before_restore)))
            replays -= segments[-1][1]
        warm_up = (self.graph, math.ceil(WARM_UP_LAUNCHES / self.graph.launches))
        sleep(mode.pause_seconds)
        milliseconds = sum(self._time([warm_up, *segments])[1:])
        launches = sum(graph.launches * count for graph, count in segments)
        return {
            "launches": launches,
            "milliseconds": milliseconds,
            "tflops": self.contestant.flops * launches / milliseconds / 1e9,
        }

    def free(self) -> None:
        """Destroys the graph."""
        self.graph.free()

    def _time(self, segments: Sequence[tuple[Replay, int]]) -> list[float]:
        """Replays graphs, each after an untimed reset of the data.

        All replays are enqueued before the first is waited for, so that the host is ahead of the GPU.

        Args:
            segments: graphs, each with its number of replays.

        Returns:
            The milliseconds of each segment.
        """
        events = []
        for graph, replays in segments:
            if self.contestant.restore is not None:
                self.contestant.restore()
            start = self.timer.record_event()
            for _ in range(replays):
                graph.replay()
            events.append((start, self.timer.record_event()))
        self.timer.synchronize()
        return [self.timer.elapsed_ms(*pair) for pair in events]


def _measure(runner: Runner, mode: Mode, sleep: Callable[[float], None], monitor: Monitor | None) -> Sample:
    """Runs a contestant for one round, with the clock and the power that it settles at where the GPU is kept busy."""
    if monitor is None or mode.pause_seconds > 0:
        return runner.measure(mode, sleep)
    with monitor.watch() as readings:
        sample = runner.measure(mode, sleep)
    clocks = readings.settled()
    if clocks:
        sample["clock_mhz"], sample["power_w"] = clocks["clock_mhz"], clocks["power_w"]
    return sample


def measure_rounds(
    timer: Timer,
    contestants: Sequence[Contestant],
    modes: Sequence[str],
    rounds: int,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[str], None] = lambda line: None,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Times all contestants in turn.

    Args:
        timer: the GPU.
        contestants: what is timed; names must differ.
        modes: names of MODES.
        rounds: at least 2.
        sleep: pauses for a number of seconds.
        progress: called with a line of text after every round.
        monitor: reads clock and power during rounds without a pause before; None for no readings.

    Returns:
        By mode: its parameters, and what `summarize` returns. References are the first contestant, the baseline and
        the ceiling.
    """
    runners = [Runner(timer, contestant) for contestant in contestants]
    result: dict[str, Any] = {}
    for name in modes:
        samples: dict[str, list[Sample]] = {contestant.name: [] for contestant in contestants}
        for index in range(rounds):
            first = index % len(runners)
            for runner in runners[first:] + runners[:first]:
                samples[runner.contestant.name].append(_measure(runner, MODES[name], sleep, monitor))
            latest = ", ".join(f"{kernel} {rounds_[-1]['tflops']:.1f}" for kernel, rounds_ in samples.items())
            progress(f"{name}, round {index + 1} of {rounds}: {latest} TFLOP/s")
        references = [name_ for name_ in samples if name_ in REFERENCES or name_ == contestants[0].name]
        result[name] = asdict(MODES[name]) | summarize(samples, references)
    for runner in runners:
        runner.free()
    return result
