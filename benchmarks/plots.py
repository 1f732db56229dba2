"""The plots of the documents, from what was measured. Needs matplotlib."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import matplotlib  # pyright: ignore[reportMissingImports]
import matplotlib.pyplot as plt  # pyright: ignore[reportMissingImports]
from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]

from common import DOCS, cells_of, median, result
from fit_cost_model import usable
from fit_data import Data, fitted_sizes
from measured_kernels import RESULTS, kernels_of
from render_choice import held_out_samples, ratios_of
from render_hopper import MODES, TYPES, ablation_of, is_square, ratio_of, sizes_of
from render_warp import ABLATIONS, PIPELINES, measured_variants
from stepladder.pipeline.cost_model import gpu as gpus

PLOTS = DOCS / "plots"
PREDICTED = "model_fresh_bf16-bf16"


def _save(figure: Figure, path: Path) -> None:
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    # Neither a date nor random ids: the same results give the same file.
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def plot_ablation(name: str) -> None:
    """Draws an ablation as bars, with a group for each variant.

    Args:
        name: of the ablation.
    """
    ablation = result(f"{name}_ablation")
    figure, axes = plt.subplots(figsize=(9, 4))
    tiles = list(ablation["tiles"])
    width = 0.8 / len(tiles)
    for index, tile in enumerate(tiles):
        heights = [burst for _, burst, _ in measured_variants(name, tile)]
        positions = [number + (index - (len(tiles) - 1) / 2) * width for number in range(len(heights))]
        axes.bar(positions, heights, width, label=f"tile {tile}")
    measured = ablation["tiles"][tiles[-1]]
    axes.axhline(median(measured, "ceiling"), color="black", linewidth=1, linestyle="--", label="ceiling of mma.sync")
    axes.set_xticks(
        range(len(ablation["variants"])),
        [variant["title"].replace(" ", "\n", 2) for variant in ablation["variants"]],
        fontsize=7,
    )
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"{name} at {ablation['size']}^3, f16 x f16 -> f32 ({measured['card']['name']})", fontsize=10)
    axes.legend(fontsize=8, loc="upper left")
    _save(figure, PLOTS / f"{name}_ablation.svg")


def plot_sizes() -> None:
    """Draws the speed over sizes, of both pipelines and both accumulator types."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axes, acc in zip(panels, ("f32", "f16")):
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
        axes.set_title(f"{acc} accumulator", fontsize=10)
    panels[0].set_ylabel("TFLOP/s")
    panels[0].legend(fontsize=8)
    _save(figure, PLOTS / "sizes.svg")


def plot_hopper_ablation() -> None:
    """Draws the ablation as bars, in bursts and sustained, with cuBLAS as lines."""
    ablation, measured = ablation_of()
    bars = ablation["variants"]
    figure, axes = plt.subplots(figsize=(9, 4.5))
    for index, (mode, color) in enumerate(zip(MODES, ("tab:blue", "tab:orange"))):
        positions = [number + (index - 0.5) * 0.4 for number in range(len(bars))]
        axes.barh(positions, [median(measured, bar["name"], mode) for bar in bars], 0.4, color=color, label=mode)
        axes.axvline(
            median(measured, "cublas", mode), color=color, linestyle="--", linewidth=1, label=f"cuBLAS, {mode}"
        )
    axes.set_yticks(range(len(bars)), [bar["title"] for bar in bars], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("TFLOP/s")
    axes.set_title(f"{ablation['size']}^3, f16 x f16 -> f32 ({measured['card']['name']})", fontsize=10)
    axes.legend(fontsize=8, loc="lower left")
    _save(figure, PLOTS / "hopper_ablation.svg")


def plot_hopper_sizes(types: str) -> None:
    """Draws the ratio to cuBLAS over sizes, with its spread, in bursts and sustained.

    Args:
        types: the name of the types in the results.
    """
    header, problems = sizes_of(types)
    squares = [item for item in problems if is_square(item) and item["modes"]]
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
    _save(figure, PLOTS / f"hopper_sizes_{types}.svg")


def plot_hopper_stages() -> None:
    """Draws the ratio to cuBLAS over the number of stages, with a line for each k."""
    stages = result("hopper_stages")
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for axes, kind, title in zip(panels, ("multistage", "specialized"), ("wgmma_multistage", "wgmma")):
        for measured in stages["problems"]:
            counts = [count for count in stages["stages"] if f"{kind}-{count}" in measured["modes"]["burst"]["kernels"]]
            axes.plot(
                counts,
                [ratio_of(measured, "burst", f"{kind}-{count}") for count in counts],
                marker=".",
                label=f"k = {measured['problem']['k']}",
            )
        axes.axhline(1.0, color="black", linewidth=1)
        axes.set_xlabel("stages")
        axes.set_title(title, fontsize=10)
    panels[0].set_ylabel("of cuBLAS")
    panels[1].legend(fontsize=8)
    _save(figure, PLOTS / "hopper_stages.svg")


def plot_ratios() -> None:
    """Draws how many held-out problems have which ratio to cuBLAS, with a step line for each result."""
    figure, axes = plt.subplots(figsize=(9, 4))
    edges = [0.7 + 0.025 * step for step in range(37)]
    for name, title in held_out_samples().items():
        ratios = ratios_of(cells_of(result(name)), fitted_sizes("h200"))
        ratios = [min(max(ratio, edges[0]), edges[-1]) for ratio in ratios]
        shares = [100 / len(ratios)] * len(ratios)
        axes.hist(ratios, bins=edges, weights=shares, histtype="step", label=f"{title}, {len(ratios)} problems")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlabel("of cuBLAS, default choice; the ends hold what is beyond")
    axes.set_ylabel("percent of the problems")
    axes.legend(fontsize=8)
    _save(figure, PLOTS / "choice_ratios.svg")


def plot_predictions() -> None:
    """Draws the measured times of settings of random problems over those that the constants in the file predict."""
    gpu = gpus.load("h200")
    data = Data(usable(kernels_of(RESULTS / f"{PREDICTED}.json")), gpu)
    figure, axes = plt.subplots(figsize=(6, 5))
    axes.plot(data.predict(gpu), data.measured, ".", markersize=3)
    ends = axes.get_xlim()
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("predicted, us")
    axes.set_ylabel("measured, us")
    axes.set_title(f"{len(data.kernels)} kernels of {data.problems} random problems, bf16 -> bf16", fontsize=10)
    _save(figure, PLOTS / "choice_predictions.svg")


def draw_all() -> None:
    """Draws every plot that has a result."""
    matplotlib.rcParams["svg.hashsalt"] = "stepladder"
    for draw in (
        *(partial(plot_ablation, name) for name in ABLATIONS),
        plot_sizes,
        plot_hopper_ablation,
        plot_hopper_stages,
        *(partial(plot_hopper_sizes, types) for types in TYPES),
        plot_ratios,
        plot_predictions,
    ):
        try:
            draw()
        except FileNotFoundError:
            continue
