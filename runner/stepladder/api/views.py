"""Views of a caller's arrays without a copy: address, shape, strides, element type and device.

Arrays of NumPy, PyTorch and JAX are read through their own attributes. Every other array on a GPU goes through
`cuda.core.utils.StridedMemoryView`, which speaks DLPack and `__cuda_array_interface__`.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stepladder.api.errors import ArgumentError
from stepladder.runtime.element_types import ELEMENT_TYPES, element_type

_ACCEPTED = "accepted: NumPy arrays, and arrays on a GPU with DLPack or __cuda_array_interface__ (PyTorch, CuPy, JAX)"
# MLIR's name -> the name of the type in NumPy, ml_dtypes and PyTorch.
_NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "i8": "int8",
    "i32": "int32",
    "i1": "bool",
    "i16": "int16",
    "i64": "int64",
}
_BY_NAME = {name: type_ for type_, name in _NAMES.items()}


@dataclass(slots=True)
class View:
    """An array as a kernel sees it.

    Attributes:
        name: of the argument, for messages.
        address: of the first element.
        shape: extents.
        strides: in elements, of every axis.
        type: MLIR's name of the element type.
        device: ordinal of the GPU; None in host memory.
        array: the array itself, which keeps the memory alive.
        is_writable: whether a kernel may write it.
        stream: handle of the stream that the array's library uses now; None where it does not say.
    """

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: str
    device: int | None
    array: Any
    is_writable: bool = True
    stream: int | None = None

    @property
    def signature(self) -> tuple[object, ...]:
        """The properties that a kernel is compiled for: shape, strides, element type and device."""
        return self.shape, self.strides, self.type, self.device

    @property
    def size(self) -> int:
        """Bytes from the first element to the end of the last one, of an array without negative strides."""
        if 0 in self.shape:
            return 0
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))
        return (last + 1) * element_type(self.type).bytes

    def reshaped(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
        """Returns the same memory with other extents and strides.

        Args:
            shape: the new extents.
            strides: the new strides, in elements.
        """
        return replace(self, shape=shape, strides=strides)

    def host(self) -> np.ndarray:
        """Returns an array in host memory with the view's shape and strides, of the same memory."""
        array = self.array if isinstance(self.array, np.ndarray) else _numpy_of_torch(self.array, self.type)
        bytes_ = array.itemsize
        strides = [stride * bytes_ for stride in self.strides]
        bits = array.view(f"u{bytes_}")  # NumPy's array interface has no name for types such as float8_e5m2
        view = np.lib.stride_tricks.as_strided(bits, self.shape, strides, writeable=self.is_writable)
        return view.view(array.dtype)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides, in elements, of a row-major array.

    Args:
        shape: extents, the outermost first.
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def same_strides(shape: tuple[int, ...], strides: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Returns whether strides reach the same elements; those of axes of one element, or without any, do not matter.

    Args:
        shape: of both arrays.
        strides: strides of one, in elements.
        expected: strides of the other, in elements.
    """
    return (
        strides == expected
        or 0 in shape
        or all(
            stride == expected_stride
            for extent, stride, expected_stride in zip(shape, strides, expected, strict=True)
            if extent > 1
        )
    )


def torch_module() -> Any:  # noqa: ANN401
    """Returns PyTorch where the process has imported it; else None: then no argument is a tensor of it."""
    return sys.modules.get("torch")


def jax_module() -> Any:  # noqa: ANN401
    """Returns JAX where the process has imported it; else None: then no argument is an array of it."""
    return sys.modules.get("jax")


def is_array(value: object) -> bool:
    """Returns whether a value is an array, and not a scalar.

    Args:
        value: of any type.
    """
    if isinstance(value, np.generic):
        return False
    return isinstance(value, np.ndarray) or any(
        hasattr(value, name) for name in ("__dlpack__", "__cuda_array_interface__")
    )


def is_on_host(array: object) -> bool:
    """Returns whether an array is one of NumPy, calls on which are not kept.

    Args:
        array: that a call was made on.
    """
    return isinstance(array, np.ndarray)


def check_on_host(views: Sequence[View]) -> None:
    """Checks arrays in host memory that are to be copied to a GPU and back.

    Args:
        views: of the arrays.

    Raises:
        ArgumentError: a tensor of PyTorch, whose caller means it to be on the GPU.
    """
    torch = torch_module()
    for view in views:
        if torch is not None and isinstance(view.array, torch.Tensor):
            raise ArgumentError(
                f"argument '{view.name}' is a tensor in host memory; accepted: tensors on 'cuda', arrays of NumPy, "
                "which are copied, and with device='emulator' tensors in host memory"
            )


def view_of(name: str, array: object, stream: int | None = None) -> View:
    """Returns the view of an argument.

    Args:
        name: of the argument, for messages.
        array: what the caller passed.
        stream: handle of the stream that will read it; None for the one that its library uses now.

    Raises:
        ArgumentError: no array, of an element type that no kernel takes, or a tensor that needs a gradient.
    """
    torch = torch_module()
    if torch is not None and isinstance(array, torch.Tensor):
        return _view_of_torch(name, array, torch)
    if isinstance(array, np.ndarray):
        return _view_of_numpy(name, array)
    jax = jax_module()
    if jax is not None and isinstance(array, jax.Array):
        return _view_of_jax(name, array)
    if not is_array(array):
        raise ArgumentError(f"argument '{name}' is a {type(array).__name__}, which is not an array; {_ACCEPTED}")
    return _view_of_any(name, array, stream)


def as_signed(array: object) -> object:
    """Returns an array of NumPy of unsigned integers as one of signed integers in the same memory; others as they are.

    Args:
        array: what the caller passed.
    """
    if isinstance(array, np.ndarray) and array.dtype.kind == "u":
        return array.view(array.dtype.str.replace("u", "i"))
    return array


def _type_of(name: str, dtype: object) -> str:
    """Returns MLIR's name of an element type of a library."""
    text = str(getattr(dtype, "name", None) or dtype).removeprefix("torch.")
    if text not in _BY_NAME:
        accepted = ", ".join(_NAMES[type_] for type_ in ELEMENT_TYPES)
        notes = []
        if (signed := text.removeprefix("u")) in _BY_NAME:
            notes = [
                f"an unsigned argument, of which ops read the sign, is passed as {signed} with the same bits, as "
                f"x.view(np.{signed}) has them"
            ]
        raise ArgumentError(f"argument '{name}' has elements of {text}; accepted: {accepted}", notes=notes)
    return _BY_NAME[text]


def type_name(dtype: object, name: str) -> str:
    """Returns MLIR's name of an element type that is given as a name of MLIR's, or as a type of NumPy or PyTorch.

    Args:
        dtype: for example `"bf16"`, `np.float16`, `torch.bfloat16`.
        name: of the argument, for messages.

    Raises:
        ArgumentError: a type that no kernel takes.
    """
    if isinstance(dtype, str):
        return element_type(dtype).name if dtype in ELEMENT_TYPES else _type_of(name, dtype)
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return _type_of(name, np.dtype(dtype))
    return _type_of(name, dtype)


def _view_of_numpy(name: str, array: np.ndarray) -> View:
    masked: Any = sys.modules.get("numpy.ma")  # NumPy imports it when it is used first
    if masked is not None and isinstance(array, masked.MaskedArray):
        raise ArgumentError(f"argument '{name}' is a masked array, whose mask no kernel reads; accepted: its filled()")
    type_ = _type_of(name, array.dtype)
    bytes_ = array.itemsize
    if any(stride % bytes_ for stride in array.strides):
        raise ArgumentError(f"argument '{name}' has strides of parts of an element; accepted: whole elements")
    if not array.dtype.isnative:
        raise ArgumentError(f"argument '{name}' has elements in another byte order; accepted: the machine's")
    strides = tuple(stride // bytes_ for stride in array.strides)
    return View(name, array.ctypes.data, array.shape, strides, type_, None, array, array.flags.writeable)


# torch.dtype -> MLIR's name: looking a type up by its name takes longer than a launch may.
_TORCH_TYPES: dict[object, str] = {}


def _view_of_torch(name: str, tensor: Any, torch: Any) -> View:  # noqa: ANN401
    type_ = _TORCH_TYPES.get(tensor.dtype)
    if type_ is None:
        type_ = _TORCH_TYPES[tensor.dtype] = _type_of(name, tensor.dtype)
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArgumentError(
            f"argument '{name}' needs a gradient, which a kernel does not record",
            notes=["stepladder.pytorch.matmul records it; `.detach()` and `torch.no_grad()` do without"],
        )
    if tensor.is_neg():
        raise ArgumentError(
            f"argument '{name}' is a negative view, whose memory has the opposite sign",
            notes=["accepted: x.resolve_neg(), which is a copy"],
        )
    try:
        address, strides = tensor.data_ptr(), tensor.stride()
    except RuntimeError as error:  # sparse tensors, and those of tracers, which have no memory
        raise ArgumentError(f"argument '{name}' has no dense memory ({error}); {_ACCEPTED}") from None
    if not address and tensor.device.type != "meta" and 0 not in tensor.shape:
        raise ArgumentError(f"argument '{name}' is a {type(tensor).__name__} without memory; {_ACCEPTED}")
    device = tensor.device
    ordinal = None
    if device.type == "cuda":
        ordinal = device.index
    elif device.type != "cpu":
        raise ArgumentError(f"argument '{name}' is on the device '{device}'; accepted: tensors on 'cuda'")
    return View(name, address, tuple(tensor.shape), strides, type_, ordinal, tensor)


def _numpy_of_torch(tensor: Any, type_: str) -> np.ndarray:  # noqa: ANN401
    """Returns a tensor in host memory as an array of NumPy, of the same memory."""
    dtype = element_type(type_).dtype
    if dtype.isbuiltin == 1:
        return tensor.detach().numpy()
    bits = getattr(torch_module(), f"int{dtype.itemsize * 8}")
    return tensor.detach().view(bits).numpy().view(dtype)


def _view_of_jax(name: str, array: Any) -> View:  # noqa: ANN401
    """Returns the view of an array of JAX, which does not change: what computes it has ended."""
    try:
        devices = list(array.devices())
        array.block_until_ready()
        address = array.unsafe_buffer_pointer()
    except Exception as error:  # of tracers, deleted arrays, and those on several devices
        raise ArgumentError(f"argument '{name}' cannot be read as an array of JAX: {_first_line(error)}") from None
    if devices[0].platform != "gpu":
        raise ArgumentError(
            f"argument '{name}' is an array of JAX in host memory; {_ACCEPTED}",
            notes=["np.asarray(x) makes a NumPy array of it"],
        )
    shape = tuple(array.shape)
    order = getattr(getattr(getattr(array, "format", None), "layout", None), "major_to_minor", None)
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order or range(len(shape))):
        strides[axis], step = step, step * shape[axis]
    type_ = _type_of(name, array.dtype)
    return View(name, address, shape, tuple(strides), type_, devices[0].local_hardware_id, array, is_writable=False)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _view_of_any(name: str, array: Any, stream: int | None) -> View:  # noqa: ANN401
    """Returns the view of an array of another library, through cuda.core."""
    try:
        view_type = importlib.import_module("cuda.core.utils").StridedMemoryView
    except ImportError as error:
        raise ArgumentError(
            f"argument '{name}' is a {type(array).__name__}, which is read through cuda.core, and that is not "
            f"installed ({error}); accepted without it: NumPy arrays and PyTorch tensors"
        ) from None
    interface = getattr(array, "__cuda_array_interface__", None)
    uses = interface.get("stream") if interface is not None else None
    try:
        # -1: the caller orders the work; otherwise the array's library makes its work precede that of the stream.
        view = view_type.from_any_interface(array, -1 if stream is None else stream)
    except Exception as error:  # of the array's library, of any kind
        raise ArgumentError(f"argument '{name}' cannot be read as an array: {error}") from error
    shape = tuple(view.shape)
    strides = row_major(shape) if view.strides is None else tuple(view.strides)
    ordinal = None if not view.is_device_accessible or view.device_id < 0 else view.device_id
    if ordinal is None:
        raise ArgumentError(
            f"argument '{name}' is a {type(array).__name__} in host memory; {_ACCEPTED}",
            notes=["np.asarray(x) makes a NumPy array of it"],
        )
    return View(
        name,
        view.ptr,
        shape,
        strides,
        _type_of(name, view.dtype),
        ordinal,
        array,
        not view.readonly,
        uses,
    )
