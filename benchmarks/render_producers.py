"""The tables of products whose operands elementwise ops make: from what `producers.py` measured, and
`stored_pairs.py`."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from common import result, table, where
from producer_cases import DEFAULT

# Ways in which an operand is computed, and the times of a case for each.
WAYS: dict[str, Callable[[dict], list[float]]] = {
    "preceding kernel": lambda case: _times(case, "kernels"),
    "registers": lambda case: _times(case, "registers"),
    "chosen by `compile`": lambda case: [kernel["us"] for kernel in case["kernels"] if kernel["place"] == DEFAULT],
    "cuBLAS, of a prepared operand": lambda case: [case["cublas"]],
}


def _times(case: dict, producers: str) -> list[float]:
    tried = [kernel for kernel in case["kernels"] if kernel["place"] != DEFAULT]
    return [kernel["us"] for kernel in tried if kernel["knobs"]["producers"] == producers]


def producers_table() -> str:
    """Returns the microseconds of the largest products by rows of A, of the fastest kernel of each way."""
    measured = result("producers")
    rows: dict[tuple[str, str], dict[str, str]] = {}
    titles = dict.fromkeys((f"m = {m}" for m in sorted({case["m"] for case in measured["cases"]})), "")
    largest = max((case["n"], case["k"]) for case in measured["cases"])
    for case in measured["cases"]:
        if (case["n"], case["k"]) != largest:
            continue
        for way, times in WAYS.items():
            head = {"operand": case["kind"], "computed by": way}
            row = rows.setdefault((case["kind"], way), {**head, **titles})
            microseconds = times(case)
            row[f"m = {case['m']}"] = f"{min(microseconds):.1f}" if microseconds else ""
    return (
        table(list(rows.values()))
        + f"\nn = {largest[0]}, k = {largest[1]}. Microseconds, the fastest of the settings that were measured; f16 "
        "with f32 accumulators, C of f16, scales of i4 for 128 of k. Operands rotated over 400 MB; cuBLAS multiplies a "
        f"matrix of f16 that exists. {where(measured)}.\n"
    )


def stored_pairs_table() -> str:
    """Returns the microseconds of gated layers with stored weights, as one kernel of two products and as two."""
    measured = result("stored_pairs")
    rows = []
    for case in measured["cases"]:
        pair, two = (case["us"][way] for way in ("pair", "two"))
        rows.append(
            {
                "bits": str(case["bits"]),
                "m": str(case["m"]),
                "pair, us": f"{median(pair):.1f}",
                "two matmuls, us": f"{median(two):.1f}",
                "pair to two": f"{median(pair_time / two_time for pair_time, two_time in zip(pair, two)):.2f}",
                "chosen": {"pair": "pair", "two": "two matmuls"}[case["chosen"]],
            }
        )
    size = measured["cases"][0]
    return (
        table(rows)
        + f"\nn = {size['n']}, k = {size['k']}, f16 with f32 accumulators, scales and zero points of columns "
        "for 8 bits, of 128 steps of k for 4; CUDA graphs of one call, medians of 7 rounds. "
        f"{where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {"producers": producers_table, "stored pairs": stored_pairs_table}
