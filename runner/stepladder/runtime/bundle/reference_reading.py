"""Reads a bundle's `reference.json` and checks every field, so that the program can be evaluated.

Instructions take values that are made before them, whose types and shapes fit; what a body computes follows the rules
of `reference_rules`. `reference_operands` compares arguments and results with the manifest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from stepladder.runtime.bundle.fields import Fields, parse_object, show
from stepladder.runtime.bundle.reference_rules import is_number_type, number_problem, operation_problem
from stepladder.runtime.reference import (
    VERSION,
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
from stepladder.runtime.reference_operations import GATHER, PREDICATES, unsupported_reduction

# Elements of the largest value: no GPU has memory for as many.
_LARGEST = 1 << 40
_CAUSE = "the bundle is truncated or was edited"
_T = TypeVar("_T")
_TYPES = "an integer or floating-point type, such as i32 or f16"


def parse_reference(content: bytes, location: str) -> Program:
    """Returns the program in the content of a `reference.json`.

    Args:
        content: JSON, in UTF-8.
        location: path of the file, for errors.

    Raises:
        StepladderError: no JSON, of another version, or no program that can be evaluated; names the field.
    """
    fields = parse_object(content, location, "reference program", _CAUSE)
    version = fields.integer("version")
    if version != VERSION:
        raise fields.error(
            "version", f"is {version}, and this version of stepladder reads {VERSION}; compile the bundle again"
        )
    return _Reader().program(fields)


class _Reader:
    """Reads a program from its first argument to its last result, with the type and shape of each value so far."""

    def __init__(self) -> None:
        self.types: dict[int, str] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.numbers: set[int] = set()  # of all values, also of bodies

    def program(self, fields: Fields) -> Program:
        """Returns the whole program."""
        items = fields.objects("arguments")
        arguments = [self._argument(item) for item in items]
        instructions = tuple(self._instruction(item) for item in fields.objects("instructions"))
        for argument, item in zip(arguments, items):
            if argument.after is not None:
                self._check_held(item, "after", argument.after, argument)
        results = tuple(self._result(item) for item in fields.objects("results"))
        return Program(tuple(arguments), instructions, results)

    def _argument(self, fields: Fields) -> Argument:
        # Values that no instruction reads may be of any type.
        type_, shape = fields.string("type"), fields.integers("shape")
        self._check_count(fields, "shape", shape)
        value = self._made(fields, "value", fields.integer("value"), type_, shape)
        after = None if fields.data.get("after") is None else fields.integer("after")
        return Argument(value, type_, shape, self._role(fields), after)

    def _result(self, fields: Fields) -> Result:
        type_, shape = self._type_and_shape(fields)
        result = Result(fields.integer("value"), type_, shape, self._role(fields))
        self._check_held(fields, "value", result.value, result)
        return result

    def _role(self, fields: Fields) -> str | None:
        return None if fields.data.get("role") is None else fields.string("role")

    def _check_held(self, fields: Fields, name: str, value: int, buffer: Argument | Result) -> None:
        """Checks that a value is of the type and shape of the buffer that holds it."""
        self._check_known(fields, name, value)
        if (self.types[value], self.shapes[value]) != (buffer.type, buffer.shape):
            raise fields.error(name, f"must be of {_text(buffer.type, buffer.shape)}, got {self._of(value)}")

    def _instruction(self, fields: Fields) -> Instruction:
        match fields.string("kind", [item.kind for item in (Constant, Empty, Generic, Reshape, Slice, Insert)]):
            case Constant.kind:
                return self._constant(fields)
            case Empty.kind:
                type_, shape = self._type_and_shape(fields)
                return Empty(self._result_of(fields, type_, shape), type_, shape)
            case Generic.kind:
                return self._generic(fields)
            case Reshape.kind:
                return self._reshape(fields)
            case Slice.kind:
                return self._slice(fields)
        return self._insert(fields)

    def _constant(self, fields: Fields) -> Constant:
        type_, shape = self._type_and_shape(fields)
        number = fields.data.get("number")
        problem = number_problem(number, type_)
        if problem is not None or not isinstance(number, int | str):
            raise fields.error("number", problem or "must be a number")
        return Constant(self._result_of(fields, type_, shape), type_, shape, number)

    def _reshape(self, fields: Fields) -> Reshape:
        source = self._value(fields, "source")
        type_, shape = self._type_and_shape(fields)
        if type_ != self.types[source] or math.prod(shape) != math.prod(self.shapes[source]):
            raise fields.error("shape", f"must have the elements of 'source', of {self._of(source)}")
        return Reshape(source, self._result_of(fields, type_, shape), type_, shape)

    def _slice(self, fields: Fields) -> Slice:
        source = self._value(fields, "source")
        type_ = self._type_of(fields, source)
        offsets, sizes, strides = self._places(fields, self.shapes[source])
        kept = fields.integers("kept")
        if list(kept) != sorted({axis for axis in kept if axis < len(sizes)}):
            raise fields.error("kept", f"must be axes of 'source' in ascending order, got {show(list(kept))}")
        if any(size != 1 for axis, size in enumerate(sizes) if axis not in kept):
            raise fields.error("kept", f"must have all axes of more than one element, got {show(list(kept))}")
        result = self._result_of(fields, type_, tuple(sizes[axis] for axis in kept))
        return Slice(source, result, type_, offsets, sizes, strides, kept)

    def _insert(self, fields: Fields) -> Insert:
        source, target = self._value(fields, "source"), self._value(fields, "target")
        type_ = self._type_of(fields, target)
        shape = fields.integers("shape")
        if shape != self.shapes[target]:
            raise fields.error("shape", f"must be that of 'target', of {self._of(target)}, got {show(list(shape))}")
        offsets, sizes, strides = self._places(fields, shape)
        if self.types[source] != type_ or math.prod(self.shapes[source]) != math.prod(sizes):
            raise fields.error("sizes", f"must have the elements of 'source', of {self._of(source)}")
        return Insert(source, target, self._result_of(fields, type_, shape), type_, shape, offsets, sizes, strides)

    def _places(
        self, fields: Fields, shape: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Returns offsets, sizes and strides of elements that are within a shape."""
        offsets = fields.integers("offsets", len(shape))
        sizes, strides = fields.integers("sizes", len(shape)), fields.extents("strides", len(shape))
        for offset, size, stride, extent in zip(offsets, sizes, strides, shape):
            if offset + (size - 1) * stride >= extent:
                raise fields.error("sizes", f"must end within the extents {show(list(shape))}, got {show(list(sizes))}")
        return offsets, sizes, strides

    def _generic(self, fields: Fields) -> Generic:
        inputs, outputs = (self._values(fields, name) for name in ("inputs", "outputs"))
        if not outputs:
            raise fields.error("outputs", "must have a value at least")
        operands = (*inputs, *outputs)
        maps, sizes = self._loops(fields, operands)
        arguments = self._count(fields, "arguments", fields.integers("arguments"), len(operands))
        body_types = {
            self._new(fields, "arguments", value): self.types[operand] for value, operand in zip(arguments, operands)
        }
        body = tuple(self._operation(item, body_types, len(sizes)) for item in fields.objects("body"))
        types = self._count(fields, "types", fields.strings("types"), len(outputs))
        yields = self._count(fields, "yields", fields.integers("yields"), len(outputs))
        for value, type_, output in zip(yields, types, outputs):
            if self._type_in_body(fields, "yields", value, body_types) != type_ or type_ != self.types[output]:
                raise fields.error("types", f"must be those of 'yields' and 'outputs', got {show(list(types))}")
        results = self._count(fields, "results", fields.integers("results"), len(outputs))
        generic = Generic(
            fields.string("name"),
            fields.string("location"),
            *(inputs, outputs, results, types, maps, sizes, arguments, body, yields),
        )
        problem = unsupported_reduction(generic)
        if problem is not None:
            raise fields.error("body", f"must fold the values of loops that no output has, got {problem}")
        for value, type_, output in zip(results, types, outputs):
            self._made(fields, "results", value, type_, self.shapes[output])
        return generic

    def _loops(
        self, fields: Fields, operands: Sequence[int]
    ) -> tuple[tuple[tuple[int | None, ...], ...], tuple[int, ...]]:
        """Returns the maps of operands, and how often loops run: as often as the operands have elements along them."""
        sizes = fields.integers("sizes")
        maps = self._count(fields, "maps", tuple(fields.lists("maps")), len(operands))
        used_loops: set[int] = set()
        for number, (map_, operand) in enumerate(zip(maps, operands)):
            name, shape = f"maps[{number}]", self.shapes[operand]
            accepted = f"must be a loop of 'sizes' for each axis of {self._of(operand)}, or null, got {show(map_)}"
            if len(map_) != len(shape):
                raise fields.error(name, accepted)
            loops = [loop for loop in map_ if loop is not None]
            if any(type(loop) is not int or not 0 <= loop < len(sizes) for loop in loops):
                raise fields.error(name, accepted)
            if len(set(loops)) < len(loops):
                raise fields.error(name, f"must have each loop once, got {show(map_)}")
            if any(extent != (1 if loop is None else sizes[loop]) for loop, extent in zip(map_, shape)):
                raise fields.error(name, f"must have loops of as many iterations as {self._of(operand)} has elements")
            used_loops.update(loops)
        if len(used_loops) < len(sizes):
            raise fields.error("maps", f"must have all {len(sizes)} loops of 'sizes', got {len(used_loops)}")
        return tuple(map(tuple, maps)), sizes

    def _operation(self, fields: Fields, body_types: dict[int, str], loops: int) -> Operation:
        """Returns a scalar op, whose result is a value of the body then."""
        name, type_ = fields.string("name"), self._number_type(fields, "type")
        operands = fields.integers("operands")
        sources = operands[:1] if name == GATHER else ()
        for value in sources:
            self._check_known(fields, "operands", value)
        types = [
            *(self.types[value] for value in sources),
            *(self._type_in_body(fields, "operands", value, body_types) for value in operands[len(sources) :]),
        ]
        rank = len(self.shapes[operands[0]]) if sources else 0
        problem = operation_problem(name, types, type_, rank)
        if problem is not None:
            raise fields.error(*problem)
        operand_type = fields.string("operand_type", default="")
        if operand_type != (types[-1] if types else ""):
            raise fields.error(
                "operand_type",
                f"must be that of the last operand, {show(types[-1] if types else '')}, got {show(operand_type)}",
            )
        attribute = self._attribute(fields, name, type_, loops)
        result = self._new(fields, "result", fields.integer("result"))
        body_types[result] = type_
        return Operation(name, operands, result, type_, operand_type, attribute)

    def _attribute(self, fields: Fields, name: str, type_: str, loops: int) -> int | str | None:
        attribute = fields.data.get("attribute")
        problem = None
        if name == "arith.constant":
            problem = number_problem(attribute, type_)
        elif name in PREDICATES:
            accepted = PREDICATES[name]
            if type(attribute) is not int or attribute not in accepted:
                problem = f"must be a predicate from {accepted[0]} to {accepted[-1]}, got {show(attribute)}"
        elif name == "linalg.index":
            if type(attribute) is not int or not 0 <= attribute < loops:
                problem = f"must be one of the {loops} loops, got {show(attribute)}"
        elif attribute is not None:
            problem = f"must be null for {name}, got {show(attribute)}"
        if problem is not None or not (attribute is None or isinstance(attribute, int | str)):
            raise fields.error("attribute", problem or "must be an integer, a string or null")
        return attribute

    def _type_in_body(self, fields: Fields, name: str, value: int, body_types: Mapping[int, str]) -> str:
        """Returns the type of a value that a body may read: one of its own, or a single scalar from outside."""
        if value in body_types:
            return body_types[value]
        self._check_known(fields, name, value)
        if self.shapes[value] != ():
            raise fields.error(name, f"has {value}, of {self._of(value)}: a body reads scalars from outside")
        return self.types[value]

    def _values(self, fields: Fields, name: str) -> tuple[int, ...]:
        values = fields.integers(name)
        for value in values:
            self._check_known(fields, name, value)
        return values

    def _value(self, fields: Fields, name: str) -> int:
        value = fields.integer(name)
        self._check_known(fields, name, value)
        return value

    def _check_known(self, fields: Fields, name: str, value: int) -> None:
        if value not in self.types:
            raise fields.error(name, f"refers to value {value}, which is not yet defined")
        if not is_number_type(self.types[value]):
            raise fields.error(name, f"has {value}, of {self.types[value]}: values that are read must be of {_TYPES}")

    def _type_of(self, fields: Fields, value: int) -> str:
        """Returns the field `type`, which is that of a value."""
        return fields.string("type", (self.types[value],))

    def _type_and_shape(self, fields: Fields) -> tuple[str, tuple[int, ...]]:
        shape = fields.integers("shape")
        self._check_count(fields, "shape", shape)
        return self._number_type(fields, "type"), shape

    def _number_type(self, fields: Fields, name: str) -> str:
        type_ = fields.string(name)
        if not is_number_type(type_):
            raise fields.error(name, f"must be {_TYPES}, got {show(type_)}")
        return type_

    def _check_count(self, fields: Fields, name: str, shape: tuple[int, ...]) -> None:
        if math.prod(shape) > _LARGEST:
            raise fields.error(name, f"must have at most {_LARGEST} elements, got {show(list(shape))}")

    def _count(self, fields: Fields, name: str, items: tuple[_T, ...], count: int) -> tuple[_T, ...]:
        if len(items) != count:
            raise fields.error(name, f"must have {count} entries, got {len(items)}")
        return items

    def _result_of(self, fields: Fields, type_: str, shape: tuple[int, ...]) -> int:
        return self._made(fields, "result", fields.integer("result"), type_, shape)

    def _made(self, fields: Fields, name: str, value: int, type_: str, shape: tuple[int, ...]) -> int:
        """Notes a new value of the program."""
        self._new(fields, name, value)
        self.types[value], self.shapes[value] = type_, shape
        return value

    def _new(self, fields: Fields, name: str, value: int) -> int:
        """Notes the number of a new value."""
        if value in self.numbers:
            raise fields.error(name, f"defines value {value} again")
        self.numbers.add(value)
        return value

    def _of(self, value: int) -> str:
        return _text(self.types[value], self.shapes[value])


def _text(type_: str, shape: tuple[int, ...]) -> str:
    """Returns a type and a shape as MLIR writes both: 64x32xf16."""
    return "x".join([*map(str, shape), type_])
