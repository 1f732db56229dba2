"""Checks and times kernels interleaved with cuBLAS, on the GPU, in one process. Needs PyTorch and no MLIR.

`stepladder bench` times every contestant once a round; with many candidates, the temperature of the GPU changes within
a round. Here cuBLAS runs between any two kernels, and the ratio of a kernel is to the mean of the cuBLAS runs before
and after it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from common import origin
from stepladder.measure.baselines import cublas
from stepladder.measure.spread import Spread
from stepladder.measure.timing import Contestant, Mode, Runner, Timer
from stepladder.runtime.bundle import Bundle, Problem
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import MatmulBuffers

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

SCHEMA_VERSION = 1
# A launch that runs longer is taken to be deadlocked.
HUNG_SECONDS = 30.0
TORCH_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}


@contextlib.contextmanager
def watched(what: str) -> Iterator[None]:
    """Enters a body, and ends the process when it hangs: a call that waits for the GPU cannot be interrupted.

    Args:
        what: the name of the body, for the message.
    """

    def give_up() -> None:
        print(f"  {what}: HANGS, giving up", flush=True)
        os._exit(3)

    timer = threading.Timer(HUNG_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Memory:
    """Device memory that PyTorch views without a copy, as bytes: the protocol does not name every element type."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 2}


class Operands:
    """The buffers of a problem, and PyTorch views of them; a context manager.

    Attributes:
        buffers: for launches.
        a, b, c: the same memory as PyTorch tensors.
    """

    def __init__(self, device: Device, problem: Problem) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        self.torch, self.device, self.problem = torch, device, problem
        self.buffers = MatmulBuffers(device, problem)
        self.a, self.b, self.c = (
            torch.as_tensor(_Memory(buffer.address, buffer.size), device=f"cuda:{device.ordinal}")
            .view(getattr(torch, TORCH_TYPES[type_]))
            .view(shape)
            for buffer, type_, shape in (
                (self.buffers.a, problem.a_type, problem.a_shape),
                (self.buffers.b, problem.b_type, problem.b_shape),
                (self.buffers.c, problem.c_type, problem.c_shape),
            )
        )

    def __enter__(self) -> Operands:
        self.buffers.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.buffers.__exit__(*exception)
        self.torch.cuda.empty_cache()

    def fill_random(self) -> None:
        """Fills A and B with normal numbers."""
        self.torch.manual_seed(0)
        for operand in (self.a, self.b):
            operand.normal_()
        self.device.synchronize()

    def exact_product(self) -> torch.Tensor:
        """Fills A and B with random +1 and -1 and returns AB, which is exact: every correct kernel gives these bits."""
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = True  # exact for +1 and -1, and for sums up to 2^24 in f32
        self.fill_random()
        for operand in (self.a, self.b):
            operand.sign_()
        a = self.a if self.problem.a_layout == "row" else self.a.mT
        b = self.b if self.problem.b_layout == "row" else self.b.mT
        product = (a.float() @ b.float()).to(self.c.dtype)
        self.device.synchronize()
        return product

    def count_wrong(self, enqueue: Callable[[], None], expected: torch.Tensor) -> int:
        """Launches once with NaN in C and compares the result.

        Args:
            enqueue: enqueues the launch.
            expected: C, compared for equality.

        Returns:
            The number of elements that differ.
        """
        self.c.fill_(float("nan"))
        self.device.synchronize()
        enqueue()
        self.device.synchronize()
        return int((self.c != expected).sum())


