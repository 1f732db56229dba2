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

import math
from dataclasses import dataclass
from functools import partial

import function_kernels
from common import main_of_parts, run
from function_texts import tensor_type

_TORCH_TYPES = {"f16": "float16", "f32": "float32", "i8": "int8"}
_BYTES = {"f16": 2, "f32": 4, "i8": 1}


@dataclass(frozen=True)
class Op:
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


OPS = (
    Op((8192, 8192), (1, 0)),
    Op((4096, 1024), (1, 0)),
    Op((512, 512), (1, 0)),
    Op((1368, 48, 56), (0, 2, 1)),
    Op((16, 512, 1000), (0, 2, 1)),
    Op((8, 64, 56, 56), (0, 2, 3, 1)),
    Op((8, 56, 56, 64), (0, 3, 1, 2)),
    Op((1001, 1002), (1, 0)),
    Op((2048, 4096), (1, 0), "f32"),
    Op((4096, 4096), (1, 0), "i8"),
    Op((4096, 4096), (1, 0), adds=True),
    Op((1024, 512), (1, 0), adds=True),
    Op((256, 1024), (1, 0), adds=True),
    Op((64, 4096), (1, 0), adds=True),
    Op((128, 512), (1, 0), adds=True),
    Op((4096, 1024), (0, 1), margin=1024),
    Op((4096, 1024), (0, 1), margin=4),
    Op((4096, 1028), (0, 1)),
)


def _payload(op: Op) -> str:
    loops = [f"d{loop}" for loop in range(len(op.shape))]
    own = ", ".join(loops[op.axes.index(axis)] for axis in range(len(op.shape)))
    result, part, buffer = (tensor_type(shape, op.element) for shape in (op.result, op.shape, op.buffer))
    identity = f"affine_map<({', '.join(loops)}) -> ({', '.join(loops)})>"
    maps = [f"affine_map<({', '.join(loops)}) -> ({own})>", *([identity] if op.adds else []), identity]
    offsets = ", ".join([*["0"] * (len(op.shape) - 1), str(op.margin)])
    body = f"    %t = arith.addf %v, %w : {op.element}\n" if op.adds else ""
    return f"""func.func @op(%x: {buffer}{f", %y: {result}" if op.adds else ""}) -> {result} {{
  %part = tensor.extract_slice %x[{offsets}] {list(op.shape)} {[1] * len(op.shape)} : {buffer} to {part}
  %empty = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = [{", ".join(['"parallel"'] * len(loops))}]}}
      ins(%part{", %y" if op.adds else ""} : {part}{f", {result}" if op.adds else ""}) outs(%empty : {result}) {{
  ^bb0(%v: {op.element}{f", %w: {op.element}" if op.adds else ""}, %out: {op.element}):
{body}    linalg.yield {"%t" if op.adds else "%v"} : {op.element}
  }} -> {result}
  return %r : {result}
}}
"""


def _prepare(op: Op) -> function_kernels.Measured:
    """Returns the arguments of a function, small integers, whose sums are exact, and PyTorch's call."""
    import torch  # pyright: ignore[reportMissingImports]

    shapes = [op.buffer, *([op.result] if op.adds else [])]
    type_ = getattr(torch, _TORCH_TYPES[op.element])
    operands = [torch.randint(-9, 10, shape, device="cuda").to(type_) for shape in shapes]
    view = operands[0][..., op.margin :].permute(op.axes)
    result, out = (torch.empty(op.result, dtype=view.dtype, device="cuda") for _ in range(2))

    def library() -> list[torch.Tensor]:
        return [torch.add(view, operands[1], out=result) if op.adds else result.copy_(view)]

    return function_kernels.Measured(operands, [out], library)


CASES = tuple(function_kernels.Case(op.name, op.bytes, _payload(op), partial(_prepare, op)) for op in OPS)
make_parser = partial(function_kernels.parser_for, __doc__, CASES)
main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
