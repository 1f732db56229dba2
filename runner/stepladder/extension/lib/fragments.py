"""What the ops that rearrange fragments share."""

from __future__ import annotations

from stepladder.mlir.bindings import ir


def take_rows(fragment, rows: list[int]):
    """Returns a vector of some rows of a fragment, in the given order, built at the current insertion point.

    Rows of a fragment are registers of a lane: nothing moves, the registers get other names.
    """
    type_ = ir.VectorType(fragment.type)
    row_type = ir.VectorType.get(type_.shape[1:], type_.element_type)
    part_type = ir.VectorType.get([len(rows), *type_.shape[1:]], type_.element_type)
    part = ir.Operation.create(
        "ub.poison", results=[part_type], attributes={"value": ir.Attribute.parse("#ub.poison")}
    ).results[0]
    for place, row in enumerate(rows):
        one = ir.Operation.create(
            "vector.extract",
            results=[row_type],
            operands=[fragment],
            attributes={"static_position": ir.DenseI64ArrayAttr.get([row])},
        ).results[0]
        part = ir.Operation.create(
            "vector.insert",
            results=[part_type],
            operands=[one, part],
            attributes={"static_position": ir.DenseI64ArrayAttr.get([place])},
        ).results[0]
    return part
