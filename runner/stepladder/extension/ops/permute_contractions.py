"""`tc.permute_contractions`: transposes operands of contractions into an order that the kernels of matmuls read."""

import collections
import itertools
import math
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import splat_of
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.products import (
    Groups,
    axes_read,
    groups_of,
    is_product,
    is_without_units,
    sizes_of,
    smallest,
)
from stepladder.extension.lib.multi_kernel.stages import is_start, one_function
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps, loops_of
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import producer, users_of
from stepladder.mlir.types import element_of
from stepladder.payload.front.plan import STRIDED
from stepladder.payload.producers import PREPARED

_Order = tuple[int, ...]
# Bits of elements that the kernels multiply in either layout.
_KEPT_BITS = 16
# Bits of elements that they multiply along k, as they are.
_ALONG_K_BITS = 8
# Of TMA: axes of a tensor, bits of which strides are multiples, elements of a row of a box, and a multiple of the
# extents of most boxes.
_MAX_AXES, _PITCH_BITS, _ROW, _BOX = 5, 128, 64, 256


class PermuteContractions(Tc.Operation, name="permute_contractions"):
    """Transposes operands and results of contractions that the front refuses for the order of their dimensions.

    A kernel reads a matrix whose rows are m (or n) and whose columns are k, or the reverse, after the batch. Where m,
    n, k and the batch consist of several loops, an operand may hold them in any order: of the orders in which the
    operands that are left as they are agree, the one is chosen that copies the fewest elements. A copy keeps the
    innermost dimension where an order of an operand of 16 bits has it innermost: threads copy vectors along it. Other
    elements are multiplied along k, which becomes the innermost. The contraction becomes a `linalg.generic`. One that
    the front accepts stays as it is. Loops of one iteration that one operand alone has are dropped first, and a
    transpose of the result that makes the contraction one that the front accepts becomes part of it.

    With `in_place` 1, a transpose of A or B whose boxes TMA can address in the buffer that it reads gets the attribute
    `prepared`: the payload of the matmul has it, and `tc.load_in_place` removes the copy.

    With `strided` 1, contractions get the attribute `strided`: their kernels read an A or B of which the batch has
    several strides, such as the heads of several sequences, and such an operand keeps its order.

    Operands: a handle to a module with one public function on tensors.
    Attributes: in_place, whether the pipeline of matmuls reads operands in other orders by TMA; columns, whether it
    writes rows with a pitch, and so a result whose batch is not outermost; strided, whether it reads batches of several
    strides.
    """

    target: Handle
    in_place: ir.IntegerAttr
    columns: ir.IntegerAttr
    strided: ir.IntegerAttr


