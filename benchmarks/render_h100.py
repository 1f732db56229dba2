"""The tables of the page about the H100, from `docs/results/h100`."""

from __future__ import annotations

from collections.abc import Callable

from common import cells_of, result, table, where
from fit_data import fitted_sizes
from render_choice import choices_table, decode_table, odd_pitches_table
from render_fit import fit_table
from render_fusion import drawn_forms_table, figures_table, fused_table
from render_hopper_checks import clusters_table
from render_warp import f32_batches_table, f32_few_rows_table, f32_table

FOLDER = "h100/"
# Two choices for the problems of one sample, in one process, and the present choice for another one.
_CHOICES = {
    f"{FOLDER}choices_for_h200_bf16-bf16": "knobs for the H200",
    f"{FOLDER}choices_by_data_sheet_bf16-bf16": "for the H100, by data sheet",
}
_HELD_OUT = {f"{FOLDER}held_out_bf16-bf16": "bf16 -> bf16"}


def launches_table() -> str:
    """Returns kernels with both triggers of the next launch, and without dependent launch."""
    data = result(f"{FOLDER}launches")
    cells = cells_of(data)
    kernels: dict[tuple[object, ...], dict[str, str]] = {}
    for cell in cells:
        line = {
            "m x n x k": f"{cell['m']} x {cell['n']} x {cell['k']}",
            "tile": f"{cell['block_m']} x {cell['block_n']}" + (", swapped" if cell["swap_operands"] else ""),
            "cluster": f"{cell['cluster_m']} x {cell['cluster_n']}",
            "split-K": str(cell["split_k"]),
        }
        row = kernels.setdefault(tuple(line.values()), line | {"`early`": "", "`exit`": "", "not dependent": ""})
        launch = f"`{cell['launch_trigger']}`" if cell["dependent_launch"] else "not dependent"
        row[launch] = f"{cell['cublas_microseconds'] / cell['microseconds']:.3f}"
    return table(list(kernels.values())) + f"\nRatios to cuBLAS, bf16 -> bf16. {where(data)}.\n"


REGIONS: dict[str, Callable[[], str]] = {
    "h100 choices": lambda: choices_table(_CHOICES),
    "h100 held out": lambda: choices_table(_HELD_OUT, fitted_sizes("h100")),
    "h100 launches": launches_table,
    "h100 fit": lambda: fit_table("h100"),
    "h100 decode": lambda: decode_table(folder=FOLDER),
    "h100 odd pitches": lambda: odd_pitches_table(f"{FOLDER}odd_pitches"),
    "h100 forms": lambda: drawn_forms_table(f"{FOLDER}drawn_forms"),
    "h100 f32 batches": lambda: f32_batches_table(f"{FOLDER}f32_batches"),
    "h100 f32 few rows": lambda: f32_few_rows_table(f"{FOLDER}f32_thin"),
    "h100 figures": lambda: figures_table(f"{FOLDER}figures"),
    "h100 clusters": lambda: clusters_table(f"{FOLDER}clusters"),
    "h100 f32 products": lambda: f32_table(f"{FOLDER}f32_products"),
    "h100 fused": lambda: fused_table(f"{FOLDER}fused_epilogues"),
}
