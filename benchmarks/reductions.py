"""Times reductions with few results and many terms, alone and with what follows them, beside PyTorch in eager mode.

Examples are the sum of all elements of a matrix, the largest magnitude by which a tensor is quantized, sums over the
channels of images, norms of groups of channels, indices of maxima, and poolings. Each function is checked with
PyTorch's numbers before it is timed.

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/reductions.py build FOLDER
    python benchmarks/reductions.py measure FOLDER docs/results/reductions.json

Kernels that another version of this repository built are measured in turn with the others, as `before`:

    python benchmarks/reductions.py measure FOLDER RESULT.json --before OTHER_FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import function_kernels
from common import main_of_parts, run
from function_texts import generic, tensor_type

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

# Bodies of reductions: what is folded, of `%w`, the element in f32, and how.
_FOLDS = {
    "sum": ("", "%w", "addf", "0.0"),
    "squares": ("%q = arith.mulf %w, %w : f32", "%q", "addf", "0.0"),
    "magnitude": ("%q = math.absf %w : f32", "%q", "maximumf", "0.0"),
    "maximum": ("", "%w", "maximumf", "0xFF800000"),
}
_TORCH_FOLDS: dict[str, Callable[[torch.Tensor, Sequence[int]], torch.Tensor]] = {
    "sum": lambda x, axes: x.sum(axes, dtype=_f32()),
    "squares": lambda x, axes: x.float().square().sum(axes),
    "magnitude": lambda x, axes: x.abs().amax(axes).float(),
    "maximum": lambda x, axes: x.amax(axes).float(),
}


def _f32() -> torch.dtype:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.float32


@dataclass(frozen=True)
class Reduction:
    """A reduction of a tensor of f16 to f32.

    Attributes:
        shape: of the operand.
        axes: that are reduced.
        fold: the name of what is folded.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    fold: str = "sum"

    @property
    def kept(self) -> list[int]:
        """The axes of the result."""
        return [axis for axis in range(len(self.shape)) if axis not in self.axes]

    @property
    def name(self) -> str:
        """A line for people."""
        return f"{self.fold} of {_text(self.shape)} along {' '.join(map(str, self.axes))}"


def _text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _reduction(op: Reduction, operand: str, name: str) -> str:
    """Returns the ops of a reduction of `operand`, f16, whose result is `%name`, of f32."""
    made, term, fold, start = _FOLDS[op.fold]
    loops = [(size, "parallel" if axis in op.kept else "reduction") for axis, size in enumerate(op.shape)]

    def body(names: list[str], so_far: str) -> str:
        wide = f"    %w = arith.extf {names[0]} : f16 to f32\n"
        return f"{wide}    {made}\n    %r = arith.{fold} {so_far}, {term} : f32\n"

    return generic(name, loops, [(operand, "f16", range(len(op.shape)))], (op.kept, "f32", start), body)


def _alone(op: Reduction) -> function_kernels.Case:
    """Returns the function of one reduction."""
    result = tensor_type([op.shape[axis] for axis in op.kept], "f32")
    payload = f"func.func @reduction(%x: {tensor_type(op.shape, 'f16')}) -> {result} {{\n{_reduction(op, '%x', 's')}"
    payload += f"  return %s : {result}\n}}\n"

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        x = torch.randn(op.shape, device="cuda").half()
        out = torch.empty([op.shape[axis] for axis in op.kept], device="cuda")
        # Sums of so many terms of either sign differ by the order of the terms.
        return function_kernels.Measured([x], [out], lambda: [_TORCH_FOLDS[op.fold](x, op.axes)], 1e-3)

    return function_kernels.Case(op.name, 2 * math.prod(op.shape), payload, prepare)


def _elementwise(
    shape: Sequence[int], inputs: Sequence[tuple[str, str, Sequence[int]]], body: str, element: str
) -> str:
    """Returns an elementwise op whose result is `%y`, and whose body makes `%r` of `%e0`, `%e1` and so on."""
    loops = [(size, "parallel") for size in shape]
    return generic("y", loops, inputs, (range(len(shape)), element, ""), lambda *_: body)


