"""Arrays of reference values: NumPy on the host, PyTorch on the GPU for large problems."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from stepladder.runtime.element_types import element_type

# Problems below this are not worth the seconds that importing PyTorch takes.
TORCH_FLOPS = 10**11


class Array(Protocol):
    """An array of NumPy or PyTorch: the operations that both have under one name."""

    @property
    def shape(self) -> Sequence[int]:
        """The extents."""
        ...

    @property
    def dtype(self) -> object:
        """The element type, of the library's own kind."""
        ...

    def __getitem__(self, index: object, /) -> Array: ...
    def __add__(self, other: Array | float, /) -> Array: ...
    def __sub__(self, other: Array | float, /) -> Array: ...
    def __mul__(self, other: Array | float, /) -> Array: ...
    def __truediv__(self, other: Array | float, /) -> Array: ...
    def __rtruediv__(self, other: Array | float, /) -> Array: ...
    def __pow__(self, other: Array | float, /) -> Array: ...
    def __and__(self, other: Array | float, /) -> Array: ...
    def __or__(self, other: Array | float, /) -> Array: ...
    def __xor__(self, other: Array | float, /) -> Array: ...
    def __lshift__(self, other: Array | float, /) -> Array: ...
    def __rshift__(self, other: Array | float, /) -> Array: ...
    def __floordiv__(self, other: Array | float, /) -> Array: ...
    def __mod__(self, other: Array | float, /) -> Array: ...
    def __matmul__(self, other: Array | float, /) -> Array: ...
    def __lt__(self, other: Array | float, /) -> Array: ...
    def __le__(self, other: Array | float, /) -> Array: ...
    def __gt__(self, other: Array | float, /) -> Array: ...
    def __ge__(self, other: Array | float, /) -> Array: ...
    def __eq__(self, other: object, /) -> Array: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, other: object, /) -> Array: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __neg__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def reshape(self, shape: Sequence[int], /) -> Array:
        """Returns the elements in row-major order with other extents.

        Args:
            shape: extents, whose product is the number of elements.
        """
        ...

    def sum(self) -> Array:
        """Returns the sum of all elements, without axes."""
        ...

    def any(self) -> Array:
        """Returns whether any element is true, without axes."""
        ...

    def max(self) -> Array:
        """Returns the largest element, without axes."""
        ...


class NumPyArrays:
    """Arithmetic on the host."""

    name = "NumPy"
    xp: Any = np  # the module whose functions take the arrays

    def load(self, array: np.ndarray, dtype: str) -> Array:
        """Returns `array` converted to a wider type (exactly).

        Args:
            array: of an element type's NumPy type.
            dtype: `float32`, `float64`, `int64` or `bool`; it represents all values of the array's type.
        """
        result: Any = array.astype(dtype)
        return result

    def cast(self, array: Array, dtype: str) -> Array:
        """Returns an array that `load` or arithmetic made, as another type: `float32`, `float64`, `int64`, `bool`.

        Args:
            array: of any shape.
            dtype: name of the new type.
        """
        result: Any = np.asarray(array).astype(dtype, copy=False)
        return result

    def rounded(self, array: Array, type_: str) -> Array:
        """Returns an array of float64 rounded to an element type, to nearest, by MLIR's name of it.

        Types of 8 and 16 bits may be rounded to float32 before, which changes no result of one op on values of them.

        Args:
            array: of any shape.
            type_: element type by its MLIR name, such as "f16".
        """
        with np.errstate(all="ignore"):
            result: Any = np.asarray(array).astype(element_type(type_).dtype).astype(np.float64)
        return result

    def bits(self, array: Array, source_type: str, type_: str) -> Array:
        """Returns what the bits of values are as values of another type, as float64 or int64.

        Args:
            array: of any shape; floating-point numbers are rounded to their type.
            source_type: element type of the values by its MLIR name, such as "f32".
            type_: another one, of as many bits, such as "i32".
        """
        with np.errstate(all="ignore"):
            source = np.asarray(array).astype(element_type(source_type).dtype)
        result: Any = source.view(element_type(type_).dtype)
        return result.astype(np.int64 if element_type(type_).is_integer else np.float64)

    def permuted(self, array: Array, order: list[int]) -> Array:
        """Returns a view with the axes in another order.

        Args:
            array: of any number of axes.
            order: which axis of `array` each axis of the view is.
        """
        view: Any = np.asarray(array).transpose(order)
        return view

    def replaced(self, array: Array, elements: tuple[slice, ...], new: Array) -> Array:
        """Returns a copy of an array in which some elements are new.

        Args:
            array: what is copied.
            elements: a slice for each of its axes.
            new: of the extents of these elements.
        """
        copy: Any = np.array(array)
        copy[elements] = new
        return copy

    def erf(self, array: Array) -> Array:
        """Returns the error function of each element; NumPy has none, so it is computed one by one.

        Args:
            array: of floating-point numbers.

        Returns:
            An array of the same type and shape.
        """
        values = np.asarray(array)
        result: Any = np.asarray(np.frompyfunc(math.erf, 1, 1)(values), values.dtype)
        return result

    def erfc(self, array: Array) -> Array:
        """Returns what the error function of each element lacks to 1, without the cancellation of a difference.

        Args:
            array: of floating-point numbers.
        """
        values = np.asarray(array)
        result: Any = np.asarray(np.frompyfunc(math.erfc, 1, 1)(values), values.dtype)
        return result

    def first(self, mask: Array) -> tuple[int, ...]:
        """Returns the indices of the first true element, (row, column) in a matrix.

        Args:
            mask: of bool, with one true element at least.
        """
        return tuple(map(int, np.unravel_index(int(np.argmax(np.asarray(mask))), tuple(mask.shape))))


