"""llvm: structs, arrays, vectors and constants.

A struct or an array of scalars of one type is an `accumulators.AccumulatorRegisters`, an array with an element for
each, which is what wgmma takes and returns. Any other is a `Struct` of values. A pointer is an address, or a TMA
descriptor (`pointers`).
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from stepladder.emulator.core import elements, values
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.types import Opaque, Shaped, text_of
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.ub import POISON, poison_of
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.mlir.bindings import ir
from stepladder.mlir.llvm_layouts import Layout, layout

_FP8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
# NumPy's type of each number.
NUMBERS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": bool,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}


class Struct:
    """A struct or an array: `fields` are values, vectors among them with lanes."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple) -> None:
        self.fields = fields

    @staticmethod
    def merged(parts: list[Struct], masks: list, count: int) -> Struct:
        """Returns the struct whose fields are, in the lanes of each mask, those of the part.

        Args:
            parts: structs of the same type.
            masks: a bool array (T,) for each part.
            count: T, the number of lanes.
        """
        columns = zip(*(part.fields for part in parts))
        return Struct(tuple(values.merge(list(fields), masks, count) for fields in columns))


class Held:
    """An accumulator register that passes from one wgmma to another, and may be in flight."""

    __slots__ = ("place", "sums")

    def __init__(self, sums: AccumulatorRegisters, place: int) -> None:
        self.sums = sums
        self.place = place

    @staticmethod
    def merged(parts: list, masks: list, count: int) -> Held:
        """Returns the register whose values are, in the lanes of each mask, those of the part.

        Args:
            parts: accumulator registers, or scalars.
            masks: a bool array (T,) for each part.
            count: T, the number of lanes.
        """
        sums = [part.sums for part in parts if isinstance(part, Held)]
        columns = [
            part.sums.array[:, part.place]
            if isinstance(part, Held)
            else np.array(values.lanes(np.asarray(part, np.int32), count)).view(sums[0].array.dtype)
            for part in parts
        ]
        array = np.array(columns[0])
        for column, mask in zip(columns[1:], masks[1:]):
            array[mask] = column[mask]
        products = {id(product): product for part in sums for product in part.products}
        return Held(AccumulatorRegisters(array[:, None], list(products.values())), 0)


# Structs.


def _filled(op: Instruction, form: Layout, count: int, byte: int) -> Value:
    """Returns a value of a type with all bytes the same, in each of `count` lanes where there are parts."""
    if form.kind == "pointer":
        return 0
    if form.kind == "number":
        if form.name not in NUMBERS:
            raise Unsupported(op, f"of {form.name}")
        return elements.plain(np.full(form.bytes, byte, np.uint8).view(NUMBERS[form.name])[0])
    parts = form.parts if form.kind == "struct" else form.parts * form.count
    if (form.kind != "vector" and len(set(parts)) != 1) or parts[0].name not in NUMBERS:
        return Struct(tuple(_filled(op, part, count, byte) for part in parts))
    kind = np.dtype(NUMBERS[parts[0].name])
    array = np.full((count, len(parts) * kind.itemsize), byte, np.uint8).view(kind)
    return array if form.kind == "vector" else AccumulatorRegisters(array)


def _of_bytes(fiber: Fiber, op: Instruction, byte: int) -> Value:
    type_ = op.result_types[0]
    if isinstance(type_, Shaped):
        return np.full((*type_.static_shape, type_.element.bytes), byte, np.uint8).view(type_.element.dtype)[..., 0]
    return _filled(op, layout(text_of(type_)), fiber.count, byte)


@executes("llvm.mlir.undef", "llvm.mlir.poison")
def undef(fiber: Fiber, op: Instruction) -> Value:
    """Anything: all bits set, which is NaN."""
    return _of_bytes(fiber, op, 0xFF)


@executes("llvm.mlir.zero")
def zero(fiber: Fiber, op: Instruction) -> Value:
    """Zeros."""
    return _of_bytes(fiber, op, 0)


@executes("llvm.mlir.constant")
def constant(fiber: Fiber, op: Instruction) -> Value:
    """A constant."""
    value, type_ = op.attributes["value"], op.result_types[0]
    if isinstance(value, np.generic | np.ndarray) and value.dtype in _FP8:  # bytes, as LLVM has no type for them
        value = elements.plain(np.asarray(value).view(np.int8))
    if isinstance(type_, Opaque):
        if not isinstance(value, np.ndarray):
            raise Unsupported(op, f"of {type_.text}")
        return _array(value, layout(type_.text), fiber.count)
    return value if isinstance(value, np.ndarray) else elements.number(value, type_.element)


def _array(value: np.ndarray, form: Layout, count: int) -> Value:
    """Returns an array of scalars, of vectors, or of arrays, given all its elements."""
    if form.kind == "vector":
        return values.lanes(value, count, 1)
    if form.part(0).kind == "number":
        return AccumulatorRegisters(values.lanes(value, count, 1))
    return Struct(tuple(_array(part, form.part(0), count) for part in value))


