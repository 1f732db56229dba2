"""Times linear layers that return a second result, beside PyTorch in eager mode.

Beside the output y = x W^T, rounded to f16, a layer returns its activation, the sum of each row, before or after y is
rounded, or the maximum of each column: what a backward pass, a norm or a quantization reads next. Each function is
checked before it is timed.

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/several_results.py build FOLDER
    python benchmarks/several_results.py measure FOLDER docs/results/several_results.json

Kernels that another version of this repository built are measured in turn with the others, as `before`:

    python benchmarks/several_results.py measure FOLDER RESULT.json --before OTHER_FOLDER
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import function_kernels
from common import main_of_parts, run
from function_texts import generic, tensor_type

ACTIVATION, ROW_SUMS, COLUMN_MAXIMA, EXACT_SUMS = "ReLU", "row sums", "column maxima", "row sums before rounding"
_SIZES = ((32, 14336, 4096), (512, 4096, 4096), (2048, 4096, 1024), (8192, 3072, 768), (8192, 8192, 4096))


@dataclass(frozen=True)
class Layer:
    """A linear layer in f16 with f32 accumulators.

    Args:
        second: what it returns beside its output.
        m, n, k: rows, features of its output, and features of its input.
    """

    second: str
    m: int
    n: int
    k: int

    @property
    def name(self) -> str:
        """A line for people."""
        return f"{self.m} x {self.n} x {self.k} and {self.second}"

    @property
    def second_shape(self) -> tuple[int, ...]:
        """The shape of the second result."""
        return {ACTIVATION: (self.m, self.n), COLUMN_MAXIMA: (self.n,)}.get(self.second, (self.m,))

    @property
    def second_type(self) -> str:
        """The element type of the second result."""
        return "f16" if self.second == ACTIVATION else "f32"

    @property
    def bytes(self) -> int:
        """What a kernel reads and writes at least."""
        elements = self.m * self.k + self.n * self.k + self.m * self.n
        return 2 * (elements + (self.m * self.n if self.second == ACTIVATION else 0))


_SECOND = (ACTIVATION, ROW_SUMS, COLUMN_MAXIMA, EXACT_SUMS)
LAYERS = tuple(Layer(second, *sizes) for second in _SECOND for sizes in _SIZES)


def _multiplied(names: list[str], so_far: str) -> str:
    x, w = names
    return f"    %a = arith.extf {x} : f16 to f32\n    %b = arith.extf {w} : f16 to f32\n" + (
        f"    %p = arith.mulf %a, %b : f32\n    %r = arith.addf {so_far}, %p : f32\n"
    )


def _rounded(names: list[str], _: str) -> str:
    return f"    %r = arith.truncf {names[0]} : f32 to f16\n"


def _relu(names: list[str], _: str) -> str:
    return f"    %zero = arith.constant 0.0 : f16\n    %r = arith.maximumf {names[0]}, %zero : f16\n"


def _folded(op: str, names: list[str], so_far: str) -> str:
    return f"    %a = arith.extf {names[0]} : f16 to f32\n    %r = arith.{op} {so_far}, %a : f32\n"


def _added(names: list[str], so_far: str) -> str:
    return f"    %r = arith.addf {so_far}, {names[0]} : f32\n"


def _payload(layer: Layer) -> str:
    m, n, k = (layer.m, "parallel"), (layer.n, "parallel"), (layer.k, "reduction")
    x, w, y = (tensor_type(shape, "f16") for shape in ((layer.m, layer.k), (layer.n, layer.k), (layer.m, layer.n)))
    second = tensor_type(layer.second_shape, layer.second_type)
    inputs = [("%x", "f16", (0, 2)), ("%w", "f16", (1, 2))]
    text = generic("s", [m, n, k], inputs, ((0, 1), "f32", "0.0"), _multiplied)
    text += generic("y", [m, n], [("%s", "f32", (0, 1))], ((0, 1), "f16", ""), _rounded)
    of_y = [("%y", "f16", (0, 1))]
    if layer.second == ACTIVATION:
        text += generic("z", [m, n], of_y, ((0, 1), "f16", ""), _relu)
    elif layer.second == EXACT_SUMS:
        text += generic("z", [m, (layer.n, "reduction")], [("%s", "f32", (0, 1))], ((0,), "f32", "0.0"), _added)
    elif layer.second == ROW_SUMS:
        text += generic("z", [m, (layer.n, "reduction")], of_y, ((0,), "f32", "0.0"), partial(_folded, "addf"))
    else:
        columns = [(layer.m, "reduction"), n]
        text += generic("z", columns, of_y, ((1,), "f32", "0xFF800000"), partial(_folded, "maximumf"))
    return f"func.func @layer(%x: {x}, %w: {w}) -> ({y}, {second}) {{\n{text}  return %y, %z : {y}, {second}\n}}\n"


def _prepare(layer: Layer) -> function_kernels.Measured:
    """Returns the arguments of a function, small integers, whose results are exact, and PyTorch's call."""
    import torch  # pyright: ignore[reportMissingImports]

    x, w = (torch.randint(-1, 2, (rows, layer.k), device="cuda").half() for rows in (layer.m, layer.n))
    y = torch.empty((layer.m, layer.n), dtype=torch.float16, device="cuda")
    element = torch.float16 if layer.second == ACTIVATION else torch.float32
    out = torch.empty(layer.second_shape, dtype=element, device="cuda")

    def library() -> list[Any]:
        product = torch.nn.functional.linear(x, w)
        if layer.second == ACTIVATION:
            return [product, product.relu()]
        if layer.second != COLUMN_MAXIMA:
            return [product, product.sum(-1, dtype=torch.float32)]
        return [product, product.amax(0)]

    return function_kernels.Measured([x, w], [y, out], library)


CASES = tuple(
    function_kernels.Case(layer.name, layer.bytes, _payload(layer), partial(_prepare, layer)) for layer in LAYERS
)
make_parser = partial(function_kernels.parser_for, __doc__, CASES)
main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
