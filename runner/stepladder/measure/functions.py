"""Benchmarks of functions with several kernels: all kernels of a call, in one graph."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from stepladder.measure.bench import MINIMUM_ROUNDS, SEED
from stepladder.measure.timing import Contestant, measure_rounds
from stepladder.runtime.bundle import FunctionBundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.function_launch import DeviceFunction
from stepladder.verify.function_check import check_function
from stepladder.verify.function_inputs import random_inputs


def flops_of(bundle: FunctionBundle) -> int:
    """Returns the arithmetic operations of a function's matmuls.

    Args:
        bundle: of the function.

    Returns:
        Twice the product of each matmul's extents, summed; also of what a causal mask hides.
    """
    total = 0
    for launch in bundle.manifest.launches:
        problems = [bundle.matmul(launch).manifest.problem] if launch.kernel is None else launch.grouped
        total += sum(problem.flops for problem in problems) + (launch.kernel.flops if launch.kernel else 0)
    return total


def bench_function(
    bundle: FunctionBundle,
    *,
    modes: Sequence[str] = ("burst",),
    rounds: int = MINIMUM_ROUNDS,
    check: bool = True,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Measures a function on the GPU, on random data, after the check of its results.

    Args:
        bundle: of the function.
        modes: `burst`, `sustained`.
        rounds: how many, at least 7.
        check: whether to check the results first.
        command: for the result.

    Returns:
        The result: the function, its launches, the GPU, and every round of each mode.

    Raises:
        StepladderError: too few rounds, no GPU (status NOT_EXECUTED), or wrong results (status FAILED).
    """
    if rounds < MINIMUM_ROUNDS:
        raise StepladderError(f"at least {MINIMUM_ROUNDS} rounds are needed for a median, got {rounds}")
    name = bundle.path.resolve().name
    arguments = {
        buffer.number for _, buffer in bundle.manifest.of_kind("argument")
    }  # launches write results and workspaces
    with Device() as device, DeviceFunction(device, bundle, arguments) as function:
        if check:
            reports = check_function(bundle, function, SEED, device.ordinal)
            for report in reports:
                print(f"{name}: {report.describe()}", file=sys.stderr, flush=True)
            if not all(report.passed for report in reports):
                raise StepladderError(f"function '{name}' is wrong and is not timed", status=FAILED)
        function.load(random_inputs(bundle, SEED))
        contestant = Contestant(name, max(1, flops_of(bundle)), function.enqueue)
        return {
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": list(command),
            "card": device.describe(),
            "function": bundle.manifest.function,
            "bundle": name,
            "flops": flops_of(bundle),
            "launches": [launch.stage for launch in bundle.manifest.launches],
            "workspace": bundle.manifest.workspace,
            "modes": measure_rounds(device, [contestant], modes, rounds),
        }


def rows_of(result: dict[str, Any]) -> list[dict[str, object]]:
    """Returns the rows of a table of a measurement, one for each mode; keys are column titles.

    Of a function without matmuls, which has no rate, the time alone.

    Args:
        result: of `bench_function`.
    """
    rows: list[dict[str, object]] = []
    for mode, summary in result["modes"].items():
        kernel = summary["kernels"][result["bundle"]]
        times = [1e3 * total / count for total, count in zip(kernel["milliseconds"], kernel["launches"])]
        spread = kernel["tflops_spread"]
        rows.append(
            {
                "mode": mode,
                "function": result["bundle"],
                "us": f"{statistics.median(times):.1f}",
                "TFLOP/s": f"{spread['median']:.1f}" if result["flops"] else "",
                "min to max": f"{spread['minimum']:.1f} to {spread['maximum']:.1f}" if result["flops"] else "",
            }
        )
    return rows
