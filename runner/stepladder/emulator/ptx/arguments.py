"""Arguments of single kernels: arrays in global memory, TMA descriptors of them, and scalars."""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import types as core_types
from stepladder.emulator.core.values import wrap
from stepladder.emulator.hardware import tensor_maps, tma
from stepladder.mlir.bindings import ir
from stepladder.runtime import bundle
from stepladder.runtime.bundle import Manifest
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.machine import Machine
    from stepladder.emulator.memory.memory import Allocation

_POINTER_BYTES = 8
_MAP_ALIGNMENT = 64
_VALUE = r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_ARRAY = re.compile(
    r"(?P<shape>\d+(?:x\d+)*)x(?P<type>[a-z]\w*)(?:\[(?P<box>\d+(?:x\d+)*)(?:,(?P<swizzle>\d+)b)?\])?"
    rf"(?:=(?P<fill>{_VALUE}|iota|out))?"
)
_NUMBER = re.compile(rf"(?P<value>{_VALUE}):(?P<type>[a-z]\w*)")
_SWIZZLES = (0, 32, 64, 128)
OUTPUT = "out"
FORMS = (
    "256x128xf16 for an array, 256x128xf16[64x64,128b] for a TMA descriptor with its box and swizzle, 7:i32 for a "
    "number; behind an array =0 for what it holds, =iota, or =out for an output that all of is to be written"
)


def tensor_map_at(machine: Machine, address: int) -> tma.Descriptor | str | None:
    """Returns the TMA descriptor at an address, or what is wrong with it; None where there is none.

    Args:
        machine: that the kernel is launched on.
        address: of the descriptor: a kernel's parameter, or global memory that a kernel has written it to.
    """
    descriptor = machine.globals.get(("tensor map", address))
    if descriptor is not None:
        return descriptor
    memory = machine.heap.find(address)
    if memory is None or address + tensor_maps.BYTES > memory.address + memory.size:
        return None
    start = address - memory.address
    return tensor_maps.decoded(memory.data[start : start + tensor_maps.BYTES], machine.heap.find)