@transform_op(PermuteContractions)
def permute_contractions(payload: ir.Operation, op: PermuteContractions, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        columns, in_place = bool(op.columns.value), bool(op.in_place.value)
        if not is_product(item) or is_without_units(item):
            continue
        strided = bool(op.strided.value) and not (in_place and _has_other_widths(item))
        _mark(item, strided=strided)
        if not _is_accepted(item, columns=columns):
            product = _without_lone_loops(item, rewriter)
            _mark(product, strided=strided)
            is_accepted = product != item and _is_accepted(product, columns=columns)
            if not is_accepted and not _joins_transpose(product, rewriter, columns=columns):
                _permute(product, rewriter, in_place=in_place, strided=strided)


def _has_other_widths(product: ir.Operation) -> bool:
    """Returns whether A or B has elements that `wgmma` multiplies along k alone, and may transpose or split first:
    those of 8 bits stay as they are where k is innermost.
    """
    operands, maps = list(product.operands)[:2], indexing_maps(product)
    widths = {bits_of_name(str(element_of(operand.type))) for operand in operands}
    is_along_k = all(loops_of(map_)[-1:] and loops_of(map_)[-1] in groups_of(product).k for map_ in maps[:2])
    return widths != {_KEPT_BITS} and not (widths == {_ALONG_K_BITS} and is_along_k)


def _mark(product: ir.Operation, *, strided: bool) -> None:
    """Notes at a contraction whether its kernel reads batches of several strides."""
    if strided:
        product.attributes[STRIDED] = ir.UnitAttr.get()


def _is_accepted(product: ir.Operation, *, columns: bool) -> bool:
    """Returns whether the front accepts a matmul as it is, with a pitch between the rows of C if `columns` is set."""
    try:
        smallest(product, columns=columns)
    except Refusal:
        return False
    return True


def _joins_transpose(product: ir.Operation, rewriter: Rewriter, *, columns: bool) -> bool:
    """Replaces a contraction and the transpose of its result by a contraction, where the front accepts that one alone.

    Args:
        product: a contraction.
        rewriter: of the transform op.
        columns: as for `_is_accepted`.

    Returns:
        Whether it did.
    """
    users, maps = users_of(product.results[0]), indexing_maps(product)
    axes = axes_read(users[0]) if len(users) == 1 else None
    order = loops_of(maps[2])
    start = producer(product.operands[2])
    is_zeros = start is not None and is_start(start)
    if axes is None or None in axes or len(axes) != len(order) or len(order) < len(maps[2].results) or not is_zeros:
        return False
    new_order = tuple(order[axis] for axis in axes if axis is not None)
    with ir.InsertionPoint(product), product.location:
        output = _transposed(product.operands[2], tuple(order), new_order)
        new_map = ir.AffineMap.get(maps[2].n_dims, 0, [ir.AffineExpr.get_dim(loop) for loop in new_order])
        generic, block = create_generic(list(product.operands)[:2], [output], [*maps[:2], new_map])
        body = product.regions[0].blocks[0]
        clone_ops(operations_of(body), dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block))
        _mark(generic, strided=STRIDED in product.attributes)
    if not _is_accepted(generic, columns=columns):
        rewriter.erase_op(generic)
        return False
    rewriter.replace_op(users[0], list(generic.results))
    rewriter.erase_op(product)
    return True


def _without_lone_loops(product: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    """Drops the loops of one iteration that one operand alone has, such as those of the window of a convolution of
    1 x 1, or of one that has a single place along an axis.

    Args:
        product: a contraction.
        rewriter: of the transform op.

    Returns:
        The contraction without these loops, whose operands are views; the given one where there are none.
    """
    maps, sizes = indexing_maps(product), sizes_of(product)
    orders = [loops_of(map_) for map_ in maps]
    uses = collections.Counter(loop for order in orders for loop in set(order))
    lone = {loop for loop, count in uses.items() if count == 1 and sizes[loop] == 1}
    if not lone or any(len(order) < len(map_.results) for order, map_ in zip(orders, maps)):
        return product
    new_places = {loop: place for place, loop in enumerate(loop for loop in range(maps[0].n_dims) if loop not in lone)}
    with ir.InsertionPoint(product), product.location:
        operands = [
            _without_axes(value, [loop in lone for loop in order]) for value, order in zip(product.operands, orders)
        ]
        axes = [[ir.AffineExpr.get_dim(new_places[loop]) for loop in order if loop not in lone] for order in orders]
        new_maps = [ir.AffineMap.get(len(new_places), 0, expressions) for expressions in axes]
        generic, block = create_generic(operands[:2], operands[2:], new_maps)
        body = product.regions[0].blocks[0]
        clone_ops(operations_of(body), dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block))
        shape = ir.RankedTensorType(product.results[0].type).shape
        groups = _groups_of_kept([loop in lone for loop in orders[2]])
        is_whole = len(groups) == len(shape)
        result = generic.results[0] if is_whole else reshaped(generic.results[0], shape, groups)
    rewriter.replace_op(product, [result])
    return generic


def _without_axes(value: ir.Value, is_dropped: Sequence[bool]) -> ir.Value:
    """Returns a tensor without some axes of one element, at the insertion point: a view, or the same start."""
    if not any(is_dropped):
        return value
    type_ = ir.RankedTensorType(value.type)
    shape = [extent for extent, drops_axis in zip(type_.shape, is_dropped) if not drops_axis]
    start = _start_of(value, shape)
    return reshaped(value, shape, _groups_of_kept(is_dropped)) if start is None else start


