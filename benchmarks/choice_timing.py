"""Checks and times the kernels that `model_choice.py` and `decode.py` build, in turn with cuBLAS, on the GPU."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

    from stepladder.measure.timing import Mode, Runner
    from stepladder.runtime.bundle import Problem
    from stepladder.runtime.device import Buffer
    from stepladder.runtime.launch import MatmulBuffers

ROUNDS, SECONDS = 4, 0.004
# Largest difference of C from that of cuBLAS, as a fraction of its largest element: the order of additions differs.
TOLERANCE = {"bf16": 2e-2, "f32": 1e-3, "i32": 0.0}
# The same of products of fp8, whose sums have about 14 bits.
FP8_TOLERANCE = 2e-2


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


@dataclass(frozen=True)
class Copies:
    """Copies of the operands of a problem, with random numbers; a member for each.

    Attributes:
        buffers: of A, B and C.
        libraries: what enqueues cuBLAS.
        expected: C of cuBLAS, as f32.
    """

    buffers: Sequence[MatmulBuffers]
    libraries: Sequence[Callable[[], None]]
    expected: Sequence[torch.Tensor]


class Gpu:
    """The GPU: checks and times the kernels of one problem after another.

    Args:
        rotated_bytes: launches go through as many copies of the operands as hold this many bytes, so that a copy is no
            longer in the L2 cache at its next launch; 0 for one copy.
        keeps_early: whether kernels that load weights early start while the launch before ends, as no launch here
            writes weights.
    """

    def __init__(self, rotated_bytes: float = 0.0, *, keeps_early: bool = True) -> None:
        import torch  # pyright: ignore[reportMissingImports]

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

    def _view(self, buffer: Buffer, shape: tuple[int, ...], element: str) -> torch.Tensor:
        """Returns a buffer as a tensor of its elements."""
        forms = {
            "bf16": ("<i2", self.torch.bfloat16),
            "f16": ("<f2", None),
            "f32": ("<f4", None),
            "i8": ("|i1", None),
            "i32": ("<i4", None),
            "f8E4M3FN": ("|u1", self.torch.float8_e4m3fn),
        }
        form, viewed = forms[element]

        interface = {"shape": shape, "typestr": form, "version": 2, "data": (buffer.address, False)}
        tensor = self.torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda")
        return tensor if viewed is None else tensor.view(viewed)

    def _result(self, buffers: MatmulBuffers) -> torch.Tensor:
        """Returns a copy of C, as f32."""
        problem = buffers.problem
        result_type = self.torch.float64 if problem.c_type == "i32" else self.torch.float32
        return self._view(buffers.c, (problem.m, problem.n), problem.c_type).to(result_type, copy=True)

    def _fill(self, buffers: MatmulBuffers) -> None:
        """Fills A and B with normally distributed numbers; of integers, with a deviation of 32."""
        problem = buffers.problem
        for buffer, shape, element in (
            (buffers.a, problem.a_shape, problem.a_type),
            (buffers.b, problem.b_shape, problem.b_type),
        ):
            view = self._view(buffer, shape, element)
            if element in ("i8", "f8E4M3FN"):
                numbers = self.torch.randn(shape, device="cuda")
                view.copy_((numbers * 32).round().clamp(-127, 127) if element == "i8" else numbers)
            else:
                view.normal_()
        self.torch.cuda.synchronize()

    def _poison(self, buffer: Buffer) -> None:
        """Fills C with NaN."""
        self.torch.as_tensor(buffer, device="cuda").fill_(0xFF)
        self.torch.cuda.synchronize()

    def measure(self, built: Sequence[_Built], *, fast_accum: bool = False) -> Iterator[tuple[_Built, float, float]]:
        """Yields the correct kernels of a problem, with their median time and that of cuBLAS in us.

        Args:
            built: kernels of one problem.
            fast_accum: as in `baselines.cublas`.
        """
        from stepladder.measure.rotation import in_turn
        from stepladder.measure.timing import Contestant, Mode, Runner
        from stepladder.runtime.bundle import read_bundle
        from stepladder.runtime.errors import StepladderError

        problem = read_bundle(built[0].path).manifest.problem
        mode = Mode(SECONDS, 0.0)
        with ExitStack() as stack:
            copies = self.copies(stack, problem, self.rotated_bytes, fast_accum=fast_accum)
            count = len(copies.buffers)
            reference = Runner(self.device, Contestant("cublas", problem.flops, in_turn(copies.libraries), cycle=count))
            for candidate in built:
                try:
                    launches = self.checked(copies, candidate)
                    runner = Runner(self.device, Contestant("own", problem.flops, in_turn(launches), cycle=count))
                    yield candidate, *self._times(runner, reference, mode)
                    runner.free()
                except StepladderError as error:
                    print(f"{candidate.title}: {error.message}", flush=True)
            reference.free()

    def copies(self, stack: ExitStack, problem: Problem, rotated_bytes: float, *, fast_accum: bool = False) -> Copies:
        """Returns copies of the operands, of which cuBLAS has computed C.

        Args:
            stack: that frees the buffers.
            problem: of a matmul.
            rotated_bytes: how many bytes they hold at least, in one copy or more.
            fast_accum: as in `baselines.cublas`.
        """
        from stepladder.measure.baselines import cublas
        from stepladder.measure.rotation import operand_bytes
        from stepladder.runtime.launch import MatmulBuffers

        count = max(1, math.ceil(rotated_bytes / operand_bytes(problem)))
        buffers = [stack.enter_context(MatmulBuffers(self.device, problem)) for _ in range(count)]
        libraries, expected = [], []
        for copy in buffers:
            self._fill(copy)
            libraries.append(cublas(copy, fast_accum=fast_accum).enqueue)
            libraries[-1]()
            self.device.synchronize()
            expected.append(self._result(copy))
        return Copies(buffers, libraries, expected)

    def checked(self, copies: Copies, built: Candidate) -> list[Callable[[], None]]:
        """Returns what enqueues a kernel, for each copy of the operands, after a check of each result.

        Args:
            copies: of the operands.
            built: the kernel.

        Raises:
            StepladderError: a result is wrong, or the kernel cannot be launched.
        """
        from stepladder.runtime.bundle import read_bundle
        from stepladder.runtime.errors import StepladderError

        bundle = read_bundle(built.path)
        kernel = self.device.load(bundle)
        launches = [copy.launcher(kernel, bundle, keeps_early=self.keeps_early) for copy in copies.buffers]
        for buffers, launch, expected in zip(copies.buffers, launches, copies.expected):
            if error := self._error(buffers, launch, expected):
                raise StepladderError(f"WRONG by {error}")
        return launches

    def _error(self, buffers: MatmulBuffers, launch: Callable[[], None], expected: torch.Tensor) -> str:
        """Runs a kernel once; returns by how much its result is wrong, or an empty string."""
        problem = buffers.problem
        share = FP8_TOLERANCE if problem.a_type.startswith("f8") else TOLERANCE[problem.c_type]
        limit = share * expected.abs().max().item()
        self._poison(buffers.c)
        launch()
        self.device.synchronize()
        error = (self._result(buffers) - expected).abs().max().item()
        return "" if error <= limit else f"{error:.3g} of {limit:.3g}"

    @staticmethod
    def _times(own: Runner, reference: Runner, mode: Mode) -> tuple[float, float]:
        """Returns the median times in us, after a first round that does not count."""
        times: list[list[float]] = []
        for _ in range(ROUNDS):
            measured = [runner.measure(mode, lambda seconds: None) for runner in (own, reference)]
            times.append([sample["milliseconds"] / sample["launches"] * 1e3 for sample in measured])
        first, second = zip(*times[1:])
        return statistics.median(first), statistics.median(second)
