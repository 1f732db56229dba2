"""Constants and index arithmetic, created at the current insertion point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepladder.mlir.bindings import affine, arith, ir
from stepladder.mlir.constant_numbers import Number, constant_number
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import element_of


def index(value: int) -> ir.Value:
    """Returns a constant index.

    Args:
        value: of either sign.
    """
    return arith.constant(ir.IndexType.get(), value)


def integer(value: int, bits: int) -> ir.Value:
    """Returns a constant integer of `bits` bits.

    Args:
        value: that fits in `bits` bits.
        bits: width of the signless type.
    """
    return arith.constant(ir.IntegerType.get_signless(bits), value)


def constant(type_: ir.Type, value: float) -> ir.Value:
    """Returns a constant of a type of floating point or integers.

    Args:
        type_: of the constant.
        value: a number of it.
    """
    return arith.constant(type_, float(value) if isinstance(type_, ir.FloatType) else int(value))


def boolean(value: bool) -> ir.Value:
    """Returns a constant i1.

    Args:
        value: true is 1.
    """
    return integer(int(value), 1)


def apply(function: Callable[..., ir.AffineExpr], *values: ir.Value) -> ir.Value:
    """Returns `function` of index values as one `affine.apply`; `function` takes and returns affine expressions.

    Args:
        function: takes an affine expression for each value and returns one.
        values: indices.
    """
    symbols = [ir.AffineExpr.get_symbol(position) for position in range(len(values))]
    return affine.apply(ir.AffineMap.get(0, len(values), [function(*symbols)]), list(values))


def digits(number: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
    """Returns the indices of an element that is counted in row-major order.

    Args:
        number: of the element.
        sizes: extents, outermost first.
    """
    indices: list[ir.Value] = []
    step = 1
    for axis, size in reversed(list(enumerate(sizes))):

        def digit(x: ir.AffineExpr, step: int = step, size: int | None = size if axis else None) -> ir.AffineExpr:
            higher = ir.AffineExpr.get_floor_div(x, step) if step > 1 else x
            return higher if size is None else ir.AffineExpr.get_mod(higher, size)

        indices.insert(0, apply(digit, number))
        step *= size
    return indices


def times(value: ir.Value, factor: int) -> ir.Value:
    """Returns an index value times a constant.

    Args:
        value: an index.
        factor: of either sign.
    """
    return apply(lambda x: x * factor, value)


def zero_of(type_: ir.Type) -> ir.Attribute:
    """Returns zero, or a vector of zeros, as an attribute.

    Args:
        type_: of floating point or integers, or a vector of these.
    """
    element = element_of(type_)
    zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    return ir.DenseElementsAttr.get_splat(type_, zero) if isinstance(type_, ir.VectorType) else zero


def splat_of(value: ir.Value) -> Number | None:
    """Returns the value that all elements of a constant vector or tensor are; None for another value.

    Args:
        value: of any type.
    """
    return constant_number(value) if isinstance(value.type, ir.VectorType | ir.RankedTensorType) else None


def add(left: ir.Value, right: ir.Value) -> ir.Value:
    """Returns the sum of two scalars or vectors of floating point or integers.

    Args:
        left: of any of these types.
        right: of the same type.
    """
    element = element_of(left.type)
    return (arith.addi if isinstance(element, ir.IntegerType) else arith.addf)(left, right)


def equal(left: ir.Value, right: ir.Value) -> ir.Value:
    """Returns whether two values are equal, as i1.

    Args:
        left: an integer or an index.
        right: of the same type.
    """
    return arith.cmpi(arith.CmpIPredicate.eq, left, right)


def less_than(left: ir.Value, right: ir.Value) -> ir.Value:
    """Returns whether an unsigned value is less than another, as i1.

    Args:
        left: an integer or an index, taken as unsigned.
        right: of the same type.
    """
    return arith.cmpi(arith.CmpIPredicate.ult, left, right)


def constant_value(value: ir.Value) -> int | None:
    """Returns the value of a constant index, or None for a value that is not constant.

    Args:
        value: an index or an integer.
    """
    source = producer(value)
    if source is None or source.name != "arith.constant":
        return None
    return ir.IntegerAttr(source.attributes["value"]).value