@dataclass(frozen=True)
class Argument:
    """A parameter's value.

    Attributes:
        name: for messages; empty for that of the parameter.
        type: of the array, or of the scalar.
        value: of a scalar.
        fill: what an array holds at first: a value in all elements, "iota" (0, 1, ...), "out" for nothing, since the
            kernel is to write all of it, and empty for random numbers.
        box, swizzle, sizes, strides: of a TMA descriptor, in elements; `box` is empty for a pointer.
        offset: of a TMA descriptor, from the beginning of the array to its base address, in bytes.
        shared: number of an earlier argument that represents the same array, if there is one: a kernel may take a
            pointer to a buffer, and a TMA descriptor of it.
        fills_nan: whether a TMA descriptor gives NaN outside of its tensor, and not zero.
    """

    name: str
    type: core_types.Buffer | core_types.Scalar
    value: float = 0
    box: tuple[int, ...] = ()
    swizzle: int = 0
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = field(default=())
    fill: str = ""
    shared: int | None = None
    offset: int = 0
    fills_nan: bool = False

    def tensor_map(self, memory: Allocation) -> tma.Descriptor:
        """Returns the TMA descriptor that the argument is.

        Args:
            memory: of the array.
        """
        return tma.Descriptor(
            memory,
            self.offset,
            self.type.element,
            self.sizes,
            self.strides,
            self.box,
            self.swizzle,
            fills_nan=self.fills_nan,
        )

    @property
    def is_output(self) -> bool:
        """Whether all elements are to be written."""
        return self.fill == OUTPUT

    def filled(self) -> np.ndarray:
        """Returns what an array with a `fill` holds at first."""
        dtype, shape = self.type.element.dtype, self.type.static_shape
        if self.fill == "iota":
            return np.arange(math.prod(shape)).astype(dtype).reshape(shape)
        if self.is_output:
            return np.full((*shape, dtype.itemsize), 0xFF, np.uint8).view(dtype)[..., 0]
        return np.full(shape, float(self.fill) if self.type.element.is_float else int(self.fill)).astype(dtype)

    def positions(self) -> np.ndarray:
        """Returns where the elements of an array are in its memory, counted in elements, in the shape of the array."""
        assert isinstance(self.type, core_types.Buffer)
        places = np.full((), self.type.offset or 0, np.int64)
        for size, stride in zip(self.type.static_shape, self.type.strides):
            assert stride is not None
            places = places[..., None] + np.arange(size) * stride
        return places

    def placed(
        self, machine: Machine, array: np.ndarray, name: str, before: Sequence[Allocation | None] = ()
    ) -> Allocation | None:
        """Returns the allocation that contains an array in the layout of the type: a new one, unless it is shared.

        Args:
            machine: in whose global memory it is.
            array: of the type's shape and element type, or a scalar, for which there is none.
            name: of the allocation, for messages.
            before: the allocations of the arguments before this one.
        """
        if not self.is_memory:
            return None
        if self.shared is not None:
            return before[self.shared]
        places = self.positions()
        if not places.size or int(places.max()) + 1 == places.size:
            return machine.heap.array(array, name)
        item = self.type.element.bytes
        allocation = machine.heap.allocate((int(places.max()) + 1) * item, name)
        allocation.typed(self.type.element.dtype)[places] = array
        return allocation

    def held(self, allocation: Allocation) -> np.ndarray:
        """Returns the elements of the array that an allocation contains.

        Args:
            allocation: as `placed` returns it.
        """
        return allocation.typed(self.type.element.dtype)[self.positions()]

    @property
    def is_memory(self) -> bool:
        """Whether it represents an array."""
        return isinstance(self.type, core_types.Buffer)

    @property
    def bytes(self) -> int:
        """Bytes of the parameter."""
        if isinstance(self.type, core_types.Scalar):
            return self.type.bytes
        return tensor_maps.BYTES if self.box else _POINTER_BYTES

    @property
    def alignment(self) -> int:
        """The alignment of the parameter in bytes."""
        return _MAP_ALIGNMENT if self.box else self.bytes

    def describe(self) -> str:
        """Returns what it is, for a message."""
        if isinstance(self.type, core_types.Scalar):
            return f"a number of type {self.type.name}"
        return "a TMA descriptor" if self.box else "a pointer"

    def poison(self) -> np.ndarray:
        """Returns an array of values that no right result is, NaN or the smallest integer, for memory that is written
        before it is read."""
        assert isinstance(self.type, core_types.Buffer)
        element = self.type.element
        value = np.nan if element.is_float else np.iinfo(element.dtype).min
        return np.full(self.type.static_shape, value, element.dtype)

    def passed(self, machine: Machine, allocation: Allocation | None, array: np.ndarray, address: int) -> bytes:
        """Returns the bytes of the kernel's parameter, and records a TMA descriptor at the address of the parameter.

        Args:
            machine: that the kernel is launched on.
            allocation: that the parameter points to; None for a scalar.
            array: the content, or the scalar.
            address: of the parameter.

        Raises:
            StepladderError: a TMA descriptor that the hardware does not accept.
        """
        if allocation is None:
            return np.asarray(array, self.type.element.dtype).tobytes()
        if not self.box:
            return struct.pack("<q", allocation.address)
        descriptor = self.tensor_map(allocation)
        problems = descriptor.problems()
        if problems:
            raise StepladderError(
                f"{self.name or 'an argument'} is not a TMA descriptor that the hardware takes: {problems[0]}"
            )
        machine.globals["tensor map", address] = descriptor
        return tensor_maps.encoded(descriptor)


def _scalar(name: str, text: str) -> core_types.Scalar:
    """Returns an element type.

    Raises:
        StepladderError: there is none with this name.
    """
    type_ = _decoded(name)
    if not isinstance(type_, core_types.Scalar):
        raise StepladderError(
            f"argument '{text}' has the element type '{name}', which there is not",
            notes=["accepted: element types of MLIR, such as f16, bf16, f32, f64, i8, i32 and f8E4M3FN"],
        )
    return type_


@functools.cache
def _decoded(name: str) -> core_types.Type | None:
    """Returns the type that a text is, in no context of MLIR; None where it is none."""
    try:
        with ir.Context(), ir.Location.unknown():
            core_types.forget()
            return core_types.decode(ir.Type.parse(name))
    except ir.MLIRError:
        return None
    finally:
        core_types.forget()


def _array(element: core_types.Scalar, shape: Sequence[int]) -> core_types.Buffer:
    strides = tuple(int(np.prod(shape[axis + 1 :], dtype=int)) for axis in range(len(shape)))
    return core_types.Buffer(tuple(shape), element, strides, 0, "global")


