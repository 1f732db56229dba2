"""Times kernels that let the next one begin early, at their exit, or when it has ended (knob `launch_trigger`).

Products of few blocks whose weights fill the L2 cache, or do not fit: what `compile` takes, what it takes without the
knob, and the cost model's first setting that loads no weights early, all with both triggers, the last one also without
dependent launch. Hot, with launches that go through copies of the operands, which the cache has lost by then, and as
layers of a model: kernels of different problems, one after the other.

Where MLIR and ptxas are, and then on the machine with the GPU, with PyTorch:

    python benchmarks/launch_triggers.py build FOLDER
    python benchmarks/launch_triggers.py measure FOLDER RESULT.json
"""

from __future__ import annotations

import argparse
import math
import pickle
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from choice_plan import KNOBS, TYPES, Job, candidates
from choice_timing import Gpu
from common import run
from draw import Drawn, log_uniform, named
from halves import halves_parser, parse_halves
from measured_kernels import write_table
from model_choice import Built, build_one, head_of

SEED = 20270426
TRIGGER, LAUNCH, EARLY, PREFETCH = "launch_trigger", "dependent_launch", "early_weights", "prefetch_steps"
WHAT = (
    "default knobs with both launch triggers and without dependent launch, in turn with each other and cuBLAS, medians "
    "of 5 rounds"
)
NAMED = ("32x21504x768", "128x4816x944", "64x18944x1024", "96x5632x3072", "96x8192x2048", "80x8896x1760")
# Rows, bytes of the weights, k, and how many problems are drawn.
_ROWS, _WEIGHTS, _DEPTHS, COUNT = (8, 192), (10e6, 60e6), (512, 6144), 40
_COPIES = 400e6
_TYPES = TYPES["bf16-bf16"]
# What a kernel runs between: itself with the same operands, or with others.
HOT, ROTATED = "hot", "rotated"
TRIGGERS, WITH, WITHOUT = ("early", "exit"), "with", "without"
_KNOBS = (*KNOBS, PREFETCH)
_COLUMNS = (
    *("m", "n", "k", "kind", "held_out", *_KNOBS, "blocks", "chosen", "runs"),
    *("microseconds", "cublas_microseconds"),
)
_PLAN, _SCRATCH = "kernels.pickle", 99
# Problems of a sequence of layers, rounds, and seconds of a burst.
_OF_A_SEQUENCE, _ROUNDS, _SECONDS = 4, 6, 0.004
# Kernels of a problem, and which choices they are.
_Group = list[tuple[Built, str]]


def problems(count: int = COUNT) -> list[Drawn]:
    """Returns the named problems, and `count` drawn ones, of which every other one is held out.

    Args:
        count: of problems that are drawn.
    """
    rng = random.Random(SEED)
    drawn: list[Drawn] = []
    while len(drawn) < count:
        m, k = log_uniform(rng, *_ROWS, 8), log_uniform(rng, *_DEPTHS, 16)
        n = log_uniform(rng, _WEIGHTS[0] / 2 / k, _WEIGHTS[1] / 2 / k, 8)
        drawn.append(Drawn("few blocks", m, n, k, len(drawn) % 2 == 1))
    return [*named(NAMED), *drawn]


def build(folder: Path, selected: Sequence[Drawn]) -> None:
    """Builds the kernels of all problems.

    Args:
        folder: of the bundles and of the list of what they hold.
        selected: the problems.
    """
    groups = []
    for problem in selected:
        default = _knobs(build_one(Job(problem, _TYPES, _SCRATCH, None, 0.0, folder)))
        independent = _first(problem, folder, {TRIGGER: "early"})
        waits = _first(problem, folder, {TRIGGER: "early", EARLY: False})
        dependent = [item for item in (default, independent, waits) if item[LAUNCH]]
        settings = [default, independent, *({**item, TRIGGER: trigger} for item in dependent for trigger in TRIGGERS)]
        settings.append({**waits, LAUNCH: False, TRIGGER: "early", PREFETCH: 0})
        different = [knobs for place, knobs in enumerate(settings) if knobs not in settings[:place]]
        built = [build_one(Job(problem, _TYPES, place, knobs, 0.0, folder)) for place, knobs in enumerate(different)]
        group = [(item, _of(item.job.knobs, default, independent)) for item in built if not item.refused]
        print(f"{problem.name}: {len(group)} kernels, {[item.refused for item in built if item.refused]}", flush=True)
        groups.append(group)
        (folder / _PLAN).write_bytes(pickle.dumps(groups))


def _of(knobs: object, default: object, independent: object) -> str:
    """Returns which choices have these knobs: WITH, what `compile` takes; WITHOUT, what it takes without the knob."""
    return " ".join(name for name, chosen in ((WITH, default), (WITHOUT, independent)) if chosen == knobs)


def _knobs(built: Built) -> dict[str, int | str]:
    return {name: value for name, value in built.knobs.items() if name != "target"}


def _first(problem: Drawn, folder: Path, settings: dict[str, int | str]) -> dict[str, int | str]:
    """Returns all knobs of the model's first setting, where some are given."""
    return _knobs(build_one(replace(candidates(problem, _TYPES, False, folder, settings)[0], place=_SCRATCH)))