def _quantization(rows: int, columns: int) -> function_kernels.Case:
    """Returns a quantization to fp8 by one scale for a matrix, which is a result too."""
    shape = (rows, columns)
    matrix, quantized = tensor_type(shape, "f16"), tensor_type(shape, "f8E4M3FN")
    body = """    %most = arith.constant 448.0 : f32
    %scale = arith.divf %most, %e1 : f32
    %w = arith.extf %e0 : f16 to f32
    %v = arith.mulf %w, %scale : f32
    %r = arith.truncf %v : f32 to f8E4M3FN
"""
    inputs = [("%x", "f16", (0, 1)), ("%s", "f32", ())]
    payload = f"""func.func @quantization(%x: {matrix}) -> ({quantized}, tensor<f32>) {{
{_reduction(Reduction(shape, (0, 1), "magnitude"), "%x", "s")}{_elementwise(shape, inputs, body, "f8E4M3FN")}
  return %y, %s : {quantized}, tensor<f32>
}}
"""

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        x = torch.randn(shape, device="cuda").half()
        outs = [torch.empty(shape, dtype=torch.float8_e4m3fn, device="cuda"), torch.empty([], device="cuda")]

        def library() -> list[torch.Tensor]:
            most = x.abs().amax().float()
            return [(x.float() * (448.0 / most)).to(torch.float8_e4m3fn), most]

        # Neighbours of the largest number of fp8, 448, differ by 32, and the quotients are rounded in another order.
        return function_kernels.Measured([x], outs, library, 0.1)

    return function_kernels.Case(f"{_text(shape)} quantized to fp8", 3 * rows * columns, payload, prepare)


def _group_norm(images: int, groups: int, channels: int, pixels: int) -> function_kernels.Case:
    """Returns a norm of groups of channels, without weights."""
    shape = (images, groups, channels, pixels)
    tensor = tensor_type(shape, "f16")
    body = f"""    %count = arith.constant {channels * pixels}.0 : f32
    %small = arith.constant 1.0e-5 : f32
    %mean = arith.divf %e1, %count : f32
    %of_squares = arith.divf %e2, %count : f32
    %square = arith.mulf %mean, %mean : f32
    %variance = arith.subf %of_squares, %square : f32
    %above = arith.addf %variance, %small : f32
    %scale = math.rsqrt %above : f32
    %w = arith.extf %e0 : f16 to f32
    %d = arith.subf %w, %mean : f32
    %v = arith.mulf %d, %scale : f32
    %r = arith.truncf %v : f32 to f16
"""
    inputs = [("%x", "f16", range(4)), ("%s", "f32", (0, 1)), ("%q", "f32", (0, 1))]
    payload = f"""func.func @group_norm(%x: {tensor}) -> {tensor} {{
{_reduction(Reduction(shape, (2, 3)), "%x", "s")}{_reduction(Reduction(shape, (2, 3), "squares"), "%x", "q")}
{_elementwise(shape, inputs, body, "f16")}
  return %y : {tensor}
}}
"""

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        x = torch.randn(shape, device="cuda").half()
        flat = x.view(images, groups * channels, pixels)
        return function_kernels.Measured(
            [x], [torch.empty_like(x)], lambda: [torch.group_norm(flat, groups).view(shape)], 1e-2
        )

    name = f"norm of {groups} groups of {channels} channels, {images} x {pixels}"
    return function_kernels.Case(name, 4 * math.prod(shape), payload, prepare)


def _softmax(rows: int, columns: int) -> function_kernels.Case:
    """Returns a softmax of rows."""
    tensor, wide = tensor_type((rows, columns), "f16"), tensor_type((rows, columns), "f32")
    payload = f"""func.func @softmax(%x: {tensor}) -> {tensor} {{
  %empty = tensor.empty() : {wide}
  %w = arith.extf %x : {tensor} to {wide}
  %p = linalg.softmax dimension(1) ins(%w : {wide}) outs(%empty : {wide}) -> {wide}
  %y = arith.truncf %p : {wide} to {tensor}
  return %y : {tensor}
}}
"""

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        x = torch.randn(rows, columns, device="cuda").half()
        return function_kernels.Measured([x], [torch.empty_like(x)], lambda: [torch.softmax(x, 1)], 1e-2)

    return function_kernels.Case(f"softmax of {rows} x {columns}", 4 * rows * columns, payload, prepare)


