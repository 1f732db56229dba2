"""Fits the constants of the cost model to measured kernels, and reports how well they choose.

    python benchmarks/fit_cost_model.py                         from docs/results, into the GPU's file
    python benchmarks/fit_cost_model.py --data FILE ... --gpu h200 --dry-run
    python benchmarks/fit_cost_model.py --family warpgroup --seed 12       goes on from the constants in the file
    python benchmarks/fit_cost_model.py --family warpgroup --keep          judges them, and keeps them
    python benchmarks/fit_cost_model.py --family warpgroup --only split_loads cluster      fits these, and no others

The fit is cross-validated: problems are divided into quarters at random, with a fixed seed, and constants fitted to
three quarters choose for the fourth. The constants that are written are fitted to all problems. The objective is the
time that the first choice loses to the best measured setting of a problem, the mean of it and, so that few problems
lose much, of its square, plus a third of the mean error of the logarithm of times.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, run
from draw import draw
from evolution import evolve
from measured_kernels import RESULTS, Kernel, kernels_of, steadied
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model import warp, warpgroup
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import CONSTANTS, WARP, WARPGROUP
from stepladder.pipeline.cost_model.terms import Size
from stepladder.runtime.errors import StepladderError

FAMILIES = {"wgmma": WARPGROUP, "mma_sync": WARP, "wmma": WARP}
PATTERNS = (
    "wgmma_sweep*.json",
    "wgmma_tuning*.json",
    "hopper_sizes*.json",
    "mma_sync_sizes*.json",
    "wmma_sizes*.json",
    "model_*.json",
)
BYTES = {"f16": 2.0, "bf16": 2.0, "f32": 4.0, "i8": 1.0, "i32": 4.0, "f8E4M3FN": 1.0, "f8E5M2": 1.0}
SEED = 20261121
# How sharply a fit tells settings apart: predicted times that differ by this part count as almost the same choice.
SHARPNESS = 0.03
TIME_WEIGHT, SQUARE_WEIGHT = 1 / 3, 4.0
# Of the first generation of two searches, as parts of the range of a constant: the second refines the first.
WIDTHS = (0.25, 0.05)
FIRST = 4
FOLDS = 4


@dataclass(frozen=True)
class Group:
    """Kernels that one call of a model predicts: of one pipeline, with the same types and layouts.

    Args:
        pipeline: that made them.
        kernels: the measured ones.
        knobs: their knobs as columns.
        size: of their problems; sizes are columns.
    """

    pipeline: str
    kernels: list[Kernel]
    knobs: Columns
    size: Size

    @classmethod
    def of(cls, kernels: list[Kernel]) -> Group:
        """Returns a group of kernels.

        Args:
            kernels: of one pipeline, with the same types and layouts.

        Raises:
            StepladderError: a kernel lacks a knob that others have.
        """
        first = kernels[0]
        names = set(first.knobs).union(*(kernel.knobs for kernel in kernels))
        defaults = {
            "split_k": 1,
            "split_k_workspace": "cluster",
            "tile_scheduler": "data_parallel",
            "prefetch": "cp_async",
            "swap_operands": False,
            "dependent_launch": True,
            "early_weights": False,
        }
        for kernel in kernels:
            missing = sorted(names - set(kernel.knobs) - set(defaults))
            if missing:
                raise StepladderError(f"{kernel.source}: a kernel has no {', '.join(missing)}")
        values = {name: np.array([kernel.knobs.get(name, defaults.get(name)) for kernel in kernels]) for name in names}
        values["shared_bytes"] = np.array([kernel.shared_bytes for kernel in kernels])
        m, n, k = (np.array([kernel.problem[name] for kernel in kernels], float) for name in "mnk")
        problem = first.problem
        size = Size(
            m,
            n,
            k,
            BYTES[problem["a_type"]],
            BYTES[problem["c_type"]],
            problem["acc_type"],
            problem["accumulate"],
            problem.get("a_layout", "row"),
            problem.get("b_layout", "row"),
        )
        if first.knobs.get("swap_operands"):
            size = exchanged(size)
        return cls(first.pipeline, kernels, Columns(values, {}, len(kernels)), size)

    def predict(self, gpu: gpus.Gpu) -> Array:
        """Returns the predicted times of the kernels, in us.

        Args:
            gpu: with the constants of the model.
        """
        if self.pipeline == "wgmma":
            return warpgroup.predict(self.knobs, self.size, gpu)["total"]
        return warp.predict(self.knobs, self.size, gpu, self.pipeline)["total"]


def exchanged(size: Size) -> Size:
    """Returns the problem that a kernel with exchanged operands computes: the transpose of C.

    Args:
        size: the problem.
    """
    other = {"row": "column", "column": "row"}
    return replace(
        size, m=size.n, n=size.m, a_layout=other[size.b_layout], b_layout=other[size.a_layout], c_layout="column"
    )


class Data:
    """Measured kernels, grouped for prediction, and by problem for judgement."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        grouped: dict[tuple[str, ...], list[Kernel]] = {}
        for kernel in kernels:
            problem = kernel.problem
            key = (
                kernel.pipeline,
                problem["a_type"],
                problem["acc_type"],
                problem["c_type"],
                kernel.layouts,
                str(problem["accumulate"]),
                str("split_k" in kernel.knobs),
                str(kernel.knobs.get("swap_operands", False)),
            )
            grouped.setdefault(key, []).append(kernel)
        self.groups = [Group.of(members) for members in grouped.values()]
        self.kernels = [kernel for group in self.groups for kernel in group.kernels]
        self.measured = np.array([kernel.microseconds for kernel in self.kernels])
        numbers: dict[tuple[str, ...], int] = {}
        self.problem = np.array([numbers.setdefault(kernel.key, len(numbers)) for kernel in self.kernels], int)
        self.problems = len(numbers)
        best = np.full(self.problems, np.inf)
        np.minimum.at(best, self.problem, self.measured)
        self.loss = np.log(self.measured / best[self.problem])
        self.count = np.bincount(self.problem, minlength=self.problems)

    def predict(self, gpu: gpus.Gpu) -> Array:
        """Returns the predicted times of all kernels, in us.

        Args:
            gpu: with the constants of the model.
        """
        return np.concatenate([group.predict(gpu) for group in self.groups])

    def objective(self, gpu: gpus.Gpu) -> float:
        """Returns the value that a fit minimizes; problems with one kernel count for their time only.

        Args:
            gpu: with the constants of the model.
        """
        predicted = np.log(self.predict(gpu))
        errors = np.abs(predicted - np.log(self.measured))
        least = np.full(self.problems, np.inf)
        np.minimum.at(least, self.problem, predicted)
        weight = np.exp(-(predicted - least[self.problem]) / SHARPNESS)
        loss = self.loss + SQUARE_WEIGHT * self.loss**2
        lost = np.bincount(self.problem, weight * loss) / np.bincount(self.problem, weight)
        chosen = self.count > 1
        times = np.bincount(self.problem, errors) / self.count
        return float(lost[chosen].mean() + TIME_WEIGHT * times.mean())

    def judge(self, predicted: Array) -> dict[str, float]:
        """Returns the quality of the choices by predicted times, over the problems with more settings than FIRST.

        The best measured time is divided by that of the first choice, and by the best of the first FIRST; the geometric
        mean and the least value are given for each, the same for ratios to cuBLAS, and the mean error of a time.

        Args:
            predicted: times of all kernels, in us.
        """
        rows = []
        for number in np.flatnonzero(self.count > FIRST):
            members = np.flatnonzero(self.problem == number)
            members = members[np.argsort(predicted[members], kind="stable")]
            losses = np.exp(-self.loss[members])
            ratios = np.array([self.kernels[i].cublas_microseconds / self.kernels[i].microseconds for i in members])
            rows.append((losses[0], losses[:FIRST].max(), ratios[0], ratios[:FIRST].max()))
        columns = np.array(rows).T if rows else np.ones((4, 1))
        names = ("first_of_best", "best_of_four_of_best", "first_of_cublas", "best_of_four_of_cublas")
        found = {"problems": len(rows)}
        for name, values in zip(names, columns):
            mean, least = float(np.exp(np.log(values).mean())), float(values.min())
            found |= {name: round(mean, 3), f"{name}_least": round(least, 3)}
        error = np.exp(np.abs(np.log(predicted / self.measured)).mean()) - 1
        return found | {"mean_error_of_a_time": round(float(error), 3)}


