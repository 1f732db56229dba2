"""The tables of docs/emulator.md, from what `emulator.py` counted and `counters.py` measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from common import result, table, wrapped

PIPELINES = ("wmma", "mma_sync")


def emulator_table(name: str) -> str:
    """Returns the emulator's counters of each variant of an ablation, as Markdown.

    Args:
        name: of the ablation.
    """
    counted = result("emulator")
    rows = []
    for variant in counted["ablations"][name]:
        shared = variant["shared"]
        rows.append(
            {
                "kernel": variant["title"],
                "global MB": f"{variant['global']['bytes'] / 1e6:.2f}",
                "shared MB": f"{shared['bytes'] / 1e6:.2f}",
                "wavefronts": str(shared["wavefronts"]),
                "bank conflicts": str(shared["conflicts"]),
                "barriers": str(sum(variant["barriers"].values())),
                "MMA instructions": str(sum(variant["instructions"].values())),
            }
        )
    size = " x ".join(map(str, counted["size"]))
    return f"{size}, f16 x f16 -> f32, `{name}`, counted by warp.\n\n" + table(rows)


def emulator_beside_profiler() -> str:
    """Returns bank conflicts that the emulator counts, scaled to the profiled size, beside those of the GPU, for the
    variants that have any."""
    counted, profiled = result("emulator"), result("counters")
    column = "of them from loads of fragments"
    rows = []
    for name, counts in counted["profiled"].items():
        titles = list(counts["conflicts_of_loads"])
        for kernel in profiled["kernels"]:
            if kernel["ablation"] != name or kernel["tile"] != counts["tile"]:
                continue
            title = titles[kernel["variant"]]
            cells = {"emulator": f"{counts['conflicts_of_loads'][title]:,}", "ncu, H200": kernel["metrics"][column]}
            rows.append({"ablation": name, "kernel": title} | cells)
    some = [row for row in rows if {row["emulator"], row["ncu, H200"]} != {"0"}]
    return wrapped(
        f"{counted['profiled_size']}^3; the emulator runs a smaller problem with the same tiles, and its counts are "
        f"scaled. The other {len(rows) - len(some)} of {len(rows)} variants of the ablations have none on either.\n\n"
    ) + table(some)


def emulator_speed() -> str:
    """Returns how long the emulator takes for whole kernels, a small case and a host loop."""
    measured = result("emulator_speed")
    rows = []
    for title, of_jobs in measured["cases"].items():
        cells = {
            f"CPU s, {jobs} process{'es' if jobs != '1' else ''}": f"{it['cpu']:.2f}" for jobs, it in of_jobs.items()
        }
        rows.append({"case": title, "CPU s, 1 process": "", "CPU s, 2 processes": "-"} | cells)
    text = (
        f"`{measured['pipeline']}`, f16 x f16 -> f32, with the sanitizer and counters; user and system time of the "
        f"whole command, over all processes, {measured['date'][:10]}.\n\n"
    )
    return wrapped(text) + table(rows)


def emulator_upstream() -> str:
    """Returns the outcomes of LLVM's integration tests."""
    cases = result("emulator_upstream")["cases"]
    titles = {
        "right": "PASS",
        "finding": "finding, fixed copy PASS",
        "found": "finding",
        "wrong": "FAIL",
        "unsupported": "not run",
    }
    rows = []
    for group in dict.fromkeys(case["group"] for case in cases):
        of_group = [case for case in cases if case["group"] == group]
        rows.append(
            {
                "tests": group,
                "all": str(len(of_group)),
                **{title: str(sum(case["status"] == status for case in of_group)) for status, title in titles.items()},
            }
        )
    return table(rows)


def emulator_coverage() -> str:
    """Returns the ops of MLIR's dialects that are executed, and those that are left out."""
    dialects = result("emulator_coverage")["dialects"]
    rows = [
        {
            "dialect": name,
            "ops": str(of["ops"]),
            "executed": str(of["known"]),
            "left out": str(len(of["left_out"])),
            "gaps": ", ".join(f"`{gap.removeprefix(f'{name}.')}`" for gap in of["missing"]) or "none",
        }
        for name, of in dialects.items()
        if of["known"] < of["ops"]
    ]
    whole = ", ".join(f"`{name}`" for name, of in dialects.items() if of["known"] == of["ops"])
    reasons: dict[str, list[str]] = {}
    for of in dialects.values():
        for name, reason in of["left_out"].items():
            reasons.setdefault(reason, []).append(name)
    left_out = [
        {"left out": f"{len(names)} ops, such as `{names[0]}`", "reason": reason} for reason, names in reasons.items()
    ]
    return f"All ops of these dialects are executed: {whole}. Of others:\n\n" + table(rows) + "\n" + table(left_out)


def emulator_ptx() -> str:
    """Returns the instructions of PTX that are executed, and those that are left out."""
    groups = result("emulator_ptx")["groups"]
    rows = [
        {
            "instructions": name,
            "executed": ", ".join(f"`{op}`" for op in of["known"]) or "none",
            "left out": ", ".join(f"`{skipped}`" for skipped in [*of["left_out"], *of["missing"]]) or "none",
        }
        for name, of in groups.items()
    ]
    reasons: dict[str, list[str]] = {}
    for of in groups.values():
        for name, reason in of["left_out"].items():
            reasons.setdefault(reason, []).append(name)
    left_out = [
        {"left out": ", ".join(f"`{name}`" for name in names), "reason": reason} for reason, names in reasons.items()
    ]
    return table(rows) + "\n" + table(left_out)


REGIONS: dict[str, Callable[[], str]] = {
    f"emulator {pipeline}": partial(emulator_table, pipeline) for pipeline in PIPELINES
}
REGIONS |= {"emulator speed": emulator_speed}
REGIONS |= {"emulator profiler": emulator_beside_profiler}

REGIONS |= {"emulator upstream": emulator_upstream, "emulator coverage": emulator_coverage}
REGIONS |= {"emulator ptx": emulator_ptx}
