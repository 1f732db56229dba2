"""The tables of the Hopper pages about speed, from the results of `hopper.py`; a region without a result is a note."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import geometric_mean

from common import DOCS, median, ratio, result, table, where
from hopper_cases import SQUARES

RESULTS = DOCS / "results"
TYPES = ("f16-f32", "bf16-bf16")
MODES = ("burst", "sustained")
NOT_MEASURED = "Not measured yet.\n"


def _has(name: str) -> bool:
    return (RESULTS / f"{name}.json").is_file()


def tile_of(knobs: dict) -> str:
    """Returns the tile of a block as MxNxK.

    Args:
        knobs: of a kernel.
    """
    return "x".join(str(knobs[f"block_{axis}"]) for axis in "mnk")


def ablation_of() -> tuple[dict, dict]:
    """Returns the result of the ablation, and what `bench` measured in it."""
    ablation = result("hopper_ablation")
    return ablation, ablation["measured"]


def gains() -> dict[str, str]:
    """Returns step -> its gain, for steps that are the difference between two variants of one pipeline."""
    if not _has("hopper_ablation"):
        return {}
    ablation, measured = ablation_of()
    gain_of_step = {}
    for before, after in zip(ablation["variants"], ablation["variants"][1:]):
        added = set(before["without"]) - set(after["without"])
        if before["pipeline"] == after["pipeline"] and added and set(after["without"]) < set(before["without"]):
            gain = [median(measured, after["name"], mode) / median(measured, before["name"], mode) for mode in MODES]
            for step in added:
                gain_of_step[step] = f"x {gain[0]:.2f}, sustained x {gain[1]:.2f} (wgmma, {ablation['size']}^3)"
    return gain_of_step


def variants_up_to_fastest() -> list[tuple[str, dict, float]]:
    """Returns pipeline, variant and TFLOP/s in bursts of the ablation up to its fastest kernel."""
    ablation, measured = ablation_of()
    variants = [(variant["pipeline"], variant, median(measured, variant["name"])) for variant in ablation["variants"]]
    fastest = max(range(len(variants)), key=lambda number: variants[number][2])
    return variants[: fastest + 1]


def ablation_cublas() -> float:
    """Returns the TFLOP/s of cuBLAS in the bursts of the ablation."""
    return median(ablation_of()[1], "cublas")


def ablation_table() -> str:
    """Returns the ablation from the single-stage pipeline to the best knobs, beside cuBLAS."""
    ablation, measured = ablation_of()
    rows = []
    for variant in ablation["variants"]:
        bundle = measured["bundles"][variant["name"]]
        rows.append(
            {
                "kernel": variant["title"],
                "pipeline": variant["pipeline"],
                "tile": tile_of(bundle["knobs"]),
                "TFLOP/s, burst": f"{median(measured, variant['name']):.0f}",
                "of cuBLAS": ratio(measured, variant["name"], "cublas"),
                "sustained": f"{median(measured, variant['name'], 'sustained'):.0f}",
                "of cuBLAS, sustained": ratio(measured, variant["name"], "cublas", "sustained"),
                "registers": str(bundle["registers"]),
                "spills, bytes": str(sum(bundle["spills"].values())),
            }
        )
    rows.append(
        {
            "kernel": "cuBLAS",
            "pipeline": "",
            "tile": "",
            "TFLOP/s, burst": f"{median(measured, 'cublas'):.0f}",
            "of cuBLAS": "",
            "sustained": f"{median(measured, 'cublas', 'sustained'):.0f}",
            "of cuBLAS, sustained": "",
            "registers": "",
            "spills, bytes": "",
        }
    )
    return (
        "![Ablation](plots/hopper_ablation.svg)\n\n"
        + table(rows)
        + f"\n{ablation['size']}^3, f16 x f16 -> f32, C = AB, {measured['rounds']} rounds; every kernel passed an "
        f"exact check first. {where(measured)}.\n"
    )


def sizes_of(types: str) -> tuple[dict, list[dict]]:
    """Returns the header of a result, and the problems of all results of these types, each once.

    Args:
        types: the name of the types in the results.

    Raises:
        FileNotFoundError: there is no result.
    """
    paths = sorted(RESULTS.glob(f"hopper_sizes_{types}*.json"))
    if not paths:
        raise FileNotFoundError(types)
    by_size, header = {}, {}
    for path in paths:
        header = result(path.stem)
        for measured in header["problems"]:
            problem = measured["problem"]
            by_size[problem["m"], problem["n"], problem["k"]] = measured
    return header, list(by_size.values())


def is_square(measured: dict) -> bool:
    """Returns whether a problem is one of the squares; 1000^3, whose rows are not aligned, is one of the shapes.

    Args:
        measured: an entry of a result.
    """
    problem = measured["problem"]
    return (problem["m"], problem["n"], problem["k"]) in SQUARES


def spread_of(measured: dict, mode: str, kernel: str = "wgmma") -> str:
    """Returns a kernel's ratio to cuBLAS as text: median, and minimum to maximum.

    Args:
        measured: an entry of a result.
        mode: "burst" or "sustained".
        kernel: its name.
    """
    spread = measured["modes"][mode]["kernels"][kernel]["ratio_spread"]
    return f"{spread['median']:.3f} ({spread['minimum']:.3f} to {spread['maximum']:.3f})"


def ratio_of(measured: dict, mode: str, kernel: str = "wgmma") -> float:
    """Returns a kernel's median ratio to cuBLAS.

    Args:
        measured: an entry of a result.
        mode: "burst" or "sustained".
        kernel: its name.
    """
    return measured["modes"][mode]["kernels"][kernel]["ratio_spread"]["median"]


def rates_of(measured: dict, mode: str, kernel: str = "wgmma") -> tuple[float, float]:
    """Returns the median TFLOP/s of a kernel and of cuBLAS.

    Args:
        measured: an entry of a result.
        mode: "burst" or "sustained".
        kernel: its name.
    """
    run = measured["modes"][mode]
    return run["kernels"][kernel]["tflops_spread"]["median"], run["baseline"]["tflops_spread"]["median"]


def summary_table() -> str:
    """Returns geometric means and extremes of the ratios to cuBLAS."""
    rows = []
    for types in TYPES:
        try:
            _, problems = sizes_of(types)
        except FileNotFoundError:
            continue
        for title, selected in (
            ("squares", [item for item in problems if is_square(item)]),
            ("other shapes", [item for item in problems if not is_square(item)]),
        ):
            timed = [item for item in selected if item["modes"]]
            if not timed:
                continue
            row = {"types": types.replace("-", " -> "), "problems": f"{len(timed)} {title}"}
            for mode in MODES:
                values = [ratio_of(item, mode) for item in timed]
                row |= {
                    f"geometric mean, {mode}": f"{geometric_mean(values):.3f}",
                    f"minimum, {mode}": f"{min(values):.3f}",
                    f"maximum, {mode}": f"{max(values):.3f}",
                    f"at least 1, {mode}": f"{sum(value >= 1 for value in values)} of {len(values)}",
                }
            rows.append(row)
    return table(rows) if rows else NOT_MEASURED


def stages_table() -> str:
    """Returns the ratio to cuBLAS by the number of stages."""
    stages = result("hopper_stages")
    rows = []
    for measured in stages["problems"]:
        for kind, title in (("multistage", "wgmma_multistage"), ("specialized", "wgmma")):
            row = {"k": str(measured["problem"]["k"]), "pipeline": title}
            for count in stages["stages"]:
                name = f"{kind}-{count}"
                known = name in measured["modes"]["burst"]["kernels"]
                cell = f"{ratio_of(measured, 'burst', name):.3f}" if known else ""
                row[f"{count} stage{'s' if count > 1 else ''}"] = cell
            rows.append(row)
    problem = stages["problems"][0]["problem"]
    return (
        "![Stages](plots/hopper_stages.svg)\n\n"
        + table(rows)
        + f"\nRatio to cuBLAS, bursts, {problem['m']} x {problem['n']} x k, tile 128x128x64, f16 x f16 -> f32; with "
        f"one stage, `wgmma_multistage` is `wgmma_single_stage`. {where(stages)}.\n"
    )


def beside_table() -> str:
    """Returns the kernels beside cuBLAS, Triton and Pallas."""
    beside = result("hopper_beside")
    rows = []
    for measured in beside["problems"]:
        size, modes = str(measured["problem"]["m"]), measured["modes"]
        triton = [name for name in modes["burst"]["kernels"] if name.startswith("triton")]
        kernels = {"wgmma": "wgmma"}
        if triton:
            best = max(triton, key=lambda name: ratio_of(measured, "burst", name))
            kernels[best] = f"Triton {measured['versions'].get('triton', '')}, best of {len(triton)}"
        for name, title in kernels.items():
            row = {
                "size": size,
                "kernel": title,
                "TFLOP/s, burst": f"{rates_of(measured, 'burst', name)[0]:.0f}",
                "of cuBLAS": spread_of(measured, "burst", name),
                "sustained": "",
                "of cuBLAS, sustained": "",
            }
            if name in modes["sustained"]["kernels"]:
                row |= {
                    "sustained": f"{rates_of(measured, 'sustained', name)[0]:.0f}",
                    "of cuBLAS, sustained": spread_of(measured, "sustained", name),
                }
            rows.append(row)
        mosaic = measured.get("mosaic")
        if mosaic:
            middle = sorted(mosaic["ratios"])
            rows.append(
                {
                    "size": size,
                    "kernel": f"Pallas (JAX {measured['versions'].get('jax', '')}), own profiler",
                    "TFLOP/s, burst": f"{sorted(mosaic['tflops'])[len(middle) // 2]:.0f}",
                    "of cuBLAS": f"{middle[len(middle) // 2]:.3f} ({middle[0]:.3f} to {middle[-1]:.3f})",
                    "sustained": "",
                    "of cuBLAS, sustained": "",
                }
            )
    notes = sorted(
        {
            f"{name}: {text}"
            for measured in beside["problems"]
            for name, text in measured["notes"].items()
            if name in ("triton", "mosaic")
        }
    )
    return (
        table(rows)
        + f"\nf16 x f16 -> f16, f32 accumulator, C = AB. {where(beside)}.\n"
        + "".join(f"\n{note}\n" for note in notes)
    )


def or_not_measured(make: Callable[[], str]) -> str:
    """Returns the text of a region, or a note where it has no result yet.

    Args:
        make: returns the text.
    """
    try:
        return make()
    except FileNotFoundError:
        return NOT_MEASURED


REGIONS: dict[str, Callable[[], str]] = {
    f"hopper {name}": partial(or_not_measured, make)
    for name, make in {
        "ablation": ablation_table,
        "stages": stages_table,
        "beside": beside_table,
        "summary": summary_table,
    }.items()
}