def with_constants(gpu: gpus.Gpu, family: str, values: Array) -> gpus.Gpu:
    """Returns a GPU with other constants of a family.

    Args:
        gpu: with its constants.
        family: of pipelines.
        values: the constants, in the order of CONSTANTS.
    """
    return replace(gpu, constants={**gpu.constants, family: dict(zip(CONSTANTS[family], map(float, values)))})


def fit(data: Data, gpu: gpus.Gpu, family: str, generations: int, seed: int, only: Sequence[str] = ()) -> gpus.Gpu:
    """Returns a GPU whose constants of a family are fitted to measured kernels.

    Args:
        data: the kernels.
        gpu: whose constants the search begins with.
        family: of pipelines.
        generations: of the evolution, for each width.
        seed: of the random numbers.
        only: names of the constants that are fitted, the others being those of `gpu`; none for all.
    """
    bounds, known = CONSTANTS[family], gpu.constants.get(family, {})
    least = np.array([constant.least for constant in bounds.values()])
    most = np.array([constant.most for constant in bounds.values()])
    values = np.array([known.get(name, (constant.least + constant.most) / 2) for name, constant in bounds.items()])
    fitted = np.array([not only or name in only for name in bounds])

    def filled(some: Array) -> Array:
        every = values.copy()
        every[fitted] = some
        return every

    for width in WIDTHS[-1:] if only else WIDTHS:
        some = evolve(
            lambda some: data.objective(with_constants(gpu, family, filled(some))),
            least[fitted],
            most[fitted],
            values[fitted],
            seed,
            generations,
            width=width,
        )
        values = filled(some)
    return with_constants(gpu, family, values)


