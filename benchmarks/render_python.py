"""The tables of docs/python.md and some of docs/payload.md: what a call costs, functions and groups beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean, median
from typing import Any

from common import result, table, where

_WAYS = (("calls", "calls"), ("in a graph", "graph"))
# Queries of an attention that decodes, at most.
_DECODED = 4


def calls_table() -> str:
    """Returns the host time of calls, of matmuls and of functions of several kernels, beside other libraries'."""
    measured, other = result("python_calls"), result("python_calls_nvmath")
    times = measured["microseconds"]
    times |= {name: value for name, value in other["microseconds"].items() if name.startswith("nvmath.")}
    rows = [{"call": name, "us": f"{value:.1f}"} for name, value in times.items()]
    description = measured["what"]
    functions = []
    for case in measured["functions"]:
        row = {"function": case["kind"].replace("_", " "), "kernels": str(case["launches"])}
        for name in ("Function", "Function, out", "Kernels, out", "eager"):
            value = case["microseconds"].get(name)
            row[f"{name}, us"] = "" if value is None else f"{value:.1f}"
        functions.append(row)
    return (
        table(rows) + f"\nOn 64 x 64 tensors of f16; {description}; `out` is given or allocated. {where(measured)}; "
        f"those of nvmath-python in another run, with torch.mm at {other['microseconds']['torch.mm']:.1f} us.\n\n"
        + table(functions)
        + "\nThe same for functions of several kernels, on eight rows and widths up to 96, in bf16. `Kernels` calls "
        "one kernel after the other.\n"
    )


