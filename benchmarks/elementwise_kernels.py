"""Times functions of one elementwise op whose operands are transposed or parts of buffers, beside PyTorch.

Such ops are what is left of a function when its matmuls have taken the others. Each function is checked before it is
timed; PyTorch transposes by `contiguous()` of a permuted view.

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/elementwise_kernels.py build FOLDER
    python benchmarks/elementwise_kernels.py measure FOLDER docs/results/elementwise_kernels.json

Kernels that another version of this repository built are measured in turn with the others, as `before`:

    python benchmarks/elementwise_kernels.py measure FOLDER RESULT.json --before OTHER_FOLDER
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duel
import stepladder
from common import main_of_parts, run, write_result
from halves import parser_of_parts
from stepladder.measure.timing import MODES, Contestant
from stepladder.runtime.device import Device
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.processes import end_with_pool

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

PIPELINE, TARGET = "auto", "sm_90a"
_TORCH_TYPES = {"f16": "float16", "f32": "float32", "i8": "int8"}
_BYTES = {"f16": 2, "f32": 4, "i8": 1}


@dataclass(frozen=True)
class Case:
    """An elementwise op.

    Args:
        shape: of the operand.
        axes: of the operand, in the order in which the result has them.
        element: type of all elements.
        adds: whether a second operand, like the result, is added.
        margin: columns of the operand's buffer before those that are read.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    element: str = "f16"
    adds: bool = False
    margin: int = 0

    @property
    def name(self) -> str:
        """A line for people."""
        order = "" if self.axes == tuple(sorted(self.axes)) else f", axes {' '.join(map(str, self.axes))}"
        ops = ", added to a matrix" if self.adds else ""
        part = f", columns from {self.margin} on" if self.margin else ""
        return f"{' x '.join(map(str, self.shape))} {self.element}{order}{part}{ops}"

    @property
    def bytes(self) -> int:
        """What a kernel reads and writes."""
        return math.prod(self.shape) * _BYTES[self.element] * (3 if self.adds else 2)

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def buffer(self) -> tuple[int, ...]:
        """The shape of the operand's buffer."""
        return (*self.shape[:-1], self.shape[-1] + self.margin)


CASES = (
    Case((8192, 8192), (1, 0)),
    Case((4096, 1024), (1, 0)),
    Case((512, 512), (1, 0)),
    Case((1368, 48, 56), (0, 2, 1)),
    Case((16, 512, 1000), (0, 2, 1)),
    Case((8, 64, 56, 56), (0, 2, 3, 1)),
    Case((8, 56, 56, 64), (0, 3, 1, 2)),
    Case((1001, 1002), (1, 0)),
    Case((2048, 4096), (1, 0), "f32"),
    Case((4096, 4096), (1, 0), "i8"),
    Case((4096, 4096), (1, 0), adds=True),
    Case((1024, 512), (1, 0), adds=True),
    Case((256, 1024), (1, 0), adds=True),
    Case((64, 4096), (1, 0), adds=True),
    Case((128, 512), (1, 0), adds=True),
    Case((4096, 1024), (0, 1), margin=1024),
    Case((4096, 1024), (0, 1), margin=4),
    Case((4096, 1028), (0, 1)),
)


def _type(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def payload(case: Case) -> str:
    """Returns the function of an op.

    Args:
        case: the op.
    """
    loops = [f"d{loop}" for loop in range(len(case.shape))]
    own = ", ".join(loops[case.axes.index(axis)] for axis in range(len(case.shape)))
    result, part, buffer = (_type(shape, case.element) for shape in (case.result, case.shape, case.buffer))
    identity = f"affine_map<({', '.join(loops)}) -> ({', '.join(loops)})>"
    maps = [f"affine_map<({', '.join(loops)}) -> ({own})>", *([identity] if case.adds else []), identity]
    offsets = ", ".join([*["0"] * (len(case.shape) - 1), str(case.margin)])
    body = f"    %t = arith.addf %v, %w : {case.element}\n" if case.adds else ""
    return f"""func.func @op(%x: {buffer}{f", %y: {result}" if case.adds else ""}) -> {result} {{
  %part = tensor.extract_slice %x[{offsets}] {list(case.shape)} {[1] * len(case.shape)} : {buffer} to {part}
  %empty = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = [{", ".join(['"parallel"'] * len(loops))}]}}
      ins(%part{", %y" if case.adds else ""} : {part}{f", {result}" if case.adds else ""}) outs(%empty : {result}) {{
  ^bb0(%v: {case.element}{f", %w: {case.element}" if case.adds else ""}, %out: {case.element}):
{body}    linalg.yield {"%t" if case.adds else "%v"} : {case.element}
  }} -> {result}
  return %r : {result}
}}
"""


def _build(case: Case, path: Path) -> None:
    from stepladder.pipeline.any_payload import build_any
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    with mlir_context():
        build_any(payload(case), "op.mlir", Request(PIPELINE, {"target": TARGET}, tuned=True)).write(path)


def build(args: argparse.Namespace) -> None:
    """Builds the kernels.

    Args:
        args: of the command line.
    """
    args.folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        list(executor.map(_build, CASES, (args.folder / str(number) for number in range(len(CASES)))))


def _operands(case: Case) -> list[torch.Tensor]:
    """Returns the arguments of a function: small integers, whose sums are exact."""
    import torch  # pyright: ignore[reportMissingImports]

    shapes = [case.buffer, *([case.result] if case.adds else [])]
    type_ = getattr(torch, _TORCH_TYPES[case.element])
    return [torch.randint(-9, 10, shape, device="cuda").to(type_) for shape in shapes]


def _calls(case: Case, paths: dict[str, Path], device: Device) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yields PyTorch's call and those of bundles, by name; each has been checked.

    Raises:
        StepladderError: the numbers are wrong.
    """
    import torch  # pyright: ignore[reportMissingImports]

    operands = _operands(case)
    view = operands[0][..., case.margin :].permute(case.axes)
    out = torch.empty(case.result, dtype=view.dtype, device="cuda")
    stream = torch.cuda.ExternalStream(device.stream, device=out.device)

    def library() -> None:
        with torch.cuda.stream(stream):
            torch.add(view, operands[1], out=out) if case.adds else out.copy_(view)

    library()
    device.synchronize()
    expected = out.clone()
    yield "pytorch", library
    for name, path in paths.items():
        call = partial(stepladder.load(path), *operands, out=out, stream=stream)
        out.zero_()
        torch.cuda.synchronize()
        call()
        device.synchronize()
        if not torch.equal(out, expected):
            raise StepladderError(f"{case.name}: wrong", status=FAILED)
        yield name, call


def time_all(args: argparse.Namespace) -> None:
    """Times the kernels, and writes the result.

    Args:
        args: of the command line.
    """
    folders = {"own": args.folder} | ({"before": args.before} if args.before else {})
    with Device() as device:
        result: dict[str, Any] = duel.header(device) | {"rounds": args.rounds, "ops": []}
        for number, case in enumerate(CASES):
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


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser, _, measuring = parser_of_parts(__doc__, build, time_all)
    measuring.add_argument(
        "--before", type=Path, metavar="FOLDER", help="kernels of another version, in turn with them"
    )
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
