"""Rearranging the fragments of `mma.sync`."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.vectors import extract
from stepladder.mlir.bindings import ir


def poison(type_: ir.Type) -> ir.Value:
    """Returns a `ub.poison` value, at the current insertion point.

    Args:
        type_: of the value.
    """
    attributes = {"value": ir.Attribute.parse("#ub.poison")}
    return ir.Operation.create("ub.poison", results=[type_], attributes=attributes).results[0]


def take_rows(fragment: ir.Value, rows: Sequence[int]) -> ir.Value:
    """Returns a vector of some rows of a fragment, in the given order, at the current insertion point.

    The rows of a fragment are registers of a thread, so that no data moves: the registers are renamed.

    Args:
        fragment: a vector rows x ....
        rows: indices of rows; one may occur several times.
    """
    type_ = ir.VectorType(fragment.type)
    row_type = ir.VectorType.get(type_.shape[1:], type_.element_type)
    result_type = ir.VectorType.get([len(rows), *type_.shape[1:]], type_.element_type)
    result = poison(result_type)
    for position, row in enumerate(rows):
        result = ir.Operation.create(
            "vector.insert",
            results=[result_type],
            operands=[extract(fragment, [row], row_type), result],
            attributes={"static_position": ir.DenseI64ArrayAttr.get([position])},
        ).results[0]
    return result
