"""Convolutions, poolings and other linalg ops with computed indices as ops whose operands are indexed by loops alone.

The indexing map of such an op has sums of loops: an element of the result is computed from a window of the operand.
Along a window of one element, as in a convolution of 1 x 1, the sum is a loop. Otherwise the elements of all windows
become a tensor with an axis for each loop, by an op that reads the operand at computed offsets: a convolution is a
matmul of it (im2col). So do the elements of a diagonal, of one row of several, and of rows that are read repeatedly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, create_loop_index, indexing_maps, loops_of
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import is_number

_QUOTIENTS = {
    ir.AffineModExpr: "arith.remsi",
    ir.AffineFloorDivExpr: "arith.floordivsi",
    ir.AffineCeilDivExpr: "arith.ceildivsi",
}


def gather(function: ir.Operation) -> None:
    """Replaces the linalg ops on static tensors that read windows, or elements at other computed offsets.

    Args:
        function: a function; it is changed where there are such ops.
    """
    # Listed first: the ops in the body of one that is replaced are gone.
    for op in [op for op in walk(function) if op.name.startswith("linalg.") and len(op.regions) == 1]:
        if len(op.results) == 1 and _is_static(op):
            maps = indexing_maps(op)
            inputs = list(zip(op.operands, maps))[:-1]
            if any(_is_computed(*pair) for pair in inputs) and all(map(_is_readable, maps)):
                _replace(op, maps)


def _is_static(op: ir.Operation) -> bool:
    types = [operand.type for operand in op.operands]
    tensor_types = [type_ for type_ in types if not is_number(type_)]  # zero points are scalars
    return all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in tensor_types)


def _is_computed(operand: ir.Value, map_: ir.AffineMap) -> bool:
    """Returns whether an operand is not read by another loop along each axis, or along one of one element."""
    loops = loops_of(map_)
    if len(set(loops)) < len(loops) or any(isinstance(item, ir.AffineBinaryExpr) for item in map_.results):
        return True
    shape = [] if is_number(operand.type) else ir.RankedTensorType(operand.type).shape
    return any(isinstance(item, ir.AffineConstantExpr) and extent > 1 for item, extent in zip(map_.results, shape))


def _is_part(operand: ir.Value, map_: ir.AffineMap, sizes: Sequence[int]) -> bool:
    """Returns whether loops run over a part of an axis of an operand, as that of a window with a single place may."""
    shape = [] if is_number(operand.type) else ir.RankedTensorType(operand.type).shape
    return any(
        isinstance(item, ir.AffineDimExpr) and sizes[item.position] < extent
        for item, extent in zip(map_.results, shape)
    )


def _is_readable(map_: ir.AffineMap) -> bool:
    """Returns whether a map has loops, constants, their sums, products and quotients alone."""

    def readable(item: ir.AffineExpr) -> bool:
        return isinstance(item, ir.AffineDimExpr | ir.AffineConstantExpr) or (
            isinstance(item, ir.AffineBinaryExpr) and readable(item.lhs) and readable(item.rhs)
        )

    return all(map(readable, map_.results))


def _replace(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> None:
    sizes = _sizes(op, maps)
    arguments = op.regions[0].blocks[0].arguments
    count = len(op.operands) - 1
    read = [number for number in range(count) if list(arguments[number].uses)]
    reduced_loops = sorted(set(range(len(sizes))) - set(loops_of(maps[-1])))
    with ir.InsertionPoint(op), op.location:
        if len(read) == 1 and any(sizes[loop] > 1 for loop in reduced_loops):
            _reduce_windows(op, maps, read[0], reduced_loops)
            return
        inputs: list[ir.Value] = []
        maps_of_inputs: list[ir.AffineMap] = []
        for number in read:
            operand, map_ = op.operands[number], maps[number]
            plain = ir.AffineMap.get(map_.n_dims, 0, [_without_windows_of_one(item, sizes) for item in map_.results])
            if _is_computed(operand, plain) or _is_part(operand, plain, sizes):
                operand, plain = _elements(operand, plain, sizes, loops_of(maps[-1]))
            inputs.append(operand)
            maps_of_inputs.append(plain)
        generic, body = create_generic(
            inputs, [op.operands[count]], _with_loops_of_operands([*maps_of_inputs, maps[-1]])
        )
        values: dict[ir.Value, ir.Value] = dict(zip([arguments[number] for number in (*read, count)], body.arguments))
    _move_body(op, generic, values)


def _reduce_windows(op: ir.Operation, maps: Sequence[ir.AffineMap], read: int, reduced: Sequence[int]) -> None:
    """Replaces an op that reduces windows of one operand, such as a pooling, by one that extracts their elements.

    Args:
        op: the op.
        maps: of its operands.
        read: the number of the operand.
        reduced: loops that the result does not have. An operand that nothing reads has their extents.
    """
    sizes, operand = _sizes(op, maps), op.operands[read]
    arguments = op.regions[0].blocks[0].arguments
    count = len(op.operands) - 1
    type_ = ir.RankedTensorType.get([sizes[loop] for loop in reduced], ir.RankedTensorType(operand.type).element_type)
    window = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    map_ = ir.AffineMap.get(len(sizes), 0, list(map(ir.AffineExpr.get_dim, reduced)))
    generic, body = create_generic([window], [op.operands[count]], [map_, maps[-1]])
    with ir.InsertionPoint(body):
        element = _extracted(operand, maps[read], {loop: loop for loop in range(len(sizes))})
    _move_body(op, generic, {arguments[read]: element, arguments[count]: body.arguments[1]})


def _move_body(op: ir.Operation, generic: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> None:
    """Moves the body of an op, whose arguments are `values`, to the end of another one's, and replaces the op by it."""
    body = generic.regions[0].blocks[0]
    clone_ops([item.operation for item in op.regions[0].blocks[0].operations], values, ir.InsertionPoint(body))
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()


