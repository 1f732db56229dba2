"""Measures decode-sized products, of 1 to 64 rows with the weights of public language models, beside cuBLAS.

Where both MLIR and a GPU are, with PyTorch:

    python benchmarks/decode.py measure RESULT.json [--layout column] [--rows 1 8 64] [--limit 540]
    python benchmarks/decode.py measure RESULT.json --settings 24 --rows 1 16 64
    python benchmarks/decode.py measure RESULT.json --sizes 16x9000x4096 9000x16x4104
    python benchmarks/decode.py report RESULT.json ...

Such a product reads every weight once, so that the rate of HBM bounds it. Launches go through copies of the operands of
400 MB together, several times the L2 cache: no launch finds its weights there. For every problem it measures the knobs
that `stepladder compile` takes, the model's first four settings, and its first four with exchanged operands
(`swap_operands`). Launches write C only, so that kernels that load weights early (`early_weights`) start while the
launch before ends; `--written-weights` launches them after its end. `column` is the layout in which most frameworks
store weights: a row of B for each of its outputs. A machine with MLIR can build the kernels (`--build-only --folder
DIR`), and another one with a GPU measure them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from statistics import geometric_mean

from choice_plan import SWAPPED
from common import cells_of, main_of_parts, new_parser, run
from draw import Drawn, named
from model_choice import Series, add_series_options, measure_series
from model_report import DEFAULT, FIRST
from stepladder.pipeline.cost_model import gpu as gpus

ROWS = (1, 2, 4, 8, 16, 32, 64)
# n x k of the linear layers of three public models: query, key and value in one; output of the attention; gate and up
# projection in one; down projection.
MODELS = {
    "Llama 3 8B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "Qwen2.5 14B": ((7168, 5120), (5120, 5120), (27648, 5120), (5120, 13824)),
    "Llama 3 70B": ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)),
}
# Layers of models that no constant of the cost model was fitted to.
OTHERS = {
    "Llama 2 7B": ((12288, 4096), (22016, 4096), (4096, 11008)),
    "Gemma 2 9B": ((8192, 3584), (28672, 3584), (3584, 14336)),
    "Qwen2.5 7B": ((4608, 3584), (37888, 3584), (3584, 18944)),
    "Qwen2.5 32B": ((55296, 5120), (5120, 27648)),
    "GPT-NeoX 20B": ((18432, 6144), (6144, 6144), (24576, 6144), (6144, 24576)),
    "Llama 3.1 405B": ((18432, 16384), (16384, 16384)),
}
ROTATED_BYTES = 400e6
WHAT = "decode-sized products, operands rotated over 400 MB, in turn with cuBLAS, median of 3 rounds"
WRITTEN = ", launches as where the kernel before may write the weights"
ELEMENT_BYTES = 2
CHOICES: dict[str, Sequence[int]] = {
    "default": (DEFAULT,),
    "best of five": range(DEFAULT, FIRST),
    "swapped, first": (SWAPPED,),
    "swapped, best of four": range(SWAPPED, SWAPPED + FIRST),
}


def problems(rows: Sequence[int], others: bool = False) -> list[Drawn]:
    """Returns the products of all layers of all models.

    Args:
        rows: the numbers of rows of A; each layer is there once for each.
        others: those of other models, held out from the fit.
    """
    models = OTHERS if others else MODELS
    return [Drawn(model, m, n, k, others) for model, layers in models.items() for n, k in layers for m in rows]


def measure(args: argparse.Namespace) -> None:
    """Measures what the result lacks.

    Args:
        args: of the command line.
    """
    types = ("bf16", "f32", "bf16", "row", args.layout)
    series = Series(
        Path(args.result),
        named(args.sizes) if args.sizes else problems(args.rows, args.others),
        types,
        what=f"{WHAT}{WRITTEN if args.written_weights else ''}",
        rotated_bytes=ROTATED_BYTES,
        swapped=not args.plain,
        only_default=args.default,
        keeps_early=not args.written_weights,
        early=args.settings,
    )
    measure_series(series, args)


def _rate(cell: dict[str, Any], microseconds: float) -> float:
    """Returns the bytes of A, B and C per microsecond."""
    m, n, k = (cell[name] for name in "mnk")
    return (m * k + k * n + m * n) * ELEMENT_BYTES / microseconds


def report(args: argparse.Namespace) -> None:
    """Prints, for each number of rows, the ratio to cuBLAS and the fraction of the rate of HBM.

    Args:
        args: of the command line.
    """
    for path in args.results:
        data = json.loads(Path(path).read_text())
        cells = cells_of(data)
        sheet = gpus.for_device(data["card"]["name"], data["knobs"]["target"]).gpu.hbm_bytes_per_us
        copied = data["card"].get("copied_gb_per_second", 0.0) * 1e3
        print(
            f"{path}: B {data['problem']['b_layout']}-major, {data['card']['name']}, {data['date'][:10]}; HBM "
            f"{sheet / 1e6:.2f} TB/s by the data sheet, {copied / 1e6:.2f} in a copy"
        )
        for m in sorted({cell["m"] for cell in cells}):
            cells_of_m = [cell for cell in cells if cell["m"] == m]
            for title, places in CHOICES.items():
                best = _best(cells_of_m, places)
                if not best:
                    continue
                ratios = [cell["cublas_microseconds"] / cell["microseconds"] for cell in best]
                rates = [_rate(cell, cell["microseconds"]) / sheet for cell in best]
                library = [_rate(cell, cell["cublas_microseconds"]) / sheet for cell in best]
                print(
                    f"  m = {m:2}, {title:21}: {len(best):2} layers, of cuBLAS {geometric_mean(ratios):.3f}, least "
                    f"{min(ratios):.3f}; of HBM {geometric_mean(rates):.3f}, least {min(rates):.3f}, cuBLAS "
                    f"{geometric_mean(library):.3f}"
                )


def _best(cells: list[dict[str, Any]], places: Sequence[int]) -> list[dict[str, Any]]:
    """Returns the fastest kernel of each problem among some places."""
    best: dict[tuple[int, int, int], dict[str, Any]] = {}
    for cell in cells:
        size = cell["m"], cell["n"], cell["k"]
        if (
            cell["place"] in places
            and cell["microseconds"] < best.get(size, {"microseconds": float("inf")})["microseconds"]
        ):
            best[size] = cell
    return list(best.values())


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="PART")
    measuring = commands.add_parser("measure", help="build and time the chosen kernels, on the GPU")
    measuring.add_argument("result", metavar="RESULT.json", help="file to write, or to continue")
    measuring.add_argument(
        "--layout", choices=("row", "column"), default="row", help="of B, the weights (default: row)"
    )
    measuring.add_argument(
        "--rows", type=int, nargs="+", default=ROWS, metavar="M", help="rows of A (default: 1 to 64)"
    )
    measuring.add_argument("--sizes", nargs="+", metavar="MxNxK", help="these products, in place of layers of models")
    measuring.add_argument(
        "--others", action="store_true", help="layers of other models, which no constant is fitted to"
    )
    measuring.add_argument("--plain", action="store_true", help="measure no settings of exchanged operands")
    measuring.add_argument("--default", action="store_true", help="measure only what `stepladder compile` takes")
    measuring.add_argument(
        "--settings",
        type=int,
        default=0,
        metavar="N",
        help="measure what `stepladder compile` takes, and the model's first N settings that load weights early, of "
        "other tiles, splits of k, or blocks on a multiprocessor",
    )
    measuring.add_argument(
        "--written-weights",
        action="store_true",
        help="launch kernels that load weights early after the end of the kernel before, which may write them",
    )
    add_series_options(measuring)
    measuring.set_defaults(run=measure)
    reporting = commands.add_parser("report", help="print ratios to cuBLAS and fractions of the rate of HBM")
    reporting.add_argument("results", nargs="+", metavar="RESULT.json", help="files that `measure` wrote")
    reporting.set_defaults(run=report)
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
