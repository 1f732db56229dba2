"""Contractions of transposed tensors as contractions of the tensors, in the order that they have."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.multi_kernel.products import axes_read
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps, loops_of
from stepladder.mlir.reshapes import groups_of, reshaped
from stepladder.mlir.traverse import producer


@dataclass(frozen=True)
class _Transposed:
    """An operand that is a transposed tensor, maybe repeated.

    Attributes:
        source: the tensor.
        axes: of the source, for each axis of what is made of it; None where that has copies.
        groups: the extents of these that each dimension of the operand consists of.
    """

    source: ir.Value
    axes: list[int | None]
    groups: list[list[int]]

    @property
    def repeated(self) -> list[int]:
        """The dimensions of the operand that have copies."""
        axes = iter(self.axes)
        copies = [[size > 1 for size in group if next(axes) is None] for group in self.groups]
        return [number for number, copied in enumerate(copies) if any(copied)]


def absorbed(product: ir.Operation, kernel_ops: Sequence[ir.Operation], *, with_views: bool = False) -> ir.Value | None:
    """Creates the contraction of what a contraction's operands are transposed from, before it.

    Args:
        product: a contraction on tensors.
        kernel_ops: transposes that stay.
        with_views: whether axes of a tensor that is only collapsed become loops too.

    Returns:
        The result in the product's shape; None where there is nothing to absorb.
    """
    maps = indexing_maps(product)
    loops = [loops_of(map_) for map_ in maps]
    if any(len(order) < len(map_.results) for order, map_ in zip(loops, maps)):
        return None  # an axis of one element, which no loop runs along
    batch = set(loops[0]) & set(loops[1]) & set(loops[2])
    operands = list(product.operands)[:2]
    sources = [_transposed(value, kernel_ops) for value in operands]
    places = sorted((0, 1), key=lambda number: sources[number] is None)  # how a view is divided is no reason to copy
    if with_views:
        sources = [item or _collapsed(value) for item, value in zip(sources, operands)]
    extents: dict[int, list[int]] = {}
    for number in places:
        item, order = sources[number], loops[number]
        if item is None:
            continue
        own = {loop: _refined(extents.get(loop, []), sizes) for loop, sizes in zip(order, item.groups)}
        divided = {loop: sizes for loop, sizes in own.items() if sizes is not None}
        if len(divided) < len(own) or not {order[dimension] for dimension in item.repeated} <= batch:
            sources[number] = None  # another division than that of the other operand, or copies of rows
        else:
            extents |= divided
    if sources == [None, None]:
        return None
    new_loops, count = {}, 0
    for loop in range(maps[0].n_dims):
        width = len(extents.get(loop, [0]))
        new_loops[loop] = list(range(count, count + width))
        count += width
    with ir.InsertionPoint(product), product.location:
        values, orders = [], []
        for value, order, item in zip(product.operands, loops, [*sources, None]):
            if item is None:
                values.append(_expanded(value, [extents.get(loop) for loop in order]))
                orders.append([place for loop in order for place in new_loops[loop]])
            else:
                read, inner = _read(item, [extents[loop] for loop in order], [new_loops[loop] for loop in order])
                values.append(read)
                orders.append(inner)
        new_maps = [ir.AffineMap.get(count, 0, [ir.AffineExpr.get_dim(place) for place in order]) for order in orders]
        generic, block = create_generic(values[:2], values[2:], new_maps)
        body = product.regions[0].blocks[0]
        clone_ops(operations_of(body), dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block))
        shape = ir.RankedTensorType(product.results[0].type).shape
        return _merged(generic.results[0], shape, [new_loops[loop] for loop in loops[2]])


def _refined(one: Sequence[int], other: Sequence[int]) -> list[int] | None:
    """Returns the finer one of two divisions of a dimension into axes; None where neither divides the other's axes.

    Args:
        one: extents of the axes, outermost first; none of a dimension that is not divided yet.
        other: likewise, of as many elements.
    """
    if not one:
        return list(other)
    return next((list(fine) for fine, coarse in ((one, other), (other, one)) if _parts(coarse, fine)), None)


def _parts(sizes: Sequence[int], extents: Sequence[int]) -> list[list[int]] | None:
    """Returns, for each size of an axis, the indices of the consecutive extents whose product it is; None where there
    are no such extents."""
    numbers: list[list[int]] = []
    place = 0
    for size in sizes:
        if place == len(extents):  # the axes that are left have one element
            return None
        part = [place]
        while math.prod(extents[number] for number in part) < size:
            part.append(part[-1] + 1)
        if math.prod(extents[number] for number in part) != size:
            return None
        numbers.append(part)
        place = part[-1] + 1
    return numbers if place == len(extents) else None


def _read(item: _Transposed, extents: Sequence[list[int]], places: Sequence[list[int]]) -> tuple[ir.Value, list[int]]:
    """Returns the tensor that an operand is made of, with an axis for each loop, and these loops.

    Args:
        item: the operand.
        extents: that each of its dimensions is divided into; `places`: the loops of these.
    """
    sizes: dict[int, list[int]] = {}
    loops: dict[int, list[int]] = {}
    axes = iter(item.axes)
    for group, own, numbers in zip(item.groups, extents, places):
        parts = _parts(group, own)
        assert parts is not None  # a refinement
        for part, axis in zip(parts, axes):
            if axis is not None:
                sizes[axis], loops[axis] = ([values[number] for number in part] for values in (own, numbers))
    order = range(len(sizes))
    return _expanded(item.source, [sizes[axis] for axis in order]), [loop for axis in order for loop in loops[axis]]


def _collapsed(value: ir.Value) -> _Transposed | None:
    """Returns what an operand is collapsed from; None where it is not."""
    op = producer(value)
    if op is None or op.name != "tensor.collapse_shape":
        return None
    shape = ir.RankedTensorType(op.operands[0].type).shape
    groups = [[shape[axis] for axis in group] for group in groups_of(op)]
    return _Transposed(op.operands[0], list(range(len(shape))), groups)


def _transposed(value: ir.Value, kernel_ops: Sequence[ir.Operation]) -> _Transposed | None:
    """Returns what an operand is transposed from; None where it is not, or where the kernel reads it as a layout."""
    op = producer(value)
    groups = [[axis] for axis in range(ir.RankedTensorType(value.type).rank)]
    if op is not None and op.name == "tensor.collapse_shape":
        groups = groups_of(op)
        value = op.operands[0]
        op = producer(value)
    shape = ir.RankedTensorType(value.type).shape
    axes: list[int | None] = list(range(len(shape)))
    source = value
    while op is not None and op not in kernel_ops and (read := axes_read(op)) is not None:
        axes = [None if axis is None else read[axis] for axis in axes]
        source = op.operands[0]
        op = producer(source)
    is_whole = sorted(axis for axis in axes if axis is not None) == list(range(ir.RankedTensorType(source.type).rank))
    if source == value or (op is not None and op in kernel_ops) or not is_whole:
        return None
    return _Transposed(source, axes, [[shape[axis] for axis in group] for group in groups])


def _expanded(value: ir.Value, extents: Sequence[list[int] | None]) -> ir.Value:
    """Returns a tensor with an axis for each loop of its dimensions, at the insertion point."""
    type_ = ir.RankedTensorType(value.type)
    groups = [own if own is not None else [size] for own, size in zip(extents, type_.shape)]
    return _merged(value, [size for group in groups for size in group], groups)


def _merged(value: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """Returns a reshaped tensor, or the tensor if all dimensions stay; each group is as long as the axes of one."""
    if all(len(group) == 1 for group in groups):
        return value
    axes = iter(range(sum(map(len, groups))))
    return reshaped(value, shape, [list(itertools.islice(axes, len(group))) for group in groups])
