"""The tables and plots of docs/hopper.md, from what `hopper.py` measured. A region without a result says so."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import geometric_mean

from common import DOCS, median, ratio, result, save, table, where
from hopper import SQUARES

RESULTS = DOCS / "results"
PLOTS = DOCS / "plots"
TYPES = ("f16-f32", "bf16-bf16")
MODES = ("burst", "sustained")
NOT_MEASURED = "Not measured yet.\n"


def _has(name: str) -> bool:
    return (RESULTS / f"{name}.json").is_file()


def _tile(knobs: dict) -> str:
    return "x".join(str(knobs[f"block_{axis}"]) for axis in "mnk")


def _ablation() -> tuple[dict, dict]:
    """Returns the measured variants, and what `bench` says of them."""
    ablation = result("hopper_ablation")
    return ablation, ablation["measured"]


def gains() -> dict[str, str]:
    """Step -> what it gains, for steps that are alone between two variants of one pipeline."""
    if not _has("hopper_ablation"):
        return {}
    ablation, measured = _ablation()
    found = {}
    for before, after in zip(ablation["bars"], ablation["bars"][1:]):
        added = set(before["without"]) - set(after["without"])
        if before["pipeline"] == after["pipeline"] and added and set(after["without"]) < set(before["without"]):
            gain = [median(measured, after["name"], mode) / median(measured, before["name"], mode) for mode in MODES]
            for step in added:
                found[step] = f"x {gain[0]:.2f}, sustained x {gain[1]:.2f} (wgmma, {ablation['size']}^3)"
    return found


def climb_variants() -> list[tuple[str, dict, float]]:
    """Returns pipeline, variant and TFLOP/s in bursts of the climb up to its fastest kernel."""
    ablation, measured = _ablation()
    variants = [(bar["pipeline"], bar, median(measured, bar["name"])) for bar in ablation["bars"]]
    fastest = max(range(len(variants)), key=lambda number: variants[number][2])
    return variants[: fastest + 1]


def climb_cublas() -> float:
    """Returns cuBLAS's TFLOP/s in the same bursts."""
    return median(_ablation()[1], "cublas")


