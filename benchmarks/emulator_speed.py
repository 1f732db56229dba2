"""Measures how long the emulator takes for kernels of `wgmma` and for a host loop: docs/results/emulator_speed.json.

Needs no GPU; the seconds are those of the machine that runs it, of whole commands:

    python benchmarks/emulator_speed.py
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import ROOT, origin, result_parser, run, write_result
from stepladder.payload.writing import matmul_text
from stepladder.runtime.errors import StepladderError

SIZES = (512, 1024, 2048)
PTX_SIZE = 1024
SMALL = (128, 128, 64)
PIPELINE = "wgmma"
JOBS = (1, 2)  # processes
TIMES = 1  # that each command is run, of which the least is kept
# Five scalar ops an iteration.
ITERATIONS = 200_000
HOST_LOOP = f"""
func.func @main() -> i64 {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %last = arith.constant {ITERATIONS} : index
  %three = arith.constant 3 : i64
  %buffer = memref.alloc() : memref<1xi64>
  memref.store %three, %buffer[%0] : memref<1xi64>
  scf.for %i = %0 to %last step %1 {{
    %number = arith.index_cast %i : index to i64
    %before = memref.load %buffer[%0] : memref<1xi64>
    %product = arith.muli %number, %three : i64
    %after = arith.xori %before, %product : i64
    memref.store %after, %buffer[%0] : memref<1xi64>
  }}
  %result = memref.load %buffer[%0] : memref<1xi64>
  return %result : i64
}}
"""


def seconds_of(command: Sequence[str]) -> dict[str, float]:
    """Returns the least seconds of several runs of a command of the package: CPU time ("cpu") and wall time ("wall").

    Args:
        command: the module and its arguments.

    Raises:
        StepladderError: it fails.
    """
    least = {"cpu": float("inf"), "wall": float("inf")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runner")}
    for _ in range(TIMES):
        usage_before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, text=True)
        usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise StepladderError(f"{' '.join(command)}: {process.stderr or process.stdout}")
        cpu = usage_after.ru_utime - usage_before.ru_utime + usage_after.ru_stime - usage_before.ru_stime
        least["cpu"] = min(least["cpu"], cpu)
        least["wall"] = min(least["wall"], time.perf_counter() - began)
    return {name: round(number, 2) for name, number in least.items()}


def lowered(folder: Path, size: int) -> Path:
    """Writes the last IR of a square matmul to a file.

    Args:
        folder: of the file.
        size: M = N = K.

    Returns:
        The path of the file.
    """
    payload, last = folder / f"{size}.mlir", folder / f"{size}-lowered.mlir"
    payload.write_text(matmul_text(size, size, size))
    _do(["stepladder.cli.opt", str(payload), "--pipeline", PIPELINE, "-o", str(last)])
    return last


def bundle(folder: Path, size: int) -> Path:
    """Compiles a square matmul to a bundle.

    Args:
        folder: of the bundle.
        size: M = N = K.

    Returns:
        The path of the kernel in PTX.
    """
    payload, path = folder / f"{size}.mlir", folder / f"{size}.bundle"
    payload.write_text(matmul_text(size, size, size))
    _do(["stepladder", "compile", str(payload), "--pipeline", PIPELINE, "-o", str(path)])
    return path / "kernel.ptx"


def _do(command: Sequence[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runner")}
    process = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, text=True)
    if process.returncode:
        raise StepladderError(f"{' '.join(command)}: {process.stderr or process.stdout}")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return result_parser(__doc__, "emulator_speed")


def main(argv: Sequence[str] | None = None) -> None:
    """Measures all cases and writes the result.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    cases: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = {f"{size}^3, the last IR": ["stepladder", "emulate", str(lowered(folder, size))] for size in SIZES}
        commands[f"{PTX_SIZE}^3, PTX, compared with the reference"] = [
            "stepladder",
            "emulate",
            str(bundle(folder, PTX_SIZE)),
        ]
        small, loop = folder / "small.mlir", folder / "loop.mlir"
        small.write_text(matmul_text(*SMALL))
        loop.write_text(HOST_LOOP)
        title = f"{'x'.join(map(str, SMALL))}, all steps (`--check-each-step`)"
        check = ["--pipeline", PIPELINE, "--check-each-step", "-o", str(folder / "checked.mlir")]
        commands[title] = ["stepladder.cli.opt", str(small), *check]
        commands[f"host loop, {5 * ITERATIONS:,} scalar ops"] = ["stepladder", "emulate", str(loop)]
        for title, command in commands.items():
            jobs = JOBS if command[0] == "stepladder" and command[-1] != str(loop) else (1,)
            options = {count: ["--jobs", str(count)] if len(jobs) > 1 else [] for count in jobs}
            cases[title] = {str(count): seconds_of([*command, *options[count]]) for count in jobs}
            print(title, cases[title], flush=True)
    write_result(
        args.result,
        {
            **origin(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "pipeline": PIPELINE,
            "cases": cases,
        },
    )


if __name__ == "__main__":
    run(main)
