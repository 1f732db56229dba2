"""The tables of the page about the H100, from `docs/results/h100`."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean

from common import result, table, where
from fit_data import fitted_sizes
from render_choice import choices_table, decode_table
from render_fit import fit_table
from render_fusion import drawn_forms_table
from render_hopper_checks import clusters_table
from render_warp import f32_ratios

FOLDER = "h100/"
# Two choices for the problems of one sample, in one process, and the present choice for another one.
_CHOICES = {
    f"{FOLDER}choices_for_h200_bf16-bf16": "knobs for the H200",
    f"{FOLDER}choices_by_data_sheet_bf16-bf16": "for the H100, by data sheet",
}
_HELD_OUT = {f"{FOLDER}held_out_bf16-bf16": "bf16 -> bf16"}


def _fused_ratios(name: str) -> dict[str, float]:
    """Returns the speed of each fused epilogue, relative to cuBLAS' matmul without it."""
    return {
        f"{problem['case']} {problem['size']}": problem["measured"]["kernels"]["fused"]["ratio_spread"]["median"]
        for problem in result(name)["problems"]
    }


def _figures_ratios(name: str) -> dict[str, float]:
    """Returns the speed of each matmul and contraction of `figures.py`, relative to the library call."""
    return {f"{entry['spec']} {entry['sizes']}": entry["ratio"] for entry in result(name)["problems"]}


def _odd_ratios(name: str) -> dict[str, float]:
    """Returns the speed of each product with odd row pitches, relative to cuBLAS."""
    fields = ("m", "n", "k", "a_layout", "b_layout")
    return {
        " ".join(str(entry[field]) for field in fields): entry["odd"]["of_cublas"]["median"]
        for entry in result(name)["problems"]
    }


def _f32_ratios(name: str) -> dict[str, float]:
    """Returns the speed of each product of f32 on `wgmma`, relative to cuBLAS in f32."""
    return {str(problem["size"]): f32_ratios(problem)["wgmma"] for problem in result(name)["problems"]}


# What both GPUs measured: name of the result -> what the table calls it, and how its ratios are read.
_BOTH: dict[str, tuple[str, Callable[[str], dict[str, float]]]] = {
    "fused_epilogues": ("[fused epilogues](fusion.md#measured), to cuBLAS' matmul without them", _fused_ratios),
    "figures": ("[BERT's matmuls and contractions](fusion.md#bert-and-contractions)", _figures_ratios),
    "odd_pitches": ("[odd row pitches](hopper_measurements.md#odd-row-pitches)", _odd_ratios),
    "f32_products": ("[squares of f32](mma_sync.md)", _f32_ratios),
    "f32_thin": ("[f32, few rows](cost_model_fits.md#products-of-f32-with-few-rows)", _f32_ratios),
    "f32_batches": ("[batches of f32](cost_model_fits.md#batches-of-f32)", _f32_ratios),
}


def both_table() -> str:
    """Returns the speed of the same problems on both GPUs, as ratios to the libraries."""
    rows = []
    for name, (title, ratios_of) in _BOTH.items():
        h100, h200 = ratios_of(FOLDER + name), ratios_of(name)
        common = sorted(h100.keys() & h200.keys())
        row = {"problems": title, "": str(len(common))}
        for gpu, ratios in (("H100", h100), ("H200", h200)):
            values = [ratios[key] for key in common]
            row |= {gpu: f"{geometric_mean(values):.3f}", f"minimum, {gpu}": f"{min(values):.3f}"}
        rows.append(row)
    return (
        table(rows) + "\nSpeed as a ratio to the library, geometric means over the problems that were measured on both "
        f"GPUs, bursts. {where(result(f'{FOLDER}fused_epilogues'))}.\n"
    )


REGIONS: dict[str, Callable[[], str]] = {
    "h100 both": both_table,
    "h100 choices": lambda: choices_table(_CHOICES),
    "h100 held out": lambda: choices_table(_HELD_OUT, fitted_sizes("h100")),
    "h100 fit": lambda: fit_table("h100"),
    "h100 decode": lambda: decode_table(folder=FOLDER),
    "h100 forms": lambda: drawn_forms_table(f"{FOLDER}drawn_forms"),
    "h100 clusters": lambda: clusters_table(f"{FOLDER}clusters"),
}