def from_manifest(manifest: Manifest, arguments: Sequence[bundle.Argument] | None = None) -> list[Argument]:
    """Returns the arguments of a bundle's kernel, that of the matmul unless those of another one are given.

    Args:
        manifest: of the bundle.
        arguments: of another kernel of the bundle, such as one that repacks operands; None for the matmul's.

    Raises:
        StepladderError: an argument that the emulator has no form for.
    """
    return from_arguments(manifest.arguments if arguments is None else arguments, manifest.tma_descriptors)


def from_arguments(
    arguments: Sequence[bundle.Argument], descriptors: Sequence[bundle.TmaDescriptor] = ()
) -> list[Argument]:
    """Returns the arguments of a kernel.

    Args:
        arguments: of a bundle's manifest.
        descriptors: TMA descriptors that they refer to.

    Raises:
        StepladderError: an argument that the emulator has no form for.
    """
    result: list[Argument] = []
    roles = [argument.role for argument in arguments]
    for number, argument in enumerate(arguments):
        shared_with = roles.index(argument.role) if argument.role in roles[:number] else None
        element = _scalar(argument.element_type, argument.name)
        if argument.by_value:
            result.append(Argument(argument.name, element))
            continue
        type_ = _array(element, argument.shape)
        if argument.descriptor is None:
            result.append(Argument(argument.name, type_, shared=shared_with))
            continue
        descriptor = descriptors[argument.descriptor]
        swizzle = int(descriptor.swizzle.removesuffix("b")) if descriptor.swizzle != "none" else 0
        if descriptor.interleave != "none":
            raise StepladderError(
                f"the TMA descriptor of {argument.name} has interleave {descriptor.interleave}: expected none"
            )
        strides = (*(stride // element.bytes for stride in descriptor.strides), 1)
        result.append(
            Argument(
                argument.name,
                type_,
                0,
                descriptor.box,
                swizzle,
                descriptor.shape,
                strides,
                "",
                shared_with,
                descriptor.offset,
                descriptor.oob_fill == "nan",
            )
        )
    return result


def from_texts(texts: Sequence[str]) -> list[Argument]:
    """Returns the arguments that texts describe (`FORMS`).

    Args:
        texts: one an argument, in order.

    Raises:
        StepladderError: a text that describes none.
    """
    arguments = []
    for text in texts:
        if array := _ARRAY.fullmatch(text):
            arguments.append(_array_of(text, array))
        elif scalar := _NUMBER.fullmatch(text):
            type_ = _scalar(scalar["type"], text)
            arguments.append(Argument("", type_, _number(scalar["value"], type_, text)))
        else:
            raise StepladderError(f"argument '{text}' must be {FORMS}")
    return arguments


def _array_of(text: str, parts: re.Match[str]) -> Argument:
    shape = tuple(map(int, parts["shape"].split("x")))
    type_ = _array(_scalar(parts["type"], text), shape)
    box = tuple(map(int, parts["box"].split("x"))) if parts["box"] else ()
    swizzle = int(parts["swizzle"] or 0)
    if box and len(box) != len(shape):
        raise StepladderError(f"argument '{text}' has a box of {len(box)} dimensions, and {len(shape)} itself")
    if 0 in shape or 0 in box:
        raise StepladderError(f"argument '{text}' has a size of 0: sizes are integers from 1")
    if swizzle not in _SWIZZLES:
        raise StepladderError(f"argument '{text}' has a swizzle of {swizzle} bytes; accepted: 32, 64 and 128")
    fill = parts["fill"] or ""
    if fill not in ("", "iota", OUTPUT):
        _number(fill, type_.element, text)
    strides = tuple(stride or 1 for stride in type_.strides)
    return Argument("", type_, 0, box, swizzle, shape, strides, fill)


def _number(text: str, type_: core_types.Scalar, argument: str) -> float:
    """Returns a number of a type.

    Raises:
        StepladderError: the type does not have it.
    """
    if type_.is_float:
        return float(text)
    if not re.fullmatch(r"-?\d+", text):
        raise StepladderError(f"argument '{argument}' is not an integer, and {type_.name} has no others")
    value = int(text)
    smallest = 0 if type_.width == 1 else -(1 << (type_.width - 1))
    if not smallest <= value < 1 << type_.width:
        raise StepladderError(
            f"argument '{argument}' does not fit {type_.name}, which goes from {smallest} to {(1 << type_.width) - 1}"
        )
    return wrap(value, type_.width)
