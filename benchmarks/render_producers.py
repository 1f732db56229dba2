"""The table of products whose operands elementwise ops make, from what `producers.py` measured."""

from __future__ import annotations

from collections.abc import Callable

from common import result, table, where
from producer_cases import DEFAULT

# Ways in which an operand is made, by the times of a case.
WAYS: dict[str, Callable[[dict], list[float]]] = {
    "kernel in front": lambda case: _times(case, "kernels"),
    "registers": lambda case: _times(case, "registers"),
    "chosen by `compile`": lambda case: [kernel["us"] for kernel in case["kernels"] if kernel["place"] == DEFAULT],
    "cuBLAS, made before": lambda case: [case["cublas"]],
}


def _times(case: dict, producers: str) -> list[float]:
    tried = [kernel for kernel in case["kernels"] if kernel["place"] != DEFAULT]
    return [kernel["us"] for kernel in tried if kernel["knobs"]["producers"] == producers]


def producers_table() -> str:
    """Returns the microseconds of each product by rows of A, of the fastest kernel of each way."""
    measured = result("producers")
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    titles = dict.fromkeys((f"m = {m}" for m in sorted({case["m"] for case in measured["cases"]})), "")
    for case in measured["cases"]:
        size = f"{case['n']} x {case['k']}"
        for way, times in WAYS.items():
            head = {"made": case["kind"], "n x k": size, "by": way}
            row = rows.setdefault((case["kind"], size, way), {**head, **titles})
            found = times(case)
            row[f"m = {case['m']}"] = f"{min(found):.1f}" if found else ""
    return (
        table(list(rows.values())) + "\nMicroseconds, the fastest of the settings that were measured; f16 with f32 "
        "accumulators, C of f16, scales of i4 for 128 of k. Operands rotated over 400 MB; cuBLAS multiplies a matrix "
        f"of f16 that exists. {where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {"producers": producers_table}
