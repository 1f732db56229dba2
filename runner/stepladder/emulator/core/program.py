"""Decodes IR to instructions: a flat list for each function and kernel, in which jumps replace regions.

Threads of a block take different ways (a producer and its consumers) and wait for each other on them. Execution of a
flat list can be suspended at an instruction, resumed, and split where threads diverge; a stack of Python calls cannot.
Every SSA value has a slot in an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import types, values
from stepladder.emulator.core.registry import EXECUTED, LOWERED, execution
from stepladder.mlir import diagnostics, printed
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.runtime import host_memory
from stepladder.runtime.element_types import FP8_TYPES, element_type
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from stepladder.emulator.core.values import Value


class Instruction:
    """One op, decoded.

    Attributes:
        name: of the op, or of what a lowering made of it.
        execute: what runs it (`registry`).
        operands, results: slots.
        attributes: as Python values.
        operand_types, result_types: as `types` has them.
        location: file:line:column.
        regions: bodies without control flow, for `Fiber.evaluate`.
        number: its position among all instructions of the module.
        cache: for what `execute` wants to compute once.
        loops: `places.Loop` of each loop that it is in, the outermost first.
    """

    __slots__ = (
        *("attributes", "cache", "execute", "location", "loops", "name", "number", "operand_types", "operands"),
        *("regions", "result_types", "results"),
    )

    def __init__(
        self,
        name: str,
        execute: Callable,
        operands: Sequence[int] = (),
        results: Sequence[int] = (),
        *,
        attributes: dict | None = None,
        operand_types: Sequence = (),
        result_types: Sequence = (),
        location: str = "",
        regions: Sequence[Body] = (),
        number: int = 0,
    ) -> None:
        self.name, self.execute = name, execute
        self.operands, self.results = tuple(operands), tuple(results)
        self.attributes = attributes or {}
        self.operand_types, self.result_types = tuple(operand_types), tuple(result_types)
        self.location = location
        self.regions = tuple(regions)
        self.number = number
        self.cache: dict = {}
        self.loops: tuple = ()

    def describe(self) -> str:
        """Returns the op and its location, for a message."""
        return f"{self.name} ({self.location})" if self.location else self.name


@dataclass
class Body:
    """A region of one block without control flow: slots of its arguments, its instructions, slots that it yields."""

    arguments: tuple[int, ...]
    argument_types: tuple[types.Type, ...]
    code: list[Instruction]
    yields: tuple[int, ...]


@dataclass
class Function:
    """A function or a kernel: where its arguments go, its instructions, its attributes, and the targets it is for."""

    name: str
    arguments: tuple[int, ...]
    argument_types: tuple[types.Type, ...]
    code: list[Instruction] = field(default_factory=list)
    attributes: dict = field(default_factory=dict)
    location: str = ""
    chips: tuple[str, ...] = ()


@dataclass
class Program:
    """A module: its functions by name, the types of all slots, its globals by name."""

    functions: dict[str, Function]
    slot_types: list[types.Type]
    globals: dict[str, dict]
    instructions: list[Instruction]


class _Slots(dict):
    """Slots by SSA value. Values that user code has given a class of its own may not be hashable: the plain one is."""

    def __getitem__(self, value: ir.Value) -> int:
        return dict.__getitem__(self, ir.Value(value) if value.__hash__ is None else value)

    def __setitem__(self, value: ir.Value, slot: int) -> None:
        dict.__setitem__(self, ir.Value(value) if value.__hash__ is None else value, slot)

    def __contains__(self, value: object) -> bool:
        return super().__contains__(ir.Value(value) if value.__hash__ is None else value)


class Builder:
    """Emits the instructions of a module."""

    def __init__(self) -> None:
        self.slots = _Slots()
        self.slot_types: list[types.Type] = []
        self.instructions: list[Instruction] = []
        self.code: list[Instruction] = []
        self.functions: dict[str, Function] = {}
        self.globals: dict[str, dict] = {}
        self.modules: list[str] = []  # that are being lowered, from the outside in
        self.chips: tuple[str, ...] = ()  # targets of the innermost of them that names some
        self.location = ""
        self.op: ir.Operation | None = None
        self.in_kernel = False  # whether what is lowered runs in a kernel
        self.loops: list = []  # `places.Loop`
        self.callees: list[str] = []  # functions that are being inlined, the outermost first
        self.errors: list[StepladderError] = []

    @property
    def lowered(self) -> ir.Operation:
        """The op that is being lowered."""
        assert self.op is not None
        return self.op

    # Slots.

    def new_slot(self, type_: types.Type) -> int:
        """Returns a new slot for values of a decoded type."""
        self.slot_types.append(type_)
        return len(self.slot_types) - 1

    def define(self, value: ir.Value) -> int:
        """Returns a new slot for an SSA value.

        Raises:
            StepladderError: its type is larger than the memory of this machine.
            ValueError: a vector or a tensor whose elements are of an unknown type.
        """
        type_ = types.decode(value.type)
        if isinstance(type_, types.Opaque):
            types.check_opaque(value.type, self.location)
        if isinstance(type_, types.Shaped) and None not in type_.shape:
            size = type_.count * type_.element.bytes
            if size >= host_memory.SMALL:  # to print a type takes longer than all else here
                host_memory.require(size, f"a value of type {value.type}", location=self.location)
        slot = self.slots[value] = self.new_slot(type_)
        return slot

    def defined(self, values: Iterable[ir.Value]) -> tuple[int, ...]:
        """Returns new slots for SSA values."""
        return tuple([self.define(value) for value in values])

    def used(self, values: Iterable[ir.Value]) -> tuple[int, ...]:
        """Returns the slots of SSA values that are defined already."""
        if self.errors:
            # The results of an unknown op have no slots: the rest is lowered for its own errors alone.
            self.defined(value for value in values if value not in self.slots)
        return tuple([self.slots[value] for value in values])

    # Instructions.

    def emit(
        self,
        name: str,
        execute: Callable,
        operands: Sequence[int] = (),
        results: Sequence[int] = (),
        attributes: dict | None = None,
        regions: Sequence[Body] = (),
    ) -> Instruction:
        """Emits an instruction, at the location of the op that is being lowered."""
        instruction = Instruction(
            name,
            execute,
            operands,
            results,
            attributes=attributes,
            operand_types=[self.slot_types[slot] for slot in operands],
            result_types=[self.slot_types[slot] for slot in results],
            location=self.location,
            regions=regions,
            number=len(self.instructions),
        )
        instruction.loops = tuple(self.loops)
        self.instructions.append(instruction)
        self.code.append(instruction)
        return instruction

    @property
    def here(self) -> int:
        """The position of the instruction that will be emitted next."""
        return len(self.code)

    def lower(self, op: ir.Operation) -> None:
        """Emits the instructions of an op; one that the emulator does not support is noted in `errors`."""
        name = op.name
        outer = self.location, self.op
        self.location, self.op = diagnostics.location_text(op.location), op
        try:
            if name in LOWERED:
                LOWERED[name](self, op)
            elif name in EXECUTED:
                regions = [self.body(region) for region in op.regions if len(region.blocks)]
                operands = self.used(op.operands)
                self.emit(name, execution(op), operands, self.defined(op.results), decode_attributes(op), regions)
            else:
                self.errors.append(UnknownOp(name, self.location))
                self._look_inside(op)
        except StepladderError as error:
            self.errors.append(error)
        except (AssertionError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError) as error:
            if not self.errors:
                raise StepladderError(
                    f"the emulator does not support {name} in this form ({type(error).__name__}: {error})",
                    location=self.location,
                ) from error
        self.location, self.op = outer

    def _look_inside(self, op: ir.Operation) -> None:
        """Lowers the regions of an unsupported op, to find further unsupported ops in them."""
        for region in op.regions:
            for block in region.blocks:
                self.defined(block.arguments)
                operations = [inner.operation for inner in block.operations]
                for number, inner in enumerate(operations):
                    # Which terminators there are is up to the op.
                    if number < len(operations) - 1 or inner.name in LOWERED or inner.name in EXECUTED:
                        self.lower(inner)

    def block(self, block: ir.Block, skip_terminator: bool = True) -> ir.Operation | None:
        """Emits the instructions of a block; returns its terminator, which is not emitted by default."""
        operations = [op.operation for op in block.operations]
        for op in operations[:-1] if skip_terminator else operations:
            self.lower(op)
        return operations[-1] if operations else None

    def to_terminator(self, block: ir.Block) -> ir.Operation:
        """Emits the instructions of a block that has a terminator, which is not emitted; returns that."""
        terminator = self.block(block)
        assert terminator is not None, "the block is empty"
        return terminator

    def body(self, region: ir.Region) -> Body:
        """Returns a region of one block as a Body.

        Raises:
            StepladderError: it has several blocks.
        """
        blocks = list(region.blocks)
        if len(blocks) > 1:
            raise StepladderError(
                f"the emulator does not support {self.lowered.name} with a region of several blocks",
                location=self.location,
            )
        arguments = self.defined(blocks[0].arguments)
        outer, self.code = self.code, []
        terminator = self.block(blocks[0])
        code, self.code = self.code, outer
        yields = self.used(terminator.operands) if terminator is not None else ()
        return Body(arguments, tuple(self.slot_types[slot] for slot in arguments), code, yields)

    def separate(self, block: ir.Block, end: Callable) -> list[Instruction]:
        """Returns the instructions of a block as a list of its own, ended by `end(terminator)`."""
        outer, self.code = self.code, []
        end(self.block(block))
        code, self.code = self.code, outer
        return code


class UnknownOp(StepladderError):
    """An op that the emulator does not support."""

    def __init__(self, name: str, location: str) -> None:
        super().__init__(f"the emulator does not support {name}", location=location)
        self.name = name


def all_of(errors: Sequence[StepladderError]) -> StepladderError:
    """Returns one error for several: the first, with the others as notes, each unknown op once."""
    first, *further = errors
    places: dict[str, list[str]] = {}
    for error in further:
        places.setdefault(error.message, []).append(error.location or "")
    more = len(places.pop(first.message, []))
    notes = list(first.notes) + ([_elsewhere(more)] if more else [])
    for message, (location, *others) in places.items():
        notes.append(f"{location}: {message}" + (f", {_elsewhere(len(others))}" if others else ""))
    return StepladderError(first.message, location=first.location, notes=notes, status=first.status)


def _elsewhere(count: int) -> str:
    return f"and in {count} more place{'s' if count > 1 else ''}"


def build(module: ir.Module) -> Program:
    """Returns the program of a module.

    Raises:
        StepladderError: ops that the emulator does not support, all of them, with their locations.
    """
    builder = Builder()
    for op in walk(module, "memref.global"):
        builder.lower(op)
    builder.lower(module.operation)
    if builder.errors:
        raise all_of(builder.errors)
    return Program(builder.functions, builder.slot_types, builder.globals, builder.instructions)


def decode_attributes(op: ir.Operation) -> dict:
    """Returns an op's attributes by name, as Python values."""
    attributes = op.attributes
    named = [attributes[number] for number in range(len(attributes))]
    return {attribute.name: decode_attribute(attribute.attr) for attribute in named}


