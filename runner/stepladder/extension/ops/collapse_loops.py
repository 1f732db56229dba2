"""`tc.collapse_loops`: makes one loop of loops of linalg ops that run over neighbours in memory."""

import itertools
import math
from collections.abc import Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.rows import RowOp
from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import origin, producer, walk

Pairs = set[tuple[int, int]]


class CollapseLoops(Tc.Operation, name="collapse_loops"):
    """Collapses loops of `linalg.generic` ops on buffers, of which all operands have the axes next to each other.

    The operands become views by `memref.collapse_shape`. Loops stay whose index the body reads. Of several ops, which
    are a chain over the same rows, loops over the columns are collapsed, where all of the ops have them.

    `structured.flatten_elementwise` of upstream collapses all loops of an op whose maps are identities.

    Operands: a handle to a module with one function.
    """

    target: Handle


@transform_op(CollapseLoops)
def collapse_loops(payload: ir.Operation, op: CollapseLoops, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    generics = walk(payload, "linalg.generic")
    try:
        ops = [RowOp(generic) for generic in generics]
    except Refusal:
        return  # `distribute_elements` and `distribute_rows` name what they do not accept
    is_chain = len(ops) > 1
    loops = [_left_loops(item, drops_unit_loops=not is_chain) for item in ops]
    pairs = [_pairs(item, own) for item, own in zip(ops, loops)]
    if is_chain:
        pairs = _common_pairs(ops, pairs)
    views: dict[tuple[ir.Value, str], ir.Value] = {}
    for item, own_loops, own in zip(ops, loops, pairs):
        if (own or not is_chain) and not _begins_with_copies(item):
            _collapse(item, own_loops, own, views)


def _left_loops(op: RowOp, *, drops_unit_loops: bool) -> list[int]:
    """Returns the loops of an op that are not left out.

    Args:
        op: on buffers.
        drops_unit_loops: whether loops of one iteration are left out.
    """
    return [
        loop
        for loop, size in enumerate(op.sizes)
        if size > 1 or not drops_unit_loops or loop in _used_indices(op) or op.sizes == [1] * len(op.sizes)
    ]


def _pairs(op: RowOp, left_loops: Sequence[int]) -> Pairs:
    """Returns pairs of loops of which, in all operands that have one of them, the first one runs over rows, and the
    second one over all elements of a row; none of the loops that are left is between them."""
    loops = [loop for loop in left_loops if op.sizes[loop] > 1 and loop not in _used_indices(op)]
    return {
        (first, second)
        for first, second in itertools.permutations(loops, 2)
        if all(
            _are_neighbours(operand, map_, left_loops, first, second) for operand, map_ in zip(op.op.operands, op.maps)
        )
    }


def _begins_with_copies(op: RowOp) -> bool:
    """Returns whether a result holds a copy of another buffer before the op; it is read by the indices of its axes."""
    copies = [item for item in operations_of(op.op.block) if item.name == "memref.copy"]
    copied_buffers = {origin(copy.operands[1], BUFFER_VIEWS) for copy in copies}
    return any(origin(operand, BUFFER_VIEWS) in copied_buffers for operand in list(op.op.operands)[op.inputs :])


def _used_indices(op: RowOp) -> set[int]:
    """Returns the loops whose indices the body reads."""
    return {ir.IntegerAttr(item.attributes["dim"]).value for item in walk(op.op, "linalg.index")}


def _are_neighbours(
    operand: ir.Value, map_: list[int | None], left_loops: Sequence[int], first: int, second: int
) -> bool:
    """Returns whether an operand has neither of two loops, or the second one along the rows of the first."""
    if first not in map_ and second not in map_:
        return True
    if map_.count(first) != 1 or map_.count(second) != 1:
        return False
    type_ = ir.MemRefType(operand.type)
    outer, inner = map_.index(first), map_.index(second)
    strides, _ = type_.get_strides_and_offset()
    between = range(outer + 1, inner)
    are_unit = all(type_.shape[axis] == 1 and map_[axis] not in left_loops for axis in between)
    return outer < inner and are_unit and strides[outer] == strides[inner] * type_.shape[inner]


def _common_pairs(ops: Sequence[RowOp], pairs: Sequence[Pairs]) -> list[Pairs]:
    """Returns the pairs of loops over columns that are collapsed in all ops of a chain that have columns."""
    rank = len(next((op.rows() for op in ops if op.reduced), []))
    columns = [op.columns(rank) for op in ops]
    sizes = {tuple(op.sizes[loop] for loop in own) for op, own in zip(ops, columns) if own}
    if len(sizes) != 1 or not all(map(_is_direct, ops)):
        return [set() for _ in ops]
    places = [
        place
        for place in range(len(sizes.pop()) - 1)
        if all((own[place], own[place + 1]) in of_op for own, of_op in zip(columns, pairs) if own)
    ]
    return [{(own[place], own[place + 1]) for place in places} if own else set() for own in columns]


def _is_direct(op: RowOp) -> bool:
    """Returns whether an op reads and writes what other ops of the chain compute without views between."""
    roots = [(operand, origin(operand, BUFFER_VIEWS)) for operand in op.op.operands]
    return all(producer(root) is None or root == operand for operand, root in roots)


def _groups(loops: Sequence[int], pairs: Pairs) -> list[list[int]]:
    """Returns the loops that become one, for each new loop; these are in the order of their outermost ones."""
    following = dict(pairs)
    groups = []
    for loop in sorted(set(loops) - set(following.values())):
        group = [loop]
        while group[-1] in following:
            group.append(following[group[-1]])
        groups.append(group)
    return groups


def _collapse(op: RowOp, loops: Sequence[int], pairs: Pairs, views: dict[tuple[ir.Value, str], ir.Value]) -> None:
    """Collapses loops of an op.

    Args:
        op: on buffers.
        loops: those that are not left out.
        pairs: of loops; no loop is first in two of them, or second.
        views: made for other ops, by the buffer and the axes that are collapsed; grows.
    """
    generic = op.op
    groups = _groups(loops, pairs)
    if len(groups) == len(op.sizes):
        return
    new_loop = {loop: number for number, group in enumerate(groups) for loop in group}
    inner_loops = {second for _, second in pairs}
    maps = []
    for place, own in enumerate(op.maps):
        axes = _axes(own, inner_loops, set(loops))
        results = [next((loop for axis in group if (loop := own[axis]) in new_loop), None) for group in axes]
        expressions = [
            ir.AffineExpr.get_constant(0, generic.context)
            if loop is None
            else ir.AffineExpr.get_dim(new_loop[loop], generic.context)
            for loop in results
        ]
        maps.append(ir.AffineMap.get(len(groups), 0, expressions, generic.context))
        key = generic.operands[place], str(axes)
        if key not in views:
            with ir.InsertionPoint(generic), generic.location:
                views[key] = _collapsed(generic.operands[place], axes)
        generic.operands[place] = views[key]
    kinds = list(ir.ArrayAttr(generic.attributes["iterator_types"]))
    generic.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[group[0]] for group in groups], generic.context)
    attributes = [ir.AffineMapAttr.get(map_) for map_ in maps]
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get(attributes, generic.context)
    for item in walk(generic, "linalg.index"):
        dim = ir.IntegerAttr(item.attributes["dim"])
        item.attributes["dim"] = ir.IntegerAttr.get(dim.type, new_loop[dim.value])