def ablation_table() -> str:
    """The climb from one stage to the best knobs, beside cuBLAS."""
    ablation, measured = _ablation()
    rows = []
    for bar in ablation["bars"]:
        bundle = measured["bundles"][bar["name"]]
        rows.append(
            {
                "kernel": bar["title"],
                "pipeline": bar["pipeline"],
                "tile": _tile(bundle["knobs"]),
                "TFLOP/s, burst": f"{median(measured, bar['name']):.0f}",
                "of cuBLAS": ratio(measured, bar["name"], "cublas"),
                "sustained": f"{median(measured, bar['name'], 'sustained'):.0f}",
                "of cuBLAS, sustained": ratio(measured, bar["name"], "cublas", "sustained"),
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
        "![The climb](plots/hopper_ablation.svg)\n\n"
        + table(rows)
        + f"\n{ablation['size']}^3, f16 x f16 -> f32, C = AB, {measured['rounds']} rounds, every kernel checked "
        f"exactly first. {where(measured)}.\n"
    )


def _sizes(types: str) -> tuple[dict, list[dict]]:
    """Returns a header and the problems of all files of these types, each once."""
    paths = sorted(RESULTS.glob(f"hopper_sizes_{types}*.json"))
    if not paths:
        raise FileNotFoundError(types)
    found, header = {}, {}
    for path in paths:
        header = result(path.stem)
        for measured in header["problems"]:
            problem = measured["problem"]
            found[problem["m"], problem["n"], problem["k"]] = measured
    return header, list(found.values())


def _is_square(measured: dict) -> bool:
    """Tells whether a problem is one of the sizes; 1000^3, whose rows are not aligned, is one of the other shapes."""
    problem = measured["problem"]
    return problem["m"] == problem["n"] == problem["k"] and problem["m"] in SQUARES


def _spread(measured: dict, mode: str, kernel: str = "wgmma") -> str:
    spread = measured["modes"][mode]["kernels"][kernel]["ratio_spread"]
    return f"{spread['median']:.3f} ({spread['minimum']:.3f} to {spread['maximum']:.3f})"


def _value(measured: dict, mode: str, kernel: str = "wgmma") -> float:
    return measured["modes"][mode]["kernels"][kernel]["ratio_spread"]["median"]


def _rates(measured: dict, mode: str, kernel: str = "wgmma") -> tuple[float, float]:
    """Returns the median TFLOP/s of a kernel and of cuBLAS."""
    run = measured["modes"][mode]
    return run["kernels"][kernel]["tflops_spread"]["median"], run["baseline"]["tflops_spread"]["median"]


def _parts(knobs: dict) -> str:
    """Returns how many parts a reduction has, and where they meet; nothing for one."""
    # Bundles made before there was a choice have them in a cluster.
    return f"{knobs['split_k']} in {knobs.get('split_k_workspace', 'cluster')}" if knobs["split_k"] > 1 else ""


def sizes_table(types: str, square: bool) -> str:
    """The kernels with default knobs beside cuBLAS."""
    header, problems = _sizes(types)
    rows, bad = [], []
    for measured in problems:
        if _is_square(measured) != square:
            continue
        problem = measured["problem"]
        name = str(problem["m"]) if square else f"{problem['m']} x {problem['n']} x {problem['k']}"
        if not measured["modes"]:
            bad.append(f"{name}: wrong or failed, not timed")
            continue
        kernel = measured["kernels"]["wgmma"]
        knobs = kernel["knobs"]
        row = {
            "size" if square else "m x n x k": name,
            "tile": _tile(knobs),
            "schedule": {"cooperative": "", "pingpong": "ping-pong"}[knobs["schedule"]],
            "consumer_warpgroups": str(knobs["consumer_warpgroups"]),
            "stages": str(knobs["stages"]),
            "persistent_blocks": str(knobs["persistent_blocks"]),
            "cluster": f"{knobs['cluster_m']}x{knobs['cluster_n']}",
            "raster_group": str(knobs["raster_group"]),
            "parts of k": _parts(knobs),
        }
        for mode in MODES:
            own, library = _rates(measured, mode)
            row |= {
                f"TFLOP/s, {mode}": f"{own:.0f}",
                f"cuBLAS, {mode}": f"{library:.0f}",
                f"of cuBLAS, {mode}": _spread(measured, mode),
            }
        rows.append(row)
    if not rows:
        return NOT_MEASURED
    empty = [column for column in ("schedule", "parts of k") if not any(row[column] for row in rows)]
    rows = [{column: text for column, text in row.items() if column not in empty} for row in rows]
    rounds = sorted(
        {
            measured["modes"]["burst"]["rounds"]
            for measured in problems
            if measured["modes"] and _is_square(measured) == square
        }
    )
    text = table(rows) + "".join(f"\n{line}\n" for line in bad)
    plot_ = f"![Speed over sizes](plots/hopper_sizes_{types}.svg)\n\n" if square else ""
    counts = " or ".join(map(str, rounds))
    return (
        plot_
        + text
        + (
            f"\n{types.replace('-', ' -> ')}, f32 sums, C = AB; median ratio of {counts} rounds, least "
            f"to most. {where(header)}, {problems[0]['baseline']}.\n"
        )
    )


def summary_table() -> str:
    """Geometric means and extremes of the ratios to cuBLAS."""
    rows = []
    for types in TYPES:
        try:
            _, problems = _sizes(types)
        except FileNotFoundError:
            continue
        for title, chosen in (
            ("squares", [item for item in problems if _is_square(item)]),
            ("other shapes", [item for item in problems if not _is_square(item)]),
        ):
            timed = [item for item in chosen if item["modes"]]
            if not timed:
                continue
            row = {"types": types.replace("-", " -> "), "problems": f"{len(timed)} {title}"}
            for mode in MODES:
                values = [_value(item, mode) for item in timed]
                row |= {
                    f"geometric mean, {mode}": f"{geometric_mean(values):.3f}",
                    f"least, {mode}": f"{min(values):.3f}",
                    f"most, {mode}": f"{max(values):.3f}",
                    f"at least 1, {mode}": f"{sum(value >= 1 for value in values)} of {len(values)}",
                }
            rows.append(row)
    return table(rows) if rows else NOT_MEASURED


def stages_table() -> str:
    """Ratio to cuBLAS by the number of stages."""
    stages = result("hopper_stages")
    rows = []
    for measured in stages["problems"]:
        for kind, title in (("multistage", "wgmma_multistage"), ("specialized", "wgmma")):
            row = {"k": str(measured["problem"]["k"]), "pipeline": title}
            for count in stages["stages"]:
                name = f"{kind}-{count}"
                known = name in measured["modes"]["burst"]["kernels"]
                cell = f"{_value(measured, 'burst', name):.3f}" if known else ""
                row[f"{count} stage{'s' if count > 1 else ''}"] = cell
            rows.append(row)
    problem = stages["problems"][0]["problem"]
    return (
        "![Stages](plots/hopper_stages.svg)\n\n"
        + table(rows)
        + f"\nOf cuBLAS, bursts, {problem['m']} x {problem['n']} x k, tile 128x128x64, f16 x f16 -> f32; one stage "
        f"of `wgmma_multistage` is `wgmma_single_stage`. {where(stages)}.\n"
    )


def beside_table() -> str:
    """Ours beside cuBLAS, Triton and Pallas."""
    beside = result("hopper_beside")
    rows = []
    for measured in beside["problems"]:
        size, modes = str(measured["problem"]["m"]), measured["modes"]
        triton = [name for name in modes["burst"]["kernels"] if name.startswith("triton")]
        kernels = {"wgmma": "wgmma"}
        if triton:
            best = max(triton, key=lambda name: _value(measured, "burst", name))
            kernels[best] = f"Triton {measured['versions'].get('triton', '')}, best of {len(triton)}"
        for name, title in kernels.items():
            row = {
                "size": size,
                "kernel": title,
                "TFLOP/s, burst": f"{_rates(measured, 'burst', name)[0]:.0f}",
                "of cuBLAS": _spread(measured, "burst", name),
                "sustained": "",
                "of cuBLAS, sustained": "",
            }
            if name in modes["sustained"]["kernels"]:
                row |= {
                    "sustained": f"{_rates(measured, 'sustained', name)[0]:.0f}",
                    "of cuBLAS, sustained": _spread(measured, "sustained", name),
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
        + f"\nf16 x f16 -> f16, f32 sums, C = AB. {where(beside)}.\n"
        + "".join(f"\n{note}\n" for note in notes)
    )


def numbers_table() -> str:
    """How many kernels gave the right numbers."""
    numbers = result("hopper_numbers")
    groups: dict[str, list[dict]] = {}
    for name, case in numbers["cases"].items():
        title = "random shapes, f16-f32" if name.startswith("random") else name.split("_")[0]
        groups.setdefault(title, []).append(case)
    rows = [
        {
            "cases": name,
            "kernels": str(len(cases)),
            "right": str(sum(case["passed"] for case in cases)),
            "largest error, of its tolerance": f"{max(case.get('max_error_over_tolerance', 0) for case in cases):.2g}",
            "spills": str(sum(any(case.get("spills", {}).values()) for case in cases)),
        }
        for name, cases in groups.items()
    ]
    text = table(rows) + (
        f"\nEvery kernel with {len(numbers['seeds'])} seeds, exact, random and repeatable. "
        f"{len(numbers['refused'])} combinations are refused at build time. {where(numbers)}.\n"
    )
    for name, repeated in numbers.get("repeated", {}).items():
        same = "the same bits each time" if repeated["passed"] else "DIFFERENT BITS"
        text += (
            f"\n{name}, {repeated.get('launches', 0)} launches of one kernel, "
            f"{repeated.get('problem', '')}, {repeated.get('blocks', '?')} blocks: {same}.\n"
        )
    return text


def sanitizer_table() -> str:
    """What compute-sanitizer found."""
    sanitizer = result("sanitizer")
    rows = []
    for kernel in sanitizer["kernels"]:
        row = {"kernel": kernel["name"], "m x n x k": " x ".join(map(str, kernel["size"]))}
        for tool, report in kernel["tools"].items():
            row[tool] = report["summary"] if report["numbers_right"] else f"{report['summary']}, WRONG NUMBERS"
        rows.append(row)
    return table(rows) + (
        f"\nC = AB + C, f16 x f16 -> f32, every launch of `stepladder run`, whose checks passed. "
        f"compute-sanitizer {sanitizer['sanitizer'].removeprefix('Version ').split()[0]}. "
        f"{where(sanitizer)}.\n"
    )


def few_rows_table() -> str:
    """What boxes as short as A gain."""
    few = result("hopper_few_rows")
    rows = [
        {
            "kernel": title,
            "TFLOP/s": f"{_rates(few, 'burst', str(number))[0]:.1f}",
            "of cuBLAS": _spread(few, "burst", str(number)),
        }
        for number, title in enumerate(few["titles"])
    ]
    problem = few["problem"]
    return table(rows) + (
        f"\n{problem['m']} x {problem['n']} x {problem['k']}, f16 x f16 -> f32, C = AB, bursts. {where(few)}.\n"
    )


def clusters_table() -> str:
    """How many clusters a card has room for."""
    clusters = result("hopper_clusters")
    rows = [
        {"blocks of a cluster": "clusters at once"} | {size: str(count) for size, count in clusters["clusters"].items()}
    ]
    return table(rows) + (
        f"\nBlocks of {clusters['shared_memory'] // 1024} KiB of shared memory, one a "
        f"multiprocessor. {where(clusters)}.\n"
    )


# What the listing of the main loop shows; of the rest it says how many there are.
_SHOWN = ("HGMMA", "WARPGROUP", "SYNCS", "BRA")


def listing() -> str:
    """The main loop as the disassembler reads it, without the arithmetic in between."""
    found = result("hopper_listing")
    lines, left_out = [], 0
    for instruction in [*found["main_loop"], None]:
        if instruction is not None and not any(word in instruction for word in _SHOWN):
            left_out += 1
            continue
        if left_out:
            lines.append(f"      ... {left_out} more")
        left_out = 0
        if instruction is not None:
            lines.append(instruction if instruction.startswith("@") else f"      {instruction}")
    knobs = found["knobs"]
    return (
        "```\n" + "\n".join(lines) + f"\n```\n\n{found['problem']}, tile {_tile(knobs)}, {knobs['stages']} stages, "
        f"cluster {knobs['cluster_m']}x{knobs['cluster_n']}; "
        + ", ".join(f"{tool} {version}" for tool, version in found["tools"].items())
        + ".\n"
    )


def _or_not_measured(make: Callable[[], str]) -> str:
    try:
        return make()
    except FileNotFoundError:
        return NOT_MEASURED


REGIONS: dict[str, Callable[[], str]] = {
    f"hopper {name}": partial(_or_not_measured, make)
    for name, make in {
        "ablation": ablation_table,
        "stages": stages_table,
        "beside": beside_table,
        "numbers": numbers_table,
        "summary": summary_table,
        "sanitizer": sanitizer_table,
        "listing": listing,
        "few rows": few_rows_table,
        "clusters": clusters_table,
    }.items()
}
for _types in TYPES:
    REGIONS[f"hopper sizes {_types}"] = partial(_or_not_measured, partial(sizes_table, _types, True))
    REGIONS[f"hopper shapes {_types}"] = partial(_or_not_measured, partial(sizes_table, _types, False))


def plot_ablation() -> None:
    """The climb as bars, in bursts and sustained, with cuBLAS as lines."""
    import matplotlib.pyplot as plt

    ablation, measured = _ablation()
    bars = ablation["bars"]
    figure, axes = plt.subplots(figsize=(9, 4.5))
    for index, (mode, color) in enumerate(zip(MODES, ("tab:blue", "tab:orange"))):
        places = [number + (index - 0.5) * 0.4 for number in range(len(bars))]
        axes.barh(places, [median(measured, bar["name"], mode) for bar in bars], 0.4, color=color, label=mode)
        axes.axvline(
            median(measured, "cublas", mode), color=color, linestyle="--", linewidth=1, label=f"cuBLAS, {mode}"
        )
    axes.set_yticks(range(len(bars)), [bar["title"] for bar in bars], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("TFLOP/s")
    axes.set_title(f"{ablation['size']}^3, f16 x f16 -> f32 ({measured['card']['name']})", fontsize=10)
    axes.legend(fontsize=8, loc="lower left")
    save(figure, PLOTS / "hopper_ablation.svg")


def plot_sizes(types: str) -> None:
    """The ratio to cuBLAS over sizes, with its spread, in bursts and sustained."""
    import matplotlib.pyplot as plt

    header, problems = _sizes(types)
    squares = [item for item in problems if _is_square(item) and item["modes"]]
    figure, axes = plt.subplots(figsize=(8, 3.5))
    for mode, marker in zip(MODES, "o^"):
        spreads = [item["modes"][mode]["kernels"]["wgmma"]["ratio_spread"] for item in squares]
        middle = [spread["median"] for spread in spreads]
        errors = [
            [spread["median"] - spread["quartile_1"] for spread in spreads],
            [spread["quartile_3"] - spread["median"] for spread in spreads],
        ]
        axes.errorbar(
            [math.log2(item["problem"]["m"]) for item in squares], middle, errors, marker=marker, capsize=3, label=mode
        )
    axes.axhline(1.0, color="black", linewidth=1)
    sizes = [item["problem"]["m"] for item in squares]
    axes.set_xticks([math.log2(size) for size in sizes], map(str, sizes), rotation=60, fontsize=8)
    axes.set_xlabel("M = N = K")
    axes.set_ylabel("of cuBLAS")
    axes.set_title(f"{types.replace('-', ' -> ')} ({header['card']['name']})", fontsize=10)
    axes.legend(fontsize=8)
    save(figure, PLOTS / f"hopper_sizes_{types}.svg")


def plot_stages() -> None:
    """The ratio to cuBLAS over the number of stages, a line for each k."""
    import matplotlib.pyplot as plt

    stages = result("hopper_stages")
    figure, both = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for axes, kind, title in zip(both, ("multistage", "specialized"), ("wgmma_multistage", "wgmma")):
        for measured in stages["problems"]:
            known = [count for count in stages["stages"] if f"{kind}-{count}" in measured["modes"]["burst"]["kernels"]]
            axes.plot(
                known,
                [_value(measured, "burst", f"{kind}-{count}") for count in known],
                marker=".",
                label=f"k = {measured['problem']['k']}",
            )
        axes.axhline(1.0, color="black", linewidth=1)
        axes.set_xlabel("stages")
        axes.set_title(title, fontsize=10)
    both[0].set_ylabel("of cuBLAS")
    both[1].legend(fontsize=8)
    save(figure, PLOTS / "hopper_stages.svg")


def plot() -> None:
    """Draws what there are results for."""
    for draw in (plot_ablation, plot_stages, *(partial(plot_sizes, types) for types in TYPES)):
        try:
            draw()
        except FileNotFoundError:
            continue
