"""llvm: globals, their initial values and their addresses."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, decode_attribute, decode_attributes
from stepladder.emulator.core.registry import lowers, shared
from stepladder.emulator.core.types import decode, text_of
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects.func import define
from stepladder.emulator.dialects.llvm import NUMBERS, Struct
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.memory import pointers
from stepladder.mlir.bindings import ir
from stepladder.mlir.llvm_layouts import Layout, layout
from stepladder.runtime.errors import StepladderError

# Initial values that are one byte everywhere.
_BYTES = {"#llvm.zero": 0, "#llvm.undef": 0xFF, "#llvm.poison": 0xFF}
_UNDEFINED = {"llvm.mlir.undef", "llvm.mlir.poison", "llvm.return"}


def _name(builder: Builder, symbol: str) -> str:
    return "::".join([*builder.modules, symbol])


@lowers("llvm.mlir.global")
def lower_global(builder: Builder, op: ir.Operation) -> None:
    """Records `llvm.mlir.global` for `llvm.mlir.addressof`.

    The region of an initializer becomes a function, which computes the value when the global is first used.
    """
    attributes = decode_attributes(op)
    form = attributes["layout"] = layout(text_of(decode(ir.TypeAttr(op.attributes["global_type"]).value)))
    name = _name(builder, attributes["sym_name"])
    if "value" in op.attributes:
        attributes["content"] = _content_of(builder, form, op.attributes["value"])
    inner = {part.operation.name for block in op.regions[0].blocks for part in block.operations}
    if inner - _UNDEFINED:
        define(builder, op, f"{name}::initializer")
        attributes["initializer"] = builder.functions.pop(f"{name}::initializer")
    builder.globals[name] = attributes


def _content_of(builder: Builder, form: Layout, attribute: ir.Attribute) -> np.ndarray:
    """Returns the bytes of an initial value."""
    byte = _BYTES.get(str(attribute))
    if byte is not None:
        return np.full(form.bytes, byte, np.uint8)
    value = decode_attribute(attribute)
    if isinstance(value, str) and not isinstance(attribute, ir.StringAttr):
        raise StepladderError(
            f"the emulator does not support llvm.mlir.global with the value {attribute}", location=builder.location
        )
    return _content(form, value)


def _content(form: Layout, value: Value) -> np.ndarray:
    """Returns the bytes of a value of a type: of an attribute, or of a register of the host."""
    if isinstance(value, str):
        return np.frombuffer(value.encode("utf-8", "surrogateescape"), np.uint8)
    if isinstance(value, AccumulatorRegisters):
        value = value.array
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    if isinstance(value, (Struct, list)):
        data = np.zeros(form.bytes, np.uint8)
        for number, field in enumerate(value.fields if isinstance(value, Struct) else value):
            part = _content(form.part(number), field)
            data[form.offset(number) : form.offset(number) + len(part)] = part
        return data
    return np.array([value], np.int64 if form.kind == "pointer" else NUMBERS[form.name]).view(np.uint8)


@lowers("llvm.mlir.addressof")
def lower_addressof(builder: Builder, op: ir.Operation) -> None:
    """`llvm.mlir.addressof`: the address of a global, which may be defined later."""
    symbol = _name(builder, op.attributes["global_name"].value)
    builder.emit(op.name, addressof, (), builder.defined(op.results), {"symbol": symbol, "globals": builder.globals})


def addressof(fiber: Fiber, op: Instruction) -> Value:
    """The address of a global: in a block's own shared memory, or in global memory."""
    group = fiber.group
    symbol = op.attributes["symbol"]
    attributes = op.attributes["globals"].get(symbol)
    if attributes is None:
        raise Unsupported(op, f"of @{symbol}: expected a global, not a function")
    if attributes.get("addr_space") == pointers.SHARED:
        return group.layout[symbol]
    globals_ = group.machine.globals
    if symbol not in globals_:
        place = group.machine.heap.allocate(attributes["layout"].bytes, f"@{symbol}")
        place.is_array = not attributes.get("constant")
        globals_[symbol] = place
        content = attributes.get("content")
        if "initializer" in attributes:
            (value,) = group.machine.call(attributes["initializer"], ())
            content = _content(attributes["layout"], value)
        if content is not None:
            place.data[: len(content)] = content
    return globals_[symbol].address


@shared("llvm.mlir.addressof")
def _global_shared(op: Instruction) -> tuple[int | None, int, object] | None:
    attributes = op.attributes["globals"].get(op.attributes["symbol"], {})
    if attributes.get("addr_space") != pointers.SHARED:
        return None
    form: Layout = attributes["layout"]
    # A global of no bytes represents what the launch gives.
    return form.bytes or None, attributes.get("alignment", form.alignment), op.attributes["symbol"]
