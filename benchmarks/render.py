"""Makes every table and plot of the documents from what was measured (docs/results) and from the scripts (transforms).

    python benchmarks/render.py            rewrites the generated regions of README.md and docs/*.md, and the plots
    python benchmarks/render.py --check    exit status 1 where a region is not what the files give; no plots

A generated region stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import render_hopper
from pieces import (
    DOCS,
    ROOT,
    median,
    new_parser,
    ratio,
    result,
    run,
    save,
    table,
    where,
    wrapped,
)

sys.path.insert(0, str(ROOT / "runner"))

from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.definition import Step

DOCUMENTS = (ROOT / "README.md", DOCS / "wmma.md", DOCS / "mma_sync.md", DOCS / "hopper.md", DOCS / "emulator.md")
ABLATIONS = ("wmma", "wmma_asynchronous", "mma_sync")
PIPELINES = ("wmma", "mma_sync")
# Pipelines in the order of the documents: a step is described where it comes first.
CHAPTERS = {
    "wmma": "wmma.md",
    "mma_sync": "mma_sync.md",
    "wgmma_single_stage": "hopper.md",
    "wgmma_multistage": "hopper.md",
    "wgmma": "hopper.md",
}

_REGION = re.compile(r"(<!-- begin ([\w -]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
_INCLUDE = re.compile(r"transform\.include @(\w+)")


def _variants(climb: str, tile: str) -> list[tuple[dict, float, float]]:
    """Returns (variant, burst TFLOP/s, sustained TFLOP/s) for a tile of a climb."""
    ablation = result(f"{climb}_ablation")
    measured = ablation["tiles"][tile]
    return [
        (variant, median(measured, str(number)), median(measured, str(number), "sustained"))
        for number, variant in enumerate(ablation["bars"])
    ]


def ablation_table(climb: str) -> str:
    """A climb, every tile of it, beside cuBLAS and the ceiling."""
    ablation = result(f"{climb}_ablation")
    parts = []
    for tile, measured in ablation["tiles"].items():
        rows, previous = [], None
        for number, (variant, burst, sustained) in enumerate(_variants(climb, tile)):
            name = str(number)
            rows.append(
                {
                    "kernel": variant["title"],
                    "TFLOP/s, burst": f"{burst:.1f}",
                    "sustained": f"{sustained:.1f}",
                    "gain": f"x {burst / previous:.2f}" if previous else "",
                    "of the ceiling": ratio(measured, name, "ceiling"),
                    "of cuBLAS": ratio(measured, name, "cublas"),
                }
            )
            previous = burst
        for name, title in (("cublas", "cuBLAS"), ("ceiling", "ceiling of `mma.sync`")):
            rows.append(
                {
                    "kernel": title,
                    "TFLOP/s, burst": f"{median(measured, name):.1f}",
                    "sustained": f"{median(measured, name, 'sustained'):.1f}",
                    "gain": "",
                    "of the ceiling": ratio(measured, name, "ceiling") if name == "cublas" else "",
                    "of cuBLAS": ratio(measured, name, "cublas") if name == "ceiling" else "",
                }
            )
        parts.append(
            f"Tile {tile}, {ablation['size']}^3, f16 x f16 -> f32, C = AB + C. {where(measured)}.\n\n" + table(rows)
        )
    return "\n".join(parts)


def climb_table() -> str:
    """The climb in short, for the README: from the first variant of `wmma` to the last of `wgmma`."""
    tile = max(result("wmma_ablation")["tiles"], key=lambda name: _variants("wmma", name)[-1][1])
    last = next(iter(result("mma_sync_ablation")["tiles"]))
    variants = [("wmma", variant, burst) for variant, burst, _ in _variants("wmma", tile)]
    variants += [("mma_sync", variant, burst) for variant, burst, _ in _variants("mma_sync", last)]
    variants += render_hopper.climb_variants()
    top = max(burst for _, _, burst in variants)
    rows = [
        {
            "pipeline": pipeline,
            "kernel": variant["title"],
            "TFLOP/s": f"{burst:.0f}",
            "": "█" * max(1, round(30 * burst / top)),
        }
        for pipeline, variant, burst in variants
    ]
    measured = result("mma_sync_ablation")["tiles"][last]
    return (
        table(rows) + f"\n{result('wmma_ablation')['size']}^3, f16 x f16 -> f32, bursts; `wmma` and `mma_sync`: "
        f"C = AB + C, tiles {tile} and {last}, where the card's own ceiling of `mma.sync` is "
        f"{median(measured, 'ceiling'):.0f} and cuBLAS (it uses `wgmma`) is at {median(measured, 'cublas'):.0f}; "
        f"from `wgmma_single_stage` on: C = AB, where cuBLAS is at {render_hopper.climb_cublas():.0f}. "
        f"{where(measured)}.\n"
    )


def sizes_table(pipeline: str, acc: str) -> str:
    """Speed over sizes, the best tile of each."""
    rows = []
    sizes = result(f"{pipeline}_sizes_{acc}")["sizes"]
    for size, measured in sizes.items():
        best = measured["best"]
        knobs = measured["bundles"][best]["knobs"]
        right = all(check["passed"] for check in measured["checks_of_best"])
        seeds = len({check["seed"] for check in measured["checks_of_best"]})
        rows.append(
            {
                "size": size,
                "block tile": "x".join(str(knobs[f"block_{axis}"]) for axis in "mnk"),
                "warp tile": f"{knobs['warp_m']}x{knobs['warp_n']}",
                "stages": str(knobs["stages"]),
                **({"prefetch": knobs["prefetch"]} if "prefetch" in knobs else {}),
                "TFLOP/s": f"{median(measured, best):.1f}",
                "cuBLAS": f"{median(measured, 'cublas'):.1f}",
                "of cuBLAS": ratio(measured, best, "cublas"),
                "of the ceiling": ratio(measured, best, "ceiling"),
                "numbers": f"right, {seeds} seeds" if right else "WRONG",
            }
        )
    first = next(iter(sizes.values()))
    return f"f16 x f16 -> {acc}, {acc} sums, C = AB + C, bursts. {where(first)}.\n\n" + table(rows)


def _head(step: str) -> tuple[Path, list[str]]:
    for path in (ROOT / "transforms" / "steps" / f"{step}.mlir", ROOT / "transforms" / "steps" / "tc" / f"{step}.mlir"):
        if path.is_file():
            lines = path.read_text().splitlines()
            return path, [line[3:] for line in lines[: next(i for i, line in enumerate(lines) if not line)]]
    raise FileNotFoundError(step)


def _gains() -> dict[str, str]:
    """Step -> what it gains in the climbs, for steps that are alone between two variants."""
    found: dict[str, str] = {}
    for climb in ABLATIONS:
        ablation = result(f"{climb}_ablation")
        bars = ablation["bars"]
        for tile in ablation["tiles"]:
            variants = _variants(climb, tile)
            for number in range(1, len(bars)):
                added = set(bars[number - 1]["without"]) - set(bars[number]["without"])
                if len(added) == 1:
                    gain = f"x {variants[number][1] / variants[number - 1][1]:.2f} ({climb}, {tile})"
                    step = added.pop()
                    found[step] = f"{found[step]}, {gain}" if step in found else gain
    for step, gain in render_hopper.gains().items():
        found[step] = f"{found[step]}, {gain}" if step in found else gain
    return found


def _steps_of(pipeline: str) -> list[str]:
    return _INCLUDE.findall((ROOT / "transforms" / f"{pipeline}.mlir").read_text())


def _loaded(pipeline: str) -> list[Step]:
    """The steps of a pipeline as the runner reads them."""
    with mlir_context():
        return library.load(pipeline).steps


def steps_text(pipeline: str, *earlier: str) -> str:
    """Every step of a pipeline, from the head comment of its script, with its gain; shared steps stand once.

    Steps of `earlier` pipelines of the same document that the pipeline has not stand where they first come there.
    """
    gains = _gains()
    chapters = list(CHAPTERS)
    first = {step: other for other in reversed(chapters[: chapters.index(pipeline)]) for step in _steps_of(other)}
    known = {step: other for step, other in first.items() if CHAPTERS[other] != CHAPTERS[pipeline]}
    described = {step.name: step for chapter in (*earlier, pipeline) for step in _loaded(chapter)}
    steps, alone = _steps_of(pipeline), {}
    for other in earlier:
        others = _steps_of(other)
        for step in others:
            if step not in steps:
                steps.insert(steps.index(others[others.index(step) - 1]) + 1, step)
                alone[step] = other
    parts = []
    for number, name in enumerate(steps, start=1):
        path, head = _head(name)
        if name in known:
            other = known[name]
            parts.append(
                f"### {number}. {name}\n\nAs in [{other}]({CHAPTERS[other]}#the-steps)"
                + (f"; gain {gains[name]}" if name in gains else "")
                + ".\n"
            )
            continue
        step = described[name]
        kind = "optimization" if step.optimization else "lowering"
        ops = ", ".join(f"`{dialect}`" for dialect in step.dialects) or "upstream ops"
        lines, code = [], False
        for line in head:
            if line.startswith("  ") and not code:
                lines.append("```mlir")
                code = True
            elif code and not line.startswith("  "):
                lines.append("```")
                code = False
            lines.append(line[2:] if code else line)
        lines += ["```"] if code else []
        gain = f"; gain {gains[name]}" if name in gains else ""
        relative = path.relative_to(ROOT).as_posix()
        only = f"; in {alone[name]} only" if name in alone else ""
        parts.append(
            f"### {number}. {name}\n\n[{path.name}](../{relative}): {kind}, {ops}{only}{gain}.\n\n"
            + "\n".join(lines)
            + "\n"
        )
    return "\n".join(parts)


def types_table() -> str:
    """Every type and layout of mma_sync at one size, and whether all checks passed."""
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
                    "numbers": f"right, {seeds} seeds" if right else "WRONG",
                }
            )
    problem = measured["problem"]
    return table(rows) + f"\n{problem['m']}^3, C = AB + C, bursts. {where(measured)}.\n"


def product_table() -> str:
    """C = AB, which does not read C, at one size."""
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
    """What the profiler counts in one launch of some variants."""
    counters = result("counters")
    rows = []
    for entry in counters["kernels"]:
        ablation = result(f"{entry['climb']}_ablation")
        rows.append(
            {"climb": entry["climb"], "kernel": ablation["bars"][entry["variant"]]["title"]}
            | {title: entry["metrics"][title] for title in counters["columns"]}
        )
    card = counters["card"]
    if isinstance(card, dict):
        card = f"{card['name']}, driver {card['driver_version']}"
    return table(rows) + f"\n{card}, {counters['date'][:10]}, `{counters['tool']}`.\n"


def emulator_table(climb: str) -> str:
    """What the emulator counts on each variant of a climb."""
    counted = result("emulator")
    rows = []
    for variant in counted["climbs"][climb]:
        shared = variant["shared"]
        rows.append(
            {
                "kernel": variant["title"],
                "global MB": f"{variant['global']['bytes'] / 1e6:.2f}",
                "shared MB": f"{shared['bytes'] / 1e6:.2f}",
                "wavefronts": str(shared["wavefronts"]),
                "bank conflicts": str(shared["conflicts"]),
                "barriers": str(sum(variant["barriers"].values())),
                "products": str(sum(variant["instructions"].values())),
            }
        )
    size = " x ".join(map(str, counted["size"]))
    return f"{size}, f16 x f16 -> f32, `{climb}`, counted by warps.\n\n" + table(rows)


def emulator_beside_profiler() -> str:
    """Bank conflicts as the emulator counts them, scaled up, beside those of the card's own counter."""
    counted, profiled = result("emulator"), result("counters")
    column = "of them from loads of fragments"
    rows = []
    for climb, found in counted["profiled"].items():
        titles = list(found["conflicts_of_loads"])
        for kernel in profiled["kernels"]:
            if kernel["climb"] != climb or kernel["tile"] != found["tile"]:
                continue
            title = titles[kernel["variant"]]
            rows.append(
                {
                    "climb": climb,
                    "kernel": title,
                    "emulator": f"{found['conflicts_of_loads'][title]:,}",
                    "ncu, H200": kernel["metrics"][column],
                }
            )
    return f"{counted['profiled_size']}^3; the emulator ran a part of it with the same tiles.\n\n" + table(rows)


