"""Fits the constants of the cost model to measured kernels, and reports how well they choose.

    python benchmarks/fit_cost_model.py                         from docs/results, into the GPU's file
    python benchmarks/fit_cost_model.py --data FILE ... --gpu h200 --dry-run
    python benchmarks/fit_cost_model.py --family warpgroup --keep          judges the constants, and keeps them
    python benchmarks/fit_cost_model.py --family warpgroup --keep --judged RESULT.json      says it of every result
    python benchmarks/fit_cost_model.py --family warpgroup --only split_loads cluster      fits these, and no others
    python benchmarks/fit_cost_model.py --family warpgroup --refine        searches near the constants in the file only
    python benchmarks/fit_cost_model.py --family warpgroup --only empty --no-folds         without cross-validation

The fit is cross-validated: problems are divided into quarters at random, with a fixed seed, and constants fitted to
three quarters choose for the fourth; their search begins in the middle of the constants' ranges. The constants that are
written are fitted to all problems. The objective is the time that the first choice loses to the best measured setting
of a problem, the mean of it and, so that few problems lose much, of its square, plus a third of the mean error of the
logarithm of times. Choices are made as the model makes them, by times with its margins.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from box import Box
from common import new_parser, run
from descent import descend
from draw import draw
from fit_data import Data
from measured_kernels import Kernel, kernels_of, results_on, steadied
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model.columns import Array
from stepladder.pipeline.cost_model.constants import CONSTANTS, WARP, WARPGROUP

FAMILIES = {"wgmma": WARPGROUP, "mma_sync": WARP, "wmma": WARP}
PATTERNS = (
    "wgmma_sweep*.json",
    "wgmma_tuning*.json",
    "hopper_sizes*.json",
    "mma_sync_sizes*.json",
    "wmma_sizes*.json",
    "model_*.json",
    "forms_batches*.json",
    "forms_outer*.json",
    "forms_tall*.json",
    "default_*.json",
)
SEED = 20261121
# Of a search near the constants in the file: how far a constant moves in the first round, as a part of its range, and
# what it costs to move through all of it.
NEAR, PULL = 0.08, 0.03
FOLDS = 4


def with_constants(gpu: gpus.Gpu, family: str, values: Array) -> gpus.Gpu:
    """Returns a GPU with other constants of a family.

    Args:
        gpu: with its constants.
        family: of pipelines.
        values: the constants, in the order of CONSTANTS.
    """
    return replace(gpu, constants={**gpu.constants, family: dict(zip(CONSTANTS[family], map(float, values)))})


def fit(data: Data, gpu: gpus.Gpu, family: str, rounds: int, only: Sequence[str] = (), pull: float = PULL) -> gpus.Gpu:
    """Returns a GPU whose constants of a family are fitted to measured kernels.

    Args:
        data: the kernels.
        gpu: whose constants the search begins with, and stays near, where `only` names some.
        family: of pipelines.
        rounds: of the search.
        only: names of the constants that are fitted; none for all, whose search begins in the middle of their ranges.
        pull: what it costs to move one of these through its range.
    """
    bounds, known_constants = CONSTANTS[family], gpu.constants.get(family, {}) if only else {}
    least = np.array([constant.least for constant in bounds.values()])
    most = np.array([constant.most for constant in bounds.values()])
    values = np.array(
        [known_constants.get(name, (constant.least + constant.most) / 2) for name, constant in bounds.items()]
    )
    fitted = np.array([not only or name in only for name in bounds])

    def filled(part: Array) -> Array:
        all_values = values.copy()
        all_values[fitted] = part
        return all_values

    numbers = descend(
        lambda numbers: np.log(data.predict(with_constants(gpu, family, filled(numbers)))),
        data.objective,
        Box(least[fitted], most[fitted]),
        values[fitted],
        rounds,
        **({"trust": NEAR, "pull": pull} if only else {}),
    )
    return with_constants(gpu, family, filled(numbers))


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
    rounds: int,
    keep: bool = False,
    only: Sequence[str] = (),
    known: dict | None = None,
    borrows: bool = False,
) -> tuple[gpus.Gpu, dict, dict]:
    """Fits the constants of a family and judges them by cross-validation.

    Args:
        kernels: of the family.
        gpu: that the kernels are for, with the constants in its file.
        family: of pipelines.
        rounds: of the search.
        keep: judge the constants of `gpu` and do not replace them.
        only: names of the constants that are replaced; none for all.
        known: what an earlier fit said of held-out problems, in place of cross-validation; None to cross-validate.
        borrows: whether the constants of `gpu` are those of another GPU, which know none of the kernels: each search
            of the cross-validation begins with them, too.

    Returns:
        The GPU with the constants, the description of the fit, and what it says of each result: `all`, and `held_out`
        where the fit is cross-validated.
    """
    data = Data(kernels, gpu)
    judged, sources = {"held_out": known}, {}
    if known is None:
        held_out = _held_out(data, gpu, family, rounds, only if borrows else ())
        judged, sources = {"held_out": data.judge(held_out)}, {"held_out": data.judge_sources(held_out)}
    fitted = gpu if keep else fit(data, gpu, family, rounds, only)
    predicted = data.predict(fitted)
    judged["all"], sources["all"] = data.judge(predicted), data.judge_sources(predicted)
    print(f"{family}: {json.dumps(judged, indent=1)}", flush=True)
    return fitted, {"kernels": len(kernels), "problems": data.problems, **judged}, sources


def _held_out(data: Data, gpu: gpus.Gpu, family: str, rounds: int, only: Sequence[str]) -> Array:
    """Returns the times that constants predict for the fold that they are not fitted to."""
    fold, held_out = fold_of(data.kernels), np.zeros(len(data.kernels))
    for number in range(FOLDS):
        others = Data([kernel for kernel, own_fold in zip(data.kernels, fold) if own_fold != number], gpu)
        predicted = data.predict(fit(others, gpu, family, rounds, only))
        held_out[fold == number] = predicted[fold == number]
    return held_out


def usable(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Returns the kernels that a fit uses, with times at one clock.

    They are of whole pipelines that the model knows, and of problems that are not held out. Kernels that load weights
    before they wait have a model of their own (`cost_model.early_weights`), and of those that keep weights in the cache
    there is none.

    Args:
        kernels: measured ones.
    """
    held_out = {problem.size for problem in draw() if problem.held_out}
    return steadied(
        [
            replace(kernel, knobs={name: value for name, value in kernel.knobs.items() if name != "kept_weights"})
            for kernel in kernels
            if kernel.pipeline in FAMILIES
            and not kernel.without
            and not kernel.knobs.get("early_weights")
            and not kernel.knobs.get("kept_weights")
            and kernel.size not in held_out
        ]
    )


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", nargs="+", type=Path, metavar="FILE", help="results (default: those of the GPU)")
    parser.add_argument("--gpu", default="h200", help="the GPU that they were measured on (default: h200)")
    parser.add_argument("--rounds", type=int, default=12, metavar="N", help="of the search (default: 12)")
    parser.add_argument("--keep", action="store_true", help="keep the constants, and cross-validate")
    parser.add_argument("--family", choices=CONSTANTS, help="of kernels, whose constants are fitted (default: all)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="constants of --family that are fitted")
    parser.add_argument("--refine", action="store_true", help="search near the constants of --family in the file only")
    parser.add_argument(
        "--no-folds", action="store_true", help="keep what the file says of held-out problems: no cross-validation"
    )
    parser.add_argument("--judged", type=Path, metavar="RESULT.json", help="file for the choices of every result")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Fits the constants and writes the GPU's file.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.refine and not args.family:
        parser.error("--refine: --family is missing")
    path, gpu = gpus.path_of(args.gpu), gpus.load(args.gpu)
    written = json.loads(path.read_text())
    known_fits, borrows = written.get("fitted", {}), "fitted_from" in written and not args.keep
    if borrows:
        gpu = replace(gpu, constants=gpus.load(written["fitted_from"]).constants)
    only = args.only or (list(CONSTANTS[args.family]) if args.refine else [])
    unknown = sorted(set(args.only) - set(CONSTANTS.get(args.family, ())))
    if unknown:
        parser.error(f"--only: {', '.join(unknown)}: no constants of --family {args.family}")
    paths = args.data or sorted({path for pattern in PATTERNS for path in results_on(args.gpu).glob(pattern)})
    kernels = usable([kernel for path in paths for kernel in kernels_of(path)])
    heads = [json.loads(path.read_text()) for path in paths]
    dates = sorted(date for head in heads for date in _values(head, "date"))
    drivers = sorted({driver for head in heads for driver in _values(head, "driver_version")})
    judged: dict[str, dict] = {}
    fits = {
        family: known_fits[family] for family in CONSTANTS if args.family not in (None, family) and family in known_fits
    }
    for family in CONSTANTS:
        of_family = [kernel for kernel in kernels if FAMILIES[kernel.pipeline] == family]
        if of_family and args.family in (None, family):
            known = known_fits[family]["held_out"] if args.no_folds else None
            gpu, fits[family], judged[family] = fit_family(
                of_family, gpu, family, args.rounds, args.keep, only, known, borrows
            )
    if args.judged:
        args.judged.write_text(json.dumps(_result(argv, heads, judged), indent=1) + "\n")
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
        family: {name: round(value, 4) for name, value in values.items()}
        for family, values in gpu.constants.items()
        if family in fits or not borrows
    }
    path.write_text(json.dumps(written, indent=2) + "\n")


def _result(argv: Sequence[str] | None, heads: Sequence[dict], judged: dict[str, dict]) -> dict[str, object]:
    """Returns a result of the choices among the measured settings of other results, whose heads have card and dates."""
    return {
        "schema_version": 1,
        "date": max(date for head in heads for date in _values(head, "date")),
        "command": ["benchmarks/fit_cost_model.py", *(sys.argv[1:] if argv is None else argv)],
        "card": next(head["card"] for head in heads if "driver_cuda_version" in head.get("card", {})),
        "what": "first choices among the measured settings of a problem, by constants that are fitted to all problems, "
        "and by constants that are fitted to those of three other quarters",
        "families": judged,
    }


def _values(data: object, name: str) -> list[str]:
    """Returns all texts of this name anywhere in a result."""
    if isinstance(data, dict):
        values = [data[name]] if isinstance(data.get(name), str) else []
        return values + [text for value in data.values() for text in _values(value, name)]
    return [text for value in data for text in _values(value, name)] if isinstance(data, list) else []


if __name__ == "__main__":
    run(main)
