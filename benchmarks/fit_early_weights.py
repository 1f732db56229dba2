"""Fits the model of kernels that load weights early to measured ones, and reports how well it chooses.

    python benchmarks/fit_early_weights.py [RESULT.json ...] [--generations 500] [--keep] [--splits]

Results are those of `decode.py measure` (those in docs/results if none are given). It writes four sets of constants to
the file of the H200: for products of up to 32 rows and of more, those of kernels with one block on a multiprocessor,
and with two. The objective is the time that the first choice loses to the best measured setting of a problem, softened
so that settings with nearly equal predictions share it, and the error of the logarithm of times, in which the fastest
settings of a problem weigh most. With --keep, the constants of the model are judged. The fit is cross-validated as in
fit_cost_model.py: the problems of a size are held out together. The sets of short blocks in splits of k are fitted by
themselves, by least squares; with --splits, the others are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from box import Box
from common import new_parser, run
from evolution import evolve
from fit_cost_model import FOLDS, SEED, fold_of
from fit_data import exchanged
from measured_kernels import RESULTS, Kernel, kernels_of
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import (
    EARLY,
    EARLY_FEW,
    EARLY_FEW_SPLITS,
    EARLY_FEW_THIRDS,
    EARLY_FEW_TWO,
    EARLY_MORE,
    EARLY_MORE_TWO,
)
from stepladder.pipeline.cost_model.early_weights import FEW_ROWS, predict
from stepladder.pipeline.cost_model.terms import Size

PATTERNS, CARD = ("early_weights*.json", "decode_row*.json", "decode_column*.json"), "h200"
Sets = Mapping[str, Mapping[str, float]]
# Constants that are fitted: all but that of pairs.
FITTED = {name: constant for name, constant in EARLY.items() if name != "narrow"}
# Of the first generation of two searches, as parts of the range of a constant: the second refines the first.
WIDTHS = (0.25, 0.05)
# Predictions within such a part of each other share a choice; what the time that choices lose weighs. In the error,
# settings within such factors of the best have such weights, and the others the last; larger errors count as the last.
_SOFT, _LOST = 0.015, 8.0
_WEIGHTS, _OTHER, _MAX_ERROR = ((1.1, 3.0), (1.35, 1.0)), 0.15, 0.3
# Waves by which kernels differ at least for a term of the last one.
_FEW_WAVES = 0.5
_NUMBERS = ("block_m", "block_n", "block_k", "split_k", "stages", "persistent_blocks", "min_blocks_per_sm")
_DEFAULTS = {"min_blocks_per_sm": 1}
# For the shared memory of a block: rows of an instruction; bytes of an element of A and B, and of a sum; elements that
# pad a row of sums; sums of a pair of each thread; bytes of its mbarriers, and those that the system reserves, each.
_TILE = ("block_m", "block_n", "block_k", "stages", "split_k")
_ROWS, _ELEMENT_BYTES, _SUM_BYTES, _PADDING, _PAIRS, _RESERVED = 64, 2, 4, 4, 256, 1024


@dataclass(frozen=True)
class Group:
    """The settings of all problems whose operands have the same layouts, and the same one of which is the weights, in
    columns."""

    size: Size
    knobs: Columns
    at: list[int]


def _speeds(kernels: Sequence[Kernel]) -> Array:
    """Returns by how much longer cuBLAS took in a kernel's result than in all that measured the same problems, a
    median: HBM is a few percent faster in some runs than in others."""
    alike: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for kernel in kernels:
        alike.setdefault(kernel.key[1:], {}).setdefault(kernel.source, []).append(kernel.cublas_microseconds)
    runs: dict[str, list[float]] = {kernel.source: [] for kernel in kernels}
    for results in alike.values():
        medians = {source: float(np.median(times)) for source, times in results.items()}
        usual = float(np.median(list(medians.values())))
        for source, time in medians.items():
            if len(medians) > 1:
                runs[source].append(time / usual)
    speeds = {source: float(np.median(ratios)) if ratios else 1.0 for source, ratios in runs.items()}
    return np.array([speeds[kernel.source] for kernel in kernels])


def _form_of(kernel: Kernel) -> tuple[str, bool]:
    """Returns the layouts of a kernel's operands, and whether it computes C^T: weights are its operand A."""
    return kernel.layouts, kernel.size[0] < kernel.size[1]


