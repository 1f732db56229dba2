"""PTX in text within IR: `llvm.inline_asm` and `nvvm.inline_ptx`.

Operands come as values of MLIR's types and are bits of registers in PTX (`ptx.types`); results go the other way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import types as core_types
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects.llvm import Held, Struct
from stepladder.emulator.hardware import tma
from stepladder.emulator.hardware.accumulators import AccumulatorRegisters
from stepladder.emulator.ptx import instructions, syntax, types, whole_sums
from stepladder.emulator.ptx.flow import Flow
from stepladder.emulator.ptx.parser import parse_fragment
from stepladder.emulator.ptx.scopes import Register, Scope, Slots
from stepladder.emulator.ptx.site import bits_of
from stepladder.emulator.ptx.types import PtxType
from stepladder.mlir.bindings import ir
from stepladder.mlir.llvm_layouts import Layout, layout
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.types import Type

assert instructions.__name__  # imported for the instructions that it registers

_PTX_OPERAND = re.compile(r"\{?\$(rw|r|w)(\d+)\}?")
_BRACED = re.compile(r"\{\$(r|w)(\d+)\}")
_WIDTHS = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64, "b": 1}
_IMMEDIATES = ("n", "i")
_FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64"}


class _Fragment:
    """PTX of one op of MLIR while it is lowered.

    Args:
        builder: takes the instructions.
        op: of MLIR.
        text: PTX, with $0, $1, ... for the results first and then the operands.
    """

    def __init__(self, builder: Builder, op: ir.Operation, text: str) -> None:
        self.builder = builder
        self.op = op
        self.text = text
        self.slots = Slots(builder)
        self.scope = Scope(self.slots)
        self.registers: dict[int, Register] = {}

    def bind(self, number: int, width: int) -> Register:
        """Gives a number of the text a new register."""
        type_ = types.find("pred" if width == 1 else f"b{width}")
        assert type_ is not None
        register = Register(self.builder.new_slot(types.register(width)), type_)
        self.registers[number] = register
        self.scope.bind(f"${number}", register)
        return register

    def lower(self, outputs: Sequence[int]) -> None:
        """Emits the instructions of the text; `outputs` are slots that it writes.

        Raises:
            StepladderError: text that is no PTX, or that the emulator does not support.
        """
        location = self.builder.location
        try:
            block = parse_fragment(self.text, self.op.name)
        except StepladderError as error:
            text = " ".join(self.text.split())[:200]
            raise StepladderError(
                f"the emulator does not support the PTX of {self.op.name}: {error.message}, in {text}",
                location=location,
            ) from None

        def declare(scope: Scope, variable: syntax.Variable) -> None:
            raise StepladderError(f"variable {variable.name}: inline PTX may declare registers only", location=location)

        flow = Flow(
            self.builder,
            self.slots,
            declare,
            lambda statement: location,
            lambda statement: f"{self.op.name} {'.'.join(statement.opcode[:2])}",
        )
        flow.add(block, self.scope)
        flow.emit(outputs)


# Values of MLIR as bits, and back.


def width_of(type_: Type) -> int:
    """Returns the bits of a register that holds a value of a type.

    Args:
        type_: a scalar, a vector or a pointer.
    """
    if isinstance(type_, core_types.Scalar):
        return 64 if type_ == core_types.INDEX else type_.width
    if isinstance(type_, core_types.Shaped):
        return type_.count * type_.element.width
    return 64


def _into(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Makes bits of registers of values."""
    register_values = tuple(
        _bits(fiber, value, type_, width)
        for value, type_, width in zip(operands, op.attributes["types"], op.attributes["widths"])
    )
    return register_values[0] if len(register_values) == 1 else register_values


def _bits(fiber: Fiber, value: Value, type_: Type, width: int) -> Value:
    if isinstance(value, (Held, tma.Descriptor)):
        return value
    if isinstance(type_, core_types.Shaped):
        array = lanes(np.asarray(value, type_.element.dtype), fiber.count, 1)
        return np.ascontiguousarray(array).view(f"i{width // 8}")[:, 0]
    if isinstance(type_, core_types.Scalar) and type_.is_float:
        array = np.asarray(value, type_.dtype)
        bits = np.ascontiguousarray(array).view(f"i{type_.bytes}").reshape(array.shape)
        return bits if bits.ndim else int(bits)
    return types.stored(value, width)


