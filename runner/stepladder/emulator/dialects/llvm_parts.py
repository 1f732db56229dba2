"""llvm: what loads and stores access: numbers, also where they are not aligned, pointers, structs and arrays."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core import elements, values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import BOOL, Opaque, Scalar, Type, text_of
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.llvm import NUMBERS, Struct
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.memory import pointers
from stepladder.mlir.llvm_layouts import Layout, layout

_BYTE = Scalar("i8", np.dtype(np.int8), 8)
_POINTER = Scalar("ptr", np.dtype(np.int64), 64)


class Place:
    """Where a load or a store accesses memory.

    Args:
        fiber: the threads.
        op: the instruction.
        pointer: the address, uniform or (T,).
        shared: whether it is of shared memory.
        alignment: of the address, in bytes.
    """

    def __init__(self, fiber: Fiber, op: Instruction, pointer: Value, *, shared: bool, alignment: int) -> None:
        self.fiber = fiber
        self.op = op
        self.pointer = pointer
        self.shared = shared
        self.alignment = alignment

    def read(self, type_: Type) -> Value:
        """Returns the value of a type that is there.

        Args:
            type_: a Scalar, a Vector, or a pointer, a struct or an array.
        """
        if isinstance(type_, Opaque):
            return self._read_form(self._form(type_), self.pointer)
        return self._read(self.pointer, type_.element, type_.static_shape)

    def write(self, type_: Type, value: Value) -> None:
        """Puts a value there.

        Args:
            type_: of the value, as for `read`.
            value: uniform or with leading lanes.
        """
        if isinstance(type_, Opaque):
            self._write_form(self._form(type_), self.pointer, value)
        else:
            self._write(self.pointer, value, type_.element, type_.static_shape)

    def _form(self, type_: Opaque) -> Layout:
        try:
            return layout(text_of(type_))
        except ValueError:
            raise Unsupported(self.op, f"of {type_.text}") from None

    def _read(self, pointer: Value, element: Scalar, shape: tuple[int, ...]) -> Value:
        if shape and element.width < 8 * element.bytes:
            (count,) = shape
            packed = self._read(pointer, _BYTE, (-(-count * element.width // 8),))
            return elements.reinterpreted(packed, _BYTE, element)[..., :count]
        if self.alignment >= element.bytes:
            return pointers.read(self.fiber, self.op, pointer, element, shape, shared=self.shared)
        read = pointers.read(self.fiber, self.op, pointer, _BYTE, (*shape, element.bytes), shared=self.shared)
        return elements.plain(np.ascontiguousarray(read).view(element.dtype)[..., 0])

    def _write(self, pointer: Value, value: Value, element: Scalar, shape: tuple[int, ...]) -> None:
        if shape and element.width < 8 * element.bytes:
            value = _packed(np.asarray(value, element.dtype), element)
            element, shape = _BYTE, value.shape[-1:]
        if self.alignment < element.bytes:
            value = np.ascontiguousarray(np.asarray(value, element.dtype)[..., None]).view(np.int8)
            element, shape = _BYTE, (*shape, element.bytes)
        pointers.write(self.fiber, self.op, pointer, value, element, shape, shared=self.shared)

    def _scalar(self, form: Layout) -> Scalar:
        if form.kind == "pointer":
            return _POINTER
        if form.name not in NUMBERS:
            raise Unsupported(self.op, f"of {form.name}")
        return BOOL if form.name == "i1" else Scalar(form.name, np.dtype(NUMBERS[form.name]), 8 * form.bytes)

    def _read_form(self, form: Layout, pointer: Value) -> Value:
        if form.kind in ("number", "pointer"):
            return self._read(pointer, self._scalar(form), ())
        count = self.fiber.count
        if form.kind == "vector":
            return values.lanes(self._read(pointer, self._scalar(form.part(0)), (form.count,)), count, 1)
        parts = [self._read_form(form.part(number), pointer + form.offset(number)) for number in range(form.count)]
        if not is_of_one_number(form):
            return Struct(tuple(parts))
        return AccumulatorRegisters(np.stack([values.lanes(part, count) for part in parts], axis=1))

    def _write_form(self, form: Layout, pointer: Value, value: Value) -> None:
        if form.kind in ("number", "pointer"):
            if not isinstance(value, (np.ndarray, np.generic, int, float)):
                raise Unsupported(self.op, "of the address of a TMA descriptor")
            self._write(pointer, value, self._scalar(form), ())
        elif form.kind == "vector":
            self._write(pointer, value, self._scalar(form.part(0)), (form.count,))
        else:
            fields = value.read(self.fiber, self.op).T if isinstance(value, AccumulatorRegisters) else value.fields
            for number, field in enumerate(fields):
                self._write_form(form.part(number), pointer + form.offset(number), field)


def _packed(value: np.ndarray, element: Scalar) -> np.ndarray:
    """Returns vectors of elements that are less than a byte as bytes, of which the last may have unused bits."""
    missing = -value.shape[-1] % 8
    filled = np.concatenate([value, np.zeros((*value.shape[:-1], missing), value.dtype)], axis=-1)
    return np.asarray(elements.reinterpreted(filled, element, _BYTE))[..., : -(-value.shape[-1] * element.width // 8)]


def is_of_one_number(form: Layout) -> bool:
    """Returns whether a struct or an array has fields of one type of numbers alone, and at least one.

    Args:
        form: of the type.
    """
    parts = {form.part(number) for number in range(form.count)}
    return len(parts) == 1 and parts.pop().name in NUMBERS
