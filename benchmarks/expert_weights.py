"""Times products of one matrix and the weights of experts (`td,edf->tef`), as a batch of matmuls and as one matmul.

The batch reads the weights where they are. One matmul has the columns of all experts side by side: its kernel loads
tiles within an expert from where they are, or a preceding kernel copies the weights. The result gives the threshold of
`payload/front/dimensions.py`.

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/expert_weights.py build FOLDER
    python benchmarks/expert_weights.py measure FOLDER docs/results/expert_weights.json
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import drawn_forms
from common import main_of_parts, run, write_result
from duel import header
from forms import Form
from halves import parser_of_parts
from stepladder.runtime.device import Device
from stepladder.runtime.processes import end_with_pool

SPEC = "td,edf->tef"
# Rows and columns of the matrices: what makes every product a batch, and what makes it one matmul.
BOUNDS = {"batch": 0, "one matmul": 1 << 40}
_ROWS, _COLUMNS = (16, 128, 512, 1024, 2048), (16, 32, 64, 96, 128, 256)
_WEIGHTS = ((64, 1024), (8, 4096))


def forms() -> Iterator[Form]:
    """Yields the products: experts and k, columns of each, and rows."""
    for (experts, depth), columns, rows in itertools.product(_WEIGHTS, _COLUMNS, _ROWS):
        yield Form("contraction", SPEC, {"t": rows, "e": experts, "d": depth, "f": columns})


def _path(folder: Path, number: int, name: str) -> Path:
    return folder / f"{number}-{name.replace(' ', '-')}"


def _build(folder: Path, number: int, form: Form, name: str) -> str:
    """Builds a product in one of the two ways; returns why it cannot be built, or an empty text."""
    from stepladder.payload.front import dimensions

    dimensions.LEAST_OF_FEW_ROWS = dimensions.LEAST_EXTENT = BOUNDS[name]
    return drawn_forms.build_form(form, _path(folder, number, name), pipeline="auto")


def build(args: argparse.Namespace) -> None:
    """Builds the kernels.

    Args:
        args: of the command line.
    """
    args.folder.mkdir(parents=True, exist_ok=True)
    jobs = [(args.folder, number, form, name) for number, form in enumerate(forms()) for name in BOUNDS]
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        for (_, _, form, name), refusal in zip(jobs, executor.map(_build, *zip(*jobs))):
            if refusal:
                print(f"{form.name}, {name}: {refusal}")


def time_all(args: argparse.Namespace) -> None:
    """Times the kernels, and writes the result.

    Args:
        args: of the command line.
    """
    with Device() as device:
        result = header(device) | {"rounds": args.rounds, "problems": []}
        for number, form in enumerate(forms()):
            paths = {name: _path(args.folder, number, name) for name in BOUNDS}
            found = {name: path for name, path in paths.items() if path.is_dir()}
            entry, ratios = drawn_forms.measure(device, form, found, args.rounds, drawn_forms.BURST)
            times = {name: drawn_forms.microseconds_of(form, entry, ratio) for name, ratio in ratios.items()}
            result["problems"].append({"sizes": form.sizes, "microseconds": times, "of_library": ratios})
            write_result(args.result, result)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return parser_of_parts(__doc__, build, time_all)[0]


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
