"""Times functions that concatenate tensors, beside PyTorch in eager mode.

A rotation multiplies by one table, and adds the product of the exchanged halves, one negated, and another table, as
rotary position embeddings do. Each function is checked before it is timed.

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/concatenations.py build FOLDER
    python benchmarks/concatenations.py measure FOLDER docs/results/concatenations.json

Kernels that another version of this repository built are measured in turn with the others, as `before`:

    python benchmarks/concatenations.py measure FOLDER RESULT.json --before OTHER_FOLDER
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import function_kernels
from common import main_of_parts, run
from function_texts import tensor_type

_BYTES = 2  # of an element, f16


@dataclass(frozen=True)
class Op:
    """A concatenation of two tensors of f16, or a rotation.

    Args:
        shape: of the result.
        axis: that the operands follow each other along.
        first: extent of the first operand along it.
        rotates: whether the operands are the halves of one, exchanged, as above.
    """

    shape: tuple[int, ...]
    axis: int
    first: int
    rotates: bool = False

    @property
    def name(self) -> str:
        """A line for people."""
        sizes = " x ".join(map(str, self.shape))
        return f"{sizes}, rotated" if self.rotates else f"{sizes}, axis {self.axis}: {self.first} + {self.second}"

    @property
    def second(self) -> int:
        """Extent of the second operand along the axis."""
        return self.shape[self.axis] - self.first

    @property
    def bytes(self) -> int:
        """What a kernel reads and writes."""
        return math.prod(self.shape) * _BYTES * (4 if self.rotates else 2)

    def part(self, extent: int) -> tuple[int, ...]:
        """Returns the shape of an operand.

        Args:
            extent: along the axis.
        """
        return (*self.shape[: self.axis], extent, *self.shape[self.axis + 1 :])

    @property
    def arguments(self) -> list[tuple[int, ...]]:
        """The shapes of the arguments."""
        return [self.shape] * 3 if self.rotates else [self.part(self.first), self.part(self.second)]


OPS = (
    Op((8192, 4096), 1, 2048),
    Op((16384, 128), 1, 80),
    Op((16384, 128), 1, 20),
    Op((16384, 128), 1, 63),
    Op((32, 2048, 128), 1, 2047),
    Op((4096, 4096), 0, 1000),
    Op((65536, 128), 1, 64, rotates=True),
    Op((4096, 128), 1, 64, rotates=True),
)


def _payload(op: Op) -> str:
    z = tensor_type(op.shape, "f16")
    names = ("%x", "%cos", "%sin") if op.rotates else ("%a", "%b")
    arguments = ", ".join(f"{name}: {tensor_type(shape, 'f16')}" for name, shape in zip(names, op.arguments))
    a, b = (tensor_type(op.part(extent), "f16") for extent in (op.first, op.second))
    if not op.rotates:
        body = f"  %z = tensor.concat dim({op.axis}) %a, %b : ({a}, {b}) -> {z}\n"
    else:
        offsets = [[0] * op.axis + [begin] for begin in (op.first, 0)]
        high, low = (f"%x{begin} {list(op.part(op.second))} {[1] * len(op.shape)} : {z} to {b}" for begin in offsets)
        body = f"""  %high = tensor.extract_slice {high}
  %low = tensor.extract_slice {low}
  %half = tensor.empty() : {b}
  %minus = linalg.negf ins(%high : {b}) outs(%half : {b}) -> {b}
  %turned = tensor.concat dim({op.axis}) %minus, %low : ({b}, {b}) -> {z}
  %empty = tensor.empty() : {z}
  %p = linalg.mul ins(%x, %cos : {z}, {z}) outs(%empty : {z}) -> {z}
  %q = linalg.mul ins(%turned, %sin : {z}, {z}) outs(%empty : {z}) -> {z}
  %z = linalg.add ins(%p, %q : {z}, {z}) outs(%empty : {z}) -> {z}
"""
    return f"func.func @op({arguments}) -> {z} {{\n{body}  return %z : {z}\n}}\n"


def _prepare(op: Op) -> function_kernels.Measured:
    """Returns the arguments of a function, small integers, whose results are exact, and PyTorch's call."""
    import torch  # pyright: ignore[reportMissingImports]

    operands = [torch.randint(-9, 10, shape, device="cuda").half() for shape in op.arguments]
    result, out = (torch.empty(op.shape, dtype=torch.float16, device="cuda") for _ in range(2))

    def library() -> list[torch.Tensor]:
        if not op.rotates:
            return [torch.cat(operands, op.axis, out=result)]
        x, cos, sin = operands
        low, high = x.split([op.first, op.second], op.axis)
        return [x * cos + torch.cat([-high, low], op.axis) * sin]

    return function_kernels.Measured(operands, [out], library)


CASES = tuple(function_kernels.Case(op.name, op.bytes, _payload(op), partial(_prepare, op)) for op in OPS)
make_parser = partial(function_kernels.parser_for, __doc__, CASES)
main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