def _launches(
    gpu: Gpu, stack: ExitStack, group: Sequence[Built], copies: float
) -> tuple[list[list[Callable[[], None]]], Sequence[Callable[[], None]]]:
    """Returns what enqueues each kernel of a problem, after a check of its results, and cuBLAS, for each copy."""
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.errors import StepladderError

    buffers = gpu.copies(stack, read_bundle(group[0].path).manifest.problem, copies)
    launches = []
    for kernel in group:
        try:
            launches.append(gpu.checked(buffers, kernel))
        except StepladderError as error:
            raise StepladderError(f"{kernel.title}: {error.message}") from None
    return launches, buffers.libraries


def _times(gpu: Gpu, contestants: Sequence[Sequence[Callable[[], None]]]) -> list[float]:
    """Returns the median time of a cycle of each contestant's launches, in us, measured in turn."""
    from stepladder.measure.rotation import in_turn
    from stepladder.measure.timing import Contestant, Mode, Runner

    mode = Mode(_SECONDS, 0.0)
    runners = [Runner(gpu.device, Contestant("own", 1, in_turn(item), cycle=len(item))) for item in contestants]
    rounds = [[runner.measure(mode, lambda seconds: None) for runner in runners] for _ in range(_ROUNDS)]
    for runner in runners:
        runner.free()
    return [
        statistics.median(item["milliseconds"] / item["launches"] * 1e3 for item in of_runner) * len(contestant)
        for of_runner, contestant in zip(zip(*rounds[1:]), contestants)
    ]


def _each(gpu: Gpu, groups: Sequence[_Group], copies: float) -> Iterator[tuple[Built, str, float, float]]:
    """Yields the kernels of each problem, which choices they are, their time and that of cuBLAS."""
    for group in groups:
        with ExitStack() as stack:
            launches, libraries = _launches(gpu, stack, [item for item, _ in group], copies)
            *times, library = (time / len(libraries) for time in _times(gpu, [*launches, libraries]))
            yield from ((*item, time, library) for item, time in zip(group, times))


def _arms(group: _Group) -> dict[str, Built]:
    """Returns the kernels of a problem that sequences consist of, by name."""
    waiting = [kernel for kernel, _ in group if not kernel.knobs[EARLY]]
    return {
        "early": next(kernel for kernel in waiting if kernel.knobs[LAUNCH] and kernel.knobs[TRIGGER] == "early"),
        "exit": next(kernel for kernel in waiting if kernel.knobs[LAUNCH] and kernel.knobs[TRIGGER] == "exit"),
        "end": next(kernel for kernel in waiting if not kernel.knobs[LAUNCH]),
        WITH: next(kernel for kernel, chosen in group if WITH in chosen.split()),
    }


def _sequences(gpu: Gpu, groups: Sequence[_Group]) -> Iterator[dict[str, object]]:
    """Yields the times of sequences of kernels of different problems, each of one kind, and that of cuBLAS."""
    for start in range(0, len(groups) - _OF_A_SEQUENCE + 1, _OF_A_SEQUENCE):
        arms_of_group = [_arms(group) for group in groups[start : start + _OF_A_SEQUENCE]]
        with ExitStack() as stack:
            launches = [_launches(gpu, stack, list(arms.values()), 0.0) for arms in arms_of_group]
            orders = [[of_arms[place][0] for of_arms, _ in launches] for place in range(len(arms_of_group[0]))]
            *times, library = _times(gpu, [*orders, [libraries[0] for _, libraries in launches]])
        yield {
            "layers": [arms[WITH].job.problem.name for arms in arms_of_group],
            "microseconds": {name: round(time, 3) for name, time in zip(arms_of_group[0], times)},
            "cublas_microseconds": round(library, 3),
        }


def measure(folder: Path, out: Path) -> None:
    """Checks and times the kernels, and writes the result after each problem.

    Args:
        folder: of the bundles.
        out: file of the result.
    """
    from stepladder.runtime.bundle import read_bundle

    groups: list[_Group] = [
        [(Built(replace(kernel.job, folder=folder), kernel.knobs, kernel.source), chosen) for kernel, chosen in group]
        for group in pickle.loads((folder / _PLAN).read_bytes())
    ]
    gpu = Gpu()
    head = head_of(_TYPES, gpu.device.describe(), WHAT)
    rows: list[list[object]] = []
    for runs, copies in ((HOT, 0.0), (ROTATED, _COPIES)):
        for kernel, chosen, microseconds, library in _each(gpu, groups, copies):
            problem, blocks = kernel.job.problem, math.prod(read_bundle(kernel.path).manifest.grid)
            knobs = [kernel.knobs.get(name, "") for name in _KNOBS]
            times = (round(microseconds, 3), round(library, 3))
            row = [*problem.size, problem.kind, problem.held_out, *knobs, blocks, chosen, runs, *times]
            rows.append(row)
            write_table(out, head, list(_COLUMNS), rows)
    write_table(out, {**head, "sequences": list(_sequences(gpu, groups))}, list(_COLUMNS), rows)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = halves_parser(__doc__)
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"problems to draw (default: {COUNT})")
    parser.add_argument("--part", choices=("seen", "held-out", "all"), default="all", help="of them (default: all)")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the kernels, or measures them.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    args = parse_halves(make_parser(), arguments)
    if args.what == "build":
        selected = [
            problem
            for problem in problems(args.count)
            if args.part in ("all", "held-out" if problem.held_out else "seen")
        ]
        build(args.folder, selected)
    else:
        measure(args.folder, args.out)


if __name__ == "__main__":
    run(main)
