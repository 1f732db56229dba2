"""`tensor.gather` as a linalg op that reads elements by indices."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index
from stepladder.mlir.slices import static_numbers
from stepladder.mlir.traverse import walk


def lower(function: ir.Operation) -> None:
    """Replaces each `tensor.gather` of static tensors by a `linalg.generic`, which reads its indices and extracts.

    One with indices of type `index` stays: no buffer has this type.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, "tensor.gather"):
        types = [ir.RankedTensorType(value.type) for value in (*op.operands, *op.results)]
        if all(type_.has_static_shape for type_ in types) and types[1].element_type != ir.IndexType.get():
            with ir.InsertionPoint(op), op.location:
                result = _gathered(op)
            op.results[0].replace_all_uses_with(result)
            op.erase()


def _gathered(op: ir.Operation) -> ir.Value:
    """Creates the elements that a gather takes, at the insertion point.

    The first axes of the result are those of the indices but the last one, along which are the coordinates of a
    position. The others are those of the source, of which the gathered ones have one element, or are left out.
    """
    source, indices = op.operands
    result = ir.RankedTensorType(op.results[0].type)
    gather_dims = list(ir.DenseI64ArrayAttr(op.attributes["gather_dims"]))
    batch = ir.RankedTensorType(indices.type).rank - 1
    rank = ir.RankedTensorType(source.type).rank
    slice_dims = [axis for axis in range(rank) if axis not in gather_dims]
    places = slice_dims if result.rank == batch + len(slice_dims) else range(rank)
    axes = {axis: batch + place for place, axis in enumerate(places)}
    loops = [ir.AffineExpr.get_dim(loop) for loop in range(batch)]
    inputs = [coordinates_of(indices, place) for place in range(len(gather_dims))]
    index_map = ir.AffineMap.get(result.rank, 0, [*loops, ir.AffineExpr.get_constant(0)])
    empty = ir.Operation.create("tensor.empty", results=[result]).results[0]
    identity = ir.AffineMap.get_identity(result.rank)
    generic, body = create_generic(inputs, [empty], [*[index_map] * len(inputs), identity])
    index = ir.IndexType.get()
    with ir.InsertionPoint(body):
        coordinates = dict(zip(gather_dims, body.arguments))
        places_of_element = [
            arith.index_cast(index, coordinates[axis]) if axis in coordinates else create_loop_index(axes[axis])
            for axis in range(rank)
        ]
        element = ir.Operation.create(
            "tensor.extract", results=[result.element_type], operands=[source, *places_of_element]
        )
        ir.Operation.create("linalg.yield", operands=element.results)
    return generic.results[0]


def coordinates_of(indices: ir.Value, place: int) -> ir.Value:
    """Returns one coordinate of all positions: a part of the indices, or all of them if positions have one coordinate.

    Args:
        indices: the positions, along the last axis the coordinates of each.
        place: which coordinate.
    """
    type_ = ir.RankedTensorType(indices.type)
    *shape, count = type_.shape
    if count == 1:
        return indices
    return ir.Operation.create(
        "tensor.extract_slice",
        results=[ir.RankedTensorType.get([*shape, 1], type_.element_type)],
        operands=[indices],
        attributes=static_numbers([*[0] * len(shape), place], [*shape, 1]),
    ).results[0]
