"""Tables of kernels of functions that are no matmuls."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean, median
from typing import Any

from common import result, table, where

# Part of the name of an op -> what the table calls its operand.
_OPERANDS = {
    "added to a matrix": "transposed, added to a matrix",
    "axes": "permuted axes",
    "columns from": "columns of a matrix",
}
# First word of the name of a reduction -> what the table calls its kind.
_REDUCED = {
    "sum": "sums",
    "squares": "sums of squares",
    "maximum": "maxima",
    "magnitude": "largest magnitude",
    "norm": "norms of groups of channels",
    "softmax": "softmax of long rows",
    "index": "indices of maxima",
    "maxima": "maxima of windows",
}


def rows_table() -> str:
    """Returns the time of chains of rows as one kernel, beside a kernel for each op and PyTorch in eager mode."""
    measured = result("rows")
    rows = []
    for case in measured["cases"]:
        times = {name: median(samples) for name, samples in case["us"].items()}
        row = {"function": case["kind"].replace("_", " "), "rows": str(case["rows"]), "columns": str(case["columns"])}
        row |= {f"{name}, us": f"{times[name]:.1f}" for name in ("one kernel", "a kernel each", "eager")}
        rows.append({**row, "kernels otherwise": str(case["launches"]["a kernel each"])})
    return table(rows) + f"\nbf16, medians of 7 rounds, each a CUDA graph. {where(measured)}.\n"


def elements_table() -> str:
    """Returns the time of elementwise ops and copies beside PyTorch in eager mode."""
    measured = result("elements")
    titles = {"sum": "sum", "factors": "factor for each row", "cast": "cast from f32", "heads": "tokens and heads"}
    rows = []
    for case in measured["cases"]:
        times = {name: median(samples) for name, samples in case["us"].items()}
        row = {"function": titles[case["kind"]], "rows": str(case["rows"]), "columns": str(case["columns"])}
        rows.append(row | {f"{name}, us": f"{times[name]:.2f}" for name in ("own", "eager")})
    return table(rows) + f"\nf16, medians of 7 rounds, each with CUDA graphs of 20 launches. {where(measured)}.\n"


def _kernels(name: str, titles: dict[str, str], first: str, *, has_rate: bool = True) -> str:
    """Returns the times of a benchmark of `function_kernels`; `titles` are those of its contestants."""
    measured = result(name)
    rows = []
    for op in measured["ops"]:
        times = {title: f"{op['microseconds'][key]:.1f}" for key, title in titles.items()}
        rate = op["bytes"] / op["microseconds"]["own"] * 1e-6
        rows.append({first: op["op"], **times} | ({"own, TB/s": f"{rate:.1f}"} if has_rate else {}))
    return table(rows) + f"\nMedians of {measured['rounds']} rounds of bursts, hot L2. {where(measured)}.\n"


def elementwise_kernels_table() -> str:
    """Returns the speed of ops on transposed operands and parts of buffers, beside PyTorch in eager mode, by kind."""
    measured = result("elementwise_kernels")
    kinds: dict[str, list[dict[str, Any]]] = {}
    for op in measured["ops"]:
        kind = next((title for word, title in _OPERANDS.items() if word in op["op"]), "rows that are no whole vectors")
        kinds.setdefault(kind, []).append(op)
    return _by_kind(kinds, "operand", measured)


def concatenations_table() -> str:
    """Returns the time of concatenations beside PyTorch in eager mode."""
    return _kernels("concatenations", {"own": "own, us", "pytorch": "eager, us"}, "result")


def several_results_table() -> str:
    """Returns the time of linear layers that return a second result, beside eager PyTorch and separate kernels."""
    titles = {"own": "own, us", "before": "separate kernels, us", "pytorch": "eager, us"}
    return _kernels("several_results", titles, "layer and second result", has_rate=False)


def reductions_table() -> str:
    """Returns the speed of reductions with few results, beside PyTorch in eager mode, by kind."""
    measured = result("reductions")
    kinds: dict[str, list[dict[str, Any]]] = {}
    for op in measured["ops"]:
        words = op["op"].split()
        kinds.setdefault("quantization to fp8" if "quantized" in words else _REDUCED[words[0]], []).append(op)
    return _by_kind(kinds, "function", measured)


def _by_kind(kinds: dict[str, list[dict[str, Any]]], first: str, measured: dict[str, Any]) -> str:
    """Returns the speed of the ops of each kind beside PyTorch in eager mode; `first` is the first column's title."""
    rows = []
    for kind, ops in kinds.items():
        ratios = [op["microseconds"]["pytorch"] / op["microseconds"]["own"] for op in ops]
        rates = [op["bytes"] / op["microseconds"]["own"] * 1e-6 for op in ops]
        rows.append(
            {
                first: kind,
                "sizes": str(len(ops)),
                "to eager": f"{geometric_mean(ratios):.2f}",
                "minimum": f"{min(ratios):.2f}",
                "maximum": f"{max(ratios):.2f}",
                "own, TB/s": f"{min(rates):.1f} to {max(rates):.1f}",
            }
        )
    return (
        table(rows) + f"\nSpeed as a ratio, geometric means; medians of {measured['rounds']} rounds of bursts, hot L2. "
        f"{where(measured)}.\n"
    )


def convolutions_table() -> str:
    """Returns the time of convolutions as a copy and a matmul, beside cuDNN."""
    return _kernels("convolutions", {"own": "own, us", "pytorch": "cuDNN, us"}, "convolution", has_rate=False)


def drawn_ops_table() -> str:
    """Returns the distribution of the speed of drawn functions relative to eager PyTorch, by kind."""
    measured = result("drawn_ops")
    ratios: dict[str, list[float]] = {}
    for op in measured["ops"]:
        times = op["microseconds"]
        for kind in (_kind(op["op"]), "all"):
            ratios.setdefault(kind, []).append(times["pytorch"] / times["own"])
    rows = []
    for kind, values in sorted(ratios.items(), key=lambda item: item[0] == "all"):
        ordered = sorted(values)
        numbers = (geometric_mean(values), ordered[len(ordered) // 10], ordered[0], ordered[-1])
        titles = ("geometric mean", "10th percentile", "minimum", "maximum")
        cells = dict(zip(titles, map("{:.2f}".format, numbers)))
        rows.append({"kind": kind, "functions": str(len(values))} | cells)
    return table(rows) + f"\nSpeed relative to eager mode, bursts, hot L2. {where(measured)}.\n"


def _kind(name: str) -> str:
    """Returns the kind of a drawn function, by its name."""
    prefixes = {"x *": "elementwise", "axes": "permutation", "softmax": "softmax", "rms": "norm"}
    prefixes |= {"sum": "reduction", "maximum": "reduction"}
    return next((kind for prefix, kind in prefixes.items() if name.startswith(prefix)), "join or padding")


REGIONS: dict[str, Callable[[], str]] = {
    "rows": rows_table,
    "elements": elements_table,
    "elementwise kernels": elementwise_kernels_table,
    "concatenations": concatenations_table,
    "several results": several_results_table,
    "reductions": reductions_table,
    "convolutions": convolutions_table,
    "drawn ops": drawn_ops_table,
}
