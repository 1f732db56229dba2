"""The tables of fused epilogues and batches, from what `fused_epilogues.py` and `batches.py` measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from statistics import geometric_mean

from common import median, result, table, where
from defaults import batch_choice

# Column titles of the contestants of `fused_epilogues.py`, in the order of the table.
CONTESTANTS = {
    "plain": "plain matmul",
    "fused": "fused",
    "lt": "cuBLASLt, fused",
    "compiled": "torch.compile",
    "eager": "cuBLAS and PyTorch's kernels",
}

# Results with two kernels of each problem: what differs between them.
_COMPARED = {
    "drawn_forms_biased": "loads of a bias before the wait for the last MMA, at the edges",
    "drawn_forms_added": "an added matrix in as many boxes of C as a tile has, and tiles that allow it",
    "drawn_forms_copies": "copies of an operand by vectors, for `mkl,lkn->mn`",
    "drawn_forms_triggers": "`launch_trigger = exit` for batches without clusters",
    "drawn_forms_requests": "the term for requests to L2, for batches and misaligned rows",
    "drawn_forms_stores": "the terms for crowded tiles and for stores of a large C",
    "drawn_forms_tall": "the same, for many rows or columns, or a C larger than L2, and a short k",
    "drawn_forms_swapped": "swapped operands of batches",
    "drawn_forms_few_rows": "the same, of 2 to 48 rows, and the margin for two blocks per multiprocessor",
    "h100/drawn_forms_requests": "the term for requests to L2, for batches and misaligned rows",
}


def fused_table() -> str:
    """Returns the throughput of each fused matmul and its alternatives, as ratios to cuBLAS' matmul alone."""
    measured = result("fused_epilogues")
    problems = measured["problems"]
    present = {key for problem in problems for key in problem["measured"]["kernels"]}
    rows = []
    for problem in sorted(problems, key=lambda problem: (problem["size"], problem["case"])):
        row = {"epilogue": problem["case"].replace("_", " + "), "m = n = k": str(problem["size"])}
        kernels = problem["measured"]["kernels"]
        for key, title in CONTESTANTS.items():
            if key in present:
                row[title] = f"{kernels[key]['ratio_spread']['median']:.3f}" if key in kernels else ""
        pairs = zip(kernels["fused"]["ratios"], kernels["plain"]["ratios"])
        row["fused, of the plain matmul"] = (
            f"{statistics.median(fused_ratio / alone for fused_ratio, alone in pairs):.3f}"
        )
        rows.append(row)
    return (
        table(rows) + "\nThroughput as a ratio to cuBLAS' matmul without the epilogue, which ran in turn with each; "
        f"f16 with f32 accumulators, median of {measured['rounds']} rounds of bursts. {where(measured)}.\n"
    )


def _case_title(problem: dict) -> str:
    """Returns the title of the column of a case at a size."""
    return f"{problem['case'].replace('_', ' + ').replace('plain', 'plain matmul')}, {problem['size']}"


def fused_steps_table() -> str:
    """Returns the throughput of fused matmuls by where their operands come from, as ratios to cuBLAS' matmul alone."""
    measured = result("fused_steps")
    rows: dict[str, dict[str, str]] = {}
    kernels = [kernel for kernel in measured["kernels"] if kernel["case"] != "plain"]
    titles = dict.fromkeys(sorted(map(_case_title, kernels)), "")
    for kernel in kernels:
        row = rows.setdefault(kernel["operands"], {"operands": kernel["operands"], **titles})
        row[_case_title(kernel)] = f"{kernel['ratio']:.3f}"
    rounds = sorted({run["rounds"] for run in measured["runs"].values()})
    return (
        table(list(rows.values())) + "\nThroughput as a ratio to cuBLAS' matmul without the epilogue, tile "
        f"{measured['tile']}; medians of {' or '.join(map(str, rounds))} rounds, in {len(measured['runs'])} processes. "
        f"{where(measured)}.\n"
    )


def batches_table() -> str:
    """Returns batches by the cost model's first choice, the default and the fastest kernel, beside cuBLAS."""
    measured = result("batches")
    rows = []
    for problem in measured["problems"]:
        names, times = list(problem["knobs"]), problem["measured"]
        fastest = max(names, key=lambda name: median(times, name))
        row = {"batch": problem["name"], "cuBLAS, TFLOP/s": f"{median(times, 'cublas'):.0f}"}
        for title, kernel in (("cost model", names[0]), ("default", batch_choice(problem)), ("fastest", fastest)):
            ratio = times["modes"]["burst"]["ratios"][kernel]["cublas"]["spread"]["median"]
            row[title] = f"{median(times, kernel):.0f} ({ratio:.2f})"
        rows.append(row)
    return (
        table(rows) + "\nIn parentheses: the ratio to cuBLAS' strided-batched product. `cost model` is its first "
        "choice, `default` the fastest kernel if that is at least 1% faster. f16, f32 accumulators, bursts. "
        f"{where(measured)}.\n"
    )


