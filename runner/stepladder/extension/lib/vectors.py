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


def repeated(value: ir.Value, width: int) -> ir.Value:
    """Returns a vector as it is, and a scalar as a vector of copies, at the current insertion point.

    Args:
        value: a vector or a scalar.
        width: elements of the vector.
    """
    if isinstance(value.type, ir.VectorType):
        return value
    type_ = ir.VectorType.get([width], value.type)
    return ir.Operation.create("vector.broadcast", results=[type_], operands=[value]).results[0]


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
    result = arith.constant(type_, zero_of(type_))
    for place, vector in vectors.items():
        result = insert(vector, result, place)
    return result


def extract_slice(vector: ir.Value, offsets: Sequence[int], type_: ir.Type) -> ir.Value:
    """Returns a slice of a vector, of as many dimensions.

    Args:
        vector: of any rank.
        offsets: of the slice in each dimension.
        type_: of the slice.
    """
    shape = ir.VectorType(type_).shape
    return ir.Operation.create(
        "vector.extract_strided_slice",
        results=[type_],
        operands=[vector],
        attributes=_of_integers(offsets=offsets, sizes=shape, strides=[1] * len(shape)),
    ).results[0]


def insert_slice(part: ir.Value, vector: ir.Value, offsets: Sequence[int]) -> ir.Value:
    """Returns a vector with a slice at some offsets, of as many dimensions.

    Args:
        part: the slice.
        vector: of any rank.
        offsets: of the slice in each dimension.
    """
    return ir.Operation.create(
        "vector.insert_strided_slice",
        results=[vector.type],
        operands=[part, vector],
        attributes=_of_integers(offsets=offsets, strides=[1] * len(offsets)),
    ).results[0]


def offsets_of(slice_: ir.Operation) -> list[int]:
    """Returns the offsets of a slice in its vector.

    Args:
        slice_: an op that `extract_slice` or `insert_slice` creates.
    """
    return [ir.IntegerAttr(offset).value for offset in ir.ArrayAttr(slice_.attributes["offsets"])]


def _of_integers(**values: Sequence[int]) -> dict[str, ir.Attribute]:
    i64 = ir.IntegerType.get_signless(64)
    return {
        name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, value) for value in numbers])
        for name, numbers in values.items()
    }