class Settings:
    """Measured settings, grouped for prediction, and by problem for judgement.

    Args:
        kernels: measured ones.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = list(kernels)
        self.times = np.array([kernel.microseconds for kernel in kernels]) / _speeds(kernels)
        self.problems: dict[tuple[str, ...], list[int]] = {}
        for at, kernel in enumerate(kernels):
            self.problems.setdefault(kernel.key[1:], []).append(at)  # of all results
        best = np.zeros(len(kernels))
        for members in self.problems.values():
            best[members] = self.times[members].min()
        self.weights = np.full(len(kernels), _OTHER)
        for factor, weight in reversed(_WEIGHTS):
            self.weights[self.times < factor * best] = weight
        self.groups = [self._group(*form) for form in sorted({_form_of(kernel) for kernel in kernels})]
        self.gpu = gpus.load(CARD)

    def _group(self, layouts: str, is_exchanged: bool) -> Group:
        at = [at for at, kernel in enumerate(self.kernels) if _form_of(kernel) == (layouts, is_exchanged)]
        m, n, k = (np.array(values, float) for values in zip(*(self.kernels[number].size for number in at)))
        a_layout, b_layout = layouts.split("-")
        values = {
            name: np.array([float(self.kernels[number].knobs.get(name, _DEFAULTS.get(name, 0))) for number in at])
            for name in _NUMBERS
        }
        size = Size(m, n, k, 2, 2, "f32", False, a_layout, b_layout)
        return Group(exchanged(size) if is_exchanged else size, Columns(values, {}, len(at)), at)

    def predict(self, constants: Sets) -> Array:
        """Returns the predicted time of each kernel, in us.

        Args:
            constants: of the model, by set.
        """
        times = np.zeros(len(self.kernels))
        for group in self.groups:
            times[group.at] = predict(group.knobs, group.size, self.gpu, constants)
        return times

    def objective(self, constants: Sets) -> float:
        """Returns what the fit minimizes.

        Args:
            constants: of the model, by set.
        """
        predicted = self.predict(constants)
        errors = np.minimum((np.log(predicted) - np.log(self.times)) ** 2, _MAX_ERROR**2)
        losses = []
        for members in self.problems.values():
            near = np.exp(-np.log(predicted[members] / predicted[members].min()) / _SOFT)
            times = self.times[members]
            losses.append((near / near.sum() * (times / times.min() - 1)).sum())
        return float(np.sqrt((self.weights * errors).sum() / self.weights.sum()) + _LOST * np.mean(losses))

    def judge(self, predicted: Array) -> str:
        """Returns how fast the first choices are, as a part of the fastest, and how far predictions are off.

        Args:
            predicted: time of each kernel, in us.
        """
        ratios = []
        for members in self.problems.values():
            times = self.times[members]
            ratios.append(times.min() / times[np.argmin(predicted[members])])
        near = self.weights > _OTHER
        error = np.sqrt(np.mean((np.log(predicted) - np.log(self.times))[near] ** 2))
        return f"first choice / fastest {np.mean(ratios):.3f}, least {min(ratios):.3f}; error {error:.3f}"


def usable(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Returns the kernels of the forms that the model knows.

    Args:
        kernels: of results of settings that load weights early.
    """
    return [
        kernel
        for kernel in kernels
        if kernel.knobs.get("early_weights", True)
        and kernel.knobs.get("schedule", "cooperative") == "cooperative"
        and int(kernel.knobs.get("cluster_m", 1)) * int(kernel.knobs.get("cluster_n", 1)) == 1
        and kernel.knobs.get("split_k_workspace") == "cluster"
        and _is_candidate(kernel)
    ]


