"""Checks and measures XeTile programs on an NVIDIA GPU, beside the pipelines of linalg and cuBLAS.

    python benchmarks/xetile_kernels.py

Each program of test/inputs/xetile is compiled by `xetile_mma_sync` and `xetile_wgmma`, and checked with three seeds:
small integers exactly, random numbers within a tolerance, and the same bits twice. A program that a pipeline refuses
has the reason in the result. Then program 2.1 is timed at each of the sizes in the same rounds as `mma_sync` and
`wgmma` with default knobs, and cuBLAS.

Needs MLIR and ptxas on the machine with the GPU; kernels are built in parallel.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import ROOT, command_line, measurement_parser, run, write_result
from stepladder.measure.bench import bench_bundles
from stepladder.measure.report import describe_bundle
from stepladder.payload.writing import matmul_text
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.runtime.processes import end_with_pool
from stepladder.verify.check import check_matmul
from xetile_counts import program

SIZES = (2048, 4096, 8192)
SEEDS = (0, 1, 2)
# Of the appendices' programs: as their files have them; and what no tile divides.
SHAPES = ((512, 768, 160), (520, 776, 168))
TARGETS = {"xetile_mma_sync": "sm_90", "xetile_wgmma": "sm_90a"}
RIVALS = {"mma_sync": "sm_90", "wgmma": "sm_90a"}
FOLDER = ROOT / "test" / "inputs" / "xetile"


@dataclass(frozen=True)
class Case:
    """A kernel that is built.

    Attributes:
        name: of its folder.
        text: the payload.
        pipeline: that compiles it.
        target: the GPU.
        program: of test/inputs/xetile that the text is.
        shape: m, n and k of it; None for those of its file.
    """

    name: str
    text: str
    pipeline: str
    target: str
    program: str
    shape: tuple[int, int, int] | None = None


def checked_cases() -> list[Case]:
    """Returns all programs, with each of both pipelines."""
    cases = []
    for pipeline, target in TARGETS.items():
        for path in sorted(FOLDER.glob("*.mlir")):
            for shape in SHAPES:
                size = "x".join(map(str, shape))
                text = program(path.stem, *shape)
                cases.append(Case(f"{path.stem}_{size}_{pipeline}", text, pipeline, target, path.stem, shape))
        for path in sorted((FOLDER / "users").glob("*.mlir")):
            name = f"users/{path.stem}"
            text = path.read_text(encoding="utf-8")
            cases.append(Case(f"{path.stem}_{pipeline}", text, pipeline, target, name))
    return cases


def timed_cases(size: int) -> list[Case]:
    """Returns program 2.1, and the matmul that it computes, of one size.

    Args:
        size: m = n = k.
    """
    shape = (size, size, size)
    text = program("gemm", *shape)
    cases = [Case(f"{name}_{size}", text, name, target, "gemm", shape) for name, target in TARGETS.items()]
    text = matmul_text(*shape, accumulate=False)
    cases += [Case(f"{name}_{size}", text, name, target, "matmul", shape) for name, target in RIVALS.items()]
    return cases


def built(case: Case, folder: Path) -> str | None:
    """Writes the bundle of a case; returns why it is refused, if it is.

    Args:
        case: what is built.
        folder: of the bundles.
    """
    from stepladder.pipeline.build import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    try:
        with mlir_context():
            request = Request(case.pipeline, {"target": case.target}, tuned=True)
            build(case.text, f"{case.program}.mlir", request).write(folder / case.name)
    except StepladderError as error:
        return str(error)
    return None


def check(device: Device, path: Path) -> dict[str, Any]:
    """Checks a bundle on the GPU with each of SEEDS.

    Args:
        device: the GPU.
        path: of the bundle.

    Returns:
        The entry of the result.
    """
    bundle = read_bundle(path)
    problem = bundle.manifest.problem
    seeds = {}
    with MatmulBuffers(device, problem) as buffers:
        executor = DeviceExecutor(buffers, buffers.launcher(device.load(bundle), bundle))
        for seed in SEEDS:
            reports = check_matmul(problem, bundle.expected(), executor, seed, device.ordinal, bundle.constants())
            seeds[str(seed)] = {"passed": all(report.passed for report in reports)}
            seeds[str(seed)]["checks"] = [report.to_json() for report in reports]
    return {"bundle": describe_bundle(bundle), "seeds": seeds}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return measurement_parser(__doc__, SIZES, "xetile_kernels", 7)


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, checks and times all cases; returns 1 where numbers are wrong.

    Args:
        arguments: of the command line; those of the process unless told.

    Raises:
        StepladderError: a kernel that is timed is refused.
    """
    args = make_parser().parse_args(arguments)
    checked, timed = checked_cases(), [case for size in args.sizes for case in timed_cases(size)]
    result: dict[str, Any] = {"schema_version": 1, "command": command_line(), "programs": [], "sizes": []}
    with tempfile.TemporaryDirectory(prefix="stepladder-") as name:
        folder = Path(name)
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), initializer=end_with_pool) as pool:
            refusals = list(pool.map(built, (*timed, *checked), [folder] * (len(timed) + len(checked))))
        for case, refusal in zip(timed, refusals):
            if refusal is not None:
                raise StepladderError(f"{case.name}: {refusal}")
        wrong = []
        with Device() as device:
            result["card"] = device.describe()
            for case, refusal in zip((*timed, *checked), refusals):
                if case.pipeline in RIVALS:
                    continue
                entry = {"program": case.program, "shape": case.shape, "pipeline": case.pipeline, "refusal": refusal}
                if refusal is None:
                    entry |= check(device, folder / case.name)
                    if not all(seed["passed"] for seed in entry["seeds"].values()):
                        wrong.append(case.name)
                print(f"{case.name}: {refusal or ('WRONG' if case.name in wrong else 'right')}", flush=True)
                result["programs"].append(entry)
            write_result(args.out, result)
        for size in args.sizes:
            bundles = [read_bundle(folder / case.name) for case in timed_cases(size) if case.name not in wrong]
            result["sizes"].append(bench_bundles(bundles, modes=(args.mode,), rounds=args.rounds))
            write_result(args.out, result)
    if wrong:
        print(f"wrong numbers: {', '.join(wrong)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    run(main)
