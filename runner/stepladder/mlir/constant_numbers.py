"""Values of constants, and of tensors and vectors whose elements are all the same one."""

from __future__ import annotations

from typing import TypeAlias

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer

# A boolean's attribute has a class of its own in the bindings.
Number: TypeAlias = "ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr"


def number_in(attribute: ir.Attribute) -> Number | None:
    """Returns a scalar, or the one that all elements of a tensor or a vector are; None for other attributes.

    Args:
        attribute: such as the value of an `arith.constant`.
    """
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return attribute if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)) else None


def constant_number(value: ir.Value) -> Number | None:
    """Returns the number of an `arith.constant`, as `number_in` does; None for another value.

    Args:
        value: of any type.
    """
    source = producer(value)
    return number_in(source.attributes["value"]) if source is not None and source.name == "arith.constant" else None


def repeated_number(value: ir.Value) -> Number | None:
    """Returns the scalar constant that all elements of a value are, as a constant or by `linalg.fill`; None if unknown.

    Args:
        value: such as what a reduction begins from.
    """
    source = producer(value)
    return constant_number(source.operands[0] if source is not None and source.name == "linalg.fill" else value)
