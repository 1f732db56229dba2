"""The process that measures the kernels of one problem on the GPU; `measuring` starts it and watches over it.

    python -m stepladder.measure.tuning.worker FOLDER PROBLEM [EXCLUDED...]

It writes a JSON object a line. `{"candidate": NAME}` comes before anything that may not come back, so that the process
that waits knows whose fault it is; `{"excluded": NAME, "reason": TEXT}` is a kernel with wrong results or that does not
load; the last line is `{"result": ...}` or `{"error": TEXT, "status": NUMBER}`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepladder.measure.baselines import cublas, sums_in_tensor_core, unsupported
from stepladder.measure.bench import prepare_data
from stepladder.measure.timing import Contestant, Mode, Runner
from stepladder.measure.tuning.halving import Selection, select
from stepladder.measure.tuning.plan import WRONG_RESULTS, Problem, read_plan
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.runtime.processes import end_with_starter
from stepladder.verify.check import check_exact

if TYPE_CHECKING:
    from stepladder.runtime.bundle import Bundle
    from stepladder.runtime.reference import Program

REFERENCE = "cublas"
_MODE = Mode(seconds=0.004, pause_seconds=0.0)
_SEED = 0


def say(**fields: object) -> None:
    """Writes one line for the process that waits.

    Args:
        fields: of the line's JSON object.
    """
    print(json.dumps(fields), flush=True)


def _bundles(folder: Path, problem: Problem, excluded: Sequence[str]) -> dict[str, Bundle]:
    """Returns the bundles of a problem that were built and are not excluded, by their folder in the plan's."""
    bundles = {}
    for setting in problem.settings:
        if setting.bundle not in excluded and (folder / setting.bundle).exists():
            bundles[setting.bundle] = read_bundle(folder / setting.bundle)
    return bundles


class _Checker:
    """Checks kernels of one problem: the first that is right by the exact check, the others by its result, which holds
    sums without rounding and so is the same for all, to the last bit. Elementwise ops round: with them the check runs
    for each.

    Args:
        buffers: that the kernels work on.
        reference: what the kernels must compute.
    """

    def __init__(self, buffers: MatmulBuffers, reference: Program) -> None:
        self._buffers = buffers
        self._reference = reference
        self._initial: np.ndarray | None = None
        self._right: np.ndarray | None = None

    def wrong(self, enqueue: Callable[[], None]) -> str:
        """Returns what is wrong with a kernel's result, or an empty text. Raises StepladderError as a launch does."""
        executor = _Recorder(self._buffers, enqueue)
        problem = self._buffers.problem
        if self._initial is None or self._right is None or problem.has_epilogue or problem.is_prepared:
            report = check_exact(problem, self._reference, executor, _SEED, self._buffers.device.ordinal)
            if not report.passed:
                return report.describe()
            self._initial, self._right = executor.initial, executor.result
            return ""
        results = executor.launch(self._initial)
        different = int(np.count_nonzero(results.view(np.uint8) != self._right.view(np.uint8)))
        return f"{different} bytes of C differ from those of a kernel that is right" if different else ""


class _Recorder(DeviceExecutor):
    """An executor that keeps what C held before and after the last launch."""

    initial: np.ndarray | None = None
    result: np.ndarray | None = None

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Launches as a DeviceExecutor does."""
        self.initial, self.result = c, super().launch(c)
        return self.result


def measure(folder: Path, problem: Problem, excluded: Sequence[str]) -> dict[str, object]:
    """Checks and measures the kernels of a problem.

    Args:
        folder: of the plan, which holds the bundles.
        problem: of the plan.
        excluded: names of kernels that are left out.

    Returns:
        The GPU's name, the winner's name, its time in us, the ratio to cuBLAS, and how many were measured.

    Raises:
        StepladderError: no GPU, none that these bundles are for (status NOT_EXECUTED), or no kernel that is right.
    """
    bundles = _bundles(folder, problem, excluded)
    if not bundles:
        raise StepladderError("there is no kernel left to measure")
    first = next(iter(bundles.values())).manifest.problem
    with Device() as device, MatmulBuffers(device, first) as buffers:
        launchers: dict[str, Callable[[], None]] = {}
        checker = _Checker(buffers, next(iter(bundles.values())).expected())
        for name, bundle in bundles.items():
            say(candidate=name)
            try:
                enqueue = buffers.launcher(device.load(bundle), bundle)
                reason = checker.wrong(enqueue)
            except StepladderError as error:
                if error.status == NOT_EXECUTED and not launchers:
                    raise
                say(excluded=name, reason=error.message)
                continue
            if reason:
                say(excluded=name, reason=f"{WRONG_RESULTS}: {reason}")
            else:
                launchers[name] = enqueue
        if not launchers:
            raise StepladderError("no kernel of this problem gives correct results")
        names = list(launchers)
        reference = None if unsupported(first) else REFERENCE
        if reference is not None:
            launchers[reference] = cublas(buffers, fast_accum=sums_in_tensor_core(bundles.values())).enqueue
        selection = _race(device, buffers, launchers, names, reference)
        return {
            "gpu": device.name,
            "winner": selection.winner,
            "microseconds": selection.microseconds(),
            "of_cublas": selection.of_reference(),
            "apart": selection.apart,
            "measured": len(names),
            "medians": {name: sorted(times)[len(times) // 2] for name, times in selection.samples.items()},
        }


def _race(
    device: Device,
    buffers: MatmulBuffers,
    launchers: dict[str, Callable[[], None]],
    names: Sequence[str],
    reference: str | None,
) -> Selection:
    restore, period = prepare_data(buffers)
    runners: dict[str, Runner] = {}
    for name, enqueue in launchers.items():
        say(candidate=name)
        runners[name] = Runner(device, Contestant(name, buffers.problem.flops, enqueue, restore, period))

    def one_round(contestants: Sequence[str]) -> dict[str, float]:
        times = {}
        for name in contestants:
            say(candidate=name)
            sample = runners[name].measure(_MODE)
            times[name] = sample["milliseconds"] / sample["launches"] * 1e3
        return times

    return select(names, reference, one_round)


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns the exit status.

    Args:
        arguments: folder of the plan, number of the problem, and names of kernels that are left out.
    """
    folder, number, *excluded = arguments
    try:
        result = measure(Path(folder), read_plan(Path(folder)).problems[int(number)], excluded)
    except StepladderError as error:
        say(error=error.message, status=error.status)
        return error.status
    say(result=result)
    return 0


if __name__ == "__main__":
    end_with_starter()
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
