"""llvm: addresses, loads and stores."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.types import Opaque, Scalar, Type, Vector, text_of
from stepladder.emulator.core.values import Value, in_lanes
from stepladder.emulator.dialects import llvm_atomic
from stepladder.emulator.dialects.llvm_parts import Place
from stepladder.emulator.memory import pointers
from stepladder.mlir.llvm_layouts import layout

_DYNAMIC = -(1 << 31)  # an index that is an operand
_BYTE = Scalar("i8", np.dtype(np.int8), 8)
_ATOMIC_ORDERINGS = range(1, 8)  # 0 is none


# Addresses.


@executes("llvm.getelementptr")
def getelementptr(fiber: Fiber, op: Instruction, pointer: Value, *indices: Value) -> Value:
    """The address of a part of the value at an address."""
    if "terms" not in op.cache:
        op.cache["terms"] = _terms(op)
    constant, strides = op.cache["terms"]
    if isinstance(op.result_types[0], Vector):  # an address for each element
        ranks = [type_.rank for type_ in op.operand_types]
        columns = in_lanes([pointer, *indices], [1] * len(ranks), fiber.count)
        pointer, *index_columns = (part if rank else part[..., None] for part, rank in zip(columns, ranks))
        indices = tuple(index_columns)
    for index, stride in zip(indices, strides):
        pointer = pointer + (index.astype(np.int64) if isinstance(index, np.ndarray) else int(index)) * stride
    return pointer + constant if constant else pointer


def _terms(op: Instruction) -> tuple[int, list[int]]:
    """Returns the bytes that constant indices amount to, and the stride in bytes of each other one."""
    form = layout(text_of(op.attributes["elem_type"]))
    constant, strides = 0, []
    for place, index in enumerate(op.attributes["rawConstantIndices"]):
        if index != _DYNAMIC:
            constant += index * form.bytes if place == 0 else form.offset(index)
            form = form if place == 0 else form.part(index)
        else:
            strides.append(form.bytes if place == 0 else form.part(0).bytes)
            form = form if place == 0 else form.part(0)
    return constant, strides


# Loads and stores.


def _place(fiber: Fiber, op: Instruction, pointer: Value, type_: Type, shared: bool) -> Place:
    """Returns where a value of a type is accessed, once the address is checked."""
    if "alignment" not in op.cache:
        op.cache["alignment"] = op.attributes.get("alignment", _alignment(op, type_))
    pointers.check_alignment(fiber, op, pointer, op.cache["alignment"])
    return Place(fiber, op, pointer, shared=shared, alignment=op.cache["alignment"])


def _alignment(op: Instruction, type_: Type) -> int:
    try:
        return layout(text_of(type_)).alignment
    except ValueError:
        raise Unsupported(op, f"of {text_of(type_)}") from None


@executes("llvm.load")
def load(fiber: Fiber, op: Instruction, pointer: Value) -> Value:
    """A number, a vector, a pointer, a struct or an array."""
    type_ = op.result_types[0]
    place = _place(fiber, op, pointer, type_, pointers.is_shared(op.operand_types[0]))
    if op.attributes.get("ordering") in _ATOMIC_ORDERINGS:
        return llvm_atomic.load(fiber, op, pointer, _number(op, type_))
    return place.read(type_)


@executes("llvm.store")
def store(fiber: Fiber, op: Instruction, value: Value, pointer: Value) -> None:
    """A number, a vector, a pointer, a struct or an array."""
    type_ = op.operand_types[0]
    place = _place(fiber, op, pointer, type_, pointers.is_shared(op.operand_types[1]))
    if op.attributes.get("ordering") in _ATOMIC_ORDERINGS:
        llvm_atomic.store(fiber, op, pointer, value, _number(op, type_))
        return
    place.write(type_, value)


def _number(op: Instruction, type_: Type) -> Scalar:
    if isinstance(type_, Opaque):
        raise Unsupported(op, f"of {type_.text}, atomically")
    return type_.element


@executes("llvm.intr.prefetch")
def prefetch(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: there is no cache."""
