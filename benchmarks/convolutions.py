"""Times convolutions, as a copy of their windows and a matmul, beside PyTorch's, which calls cuDNN.

Each is checked with PyTorch's numbers before it is timed. cuDNN chooses the fastest of its algorithms by measuring them
(`torch.backends.cudnn.benchmark`).

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/convolutions.py build FOLDER
    python benchmarks/convolutions.py measure FOLDER docs/results/convolutions.json

Kernels that another version of this repository built are measured in turn with the others, as `before`:

    python benchmarks/convolutions.py measure FOLDER RESULT.json --before OTHER_FOLDER
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import function_kernels
from common import main_of_parts, run
from function_texts import tensor_type

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]


@dataclass(frozen=True)
class Convolution:
    """A convolution of images of f16, without padding, with sums of f32 that are rounded to f16.

    Attributes:
        images, channels, filters: of the operands.
        size: rows and columns of the result.
        window: rows and columns of a filter.
        stride: between windows.
        is_nchw: whether the channels are outside of the pixels.
    """

    images: int
    channels: int
    filters: int
    size: int
    window: int = 3
    stride: int = 1
    is_nchw: bool = True

    @property
    def name(self) -> str:
        """A line for people."""
        order = "nchw" if self.is_nchw else "nhwc"
        what = f"{self.filters} filters of {self.window} x {self.window} of {self.channels} channels"
        return f"{self.images} x {self.size} x {self.size}, {what}, stride {self.stride} ({order})"

    @property
    def read(self) -> int:
        """Rows and columns that are read."""
        return (self.size - 1) * self.stride + self.window

    def shape(self, pixels: int, channels: int) -> list[int]:
        """Returns the shape of images.

        Args:
            pixels: rows and columns.
            channels: of each pixel.
        """
        if self.is_nchw:
            return [self.images, channels, pixels, pixels]
        return [self.images, pixels, pixels, channels]


def _payload(op: Convolution) -> str:
    """Returns the function of a convolution."""
    window = [op.window, op.window]
    filters = [op.filters, op.channels, *window] if op.is_nchw else [*window, op.channels, op.filters]
    x, w = tensor_type(op.shape(op.read, op.channels), "f16"), tensor_type(filters, "f16")
    wide, y = (tensor_type(op.shape(op.size, op.filters), element) for element in ("f32", "f16"))
    name = "nchw_fchw" if op.is_nchw else "nhwc_hwcf"
    return f"""func.func @convolution(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {wide}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {wide}) -> {wide}
  %c = linalg.conv_2d_{name} {{dilations = dense<1> : vector<2xi64>, strides = dense<{op.stride}> : vector<2xi64>}}
      ins(%x, %w : {x}, {w}) outs(%zeros : {wide}) -> {wide}
  %y = arith.truncf %c : {wide} to {y}
  return %y : {y}
}}
"""


def _prepare(op: Convolution) -> function_kernels.Measured:
    import torch  # pyright: ignore[reportMissingImports]

    torch.backends.cudnn.benchmark = True
    window = [op.window, op.window]
    filters = [op.filters, op.channels, *window] if op.is_nchw else [*window, op.channels, op.filters]
    x, w = (torch.randn(shape, device="cuda").half() for shape in (op.shape(op.read, op.channels), filters))
    out = torch.empty(op.shape(op.size, op.filters), dtype=x.dtype, device="cuda")
    # cuDNN takes filters in the order of the images.
    images = x if op.is_nchw else x.permute(0, 3, 1, 2)
    of_library = w if op.is_nchw else w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    def library() -> list[torch.Tensor]:
        y = torch.nn.functional.conv2d(images, of_library, stride=op.stride)
        return [y if op.is_nchw else y.permute(0, 2, 3, 1)]

    return function_kernels.Measured([x, w], [out], library, 1e-2)


OPS = (
    Convolution(16, 64, 64, 56),
    Convolution(16, 64, 64, 56, is_nchw=False),
    Convolution(32, 256, 256, 14),
    Convolution(32, 256, 256, 14, is_nchw=False),
    Convolution(32, 128, 256, 28, stride=2),
    Convolution(8, 512, 512, 7, is_nchw=False),
)
CASES = tuple(
    function_kernels.Case(
        op.name,
        2 * math.prod(op.shape(op.read, op.channels)) + 2 * math.prod(op.shape(op.size, op.filters)),
        _payload(op),
        partial(_prepare, op),
    )
    for op in OPS
)
make_parser = partial(function_kernels.parser_for, __doc__, CASES)
main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
