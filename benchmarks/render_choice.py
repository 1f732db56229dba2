"""The tables of the cost model's choice on held-out problems, of decoding, and of odd row pitches."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from statistics import geometric_mean
from typing import Any

from common import cells_of, result, table, where
from draw import THIN_FORMS
from fit_data import fitted_sizes
from measured_kernels import RESULTS, kernels_of
from model_report import DEFAULT
from stepladder.pipeline.cost_model import gpu

# Samples of default choices for held-out problems, where they were measured: what tables call them.
_HELD_OUT = {"held_out_bf16-bf16": "bf16 -> bf16", "held_out_f16-f32": "f16 -> f32"}
KINDS = ("large", "eights", "layers")
# Blocks of the kernels that only read: two on each multiprocessor of an H200.
_READING_BLOCKS = 264
_DECODE_BYTES = 2  # of an element
_SMALL = 2**35  # multiply-adds


def _row(name: str, ratios: Sequence[float]) -> dict[str, str]:
    ordered = sorted(ratios)
    return {
        "problems": name,
        "": str(len(ordered)),
        "geometric mean": f"{geometric_mean(ordered):.3f}",
        "10th percentile": f"{ordered[len(ordered) // 10]:.3f}",
        "minimum": f"{ordered[0]:.3f}",
        "at least 1": str(sum(ratio >= 1 for ratio in ordered)),
    }


def held_out_samples() -> dict[str, str]:
    """Returns the results of held-out problems, and what tables call them."""
    return {name: title for name, title in _HELD_OUT.items() if (RESULTS / f"{name}.json").is_file()}


def ratios_of(cells: list[dict[str, Any]], left_out: Set[tuple[int, int, int]] = frozenset()) -> list[float]:
    """Returns the ratios to cuBLAS of the default choices.

    Args:
        cells: of a result of `model_choice.py`.
        left_out: sizes of problems that do not count.
    """
    return [
        cell["cublas_microseconds"] / cell["microseconds"]
        for cell in cells
        if cell["place"] == DEFAULT and (cell["m"], cell["n"], cell["k"]) not in left_out
    ]


def choices_table(samples: dict[str, str], left_out: Set[tuple[int, int, int]] = frozenset()) -> str:
    """Returns how the default choices for random problems compare with cuBLAS.

    Args:
        samples: name of a result -> what the table calls it.
        left_out: sizes of problems that do not count.
    """
    rows = []
    data: dict = {}
    for name, title in samples.items():
        data = result(name)
        cells = cells_of(data)
        for kind in ("", *KINDS):
            ratios = ratios_of([cell for cell in cells if kind in ("", cell["kind"])], left_out)
            rows.append(_row(f"{title}, {kind}" if kind else title, ratios))
    return table(rows) + f"\nRatios to cuBLAS, which ran in turn with each kernel; bursts. {where(data)}.\n"


def held_out_table() -> str:
    """Returns how the default choices on held-out problems compare with cuBLAS.

    Problems whose size is in the data of the fit do not count: random layers and squares repeat.
    """
    return choices_table(held_out_samples(), fitted_sizes("h200"))


def tuned_table() -> str:
    """Returns how the settings that `stepladder tune` finds for random problems compare with cuBLAS."""
    data = result("tuned_held_out")
    rows = [
        _row(kind or "all", [case["of_cublas"] for case in data["cases"] if kind in ("", case["kind"])])
        for kind in ("", *KINDS)
    ]
    seconds = data["seconds"]["10 payloads"]
    return (
        table(rows)
        + f"\nRatios to cuBLAS in turn, as `tune` reports them; ten problems take {seconds} seconds on 16 cores. "
        f"{where(data)}.\n"
    )


def odd_pitches_table() -> str:
    """Returns products with odd row pitches beside cuBLAS and their aligned neighbours, by size."""
    data = result("odd_pitches")
    sizes: dict[str, list[dict[str, Any]]] = {}
    for entry in data["problems"]:
        is_small = entry["m"] * entry["n"] * entry["k"] < _SMALL
        sizes.setdefault("fewer" if is_small else "at least 2^35 multiply-adds", []).append(entry)
    rows = []
    for title, entries in sorted(sizes.items()):
        row = {"problems": title, "": str(len(entries))}
        for column, ratios in (
            ("of cuBLAS", [entry["odd"]["of_cublas"]["median"] for entry in entries]),
            ("of the neighbour", [entry["of_neighbour"] for entry in entries]),
        ):
            row[column] = f"{geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        rows.append(row)
    return (
        table(rows) + "\nGeometric means of ratios of throughput, minima and maxima; with the copies of the operands. "
        f"{where(data)}.\n"
    )


def decode_table(folder: str = "") -> str:
    """Returns how default choices for few rows compare with cuBLAS and with the rate of HBM, by the number of rows.

    Args:
        folder: of the results, with a slash at its end; empty for docs/results.
    """
    rows = []
    for layout in ("row", "column"):
        data = result(f"{folder}decode_{layout}")
        rate = gpu.for_device(data["card"]["name"], data["knobs"]["target"]).gpu.hbm_bytes_per_us
        rows += _decode_rows(layout, cells_of(data), rate)
    return table(rows) + f"\nDefault choices, bf16 -> bf16; geometric means. {where(data)}.\n"


def _decode_rows(layout: str, cells: list[dict[str, Any]], rate: float) -> list[dict[str, str]]:
    """Returns the rows of the table for weights in a layout; `rate` is HBM's by the data sheet, in bytes per us."""
    rows = []
    for m in sorted({cell["m"] for cell in cells}):
        choices = [cell for cell in cells if cell["m"] == m and cell["place"] == DEFAULT]
        ratios = sorted(cell["cublas_microseconds"] / cell["microseconds"] for cell in choices)
        rates = sorted(
            (m * cell["k"] + cell["k"] * cell["n"] + m * cell["n"]) * _DECODE_BYTES / cell["microseconds"] / rate
            for cell in choices
        )
        rows.append(
            {
                "weights": f"{layout}-major",
                "rows": str(m),
                "layers": str(len(choices)),
                "of cuBLAS": f"{geometric_mean(ratios):.3f}",
                "minimum": f"{ratios[0]:.3f}",
                "of HBM's rate": f"{geometric_mean(rates):.3f}",
                "minimum rate": f"{rates[0]:.3f}",
                "maximum rate": f"{rates[-1]:.3f}",
            }
        )
    return rows


