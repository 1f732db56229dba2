"""Scalar expressions of elements of tensors, of which integers may be fields of bits of an element.

Front ends write each value that a byte or a word holds by shifts and masks of its own: `x & 15` is the low half of a
byte, and `x >> 4` the high one. As fields of bits, both are one expression that differs in a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import axis_loops, indexing_maps
from stepladder.mlir.reshapes import TENSOR_RESHAPES, groups_of
from stepladder.mlir.traverse import attributes_of, producer

_WORDS = 1 << 64  # how many integers of the widest type there are
_MOST = 64  # nodes of an expression
_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
INDEX, CONSTANT = "linalg.index", "arith.constant"
_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")


@dataclass(frozen=True)
class Expression:
    """What computes an element of a tensor.

    Attributes:
        type: of the value.
        name: of the scalar op; empty for an element of a tensor, and for bits of one. A `linalg.index` has one of
            `loops`.
        operands: of the op.
        attributes: of the op.
        tensor, loops: of an element, the loop along each axis, None for an index of 0.
        bits: where the bits of a field begin in the element, and how many they are; None for other values.
        is_signed: whether the bits above a field repeat its sign.
    """

    type: ir.Type
    name: str = ""
    operands: tuple[Expression, ...] = ()
    attributes: tuple[tuple[str, ir.Attribute], ...] = ()
    tensor: ir.Value | None = None
    loops: tuple[int | None, ...] = ()
    bits: tuple[int, int] | None = None
    is_signed: bool = False


class _TooLong(Exception):
    """An expression with more nodes than are looked at."""


def element_of(value: ir.Value) -> Expression | None:
    """Returns what computes an element of a tensor, indexed by a loop for each axis, of elements that no elementwise op
    makes, and of indices.

    Args:
        value: the tensor, of static shape.

    Returns:
        The expression; None for one that is too long.
    """
    try:
        return _Tracing().element(value, tuple(range(ir.RankedTensorType(value.type).rank)))
    except _TooLong:
        return None


class _Tracing:
    """The trace of an element, with a number of nodes that is limited."""

    def __init__(self) -> None:
        self._count = 0

    def element(self, value: ir.Value, loops: tuple[int | None, ...]) -> Expression:
        self._count += 1
        if self._count > _MOST:
            raise _TooLong
        source = producer(value)
        if source is not None and source.name in TENSOR_RESHAPES:
            inner_loops = _through(source, loops)
            if inner_loops is not None:
                return self.element(source.operands[0], inner_loops)
        if source is not None and _is_elementwise(source):
            return self._computed(source, loops)
        number = repeated_number(value)
        if number is not None:
            return Expression(ir.RankedTensorType(value.type).element_type, CONSTANT, (), (("value", number),))
        return Expression(ir.RankedTensorType(value.type).element_type, tensor=value, loops=loops)

    def _computed(self, generic: ir.Operation, loops: tuple[int | None, ...]) -> Expression:
        *maps, result = indexing_maps(generic)
        places = dict(zip(axis_loops(result), loops))
        block = generic.regions[0].blocks[0]
        known: dict[ir.Value, Expression] = {}
        for argument, operand, map_ in zip(block.arguments, generic.operands, maps):
            if list(argument.uses):
                known[argument] = self.element(operand, tuple(places.get(loop) for loop in axis_loops(map_)))
        *ops, end = [op.operation for op in block.operations]
        for op in ops:
            self._count += 1
            if op.name == INDEX:
                place = places.get(ir.IntegerAttr(op.attributes["dim"]).value)
                known[op.results[0]] = Expression(op.results[0].type, op.name, loops=(place,))
                continue
            operands = tuple(known[value] if value in known else _outside(value) for value in op.operands)
            attributes = tuple(sorted(attributes_of(op).items(), key=lambda item: item[0]))
            known[op.results[0]] = _simplified(Expression(op.results[0].type, op.name, operands, attributes))
        value = end.operands[0]
        return known[value] if value in known else _outside(value)


def _outside(value: ir.Value) -> Expression:
    """Returns a constant, or another scalar that a body takes from outside."""
    source = producer(value)
    if source is not None and source.name == CONSTANT:
        return Expression(value.type, source.name, (), (("value", source.attributes["value"]),))
    return Expression(value.type, tensor=value)


def _is_elementwise(op: ir.Operation) -> bool:
    """Returns whether an op is a `linalg.generic` on tensors that computes each element once, by its operands alone."""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    *maps, result = indexing_maps(op)
    block = op.regions[0].blocks[0]
    ops = [inner.operation for inner in block.operations]
    return (
        {*axis_loops(result)} == {*range(result.n_dims)}
        and not list(block.arguments[len(block.arguments) - 1].uses)
        and all(isinstance(axis, ir.AffineDimExpr) or _is_zero(axis) for map_ in maps for axis in map_.results)
        and all(isinstance(operand.type, ir.RankedTensorType) for operand in op.operands)
        and all(inner.name.startswith(("arith.", "math.", INDEX)) and len(inner.results) == 1 for inner in ops[:-1])
        and not any(len(inner.regions) for inner in ops)
    )


def _is_zero(axis: ir.AffineExpr) -> bool:
    return isinstance(axis, ir.AffineConstantExpr) and axis.value == 0


def _through(reshape: ir.Operation, loops: tuple[int | None, ...]) -> tuple[int | None, ...] | None:
    """Returns the loops of what a reshape adds axes of one element to, or takes them from; None for another one."""
    source, result = (ir.RankedTensorType(value.type) for value in (reshape.operands[0], reshape.results[0]))
    expands = result.rank > source.rank
    larger = result if expands else source
    longer = [[axis for axis in group if larger.shape[axis] > 1] for group in groups_of(reshape)]
    if any(len(axes) > 1 for axes in longer):
        return None
    if expands:
        return tuple(loops[axes[0]] if axes else None for axes in longer)
    along = {axes[0]: loop for axes, loop in zip(longer, loops) if axes}
    return tuple(along.get(axis) for axis in range(source.rank))


def _predicate(comparison: Expression) -> int:
    return ir.IntegerAttr(dict(comparison.attributes)["predicate"]).value


def _simplified(expression: Expression) -> Expression:
    """Returns an expression without choices that constants decide, such as whether a shift is one of few bits."""
    if expression.name == "arith.cmpi" and _predicate(expression) == arith.CmpIPredicate.ult:
        numbers = [number_of(operand) for operand in expression.operands]
        left, right = (None if number is None else number % _WORDS for number in numbers)
        if left is not None and right is not None:
            return Expression(expression.type, CONSTANT, (), (("value", ir.BoolAttr.get(left < right)),))
    if expression.name == "arith.select" and expression.operands[0].name == CONSTANT:
        condition = dict(expression.operands[0].attributes)["value"]
        if isinstance(condition, ir.BoolAttr):
            return expression.operands[1 if condition.value else 2]
    return _with_field(expression)


def _with_field(expression: Expression) -> Expression:
    """Returns an expression as a field of bits, where it is one of less than all bits of an element."""
    traced = _bits_of(expression)
    if traced is None:
        return expression
    element, bits = traced
    width = next((place for place, bit in enumerate(bits) if bit is None), len(bits))
    if width == len(bits):  # none is 0: those above a field may repeat its last one
        width = 1 + bits.index(bits[-1])
    if not width or bits[0] is None or list(bits[:width]) != list(range(bits[0], bits[0] + width)):
        return expression
    above = {*bits[width:]}
    if above - {None} and above != {bits[width - 1]}:
        return expression
    if width == ir.IntegerType(element.type).width:
        return expression
    return replace(element, type=expression.type, bits=(bits[0], width), is_signed=bool(above) and None not in above)


def _bits_of(expression: Expression) -> tuple[Expression, list[int | None]] | None:
    """Returns the element that an integer has bits of, and which ones, None for zeros; None for another value."""
    if not isinstance(expression.type, ir.IntegerType):
        return None
    width = expression.type.width
    if not expression.name:
        if not is_of_tensor(expression):
            return None
        if expression.bits is None:
            return expression, list(range(width))
        begin, size = expression.bits
        fill = begin + size - 1 if expression.is_signed else None
        bits: list[int | None] = [*range(begin, begin + size)]
        assert expression.tensor is not None  # whose element it has bits of
        element = ir.RankedTensorType(expression.tensor.type).element_type
        return replace(expression, type=element, bits=None, is_signed=False), bits + [fill] * (width - size)
    if expression.name not in (*_SHIFTS, *_CASTS, "arith.andi"):
        return None
    operands = list(expression.operands)
    if expression.name == "arith.andi" and number_of(operands[0]) is not None:
        operands.reverse()
    inner = _bits_of(operands[0])
    if inner is None:
        return None
    element, bits = inner
    if expression.name in _CASTS:
        fill = bits[-1] if expression.name == "arith.extsi" else None
        return element, (bits + [fill] * width)[:width]
    number = number_of(operands[1])
    if number is None:
        return None
    if expression.name == "arith.andi":
        return element, [bit if number >> place & 1 else None for place, bit in enumerate(bits)]
    if not 0 <= number < width:
        return None
    if expression.name == "arith.shli":
        return element, ([None] * number + bits)[:width]
    return element, bits[number:] + [bits[-1] if expression.name == "arith.shrsi" else None] * number


def number_of(expression: Expression) -> int | None:
    """Returns the number that a constant integer is; None for another value.

    Args:
        expression: to look at.
    """
    if expression.name != CONSTANT:
        return None
    attribute = dict(expression.attributes)["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def merged(expressions: Sequence[Expression]) -> list[tuple[int, ...]] | None:
    """Returns where the fields of expressions begin that differ in this alone, for each field one number of each.

    Args:
        expressions: of as many parts, one at least.

    Returns:
        The numbers in the order of the fields; None for other expressions.
    """
    first = expressions[0]
    if any((item.bits is None) != (first.bits is None) for item in expressions):
        return None
    begins: list[tuple[int, ...]] = []
    if first.bits is not None:
        begins.append(tuple(item.bits[0] for item in expressions if item.bits is not None))
    plain = [replace(item, operands=(), bits=item.bits and (0, item.bits[1])) for item in expressions]
    if any(item != plain[0] or len(other.operands) != len(first.operands) for item, other in zip(plain, expressions)):
        return None
    for operands in zip(*(item.operands for item in expressions)):
        inner = merged(operands)
        if inner is None:
            return None
        begins += inner
    return begins


def reads_indices(expression: Expression) -> bool:
    """Returns whether an expression depends on an index.

    Args:
        expression: to look at.
    """
    return expression.name == INDEX or any(map(reads_indices, expression.operands))


def is_of_tensor(expression: Expression) -> bool:
    """Returns whether an expression is an element of a tensor, or bits of one.

    Args:
        expression: to look at.
    """
    return expression.tensor is not None and isinstance(expression.tensor.type, ir.RankedTensorType)


def elements_read(expression: Expression) -> list[Expression]:
    """Returns the elements of tensors in an expression, or bits of them, in order.

    Args:
        expression: to look at.
    """
    own = [expression] if expression.tensor is not None else []
    return own + [item for operand in expression.operands for item in elements_read(operand)]


def create(expression: Expression, elements: Sequence[ir.Value], begins: Sequence[ir.Value | None]) -> ir.Value:
    """Returns the value of an expression, computed at the insertion point.

    Args:
        expression: to compute.
        elements: those of `elements_read`, in order.
        begins: where the bits of each begin, of its type; None for a whole element.
    """
    pending = list(zip(elements, begins))

    def computed(item: Expression) -> ir.Value:
        if item.tensor is not None:
            element, begin = pending.pop(0)
            return element if begin is None else _field(item, element, begin)
        operands = [computed(operand) for operand in item.operands]
        attributes = dict(item.attributes)
        return ir.Operation.create(item.name, [item.type], operands, attributes=attributes).results[0]

    return computed(expression)


def _field(item: Expression, element: ir.Value, begin: ir.Value) -> ir.Value:
    """Returns bits of an element that begin at a number, as a value of the type of an expression."""
    assert item.bits is not None  # of a field
    type_, (_, size) = ir.IntegerType(element.type), item.bits
    above = type_.width - size
    if item.is_signed:
        left = arith.shli(element, arith.subi(arith.constant(type_, above), begin))
        value = arith.shrsi(left, arith.constant(type_, above))
    else:
        mask = ir.IntegerAttr.get(type_, (1 << size) - 1)
        value = arith.andi(arith.shrui(element, begin), arith.constant(type_, mask))
    width = ir.IntegerType(item.type).width
    if width < type_.width:
        return arith.trunci(item.type, value)
    if width == type_.width:
        return value
    return arith.extsi(item.type, value) if item.is_signed else arith.extui(item.type, value)
