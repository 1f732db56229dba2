"""Checks and times the kernels that `model_choice.py` and `decode.py` build, in turn with cuBLAS, on the GPU."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import torch

    from stepladder.measure.timing import Mode, Runner
    from stepladder.runtime.bundle import Problem
    from stepladder.runtime.device import Buffer
    from stepladder.runtime.launch import MatmulBuffers

ROUNDS, SECONDS = 4, 0.004
# Largest difference of C from that of cuBLAS, as a fraction of its largest element: the order of additions differs.
TOLERANCE = {"bf16": 2e-2, "f32": 1e-3}
BYTES = {"bf16": 2, "f16": 2, "f32": 4}


class Candidate(Protocol):
    """A built kernel."""

    @property
    def path(self) -> Path:
        """Returns the folder of the bundle."""
        ...

    @property
    def title(self) -> str:
        """Returns what messages call the kernel."""
        ...


_Built = TypeVar("_Built", bound=Candidate)


def bytes_of(problem: Problem) -> int:
    """Returns the bytes of A, B and C.

    Args:
        problem: its sizes and types.
    """
    m, n, k = problem.m, problem.n, problem.k
    return (m * k + k * n) * BYTES[problem.a_type] + m * n * BYTES[problem.c_type]


def in_turn(calls: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Returns a function that calls the next of several functions each time.

    Args:
        calls: the functions.
    """
    following = itertools.cycle(calls)
    return lambda: next(following)()


class Gpu:
    """The GPU: checks and times the kernels of one problem after another.

    Args:
        rotated_bytes: launches go through as many copies of the operands as hold this many bytes, so that a copy is no
            longer in the L2 cache at its next launch; 0 for one copy.
        keeps_early: whether kernels that load weights early start while the launch before ends, as no launch here
            writes weights.
    """

    def __init__(self, rotated_bytes: float = 0.0, *, keeps_early: bool = True) -> None:
        import torch

        from stepladder.runtime.device import Device

        torch.zeros(1, device="cuda")
        self.torch, self.device = torch, Device()
        self.rotated_bytes = rotated_bytes
        self.keeps_early = keeps_early

    def copied_gb_per_second(self) -> float:
        """Returns the rate of memory in a copy of 2 GiB, bytes read and written."""
        source = self.torch.zeros(1 << 30, dtype=self.torch.float16, device="cuda")
        target = self.torch.empty_like(source)
        rates = []
        for _ in range(5):
            events = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            target.copy_(source)
            events[1].record()
            self.torch.cuda.synchronize()
            rates.append(2 * source.numel() * 2 / events[0].elapsed_time(events[1]) / 1e6)
        del source, target
        self.torch.cuda.empty_cache()
        return round(statistics.median(rates), 1)

    def _view(self, buffer: Buffer, shape: tuple[int, int], element: str) -> torch.Tensor:
        """Returns a buffer as a tensor of its elements."""
        forms = {"bf16": ("<i2", self.torch.bfloat16), "f16": ("<f2", None), "f32": ("<f4", None)}
        form, viewed = forms[element]

        interface = {"shape": shape, "typestr": form, "version": 2, "data": (buffer.address, False)}
        tensor = self.torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda")
        return tensor if viewed is None else tensor.view(viewed)

    def result(self, buffers: MatmulBuffers) -> torch.Tensor:
        """Returns a copy of C, as f32.

        Args:
            buffers: of the problem.
        """
        problem = buffers.problem
        return self._view(buffers.c, (problem.m, problem.n), problem.c_type).to(self.torch.float32, copy=True)

    def fill(self, buffers: MatmulBuffers) -> None:
        """Fills A and B with normally distributed numbers.

        Args:
            buffers: of the problem.
        """
        problem = buffers.problem
        for buffer, shape, element in (
            (buffers.a, problem.a_shape, problem.a_type),
            (buffers.b, problem.b_shape, problem.b_type),
        ):
            self._view(buffer, shape, element).normal_()
        self.torch.cuda.synchronize()

    def _poison(self, buffer: Buffer) -> None:
        """Fills C with NaN."""
        self.torch.as_tensor(buffer, device="cuda").fill_(0xFF)
        self.torch.cuda.synchronize()

    def measure(self, built: Sequence[_Built]) -> Iterator[tuple[_Built, float, float]]:
        """Yields the correct kernels of a problem, with their median time and that of cuBLAS in us.

        Args:
            built: kernels of one problem.
        """
        from stepladder.measure.baselines import cublas
        from stepladder.measure.timing import Contestant, Mode, Runner
        from stepladder.runtime.bundle import read_bundle
        from stepladder.runtime.errors import StepladderError
        from stepladder.runtime.launch import MatmulBuffers

        problem = read_bundle(built[0].path).manifest.problem
        mode = Mode(SECONDS, 0.0)
        with ExitStack() as stack:
            count = max(1, math.ceil(self.rotated_bytes / bytes_of(problem)))
            copies = [stack.enter_context(MatmulBuffers(self.device, problem)) for _ in range(count)]
            libraries, expected = [], []
            for buffers in copies:
                self.fill(buffers)
                libraries.append(cublas(buffers).enqueue)
                libraries[-1]()
                self.device.synchronize()
                expected.append(self.result(buffers))
            reference = Runner(self.device, Contestant("cublas", problem.flops, in_turn(libraries), cycle=count))
            for one in built:
                try:
                    bundle = read_bundle(one.path)
                    kernel = self.device.load(bundle)
                    launches = [buffers.launcher(kernel, bundle, keeps_early=self.keeps_early) for buffers in copies]
                    wrong = [
                        message
                        for buffers, launch, wanted in zip(copies, launches, expected)
                        if (message := self.error(buffers, launch, wanted))
                    ]
                    if wrong:
                        print(f"{one.title}: WRONG by {wrong[0]}", flush=True)
                        continue
                    own = Runner(self.device, Contestant("own", problem.flops, in_turn(launches), cycle=count))
                    yield one, *self._times(own, reference, mode)
                    own.free()
                except StepladderError as error:
                    print(f"{one.title}: {error.message}", flush=True)
            reference.free()

    def error(self, buffers: MatmulBuffers, launch: Callable[[], None], expected: torch.Tensor) -> str:
        """Runs a kernel once; returns by how much its result is wrong, or an empty string.

        Args:
            buffers: of the problem.
            launch: enqueues the kernel.
            expected: C of cuBLAS.
        """
        limit = TOLERANCE[buffers.problem.c_type] * expected.abs().max().item()
        self._poison(buffers.c)
        launch()
        self.device.synchronize()
        error = (self.result(buffers) - expected).abs().max().item()
        return "" if error <= limit else f"{error:.3g} of {limit:.3g}"

    @staticmethod
    def _times(own: Runner, reference: Runner, mode: Mode) -> tuple[float, float]:
        """Returns the median times in us, after a first round that does not count."""
        times: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            measured = [runner.measure(mode, lambda seconds: None) for runner in (own, reference)]
            times.append(tuple(one["milliseconds"] / one["launches"] * 1e3 for one in measured))
        first, second = zip(*times[1:])
        return statistics.median(first), statistics.median(second)
