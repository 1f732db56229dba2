"""How fast? Kernels and baselines in turn, in one process, on the same random data.

A tensor core's speed depends on the card's temperature and power at the moment and on the data, so that a figure alone
means little. Every round times every contestant once, one after the other, in an order that rotates from round to
round, so that none always runs after the hungriest. What compares two of them is the median, over the rounds, of the
ratio within a round.

Two modes. A **burst** is about 30 ms of launches after a pause, in which large problems stay below the card's power
limit. **Sustained** is 0.8 s or more without pauses, in which they do not. Launches are replayed from a graph, and
timed by events around all replays, so that the time between launches is not the host's.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Protocol

from stepladder.measure.baselines import cublas, refuse_unsupported
from stepladder.measure.ceiling import find_instruction, measure_ceiling
from stepladder.runtime.bundle import Bundle, Problem
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.launch import Device, DeviceExecutor, MatmulBuffers
from stepladder.runtime.reference import Program, matmul_program
from stepladder.verify.check import check_exact
from stepladder.verify.inputs import INTEGER_C, integer_range, random_inputs

SCHEMA_VERSION = 1
MINIMUM_ROUNDS = 7
SEED = 0

# Names of the contestants that every other is compared with.
REFERENCES = ("cublas", "ceiling")

WARM_UP_LAUNCHES = 2
MINIMUM_LAUNCHES = 10
# A replay shorter than this would show the time between replays.
REPLAY_SECONDS = 1e-3
# C = AB + C in place grows with every launch; C is restored before it leaves this range (of f16), also where C is f32,
# so that all types are timed on like data.
LARGEST_C = 30000.0
# i32 sums are kept from wrapping.
LARGEST_INTEGER_C = float(2**31 - 1 - INTEGER_C)
# How many standard deviations the largest element of a large matrix has.
LARGEST_NORMAL = 6.0


@dataclass(frozen=True)
class Mode:
    """How long a contestant runs in a round.

    Attributes:
        seconds: kernel time to fill, with at least MINIMUM_LAUNCHES launches.
        pause_seconds: idle time before.
    """

    seconds: float
    pause_seconds: float


MODES = {"burst": Mode(0.03, 0.1), "sustained": Mode(0.8, 0.0)}


class Timer(Protocol):
    """The part of `launch.Device` that measures."""

    def capture(self, enqueue: Callable[[], None], launches: int) -> Any: ...

    def record_event(self) -> Any: ...

    def elapsed_ms(self, start: Any, end: Any) -> float: ...

    def synchronize(self) -> None: ...


@dataclass(frozen=True)
class Contestant:
    """Something to be timed.

    Attributes:
        name: in tables and results; unique.
        flops: arithmetic operations of one launch, of floating-point numbers or integers.
        enqueue: enqueues one launch.
        restore: enqueues what undoes the launches so far, if they change the data.
        restore_every: launches after which to restore; None for never.
    """

    name: str
    flops: int
    enqueue: Callable[[], None]
    restore: Callable[[], None] | None = None
    restore_every: int | None = None


class Runner:
    """Times one contestant again and again.

    Args:
        timer: where it runs.
        contestant: what runs.

    Attributes:
        launch_ms: estimate of one launch, which only sizes the measurements.
    """

    def __init__(self, timer: Timer, contestant: Contestant):
        self.timer = timer
        self.contestant = contestant
        for _ in range(WARM_UP_LAUNCHES):
            contestant.enqueue()
        timer.synchronize()
        probe = timer.capture(contestant.enqueue, WARM_UP_LAUNCHES)
        self.launch_ms = self._time([(probe, 1), (probe, 2)])[-1] / (2 * WARM_UP_LAUNCHES)
        probe.free()
        # As many launches a replay as it takes, but no more than may run on the same C.
        limit = contestant.restore_every or sys.maxsize
        launches = min(math.ceil(REPLAY_SECONDS * 1e3 / self.launch_ms), limit)
        self.graph = timer.capture(contestant.enqueue, launches)
        self.replays_before_restore = max(1, limit // launches)

    def measure(self, mode: Mode, sleep: Callable[[float], None] = time.sleep) -> dict[str, float]:
        """Runs one round's worth; returns `launches`, `milliseconds` (of all of them) and `tflops`."""
        wanted = max(MINIMUM_LAUNCHES, math.ceil(mode.seconds * 1e3 / self.launch_ms))
        replays = math.ceil(wanted / self.graph.launches)
        segments = []
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

    def _time(self, segments: Sequence[tuple[Any, int]]) -> list[float]:
        """Replays each graph so many times, restoring before each, untimed; returns the milliseconds of each.

        All is enqueued before the first is waited for, so that the host stays ahead of the GPU.
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


@dataclass(frozen=True)
class Spread:
    """The middle and the spread of one figure over the rounds."""

    median: float
    minimum: float
    maximum: float
    quartile_1: float
    quartile_3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Returns the spread of two values or more; quartiles interpolate between them."""
        first, median, third = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, min(values), max(values), first, third)


