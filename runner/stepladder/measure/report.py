"""Reports of measurements: the times of each kernel, and tables."""

from __future__ import annotations

from typing import Any

from stepladder.runtime.bundle import Bundle
from stepladder.runtime.bundle.problem_fields import problem_of


def describe_bundle(bundle: Bundle) -> dict[str, Any]:
    """Returns the fields of a bundle's manifest that a result needs to be reproduced, as JSON data.

    Args:
        bundle: of a matmul.
    """
    fields = (
        "target",
        "grid",
        "block",
        "cluster",
        "dependent_launch",
        "static_shared_memory",
        "dynamic_shared_memory",
        "registers",
        "spills",
        "pipeline",
        "steps",
        "without",
        "knobs",
        "tool_versions",
    )
    return {name: getattr(bundle.manifest, name) for name in fields}


def table_title(result: dict[str, Any]) -> str:
    """Returns one line with the problem, the GPU and the number of rounds of a result of `bench_bundles`.

    Args:
        result: of `bench_bundles`, of one problem.
    """
    return f"{problem_of(result['problem']).describe()}; {result['card']['name']}; {result['rounds']} rounds"


def table_rows(result: dict[str, Any]) -> list[dict[str, object]]:
    """Returns a result of `bench_bundles` as rows of a table, one per mode and kernel; keys are column titles.

    Args:
        result: of `bench_bundles`, of one problem.
    """
    references = [result[key]["name"] for key in ("baseline", "ceiling") if key in result]
    rows: list[dict[str, object]] = []
    for mode, summary in result["modes"].items():
        for name, kernel in summary["kernels"].items():
            spread = kernel["tflops_spread"]
            row: dict[str, object] = {
                "mode": mode,
                "kernel": name,
                "TFLOP/s": f"{spread['median']:.1f}",
                "min to max": f"{spread['minimum']:.1f} to {spread['maximum']:.1f}",
            }
            if "clock_mhz" in kernel:
                row |= {"MHz": f"{kernel['clock_mhz']:.0f}", "W": f"{kernel['power_w']:.0f}"}
            row |= {f"of {reference}": _ratio_cell(summary["ratios"][name].get(reference)) for reference in references}
            rows.append(row)
    return rows


def _ratio_cell(ratio: dict[str, Any] | None) -> str:
    """Returns the median ratio with its extremes; empty for a kernel beside itself."""
    if ratio is None:
        return ""
    spread = ratio["spread"]
    return f"{spread['median']:.3f} ({spread['minimum']:.3f} to {spread['maximum']:.3f})"
