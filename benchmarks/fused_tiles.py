"""Measures tiles of fused matmuls beside cuBLAS' matmul alone, on a GPU.

The matmul alone, bias + GELU, bias + ReLU and the addition of a matrix, of `fused_epilogues.py`, each by the default
kernel of the matmul and by tiles and schedules that may hide more of an epilogue. `defaults.py` takes default knobs of
matmuls whose epilogue has an operand from the result.

Needs PyTorch, MLIR and ptxas on the machine with the GPU:

    python benchmarks/fused_tiles.py
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duel
from common import measurement_parser, run, write_result
from fused_epilogues import CASES, build_bundle, payload
from stepladder.measure.baselines import cublas
from stepladder.measure.bench import prepare_data
from stepladder.measure.timing import Contestant, Mode
from stepladder.runtime.device import Device
from stepladder.runtime.launch import MatmulBuffers

SIZES = (2048, 4096, 8192)
# Cases of `fused_epilogues.py`, and the matmul alone.
MEASURED = {**{name: CASES[name] for name in ("bias_gelu", "bias_relu", "add")}, "plain": None}
# Length of a run and the pause before it, in seconds.
RUN = Mode(0.02, 0.02)
_COMMON = {"block_k": 64, "persistent_blocks": 132, "epilogue": "tma", "tile_scheduler": "data_parallel", "split_k": 1}
_PINGPONG = {**_COMMON, "schedule": "pingpong", "consumer_warpgroups": 1}
_COOPERATIVE = {**_COMMON, "schedule": "cooperative", "consumer_warpgroups": 2}
# By name: schedule, tile, stages, buffers of C of a warpgroup, and blocks of a cluster along m and n.
TILES: dict[str, dict[str, int | str]] = {
    name: {
        **schedule,
        "block_m": block_m,
        "block_n": block_n,
        "stages": stages,
        "epilogue_stages": buffers,
        "cluster_m": cluster_m,
        "cluster_n": cluster_n,
    }
    for name, schedule, block_m, block_n, stages, buffers, cluster_m, cluster_n in (
        ("cooperative 128x256", _COOPERATIVE, 128, 256, 4, 2, 1, 1),
        ("cooperative 128x256, 3 stages, 4 buffers", _COOPERATIVE, 128, 256, 3, 4, 1, 1),
        ("cooperative 256x128", _COOPERATIVE, 256, 128, 3, 2, 1, 1),
        ("pingpong 128x128", _PINGPONG, 128, 128, 5, 2, 1, 1),
        ("pingpong 128x128, cluster 2x1", _PINGPONG, 128, 128, 5, 2, 2, 1),
        ("pingpong 128x128, 6 stages, 1 buffer", _PINGPONG, 128, 128, 6, 1, 1, 1),
        ("cooperative 128x256, cluster 2x1", _COOPERATIVE, 128, 256, 4, 2, 2, 1),
        ("cooperative 128x256, cluster 1x2", _COOPERATIVE, 128, 256, 4, 2, 1, 2),
        ("pingpong 128x192", _PINGPONG, 128, 192, 4, 2, 1, 1),
    )
}
DEFAULT = "of the matmul"


def measure(device: Device, case: str, size: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Builds and measures all tiles of a case at a size.

    Args:
        device: the GPU.
        case: its name.
        size: M = N = K.
        rounds: of the measurement.
        folder: of the bundles.

    Returns:
        The entry of the result.
    """
    plain = build_bundle(payload(None, size), folder / f"default_{case}_{size}", {})
    knobs = {DEFAULT: dict(plain.manifest.knobs), **TILES}
    text = payload(MEASURED[case], size)
    bundles = {
        name: build_bundle(text, folder / f"{case}_{size}_{number}", chosen)
        for number, (name, chosen) in enumerate(knobs.items())
    }
    problem = bundles[DEFAULT].manifest.problem
    with MatmulBuffers(device, problem) as buffers:
        prepare_data(buffers)
        library = cublas(buffers)
        contest = duel.Duel(
            device,
            Contestant("cublas", problem.flops, library.enqueue),
            [
                Contestant(name, problem.flops, buffers.launcher(device.load(bundle), bundle))
                for name, bundle in bundles.items()
            ],
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
        "case": case,
        "size": size,
        "baseline": measured["baseline"]["tflops_spread"]["median"],
        "kernels": kernels,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return measurement_parser(__doc__ or "", SIZES, "fused_tiles", 3)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures all cases at all sizes; writes the result after each.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(arguments)
    with Device() as device, tempfile.TemporaryDirectory(prefix="stepladder-") as folder:
        result = duel.header(device)
        result |= {"rounds": args.rounds, "problems": []}
        for size in args.sizes:
            for case in MEASURED:
                result["problems"].append(measure(device, case, size, args.rounds, Path(folder)))
                write_result(args.out, result)


if __name__ == "__main__":
    run(main)