def _groups_of_kept(is_dropped: Sequence[bool]) -> list[list[int]]:
    """Returns, for each axis that is kept, those of which it becomes one: the first ones that are dropped are in the
    group of the first that stays, and others in that of the one before them."""
    groups: list[list[int]] = []
    for axis, drops_axis in enumerate(is_dropped):
        if groups and (drops_axis or all(is_dropped[:axis])):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _start_of(value: ir.Value, shape: Sequence[int]) -> ir.Value | None:
    """Returns a tensor that holds what an empty or filled one does, in another shape, at the insertion point; None for
    other tensors."""
    source = producer(value)
    if source is None or source.name not in ("tensor.empty", "linalg.fill"):
        return None
    type_ = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(value.type).element_type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    is_fill = source.name == "linalg.fill"
    return create_named_op("linalg.fill", [source.operands[0]], empty).results[0] if is_fill else empty


def _permute(product: ir.Operation, rewriter: Rewriter, *, in_place: bool, strided: bool) -> None:
    """Transposes the operands of a contraction whose order differs from the best one, and its result."""
    maps = indexing_maps(product)
    orders = [tuple(loops_of(map_)) for map_ in maps]
    if any(len(order) < len(map_.results) for order, map_ in zip(orders, maps)):
        return  # an axis of one element, which no loop runs along
    new_orders, stays = _best_orders(product, orders, in_place=in_place, strided=strided)
    if new_orders == orders:
        return
    with ir.InsertionPoint(product), product.location:
        operands = [
            _transposed(operand, order, new) for operand, order, new in zip(product.operands, orders, new_orders)
        ]
        loops = maps[0].n_dims
        new_maps = [ir.AffineMap.get(loops, 0, [ir.AffineExpr.get_dim(loop) for loop in order]) for order in new_orders]
        generic, block = create_generic(operands[:2], operands[2:], new_maps)
        _mark(generic, strided=strided)
        for operand, is_read_in_place in zip(operands, stays):
            transpose = producer(operand)
            if is_read_in_place and transpose is not None and transpose.name == "linalg.transpose":
                transpose.attributes[PREPARED] = ir.UnitAttr.get()
        body = product.regions[0].blocks[0]
        clone_ops(operations_of(body), dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block))
        result = _transposed(generic.results[0], new_orders[2], orders[2])
    rewriter.replace_op(product, [result])


def _is_addressable(operand: ir.Value, sizes: dict[int, int], groups: Groups, order: _Order, new_order: _Order) -> bool:
    """Returns whether TMA can load boxes of an operand in another order of its axes from where it is.

    Axes of one group of loops are one dimension of the matrix. An extent of a box divides the inner ones, or is a
    multiple of them; its rows are of the innermost axis.

    Args:
        operand: A or B.
        sizes: of the loops.
        groups: of the loops.
        order: the loops that run along its axes.
        new_order: these in the order of a matrix.
    """
    type_ = ir.RankedTensorType(operand.type)
    if len(order) > _MAX_AXES or order[-1] != new_order[-1] or type_.element_type.width != _KEPT_BITS:
        return False
    if type_.shape[-1] * _KEPT_BITS % _PITCH_BITS:
        return False
    is_divided = any({*new_order[-2:]} <= loops for loops in groups)
    if is_divided and type_.shape[-1] % _ROW:
        return False
    inner = [
        after for before, after in zip(new_order, new_order[1:]) if any({before, after} <= loops for loops in groups)
    ]
    return all(sizes[loop] % _BOX == 0 or _BOX % sizes[loop] == 0 for loop in inner)


def _is_strided(operand: ir.Value, order: _Order, batch: _Order, inner: tuple[_Order, _Order]) -> bool:
    """Returns whether a kernel reads an operand whose batch is between its rows, or in another order, by strides.

    Args:
        operand: A or B.
        order: the loops that run along its axes.
        batch: the loops of the batch.
        inner: those of m or n, and of k.
    """
    type_ = ir.RankedTensorType(operand.type)
    width = bits_of_name(str(type_.element_type))
    if not batch or type_.shape[-1] * width % _PITCH_BITS:
        return False
    is_together = all(_contains(order, loops) for loops in inner)
    innermost = inner if width == _KEPT_BITS else inner[1:]  # k
    return is_together and any(order[-len(loops) :] == loops for loops in innermost)


