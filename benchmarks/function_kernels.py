"""Builds functions that are no matmuls, and times their kernels beside PyTorch's, in two halves.

A benchmark gives a payload for each of its cases, and where they are measured, PyTorch's call and the operands. Each
kernel is checked before it is timed. Contestants run in turn.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duel
import stepladder
from common import write_result
from halves import parser_of_parts
from stepladder.measure.timing import MODES, Contestant
from stepladder.runtime.device import Device
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.processes import end_with_pool

PIPELINE, TARGET = "auto", "sm_90a"


class Measured(NamedTuple):
    """A case on the machine with the GPU.

    Attributes:
        operands: arguments of the function, tensors of PyTorch.
        outs: tensors that its results are written to.
        library: PyTorch's computation of the results, to tensors of its own; returns them.
        tolerance: of the results, relative to their largest magnitude; 0 where they are exact.
    """

    operands: Sequence[Any]
    outs: Sequence[Any]
    library: Callable[[], Sequence[Any]]
    tolerance: float = 0.0


class Case(NamedTuple):
    """What is measured.

    Attributes:
        name: a line for people.
        bytes: what a kernel reads and writes at least.
        payload: text of the function.
        prepare: makes the operands, and PyTorch's call.
    """

    name: str
    bytes: int
    payload: str
    prepare: Callable[[], Measured]


def _build(text: str, path: Path) -> None:
    from stepladder.pipeline.any_payload import build_any
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    with mlir_context():
        build_any(text, "op.mlir", Request(PIPELINE, {"target": TARGET}, tuned=True)).write(path)


def build(cases: Sequence[Case], args: argparse.Namespace) -> None:
    """Builds the kernels of all cases.

    Args:
        cases: by the number of which the bundles are named.
        args: of the command line.
    """
    args.folder.mkdir(parents=True, exist_ok=True)
    paths = [args.folder / str(number) for number in range(len(cases))]
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        list(executor.map(_build, [case.payload for case in cases], paths))


def _calls(case: Case, paths: dict[str, Path], device: Device) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yields PyTorch's call and those of bundles, by name; each has been checked.

    Raises:
        StepladderError: the numbers are wrong.
    """
    import torch  # pyright: ignore[reportMissingImports]

    measured = case.prepare()
    outs = list(measured.outs)
    stream = torch.cuda.ExternalStream(device.stream, device=outs[0].device)

    def library() -> None:
        with torch.cuda.stream(stream):
            measured.library()

    library()
    device.synchronize()
    expected = [tensor.double() for tensor in measured.library()]
    torch.cuda.synchronize()
    yield "pytorch", library
    for name, path in paths.items():
        call = partial(
            stepladder.load(path), *measured.operands, out=outs[0] if len(outs) == 1 else outs, stream=stream
        )
        for out in outs:
            out.zero_()
        torch.cuda.synchronize()
        call()
        device.synchronize()
        for out, right in zip(outs, expected):
            error = float((out.double() - right).abs().max() / right.abs().max().clamp(min=1e-30))
            if not error <= measured.tolerance:
                raise StepladderError(f"{case.name}: wrong by {error} of the largest number", status=FAILED)
        yield name, call


def time_all(cases: Sequence[Case], args: argparse.Namespace) -> None:
    """Times the kernels of all cases, and writes the result.

    Args:
        cases: whose bundles were built.
        args: of the command line.
    """
    folders = {"own": args.folder} | ({"before": args.before} if args.before else {})
    with Device() as device:
        result: dict[str, Any] = duel.header(device) | {"rounds": args.rounds, "ops": []}
        for number, case in enumerate(cases):
            paths = {name: folder / str(number) for name, folder in folders.items()}
            contestants = [Contestant(name, case.bytes, call) for name, call in _calls(case, paths, device)]
            contest = duel.Duel(device, contestants[0], contestants[1:])
            try:
                measured = contest.run(MODES["burst"], args.rounds)
            finally:
                contest.free()
            # A contestant's rate is in 10^12 bytes a second, as it is given its bytes in place of its operations.
            rate = measured["baseline"]["tflops_spread"]["median"]
            ratios = {name: entry["ratio_spread"]["median"] for name, entry in measured["kernels"].items()}
            times = {name: case.bytes / (rate * ratio) * 1e-6 for name, ratio in {"pytorch": 1.0, **ratios}.items()}
            result["ops"].append({"op": case.name, "bytes": case.bytes, "microseconds": times})
            print(f"{case.name}: " + ", ".join(f"{name} {time:.1f} us" for name, time in times.items()), flush=True)
            write_result(args.result, result)


def parser_for(description: str | None, cases: Sequence[Case]) -> argparse.ArgumentParser:
    """Returns the parser of a benchmark's command line.

    Args:
        description: its docstring.
        cases: that it has.
    """
    parser, _, measuring = parser_of_parts(description, partial(build, cases), partial(time_all, cases))
    measuring.add_argument(
        "--before", type=Path, metavar="FOLDER", help="kernels of another version, in turn with them"
    )
    return parser
