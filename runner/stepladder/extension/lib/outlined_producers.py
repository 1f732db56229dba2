"""Functions of the elementwise ops that make the register operand of `wgmma`, until the matmul's kernel computes them.

A function has arguments of buffers, the last of which it writes, with `linalg.generic` on buffers and reshapes of them.
`Producer` computes elements of the last buffer from elements of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stepladder.extension.lib import bit_fields, narrow_floats
from stepladder.extension.lib.bit_fields import FieldsOf
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.element_ops import created
from stepladder.extension.lib.mixed_radix import Index, NoDigits, digits, linear
from stepladder.extension.lib.narrow_integers import IntegerBounds, converted
from stepladder.extension.lib.vectors import repeated
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import callee_of, origin, producer, users_of, walk

# The attribute of such a function, and of its call before the matmul.
PRODUCER = "producer"

_PAIR = 2  # elements that are computed at once, as a vector

# The linear indices of adjacent elements of a buffer, in row-major order.
Numbers = tuple[Index, ...]
# Creates the loads of adjacent elements, given the number of an argument; without one, the indices that they have.
Read = Callable[[int | None, Numbers], ir.Value]


def is_in_producer(op: ir.Operation) -> bool:
    """Returns whether an op is in such a function.

    Args:
        op: any op.
    """
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        parent = parent.parent
    return parent is not None and PRODUCER in parent.attributes


def producer_of(module: ir.Operation, buffer: ir.Value) -> tuple[ir.Operation, ir.Operation]:
    """Returns the call that writes a buffer, and the function that it calls.

    Args:
        module: with the function.
        buffer: a workspace.

    Raises:
        Refusal: another op writes the buffer.
    """
    for call in users_of(buffer):
        if call.name == "func.call" and PRODUCER in call.attributes:
            name = callee_of(call)
            functions = walk(module, "func.func")
            return call, next(
                function for function in functions if ir.StringAttr(function.attributes["sym_name"]).value == name
            )
    raise Refusal(module, "expected an operand that elementwise ops compute, in a buffer without copies")


def _shape(buffer: ir.Value) -> list[int]:
    return list(ir.MemRefType(buffer.type).shape)


class Producer:
    """The ops of a function, by which an element of its result depends on elements of its arguments.

    Args:
        function: the function.

    Raises:
        Refusal: an op of another kind, or elements whose offsets are no sums of digits.
    """

    def __init__(self, function: ir.Operation) -> None:
        body = function.regions[0].blocks[0]
        self.arguments = list(body.arguments)[:-1]
        self.result = body.arguments[len(body.arguments) - 1]
        self._writers: dict[ir.Value, ir.Operation] = {}
        for op in operations_of(body):
            if op.name in ("linalg.generic", "linalg.fill", "memref.copy"):
                self._writers[origin(op.operands[len(op.operands) - 1], BUFFER_VIEWS)] = op
            elif op.name not in (*BUFFER_VIEWS, "memref.alloc", "arith.constant", "func.return"):
                raise Refusal(op, f"{op.name} cannot compute a register operand")
            if op.name == "linalg.generic":
                _check(op)

    def reads(self, numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
        """Yields the elements of arguments that elements of the result depend on.

        Args:
            numbers: linear indices of the elements.
        """
        yield from self._reads(self.result, numbers)

    def value(self, numbers: Numbers, read: Read) -> ir.Value:
        """Returns two adjacent elements of the result as a vector, computed at the insertion point.

        Args:
            numbers: linear indices of the elements.
            read: loads elements of an argument.
        """
        return repeated(self._value(self.result, numbers, read), _PAIR)

    def _reads(self, buffer: ir.Value, numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
        root = origin(buffer, BUFFER_VIEWS)
        writer = self._writers.get(root)
        if writer is None:
            yield ir.BlockArgument(root).arg_number, numbers
        elif writer.name == "memref.copy":
            yield from self._reads(writer.operands[0], numbers)
        elif writer.name == "linalg.generic":
            for _, operand, read in _inputs(writer, _loops(writer, numbers)):
                if isinstance(operand.type, ir.MemRefType):
                    yield from self._reads(operand, read)

    def _value(self, buffer: ir.Value, numbers: Numbers, read: Read) -> ir.Value:
        """Returns elements of a buffer: a vector, or the scalar that all of them are."""
        root = origin(buffer, BUFFER_VIEWS)
        writer = self._writers.get(root)
        if writer is None:
            return read(ir.BlockArgument(root).arg_number, numbers)
        if writer.name == "memref.copy":
            return self._value(writer.operands[0], numbers, read)
        if writer.name == "linalg.fill":
            return _constant(writer, writer.operands[0])
        return self._computed(writer, _loops(writer, numbers), read)

    def _computed(self, generic: ir.Operation, loops: Sequence[Sequence[Index]], read: Read) -> ir.Value:
        """Returns what the body of an op yields in iterations."""
        values: dict[ir.Value, ir.Value] = {}
        facts = _Known()
        for argument, operand, numbers in _inputs(generic, loops):
            is_buffer = isinstance(operand.type, ir.MemRefType)
            values[argument] = self._value(operand, numbers, read) if is_buffer else _constant(generic, operand)

        def value_of(operand: ir.Value) -> ir.Value:
            return values[operand] if operand in values else _constant(generic, operand)

        *body, end = operations_of(generic.regions[0].blocks[0])
        for op in body:
            if op.name == "linalg.index":
                loop = ir.IntegerAttr(op.attributes["dim"]).value
                values[op.results[0]] = read(None, tuple(place[loop] for place in loops))
                continue
            operands = [value_of(operand) for operand in op.operands]
            width = _PAIR if any(isinstance(operand.type, ir.VectorType) for operand in operands) else None
            if width is not None:
                operands = [repeated(operand, width) for operand in operands]
            values[op.results[0]] = _created(op, operands, width, facts)
        return value_of(end.operands[0])


@dataclass
class _Known:
    """Bounds and bit fields of the integers of a body."""

    bounds: IntegerBounds = field(default_factory=IntegerBounds)
    fields: FieldsOf = field(default_factory=FieldsOf)


def _created(op: ir.Operation, operands: list[ir.Value], width: int | None, facts: _Known) -> ir.Value:
    """Returns the result of a scalar op of a body on scalars, or on vectors; casts of small values by their bits."""
    cast = _cast(op, operands[0], facts) if operands else None
    result = created(op, operands, width) if cast is None else cast
    facts.bounds.note(op, operands, result)
    facts.fields.note(op, operands, result)
    return result


def _cast(op: ir.Operation, operand: ir.Value, facts: _Known) -> ir.Value | None:
    """Returns the result of a cast that a pair has a shorter way for; None of another op."""
    if op.name == "arith.extf" and narrow_floats.is_fp8(operand) and isinstance(operand.type, ir.VectorType):
        return narrow_floats.extended_pair(operand, ir.VectorType.get([_PAIR], op.results[0].type))
    cast = bit_fields.converted(op, facts.fields.of(operand))
    return converted(op, operand, facts.bounds.of(operand)) if cast is None else cast


def _check(generic: ir.Operation) -> None:
    """Refuses a `linalg.generic` that does not write each element of one buffer in the order of its loops."""
    output_map = indexing_maps(generic)[-1]
    outputs = len(generic.regions[0].blocks[0].operations[-1].operands)
    if outputs != 1 or output_map != ir.AffineMap.get_identity(output_map.n_dims):
        raise Refusal(generic, "expected parallel loops, and one result that is written in their order")


def _loops(generic: ir.Operation, numbers: Numbers) -> list[list[Index]]:
    """Returns the iterations of an op that write elements, by the linear indices of these."""
    try:
        return [digits(number, _shape(generic.operands[len(generic.operands) - 1])) for number in numbers]
    except NoDigits:
        raise Refusal(generic, "computes a register operand in groups that a k step (block_k) splits") from None


def _inputs(
    generic: ir.Operation, loops: Sequence[Sequence[Index]]
) -> Iterator[tuple[ir.Value, ir.Value, tuple[Index, ...]]]:
    """Yields the arguments of a body that are used: each with its operand, and what iterations read of it."""
    *maps, _ = indexing_maps(generic)
    arguments = generic.regions[0].blocks[0].arguments
    for argument, operand, map_ in zip(arguments, generic.operands, maps):
        if not list(argument.uses):
            continue
        if not isinstance(operand.type, ir.MemRefType):
            yield argument, operand, ()
            continue
        places = [[_result(axis, place) for axis in map_.results] for place in loops]
        yield argument, operand, tuple(linear(place, _shape(operand)) for place in places)


def _result(axis: ir.AffineExpr, loops: Sequence[Index]) -> Index:
    return loops[axis.position] if isinstance(axis, ir.AffineDimExpr) else Index()


def _constant(user: ir.Operation, value: ir.Value) -> ir.Value:
    """Returns a copy of a scalar constant, at the insertion point."""
    maker = producer(value)
    if maker is None or maker.name != "arith.constant":
        raise Refusal(user, "reads a value that is neither an element of a buffer nor a constant")
    attributes = {"value": maker.attributes["value"]}
    return ir.Operation.create("arith.constant", results=[value.type], attributes=attributes).results[0]