def _is_candidate(kernel: Kernel) -> bool:
    """Returns whether kernels of this form may be chosen, and a multiprocessor has the shared memory for as many blocks
    as it is for: some results have kernels of which it holds one."""
    m, n, k, stages, split = (int(kernel.knobs[name]) for name in _TILE)
    blocks = int(kernel.knobs.get("min_blocks_per_sm", 1))
    if split == 1 and blocks == 1 and m > _ROWS and m % _ROWS == 0:
        return False
    rows, sums = -(-m // _ROWS) * _ROWS, -(-n // split) * split
    pairs = rows * n // _PAIRS
    sent = (1 if pairs <= split else -(-pairs // 2 // split) * 2) * split * _PAIRS
    workspace = max(sums * (rows + _PADDING), sent) * _SUM_BYTES if split > 1 else 0
    block = stages * (rows + n) * k * _ELEMENT_BYTES + workspace + 2 * _RESERVED
    return blocks == 1 or blocks * block <= gpus.load(CARD).shared_bytes


def fit(settings: Settings, start: Sets, generations: int) -> dict[str, dict[str, float]]:
    """Returns constants that are fitted to measured settings, by set.

    Args:
        settings: the measured ones.
        start: where the search begins.
        generations: of the evolution, for each width.
    """
    ends = (np.tile([getattr(constant, end) for constant in FITTED.values()], len(start)) for end in ("least", "most"))
    box = Box(*ends)
    values = np.array([constants_of_set[name] for constants_of_set in start.values() for name in FITTED])

    def constants(numbers: Array) -> dict[str, dict[str, float]]:
        parts = numbers.reshape(len(start), -1)
        return {
            key: {**constants_of_set, **dict(zip(FITTED, map(float, part)))}
            for (key, constants_of_set), part in zip(start.items(), parts)
        }

    for width in WIDTHS:
        values = evolve(
            lambda point: settings.objective(constants(point)),
            box,
            values,
            SEED,
            generations,
            width=width,
        )
    return constants(values)


def fit_splits(settings: Settings, others: Sets, name: str) -> dict[str, float]:
    """Returns a set of constants of short blocks in splits of k, by least squares of relative errors.

    Times are compared with those that other settings are predicted to take, and these are a few percent too short for
    the fastest ones: the times that are fitted are shorter by what the median of such predictions lacks.

    Args:
        settings: the measured ones.
        others: the sets of constants of other blocks.
        name: of the set.
    """
    base = settings.predict(others)
    loading, end, columns = (
        settings.predict({**others, name: {"hbm": 1.0, "end": end, "wave_column": column}})
        for end, column in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    )
    memory_bound = np.flatnonzero(columns > loading)
    first = []
    for members in map(np.array, settings.problems.values()):
        if np.isin(members, memory_bound).any():
            rest = np.setdiff1d(members, memory_bound)
            first += [rest[np.argmin(base[rest])]] if len(rest) else []
    scale = np.median(base[first] / settings.times[first])
    terms = np.stack([loading, end - loading, columns - loading], 1)[memory_bound] / settings.times[memory_bound, None]
    # Where all kernels have about as many waves, the time of the last blocks is a part of that of all.
    waves = loading[memory_bound] / (end - loading)[memory_bound]
    terms_used = [0, 1, 2] if np.ptp(waves) > _FEW_WAVES else [0, 2]
    factors = np.zeros(3)
    factors[terms_used], *_ = np.linalg.lstsq(terms[:, terms_used], np.full(len(memory_bound), scale))
    error = np.std(terms @ factors / scale)
    print(f"{name}: {len(memory_bound)} kernels, error {error:.3f}; first choices / predicted {1 / scale:.3f}")
    return {"hbm": 1 / factors[0], "wave_column": factors[2], "end": factors[1]}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("results", type=Path, nargs="*", metavar="RESULT.json", help="of measured settings")
    parser.add_argument("--generations", type=int, default=500, help="of the evolution, for each width")
    parser.add_argument("--keep", action="store_true", help="judge the constants of the model")
    parser.add_argument("--splits", action="store_true", help="fit those of short blocks in many splits of k alone")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Fits the constants, writes them, and prints how well they choose.

    Args:
        argv: arguments of the command line; those of the process if none are given.
    """
    args = make_parser().parse_args(argv)
    paths = args.results or sorted(path for pattern in PATTERNS for path in RESULTS.glob(pattern))
    kernels = usable([kernel for path in paths for kernel in kernels_of(path)])
    print(f"{len(kernels)} kernels: {', '.join(path.name for path in paths)}")
    path = gpus.path_of(CARD)
    written = json.loads(path.read_text())
    for names, is_few in (((EARLY_FEW, EARLY_FEW_TWO), True), ((EARLY_MORE, EARLY_MORE_TWO), False)):
        of_rows = [kernel for kernel in kernels if (min(kernel.size[:2]) <= FEW_ROWS) == is_few]
        start = {name: written["early_weights"][name] for name in names}
        if of_rows:
            written["early_weights"].update(_constants(of_rows, start, args))
        if of_rows and is_few:
            others, settings = {name: written["early_weights"][name] for name in names}, Settings(of_rows)
            all_sets = dict(others)
            for name in (EARLY_FEW_SPLITS, EARLY_FEW_THIRDS):
                if not args.keep:
                    splits = fit_splits(settings, others, name)
                    written["early_weights"][name] = {key: float(f"{splits[key]:.4g}") for key in splits}
                all_sets[name] = written["early_weights"][name]
                print(f"with {name}: {settings.judge(settings.predict(all_sets))}")
    if not args.keep:
        path.write_text(json.dumps(written, indent=2) + "\n")


def _constants(kernels: list[Kernel], start: Sets, args: argparse.Namespace) -> Sets:
    """Returns sets of constants, fitted unless they are kept, and prints how well they choose."""
    settings = Settings(kernels)
    print(f"{', '.join(start)}: {len(settings.problems)} problems")
    if args.keep or args.splits:
        print(settings.judge(settings.predict(start)))
        return start
    fitted = fit(settings, start, args.generations)
    fold, held_out = fold_of(kernels), np.zeros(len(kernels))
    for number in range(FOLDS):
        others = Settings([kernel for kernel, own_fold in zip(kernels, fold) if own_fold != number])
        predicted = settings.predict(fit(others, start, args.generations))
        held_out[fold == number] = predicted[fold == number]
    print(f"held out: {settings.judge(held_out)}\nall: {settings.judge(settings.predict(fitted))}")
    return {key: {name: float(f"{value:.4g}") for name, value in numbers.items()} for key, numbers in fitted.items()}


if __name__ == "__main__":
    run(main)
