"""llvm: structs, pointers and constants, as they stand beside nvvm's ops before the rest is lowered.

A struct of numbers of one type is `asynchronous.Sums`, an array with a place for each: so wgmma gives and takes them.
Any other struct is a `Struct` of values. A pointer is an address, or a TMA descriptor. Memory is read by pointers into the
shared memory of a cluster's blocks, as `nvvm.mapa` makes them: for what memrefs cannot say.
"""

from __future__ import annotations

import numpy as np

from stepladder.emulator import elements, memory, synchronization, values
from stepladder.emulator.asynchronous import Sums
from stepladder.emulator.machine import Unsupported
from stepladder.emulator.registry import executes
from stepladder.emulator.types import BOOL, Opaque

_SHARED_OF_CLUSTER = "!llvm.ptr<7>"
_DYNAMIC = -2**31  # an index of getelementptr that is an operand

_NUMBERS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": bool, "i8": np.int8, "i16": np.int16,
            "i32": np.int32, "i64": np.int64}


class Struct:
    """A struct: `fields` are values."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple):
        self.fields = fields

    @staticmethod
    def merged(parts: list[Struct], masks: list, count: int) -> Struct:
        """Returns the struct that has, in the lanes of each mask, the fields of that part."""
        columns = zip(*(part.fields for part in parts))
        return Struct(tuple(values.merge(list(fields), masks, count) for fields in columns))


def _fields(text: str) -> list[str]:
    """Returns the types of a struct's fields, as texts."""
    inside = text[text.index("(") + 1:text.rindex(")")]
    fields, depth = [""], 0
    for letter in inside:
        depth += (letter in "(<[") - (letter in ")>]")
        if letter == "," and not depth:
            fields.append("")
        else:
            fields[-1] += letter
    return [field.strip() for field in fields]


def _filled(op, text: str, count: int, byte: int):
    """Returns a value of a type with all bytes the same."""
    if "struct<" not in text:
        if text not in _NUMBERS:
            if byte:
                raise Unsupported(op, f"of {text}")
            return 0  # a pointer
        return elements.plain(np.full(np.dtype(_NUMBERS[text]).itemsize, byte, np.uint8).view(_NUMBERS[text])[0])
    fields = _fields(text)
    if len(set(fields)) == 1 and fields[0] in _NUMBERS:
        kind = np.dtype(_NUMBERS[fields[0]])
        return Sums(np.full((count, len(fields) * kind.itemsize), byte, np.uint8).view(kind))
    return Struct(tuple(_filled(op, field, count, byte) for field in fields))


def _text(type_) -> str:
    return type_.text if isinstance(type_, Opaque) else type_.name


@executes("llvm.mlir.undef", "llvm.mlir.poison")
def undef(fiber, op):
    """Anything: all bits set, which is no number."""
    return _filled(op, _text(op.result_types[0]), fiber.count, 0xFF)


@executes("llvm.mlir.zero")
def zero(fiber, op):
    """Zeros."""
    return _filled(op, _text(op.result_types[0]), fiber.count, 0)


@executes("llvm.mlir.constant")
def constant(fiber, op):
    """A constant."""
    value, type_ = op.attributes["value"], op.result_types[0]
    return value if isinstance(value, np.ndarray) else elements.number(value, type_.element)


@executes("llvm.extractvalue")
def extractvalue(fiber, op, struct):
    """A field, or a field of a field."""
    for place in op.attributes["position"]:
        struct = struct.read(fiber, op)[:, place] if isinstance(struct, Sums) else struct.fields[place]
    return struct


@executes("llvm.insertvalue")
def insertvalue(fiber, op, struct, value):
    """A struct with one field changed."""
    return _inserted(fiber, op, struct, value, op.attributes["position"])


def _inserted(fiber, op, struct, value, position):
    place, *inner = position
    if isinstance(struct, Sums):
        array = struct.read(fiber, op).copy()
        array[:, place] = value
        return Sums(array)
    fields = list(struct.fields)
    fields[place] = _inserted(fiber, op, fields[place], value, inner) if inner else value
    return Struct(tuple(fields))


@executes("llvm.inttoptr", "llvm.ptrtoint", "llvm.addrspacecast")
def as_pointer(fiber, op, value):
    """The same address under another type."""
    return value


@executes("llvm.bitcast")
def bitcast(fiber, op, value):
    """The same bits as another type."""
    source, target = op.operand_types[0], op.result_types[0]
    if BOOL in (source, target) or Opaque in (type(source), type(target)):
        raise Unsupported(op, f"of {source} to {target}")
    array = np.asarray(value, source.element.dtype)
    if not source.rank:
        array = array[..., None]
    bits = np.ascontiguousarray(array.reshape(*array.shape[:array.ndim - max(source.rank, 1)], -1)).view(
        target.element.dtype)
    return elements.plain(bits.reshape(*bits.shape[:-1], *target.shape) if target.rank else bits[..., 0])


@executes("llvm.trunc")
def trunc(fiber, op, value):
    """The lower bits of an integer."""
    return elements.wrapped(value, op.result_types[0].element)


@executes("llvm.getelementptr")
def getelementptr(fiber, op, pointer, *indices):
    """The address of an element, so many behind another."""
    if list(op.attributes["rawConstantIndices"]) != [_DYNAMIC] or len(indices) != 1:
        raise Unsupported(op, "with other indices than one that is computed")
    return pointer + indices[0] * op.attributes["elem_type"].dtype.itemsize


@executes("llvm.load")
def load(fiber, op, pointer):
    """A number or vector from the shared memory of a block of the cluster."""
    group, type_ = fiber.group, op.result_types[0]
    if _text(op.operand_types[0]) != _SHARED_OF_CLUSTER:
        raise Unsupported(op, f"from {_text(op.operand_types[0])}")
    address = values.lanes(np.asarray(pointer), fiber.count, 0)
    block = (address >> memory.RANK_SHIFT) - 1
    block = np.where(block < 0, group.block_of_lane, block)
    if group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, "reads shared memory")
    item, count = type_.element.dtype.itemsize, int(np.prod(type_.shape, dtype=int))
    place = (address % (1 << memory.RANK_SHIFT))[fiber.lanes]
    alignment = op.attributes.get("alignment") or count * item
    if np.any(place % alignment):
        group.sanitizer.misaligned(fiber, op, int(place[place % alignment != 0][0]), alignment)
    window = group.window
    inside = (place + count * item <= window.size)[:, None] & np.ones(count, bool)
    if not inside.all():
        view = memory.contiguous(window, type_.element, (window.size // item,))
        group.sanitizer.out_of_bounds(fiber, op, view, [place[:, None] // item + np.arange(count)], ~inside, 1)
    positions = (block[fiber.lanes] * (window.size // item) + place // item)[:, None] + np.arange(count)
    access = memory.Access(window, type_.element, positions, None if inside.all() else inside, True)
    group.sanitizer.read(fiber, op, access)
    if group.counters is not None:
        group.counters.access(fiber, op, access, "load")
    return memory.spread(fiber, memory.gather(access).reshape(-1, *type_.shape))