def _cases(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the cases of a result of whole functions, by model, function and tokens."""
    return sorted(measured["cases"], key=lambda case: (case["model"]["name"], case["kind"], case["tokens"]))


def _means(ratios: list[float]) -> str:
    """Returns the geometric mean of ratios, and the least one in parentheses; nothing where there are none."""
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else ""


def functions_table() -> str:
    """Returns the speed of whole functions beside PyTorch's, over models."""
    measured = result("functions")
    cases: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for case in _cases(measured):
        cases.setdefault((case["kind"].replace("_", " "), case["tokens"]), []).append(case)
    rows = []
    for (kind, tokens), of_kind in sorted(cases.items()):
        row = {"function": kind, "tokens": str(tokens), "models": str(len(of_kind))}
        # Calls of max-autotune are left out: its own graphs copy the weights, which are arguments here.
        for title, way, contestant in (
            ("alone", "graph", "stepladder"),
            ("layers", "layers", "stepladder"),
            ("promised", "layers", "promised"),
        ):
            for other in ("eager", "max-autotune"):
                found = (case["ratios"].get(way, {}).get(contestant, {}).get(other) for case in of_kind)
                row[f"{title}, to {other}"] = _means([ratio for ratio in found if ratio is not None])
        rows.append(row)
    return (
        table(rows)
        + "\nSpeed as a ratio to PyTorch in eager mode and to `torch.compile` with max-autotune: geometric means over "
        "models, and minima in parentheses. CUDA graphs, bf16, medians of 7 rounds. `alone` is a graph of one call; "
        "`layers` is a call in a graph of four, each with weights of its own; `promised` is such a call, compiled and "
        f"called with `constant_weights=True`. {where(measured)}.\n"
    )


def _prefill_case(case: dict[str, Any]) -> dict[str, Any]:
    """Returns a case of the attention blocks that `functions.py` measured, as one of `attention`."""
    times = {name: median(samples) for name, samples in case["us"]["graph"].items()}
    return {
        "model": case["model"]["name"],
        "tokens": case["tokens"],
        "us": times["stepladder"],
        "eager": times["eager"],
        "max-autotune": times["max-autotune"],
        "eager then": times["eager"],
    }


def attention_kernels_table() -> str:
    """Returns the speed of attentions as one kernel, beside several and PyTorch in eager mode."""
    measured = result("attention_kernels")
    kinds: dict[tuple[int, str], list[dict[str, float]]] = {}
    for case in measured["cases"]:
        times = {name: median(samples) for name, samples in case["us"].items()}
        kinds.setdefault((case["depth"], "causal" if case["is_causal"] else "none"), []).append(times)
    rows = []
    for (depth, mask), cases in sorted(kinds.items()):
        row = {"elements of a head": str(depth), "mask": mask, "attentions": str(len(cases))}
        for other in ("kernels", "eager"):
            row[f"one kernel, to {other}"] = _means([times[other] / times["one kernel"] for times in cases])
        rows.append(row)
    return (
        table(rows) + "\nSpeed as a ratio, geometric means and minima in parentheses; bf16, medians of 7 rounds, each "
        f"a CUDA graph; eager mode is `scaled_dot_product_attention`. {where(measured)}.\n"
    )


def exported_attention_table() -> str:
    """Returns the speed of exported attentions as one kernel beside PyTorch and several kernels, and the errors."""
    measured = result("exported_attention")
    kinds: dict[str, list[dict[str, Any]]] = {}
    for case in measured["cases"]:
        mask = {"causal": "causal mask", "added": "added mask"}.get(case["mask"], "no mask")
        is_decoding = case["queries"] <= _DECODED
        kinds.setdefault(f"up to {_DECODED} queries" if is_decoding else f"more queries, {mask}", []).append(case)
    rows = []
    for kind, cases in sorted(kinds.items()):
        times = [{name: median(samples) for name, samples in case["us"].items()} for case in cases]
        row = {"attentions": kind, "": str(len(cases))}
        for title, over, under in (
            ("one kernel, to eager", "eager", "one kernel"),
            ("rounded weights, to eager", "eager", "rounded weights"),
            ("one kernel, to kernels", "kernels", "one kernel"),
        ):
            row[title] = _means([of_case[over] / of_case[under] for of_case in times])
        for name in ("one kernel", "rounded weights"):
            row[f"error of {name}, to eager"] = _means(
                [case["errors"][name] / case["errors"]["eager"] for case in cases]
            )
        rows.append(row)
    return (
        table(rows)
        + "\nSpeed as a ratio, geometric means and minima in parentheses; medians of 7 rounds, each a CUDA graph. "
        "Errors of all results, relative to an evaluation in f64, by the Euclidean norm, as a ratio to those of eager "
        f"mode. {where(measured)}.\n"
    )


def exported_layers_table() -> str:
    """Returns the time of exported layers beside PyTorch in eager mode and compiled, and their launches."""
    measured = result("exported_layers")
    rows = []
    for case in measured["cases"]:
        times = {name: median(samples) for name, samples in case["us"].items()}
        row = {"layer": case["name"], "tokens": f"{case['batch']} x {case['tokens']}"}
        row |= {"before them": str(case["cached"] or ""), "type": case["element"]}
        row |= {"launches": str(len(case["launches"])), "us": f"{times['stepladder']:.1f}"}
        row |= {f"{name}, us": f"{times[name]:.1f}" for name in ("eager", "compiled")}
        rows.append(row | {"to the faster one": f"{min(times['eager'], times['compiled']) / times['stepladder']:.2f}"})
    return (
        table(rows) + "\nMedians of 7 rounds, each a CUDA graph; compiled is `torch.compile` with max-autotune. "
        f"{where(measured)}.\n"
    )


def attention_table() -> str:
    """Returns the time of attention blocks beside PyTorch's."""
    measured, prefill = result("attention"), result("attention_prefill")
    rows = [
        {
            "model": case["model"],
            "tokens": str(case["tokens"]),
            "us": f"{case['us']:.1f}",
            "eager, us": f"{case['eager']:.1f}",
            "to eager": f"{case['eager'] / case['us']:.2f}",
            "max-autotune, us": f"{case['max-autotune']:.1f}",
            "eager in the same run, us": f"{case['eager then']:.1f}",
        }
        for case in (*measured["cases"], *map(_prefill_case, prefill["cases"]))
    ]
    return (
        table(rows)
        + "\nA block with its norm and residual. Up to 32 tokens are the last ones of as many sequences, whose "
        "caches have 2048 and are written in place. bf16, CUDA graphs of one call, medians of 5 rounds, of 2048 tokens "
        "of 7; for fewer tokens, "
        f"`torch.compile` with max-autotune was measured in other runs, with eager mode. {where(measured)}.\n"
    )


def groups_table() -> str:
    """Returns the speed of groups of matmuls as one launch, beside a launch for each and libraries."""
    measured = result("groups")
    rows = []
    for case in measured["cases"]:
        speed = case["tflops"]
        row = {"group": case["name"], "rows": ", ".join(map(str, case["rows"])), "n x k": f"{case['n']} x {case['k']}"}
        row["one launch, TFLOP/s"] = f"{speed['group']:.0f}"
        for name, title in (("launches", "a launch each"), ("cublas", "cuBLAS, each"), ("torch", "torch._grouped_mm")):
            row[title] = f"{speed[name]:.0f}"
        rows.append(row)
    return (
        table(rows) + "\nbf16, medians of 7 rounds, each a CUDA graph; `torch._grouped_mm` reads contiguous tokens and "
        f"weights. {where(measured)}.\n"
    )


def function_calls_table() -> str:
    """Returns the speed of calls of whole functions beside PyTorch's in eager mode, with the host's work."""
    measured = result("functions_eager")
    cases: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for case in _cases(measured):
        cases.setdefault((case["kind"].replace("_", " "), case["tokens"]), []).append(case)
    rows = [
        {"function": kind, "tokens": str(tokens), "models": str(len(of_kind))}
        | {title: _means([case["ratios"][way]["stepladder"]["eager"] for case in of_kind]) for title, way in _WAYS}
        for (kind, tokens), of_kind in sorted(cases.items())
    ]
    return (
        table(rows)
        + "\nSpeed as a ratio to eager mode: geometric means over models, and minima in parentheses; medians of 7 "
        "rounds, bf16. A call includes the host's work; `in a graph` is a CUDA graph of the same work. "
        f"{where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {
    "calls": calls_table,
    "functions": functions_table,
    "attention": attention_table,
    "attention kernels": attention_kernels_table,
    "exported attention": exported_attention_table,
    "exported layers": exported_layers_table,
    "function calls": function_calls_table,
    "groups": groups_table,
}
