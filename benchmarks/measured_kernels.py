"""Reads the measured kernels of any result that has knobs and times, and writes tables of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"

Knobs = dict[str, int | str]

# Columns of a table that are no knobs, a step that was left out among them.
_NO_KNOBS = (
    *("kind", "held_out", "place", "source", "predicted_microseconds", "written_microseconds"),
    *("keep_shared_addresses", "rotated", "runs", "blocks", "chosen"),
)


@dataclass(frozen=True)
class Kernel:
    """A kernel that was measured.

    Args:
        source: name of the result, without its suffix.
        problem: sizes, types and layouts, as a manifest says them.
        pipeline: that made it.
        without: steps that were left out.
        knobs: knob -> value.
        shared_bytes: shared memory of a block, 0 where the result does not say it.
        microseconds: median time of a launch, in bursts.
        cublas_microseconds: that of cuBLAS, measured in turn.
    """

    source: str
    problem: dict[str, Any]
    pipeline: str
    without: tuple[str, ...]
    knobs: Knobs
    shared_bytes: int
    microseconds: float
    cublas_microseconds: float

    @property
    def size(self) -> tuple[int, int, int]:
        """Returns m, n, k."""
        return self.problem["m"], self.problem["n"], self.problem["k"]

    @property
    def key(self) -> tuple[str, ...]:
        """Returns the key of a problem in a result: kernels that were measured for the same problem share it."""
        types = tuple(str(self.problem[name]) for name in ("a_type", "acc_type", "c_type"))
        return (self.source, self.pipeline, *map(str, (*self.size, self.batch)), *types, self.layouts)

    @property
    def batch(self) -> int:
        """Returns how many matmuls the problem is a batch of."""
        return self.problem.get("batch") or 1

    @property
    def layouts(self) -> str:
        """Returns the layouts of A and B."""
        return f"{self.problem.get('a_layout', 'row')}-{self.problem.get('b_layout', 'row')}"


def _measurements(data: object) -> Iterator[dict[str, Any]]:
    """Yields the parts of a result that have a problem, its kernels and their times."""
    if isinstance(data, dict) and "modes" in data and "problem" in data:
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _measurements(value)


def _of_measurement(source: str, measured: dict[str, Any]) -> Iterator[Kernel]:
    problem = measured["problem"]
    kernels = measured.get("bundles") or measured.get("kernels", {})
    burst = measured["modes"].get("burst", {"kernels": {}})
    reference = burst.get("baseline") or burst["kernels"].get("cublas")
    operations = 2 * problem["m"] * problem["n"] * problem["k"]
    for name, times in burst["kernels"].items():
        if name not in kernels or reference is None:
            continue
        kernel = kernels[name]
        rate = statistics.median(times["tflops"])
        shared = kernel.get(
            "shared_memory", kernel.get("static_shared_memory", 0) + kernel.get("dynamic_shared_memory", 0)
        )
        yield Kernel(
            source,
            problem,
            kernel["pipeline"],
            tuple(kernel.get("without", ())),
            kernel["knobs"],
            shared,
            operations / rate * 1e-6,
            operations / statistics.median(reference["tflops"]) * 1e-6,
        )


def _of_table(source: str, data: dict[str, Any]) -> Iterator[Kernel]:
    """Returns the kernels of a table: `columns` and `rows`, and what all rows have in common in `problem`, `pipeline`
    and `knobs`. Cells of knobs that the measured version did not have are empty."""
    for row in data["rows"]:
        cells = {name: cell for name, cell in zip(data["columns"], row) if cell != ""}
        problem = data["problem"] | {name: cells.pop(name) for name in ("m", "n", "k")}
        times = cells.pop("microseconds"), cells.pop("cublas_microseconds")
        shared = cells.pop("shared_bytes", 0)
        for name in _NO_KNOBS:
            cells.pop(name, None)
        yield Kernel(source, problem, data["pipeline"], (), data["knobs"] | cells, shared, *times)


# Parts of `form_settings.py` whose problems are products or batches of these, without elementwise ops.
_PARTS = ("batches", "tall", "outer")


def _of_forms(source: str, data: dict[str, Any]) -> Iterator[Kernel]:
    """Returns the kernels of a result of `form_settings.py` whose problems are products, or batches of matrices of
    their own."""
    for measured in data["problems"]:
        a, b = measured["spec"].split("->")[0].split(",")
        problem = {
            **{name: measured["sizes"][name] for name in "mnk"},
            "batch": measured["sizes"].get("b"),
            "a_type": "f16",
            "b_type": "f16",
            "acc_type": "f32",
            "c_type": "f16",
            "accumulate": False,
            "a_layout": "row" if a[-1] == "k" else "column",
            "b_layout": "column" if b[-1] == "k" else "row",
        }
        for kernel in measured["settings"]:
            if "prefetch_steps" in kernel["knobs"]:
                continue  # it loads weights early
            microseconds = kernel["microseconds"]
            yield Kernel(source, problem, "wgmma", (), kernel["knobs"], 0, microseconds, microseconds * kernel["ratio"])


def kernels_of(path: Path) -> list[Kernel]:
    """Returns the kernels of a result.

    Args:
        path: of the file.
    """
    data = json.loads(path.read_text())
    if data.get("part") in _PARTS:
        return list(_of_forms(path.stem, data))
    if "rows" in data:
        return list(_of_table(path.stem, data))
    return [kernel for measured in _measurements(data) for kernel in _of_measurement(path.stem, measured)]


def results_on(key: str) -> Path:
    """Returns the folder of the results that were measured on a GPU: `docs/results/KEY`, where there is one, else
    `docs/results`.

    Args:
        key: name of the GPU's file.
    """
    folder = RESULTS / key
    return folder if folder.is_dir() else RESULTS


def steadied(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Returns kernels with times as if the GPU's clock had been the same for all kernels of a problem.

    The clock falls while the kernels of a problem are measured. cuBLAS is measured in turn with each, so that a
    kernel's ratio to it is free of that: a time becomes this ratio times the median time of cuBLAS. Kernels that were
    measured more than once for a problem become one, with the median of their times.

    Args:
        kernels: measured ones.
    """
    problems: dict[tuple[str, ...], list[Kernel]] = {}
    for kernel in kernels:
        problems.setdefault(kernel.key, []).append(kernel)
    steady = []
    for members in problems.values():
        reference = statistics.median(kernel.cublas_microseconds for kernel in members)
        by_knobs: dict[tuple[tuple[str, int | str], ...], list[Kernel]] = {}
        for kernel in members:
            by_knobs.setdefault(tuple(sorted(kernel.knobs.items())), []).append(kernel)
        for repeats in by_knobs.values():
            ratio = statistics.median(kernel.microseconds / kernel.cublas_microseconds for kernel in repeats)
            steady.append(replace(repeats[0], microseconds=ratio * reference, cublas_microseconds=reference))
    return steady


def write_table(path: Path, head: dict[str, Any], columns: list[str], rows: list[list[Any]]) -> None:
    """Writes a table of kernels, a line for each.

    Args:
        path: of the file.
        head: the other entries of the result.
        columns: their names.
        rows: a value for each column.
    """
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    text = json.dumps(head, indent=1)[:-2]
    path.write_text(f'{text},\n "columns": {json.dumps(columns)},\n "rows": [\n{lines}\n ]\n}}\n')