def measure_rounds(
    timer: Timer,
    contestants: Sequence[Contestant],
    modes: Sequence[str],
    rounds: int,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Times all contestants in turn.

    Args:
        timer: where they run.
        contestants: what runs; names must differ.
        modes: names of MODES.
        rounds: at least 2.
        sleep: pauses for so many seconds.
        progress: called with a line now and then.

    Returns:
        By mode: `kernels`, by name, with the `tflops`, `launches` and `milliseconds` of every round, in order, and the
        spread of TFLOP/s; and `ratios`, by name and then by the name of a reference (the first contestant, the baseline
        and the ceiling), with the ratio of TFLOP/s in every round and its spread.
    """
    runners = [Runner(timer, contestant) for contestant in contestants]
    result = {}
    for name in modes:
        samples: dict[str, list[dict[str, float]]] = {contestant.name: [] for contestant in contestants}
        for index in range(rounds):
            turn = index % len(runners)
            for runner in runners[turn:] + runners[:turn]:
                samples[runner.contestant.name].append(runner.measure(MODES[name], sleep))
            latest = ", ".join(f"{kernel} {taken[-1]['tflops']:.1f}" for kernel, taken in samples.items())
            progress(f"{name}, round {index + 1} of {rounds}: {latest} TFLOP/s")
        references = [name_ for name_ in samples if name_ in REFERENCES or name_ == contestants[0].name]
        result[name] = asdict(MODES[name]) | _summarize(samples, references)
    for runner in runners:
        runner.free()
    return result


def _summarize(samples: dict[str, list[dict[str, float]]], references: Sequence[str]) -> dict[str, Any]:
    rates = {name: [sample["tflops"] for sample in taken] for name, taken in samples.items()}
    kernels = {
        name: {
            "tflops": rates[name],
            "launches": [sample["launches"] for sample in taken],
            "milliseconds": [sample["milliseconds"] for sample in taken],
            "tflops_spread": asdict(Spread.of(rates[name])),
        }
        for name, taken in samples.items()
    }
    ratios: dict[str, dict[str, Any]] = {name: {} for name in samples}
    for name, own in rates.items():
        for other in references:
            if other != name:
                values = [mine / their for mine, their in zip(own, rates[other])]
                ratios[name][other] = {"values": values, "spread": asdict(Spread.of(values))}
    return {"kernels": kernels, "ratios": ratios}


def bench_bundles(
    bundles: Sequence[Bundle],
    *,
    baseline: str = "cublas",
    ceiling: bool = False,
    modes: Sequence[str] = ("burst",),
    rounds: int = MINIMUM_ROUNDS,
    check: bool = True,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Measures bundles of one problem against a baseline, on the GPU.

    Args:
        bundles: kernels for the same problem; they share the buffers.
        baseline: `cublas` or `none`.
        ceiling: whether to measure the card's `mma.sync` ceiling too, in the same rounds.
        modes: names of MODES.
        rounds: at least MINIMUM_ROUNDS.
        check: whether to run the exact check on every kernel first, against its bundle's reference program; the
            baseline is checked as well, against the problem.
        command: the command line, for the result.

    Returns:
        The result, as JSON data: date, card, problem, kernels, and what `measure_rounds` returns under `modes`.

    Raises:
        StepladderError: problems differ, there is no baseline or ceiling of their types, a kernel's numbers are wrong
            (status FAILED), no GPU (NOT_EXECUTED).
    """
    if rounds < MINIMUM_ROUNDS:
        raise StepladderError(f"at least {MINIMUM_ROUNDS} rounds are needed for a median with a spread, got {rounds}")
    problem = bundles[0].manifest.problem
    for bundle in bundles[1:]:
        if bundle.manifest.problem != problem:
            raise StepladderError(
                f"bundles of one measurement must be of one problem: '{bundles[0].path}' is "
                f"{problem.describe()}, '{bundle.path}' is {bundle.manifest.problem.describe()}"
            )
    names = _unique_names(bundles)
    # What cannot be measured is refused before anything is.
    if baseline == "cublas":
        refuse_unsupported(problem)
    if ceiling:
        find_instruction(problem.compute_type, problem.acc_type)
    with Device() as device, MatmulBuffers(device, problem) as buffers:
        result: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": list(command),
            "card": device.describe(),
            "problem": asdict(problem),
            "rounds": rounds,
            "checked": check,
            "bundles": {},
        }
        launchers: dict[str, Callable[[], None]] = {}
        for name, bundle in zip(names, bundles):
            kernel = device.load(bundle)
            launchers[name] = buffers.launcher(kernel, bundle)
            result["bundles"][name] = _describe_bundle(bundle) | {
                "image": kernel.source,
                "loaded_registers": kernel.registers,
                "loaded_local_memory": kernel.local_memory,
            }
        if baseline == "cublas":
            library = cublas(buffers)
            launchers["cublas"] = library.enqueue
            result["baseline"] = {"name": "cublas", "provider": library.provider}
        if check:
            references = {name: bundle.expected() for name, bundle in zip(names, bundles)}
            for name, enqueue in launchers.items():
                _refuse_wrong_numbers(name, buffers, enqueue, references.get(name, matmul_program(problem)))
        restore, restore_every = prepare_data(buffers)
        contestants = [
            Contestant(name, problem.flops, enqueue, restore, restore_every) for name, enqueue in launchers.items()
        ]
        if ceiling:
            limit = measure_ceiling(device, problem.acc_type, problem.compute_type)
            result["ceiling"] = {
                "name": "ceiling",
                "warps": limit.warps,
                "tflops": limit.tflops,
                "tflops_by_warps": {str(warps): rate for warps, rate in limit.tflops_by_warps.items()},
            }
            contestants.append(Contestant("ceiling", limit.flops, limit.enqueue))
        result["modes"] = measure_rounds(
            device, contestants, modes, rounds, progress=lambda line: print(line, file=sys.stderr, flush=True)
        )
    return result


