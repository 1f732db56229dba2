"""Measured kernels for the fit of the cost model: grouped for prediction, and by problem for judgement."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from measured_kernels import Kernel, kernels_of, results_on
from stepladder.pipeline.cost_model import gpu as gpus
from stepladder.pipeline.cost_model import ranking, warp, warpgroup
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.constants import WARP, WARPGROUP
from stepladder.pipeline.cost_model.terms import Size
from stepladder.runtime.errors import StepladderError

BYTES = {"f16": 2.0, "bf16": 2.0, "f32": 4.0, "i8": 1.0, "i32": 4.0, "f8E4M3FN": 1.0, "f8E5M2": 1.0}
# How sharply a fit tells settings apart: predicted times that differ by this part count as almost the same choice.
SHARPNESS = 0.03
# Errors of logarithms below this count by their square.
SMOOTHNESS = 0.01
TIME_WEIGHT, SQUARE_WEIGHT = 1 / 3, 4.0
FIRST = 4


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
            "launch_trigger": "early",
            "early_weights": False,
            "min_blocks_per_sm": 1,
            "kept_weights": 0,
            "fast_accum": True,
            "split_f32": "kernels",
            "stagger": 0,
            "target": "sm_90a",
        }
        for kernel in kernels:
            missing = sorted(names - set(kernel.knobs) - set(defaults))
            if missing:
                raise StepladderError(f"{kernel.source}: a kernel has no {', '.join(missing)}")
        values = {name: np.array([kernel.knobs.get(name, defaults.get(name)) for kernel in kernels]) for name in names}
        values["shared_bytes"] = np.array([kernel.shared_bytes for kernel in kernels])
        m, n, k = (np.array([kernel.problem[name] for kernel in kernels], float) for name in "mnk")
        batch = np.array([kernel.batch for kernel in kernels], float)
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
            batch=batch,
            a_matrices=batch,
            b_matrices=batch,
        )
        if first.knobs.get("swap_operands"):
            size = exchanged(size)
        return cls(first.pipeline, kernels, Columns(values, {}, len(kernels)), size)

    def predict(self, gpu: gpus.Gpu) -> Array:
        """Returns the predicted times of the kernels, in us.

        Args:
            gpu: with the constants of the model.
        """
        return self._times(gpu)["total"]

    def margins(self, gpu: gpus.Gpu) -> Array:
        """Returns what the model multiplies predicted times by before it takes the shortest; it does not depend on
        fitted constants.

        Args:
            gpu: that the kernels are for.
        """
        family = WARPGROUP if self.pipeline == "wgmma" else WARP
        factors = ranking.margin_factor(family, self.knobs, self._times(gpu)["waves"], self.size, gpu)
        dependent = np.asarray(self.knobs.column("dependent_launch", True), bool)
        return np.broadcast_to(factors / np.where(dependent, 1.0, 1 - ranking.LAUNCH_MARGIN), len(self.kernels))

    def _times(self, gpu: gpus.Gpu) -> dict[str, Array]:
        if self.pipeline == "wgmma":
            return warpgroup.predict(self.knobs, self.size, gpu)
        return warp.predict(self.knobs, self.size, gpu, self.pipeline)


def fitted_sizes(key: str) -> set[tuple[int, int, int]]:
    """Returns the sizes of all problems in the results that the constants in the file of a GPU are fitted to.

    Args:
        key: name of the GPU's file.
    """
    names = json.loads(gpus.path_of(key).read_text())["fitted"]["data"]
    return {kernel.size for name in names for kernel in kernels_of(results_on(key) / name)}


def exchanged(size: Size) -> Size:
    """Returns the problem that a kernel with exchanged operands computes: the transpose of C.

    Args:
        size: the problem.
    """
    opposite = {"row": "column", "column": "row"}
    return replace(
        size,
        m=size.n,
        n=size.m,
        a_matrices=size.b_matrices,
        b_matrices=size.a_matrices,
        a_layout=opposite[size.b_layout],
        b_layout=opposite[size.a_layout],
        c_layout="column",
    )


class Data:
    """Measured kernels, grouped for prediction, and by problem for judgement.

    Args:
        kernels: measured ones.
        gpu: that they were measured on; of its constants, only those that are not fitted matter.
    """

    def __init__(self, kernels: Sequence[Kernel], gpu: gpus.Gpu) -> None:
        members_by_key: dict[tuple[str, ...], list[Kernel]] = {}
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
            members_by_key.setdefault(key, []).append(kernel)
        self.groups = [Group.of(members) for members in members_by_key.values()]
        self.kernels = [kernel for group in self.groups for kernel in group.kernels]
        self.measured = np.array([kernel.microseconds for kernel in self.kernels])
        self.margins = np.log(np.concatenate([group.margins(gpu) for group in self.groups]))
        numbers: dict[tuple[str, ...], int] = {}
        self.problem = np.array([numbers.setdefault(kernel.key, len(numbers)) for kernel in self.kernels], int)
        self.problems = len(numbers)
        self.sources = [key[0] for key in numbers]
        self.loss = np.log(self.measured) - self._least(np.log(self.measured))[self.problem]
        self.count = np.bincount(self.problem, minlength=self.problems)

    def predict(self, gpu: gpus.Gpu) -> Array:
        """Returns the predicted times of all kernels, in us.

        Args:
            gpu: with the constants of the model.
        """
        return np.concatenate([group.predict(gpu) for group in self.groups])

    def objective(self, logarithms: Array) -> tuple[float, Array]:
        """Returns the value that a fit minimizes, and its derivatives; problems with one kernel count for their time
        only.

        Args:
            logarithms: of the predicted times of all kernels.
        """
        errors = logarithms - np.log(self.measured)
        sizes = np.hypot(errors, SMOOTHNESS)
        with_margins = logarithms + self.margins
        weight = np.exp(-(with_margins - self._least(with_margins)[self.problem]) / SHARPNESS)
        weight /= np.bincount(self.problem, weight)[self.problem]
        loss = self.loss + SQUARE_WEIGHT * self.loss**2
        losses = np.bincount(self.problem, weight * loss)
        chosen = self.count > 1
        times = np.bincount(self.problem, sizes) / self.count
        value = losses[chosen].mean() + TIME_WEIGHT * times.mean()
        of_choice = weight * (losses[self.problem] - loss) / SHARPNESS / chosen.sum()
        of_time = TIME_WEIGHT * errors / sizes / self.count[self.problem] / self.problems
        return float(value), of_choice + of_time

    def judge(self, predicted: Array) -> dict[str, float]:
        """Returns the quality of the choices by predicted times, over the problems with more settings than FIRST.

        The best measured time is divided by that of the first choice, and by the best of the first FIRST; the geometric
        mean and the least value are given for each, the same for ratios to cuBLAS, and the mean error of a time.

        Args:
            predicted: times of all kernels, in us.
        """
        rows = []
        for number in np.flatnonzero(self.count > FIRST).tolist():
            members = self._in_order(number, predicted)
            losses = np.exp(-self.loss[members])
            ratios = np.array([self.kernels[i].cublas_microseconds / self.kernels[i].microseconds for i in members])
            rows.append((losses[0], losses[:FIRST].max(), ratios[0], ratios[:FIRST].max()))
        columns = np.array(rows).T if rows else np.ones((4, 1))
        names = ("first_of_best", "best_of_four_of_best", "first_of_cublas", "best_of_four_of_cublas")
        scores = {"problems": len(rows)}
        for name, values in zip(names, columns):
            mean, least = float(np.exp(np.log(values).mean())), float(values.min())
            scores |= {name: round(mean, 3), f"{name}_least": round(least, 3)}
        error = np.exp(np.abs(np.log(predicted / self.measured)).mean()) - 1
        return scores | {"mean_error_of_a_time": round(float(error), 3)}

    def judge_sources(self, predicted: Array) -> dict[str, dict[str, float]]:
        """Returns the quality of the first choices by predicted times, by result, over the problems of which it has
        more than one setting: as `judge` gives it, with the ratio to cuBLAS that nine in ten problems reach.

        Args:
            predicted: times of all kernels, in us.
        """
        rows: dict[str, list[tuple[float, float]]] = {}
        for number in np.flatnonzero(self.count > 1).tolist():
            first = self._in_order(number, predicted)[0]
            ratio = self.kernels[first].cublas_microseconds / self.kernels[first].microseconds
            rows.setdefault(self.sources[number], []).append((float(np.exp(-self.loss[first])), ratio))
        by_source = {}
        for source, of_source in sorted(rows.items()):
            best, cublas = np.array(of_source).T
            values = {
                "first_of_best": np.exp(np.log(best).mean()),
                "first_of_best_least": best.min(),
                "first_of_cublas": np.exp(np.log(cublas).mean()),
                "first_of_cublas_nine_in_ten": np.sort(cublas)[len(cublas) // 10],
                "first_of_cublas_least": cublas.min(),
            }
            by_source[source] = {
                "problems": len(best),
                **{name: round(float(mean), 3) for name, mean in values.items()},
            }
        return by_source

    def _least(self, values: Array) -> Array:
        """Returns the least of the values of the kernels of each problem."""
        least = np.full(self.problems, np.inf)
        np.minimum.at(least, self.problem, values)
        return least

    def _in_order(self, number: int, predicted: Array) -> Array:
        """Returns the kernels of a problem in the order in which the model takes them."""
        members = np.flatnonzero(self.problem == number)
        return members[np.argsort(np.log(predicted[members]) + self.margins[members], kind="stable")]
