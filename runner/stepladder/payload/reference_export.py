"""Exports the function of a payload as a reference program (`runtime.reference`).

It reads the payload's linalg IR as it was given, independently of `payload.matmul`: an op that the recognizer overlooks
is computed here, and the values differ. Reads and writes of buffers become values: each buffer holds one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import is_number, name_of
from stepladder.payload.consumers import check_divisor
from stepladder.payload.decomposition import decomposed
from stepladder.payload.linalg_bodies import dependent
from stepladder.payload.reference_views import VIEWS, BufferView, moved, view_of
from stepladder.payload.selection import select
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import (
    Argument,
    Constant,
    Empty,
    Generic,
    Insert,
    Instruction,
    Operation,
    Program,
    Reshape,
    Result,
    Slice,
)
from stepladder.runtime.reference_extrema import ACCEPTED_CHOICES, unknown_choice
from stepladder.runtime.reference_operations import GATHER, OPERATIONS, PREDICATES, unsupported_reduction

# Of a loop, each of which is written out.
_ITERATIONS = 1024


def export(module: ir.Module, roles: Mapping[int, str]) -> Program:
    """Returns the reference program of a payload's one function with a body.

    Args:
        module: the payload, as it was parsed.
        roles: function argument -> "a", "b" or "c", as `PayloadMatmul.roles`; results follow the arguments.

    Raises:
        StepladderError: an op that the reference evaluation does not support.
    """
    module = decomposed(select(module).module)
    functions = [function for function in walk(module, "func.func") if len(function.regions[0].blocks)]
    if len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
        op = functions[0] if functions else module.operation
        raise _refusal(op, "a payload of other than one function of one block")
    return _Export(functions[0], roles).program()


class UnknownChoice(StepladderError):
    """A reduction selects a result by another comparison than those that are accepted."""


def _refusal(op: ir.Operation, what: str, *notes: str) -> StepladderError:
    message = f"{what} has no reference computation, so that results could not be checked"
    return StepladderError(message, location=diagnostics.location_text(op.location), notes=notes)


def _of_array(attribute: Iterable[int]) -> list[int]:
    return [int(element) for element in attribute]


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


class _Export:
    """The indices of a function's values, and the value that each buffer holds."""

    def __init__(self, function: ir.Operation, roles: Mapping[int, str]) -> None:
        self.function = function
        self.roles = roles
        self.numbers: dict[ir.Value, int] = {}
        self.buffers: dict[ir.Value, int] = {}
        self.views: dict[ir.Value, BufferView] = {}
        self.written: set[ir.Value] = set()
        self.instructions: list[Instruction] = []
        self.results: list[Result] = []
        self.count = 0
        self._integers: dict[ir.Value, int] = {}

    def program(self) -> Program:
        """Exports the whole function."""
        block = self.function.regions[0].blocks[0]
        for argument in block.arguments:
            number = self._new()
            (self.buffers if isinstance(argument.type, ir.MemRefType) else self.numbers)[argument] = number
        first = {argument: self._held(argument) for argument in block.arguments}
        for op in block.operations:
            self._op(op.operation)
        arguments = []
        for place, argument in enumerate(block.arguments):
            type_, shape = self._type(argument, self.function)
            after = self.buffers[argument] if argument in self.written else None
            arguments.append(Argument(first[argument], type_, shape, self.roles.get(place), after))
        return Program(tuple(arguments), tuple(self.instructions), tuple(self.results))

    def _new(self, value: ir.Value | None = None) -> int:
        self.count += 1
        if value is not None:
            self.numbers[value] = self.count - 1
        return self.count - 1

    def _held(self, value: ir.Value) -> int:
        """Returns the number of a tensor, a scalar or a buffer's content now."""
        if value in self.views:
            view = self.views[value]
            return self._moved(self._held(view.source), view)
        return self.buffers[value] if value in self.buffers else self.numbers[value]

    def _moved(self, number: int, view: BufferView, *, back: bool = False) -> int:
        """Returns the elements of a buffer in the shape of a view, or the reverse (`back`)."""
        held = self._held(view.source) if back and view.part is not None else -1
        self.instructions += moved(number, view, self._new, back=back, held=held)
        return self.count - 1

    def _type(self, value: ir.Value, op: ir.Operation) -> tuple[str, tuple[int, ...]]:
        """Returns element type and shape of a value; arguments that nothing uses may be of any type."""
        type_ = value.type
        shape: tuple[int, ...] = ()
        element = type_
        if isinstance(type_, (ir.MemRefType, ir.RankedTensorType)):
            element, shape = type_.element_type, tuple(type_.shape)
        is_static = not shape or ir.ShapedType(type_).has_static_shape
        if list(value.uses) and not (is_static and is_number(element)):
            raise _refusal(op, f"a value of type {type_}")
        return name_of(element), shape if is_static else ()

    def _op(self, op: ir.Operation) -> None:
        match op.name:
            case "arith.constant":
                self._constant(op)
            case "tensor.empty" | "bufferization.alloc_tensor":
                self.instructions.append(Empty(self._new(op.results[0]), *self._type(op.results[0], op)))
            case "memref.alloc" | "memref.alloca":
                self.buffers[op.results[0]] = self._new()
                self.instructions.append(Empty(self.buffers[op.results[0]], *self._type(op.results[0], op)))
            case "bufferization.to_tensor":
                self._buffer(op, op.operands[0])
                self.numbers[op.results[0]] = self._held(op.operands[0])
            case "bufferization.materialize_in_destination":
                self._store(op, op.operands[1], self._held(op.operands[0]))
            case "memref.copy":
                self._store(op, op.operands[1], self._held(self._buffer(op, op.operands[0])))
            case "memref.dealloc":
                pass
            case name if name in VIEWS:
                self._buffer(op, op.operands[0])
                self.views[op.results[0]] = view_of(op)
            case "tensor.collapse_shape" | "tensor.expand_shape" | "tensor.cast":
                source = self._held(op.operands[0])
                type_, shape = self._type(op.results[0], op)
                self.instructions.append(Reshape(source, self._new(op.results[0]), type_, shape))
            case "tensor.extract_slice":
                self._slice(op)
            case "tensor.insert_slice":
                self._insert(op)
            case "scf.for":
                self._loop(op)
            case "func.return":
                self._return(op)
            case name if name.startswith("linalg.") and len(op.regions) == 1 and name != "linalg.index":
                self._structured(op)
            case name:
                while op.parent is not None and op.parent.name == "scf.for":
                    op = op.parent.operation
                raise _refusal(op, f"'{name}'" if op.name == name else f"'{name}' in '{op.name}'")

    def _return(self, op: ir.Operation) -> None:
        count = len(self.function.regions[0].blocks[0].arguments)
        for place, operand in enumerate(op.operands):
            # One tensor that no argument is added for is stored in the buffer that C was.
            otherwise = "c" if len(op.operands) == 1 and not self.written else None
            self.results.append(
                Result(self._held(operand), *self._type(operand, op), self.roles.get(count + place, otherwise))
            )

    def _buffer(self, op: ir.Operation, buffer: ir.Value) -> ir.Value:
        """Returns a buffer that an op takes; refuses one that is an unknown view of another."""
        if buffer not in self.buffers and buffer not in self.views:
            raise _refusal(op, f"'{op.name}' of a view of a buffer")
        return buffer

    def _store(self, op: ir.Operation, target: ir.Value, number: int) -> None:
        if isinstance(target.type, ir.MemRefType):
            while self._buffer(op, target) in self.views:
                view = self.views[target]
                number, target = self._moved(number, view, back=True), view.source
            self.buffers[target] = number
            self.written.add(target)
        else:
            self.numbers[op.results[0]] = number

    def _constant(self, op: ir.Operation) -> None:
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.IntegerAttr):
            self._integers[op.results[0]] = attribute.value
        if isinstance(attribute, ir.DenseElementsAttr):
            if not attribute.is_splat:
                raise _refusal(op, "a constant that is not a splat")
            attribute = attribute.get_splat_value()
        self.instructions.append(
            Constant(self._new(op.results[0]), *self._type(op.results[0], op), self._number(op, attribute))
        )

    def _number(self, op: ir.Operation, attribute: ir.Attribute) -> int | str:
        """Returns a scalar as a program holds it."""
        if not isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr, ir.BoolAttr)):
            raise _refusal(op, f"the constant {attribute}")
        value = attribute.value
        return float(value).hex() if isinstance(attribute, ir.FloatAttr) else int(value)

    def _loop(self, op: ir.Operation) -> None:
        """Exports the iterations of a loop whose bounds are constants, one after the other."""
        bounds = [self._integers.get(operand) for operand in list(op.operands)[:3]]
        if None in bounds or bounds[2] == 0:
            raise _refusal(op, "'scf.for' whose bounds and step are not constants")
        iterations = range(*(bound for bound in bounds if bound is not None))
        if len(iterations) > _ITERATIONS:
            raise _refusal(op, f"a loop of {len(iterations)} iterations (at most {_ITERATIONS})")
        body = op.regions[0].blocks[0]
        counter, *carried = body.arguments
        values = [self._held(operand) for operand in list(op.operands)[3:]]
        for iteration in iterations:
            self._integers[counter] = iteration
            self.numbers.update(zip(carried, values))
            *inner, end = [item.operation for item in body.operations]
            for item in inner:
                self._op(item)
            values = [self._held(operand) for operand in end.operands]
        self.numbers.update(zip(op.results, values))

    def _positions(self, op: ir.Operation, name: str) -> list[int]:
        """Returns the offsets, sizes or strides of a slice, of which loops may make the offsets."""
        static = _of_array(op.attributes[f"static_{name}"])
        segments = _of_array(op.attributes["operandSegmentSizes"])
        place = ("offsets", "sizes", "strides").index(name) - 3
        begin = sum(segments[:place])
        given = [self._integers.get(operand) for operand in list(op.operands)[begin : begin + segments[place]]]
        if None in given:
            raise _refusal(op, "a slice with offsets or sizes that are not constants")
        dynamic = iter([value for value in given if value is not None])
        found = [next(dynamic) if value == ir.ShapedType.get_dynamic_size() else value for value in static]
        if min(found, default=1) < (name == "strides"):
            raise _refusal(op, f"a slice with {name} {found}, of which one is below {int(name == 'strides')}")
        return found

    def _insert(self, op: ir.Operation) -> None:
        self.instructions.append(
            Insert(
                self._held(op.operands[0]),
                self._held(op.operands[1]),
                self._new(op.results[0]),
                *self._type(op.results[0], op),
                *(tuple(self._positions(op, name)) for name in ("offsets", "sizes", "strides")),
            )
        )

    def _slice(self, op: ir.Operation) -> None:
        offsets, sizes, strides = (self._positions(op, name) for name in ("offsets", "sizes", "strides"))
        type_, shape = self._type(op.results[0], op)
        kept, rest = [], list(shape)
        for axis, size in enumerate(sizes):
            if rest and size == rest[0]:
                kept.append(axis)
                rest.pop(0)
        if rest:
            raise _refusal(op, "a slice with offsets or sizes that are not constants")
        self.instructions.append(
            Slice(
                self._held(op.operands[0]),
                self._new(op.results[0]),
                type_,
                tuple(offsets),
                tuple(sizes),
                tuple(strides),
                tuple(kept),
            )
        )

    def _structured(self, op: ir.Operation) -> None:
        maps = indexing_maps(op)
        body = op.regions[0].blocks[0]
        *inner, end = [item.operation for item in body.operations]
        inputs = list(op.operands)[: len(op.operands) - len(end.operands)]
        outputs = list(op.operands)[len(inputs) :]
        for operand in op.operands:
            if isinstance(operand.type, ir.MemRefType):
                self._buffer(op, operand)
        read = [self._held(operand) for operand in inputs]
        start = [self._held(operand) for operand in outputs]
        # Of several tensors, those that nothing reads are not computed.
        kept = [place for place, result in enumerate(op.results) if list(result.uses)]
        kept = kept if kept and len(op.results) > 1 else list(range(len(outputs)))
        kept, inner = dependent(inner, list(end.operands), list(body.arguments)[len(inputs) :], kept)
        maps = [*maps[: len(inputs)], *(maps[len(inputs) + place] for place in kept)]
        outputs, start = [outputs[place] for place in kept], [start[place] for place in kept]
        every = [self._new(argument) for argument in body.arguments]
        arguments = [*every[: len(inputs)], *(every[len(inputs) + place] for place in kept)]
        operations = [self._operation(item) for item in inner]
        yields = [self.numbers[end.operands[place]] for place in kept]
        results = [self._new() for _ in outputs]
        generic = Generic(
            op.name,
            diagnostics.location_text(op.location),
            tuple(read),
            tuple(start),
            tuple(results),
            tuple(self._type(operand, op)[0] for operand in outputs),
            tuple(self._loops(op, map_) for map_ in maps),
            self._sizes(op, indexing_maps(op)),
            tuple(arguments),
            tuple(operations),
            tuple(yields),
        )
        self._check_loops(op, generic, [*inputs, *outputs])
        self.instructions.append(generic)
        for place, (output, number) in enumerate(zip(outputs, results)):
            if isinstance(output.type, ir.MemRefType):
                self._store(op, output, number)
            else:
                self.numbers[op.results[kept[place]]] = number

    def _operation(self, op: ir.Operation) -> Operation:
        """Returns a scalar op of a body."""
        known = op.name in OPERATIONS and len(op.results) == 1
        attribute: int | str | None = None
        if op.name in PREDICATES:
            attribute = ir.IntegerAttr(op.attributes["predicate"]).value
            known = attribute in PREDICATES[op.name]
        elif op.name == "arith.constant":
            attribute = self._number(op, op.attributes["value"])
        elif op.name == "linalg.index":
            attribute = ir.IntegerAttr(op.attributes["dim"]).value
        types = [self._type(value, op)[0] for value in (*op.operands, *op.results)] if known else []
        if not rounds_to_nearest(op):
            raise _refusal(op, f"'{op.name}' with a rounding mode other than to nearest")
        check_divisor(op)
        is_gather = op.name == GATHER
        if not known or any(
            operand not in self.numbers or (_is_tensor(operand) and not (is_gather and place == 0))
            for place, operand in enumerate(op.operands)
        ):
            raise _refusal(op, f"'{op.name}' in a linalg op", f"accepted: {', '.join(sorted(OPERATIONS))}")
        return Operation(
            op.name,
            tuple(self.numbers[operand] for operand in op.operands),
            self._new(op.results[0]),
            types[-1],
            types[-2] if len(types) > 1 else "",
            attribute,
        )

    def _loops(self, op: ir.Operation, map_: ir.AffineMap) -> tuple[int | None, ...]:
        """Returns the loops that run along the axes of an operand."""
        loops: list[int | None] = []
        for expression in map_.results:
            if isinstance(expression, ir.AffineDimExpr):
                loops.append(expression.position)
            elif isinstance(expression, ir.AffineConstantExpr) and expression.value == 0:
                loops.append(None)
            else:
                raise _refusal(op, f"'{op.name}' with the indexing map {map_}")
        return tuple(loops)

    def _sizes(self, op: ir.Operation, maps: Sequence[ir.AffineMap]) -> tuple[int, ...]:
        """Returns how often each loop of a structured op runs."""
        sizes = [0] * maps[0].n_dims
        for operand, map_ in zip(op.operands, maps):
            shape = self._type(operand, op)[1]
            for size, loop in zip(shape, self._loops(op, map_)):
                if loop is not None:
                    sizes[loop] = size
        return tuple(sizes)

    def _check_loops(self, op: ir.Operation, generic: Generic, operands: Sequence[ir.Value]) -> None:
        """Refuses loops over a part of an operand, and reductions that do not fold values into the result."""
        for operand, loops in zip(operands, generic.maps):
            named = [loop for loop in loops if loop is not None]
            shape = self._type(operand, op)[1]
            if len(set(named)) < len(named) or any(loop is None and size != 1 for loop, size in zip(loops, shape)):
                raise _refusal(op, f"'{op.name}' whose loops run over a part of an operand")
        reason = unsupported_reduction(generic)
        if reason:
            error = _refusal(op, reason)
            if reason == unknown_choice(generic):
                raise UnknownChoice(error.message, location=error.location, notes=[ACCEPTED_CHOICES])
            raise error
