"""Collects profiler counters of one launch of every variant of the ablations of wmma and mma_sync.

On the GPU, with ncu on the PATH, from the bundles of `measure.py build FOLDER --only ablation`:

    python benchmarks/counters.py FOLDER RESULT.json
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, origin, run, write_result
from stepladder.pipeline import ablation

# Ablation -> the tile whose variants are counted.
TILES = {"mma_sync": "256x128x64", "wmma": "128x256x64", "wmma_asynchronous": "128x256x64"}
# Column of the table -> ncu's metric.
METRICS = {
    "tensor pipe (HMMA) cycles": "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "bank conflicts in shared memory": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "of them from loads of fragments": "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",
    "hits in L2": "lts__t_sector_hit_rate.pct",
    "read from DRAM": "dram__bytes_read.sum",
}
_BYTES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
SECONDS = 60


def launch(place: Path) -> None:
    """Launches a kernel twice on uninitialized memory: the counters do not depend on the numbers.

    Args:
        place: the folder of the bundle.
    """
    from stepladder.runtime.bundle import read_bundle
    from stepladder.runtime.device import Device
    from stepladder.runtime.launch import MatmulBuffers

    bundle = read_bundle(place)
    with Device() as device, MatmulBuffers(device, bundle.manifest.problem) as buffers:
        enqueue = buffers.launcher(device.load(bundle), bundle)
        enqueue()
        enqueue()
        device.synchronize()


def _cell(value: str, unit: str) -> str:
    """Returns a counter as the text of a table's cell."""
    number = float(value.replace(",", ""))
    if unit == "%":
        return f"{number:.1f} %"
    return f"{number * _BYTES[unit] / 1e9:.2f} GB" if unit in _BYTES else f"{number:,.0f}"


def count(place: Path) -> dict[str, str]:
    """Returns the counters of the second launch of a kernel, as texts by column.

    Args:
        place: the folder of the bundle.

    Raises:
        SystemExit: ncu did not report all counters.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "runner")}
    process = subprocess.run(
        [
            "ncu",
            "--clock-control",
            "none",
            "--csv",
            "--page",
            "details",
            "--print-units",
            "auto",
            "--launch-skip",
            "1",
            "--launch-count",
            "1",
            "--metrics",
            ",".join(METRICS.values()),
            sys.executable,
            __file__,
            "--launch-only",
            str(place),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment,
    )
    lines = [line for line in process.stdout.splitlines() if line.startswith('"')]
    rows = {row["Metric Name"]: row for row in csv.DictReader(lines)}
    if missing := set(METRICS.values()) - set(rows):
        raise SystemExit(f"{place}: no {missing.pop()}: {(process.stdout + process.stderr).strip()[-400:]}")
    return {
        title: _cell(rows[metric]["Metric Value"], rows[metric]["Metric Unit"]) for title, metric in METRICS.items()
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the bundles")
    parser.add_argument("result", type=Path, nargs="?", metavar="RESULT.json", help="file to write")
    parser.add_argument("--limit", type=float, default=540.0, metavar="SECONDS", help="start no kernel after these")
    parser.add_argument(
        "--launch-only",
        action="store_true",
        help="launch the one bundle that FOLDER is, and count nothing: the process that ncu profiles",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Collects the counters, or launches the kernel that ncu profiles.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.launch_only:
        launch(args.folder)
        return
    if args.result is None:
        parser.error("name the file for the result")
    from stepladder.runtime.device import Device

    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout.split("Version ")[-1].split()
    with Device() as device:
        card = device.describe()
    result: dict = {
        **origin(),
        "card": card,
        "tool": f"ncu --clock-control none ({version[0] if version else ''})",
        "metrics": METRICS,
        "columns": list(METRICS),
        "kernels": [],
    }
    start = time.monotonic()
    for name, tile in TILES.items():
        for number, title in enumerate(ablation.ABLATIONS[name].variants):
            if time.monotonic() - start > args.limit:
                print(f"no time left for {name}, {title} and the variants after it", flush=True)
                return
            metrics = count(args.folder / "ablation" / name / tile / str(number))
            result["kernels"].append({"ablation": name, "tile": tile, "variant": number, "metrics": metrics})
            print(f"{time.monotonic() - start:.0f} s: {name}, {title}: {metrics}", flush=True)
            write_result(args.result, result)


if __name__ == "__main__":
    run(main)