def _contains(order: _Order, loops: _Order) -> bool:
    """Returns whether loops follow each other in an order."""
    return any(order[place : place + len(loops)] == loops for place in range(len(order)))


def _best_orders(
    product: ir.Operation, current_orders: Sequence[_Order], *, in_place: bool, strided: bool
) -> tuple[list[_Order], tuple[bool, bool]]:
    """Returns the orders of loops of A, B and C in which the fewest elements are copied, and whether A and B are in
    another order that TMA reads in place.

    Args:
        product: the contraction.
        current_orders: the loops that run along the axes of A, B and C.
        in_place: whether the pipeline of matmuls reads operands in other orders by TMA.
        strided: whether it reads batches of several strides.
    """
    a, b, c = current_orders
    groups, sizes = groups_of(product), sizes_of(product)
    keeps = [ir.RankedTensorType(operand.type).element_type.width == _KEPT_BITS for operand in product.operands]
    elements = [math.prod(sizes[loop] for loop in order) for order in current_orders]

    def in_order(loops: frozenset[int], *operands: _Order) -> set[_Order]:
        return {tuple(loop for loop in operand if loop in loops) for operand in operands}

    best: tuple[tuple[int, int, int], list[_Order], tuple[bool, bool]] | None = None
    choices = itertools.product(
        sorted(in_order(groups.batch, a, b, c)),
        sorted(in_order(groups.m, a, c)),
        sorted(in_order(groups.n, b, c)),
        sorted(in_order(groups.k, a, b)),
    )
    for batch, m, n, k in choices:
        orders = [
            _nearest(a, (*batch, *m, *k), (*batch, *k, *m), keeps[0]),
            _nearest(b, (*batch, *n, *k), (*batch, *k, *n), keeps[1]),
            _nearest(c, (*batch, *m, *n), (*batch, *n, *m), True),
        ]
        for place, (operand, inner) in enumerate(zip(product.operands, ((m, k), (n, k)))):
            if strided and _is_strided(operand, current_orders[place], batch, inner):
                orders[place] = current_orders[place]
        is_other = [order != new for order, new in zip(current_orders, orders)]
        stays_a, stays_b = (
            in_place
            and is_other[place]
            and _is_addressable(operand, sizes, groups, current_orders[place], orders[place])
            for place, operand in enumerate(list(product.operands)[:2])
        )
        cost = (
            sum(count for count, other, stays in zip(elements, is_other, (stays_a, stays_b, False)) if other > stays),
            sum(count for count, order, new in zip(elements, current_orders, orders) if order[-1:] != new[-1:]),
            sum(is_other),
        )
        if best is None or cost < best[0]:
            best = cost, orders, (stays_a, stays_b)
    assert best is not None  # the product of sets that are not empty
    return best[1:]


def _nearest(order: _Order, first: _Order, second: _Order, keeps_innermost: bool) -> _Order:
    """Returns the order of an operand, if it is one of two; else the first of them, or the second where only that keeps
    the innermost dimension."""
    if order == first:
        return first
    return second if order == second or (keeps_innermost and order[-1:] == second[-1:] != first[-1:]) else first


def _transposed(value: ir.Value, order: _Order, new_order: _Order) -> ir.Value:
    """Returns a tensor with its axes in another order, at the insertion point."""
    if order == new_order:
        return value
    type_ = ir.RankedTensorType(value.type)
    permutation = [order.index(loop) for loop in new_order]
    type_ = ir.RankedTensorType.get([type_.shape[axis] for axis in permutation], type_.element_type)
    number = splat_of(value)
    if number is not None:
        return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))
    start = _start_of(value, type_.shape)
    if start is not None:
        return start
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    return create_named_op(
        "linalg.transpose", [value], empty, {"permutation": ir.DenseI64ArrayAttr.get(permutation)}
    ).results[0]
