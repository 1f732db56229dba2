"""The tables of the Hopper pages about correctness, sanitizers, clusters and machine code, from measured results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from common import result, table, where
from common_fields import join
from render_hopper import or_not_measured, rates_of, spread_of, tile_of


def _problem(repeated: dict) -> str:
    """Returns the problem of a check. Older results call the type of the accumulator that of the sums."""
    return repeated.get("problem", "").replace(" sums)", " accumulation)")


def numbers_table() -> str:
    """Returns how many kernels passed the checks of their numbers."""
    numbers = result("hopper_numbers")
    groups: dict[str, list[dict]] = {}
    for name, case in numbers["cases"].items():
        title = "random shapes, f16-f32" if name.startswith("random") else name.split("_")[0]
        groups.setdefault(title, []).append(join(numbers["usual"], case))
    rows = [
        {
            "cases": name,
            "kernels": str(len(cases)),
            "PASS": str(sum(case["passed"] for case in cases)),
            "largest error / tolerance": f"{max(case.get('max_error_over_tolerance', 0) for case in cases):.2g}",
            "kernels that spill": str(sum(any(case.get("spills", {}).values()) for case in cases)),
        }
        for name, cases in groups.items()
    ]
    text = table(rows) + (
        f"\nEvery kernel runs the exact, random and repeatability checks with {len(numbers['seeds'])} seeds. "
        f"{sum(map(len, numbers['refused'].values()))} combinations are refused at build time. {where(numbers)}.\n"
    )
    repeated = numbers["repeated"]
    runs = list(repeated.values())
    equal = sum(run["passed"] for run in runs)
    text += (
        f"\n{runs[0]['launches']} launches of a kernel, {_problem(runs[0])}, give the same bits: "
        f"{equal} of {len(runs)} kernels ({', '.join(repeated)}).\n"
    )
    return text


def sanitizer_table() -> str:
    """Returns what the tools of compute-sanitizer found."""
    sanitizer = result("sanitizer")
    kernels = sanitizer["kernels"]
    rows = []
    for tool in kernels[0]["tools"]:
        reports = [kernel["tools"][tool] for kernel in kernels]
        # A summary begins with the number of errors or hazards.
        found = sum(int(report["summary"].split()[0]) for report in reports)
        right = sum(report["numbers_right"] for report in reports)
        rows.append({"tool": tool, "kernels": str(len(reports)), "right results": str(right), "findings": str(found)})
    names = "; ".join(dict.fromkeys(kernel["name"] for kernel in kernels))
    return table(rows) + (
        f"\nKernels, each on two problems: {names}. C = AB + C, f16 x f16 -> f32, every launch of `stepladder run`. "
        f"compute-sanitizer {sanitizer['sanitizer'].removeprefix('Version ').split()[0]}. {where(sanitizer)}.\n"
    )


def few_rows_table() -> str:
    """Returns the gain of shrunk TMA boxes where A has few rows."""
    measurement = result("hopper_few_rows")
    rows = [
        {
            "kernel": title,
            "TFLOP/s": f"{rates_of(measurement, 'burst', str(number))[0]:.1f}",
            "of cuBLAS": spread_of(measurement, "burst", str(number)),
        }
        for number, title in enumerate(measurement["titles"])
    ]
    problem = measurement["problem"]
    return table(rows) + (
        f"\n{problem['m']} x {problem['n']} x {problem['k']}, f16 x f16 -> f32, C = AB, bursts. {where(measurement)}.\n"
    )


def clusters_table(name: str = "hopper_clusters") -> str:
    """Returns how many clusters of each size the GPU holds at once.

    Args:
        name: of the result.
    """
    clusters = result(name)
    rows = [
        {"blocks per cluster": "clusters at once"} | {size: str(count) for size, count in clusters["clusters"].items()}
    ]
    return table(rows) + (
        f"\nBlocks with {clusters['shared_memory'] // 1024} KiB of shared memory, one per "
        f"multiprocessor. {where(clusters)}.\n"
    )


# Instructions that the listing shows; the others are counted.
_SHOWN = ("HGMMA", "WARPGROUP", "SYNCS", "BRA")


def listing() -> str:
    """Returns the main loop in SASS, without the instructions in between."""
    data = result("hopper_listing")
    lines, left_out = [], 0
    for instruction in [*data["main_loop"], None]:
        if instruction is not None and not any(word in instruction for word in _SHOWN):
            left_out += 1
            continue
        if left_out:
            lines.append(f"      ... {left_out} more")
        left_out = 0
        if instruction is not None:
            lines.append(instruction if instruction.startswith("@") else f"      {instruction}")
    knobs = data["knobs"]
    return (
        "```\n" + "\n".join(lines) + f"\n```\n\n{data['problem']}, tile {tile_of(knobs)}, {knobs['stages']} stages, "
        f"cluster {knobs['cluster_m']}x{knobs['cluster_n']}; "
        + ", ".join(f"{tool} {version}" for tool, version in data["tools"].items())
        + ".\n"
    )


REGIONS: dict[str, Callable[[], str]] = {
    f"hopper {name}": partial(or_not_measured, make)
    for name, make in {
        "numbers": numbers_table,
        "sanitizer": sanitizer_table,
        "listing": listing,
        "few rows": few_rows_table,
        "clusters": clusters_table,
    }.items()
}
