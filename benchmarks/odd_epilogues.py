"""Measures the epilogues of products whose rows of C are no multiple of 16 bytes, tile by tile, beside cuBLAS.

Where MLIR is:

    python benchmarks/odd_epilogues.py build FOLDER

Where a GPU is, with PyTorch or nvmath-python (no MLIR):

    python benchmarks/odd_epilogues.py measure FOLDER RESULT.json

`build` compiles each problem of `PROBLEMS` with each of its tiles, once for each of `EPILOGUES`. `measure` checks every
kernel for an exact product, and times those that pass in turn with cuBLAS on the same operands. The times include the
copies of operands. `fit_cost_model.py` reads the result.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import duel
from common import main_of_parts, new_parser, run
from halves import add_halves
from stepladder.measure.timing import Mode
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.files import write_json
from stepladder.runtime.targets import find

Size = tuple[int, int, int]
COOPERATIVE, PINGPONG = "cooperative", "pingpong"
# block_m, block_n, consumer_warpgroups, schedule, cluster_m, cluster_n, by m, n, k.
PROBLEMS: dict[Size, tuple[tuple[int, int, int, str, int, int], ...]] = {
    (4096, 4095, 4096): (
        (128, 128, 1, PINGPONG, 2, 1),
        (128, 192, 1, PINGPONG, 2, 1),
        (128, 256, 2, COOPERATIVE, 1, 1),
        (256, 128, 2, COOPERATIVE, 1, 1),
    ),
    (8191, 8191, 8191): (
        (128, 256, 2, COOPERATIVE, 2, 1),
        (128, 192, 1, PINGPONG, 2, 1),
        (256, 192, 2, COOPERATIVE, 1, 2),
    ),
    (2047, 2047, 2047): (
        (128, 256, 2, COOPERATIVE, 1, 1),
        (128, 128, 1, PINGPONG, 1, 1),
        (256, 128, 2, COOPERATIVE, 1, 1),
    ),
    (1023, 1023, 1023): ((128, 64, 1, COOPERATIVE, 1, 1), (64, 128, 1, COOPERATIVE, 1, 1)),
    (6789, 6789, 6789): ((256, 160, 2, COOPERATIVE, 1, 2), (128, 256, 2, COOPERATIVE, 2, 1)),
    (4096, 50257, 768): (
        (128, 176, 1, PINGPONG, 2, 1),
        (128, 128, 1, PINGPONG, 2, 1),
        (128, 256, 2, COOPERATIVE, 2, 1),
    ),
    (16383, 1023, 2047): ((128, 128, 1, PINGPONG, 2, 1), (128, 256, 2, COOPERATIVE, 2, 1)),
    (4096, 4097, 11009): (
        (256, 176, 2, COOPERATIVE, 1, 2),
        (128, 192, 1, PINGPONG, 2, 1),
        (128, 256, 2, COOPERATIVE, 2, 1),
    ),
}
# The epilogue, and with `rows` the 128 bytes of a row that its buffer holds at a time.
EPILOGUES = (("registers", 2), ("rows", 1), ("rows", 2), ("rows", 4))
ROUNDS = 3
BURST = Mode(seconds=0.02, pause_seconds=0.03)
BLOCK_K, ELEMENT_BYTES = 64, 2
# Rows of a warpgroup's buffer, and elements that each is padded by.
ROWS, PADDING = 64, 8
# Elements that the rows of B's tile are loaded in multiples of.
BOX = 32


def settings(size: Size) -> Iterator[tuple[str, dict[str, int | str]]]:
    """Yields the name and the knobs of each kernel of a problem, with as many stages as fit.

    Args:
        size: m, n, k.
    """
    for block_m, block_n, warpgroups, schedule, cluster_m, cluster_n in PROBLEMS[size]:
        for epilogue, lines in EPILOGUES:
            columns = min(block_n, lines * ROWS)
            if epilogue == "rows" and columns == block_n and (lines - 1) * ROWS >= block_n and lines > 1:
                continue  # the buffer holds whole rows of the tile with fewer lines
            consumers = 2 if schedule == PINGPONG else warpgroups
            buffers = consumers * ROWS * (columns + PADDING) * ELEMENT_BYTES if epilogue == "rows" else 0
            room = find("sm_90a").shared_memory - 1024 - buffers
            loaded = -(-block_n // BOX) * BOX
            name = f"{block_m}x{block_n}-{schedule}-{cluster_m}x{cluster_n}-{epilogue}-{lines}"
            yield (
                name,
                {
                    "block_m": block_m,
                    "block_n": block_n,
                    "consumer_warpgroups": warpgroups,
                    "schedule": schedule,
                    "cluster_m": cluster_m,
                    "cluster_n": cluster_n,
                    "block_k": BLOCK_K,
                    "stages": min(8, room // ((block_m + loaded) * BLOCK_K * ELEMENT_BYTES)),
                    "persistent_blocks": 132,
                    "raster_group": 8,
                    "epilogue": epilogue,
                    "epilogue_stages": lines,
                    "dependent_launch": True,
                    "tile_scheduler": "data_parallel",
                    "target": "sm_90a",
                },
            )


def _folder(folder: Path, size: Size) -> Path:
    return folder / "x".join(map(str, size))


def build(args: argparse.Namespace) -> None:
    """Writes the bundles that do not exist yet.

    Args:
        args: of the command line.
    """
    from stepladder.payload.writing import matmul_text
    from stepladder.pipeline.build import build as compile_payload
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    for size in PROBLEMS:
        m, n, k = size
        text = matmul_text(m, n, k, a_type="bf16", b_type="bf16", c_type="bf16", accumulate=False)
        for name, knobs in settings(size):
            path = _folder(args.folder, size) / f"{name}.bundle"
            if path.is_dir():
                continue
            with mlir_context():
                compile_payload(text, "matmul.mlir", Request("wgmma", knobs)).write(path)
            print(path, flush=True)


def measure(args: argparse.Namespace) -> None:
    """Checks and times all kernels, and writes the result after each problem.

    Args:
        args: of the command line.
    """
    began = time.monotonic()
    with Device() as device:
        result: dict[str, Any] = {**duel.header(device), "types": "bf16-bf16", "rounds": args.rounds, "results": []}
        for size in PROBLEMS:
            folder = _folder(args.folder, size)
            bundles = {path.stem: read_bundle(path) for path in sorted(folder.glob("*.bundle"))}
            measured = duel.measure(device, bundles, {"burst": (BURST, args.rounds, 0)})
            result["results"].append(measured)
            result["seconds"] = round(time.monotonic() - began, 1)
            write_json(args.result, result)
            print(folder.name, duel.line(measured, len(bundles)), flush=True)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parts = parser.add_subparsers(required=True, metavar="PART")
    add_halves(parts, build, measure, ROUNDS)
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