def decode_attribute(attribute: ir.Attribute) -> Value:
    """Returns an attribute as a Python value: scalars, text, lists, arrays, affine maps; else its text."""
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr():  # most
            return attribute.value
        case ir.DenseI64ArrayAttr() | ir.DenseI32ArrayAttr() | ir.DenseBoolArrayAttr():
            return list(attribute)
        case ir.FloatAttr() if str(attribute.type) in FP8_TYPES:  # represented by bytes in LLVM
            return element_type(str(attribute.type)).dtype.type(attribute.value)
        case ir.StringAttr():  # of any bytes; the stubs do not list them
            return attribute.value_bytes.decode("utf-8", "surrogateescape")  # pyright: ignore[reportAttributeAccessIssue]
        case ir.FloatAttr():
            return attribute.value
        case ir.UnitAttr():
            return True
        case ir.AffineMapAttr():
            return attribute.value
        case ir.TypeAttr():
            return types.decode(attribute.value)
        case ir.DenseElementsAttr():
            return _dense(attribute)
        case ir.DictAttr():
            return {
                entry.name: decode_attribute(entry.attr)
                for entry in (attribute[number] for number in range(len(attribute)))
            }
        case ir.FlatSymbolRefAttr():
            return attribute.value
        case ir.SymbolRefAttr():
            return "::".join(attribute.value)
        case ir.ArrayAttr():
            return [decode_attribute(element) for element in attribute]
    return str(attribute)


