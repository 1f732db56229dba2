"""The tables of docs/wmma.md and docs/mma_sync.md, from what `measure.py` and `counters.py` measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import geometric_mean

from common import median, ratio, result, table, where

ABLATIONS = ("wmma", "wmma_asynchronous", "mma_sync")
PIPELINES = ("wmma", "mma_sync")


def measured_variants(name: str, tile: str) -> list[tuple[dict, float, float]]:
    """Returns (variant, burst TFLOP/s, sustained TFLOP/s) for each variant of an ablation.

    Args:
        name: of the ablation.
        tile: its name.
    """
    ablation = result(f"{name}_ablation")
    measured = ablation["tiles"][tile]
    return [
        (variant, median(measured, str(number)), median(measured, str(number), "sustained"))
        for number, variant in enumerate(ablation["variants"])
    ]


def ablation_table(name: str) -> str:
    """Returns an ablation with its fastest tile, beside cuBLAS and the ceiling, as Markdown.

    Args:
        name: of the ablation.
    """
    ablation = result(f"{name}_ablation")
    tile = max(ablation["tiles"], key=lambda tile: measured_variants(name, tile)[-1][1])
    measured = ablation["tiles"][tile]
    rows, previous = [], None
    for number, (variant, burst, sustained) in enumerate(measured_variants(name, tile)):
        kernel = str(number)
        rows.append(
            {
                "kernel": variant["title"],
                "TFLOP/s, burst": f"{burst:.1f}",
                "sustained": f"{sustained:.1f}",
                "gain": f"x {burst / previous:.2f}" if previous else "",
                "of the ceiling": ratio(measured, kernel, "ceiling"),
                "of cuBLAS": ratio(measured, kernel, "cublas"),
            }
        )
        previous = burst
    for other, title in (("cublas", "cuBLAS"), ("ceiling", "ceiling of `mma.sync`")):
        rows.append(
            {
                "kernel": title,
                "TFLOP/s, burst": f"{median(measured, other):.1f}",
                "sustained": f"{median(measured, other, 'sustained'):.1f}",
                "gain": "",
                "of the ceiling": ratio(measured, other, "ceiling") if other == "cublas" else "",
                "of cuBLAS": ratio(measured, other, "cublas") if other == "ceiling" else "",
            }
        )
    return f"Tile {tile}, {ablation['size']}^3, f16 x f16 -> f32, C = AB + C. {where(measured)}.\n\n" + table(rows)


def sizes_table(pipeline: str) -> str:
    """Returns the speed of the best tile of each size beside cuBLAS and the ceiling, as Markdown.

    Args:
        pipeline: its name.
    """
    rows: dict[str, dict[str, str]] = {}
    places = []
    for acc in ("f32", "f16"):
        sizes = result(f"{pipeline}_sizes_{acc}")["sizes"]
        places.append(f"{acc}: {where(next(iter(sizes.values())))}")
        for size, measured in sizes.items():
            best = measured["best"]
            knobs = measured["bundles"][best]["knobs"]
            tile = "x".join(str(knobs[f"block_{axis}"]) for axis in "mnk")
            rows.setdefault(size, {"size": size})
            rows[size] |= {
                f"{acc}: block tile": tile,
                f"{acc}: TFLOP/s": f"{median(measured, best):.0f}",
                f"{acc}: of cuBLAS": ratio(measured, best, "cublas"),
                f"{acc}: of the ceiling": ratio(measured, best, "ceiling"),
            }
    return table(list(rows.values())) + (
        "\nf16 inputs; accumulators and C of f32 and of f16; C = AB + C, bursts. " + "; ".join(places) + ".\n"
    )


def types_table() -> str:
    """Returns every type and layout of mma_sync at one size, and whether all checks passed."""
    rows = []
    for name, layouts in result("mma_sync_types")["types"].items():
        for layout, measured in layouts.items():
            a, b = layout.split("-")
            right = all(check["passed"] for check in measured["checks"])
            seeds = len({check["seed"] for check in measured["checks"]})
            rows.append(
                {
                    "types": name,
                    "A": a,
                    "B": b,
                    "TFLOP/s": f"{median(measured, 'large'):.1f}",
                    "cuBLAS": f"{median(measured, 'cublas'):.1f}",
                    "of cuBLAS": ratio(measured, "large", "cublas"),
                    "of the ceiling": ratio(measured, "large", "ceiling"),
                    "spills, bytes": str(sum(measured["bundles"]["large"]["spills"].values())),
                    "check": f"PASS, {seeds} seeds" if right else "FAIL",
                }
            )
    problem = measured["problem"]
    return table(rows) + f"\n{problem['m']}^3, C = AB + C, bursts. {where(measured)}.\n"


def product_table() -> str:
    """Returns C = AB, which does not read C, at one size."""
    measured = result("mma_sync_product")
    problem = measured["problem"]
    rows = [
        {
            "kernel": {"cublas": "cuBLAS", "ceiling": "ceiling of `mma.sync`"}.get(name, "mma_sync"),
            "TFLOP/s": f"{median(measured, name):.1f}",
            "of the ceiling": ratio(measured, name, "ceiling") if name != "ceiling" else "",
        }
        for name in measured["modes"]["burst"]["kernels"]
    ]
    return table(rows) + f"\nC = AB, {problem['m']}^3, f16 x f16 -> f32, bursts. {where(measured)}.\n"


def counters_table() -> str:
    """Returns profiler counters of one launch of some variants."""
    counters = result("counters")
    rows = []
    for entry in counters["kernels"]:
        ablation = result(f"{entry['ablation']}_ablation")
        rows.append(
            {"ablation": entry["ablation"], "kernel": ablation["variants"][entry["variant"]]["title"]}
            | {title: entry["metrics"][title] for title in counters["columns"]}
        )
    card = counters["card"]
    if isinstance(card, dict):
        card = f"{card['name']}, driver {card['driver_version']}"
    return table(rows) + f"\n{card}, {counters['date'][:10]}, `{counters['tool']}`.\n"


def f32_table() -> str:
    """Returns products of f32 by three products of tf32 and by one, beside cuBLAS: throughput and errors."""
    measured = result("f32_products")
    titles = {
        "wgmma": "`wgmma`",
        "mma_sync": "`mma_sync`",
        "finite": "`mma_sync`, `keep_infinities=false`",
        "cublas": "cuBLAS",
        "tf32": "`wgmma`, `allow_tf32`",
    }
    rows = []
    for problem in measured["problems"]:
        times = problem["measured"]
        rates = {"cublas": times["baseline"]["tflops_spread"]["median"]}
        rates |= {name: kernel["tflops_spread"]["median"] for name, kernel in times["kernels"].items()}
        rows.append(
            {"m = n = k": str(problem["size"])}
            | {f"{title}, TFLOP/s": f"{rates[name]:.1f}" for name, title in titles.items()}
            | {f"error of {title}": f"{problem['errors'][name]:.1e}" for name, title in titles.items()}
        )
    return (
        table(rows) + f"\nMedians of {measured['rounds']} rounds of bursts, and the largest errors of "
        f"{measured['seeds']} seeds, with the knobs that `stepladder compile` chooses. {where(measured)}.\n"
    )


def f32_few_rows_table() -> str:
    """Returns products of f32 with few rows beside cuBLAS, with the default choice."""
    measured = result("f32_thin")
    rows = [
        {
            "m x n x k": problem["size"].replace("x", " x "),
            "TFLOP/s": f"{problem['measured']['kernels']['wgmma']['tflops_spread']['median']:.1f}",
            "of cuBLAS": f"{f32_ratios(problem)['wgmma']:.2f}",
            "error": f"{problem['errors']['wgmma']:.1e}",
            "error of cuBLAS": f"{problem['errors']['cublas']:.1e}",
        }
        for problem in measured["problems"]
    ]
    return (
        table(rows) + f"\nMedians of {measured['rounds']} rounds of bursts, and the largest errors of "
        f"{measured['seeds']} seeds. {where(measured)}.\n"
    )


def f32_ratios(problem: dict) -> dict[str, float]:
    """Returns the throughput of each kernel of a product of f32, as a ratio to cuBLAS.

    Args:
        problem: an entry of a result.
    """
    times = problem["measured"]
    baseline = times["baseline"]["tflops_spread"]["median"]
    return {name: kernel["tflops_spread"]["median"] / baseline for name, kernel in times["kernels"].items()}


def f32_batches_table() -> str:
    """Returns random batches of f32 beside cuBLAS, with the default choice, and with the fastest of other settings for
    each place where operands are split."""
    measured = result("f32_batches")
    rows, all_ratios = [], []
    for problem in measured["problems"]:
        ratios = f32_ratios(problem)
        places = {name: kernel["knobs"]["split_f32"] for name, kernel in problem["kernels"].items()}
        sizes, layout = problem["size"].split("-")
        all_ratios.append(ratios.pop("wgmma"))
        row = {
            "matmuls x m x n x k": sizes.replace("x", " x "),
            "B": f"{layout}-major",
            "`split_f32`": places["wgmma"],
            "of cuBLAS": f"{all_ratios[-1]:.2f}",
        }
        for place in dict.fromkeys(places[name] for name in ratios):
            row[f"`{place}`"] = f"{max(ratio for name, ratio in ratios.items() if places[name] == place):.2f}"
        row["error"] = f"{problem['errors']['wgmma']:.1e}"
        row["error of cuBLAS"] = f"{problem['errors']['cublas']:.1e}"
        rows.append(row)
    return (
        table(rows) + "\nThroughput of the default choice as a ratio to cuBLAS in f32: geometric mean "
        f"{geometric_mean(all_ratios):.2f}. Medians of {measured['rounds']} rounds of bursts, and the largest errors "
        f"of {measured['seeds']} seeds. {where(measured)}.\n"
    )


def f32_settings_table() -> str:
    """Returns the default choices for random products of f32 with few rows or columns, beside the fastest settings that
    were measured for each place where operands are split."""
    measured = result("f32_settings")
    columns: dict[str, list[float]] = {}
    for problem in measured["problems"]:
        ratios = f32_ratios(problem)
        columns.setdefault("default choice", []).append(ratios["wgmma"])
        places = {name: kernel["knobs"]["split_f32"] for name, kernel in problem["kernels"].items()}
        for place in ("kernels", "registers", "shared"):
            of_place = [ratio for name, ratio in ratios.items() if places[name] == place]
            if of_place:
                columns.setdefault(f"fastest with `{place}`", []).append(max(of_place))
        columns.setdefault("fastest of all", []).append(max(ratios.values()))
    columns["default choice, held out"] = [
        f32_ratios(problem)["wgmma"] for problem in result("f32_held_out")["problems"]
    ]
    rows = [
        {
            "knobs": name,
            "problems": str(len(ratios)),
            "geometric mean": f"{geometric_mean(ratios):.2f}",
            "10th percentile": f"{sorted(ratios)[len(ratios) // 10]:.2f}",
            "minimum": f"{min(ratios):.2f}",
        }
        for name, ratios in columns.items()
    ]
    return (
        table(rows) + "\nThroughput as a ratio to cuBLAS in f32, medians of "
        f"{measured['rounds']} rounds of bursts. {where(measured)}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {
    "f32 settings": f32_settings_table,
    "f32 batches": f32_batches_table,
    "f32 products": f32_table,
    "f32 few rows": f32_few_rows_table,
    "counters": counters_table,
    "types": types_table,
    "product": product_table,
}
REGIONS |= {f"ablation {name}": partial(ablation_table, name) for name in ABLATIONS}
REGIONS |= {f"sizes {pipeline}": partial(sizes_table, pipeline) for pipeline in PIPELINES}