def _axes(map_: list[int | None], inner_loops: set[int], loops: set[int]) -> list[list[int]]:
    """Returns the axes of an operand that become one, for each new axis: axes without a loop that is left, and of the
    inner loops, go with the one before them, or else with the first one that has such a loop."""
    axes: list[list[int]] = []
    is_open = False  # no axis of the last group has a loop yet
    for axis, loop in enumerate(map_):
        is_outer = loop in loops and loop not in inner_loops
        if axes and (is_open or not is_outer):
            axes[-1].append(axis)
            is_open = is_open and not is_outer
        else:
            axes.append([axis])
            is_open = not is_outer
    return axes


def _collapsed(buffer: ir.Value, axes: Sequence[Sequence[int]]) -> ir.Value:
    """Returns a buffer with some axes collapsed, at the insertion point."""
    type_ = ir.MemRefType(buffer.type)
    if len(axes) == type_.rank:
        return buffer
    strides, offset = type_.get_strides_and_offset()
    shape = [math.prod(type_.shape[axis] for axis in group) for group in axes]
    layout = None
    if isinstance(type_.layout, ir.StridedLayoutAttr):
        # Upstream takes the stride of the innermost axis of more than one element.
        innermost = [next((axis for axis in reversed(group) if type_.shape[axis] > 1), group[0]) for group in axes]
        layout = ir.StridedLayoutAttr.get(offset, [strides[axis] for axis in innermost])
    result = ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space)
    return memref.collapse_shape(result, buffer, axes)