def fold_of(kernels: Sequence[Kernel]) -> Array:
    """Returns the number of the fold of each kernel; problems of one size are in the same fold.

    Args:
        kernels: measured ones.
    """
    sizes = sorted({kernel.size for kernel in kernels})
    part = dict(zip(sizes, np.random.default_rng(SEED).permutation(len(sizes)) % FOLDS))
    return np.array([part[kernel.size] for kernel in kernels])


def fit_family(
    kernels: list[Kernel],
    gpu: gpus.Gpu,
    family: str,
    generations: int,
    seed: int = SEED,
    keep: bool = False,
    only: Sequence[str] = (),
) -> tuple[gpus.Gpu, dict]:
    """Fits the constants of a family and judges them by cross-validation.

    Args:
        kernels: of the family.
        gpu: whose constants the search begins with.
        family: of pipelines.
        generations: of the evolution, for each width.
        seed: of the random numbers.
        keep: judge the constants of `gpu` and do not replace them.
        only: names of the constants that are replaced; none for all.

    Returns:
        The GPU with the constants, and the description of the fit.
    """
    data = Data(kernels)
    fresh = replace(gpu, constants={})  # what is held out had no part in where a search begins
    fold, held_out = fold_of(data.kernels), np.zeros(len(kernels))
    for number in range(FOLDS):
        others = Data([kernel for kernel, own in zip(data.kernels, fold) if own != number])
        predicted = data.predict(fit(others, fresh, family, generations, SEED))
        held_out[fold == number] = predicted[fold == number]
    fitted = gpu if keep else fit(data, gpu, family, generations, seed, only)
    judged = {"held_out": data.judge(held_out), "all": data.judge(data.predict(fitted))}
    print(f"{family}: {json.dumps(judged, indent=1)}", flush=True)
    return fitted, {"kernels": len(kernels), "problems": data.problems, **judged}