class Duel:
    """Times kernels interleaved with a baseline.

    Args:
        timer: the GPU that they run on.
        baseline: runs between any two kernels.
        contestants: the kernels.
    """

    def __init__(self, timer: Timer, baseline: Contestant, contestants: Sequence[Contestant]) -> None:
        self.baseline = Runner(timer, baseline)
        self.runners = {contestant.name: Runner(timer, contestant) for contestant in contestants}

    def run(
        self, mode: Mode, rounds: int, names: Sequence[str] | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> dict[str, Any]:
        """Times kernels in turn, each between two runs of the baseline; the order rotates.

        Args:
            mode: length of each run, in seconds.
            rounds: at least 2.
            names: of the kernels; None for all.
            sleep: pauses, in seconds.

        Returns:
            `baseline` with its TFLOP/s, and `kernels`, by name, with TFLOP/s and ratios of every round; and spreads.
        """
        names = list(self.runners) if names is None else list(names)
        rates: dict[str, list[float]] = {name: [] for name in names}
        ratios: dict[str, list[float]] = {name: [] for name in names}
        self.baseline.measure(mode, sleep)  # brings the card to the temperature and the power of this mode
        previous_rate = self.baseline.measure(mode, sleep)["tflops"]
        baseline = [previous_rate]
        for number in range(rounds):
            first = number % max(1, len(names))
            for name in names[first:] + names[:first]:
                rate = self.runners[name].measure(mode, sleep)["tflops"]
                next_rate = self.baseline.measure(mode, sleep)["tflops"]
                rates[name].append(rate)
                ratios[name].append(2 * rate / (previous_rate + next_rate))
                baseline.append(next_rate)
                previous_rate = next_rate
        return asdict(mode) | {
            "rounds": rounds,
            "baseline": {"tflops": baseline, "tflops_spread": asdict(Spread.of(baseline))},
            "kernels": {
                name: {
                    "tflops": rates[name],
                    "tflops_spread": asdict(Spread.of(rates[name])),
                    "ratios": ratios[name],
                    "ratio_spread": asdict(Spread.of(ratios[name])),
                }
                for name in names
            },
        }

    def free(self) -> None:
        """Destroys the graphs."""
        for runner in (self.baseline, *self.runners.values()):
            runner.free()


def by_ratio(measured: dict[str, Any]) -> list[str]:
    """Returns the names of kernels, the best median ratio first.

    Args:
        measured: as `Duel.run` returns it.
    """
    kernels = measured["kernels"]
    return sorted(kernels, key=lambda name: -median(kernels[name]["ratios"]))


def describe(bundle: Bundle) -> dict[str, Any]:
    """Returns the description of a kernel in a result.

    Args:
        bundle: of the kernel.
    """
    manifest = bundle.manifest
    return {
        "pipeline": manifest.pipeline,
        "without": list(manifest.without),
        "knobs": manifest.knobs,
        "registers": manifest.registers,
        "spills": manifest.spills,
        "grid": manifest.grid,
        "block": manifest.block,
        "cluster": manifest.cluster,
        "dependent_launch": manifest.dependent_launch,
        "shared_memory": manifest.static_shared_memory + manifest.dynamic_shared_memory,
    }


def header(device: Device) -> dict[str, Any]:
    """Returns the header of a result.

    Args:
        device: the GPU.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        **origin(),
        "card": device.describe(),
    }


def measure(
    device: Device,
    bundles: dict[str, Bundle],
    modes: dict[str, tuple[Mode, int, int]],
    more: Callable[[Operands], list[Contestant]] = lambda operands: [],
) -> dict[str, Any]:
    """Checks the kernels of one problem and times those that are right.

    Args:
        device: the GPU.
        bundles: name in the result -> kernel.
        modes: name -> length of a run, rounds, and the number of kernels that run: the best of the mode before it, or
            all for 0.
        more: returns contestants that are no bundles; called when A and B hold the random data.

    Returns:
        The problem, the `baseline`, a description of every kernel, those that are `wrong` or `failed`, and what
        `Duel.run` gives by mode.
    """
    problem = next(iter(bundles.values())).manifest.problem
    result: dict[str, Any] = {"problem": asdict(problem), "kernels": {}, "wrong": {}, "failed": {}, "modes": {}}
    with Operands(device, problem) as operands:
        library = cublas(operands.buffers)
        result["baseline"] = library.provider
        expected = operands.exact_product()
        contestants = []
        for name, bundle in bundles.items():
            result["kernels"][name] = describe(bundle)
            try:
                enqueue = operands.buffers.launcher(device.load(bundle), bundle)
            except StepladderError as error:
                result["failed"][name] = error.message
                continue
            # A failure at run time leaves no context to go on in: it passes through.
            with watched(name):
                mismatches = operands.count_wrong(enqueue, expected)
            if mismatches:
                result["wrong"][name] = mismatches
            else:
                contestants.append(Contestant(name, problem.flops, enqueue))
        for kind in ("wrong", "failed"):
            for name, reason in result[kind].items():
                print(f"  {name}: {kind.upper()}: {reason}", flush=True)
        del expected
        operands.torch.cuda.empty_cache()
        operands.fill_random()
        contestants += more(operands)
        if contestants:
            duel = Duel(device, Contestant("cublas", problem.flops, library.enqueue), contestants)
            names = [contestant.name for contestant in contestants]
            for mode, (mode_settings, rounds, best) in modes.items():
                measured = duel.run(mode_settings, rounds, names[: best or None])
                result["modes"][mode] = measured
                names = by_ratio(measured)
            duel.free()
    return result


def line(result: dict[str, Any], count: int = 6) -> str:
    """Returns the ratios of the best kernels, by mode, as one line to print.

    Args:
        result: as `measure` returns it.
        count: kernels of each mode.
    """
    parts = []
    for mode, measured in result["modes"].items():
        rates = measured["baseline"]["tflops_spread"]["median"]
        best = ", ".join(
            f"{name} {measured['kernels'][name]['ratio_spread']['median']:.3f}" for name in by_ratio(measured)[:count]
        )
        parts.append(f"{mode}: cuBLAS {rates:.0f}, {best}")
    return "; ".join(parts) or "nothing to time"