def emulator_seconds() -> str:
    """How long the emulator takes for each step of a pipeline."""
    counted = result("emulator")
    rows = [
        {
            "pipeline": name,
            "steps": str(len(steps)),
            "slowest step": max(steps, key=steps.get),
            "its seconds": f"{max(steps.values()):.2f}",
            "all steps, seconds": f"{sum(steps.values()):.1f}",
        }
        for name, steps in counted["seconds"].items()
    ]
    size = " x ".join(map(str, counted["size"]))
    return f"{size}, with the sanitizer, {counted['cores']} cores, {counted['date'][:10]}.\n\n" + table(rows)


REGIONS: dict[str, Callable[[], str]] = {
    "climb": climb_table,
    "counters": counters_table,
    "types": types_table,
    "product": product_table,
}
REGIONS |= {f"emulator {climb}": partial(emulator_table, climb) for climb in PIPELINES}
REGIONS |= {"emulator seconds": emulator_seconds, "emulator profiler": emulator_beside_profiler}
REGIONS |= {f"ablation {climb}": partial(ablation_table, climb) for climb in ABLATIONS}
REGIONS |= {
    f"sizes {pipeline} {acc}": partial(sizes_table, pipeline, acc) for pipeline in PIPELINES for acc in ("f32", "f16")
}
REGIONS |= {f"steps {pipeline}": partial(steps_text, pipeline) for pipeline in PIPELINES}
REGIONS |= {"steps wgmma": partial(steps_text, "wgmma", "wgmma_multistage")} | render_hopper.REGIONS


