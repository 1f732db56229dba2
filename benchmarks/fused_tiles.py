"""Measures tiles of fused matmuls beside cuBLAS' matmul alone, on a GPU.

The matmul alone, bias + GELU, bias + ReLU and the addition of a matrix, of `fused_epilogues.py`, each by the default
kernel of the matmul and by tiles and schedules that may hide more of an epilogue. `defaults.py` takes default knobs of
matmuls whose epilogue has an operand from the result. C of all tiles has the same bits: each sum has the same order.

    python benchmarks/fused_tiles.py build FOLDER                kernels, on any machine with MLIR and ptxas
    python benchmarks/fused_tiles.py measure FOLDER RESULT.json  on the GPU, without MLIR
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import duel
from common import run, write_result
from fused_epilogues import CASES, build_bundle, payload
from halves import halves_parser, parse_halves
from stepladder.measure.baselines import cublas
from stepladder.measure.bench import prepare_data
from stepladder.measure.timing import Contestant, Mode
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.runtime.processes import end_with_pool

SIZES = (2048, 4096, 8192)
# Cases of `fused_epilogues.py`, and the matmul alone.
MEASURED = {**{name: CASES[name] for name in ("bias_gelu", "bias_relu", "add", "add_relu")}, "plain": None}
# Length of a run and the pause before it, in seconds.
RUN = Mode(0.02, 0.02)
_COMMON = {"block_k": 64, "persistent_blocks": 132, "epilogue": "tma", "tile_scheduler": "data_parallel", "split_k": 1}
_PINGPONG = {**_COMMON, "schedule": "pingpong", "consumer_warpgroups": 1, "block_m": 128, "epilogue_stages": 2}
_COOPERATIVE = {**_COMMON, "schedule": "cooperative", "consumer_warpgroups": 2, "block_m": 128, "block_n": 256}
_FOUR_BUFFERS = {**_COOPERATIVE, "stages": 3, "epilogue_stages": 4}
_OF_WARPS = {**_FOUR_BUFFERS, "store_threads": 32}
_EVEN = {**_FOUR_BUFFERS, "stagger": 2, "persistent_blocks": 128}
# By name: schedule, tile, stages and buffers of C of a warpgroup, who stores C, and the launch.
TILES: dict[str, dict[str, int | str | bool]] = {
    "cooperative 128x256": {**_COOPERATIVE, "stages": 4, "epilogue_stages": 2},
    "cooperative 128x256, 3 stages, 4 buffers": _FOUR_BUFFERS,
    "+ stored by warps": _OF_WARPS,
    "+ launched by itself": {**_OF_WARPS, "dependent_launch": False},
    "cooperative 128x256, staggered by 3": {**_COOPERATIVE, "stages": 4, "epilogue_stages": 2, "stagger": 3},
    "3 stages, 4 buffers, staggered by 2": {**_FOUR_BUFFERS, "stagger": 2},
    "+ stored by warps, staggered by 2": {**_OF_WARPS, "stagger": 2},
    "+ in 6 stages of 32, staggered by 5": {**_OF_WARPS, "stages": 6, "block_k": 32, "stagger": 5},
    "3 stages, 4 buffers, staggered by 2, 128 blocks": _EVEN,
    "+ launched by themselves": {**_EVEN, "dependent_launch": False},
    "+ in groups of 8": {**_EVEN, "raster_group": 8},
    "+ stored by warps, 128 blocks": {**_EVEN, "store_threads": 32},
    "4 stages, 2 buffers, staggered by 3, 128 blocks": {**_EVEN, "stages": 4, "epilogue_stages": 2, "stagger": 3},
    "pingpong 128x128": {**_PINGPONG, "block_n": 128, "stages": 5},
    "pingpong 128x128, stored by warps": {**_PINGPONG, "block_n": 128, "stages": 5, "store_threads": 32},
    "pingpong 128x192": {**_PINGPONG, "block_n": 192, "stages": 4},
    "pingpong 128x192, stored by warps": {**_PINGPONG, "block_n": 192, "stages": 4, "store_threads": 32},
}
DEFAULT = "of the matmul"
_PLAN = "tiles.json"


def _build(case: str, size: int, knobs: dict[str, int | str], path: Path) -> None:
    build_bundle(payload(MEASURED[case], size), path, knobs)


def build(folder: Path, sizes: Sequence[int], cases: Sequence[str], tiles: Sequence[str]) -> None:
    """Builds the kernels of all cases, on all cores.

    Args:
        folder: of the bundles.
        sizes: extents, M = N = K.
        cases: names of epilogues, of `MEASURED`.
        tiles: of `TILES`; the knobs of the matmul alone are always there.
    """
    plan = []
    with ProcessPoolExecutor(os.cpu_count(), initializer=end_with_pool) as executor:
        jobs = []
        for size in sizes:
            plain = build_bundle(payload(None, size), folder / f"default_{size}", {})
            knobs = {name: value for name, value in plain.manifest.knobs.items() if name != "target"}
            for case in cases:
                names = {name: f"{case}_{size}_{number}" for number, name in enumerate((DEFAULT, *tiles))}
                plan.append({"case": case, "size": size, "kernels": names})
                for name, bundle in names.items():
                    jobs.append(executor.submit(_build, case, size, TILES.get(name, knobs), folder / bundle))
        for job in jobs:
            job.result()
    (folder / _PLAN).write_text(json.dumps(plan) + "\n")


def measure(device: Device, folder: Path, entry: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Measures all tiles of a case at a size.

    Args:
        device: the GPU.
        folder: of the bundles.
        entry: an entry that `build` wrote.
        rounds: of the measurement.

    Returns:
        The entry of the result.

    Raises:
        StepladderError: C of two tiles differs.
    """
    bundles = {name: read_bundle(folder / bundle) for name, bundle in entry["kernels"].items()}
    problem = bundles[DEFAULT].manifest.problem
    with MatmulBuffers(device, problem) as buffers:
        prepare_data(buffers)
        launches = {name: buffers.launcher(device.load(bundle), bundle) for name, bundle in bundles.items()}
        poison = element_type(problem.c_type).poison(problem.c_shape)
        bytes_of_c = {
            name: DeviceExecutor(buffers, launch).launch(poison).tobytes() for name, launch in launches.items()
        }
        for name, elements in bytes_of_c.items():
            if elements != bytes_of_c[DEFAULT]:
                raise StepladderError(f"{entry['case']} at {entry['size']}: C of '{name}' is another")
        library = cublas(buffers)
        contest = duel.Duel(
            device,
            Contestant("cublas", problem.flops, library.enqueue),
            [Contestant(name, problem.flops, launch) for name, launch in launches.items()],
        )
        try:
            measured = contest.run(RUN, rounds)
        finally:
            contest.free()
    kernels = {
        name: {
            "knobs": bundle.manifest.knobs,
            "registers": bundle.manifest.registers,
            "spills": bundle.manifest.spills["stores"],
            "ratios": measured["kernels"][name]["ratios"],
        }
        for name, bundle in bundles.items()
    }
    return {
        "case": entry["case"],
        "size": entry["size"],
        "provider": library.provider,
        "baseline": measured["baseline"]["tflops_spread"]["median"],
        "kernels": kernels,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = halves_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="extents m = n = k, for build")
    parser.add_argument("--cases", nargs="+", default=list(MEASURED), choices=list(MEASURED), help="for build")
    parser.add_argument("--tiles", nargs="+", default=list(TILES), choices=list(TILES), help="for build")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which medians are taken (3)")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the kernels, or measures all cases and writes the result after each.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    args = parse_halves(make_parser(), arguments)
    if args.what == "build":
        build(args.folder, args.sizes, args.cases, args.tiles)
        return
    with Device() as device:
        result = duel.header(device)
        result |= {"rounds": args.rounds, "problems": []}
        for planned in json.loads((args.folder / _PLAN).read_text()):
            result["problems"].append(measure(device, args.folder, planned, args.rounds))
            write_result(args.out, result)


if __name__ == "__main__":
    run(main)
