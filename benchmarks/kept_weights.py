"""Times kernels that keep a part of the larger operand in the L2 cache (knob `kept_weights`), and kernels that do not.

Products of few rows that load weights early, and others whose operands the L2 cache does not hold: the kernel that
`compile` takes, without the knob, with the part that the cost model says, and with parts around it; others also without
dependent launch. Hot, and with launches that go through copies of the operands, which the cache has lost by then.

Where MLIR and ptxas are, and then on the machine with the GPU, with PyTorch:

    python benchmarks/kept_weights.py build FOLDER
    python benchmarks/kept_weights.py measure FOLDER RESULT.json
"""

from __future__ import annotations

import argparse
import pickle
import random
from dataclasses import replace
from pathlib import Path

from choice_plan import KNOBS, TYPES, Job
from choice_timing import Gpu
from common import run
from draw import FEED_FORWARD, HIDDEN, Drawn, draw_edge, draw_streamed, draw_wide
from halves import halves_parser, main_of_halves
from measured_kernels import write_table
from model_choice import Built, build_one, head_of

SEED = 20270412
KNOB, LAUNCH = "kept_weights", "dependent_launch"
WHAT = "default knobs with parts of the larger operand kept in L2, in turn with cuBLAS, medians of 3 rounds"
# Rows, bytes of the weights, and how many problems; problems of the other draws, and the bytes of their operands and C.
_ROWS, _WEIGHTS, _FEW = (1, 4, 8, 16, 32, 48, 64), (28e6, 160e6), 16
_DRAWS, _EACH, _BYTES = (draw_edge, draw_streamed, draw_wide), 6, (28e6, 160e6)
# Sixteenths beside those of the model.
_AROUND = (-3, 3)
_PARTS = 16
_COPIES = 400e6
_TYPES = TYPES["bf16-bf16"]
_COLUMNS = ("m", "n", "k", "kind", *KNOBS, "rotated", "microseconds", "cublas_microseconds")
_PLAN = "kernels.pickle"


def problems() -> list[Drawn]:
    """Returns the problems, those of few rows first."""
    rng = random.Random(SEED)
    selected: list[Drawn] = []
    while len(selected) < _FEW:
        m, n, k = rng.choice(_ROWS), rng.choice((*HIDDEN, *FEED_FORWARD)), rng.choice(HIDDEN)
        if _WEIGHTS[0] < 2 * n * k < _WEIGHTS[1]:
            selected.append(Drawn("few rows", m, n, k, False))
    for draw in _DRAWS:
        random_problems = [problem for problem in draw(60, SEED) if min(problem.m, problem.n) > max(_ROWS)]
        selected += [problem for problem in random_problems if _BYTES[0] < _bytes(problem) < _BYTES[1]][:_EACH]
    return list(dict.fromkeys(selected))


def _bytes(problem: Drawn) -> float:
    m, n, k = problem.size
    return 2.0 * (m * k + k * n + m * n)


def build(folder: Path) -> None:
    """Builds the kernels of all problems.

    Args:
        folder: of the bundles and of the list of what they hold.
    """
    from stepladder.pipeline.cost_model import gpu as gpus
    from stepladder.pipeline.cost_model import kept_weights
    from stepladder.pipeline.cost_model.terms import Size

    groups = []
    for problem in problems():
        m, n, k = (float(extent) for extent in problem.size)
        part = kept_weights.part_of(Size(m, n, k, 2.0, 2.0, "f32", False, "row", "row"), gpus.load("h200"))
        default = build_one(Job(problem, _TYPES, 0, None, 0.0, folder))
        knobs = {name: value for name, value in default.knobs.items() if name != "target"}
        is_few = problem.kind == "few rows"
        parts = [part + offset for offset in (0, *_AROUND) if 0 < part + offset < _PARTS]
        variants = [{KNOB: kept} for kept in (0, *(parts if is_few else parts[:1]))]
        variants += [] if is_few else [{**variant, LAUNCH: not knobs[LAUNCH]} for variant in variants]
        jobs = [
            replace(default.job, place=place, knobs={**knobs, **variant}) for place, variant in enumerate(variants, 1)
        ]
        group = [build_one(job) for job in jobs]
        print(*(f"{variant.title} {variant.refused}" for variant in group), sep="\n", flush=True)
        groups.append([variant for variant in group if not variant.refused])
    (folder / _PLAN).write_bytes(pickle.dumps(groups))


def measure(folder: Path, out: Path) -> None:
    """Checks and times the kernels, and writes the result after each problem.

    Args:
        folder: of the bundles.
        out: file of the result.
    """
    rows = []
    for rotated in (0.0, _COPIES):
        gpu = Gpu(rotated)
        head = head_of(_TYPES, gpu.device.describe(), WHAT)
        for group in pickle.loads((folder / _PLAN).read_bytes()):
            candidates = group[:2] if rotated else group
            kernels = [Built(replace(kernel.job, folder=folder), kernel.knobs, kernel.source) for kernel in candidates]
            for kernel, microseconds, cublas in gpu.measure(kernels):
                problem = kernel.job.problem
                knobs = [kernel.knobs.get(name, "") for name in KNOBS]
                rows.append(
                    [*problem.size, problem.kind, *knobs, rotated > 0, round(microseconds, 3), round(cublas, 3)]
                )
            write_table(out, head, list(_COLUMNS), rows)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return halves_parser(__doc__)


main = main_of_halves(make_parser, build, measure)


if __name__ == "__main__":
    run(main)