def rendered(text: str) -> str:
    """Returns a document with its generated regions made anew."""
    return _REGION.sub(lambda match: match[1] + wrapped(REGIONS[match[2]]()) + match[3], text)


def plot_ablation(climb: str, path: Path) -> None:
    """A climb as bars, one group a variant."""
    import matplotlib.pyplot as plt

    ablation = result(f"{climb}_ablation")
    figure, axes = plt.subplots(figsize=(9, 4))
    tiles = list(ablation["tiles"])
    width = 0.8 / len(tiles)
    for index, tile in enumerate(tiles):
        heights = [burst for _, burst, _ in _variants(climb, tile)]
        places = [number + (index - (len(tiles) - 1) / 2) * width for number in range(len(heights))]
        axes.bar(places, heights, width, label=f"tile {tile}")
    measured = ablation["tiles"][tiles[-1]]
    axes.axhline(median(measured, "ceiling"), color="black", linewidth=1, linestyle="--", label="ceiling of mma.sync")
    axes.set_xticks(
        range(len(ablation["bars"])),
        [variant["title"].replace(" ", "\n", 2) for variant in ablation["bars"]],
        fontsize=7,
    )
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"{climb} at {ablation['size']}^3, f16 x f16 -> f32 ({measured['card']['name']})", fontsize=10)
    axes.legend(fontsize=8, loc="upper left")
    save(figure, path)