@lowers("llvm.extractvalue")
def lower_extractvalue(builder: Builder, op: ir.Operation) -> None:
    """`llvm.extractvalue`: a value that only inline PTX uses is not read by the extraction."""
    attributes = decode_attributes(op)
    if not all(use.owner.name == "llvm.inline_asm" for use in op.results[0].uses):
        builder.emit(op.name, extractvalue, builder.used(op.operands), builder.defined(op.results), attributes)
        return
    # A product has up to 128 of them in a row, which are executed as one.
    used_slots, defined_slots, block = builder.used(op.operands), builder.defined(op.results), hash(op.block)
    last = builder.code[-1] if builder.code else None
    if (
        last is None
        or last.execute is not fields_for_ptx
        or last.operands != tuple(used_slots)
        or last.cache.get("block") != block
    ):
        last = builder.emit(op.name, fields_for_ptx, used_slots, (), {"positions": []})
        last.cache["block"] = block
    last.attributes["positions"].append(attributes["position"])
    last.results = (*last.results, *defined_slots)


def extractvalue(fiber: Fiber, op: Instruction, struct: Value) -> Value:
    """A field, or a field of a field."""
    for place in op.attributes["position"]:
        struct = struct.read(fiber, op)[:, place] if isinstance(struct, AccumulatorRegisters) else struct.fields[place]
    return struct


def fields_for_ptx(fiber: Fiber, op: Instruction, struct: Value) -> Value:
    """Fields that PTX takes as they are."""
    positions = op.attributes["positions"]
    if isinstance(struct, AccumulatorRegisters):
        fields: list[Value] = [Held(struct, place) for (place,) in positions]
    else:
        fields = [field_for_ptx(struct, position) for position in positions]
    return fields if len(fields) > 1 else fields[0]


def field_for_ptx(struct: Value, position: Sequence[int]) -> Value:
    """Returns a field of a struct without waiting for products in flight.

    Args:
        struct: the operand.
        position: the indices of the field, the outermost first.
    """
    for place in position:
        struct = Held(struct, place) if isinstance(struct, AccumulatorRegisters) else struct.fields[place]
    return struct


@executes("llvm.insertvalue")
def insertvalue(fiber: Fiber, op: Instruction, struct: Value, value: Value) -> Value:
    """A struct with one field changed."""
    rank = op.operand_types[1].rank
    return _inserted(
        fiber, op, struct, values.lanes(value, fiber.count, rank) if rank else value, op.attributes["position"]
    )


def _inserted(fiber: Fiber, op: Instruction, struct: Value, value: Value, position: Value) -> Value:
    place, *inner = position
    if isinstance(struct, AccumulatorRegisters):
        array = struct.read(fiber, op).copy()
        array[:, place] = value
        return AccumulatorRegisters(array)
    fields = list(struct.fields)
    fields[place] = _inserted(fiber, op, fields[place], value, inner) if inner else value
    return Struct(tuple(fields))


# Vectors.


@executes("llvm.extractelement")
def extractelement(fiber: Fiber, op: Instruction, vector: Value, place: Value) -> Value:
    """An element of a vector; by -1, which MLIR's lowering of `vector.shuffle` writes for one, a poisoned element."""
    if values.is_uniform(place) and int(place) == POISON:
        return elements.plain(poison_of(op.result_types[0]))
    place = _within(fiber, op, place)
    if not isinstance(place, np.ndarray):
        return elements.plain(vector[..., place])
    return values.lanes(vector, fiber.count, 1)[np.arange(fiber.count), place]


@executes("llvm.insertelement")
def insertelement(fiber: Fiber, op: Instruction, vector: Value, value: Value, place: Value) -> Value:
    """A vector with one element changed."""
    place = _within(fiber, op, place)
    if values.is_uniform(vector, 1) and values.is_uniform(value) and not isinstance(place, np.ndarray):
        result = np.array(vector)
        result[place] = value
        return result
    result = np.array(values.lanes(vector, fiber.count, 1))
    result[np.arange(fiber.count), place] = value
    return result


def _within(fiber: Fiber, op: Instruction, place: Value) -> Value:
    """Returns the number of an element, of one that there is; a finding where it is none."""
    count = op.operand_types[0].shape[0]
    own = int(place) if values.is_uniform(place) else place[fiber.lanes]
    if isinstance(own, int) and 0 <= own < count:
        return own
    wrong = np.ravel((own < 0) | (own >= count))
    if wrong.any():
        fiber.group.sanitizer.report("out-of-bounds", f"element {np.ravel(own)[wrong][0]} of a vector of {count}", op)
    return np.clip(place, 0, count - 1) if isinstance(place, np.ndarray) else min(max(own, 0), count - 1)


@executes("llvm.shufflevector")
def shufflevector(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Elements of two vectors one after the other; -1 represents any."""
    left, right = (values.lanes(vector, fiber.count, 1) for vector in (left, right))
    return np.concatenate([left, right], axis=1)[:, np.maximum(op.attributes["mask"], 0)]


@executes("llvm.bitcast")
def bitcast(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The same bits as another type."""
    source, target = op.operand_types[0], op.result_types[0]
    if Opaque in (type(source), type(target)):
        raise Unsupported(op, f"of {text_of(source)} to {text_of(target)}")
    array = np.asarray(value, source.element.dtype)
    if not source.rank:
        array = array[..., None]
    flat = array.reshape(*array.shape[: array.ndim - max(source.rank, 1)], -1)
    bits = np.asarray(elements.reinterpreted(flat, source.element, target.element))
    return elements.plain(bits.reshape(*bits.shape[:-1], *target.shape) if target.rank else bits[..., 0])
