"""Values of vectors: elements and slices out of them and into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.extension.lib.arithmetic import zero_of
from stepladder.mlir.bindings import arith, ir


def extract(vector: ir.Value, position: Sequence[int], type_: ir.Type) -> ir.Value:
    """Returns the element or the sub-vector at a static position of a vector, as a value of type `type_`.

    Args:
        vector: of any rank.
        position: along the outermost dimensions; along all of them for an element.
        type_: of the element or the sub-vector.
    """
    return ir.Operation.create(
        "vector.extract",
        results=[type_],
        operands=[vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get(position)},
    ).results[0]


def insert(value: ir.Value, vector: ir.Value, position: Sequence[int]) -> ir.Value:
    """Returns a vector with a value at a position.

    Args:
        value: of the vector's element type, or a vector of its inner dimensions.
        vector: of one dimension or more.
        position: an index for each outer dimension.
    """
    return ir.Operation.create(
        "vector.insert",
        results=[vector.type],
        operands=[value, vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get(position)},
    ).results[0]


def stack(vectors: Mapping[tuple[int, ...], ir.Value], outer: Sequence[int]) -> ir.Value:
    """Returns vectors as one with further dimensions, at the current insertion point.

    Args:
        vectors: of one type, by their positions in the outer dimensions, all of which are there.
        outer: extents of these.
    """
    row = ir.VectorType(next(iter(vectors.values())).type)
    type_ = ir.VectorType.get([*outer, *row.shape], row.element_type)
    stacked = arith.constant(type_, zero_of(type_))
    for place, vector in vectors.items():
        stacked = insert(vector, stacked, place)
    return stacked