def drawn_forms_table(name: str = "drawn_forms") -> str:
    """Returns the speed of drawn problems by kind, as ratios to the fastest library call of each.

    Args:
        name: of the result.
    """
    measured = result(name)
    problems = measured["problems"]
    rows = []
    for kind in (*dict.fromkeys(problem["kind"] for problem in problems), ""):
        ratios = sorted(problem["ratio"] for problem in problems if kind in ("", problem["kind"]))
        rows.append(
            {
                "kind": kind or "all",
                "problems": str(len(ratios)),
                "geometric mean": f"{geometric_mean(ratios):.3f}",
                "10th percentile": f"{ratios[len(ratios) // 10]:.3f}",
                "minimum": f"{ratios[0]:.3f}",
                "at least 1": str(sum(ratio >= 1 for ratio in ratios)),
            }
        )
    return (
        table(rows) + "\nSpeed as a ratio to the fastest library call, default knobs, f16, f32 accumulators, median of "
        f"{measured['rounds']} rounds of bursts. {where(measured)}.\n"
    )


def compared_forms_table() -> str:
    """Returns how much faster random problems are by one property of kernels or one term of the model."""
    rows = []
    for name, title in _COMPARED.items():
        measured = result(name)
        ratios, without = ([problem[key] for problem in measured["problems"]] for key in ("ratio", "ratio_before"))
        rows.append(
            {
                "with and without": title,
                "GPU": measured["card"]["name"].split()[1],
                "problems": str(len(ratios)),
                "mean with": f"{geometric_mean(ratios):.3f}",
                "mean without": f"{geometric_mean(without):.3f}",
                "minimum with": f"{min(ratios):.3f}",
                "minimum without": f"{min(without):.3f}",
            }
        )
    return (
        table(rows) + "\nSpeed as a ratio to the fastest library call, geometric means; f16, f32 accumulators; both "
        "kernels of a problem ran in turn, median of 3 rounds of bursts.\n"
    )


def figures_table() -> str:
    """Returns the speed of BERT's matmuls and of contractions, as ratios to the fastest library call of each."""
    measured = result("figures")
    rows = []
    for problem in measured["problems"]:
        sizes = problem["sizes"]
        rows.append(
            {
                "operands": problem["spec"],
                "sizes": ", ".join(f"{letter} = {size}" for letter, size in sizes.items()),
                "TFLOP/s": f"{problem['tflops']:.0f}",
                "library call": {"cublas": "torch.matmul"}.get(problem["baseline"], f"torch.{problem['baseline']}"),
                "of the library call": f"{problem['ratio']:.3f}",
            }
        )
    return (
        table(rows) + "\nDefault knobs, f16, f32 accumulators, median of "
        f"{measured['rounds']} rounds of bursts. {where(measured)}.\n"
    )


def batch_triggers_table() -> str:
    """Returns what kernels of random batches take with `launch_trigger = exit`, by the blocks of their clusters."""
    measured = result("forms_triggers")
    parts: dict[int, list[float]] = {}
    for problem in measured["problems"]:
        by_trigger: dict[str, dict[str, float]] = {}
        clusters: dict[str, int] = {}
        for entry in problem["settings"]:
            knobs = dict(entry["knobs"])
            trigger, key = knobs.pop("launch_trigger"), json.dumps(knobs, sort_keys=True)
            by_trigger.setdefault(key, {})[trigger] = entry["microseconds"]
            clusters[key] = knobs["cluster_m"] * knobs["cluster_n"]
        for key, times in by_trigger.items():
            parts.setdefault(clusters[key], []).append(times["exit"] / times["early"])
    rows = [
        {
            "blocks of a cluster": str(blocks),
            "kernels": str(len(ratios)),
            "exit / early": f"{geometric_mean(ratios):.3f}",
            "minimum": f"{min(ratios):.3f}",
            "maximum": f"{max(ratios):.3f}",
        }
        for blocks, ratios in sorted(parts.items())
    ]
    return (
        table(rows) + "\nTime with `launch_trigger = exit` as a part of that with `early`: geometric mean; f16, f32 "
        f"accumulators, median of {measured['rounds']} rounds of bursts. {where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {
    "fused": fused_table,
    "figures": figures_table,
    "fused steps": fused_steps_table,
    "batches": batches_table,
    "drawn forms": drawn_forms_table,
    "compared forms": compared_forms_table,
    "batch triggers": batch_triggers_table,
}