def _dense(attribute: ir.DenseElementsAttr) -> np.ndarray | str:
    type_ = types.decode(attribute.type)
    if not isinstance(type_, types.Shaped):
        return str(attribute)
    shape = type_.static_shape
    if type_.element.is_integer and type_.element.width not in (1, 8, 16, 32, 64):  # has no buffer protocol either
        printed_numbers = printed.dense_numbers(attribute, type_.element.dtype).tolist()
        numbers = [values.wrap(number, type_.element.width) for number in printed_numbers]
        array = np.array(numbers, type_.element.dtype)
        return np.full(shape, array[0]) if attribute.is_splat else array.reshape(shape)
    if attribute.is_splat:
        value = attribute.get_splat_value().value
        return np.full(shape, value, type_.element.dtype)
    if type_.element.is_float and type_.element.name not in ("f16", "f32", "f64"):  # has no buffer protocol
        return printed.dense_numbers(attribute, type_.element.dtype).reshape(shape)
    return np.array(attribute).astype(type_.element.dtype).reshape(shape)


def complex_array(constant: ir.Operation, type_: types.Scalar | types.Shaped) -> np.ndarray:
    """Returns the complex numbers of a constant op, in the shape of its type."""
    numbers = np.array(printed.complex_numbers(constant), type_.element.dtype)
    return np.full(type_.static_shape, numbers[0]) if len(numbers) == 1 else numbers.reshape(type_.static_shape)