class TorchArrays(NumPyArrays):
    """Arithmetic on the GPU, by PyTorch.

    Args:
        torch: the module.
        ordinal: which GPU.
    """

    name = "PyTorch on the GPU"

    def __init__(self, torch: ModuleType, ordinal: int) -> None:
        self.xp = torch
        self.device = torch.device("cuda", ordinal)

    def load(self, array: np.ndarray, dtype: str) -> Array:
        """Returns `array` on the GPU, converted to a wider type (exactly).

        Args:
            array: of an element type's NumPy type, on the host.
            dtype: as for `NumPyArrays.load`.
        """
        torch = self.xp
        if array.dtype.isbuiltin == 1:
            tensor = torch.from_numpy(array)
        else:  # one of ml_dtypes, of the same name in PyTorch, which takes its bits only
            tensor = torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, array.dtype.name))
        tensor = tensor.to(self.device)
        # Narrower types of floating point go through float32: not every one has a conversion to float64.
        if array.itemsize < 4 and tensor.is_floating_point():
            tensor = tensor.to(torch.float32)
        return tensor.to(getattr(torch, dtype))

    def cast(self, array: Array, dtype: str) -> Array:
        """Returns an array as another type, as `NumPyArrays.cast`.

        Args:
            array: on the GPU.
            dtype: name of the new type.
        """
        tensor: Any = array
        return tensor.to(getattr(self.xp, dtype))

    def rounded(self, array: Array, type_: str) -> Array:
        """Returns an array rounded to an element type, as `NumPyArrays.rounded`.

        Args:
            array: on the GPU.
            type_: element type by its MLIR name, such as "f16".
        """
        tensor: Any = array
        return tensor.to(getattr(self.xp, element_type(type_).dtype.name)).to(self.xp.float64)

    def bits(self, array: Array, source_type: str, type_: str) -> Array:
        """Returns what the bits of values are as values of another type, as `NumPyArrays.bits`.

        Args:
            array: on the GPU.
            source_type: element type of the values by its MLIR name, such as "f32".
            type_: another one, of as many bits, such as "i32".
        """
        tensor: Any = array
        source = tensor.to(getattr(self.xp, element_type(source_type).dtype.name))
        result = source.view(getattr(self.xp, element_type(type_).dtype.name))
        return result.to(self.xp.int64 if element_type(type_).is_integer else self.xp.float64)

    def permuted(self, array: Array, order: list[int]) -> Array:
        """Returns a view with the axes in another order.

        Args:
            array: on the GPU.
            order: which axis of `array` each axis of the view is.
        """
        tensor: Any = array
        return tensor.permute(order)

    def replaced(self, array: Array, elements: tuple[slice, ...], new: Array) -> Array:
        """Returns a copy of an array in which some elements are new, as `NumPyArrays.replaced`.

        Args:
            array: what is copied, on the GPU.
            elements: a slice for each of its axes.
            new: of the extents of these elements.
        """
        tensor: Any = array
        copy = tensor.clone()
        copy[elements] = new
        return copy

    def erf(self, array: Array) -> Array:
        """Returns the error function of each element.

        Args:
            array: of floating-point numbers, on the GPU.
        """
        return self.xp.erf(array)

    def erfc(self, array: Array) -> Array:
        """Returns what the error function of each element lacks to 1.

        Args:
            array: of floating-point numbers, on the GPU.
        """
        return self.xp.erfc(array)

    def first(self, mask: Array) -> tuple[int, ...]:
        """Returns the indices of the first true element, (row, column) in a matrix.

        Args:
            mask: of bool, on the GPU, with one true element at least.
        """
        return tuple(self.xp.nonzero(mask)[0].tolist())


def on_host(array: Array) -> np.ndarray:
    """Returns values that NumPy or PyTorch computed as float64 of NumPy.

    Args:
        array: of either library.
    """
    tensor: Any = array
    return np.asarray(tensor.cpu() if hasattr(tensor, "cpu") else tensor).astype(np.float64)


def choose(flops: int, ordinal: int) -> NumPyArrays:
    """Returns PyTorch on a GPU for large problems where it is there, else NumPy; both sum in float64.

    Args:
        flops: arithmetic operations of the problem.
        ordinal: which GPU.
    """
    if flops < TORCH_FLOPS and "torch" not in sys.modules:
        return NumPyArrays()
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return NumPyArrays()
    return TorchArrays(torch, ordinal) if torch.cuda.is_available() else NumPyArrays()
