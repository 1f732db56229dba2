"""The tables of docs/xetile.md: instructions of kernels for Intel's GPUs, and measurements on NVIDIA's."""

from __future__ import annotations

from collections.abc import Callable

from common import median, result, table, where, wrapped

_WITH = ("xetile_mma_sync", "xetile_wgmma")  # the pipelines for NVIDIA's GPUs


def _counts_row(name: str, targets: str, kernel: dict) -> dict[str, str]:
    """Returns the row of a kernel."""
    register_bytes = kernel["accumulator_bytes"] + kernel["operand_bytes"]
    return {
        "kernel": name,
        "target": targets,
        "work-groups": str(kernel["work_groups"]),
        "subgroups": str(kernel["subgroups"]),
        "DPAS": str(kernel["step"]["dpas"]),
        "2D loads": str(kernel["step"]["loads"]),
        "prefetches": str(kernel["step"]["prefetches"]),
        "2D stores": str(kernel["outside"]["stores"]),
        "SLM bytes": str(kernel["shared_local_memory"]),
        "register bytes": f"{register_bytes} of {kernel['register_bytes']}",
    }


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
        rows.append(_counts_row(f"`{program}`", ", ".join(f"`{target}`" for target in targets), kernel))
    rows.append(_counts_row("LLVM's GEMM of work-groups", "`pvc`, `bmg`", measured["upstream"]))
    text = (
        f"Of {measured['size']}^3. DPAS, 2D loads and prefetches are of a subgroup and a step of k, 2D stores of a "
        "subgroup. Register bytes are those of accumulators and of operands that 2D loads bring, of a subgroup, beside "
        "the registers of a hardware thread in the mode with 256 of them; what the target's compiler makes of them is "
        "not known here. The last row is Intel's work-group GEMM among LLVM's integration tests "
        "(XeGPU/WG/simple_gemm.mlir), counted by its layouts: an instruction for each block of a subgroup's part."
    )
    return table(rows) + f"\n{wrapped(text)}\n"


def kernels_table() -> str:
    """Returns the times of program 2.1 on an NVIDIA GPU, and the programs whose numbers were checked there."""
    measured = result("xetile_kernels")
    rows = []
    for of_size in measured["sizes"]:
        size = of_size["problem"]["m"]
        row = {"m = n = k": str(size)}
        for kernel in ("xetile_mma_sync", "mma_sync", "xetile_wgmma", "wgmma"):
            row[f"`{kernel}`"] = f"{median(of_size, f'{kernel}_{size}'):.1f}"
        row["cuBLAS"] = f"{median(of_size, 'cublas'):.1f}"
        for kernel in ("mma_sync", "wgmma"):
            ours, rival = (median(of_size, f"{prefix}{kernel}_{size}") for prefix in ("xetile_", ""))
            row[f"of `{kernel}`"] = f"{ours / rival:.3f}"
        rows.append(row)
    right: dict[str, dict[str, str]] = {}
    checked = [entry for entry in measured["programs"] if entry["refusal"] is None]
    for entry in checked:
        if all(seed["passed"] for seed in entry["seeds"].values()):
            sizes = " x ".join(map(str, entry["shape"])) if entry["shape"] else "as in its file"
            line = right.setdefault(entry["program"], {"program": f"`{entry['program']}`"} | dict.fromkeys(_WITH, ""))
            line[entry["pipeline"]] += ("; " if line[entry["pipeline"]] else "") + sizes
    spills = sum(entry["bundle"]["spills"]["stores"] for entry in checked)
    speeds = (
        "TFLOP/s of program 2.1, f16 with f32 accumulators, the same product by the linalg pipelines with their "
        f"measured knobs, and cuBLAS: medians of bursts ({where(measured['sizes'][0])}). The last columns are ratios "
        "of the medians."
    )
    numbers = (
        "Sizes m x n x k of programs whose results are correct on that GPU, with seeds 0, 1 and 2. Their kernels spill "
        f"{spills} bytes."
    )
    return table(rows) + f"\n{wrapped(speeds)}\n\n" + table(list(right.values())) + f"\n{wrapped(numbers)}\n"


REGIONS: dict[str, Callable[[], str]] = {"xetile counts": counts_table, "xetile kernels": kernels_table}
