"""Times kernels whose producer's thread is chosen by its number, and kernels that elect it (knob `elect_producer`).

Problems of three draws (`draw.py`) whose first choice loads few bytes a k step without splitting k, some that load
more, and named ones: the kernel that `compile` takes, without and with the knob, in turn.

Where MLIR and ptxas are, and then on the machine with the GPU, with PyTorch:

    python benchmarks/elected.py build FOLDER
    python benchmarks/elected.py measure FOLDER RESULT.json
"""

from __future__ import annotations

import argparse
import math
import pickle
import random
from dataclasses import replace
from pathlib import Path

from choice_plan import KNOBS, TYPES, Job, plan
from choice_timing import Gpu
from common import run
from draw import Drawn, draw_fresh, draw_tail, draw_thin, named
from halves import halves_parser, main_of_halves
from measured_kernels import write_table
from model_choice import Built, build_one, head_of

SEED = 20270401
KNOB = "elect_producer"
WHAT = "default knobs without and with elect_producer, hot L2, in turn with cuBLAS, medians of 3 rounds"
# Problems of a draw, of more operations than which launches take too long for the producer to matter.
_DRAWS, _OPERATIONS = ((draw_tail, 300), (draw_fresh, 400), (draw_thin, 300)), 4e10
# How many problems there are of such bytes a k step, up to so many.
_SAMPLES, _MIN_STEPS = ((16 << 10, 16), (21 << 10, 8), (28 << 10, 2)), 8
_NAMED = ("256x1536x3072", "128x3072x2048", "2816x192x1560", "6104x112x2424")
_ROUNDS = 3
_TYPES = TYPES["bf16-bf16"]
_COLUMNS = ("m", "n", "k", "kind", *KNOBS, KNOB, "microseconds", "cublas_microseconds")
_PLAN = "kernels.pickle"


def step_bytes(knobs: dict[str, int | str]) -> int:
    """Returns the bytes that a block loads in a k step.

    Args:
        knobs: of a kernel.
    """
    block_m, block_n, block_k = (int(knobs[name]) for name in ("block_m", "block_n", "block_k"))
    return (math.ceil(block_m / 64) * 64 + block_n) * block_k * 2


def problems() -> list[Drawn]:
    """Returns the problems: a sample of those drawn, and the named ones."""
    by_bytes: list[list[Drawn]] = [[] for _ in _SAMPLES]
    for draw, count in _DRAWS:
        for problem in draw(count, SEED):
            if 2.0 * problem.m * problem.n * problem.k > _OPERATIONS:
                continue
            first = plan(problem, _TYPES, everything=False, folder=Path())[1:2]
            knobs = first[0].knobs if first else None
            if not knobs or knobs["split_k"] != 1 or problem.k < _MIN_STEPS * int(knobs["block_k"]):
                continue
            place = next((i for i, (most, _) in enumerate(_SAMPLES) if step_bytes(knobs) <= most), None)
            if place is not None:
                by_bytes[place].append(problem)
    rng = random.Random(SEED)
    sample = [item for of_bytes, (_, count) in zip(by_bytes, _SAMPLES) for item in rng.sample(of_bytes, count)]
    return [*sample, *named(_NAMED)]


def build(folder: Path) -> None:
    """Builds the kernels of all problems.

    Args:
        folder: of the bundles and of the list of what they hold.
    """
    pairs = []
    for problem in problems():
        default = build_one(Job(problem, _TYPES, 0, None, 0.0, folder))
        knobs = {name: value for name, value in default.knobs.items() if name != "target"}
        pair = [default, build_one(replace(default.job, place=1, knobs={**knobs, KNOB: True}))]
        print(*(f"{kernel.title} {kernel.refused}" for kernel in pair), sep="\n", flush=True)
        pairs.append(pair)
    (folder / _PLAN).write_bytes(pickle.dumps(pairs))


def measure(folder: Path, out: Path) -> None:
    """Checks and times the kernels, and writes the result after each problem.

    Args:
        folder: of the bundles.
        out: file of the result.
    """
    gpu, rows = Gpu(), []
    head = head_of(_TYPES, gpu.device.describe(), WHAT)
    for pair in pickle.loads((folder / _PLAN).read_bytes()):
        kernels = [Built(replace(kernel.job, folder=folder), kernel.knobs, kernel.source) for kernel in pair * _ROUNDS]
        for kernel, microseconds, cublas in gpu.measure(kernels):
            problem = kernel.job.problem
            knobs = [kernel.knobs.get(name, "") for name in (*KNOBS, KNOB)]
            rows.append([*problem.size, problem.kind, *knobs, round(microseconds, 3), round(cublas, 3)])
        write_table(out, head, list(_COLUMNS), rows)
        print(rows[-1], flush=True)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return halves_parser(__doc__)


main = main_of_halves(make_parser, build, measure)


if __name__ == "__main__":
    run(main)
