"""The table of docs/xetile.md: instructions of kernels for Intel's GPUs."""

from __future__ import annotations

from collections.abc import Callable

from common import result, table, wrapped


def counts_table() -> str:
    """Returns the counts of each kernel, a subgroup and a step of k."""
    measured = result("xetile_counts")
    alike: dict[str, list[str]] = {}
    for name, kernel in measured["kernels"].items():
        program, _, target = name.rpartition(" ")
        same = {key: value for key, value in kernel.items() if key not in ("target", "spirv_bytes")}
        key = next((key for key in alike if key.startswith(f"{program}\0") and key.endswith(repr(same))), None)
        alike.setdefault(key or f"{program}\0{same!r}", []).append(target)
    rows = []
    for key, targets in alike.items():
        program = key.partition("\0")[0]
        kernel = measured["kernels"][f"{program} {targets[0]}"]
        held = kernel["accumulator_bytes"] + kernel["operand_bytes"]
        rows.append(
            {
                "kernel": f"`{program}`",
                "target": ", ".join(f"`{target}`" for target in targets),
                "work-groups": str(kernel["work_groups"]),
                "subgroups": str(kernel["subgroups"]),
                "DPAS": str(kernel["step"]["dpas"]),
                "2D loads": str(kernel["step"]["loads"]),
                "prefetches": str(kernel["step"]["prefetches"]),
                "2D stores": str(kernel["outside"]["stores"]),
                "SLM bytes": str(kernel["shared_local_memory"]),
                "register bytes": f"{held} of {kernel['register_bytes']}",
            }
        )
    text = (
        f"Of {measured['size']}^3. DPAS, 2D loads and prefetches are of a subgroup and a step of k, 2D stores of a "
        "subgroup. Register bytes are those of accumulators and of operands that 2D loads bring, of a subgroup, beside "
        "the registers of a hardware thread in the mode with 256 of them; what the target's compiler makes of them is "
        "not known here."
    )
    lines = [
        {
            "target": f"`{target}`",
            "GPU of the peaks": line["gpu"],
            "products": f"{line['compute_microseconds']:.0f} us",
            "memory, tiles cached": f"{line['memory_microseconds_if_cached']:.0f} us",
            "memory, no caches": f"{line['memory_microseconds_if_not_cached']:.0f} us",
        }
        for target, line in measured["roofline_estimate"].items()
    ]
    estimate = (
        "A roofline estimate, of the peaks in Intel's data sheets: least times of the products and of the traffic of "
        "memory, where A and B are read once, and where each work-group with a tile of 256 x 256 reads its own. No "
        "kernel was timed."
    )
    return table(rows) + f"\n{wrapped(text)}\n\n" + table(lines) + f"\n{wrapped(estimate)}\n"


REGIONS: dict[str, Callable[[], str]] = {"xetile counts": counts_table}
