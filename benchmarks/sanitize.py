"""Runs kernels of all pipelines under three tools of compute-sanitizer, on small problems.

Two halves, since the machine with the GPU need not have MLIR:

    python benchmarks/sanitize.py build FOLDER                   bundles of all kernels
    python benchmarks/sanitize.py run FOLDER RESULT.json         on the GPU, with compute-sanitizer on the PATH
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, run, write_result
from hopper_cases import SMALL_PINGPONG, SMALL_TILE, SPLIT_IN_MEMORY, Knobs, Size
from measure import Job, build_jobs

TOOLS = ("memcheck", "racecheck", "synccheck")
# Pipeline, knobs, a size that tiles divide and one that no tile divides, for each kind of synchronization between
# threads, the copy engine and the matrix unit; tiles of the last two divide both sizes. M, N and K are such that every
# block has several k steps and, where it is persistent, several tiles.
_WARP_TILES: Knobs = {"block_m": 128, "block_n": 128, "block_k": 64, "warp_m": 64, "warp_n": 64}
_COOPERATIVE = SMALL_TILE | {"persistent_blocks": 4}
_SPLIT_IN_CLUSTER: Knobs = {"split_k_workspace": "cluster", "epilogue": "registers", "persistent_blocks": 0}
KERNELS: dict[str, tuple[str, Knobs, Size, Size]] = {
    "wgmma_single_stage": ("wgmma_single_stage", {"block_n": 128}, (256, 256, 192), (200, 136, 72)),
    "wgmma_multistage": ("wgmma_multistage", {"block_n": 128, "stages": 3}, (256, 256, 320), (300, 264, 328)),
    "wgmma": ("wgmma", _COOPERATIVE, (512, 512, 320), (500, 520, 328)),
    "wgmma, cluster multicast": (
        "wgmma",
        _COOPERATIVE | {"cluster_m": 2, "cluster_n": 1},
        (512, 512, 320),
        (500, 520, 328),
    ),
    "wgmma, ping-pong": ("wgmma", SMALL_PINGPONG | {"persistent_blocks": 4}, (512, 512, 320), (500, 520, 328)),
    "wgmma, stream-K": (
        "wgmma",
        SMALL_TILE | {"persistent_blocks": 8, "tile_scheduler": "stream_k"},
        (512, 384, 512),
        (500, 392, 520),
    ),
    "wgmma, direct-store epilogue": (
        "wgmma",
        _COOPERATIVE | {"epilogue": "registers"},
        (512, 512, 320),
        (500, 520, 328),
    ),
    "wgmma, split-K in a cluster": (
        "wgmma",
        SMALL_TILE | _SPLIT_IN_CLUSTER | {"split_k": 3},
        (256, 256, 576),
        (200, 264, 584),
    ),
    "wgmma, split-K in global memory": (
        "wgmma",
        SMALL_TILE | SPLIT_IN_MEMORY | {"split_k": 3, "cluster_m": 2, "cluster_n": 1},
        (256, 256, 576),
        (200, 264, 584),
    ),
    "wgmma, few rows": (
        "wgmma",
        {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1, "stages": 4, **_SPLIT_IN_CLUSTER, "split_k": 2},
        (16, 512, 512),
        (1, 520, 520),
    ),
    "mma_sync": ("mma_sync", _WARP_TILES | {"stages": 3}, (256, 256, 256), (384, 640, 192)),
    "wmma": ("wmma", _WARP_TILES | {"stages": 2}, (256, 256, 256), (384, 640, 192)),
}
PROCESSES, SECONDS = 8, 100
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(.*)")


def _cases() -> list[tuple[str, str, tuple[int, int, int]]]:
    return [
        (name, kind, sizes) for name, (_, _, *both) in KERNELS.items() for kind, sizes in zip(("whole", "ragged"), both)
    ]


def _folder(folder: Path, name: str, kind: str) -> Path:
    return folder / "sanitize" / f"{name.replace(', ', '-').replace(' ', '_')}-{kind}"


def build(folder: Path, workers: int) -> None:
    """Builds the bundles of all kernels, C = AB + C.

    Args:
        folder: of the bundles.
        workers: processes.
    """
    build_jobs(
        [
            Job(_folder(folder, name, kind), KERNELS[name][0], sizes, ("f16", "f32"), KERNELS[name][1])
            for name, kind, sizes in _cases()
        ],
        workers,
    )


def _sanitize(tool: str, place: Path) -> dict:
    """Returns what a tool reports of the launches of `stepladder run`, which checks the numbers too."""
    start = time.monotonic()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "runner")}
    try:
        process = subprocess.run(
            [
                "compute-sanitizer",
                "--tool",
                tool,
                "--print-limit",
                "20",
                sys.executable,
                "-m",
                "stepladder",
                "run",
                place.name,
            ],
            cwd=place.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        output, status = process.stdout + process.stderr, process.returncode
    except subprocess.TimeoutExpired as expired:
        output, status = (expired.stdout or b"").decode(), None
    messages = [line.removeprefix("========= ").strip() for line in output.splitlines() if line.startswith("=========")]
    summaries = [match[1] for line in messages if (match := _SUMMARY.match(line))]
    clean = bool(summaries) and all(summary.startswith("0 ") for summary in summaries)
    result = {
        "summary": summaries[-1] if summaries else "no end in time" if status is None else "no summary",
        "clean": clean,
        "numbers_right": status == 0,
        "seconds": round(time.monotonic() - start, 1),
    }
    return result if clean and status == 0 else result | {"said": messages[:12], "output": output.splitlines()[-12:]}


def sanitize(folder: Path, out: Path, tools: list[str]) -> None:
    """Runs every kernel under every tool, several at a time, and writes their reports.

    Args:
        folder: of the bundles.
        out: the file of the result.
        tools: of compute-sanitizer.
    """
    import duel
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device

    with Device() as device:
        result = duel.header(device)
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout.splitlines()
    result |= {"sanitizer": next((line for line in version if line.startswith("Version")), ""), "kernels": []}
    with ThreadPoolExecutor(PROCESSES) as pool:
        futures = {
            (case, tool): pool.submit(_sanitize, tool, _folder(folder, *case[:2]))
            for tool in tools
            for case in _cases()
        }
        for name, kind, sizes in _cases():
            bundle = read_bundle(_folder(folder, name, kind))
            reports = {tool: futures[(name, kind, sizes), tool].result() for tool in tools}
            result["kernels"].append(
                {"name": name, "kind": kind, "size": list(sizes), "tools": reports} | duel.describe(bundle)
            )
            print(
                name,
                kind,
                {tool: report["summary"] for tool, report in reports.items()},
                "" if all(report["numbers_right"] for report in reports.values()) else "WRONG NUMBERS",
                flush=True,
            )
            write_result(out, result)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    building = parts.add_parser("build", help="build the bundles of all kernels")
    building.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the bundles")
    building.add_argument("--workers", type=int, default=2, help="processes that build (default: 2)")
    running = parts.add_parser("run", help="run the bundles under compute-sanitizer, on the GPU")
    running.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the bundles")
    running.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    running.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, help="tools to run (default: all)")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one half.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    if args.part == "build":
        build(args.folder, args.workers)
    else:
        sanitize(args.folder, args.result, args.tools)


if __name__ == "__main__":
    run(main)