def _with_loops_of_operands(maps: Sequence[ir.AffineMap]) -> list[ir.AffineMap]:
    """Returns maps of the loops that any of them has: one along a window of one element may have been in none."""
    used_loops = sorted({loop for map_ in maps for item in map_.results for loop in _loops(item)})
    dims = {loop: ir.AffineExpr.get_dim(place) for place, loop in enumerate(used_loops)}
    loops = [dims.get(loop, ir.AffineExpr.get_constant(0)) for loop in range(maps[0].n_dims)]
    return [
        ir.AffineMap.get(
            len(used_loops), 0, [item.compose(ir.AffineMap.get(len(used_loops), 0, loops)) for item in map_.results]
        )
        for map_ in maps
    ]


def _sizes(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> list[int]:
    """Returns the iterations of each loop."""
    sizes = [1] * maps[0].n_dims
    for operand, map_ in zip(op.operands, maps):
        if is_number(operand.type):
            continue
        for extent, item in zip(ir.RankedTensorType(operand.type).shape, map_.results):
            if isinstance(item, ir.AffineDimExpr):
                sizes[item.position] = extent
    return sizes


def _without_windows_of_one(item: ir.AffineExpr, sizes: Sequence[int]) -> ir.AffineExpr:
    """Returns an index without the loops of one iteration in its sums."""
    if not isinstance(item, ir.AffineAddExpr | ir.AffineMulExpr):
        return item
    parts = [
        ir.AffineExpr.get_constant(0)
        if isinstance(part, ir.AffineDimExpr) and sizes[part.position] == 1
        else _without_windows_of_one(part, sizes)
        for part in (item.lhs, item.rhs)
    ]
    return parts[0] + parts[1] if isinstance(item, ir.AffineAddExpr) else parts[0] * parts[1]


def _elements(
    operand: ir.Value, map_: ir.AffineMap, sizes: Sequence[int], results: Sequence[int]
) -> tuple[ir.Value, ir.AffineMap]:
    """Returns what an op reads of an operand, as a tensor with an axis for each loop of the map, and its map.

    Args:
        operand: a tensor.
        map_: of the op, for the operand.
        sizes: iterations of each loop.
        results: loops along the axes of the result.
    """
    loops = _order(map_, results)
    type_ = ir.RankedTensorType.get([sizes[loop] for loop in loops], ir.RankedTensorType(operand.type).element_type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([], [empty], [ir.AffineMap.get_identity(len(loops))])
    with ir.InsertionPoint(body):
        places = {loop: place for place, loop in enumerate(loops)}
        ir.Operation.create("linalg.yield", operands=[_extracted(operand, map_, places)])
    return generic.results[0], ir.AffineMap.get(map_.n_dims, 0, [ir.AffineExpr.get_dim(loop) for loop in loops])


def _extracted(operand: ir.Value, map_: ir.AffineMap, places: Mapping[int, int]) -> ir.Value:
    """Returns the element of an operand that an iteration reads, at the insertion point: in the body of an op whose
    loops are the `places` of those of the map."""
    loop_indices = {loop: create_loop_index(places[loop]) for loop in sorted(places)}
    indices = [_computed(item, loop_indices) for item in map_.results]
    element = ir.RankedTensorType(operand.type).element_type
    return ir.Operation.create("tensor.extract", results=[element], operands=[operand, *indices]).results[0]


def _order(map_: ir.AffineMap, results: Sequence[int]) -> list[int]:
    """Returns the loops of a map in the order in which the windows have them.

    Where the innermost loop of the result moves a window along the innermost axis, as in convolutions of channels of
    images (NCHW), the loops in a window are outside of those that move it: neighbours in memory stay neighbours.
    """
    innermost = _loops(map_.results[-1])
    if len(innermost) < 2 or results[-1] not in innermost:
        return sorted({loop for item in map_.results for loop in _loops(item)})
    single = [item.position for item in map_.results if isinstance(item, ir.AffineDimExpr)]
    moved = [loop for item in map_.results for loop in _loops(item) if loop not in single]
    inside = [loop for loop in moved if loop not in results]
    return list(dict.fromkeys([*single, *inside, *(loop for loop in results if loop in moved)]))


def _loops(item: ir.AffineExpr) -> list[int]:
    if isinstance(item, ir.AffineDimExpr):
        return [item.position]
    return [*_loops(item.lhs), *_loops(item.rhs)] if isinstance(item, ir.AffineBinaryExpr) else []


def _computed(item: ir.AffineExpr, loop_indices: dict[int, ir.Value]) -> ir.Value:
    """Returns an index, at the insertion point."""
    if isinstance(item, ir.AffineDimExpr):
        return loop_indices[item.position]
    if isinstance(item, ir.AffineConstantExpr):
        return arith.constant(ir.IndexType.get(), ir.IntegerAttr.get(ir.IndexType.get(), item.value))
    assert isinstance(item, ir.AffineBinaryExpr)  # of the readable ones
    left, right = _computed(item.lhs, loop_indices), _computed(item.rhs, loop_indices)
    name = _QUOTIENTS.get(type(item)) or ("arith.addi" if isinstance(item, ir.AffineAddExpr) else "arith.muli")
    return ir.Operation.create(name, results=[left.type], operands=[left, right]).results[0]