def _unique_names(bundles: Sequence[Bundle]) -> list[str]:
    """Names bundles by their folders, or by their paths where folders of one name would be confused."""
    folders = [bundle.path.resolve().name for bundle in bundles]
    names = folders if len(set(folders)) == len(folders) else [str(bundle.path) for bundle in bundles]
    if len(set(names)) != len(names) or {"cublas", "ceiling"} & set(names):
        raise StepladderError(
            "bundles of one measurement need different names, other than 'cublas' and 'ceiling'; got "
            + ", ".join(names)
        )
    return names


def _describe_bundle(bundle: Bundle) -> dict[str, Any]:
    """What a result must say about a kernel to be reproduced."""
    fields = (
        "target",
        "grid",
        "block",
        "cluster",
        "dependent_launch",
        "static_shared_memory",
        "dynamic_shared_memory",
        "registers",
        "spills",
        "pipeline",
        "steps",
        "without",
        "knobs",
        "tool_versions",
    )
    return {name: getattr(bundle.manifest, name) for name in fields}


def _refuse_wrong_numbers(name: str, buffers: MatmulBuffers, enqueue: Callable[[], None], reference: Program) -> None:
    report = check_exact(buffers.problem, reference, DeviceExecutor(buffers, enqueue), SEED, buffers.device.ordinal)
    print(f"{name}: {report.describe()}", file=sys.stderr, flush=True)
    if not report.passed:
        raise StepladderError(
            f"'{name}' gives wrong numbers and is not timed: {report.describe()}",
            status=FAILED,
            notes=["--no-check times it all the same"],
        )


def prepare_data(buffers: MatmulBuffers) -> tuple[Callable[[], None] | None, int | None]:
    """Fills the operands with random data (`check.random_inputs`).

    Returns:
        What restores C, and after how many launches that is due.
    """
    problem = buffers.problem
    a, b, c = random_inputs(problem, SEED)
    buffers.a.upload(a)
    buffers.b.upload(b)
    buffers.c.upload(c)
    if not problem.accumulate:
        return None, None
    original = buffers.device.allocate(buffers.c.size)
    original.upload(c)
    return lambda: buffers.c.copy_from(original), launches_before_restore(problem)


def launches_before_restore(problem: Problem) -> int:
    """Returns how often C = AB + C may run on random inputs before C leaves its range; at least 1."""
    if element_type(problem.acc_type).is_integer:
        # The variance of integers from -r to r - 1 is r^2 / 3.
        limit, variance = LARGEST_INTEGER_C, integer_range(problem) ** 2 / 3
    else:
        limit, variance = LARGEST_C, 1.0
    # One launch adds a product whose elements have the standard deviation sqrt(K), times the variance of A's and B's.
    return max(1, int(limit / (LARGEST_NORMAL * math.sqrt(problem.k) * variance)))


def table_title(result: dict[str, Any]) -> str:
    """Returns one line on what was measured, and where."""
    return f"{Problem(**result['problem']).describe()}; {result['card']['name']}; {result['rounds']} rounds"


def table_rows(result: dict[str, Any]) -> list[dict[str, object]]:
    """Returns a result as rows of a table, one per mode and kernel."""
    others = [result[key]["name"] for key in ("baseline", "ceiling") if key in result]
    rows = []
    for mode, measured in result["modes"].items():
        for name, kernel in measured["kernels"].items():
            spread = kernel["tflops_spread"]
            rows.append(
                {
                    "mode": mode,
                    "kernel": name,
                    "TFLOP/s": f"{spread['median']:.1f}",
                    "min to max": f"{spread['minimum']:.1f} to {spread['maximum']:.1f}",
                }
                | {f"of {other}": _ratio_cell(measured["ratios"][name].get(other)) for other in others}
            )
    return rows


def _ratio_cell(ratio: dict[str, Any] | None) -> str:
    """The median ratio with its extremes; empty for a kernel beside itself."""
    if ratio is None:
        return ""
    spread = ratio["spread"]
    return f"{spread['median']:.3f} ({spread['minimum']:.3f} to {spread['maximum']:.3f})"