def usable(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Returns the kernels that a fit uses, with times at one clock.

    They are of whole pipelines that the model knows, and of problems that are not held out. Kernels that load weights
    before they wait have a model of their own (`cost_model.early_weights`).

    Args:
        kernels: measured ones.
    """
    held_out = {problem.size for problem in draw() if problem.held_out}
    return steadied(
        [
            kernel
            for kernel in kernels
            if kernel.pipeline in FAMILIES
            and not kernel.without
            and not kernel.knobs.get("early_weights")
            and kernel.size not in held_out
        ]
    )


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", nargs="+", type=Path, metavar="FILE", help="results (default: those in docs/results)")
    parser.add_argument("--gpu", default="h200", help="the GPU that they were measured on (default: h200)")
    parser.add_argument("--generations", type=int, default=400, metavar="N", help="of the search (default: 400)")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"of the search (default: {SEED})")
    parser.add_argument("--keep", action="store_true", help="keep the constants, and cross-validate")
    parser.add_argument("--family", choices=CONSTANTS, help="of kernels, whose constants are fitted (default: all)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="constants of --family that are fitted")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Fits the constants and writes the GPU's file.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    unknown = sorted(set(args.only) - set(CONSTANTS.get(args.family, ())))
    if unknown:
        parser.error(f"--only: {', '.join(unknown)}: no constants of --family {args.family}")
    paths = args.data or sorted({path for pattern in PATTERNS for path in RESULTS.glob(pattern)})
    kernels = usable([kernel for path in paths for kernel in kernels_of(path)])
    path = gpus.path_of(args.gpu)
    written = json.loads(path.read_text())
    written.setdefault("constants", {family: {} for family in CONSTANTS})
    path.write_text(json.dumps(written, indent=2) + "\n") if not args.dry_run else None
    gpu = gpus.load(args.gpu)
    heads = [json.loads(path.read_text()) for path in paths]
    dates = sorted(date for head in heads for date in _values(head, "date"))
    drivers = sorted({driver for head in heads for driver in _values(head, "driver_version")})
    fits = {family: written["fitted"][family] for family in CONSTANTS if args.family not in (None, family)}
    for family in CONSTANTS:
        own = [kernel for kernel in kernels if FAMILIES[kernel.pipeline] == family]
        if own and family not in fits:
            gpu, fits[family] = fit_family(own, gpu, family, args.generations, args.seed, args.keep, args.only)
    for family, values in gpu.constants.items():
        print(family, {name: round(value, 4) for name, value in values.items()})
    if args.dry_run:
        return
    written |= {
        "source": gpus.MEASURED,
        "fitted": {
            "command": "python benchmarks/fit_cost_model.py",
            "card": gpu.name,
            "driver_versions": drivers,
            "measured_from": dates[0][:10],
            "measured_to": dates[-1][:10],
            "data": [path.name for path in paths],
            **fits,
        },
    }
    widths = {int(kernel.knobs["block_n"]) for kernel in kernels if FAMILIES[kernel.pipeline] == WARPGROUP}
    written["measured_widths"] = {WARPGROUP: sorted(widths)}
    written["constants"] = {
        family: {name: round(value, 4) for name, value in values.items()} for family, values in gpu.constants.items()
    }
    path.write_text(json.dumps(written, indent=2) + "\n")


def _values(data: object, name: str) -> list[str]:
    """Returns all texts of this name anywhere in a result."""
    if isinstance(data, dict):
        own = [data[name]] if isinstance(data.get(name), str) else []
        return own + [text for value in data.values() for text in _values(value, name)]
    return [text for value in data for text in _values(value, name)] if isinstance(data, list) else []


if __name__ == "__main__":
    run(main)