def _value(fiber: Fiber, op: Instruction, bits: Value, type_: Type) -> Value:
    """Returns a register's bits as a value of a type."""
    bits = bits_of(fiber, op, bits)
    if isinstance(type_, core_types.Shaped):
        array = np.ascontiguousarray(lanes(np.asarray(bits, f"i{width_of(type_) // 8}"), fiber.count))
        return array[:, None].view(type_.element.dtype)
    if isinstance(type_, core_types.Scalar) and type_.is_float:
        return types.floats(bits, PtxType(_FLOATS[type_.name], "f", type_.width))
    if type_ == core_types.BOOL:
        return bits != 0 if isinstance(bits, np.ndarray) else bool(bits)
    return bits


def _out_of(fiber: Fiber, op: Instruction, *registers: Value) -> Value:
    """Makes values of results of bits."""
    results = tuple(_value(fiber, op, bits, type_) for bits, type_ in zip(registers, op.result_types))
    return results[0] if len(results) == 1 else results


def _struct(fiber: Fiber, op: Instruction, *registers: Value) -> Value:
    """Makes a struct of registers: sums of wgmma stay what they are."""
    first = registers[0]
    if all(type(value) is Held and value.sums is first.sums for value in registers):
        places = [value.place for value in registers]
        if places == list(range(first.sums.count)):
            return first.sums
    kinds = op.attributes["fields"]
    fields = tuple(_value(fiber, op, bits, type_) for bits, type_ in zip(registers, kinds))
    if len(set(kinds)) == 1 and not isinstance(kinds[0], core_types.Shaped):
        dtype = kinds[0].dtype if isinstance(kinds[0], core_types.Scalar) else np.dtype(np.int64)
        return AccumulatorRegisters(np.stack([lanes(np.asarray(f, dtype), fiber.count) for f in fields], axis=1))
    return Struct(fields)


def _type_of(form: Layout) -> Type:
    """Returns the type of a field."""
    if form.kind == "number":
        return core_types.decode(ir.Type.parse(form.name))
    if form.kind == "vector":
        element = core_types.decode(ir.Type.parse(form.parts[0].name))
        assert isinstance(element, core_types.Scalar)
        return core_types.Vector((form.count,), element)
    return core_types.INDEX


# llvm.inline_asm.


@lowers("llvm.inline_asm")
def lower_inline_asm(builder: Builder, op: ir.Operation) -> None:
    """`llvm.inline_asm`: the instructions of its text."""
    attributes = decode_attributes(op)
    text = attributes["asm_string"].replace("$$", "\0")
    constraints = [item for item in attributes["constraints"].split(",") if item and item[0] != "~"]
    outputs = [constraint for constraint in constraints if constraint.startswith("=")]
    inputs = constraints[len(outputs) :]
    if len(inputs) != len(op.operands):
        raise StepladderError(
            f"the emulator does not support {op.name} with the constraints {attributes['constraints']}",
            location=builder.location,
        )
    text = _with_numbers(op, text, inputs, len(outputs)).replace("\0", "$")
    fragment = _Fragment(builder, op, text)
    start = builder.here
    result_types = [core_types.decode(result.type) for result in op.results]
    kinds = _results(result_types, len(outputs))
    for number, (constraint, type_) in enumerate(zip(outputs, kinds)):
        fragment.bind(number, _width(builder, constraint, type_))
    _take(fragment, op, inputs, len(outputs))
    result_slots = [fragment.registers[number].slot for number in range(len(outputs))]
    fragment.lower(result_slots)
    if len(outputs) > 1:
        builder.emit(op.name, _struct, result_slots, builder.defined(op.results), {"fields": kinds})
        whole_sums.take_struct(builder, op, start, _bits)
    elif outputs:
        builder.emit(op.name, _out_of, result_slots, builder.defined(op.results))


