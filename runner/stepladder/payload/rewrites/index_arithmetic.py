"""Arithmetic on indices in the body of a linalg op, as arithmetic on integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import attributes_of, producer

_INDEX = "linalg.index"
_CASTS = ("arith.index_cast", "arith.index_castui")
_Range = tuple[int, int]
# The least and the largest result of an op, by those of its operands.
_RANGES: dict[str, Callable[[_Range, _Range], _Range]] = {
    "arith.addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": lambda a, b: (min(x * y for x in a for y in b), max(x * y for x in a for y in b)),
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}
# Of numbers that are not negative by constants, for which all roundings and signs are the same.
_QUOTIENTS = ("arith.divsi", "arith.divui", "arith.floordivsi")
_REMAINDERS = ("arith.remsi", "arith.remui")


class Unknown(Exception):
    """An op on indices that is not known as one on integers of 32 bits."""


def with_integers(
    op: ir.Operation, indices: Mapping[int, ir.Value], arguments: Sequence[ir.Value], sizes: Sequence[int]
) -> None:
    """Creates the body of an elementwise op at the insertion point, on i32 in place of indices.

    Args:
        op: whose body has `linalg.index`.
        indices: the number that each of its loops is at, of i32.
        arguments: of the new body, in place of those of the old one.
        sizes: iterations of the loops.

    Raises:
        Unknown: an index that may not fit in i32, or an op on indices that is not known.
    """
    values: dict[ir.Value, ir.Value] = dict(zip(op.regions[0].blocks[0].arguments, arguments))
    ranges: dict[ir.Value, _Range] = {}
    for inner in [item.operation for item in op.regions[0].blocks[0].operations]:
        for operand in inner.operands:
            source = producer(operand)
            if operand not in values and source is not None and _is_index(operand):
                _copy(source, values, ranges)  # a constant from outside of the body
        if inner.name == _INDEX:
            loop = ir.IntegerAttr(inner.attributes["dim"]).value
            values[inner.results[0]] = indices[loop]
            ranges[inner.results[0]] = (0, sizes[loop] - 1)
        else:
            _copy(inner, values, ranges)


def _is_index(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IndexType)


def _copy(inner: ir.Operation, values: dict[ir.Value, ir.Value], ranges: dict[ir.Value, _Range]) -> None:
    """Creates a copy of an op, on i32 in place of indices."""
    if any(map(_is_index, inner.operands)) and not inner.name.startswith("arith."):
        raise Unknown  # an element at an index
    operands = [values.get(operand, operand) for operand in inner.operands]
    result = inner.results[0] if len(inner.results) else None
    i32 = ir.IntegerType.get_signless(32)
    if result is not None and _is_index(result):
        ranges[result] = _range(inner, ranges)
        if not -(2**31) <= ranges[result][0] <= ranges[result][1] < 2**31:
            raise Unknown
    if inner.name in _CASTS and result is not None and not _is_index(result):
        values[result] = _cast(operands[0], ir.IntegerType(result.type))
        return
    attributes = attributes_of(inner)
    if inner.name == "arith.constant" and result is not None and _is_index(result):
        attributes["value"] = ir.IntegerAttr.get(i32, ir.IntegerAttr(attributes["value"]).value)
    copy = ir.Operation.create(
        inner.name,
        results=[i32 if _is_index(item) else item.type for item in inner.results],
        operands=operands,
        attributes=attributes,
        loc=inner.location,
    )
    values.update(zip(inner.results, copy.results))


def _range(inner: ir.Operation, ranges: dict[ir.Value, _Range]) -> _Range:
    """Returns the least and the largest value of an index."""
    if inner.name == "arith.constant":
        number = ir.IntegerAttr(inner.attributes["value"]).value
        return number, number
    operands = list(inner.operands)[-2:]
    if len(operands) != 2 or any(operand not in ranges for operand in operands):
        raise Unknown
    left, right = (ranges[operand] for operand in operands)
    if inner.name == "arith.select":
        return min(left[0], right[0]), max(left[1], right[1])
    if inner.name in _RANGES:
        return _RANGES[inner.name](left, right)
    if left[0] >= 0 and right[0] == right[1] > 0:
        if inner.name in _QUOTIENTS:
            return left[0] // right[0], left[1] // right[0]
        if inner.name in _REMAINDERS:
            return 0, right[0] - 1
    raise Unknown


def _cast(number: ir.Value, type_: ir.IntegerType) -> ir.Value:
    """Returns an i32 as an integer of another type, whose value an index of 64 bits has."""
    if type_.width == 32:
        return number
    return arith.extsi(type_, number) if type_.width > 32 else arith.trunci(type_, number)
