"""llvm: globals, addresses, loads and stores."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import executes, lowers, shared
from stepladder.emulator.core.types import Opaque, Scalar, Type, Vector, decode, text_of
from stepladder.emulator.core.values import Value, in_lanes
from stepladder.emulator.dialects import llvm_atomic
from stepladder.emulator.dialects.llvm_parts import Place
from stepladder.emulator.memory import pointers
from stepladder.emulator.memory.memory import contiguous
from stepladder.mlir.bindings import ir
from stepladder.mlir.llvm_layouts import Layout, layout
from stepladder.runtime.errors import StepladderError

_DYNAMIC = -(1 << 31)  # an index that is an operand
_BYTE = Scalar("i8", np.dtype(np.int8), 8)
_ATOMIC_ORDERINGS = range(1, 8)  # 0 is none


# Globals.


def _name(builder: Builder, symbol: str) -> str:
    return "::".join([*builder.modules, symbol])


@lowers("llvm.mlir.global")
def lower_global(builder: Builder, op: ir.Operation) -> None:
    """Records `llvm.mlir.global` for `llvm.mlir.addressof`."""
    attributes = decode_attributes(op)
    attributes["layout"] = layout(text_of(decode(ir.TypeAttr(op.attributes["global_type"]).value)))
    inner = {part.operation.name for block in op.regions[0].blocks for part in block.operations}
    if inner - {"llvm.mlir.undef", "llvm.mlir.poison", "llvm.return"}:
        raise StepladderError(
            f"the emulator does not support {op.name} with an initializer that computes", location=builder.location
        )
    builder.globals[_name(builder, attributes["sym_name"])] = attributes


@lowers("llvm.mlir.addressof")
def lower_addressof(builder: Builder, op: ir.Operation) -> None:
    """`llvm.mlir.addressof`: the address of a global, which may be defined later."""
    symbol = _name(builder, op.attributes["global_name"].value)
    builder.emit(op.name, addressof, (), builder.defined(op.results), {"symbol": symbol, "globals": builder.globals})


def addressof(fiber: Fiber, op: Instruction) -> Value:
    """The address of a global: in a block's own shared memory, or in global memory."""
    group = fiber.group
    symbol = op.attributes["symbol"]
    attributes = op.attributes["globals"][symbol]
    if attributes.get("addr_space") == pointers.SHARED:
        return group.layout[symbol]
    globals_ = group.machine.globals
    if symbol not in globals_:
        place = group.machine.heap.allocate(attributes["layout"].bytes, f"@{symbol}")
        place.is_array = not attributes.get("constant")
        initial = attributes.get("value")
        if isinstance(initial, str):
            initial = np.frombuffer(initial.encode(), np.uint8)
        if isinstance(initial, (int, float)) and not isinstance(initial, bool):
            initial = _number_of(attributes["layout"], initial)
        if isinstance(initial, np.ndarray):
            place.data[: initial.nbytes] = np.frombuffer(initial.tobytes(), np.uint8)
        elif initial is not None:
            raise Unsupported(op, "of a global that is not an array of scalars")
        globals_[symbol] = contiguous(place, _BYTE, (place.size,))
    return globals_[symbol].memory.address


def _number_of(form: Layout, value: Value) -> np.ndarray | None:
    """Returns a scalar as an array of the type of a global; None where that has none."""
    kinds = {
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "i8": np.int8,
        "i16": np.int16,
        "i32": np.int32,
        "i64": np.int64,
    }
    return np.array([value], kinds[form.name]) if form.name in kinds else None


@shared("llvm.mlir.addressof")
def _global_shared(op: Instruction) -> tuple[int | None, int, object] | None:
    attributes = op.attributes["globals"].get(op.attributes["symbol"], {})
    if attributes.get("addr_space") != pointers.SHARED:
        return None
    form: Layout = attributes["layout"]
    # A global of no bytes represents what the launch gives.
    return form.bytes or None, attributes.get("alignment", form.alignment), op.attributes["symbol"]


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