def _results(result_types: list, count: int) -> list:
    """Returns the types of what the text writes: of results, or of the fields of a struct."""
    if count <= 1:
        return result_types[:count]
    return [_type_of(part) for part in layout(core_types.text_of(result_types[0])).parts]


def _with_numbers(op: ir.Operation, text: str, inputs: list[str], outputs: int) -> str:
    """Returns the text with the indices of operands that must be constants."""
    for place, constraint in enumerate(inputs):
        if constraint in _IMMEDIATES:
            owner = op.operands[place].owner
            constant = owner.operation if isinstance(owner, ir.OpView) else owner
            if isinstance(constant, ir.Block) or constant.name not in ("llvm.mlir.constant", "arith.constant"):
                raise StepladderError(
                    f"the emulator does not support {op.name} with an immediate that is not a constant"
                )
            number = ir.IntegerAttr(constant.attributes["value"]).value
            text = re.sub(rf"\$({outputs + place})(?!\d)", str(number), text)
    return text


def _width(builder: Builder, constraint: str, type_: Type) -> int:
    """Returns the width of the register that a constraint requires."""
    letter = constraint.lstrip("=&+")
    if letter not in _WIDTHS:
        raise StepladderError(
            f"the emulator does not support the constraint '{constraint}' of PTX", location=builder.location
        )
    return _WIDTHS[letter]


def _take(fragment: _Fragment, op: ir.Operation, inputs: list[str], outputs: int) -> None:
    """Emits the moves of operands to registers: their own, or those of results."""
    builder = fragment.builder
    sources, slots, kinds, widths = [], [], [], []
    for place, (constraint, slot) in enumerate(zip(inputs, builder.used(op.operands))):
        if constraint in _IMMEDIATES:
            continue
        type_ = builder.slot_types[slot]
        if constraint.isdecimal():
            register = fragment.registers[int(constraint)]
        else:
            register = fragment.bind(outputs + place, _width(builder, constraint, type_))
        sources.append(slot)
        slots.append(register.slot)
        kinds.append(type_)
        widths.append(register.type.width)
    if sources:
        builder.emit(op.name, _into, sources, slots, {"types": kinds, "widths": widths})


# nvvm.inline_ptx.


@lowers("nvvm.inline_ptx")
def lower_inline_ptx(builder: Builder, op: ir.Operation) -> None:
    """`nvvm.inline_ptx`: the instructions of its text."""
    attributes = decode_attributes(op)
    outputs = len(op.results)
    text = _BRACED.sub(lambda match: f"${int(match[2]) + (outputs if match[1] == 'r' else 0)}", attributes["ptxCode"])
    if _PTX_OPERAND.search(text) or any(attributes["operandSegmentSizes"][1:]):
        raise StepladderError(
            f"the emulator does not support {op.name} with operands that are read and written, or under a predicate",
            location=builder.location,
        )
    lower_text(builder, op, text)


def lower_text(builder: Builder, op: ir.Operation, text: str) -> None:
    """Emits what an op does by PTX.

    Args:
        builder: takes the instructions.
        op: of MLIR.
        text: PTX, with $0, $1, ... for the results first and then the operands.

    Raises:
        StepladderError: text that is no PTX, or that the emulator does not support.
    """
    fragment = _Fragment(builder, op, text)
    outputs = len(op.results)
    slots = builder.used(op.operands)
    for number, result in enumerate(op.results):
        fragment.bind(number, width_of(core_types.decode(result.type)))
    sources = [builder.slot_types[slot] for slot in slots]
    registers = [fragment.bind(outputs + place, width_of(type_)) for place, type_ in enumerate(sources)]
    if slots:
        widths = [register.type.width for register in registers]
        builder.emit(
            op.name, _into, slots, [register.slot for register in registers], {"types": sources, "widths": widths}
        )
    result_slots = [fragment.registers[number].slot for number in range(outputs)]
    fragment.lower(result_slots)
    if result_slots:
        builder.emit(op.name, _out_of, result_slots, builder.defined(op.results))
