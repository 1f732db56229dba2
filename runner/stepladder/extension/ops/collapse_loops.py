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
        pairs = [_pairs(item) for item in ops]
    except Refusal:
        return  # `distribute_elements` and `distribute_rows` name what they do not accept
    if len(ops) > 1:
        pairs = _common_pairs(ops, pairs)
    views: dict[tuple[ir.Value, str], ir.Value] = {}
    for item, own in zip(ops, pairs):
        if own:
            _collapse(item, own, views)


def _pairs(op: RowOp) -> Pairs:
    """Returns pairs of loops of which, in all operands that have one of them, the first one runs over rows, and the
    second one over all elements of a row."""
    used_indices = {ir.IntegerAttr(item.attributes["dim"]).value for item in walk(op.op, "linalg.index")}
    copies = [item for item in operations_of(op.op.block) if item.name == "memref.copy"]
    copied_buffers = {origin(copy.operands[1], BUFFER_VIEWS) for copy in copies}
    if any(origin(operand, BUFFER_VIEWS) in copied_buffers for operand in list(op.op.operands)[op.inputs :]):
        return set()
    loops = [loop for loop in range(len(op.sizes)) if loop not in used_indices]
    return {
        (first, second)
        for first, second in itertools.permutations(loops, 2)
        if all(_are_neighbours(operand, map_, first, second) for operand, map_ in zip(op.op.operands, op.maps))
    }


def _are_neighbours(operand: ir.Value, map_: list[int | None], first: int, second: int) -> bool:
    """Returns whether an operand has neither of two loops, or the second one along the rows of the first."""
    if first not in map_ and second not in map_:
        return True
    if map_.count(first) != 1 or map_.count(second) != 1 or map_.index(second) != map_.index(first) + 1:
        return False
    type_ = ir.MemRefType(operand.type)
    strides, _ = type_.get_strides_and_offset()
    axis = map_.index(second)
    return strides[axis - 1] == strides[axis] * type_.shape[axis]


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


def _groups(loops: int, pairs: Pairs) -> list[list[int]]:
    """Returns the loops that become one, for each new loop; these are in the order of their outermost ones."""
    following = dict(pairs)
    groups = []
    for loop in sorted(set(range(loops)) - set(following.values())):
        group = [loop]
        while group[-1] in following:
            group.append(following[group[-1]])
        groups.append(group)
    return groups


def _collapse(op: RowOp, pairs: Pairs, views: dict[tuple[ir.Value, str], ir.Value]) -> None:
    """Collapses loops of an op.

    Args:
        op: on buffers.
        pairs: of loops; no loop is first in two of them, or second.
        views: made for other ops, by the buffer and the axes that are collapsed; grows.
    """
    generic = op.op
    groups = _groups(len(op.sizes), pairs)
    new_loop = {loop: number for number, group in enumerate(groups) for loop in group}
    inner_loops = {second for _, second in pairs}
    maps = []
    for place, loops in enumerate(op.maps):
        axes: list[list[int]] = []
        results = []
        for axis, loop in enumerate(loops):
            if loop in inner_loops:
                axes[-1].append(axis)
                continue
            axes.append([axis])
            zero = ir.AffineExpr.get_constant(0, generic.context)
            results.append(zero if loop is None else ir.AffineExpr.get_dim(new_loop[loop], generic.context))
        maps.append(ir.AffineMap.get(len(groups), 0, results, generic.context))
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


def _collapsed(buffer: ir.Value, axes: Sequence[Sequence[int]]) -> ir.Value:
    """Returns a buffer with some axes collapsed, at the insertion point."""
    type_ = ir.MemRefType(buffer.type)
    if len(axes) == type_.rank:
        return buffer
    strides, offset = type_.get_strides_and_offset()
    shape = [math.prod(type_.shape[axis] for axis in group) for group in axes]
    layout = None
    if isinstance(type_.layout, ir.StridedLayoutAttr):
        layout = ir.StridedLayoutAttr.get(offset, [strides[group[-1]] for group in axes])
    result = ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space)
    return memref.collapse_shape(result, buffer, axes)
