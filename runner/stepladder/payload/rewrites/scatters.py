"""`tensor.scatter` as linalg ops: a reduction finds the update of each position, and an elementwise op takes it."""

from __future__ import annotations

import math

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, create_named_op
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites.gathers import coordinates_of


def lower(function: ir.Operation) -> None:
    """Replaces each `tensor.scatter` of static tensors, whose positions are unique as the op requires.

    No kernel writes an element at a position that it computes: the kernels of the result look for what is written
    there. One with indices of type `index` stays: no buffer has this type.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, "tensor.scatter"):
        types = [ir.RankedTensorType(value.type) for value in op.operands]
        is_static = all(type_.has_static_shape for type_ in types)
        if is_static and types[2].element_type != ir.IndexType.get():
            with ir.InsertionPoint(op), op.location:
                result = _scattered(op)
            op.results[0].replace_all_uses_with(result)
            op.erase()


def _scattered(op: ir.Operation) -> ir.Value:
    """Creates the destination with the elements that a scatter writes, at the insertion point.

    The first axes of the source are those of the indices but the last one, along which are the coordinates of a
    position. The others are those of the destination, of which the scattered ones have one element, or are left out.
    """
    source, destination, indices = op.operands
    if ir.RankedTensorType(indices.type).rank == 1:  # a single position
        source, indices = _with_an_axis(source), _with_an_axis(indices)
    type_ = ir.RankedTensorType(destination.type)
    axes = list(ir.DenseI64ArrayAttr(op.attributes["scatter_dims"]))
    batch = ir.RankedTensorType(indices.type).rank - 1
    updates = _collapsed(source, batch)
    numbers = _update_of_each_place(indices, [type_.shape[axis] for axis in axes])
    is_whole = ir.RankedTensorType(source.type).rank == batch + type_.rank
    loops = [ir.AffineExpr.get_dim(axis) for axis in axes]
    identity = ir.AffineMap.get_identity(type_.rank)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    maps = [ir.AffineMap.get(type_.rank, 0, loops), identity, identity]
    generic, body = create_generic([numbers, destination], [empty], maps)
    with ir.InsertionPoint(body):
        number, old, _ = body.arguments
        zero = arith.constant(number.type, 0)
        places = [arith.index_cast(ir.IndexType.get(), arith.maxsi(number, zero))]
        for axis in range(type_.rank):
            if axis not in axes:
                places.append(create_loop_index(axis))
            elif is_whole:
                places.append(arith.constant(ir.IndexType.get(), 0))
        new = ir.Operation.create("tensor.extract", results=[type_.element_type], operands=[updates, *places])
        is_written = arith.cmpi(arith.CmpIPredicate.sge, number, zero)
        ir.Operation.create("linalg.yield", operands=[arith.select(is_written, new.results[0], old)])
    return generic.results[0]


def _update_of_each_place(indices: ir.Value, extents: list[int]) -> ir.Value:
    """Creates the number of the update of each position along the scattered axes, -1 where there is none."""
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    count = len(extents)
    inputs = [_collapsed(coordinates_of(indices, place), None) for place in range(count)]
    type_ = ir.RankedTensorType.get(extents, i32)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    none = create_named_op("linalg.fill", [arith.constant(i32, -1)], empty).results[0]
    update_map = ir.AffineMap.get(count + 1, 0, [ir.AffineExpr.get_dim(count)])
    place_map = ir.AffineMap.get(count + 1, 0, [ir.AffineExpr.get_dim(loop) for loop in range(count)])
    generic, body = create_generic(inputs, [none], [*[update_map] * count, place_map])
    with ir.InsertionPoint(body):
        *coordinates, so_far = body.arguments
        number = arith.index_cast(i32, create_loop_index(count))
        for loop, coordinate in enumerate(coordinates):
            is_here = arith.cmpi(arith.CmpIPredicate.eq, arith.index_cast(index, coordinate), create_loop_index(loop))
            number = arith.select(is_here, number, arith.constant(i32, -1))
        ir.Operation.create("linalg.yield", operands=[arith.maxsi(number, so_far)])
    return generic.results[0]


def _with_an_axis(value: ir.Value) -> ir.Value:
    """Returns a tensor with a first axis of one element."""
    type_ = ir.RankedTensorType(value.type)
    shape = [1, *type_.shape]
    groups = [[0, 1], *([axis + 1] for axis in range(1, type_.rank))] if type_.rank else []
    return reshaped(value, shape, groups)


def _collapsed(value: ir.Value, count: int | None) -> ir.Value:
    """Returns a tensor with its first axes, or all of them, as one."""
    type_ = ir.RankedTensorType(value.type)
    count = type_.rank if count is None else count
    if count == 1:
        return value
    shape = [math.prod(type_.shape[:count]), *type_.shape[count:]]
    groups = [range(count), *([axis] for axis in range(count, type_.rank))]
    return reshaped(value, shape, groups)
