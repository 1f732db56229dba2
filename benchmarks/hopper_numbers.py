"""Checks the numbers of the kernels that `hopper.py build` made, on the GPU. Needs PyTorch and no MLIR.

A kernel with a wrong barrier never ends, so kernels are checked in child processes with a time limit: `hopper.py check`
and `hopper.py repeat`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import duel
from common import write_result
from common_fields import divide
from hopper_cases import SEEDS
from hopper_timing import refusals
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.verify.check import check_matmul

LAUNCHES = 1000
# Bundles are checked in groups, some at a time; a group has a number of seconds, and a number for each kernel.
PROCESSES, GROUP_SIZE = 6, 12
GROUP_SECONDS, CHECK_SECONDS = 30, 5
REPEAT_SECONDS = 60
# Fields that each case of the result has, whatever most cases have.
MEASURED = ("passed", "max_error_over_tolerance")
# Fields of `duel.describe` that follow from the knobs and the problem.
_FOLLOW = ("grid", "block", "cluster", "dependent_launch", "shared_memory")


def measure_numbers(folder: Path, out: Path) -> None:
    """Checks every bundle with every seed, and launches some kernels many times; writes the result.

    Args:
        folder: of the bundles of all parts.
        out: the file of the result.
    """
    place = folder / "numbers"
    paths = sorted(path for path in (place / "cases").iterdir() if path.is_dir())
    with Device() as device:
        result = duel.header(device)
    groups = [paths[start : start + GROUP_SIZE] for start in range(0, len(paths), GROUP_SIZE)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        checked = dict(pair for pairs in pool.map(_check_group, groups) for pair in pairs)
    result["usual"], result["cases"] = divide({name: checked[name] for name in sorted(checked)}, MEASURED)
    result["refused"] = {}
    for name, message in refusals(place / "cases").items():
        result["refused"].setdefault(message, []).append(name)
    result["seeds"] = list(SEEDS)
    write_result(out, result)
    failures = {name: case for name, case in checked.items() if not case["passed"]}
    refused = sum(map(len, result["refused"].values()))
    print(f"{len(checked) - len(failures)} of {len(checked)} right, {refused} refused when built", flush=True)
    for name, case in list(failures.items())[:40]:
        print(f"WRONG: {name}: {str(case.get('error') or case['reports'])[:200]}", flush=True)
    result["repeated"] = {}
    for path in sorted(path for path in (place / "repeated").iterdir() if path.is_dir()):
        repeats, error = _in_process(["repeat", str(path)], REPEAT_SECONDS)
        result["repeated"][path.name] = repeats.get(path.name, {"passed": False, "error": error})
    for name, case in result["repeated"].items():
        print(f"{name}: {case}"[:300], flush=True)
    write_result(out, result)


def _in_process(arguments: list[str], seconds: float) -> tuple[dict[str, dict], str]:
    """Runs `hopper.py` with arguments, within seconds; returns its JSON lines by name, and how it failed, or ""."""
    script = str(Path(__file__).with_name("hopper.py"))
    try:
        process = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=seconds)
        output, error = process.stdout, process.stderr.strip()[-400:] if process.returncode else ""
    except subprocess.TimeoutExpired as expired:
        output, error = (expired.stdout or b"").decode(), "no end in time"
    results = [json.loads(text) for text in output.splitlines() if text.startswith("{")]
    return {case.pop("name"): case for case in results}, error


def _check_group(paths: list[Path]) -> list[tuple[str, dict]]:
    """Checks bundles in one process, and the rest in another after a bundle that fails or hangs."""
    results: dict[str, dict] = {}
    while paths:
        checked, error = _in_process(["check", *map(str, paths)], GROUP_SECONDS + CHECK_SECONDS * len(paths))
        results |= checked
        left = [path for path in paths if path.name not in results]
        if left and not error:
            error = "no result"
        if left:
            results[left[0].name] = {"passed": False, "error": error}
        paths = left[1:]
    return list(results.items())


def check(paths: list[Path]) -> None:
    """Checks bundles with every seed; prints a line of JSON for each.

    Args:
        paths: of the bundles.
    """
    with Device() as device:
        for path in paths:
            bundle = read_bundle(path)
            problem = bundle.manifest.problem
            with MatmulBuffers(device, problem) as buffers:
                executor = DeviceExecutor(buffers, buffers.launcher(device.load(bundle), bundle))
                reports = [
                    report
                    for seed in SEEDS
                    for report in check_matmul(problem, bundle.expected(), executor, seed, device.ordinal)
                ]
            worst = max((report.max_error_over_tolerance or 0.0 for report in reports), default=0.0)
            case = {
                "name": path.name,
                "passed": all(report.passed for report in reports),
                "problem": asdict(problem),
                "max_error_over_tolerance": worst,
                "checks": len(reports),
                "reports": [report.describe() for report in reports if not report.passed],
            } | {name: value for name, value in duel.describe(bundle).items() if name not in _FOLLOW}
            print(json.dumps(case), flush=True)


def repeat(path: Path) -> None:
    """Launches a kernel LAUNCHES times on each of two inputs and compares the bits of C; prints a line of JSON.

    The first input has an exact product. The second is random: bits that depend on the order of additions must be
    those of the first launch.

    Args:
        path: of the bundle.
    """
    bundle = read_bundle(path)
    with Device() as device, duel.Operands(device, bundle.manifest.problem) as operands:
        torch = operands.torch
        enqueue = operands.buffers.launcher(device.load(bundle), bundle)
        expected = operands.exact_product()
        wrong = [number for number in range(LAUNCHES) if operands.count_wrong(enqueue, expected)]
        operands.fill_random()
        enqueue()
        device.synchronize()
        first = operands.c.view(torch.int32).clone()
        different = []
        for number in range(LAUNCHES):
            operands.c.fill_(float("nan"))
            device.synchronize()
            enqueue()
            device.synchronize()
            if not torch.equal(operands.c.view(torch.int32), first):
                different.append(number)
        grid, problem = bundle.manifest.grid, bundle.manifest.problem
    case = {
        "name": path.name,
        "passed": not wrong and not different,
        "launches": 2 * LAUNCHES,
        "wrong": wrong[:10],
        "different": different[:10],
        "problem": problem.describe(),
        **duel.describe(bundle),
        "blocks": grid[0] * grid[1],
    }
    print(json.dumps(case), flush=True)