def plot_sizes(path: Path) -> None:
    """Speed over sizes, both pipelines, both accumulations."""
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axes, acc in zip(both, ("f32", "f16")):
        for pipeline in PIPELINES:
            sizes = result(f"{pipeline}_sizes_{acc}")["sizes"]
            speeds = [median(measured, measured["best"]) for measured in sizes.values()]
            axes.plot([int(size) for size in sizes], speeds, marker=".", label=f"{pipeline}, best tile")
        for kernel, style in (("cublas", "-"), ("ceiling", "--")):
            label = "cuBLAS" if kernel == "cublas" else "ceiling of mma.sync"
            axes.plot(
                [int(size) for size in sizes],
                [median(measured, kernel) for measured in sizes.values()],
                marker=".",
                linestyle=style,
                label=label,
            )
        axes.set_xlabel("M = N = K")
        axes.set_title(f"{acc} sums", fontsize=10)
    both[0].set_ylabel("TFLOP/s")
    both[0].legend(fontsize=8)
    save(figure, path)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, and say which documents are stale")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrites or checks the documents; returns the exit status."""
    args = make_parser().parse_args(argv)
    if not args.check and importlib.util.find_spec("matplotlib") is None:
        print("the plots need matplotlib: pip install '.[docs]'; --check does without", file=sys.stderr)
        return 2
    stale = []
    for path in DOCUMENTS:
        old = path.read_text()
        new = rendered(old)
        if new != old:
            stale.append(str(path.relative_to(ROOT)))
            if not args.check:
                path.write_text(new)
    if args.check:
        for name in stale:
            print(f"{name} is not what docs/results and transforms give: run benchmarks/render.py", file=sys.stderr)
        return 1 if stale else 0
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "stepladder"
    for climb in ABLATIONS:
        plot_ablation(climb, DOCS / "plots" / f"{climb}_ablation.svg")
    plot_sizes(DOCS / "plots" / "sizes.svg")
    render_hopper.plot()
    return 0


if __name__ == "__main__":
    run(main)
