"""Arrays for reference numbers: NumPy on the host, PyTorch on the GPU for what is large."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

# Problems below this are not worth the seconds that importing PyTorch takes.
TORCH_FLOPS = 10**11


class NumPyArrays:
    """Arithmetic on the host. `xp` is a module whose functions take the arrays."""

    name = "NumPy"
    xp: Any = np

    def load(self, array: np.ndarray, dtype: str) -> Any:
        """Returns `array` converted to a wider type (exactly)."""
        return array.astype(dtype)

    def cast(self, array: Any, dtype: str) -> Any:
        """Returns an array that `load` or arithmetic made, as another type: `float32`, `float64`, `int64`, `bool`."""
        return array.astype(dtype, copy=False)

    def permuted(self, array: Any, order: list[int]) -> Any:
        """Returns a view with the axes in another order."""
        return array.transpose(order)

    def erf(self, array: Any) -> Any:
        """Returns the error function of each element; NumPy has none, so it is computed one by one."""
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(array), array.dtype)

    def first(self, mask: Any) -> tuple[int, int]:
        """Returns (row, column) of the first true element."""
        row, column = np.unravel_index(int(np.argmax(mask)), mask.shape)
        return int(row), int(column)


class TorchArrays(NumPyArrays):
    """Arithmetic on the GPU, by PyTorch.

    Args:
        torch: the module.
        ordinal: which GPU.
    """

    name = "PyTorch on the GPU"

    def __init__(self, torch: Any, ordinal: int):
        self.xp = torch
        self.place = torch.device("cuda", ordinal)

    def load(self, array: np.ndarray, dtype: str) -> Any:
        torch = self.xp
        if array.dtype.isbuiltin == 1:
            stored = torch.from_numpy(array)
        else:  # one of ml_dtypes, of the same name in PyTorch, which takes its bits only
            stored = torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, array.dtype.name))
        stored = stored.to(self.place)
        # Narrower types of floating point go through float32: not every one has a conversion to float64.
        if array.itemsize < 4 and stored.is_floating_point():
            stored = stored.to(torch.float32)
        return stored.to(getattr(torch, dtype))

    def cast(self, array: Any, dtype: str) -> Any:
        return array.to(getattr(self.xp, dtype))

    def permuted(self, array: Any, order: list[int]) -> Any:
        return array.permute(order)

    def erf(self, array: Any) -> Any:
        return self.xp.erf(array)

    def first(self, mask: Any) -> tuple[int, int]:
        row, column = self.xp.nonzero(mask)[0].tolist()
        return row, column


def choose(flops: int, ordinal: int) -> NumPyArrays:
    """Returns PyTorch on a GPU for large problems where it is there, else NumPy; both sum in float64.

    Args:
        flops: arithmetic operations of the problem.
        ordinal: which GPU.
    """
    if flops < TORCH_FLOPS and "torch" not in sys.modules:
        return NumPyArrays()
    try:
        import torch
    except ImportError:
        return NumPyArrays()
    return TorchArrays(torch, ordinal) if torch.cuda.is_available() else NumPyArrays()