def reads_table() -> str:
    """Returns how long kernels take that only read as many bytes as weights have."""
    data = result("decode_limits")
    sheet = gpu.load("h200").hbm_bytes_per_us
    rows: dict[tuple[int, int], dict[str, str]] = {}
    for entry in data["reads"]:
        size = entry["n"] * entry["k"] * _DECODE_BYTES
        if entry["blocks"] != _READING_BLOCKS:
            continue
        row = rows.setdefault((entry["n"], entry["k"]), {"weights": f"{entry['n']} x {entry['k']}"})
        time = entry["microseconds"]
        row[entry["read"]] = f"{time:.2f} us ({size / time / sheet:.2f})"
    return (
        table(list(rows.values()))
        + f"\n{_READING_BLOCKS} blocks; in parentheses, fractions of the HBM rate in the data sheet. {where(data)}.\n"
    )


def orientations_table() -> str:
    """Returns the fastest of the first settings of either orientation, for problems with a short side."""
    ratios: dict[tuple[int, int, int], dict[bool, list[float]]] = {}
    for kernel in kernels_of(RESULTS / "model_thin_bf16-bf16.json"):
        of_problem = ratios.setdefault(kernel.size, {False: [], True: []})
        of_problem[bool(kernel.knobs["swap_operands"])].append(kernel.cublas_microseconds / kernel.microseconds)
    problems = list(ratios.values())
    rows = []
    for form, name in enumerate(THIN_FORMS):
        of_form = problems[form :: len(THIN_FORMS)]
        best = {
            "as it is": [max(problem[False]) for problem in of_form if problem[False]],
            "swapped": [max(problem[True]) for problem in of_form if problem[True]],
            "the faster one": [max(problem[False] + problem[True]) for problem in of_form],
        }
        rows.append(
            {"problems": name, "": str(len(of_form))}
            | {
                title: f"{geometric_mean(best_ratios):.3f} (minimum {min(best_ratios):.3f})"
                for title, best_ratios in best.items()
            }
        )
    return table(rows)


REGIONS: dict[str, Callable[[], str]] = {
    "orientations": orientations_table,
    "held out": held_out_table,
    "tuned": tuned_table,
    "decode": decode_table,
    "decode reads": reads_table,
    "odd pitches": odd_pitches_table,
}