def _index_of_maximum(rows: int, columns: int) -> function_kernels.Case:
    """Returns the index of the first maximum of each row, as greedy decoding takes it."""
    x, value, place = tensor_type((rows, columns), "f32"), tensor_type([rows], "f32"), tensor_type([rows], "i64")
    payload = f"""func.func @index_of_maximum(%x: {x}) -> {place} {{
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %values = tensor.empty() : {value}
  %places = tensor.empty() : {place}
  %v = linalg.fill ins(%low : f32) outs(%values : {value}) -> {value}
  %p = linalg.fill ins(%none : i64) outs(%places : {place}) -> {place}
  %y:2 = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%x : {x}) outs(%v, %p : {value}, {place}) {{
  ^bb0(%in: f32, %most: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %more = arith.maximumf %in, %most : f32
    %is = arith.cmpf ogt, %in, %most : f32
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f32, i64
  }} -> ({value}, {place})
  return %y#1 : {place}
}}
"""

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        x = torch.randn(rows, columns, device="cuda")
        out = torch.empty(rows, dtype=torch.int64, device="cuda")
        return function_kernels.Measured([x], [out], lambda: [torch.argmax(x, 1)])

    return function_kernels.Case(f"index of maximum of {rows} x {columns} f32", 4 * rows * columns, payload, prepare)


def _pooling(shape: tuple[int, int, int, int], is_nchw: bool) -> function_kernels.Case:
    """Returns the maxima of windows of 2 x 2, of which none overlap."""
    order, axes = ("nchw", (2, 3)) if is_nchw else ("nhwc", (1, 2))
    halves = tuple(size // 2 if axis in axes else size for axis, size in enumerate(shape))
    x, y = tensor_type(shape, "f16"), tensor_type(halves, "f16")
    payload = f"""func.func @pooling(%x: {x}) -> {y} {{
  %low = arith.constant 0xFC00 : f16
  %window = tensor.empty() : tensor<2x2xf16>
  %empty = tensor.empty() : {y}
  %start = linalg.fill ins(%low : f16) outs(%empty : {y}) -> {y}
  %y = linalg.pooling_{order}_max {{dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}}
      ins(%x, %window : {x}, tensor<2x2xf16>) outs(%start : {y}) -> {y}
  return %y : {y}
}}
"""

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        x = torch.randn(shape, device="cuda").half()
        viewed = x if is_nchw else x.permute(0, 3, 1, 2)
        out = torch.empty(halves, dtype=x.dtype, device="cuda")

        def library() -> list[torch.Tensor]:
            y = torch.nn.functional.max_pool2d(viewed, 2)
            return [y if is_nchw else y.permute(0, 2, 3, 1)]

        return function_kernels.Measured([x], [out], library)

    size = 2 * (math.prod(shape) + math.prod(halves))
    return function_kernels.Case(f"maxima of windows of {_text(shape)} ({order})", size, payload, prepare)


CASES = (
    *map(
        _alone,
        (
            Reduction((4096, 4096), (0, 1)),
            Reduction((512, 512), (0, 1)),
            Reduction((4095, 4097), (0, 1)),
            Reduction((1 << 24,), (0,), "maximum"),
            Reduction((8192, 8192), (0, 1), "magnitude"),
            Reduction((8, 1000000), (1,)),
            Reduction((40, 200000), (1,), "maximum"),
            Reduction((1 << 20, 8), (0,)),
            Reduction((1000000, 3), (0,)),
            Reduction((32, 224, 224, 3), (0, 1, 2)),
            Reduction((1280, 2560, 7), (0, 1)),
            Reduction((80, 640, 64, 3), (1, 2), "maximum"),
            Reduction((8192, 1024), (0,)),
            Reduction((8192, 4096), (0,)),
            Reduction((64, 56, 56, 64), (0, 1, 2)),
            Reduction((64, 64, 56, 56), (0, 2, 3)),
            Reduction((16, 512, 14, 14), (0, 2, 3), "squares"),
            Reduction((16, 256, 56, 56), (2, 3)),
        ),
    ),
    _quantization(8192, 4096),
    _group_norm(1, 32, 10, 16384),
    _group_norm(2, 32, 10, 16384),
    _group_norm(8, 32, 20, 1024),
    _softmax(8, 131072),
    _softmax(128, 131072),
    _index_of_maximum(1, 128256),
    _index_of_maximum(32, 128256),
    _index_of_maximum(4096, 1000),
    _pooling((32, 112, 112, 64), is_nchw=False),
    _pooling((32, 64, 112, 112), is_nchw=True),
)
make_parser = partial(function_kernels.parser_for, __doc__, CASES)
main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
