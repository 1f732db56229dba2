"""Measures products whose rows are no multiple of 16 bytes beside cuBLAS, and beside their aligned neighbours.

Where MLIR is:

    python benchmarks/odd_pitches.py build FOLDER

Where a GPU is, with PyTorch or nvmath-python (no MLIR):

    python benchmarks/odd_pitches.py measure FOLDER RESULT.json
    python benchmarks/odd_pitches.py report RESULT.json

`build` compiles each problem of `PROBLEMS`, and the one with m, n and k rounded up to multiples of eight, with the
knobs that `stepladder compile` takes. `measure` checks every kernel for an exact product, and times those that pass in
turn with cuBLAS on the same operands. The time of an odd problem includes the copies of its operands.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
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

# m, n, k, and the layouts of A and B.
PROBLEMS = (
    (8191, 8191, 8191, "row", "row"),
    (4095, 4095, 4095, "row", "row"),
    (4096, 4095, 4096, "row", "row"),
    (4096, 4096, 4095, "row", "row"),
    (2047, 2047, 2047, "row", "row"),
    (1023, 1023, 1023, "row", "row"),
    (6789, 6789, 6789, "row", "row"),
    (8192, 8190, 8190, "row", "row"),
    (8192, 8188, 8188, "row", "row"),
    (5001, 3001, 7001, "row", "row"),
    (8191, 8191, 8191, "row", "column"),
    (4095, 4095, 4095, "column", "row"),
    (4095, 4095, 4095, "column", "column"),
    (4096, 4097, 11009, "row", "column"),
    (4096, 50257, 768, "row", "column"),
    (2048, 32003, 4096, "row", "column"),
    (16, 4097, 4097, "row", "column"),
    (333, 1537, 18433, "row", "row"),
    (641, 641, 40961, "row", "row"),
    (16383, 1023, 2047, "row", "row"),
)
ELEMENTS_OF_16_BYTES = 8
ROUNDS = 3
BURST = Mode(seconds=0.03, pause_seconds=0.05)
NAME = "kernel"


def neighbour(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Returns the sizes rounded up, so that all rows are multiples of 16 bytes.

    Args:
        m, n, k: sizes of a problem.
    """
    up = [-(-size // ELEMENTS_OF_16_BYTES) * ELEMENTS_OF_16_BYTES for size in (m, n, k)]
    return up[0], up[1], up[2]


def label(m: int, n: int, k: int, a_layout: str, b_layout: str) -> str:
    """Returns the name of a problem's bundle.

    Args:
        m, n, k: sizes of the problem.
        a_layout, b_layout: "row" or "column".
    """
    return f"{m}x{n}x{k}-{a_layout}-{b_layout}"


def jobs() -> list[tuple[int, int, int, str, str]]:
    """Returns the problems and their neighbours, each once."""
    pairs = [((m, n, k, a, b), (*neighbour(m, n, k), a, b)) for m, n, k, a, b in PROBLEMS]
    return list(dict.fromkeys(job for pair in pairs for job in pair))


def build(args: argparse.Namespace) -> None:
    """Writes the bundles that do not exist yet.

    Args:
        args: of the command line.
    """
    from stepladder.payload.writing import matmul_text
    from stepladder.pipeline.build import build as compile_payload
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    folder = args.folder
    for m, n, k, a_layout, b_layout in jobs():
        path = folder / f"{label(m, n, k, a_layout, b_layout)}.bundle"
        if path.is_dir():
            continue
        types = {"a_type": "bf16", "b_type": "bf16", "c_type": "bf16", "accumulate": False}
        text = matmul_text(m, n, k, a_layout=a_layout, b_layout=b_layout, **types)
        with mlir_context():
            request = Request("wgmma", {"target": "sm_90a"}, tuned=True)
            built = compile_payload(text, "matmul.mlir", request)
            built.write(path)
        print(f"{path.name}: {len(built.manifest.front)} kernels in front", flush=True)


def _time(device: Device, path: Path, rounds: int) -> dict[str, Any]:
    """Returns the check and the times of a bundle, in turn with cuBLAS."""
    measured = duel.measure(device, {NAME: read_bundle(path)}, {"burst": (BURST, rounds, 0)})
    entry: dict[str, Any] = {
        "knobs": measured["kernels"][NAME]["knobs"],
        "baseline": measured["baseline"],
        "front": len(read_bundle(path).manifest.front),
        "wrong": measured["wrong"].get(NAME),
        "failed": measured["failed"].get(NAME),
    }
    if measured["modes"]:
        burst = measured["modes"]["burst"]
        entry["of_cublas"] = burst["kernels"][NAME]["ratio_spread"]
        entry["tflops"] = burst["kernels"][NAME]["tflops_spread"]["median"]
        entry["cublas_tflops"] = burst["baseline"]["tflops_spread"]["median"]
    return entry


def measure(args: argparse.Namespace) -> None:
    """Checks and times all kernels, and writes the result after each.

    Args:
        args: of the command line.
    """
    began = time.monotonic()
    folder = args.folder
    times: dict[str, dict[str, Any]] = {}
    with Device() as device:
        result: dict[str, Any] = {**duel.header(device), "types": "bf16-bf16", "rounds": args.rounds, "problems": []}
        for m, n, k, a_layout, b_layout in PROBLEMS:
            sizes = {"odd": (m, n, k), "aligned": neighbour(m, n, k)}
            entry: dict[str, Any] = {"m": m, "n": n, "k": k, "a_layout": a_layout, "b_layout": b_layout}
            for kind, size in sizes.items():
                name = label(*size, a_layout, b_layout)
                if name not in times:
                    times[name] = _time(device, folder / f"{name}.bundle", args.rounds)
                entry[kind] = times[name]
            if "tflops" in entry["odd"] and "tflops" in entry["aligned"]:
                entry["of_neighbour"] = entry["odd"]["tflops"] / entry["aligned"]["tflops"]
            result["problems"].append(entry)
            result["seconds"] = round(time.monotonic() - began, 1)
            write_json(args.result, result)
            print(_line(entry), flush=True)
    _summary(result)


def _line(entry: dict[str, Any]) -> str:
    """Returns a problem's result as a line."""
    odd = entry["odd"]
    name = f"{label(entry['m'], entry['n'], entry['k'], entry['a_layout'], entry['b_layout']):32}"
    if "tflops" not in odd:
        return f"{name} " + ("WRONG" if odd["wrong"] else f"FAILED: {odd['failed']}")
    neighbour_ = f"{entry['of_neighbour']:.3f}" if "of_neighbour" in entry else "-"
    return (
        f"{name} {odd['tflops']:6.1f} TFLOP/s, cuBLAS {odd['cublas_tflops']:6.1f}: {odd['of_cublas']['median']:6.3f}, "
        f"of the aligned neighbour {neighbour_}"
    )


def _summary(result: dict[str, Any]) -> None:
    """Prints geometric means and what is not right."""
    entries = result["problems"]
    ratios = [entry["odd"]["of_cublas"]["median"] for entry in entries if "of_cublas" in entry["odd"]]
    parts = [entry["of_neighbour"] for entry in entries if "of_neighbour" in entry]
    if ratios and parts:
        for reference, values in (("cuBLAS", ratios), ("the neighbour", parts)):
            mean = statistics.geometric_mean(values)
            print(f"of {reference}: {len(values)} problems, geometric mean {mean:.3f}, least {min(values):.3f}")
        print(f"{result['seconds']:.0f} s")
    not_timed = [_line(entry) for entry in entries if "tflops" not in entry["odd"]]
    if not_timed:
        print("not timed:", *not_timed, sep="\n  ")


def report(args: argparse.Namespace) -> None:
    """Prints a result.

    Args:
        args: of the command line.
    """
    result = json.loads(Path(args.result).read_text())
    for entry in result["problems"]:
        print(_line(entry))
    _summary(result)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parts = parser.add_subparsers(required=True, metavar="PART")
    add_halves(parts, build, measure, ROUNDS)
    reporting = parts.add_parser("report", help="print a result")
    reporting.add_argument("result", metavar="RESULT.json", help="what `measure` wrote")
    reporting.set_defaults(run=report)
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
