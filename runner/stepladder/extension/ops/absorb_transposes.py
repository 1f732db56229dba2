"""`tc.absorb_transposes`: contractions of transposed tensors read the tensors in the order that they have."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.products import is_batch_of_vectors, is_product, smallest
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps, loops_of
from stepladder.mlir.reshapes import groups_of, reshaped
from stepladder.mlir.traverse import producer


class AbsorbTransposes(Tc.Operation, name="absorb_transposes"):
    """Makes contractions of transposed tensors, maybe with axes collapsed, contractions of the tensors.

    The loops of a dimension that consists of several axes of the tensor become a loop for each axis. Operands without
    these axes, and the result, are expanded. A transpose that the kernel of the matmul reads as a layout stays.

    Operands: a handle to a module with one public function on tensors.
    """

    target: Handle


@dataclass(frozen=True)
class _Transposed:
    """An operand that is a transposed tensor.

    Attributes:
        source: the tensor.
        axes: of the source, for each axis of the result of the transpose.
        groups: the extents of these that each dimension of the operand consists of.
    """

    source: ir.Value
    axes: list[int]
    groups: list[list[int]]


@transform_op(AbsorbTransposes)
def absorb_transposes(payload: ir.Operation, op: AbsorbTransposes, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        if is_product(item) and not is_batch_of_vectors(item):
            _absorb(item, rewriter)


def _absorb(product: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces a contraction by one of what its operands are transposed from."""
    maps = indexing_maps(product)
    loops = [loops_of(map_) for map_ in maps]
    if any(len(order) < len(map_.results) for order, map_ in zip(loops, maps)):
        return  # an axis of one element, which no loop runs along
    try:
        kernel_ops, _ = smallest(product)
    except Refusal:
        return
    sources = [_transposed(value, kernel_ops) for value in list(product.operands)[:2]]
    extents: dict[int, list[int]] = {}
    for number, (item, order) in enumerate(zip(sources, loops)):
        if item is None:
            continue
        own = dict(zip(order, item.groups))
        if any(extents.get(loop, sizes) != sizes for loop, sizes in own.items()):
            sources[number] = None  # another division than that of the other operand
        else:
            extents |= own
    if sources == [None, None]:
        return
    places, count = {}, 0
    for loop in range(maps[0].n_dims):
        width = len(extents.get(loop, [0]))
        places[loop] = list(range(count, count + width))
        count += width
    with ir.InsertionPoint(product), product.location:
        values, orders = [], []
        for value, order, item in zip(product.operands, loops, [*sources, None]):
            inner = [place for loop in order for place in places[loop]]
            if item is None:
                values.append(_expanded(value, [extents.get(loop) for loop in order]))
                orders.append(inner)
            else:
                values.append(item.source)
                orders.append([inner[item.axes.index(axis)] for axis in range(len(inner))])
        new_maps = [ir.AffineMap.get(count, 0, [ir.AffineExpr.get_dim(place) for place in order]) for order in orders]
        generic, block = create_generic(values[:2], values[2:], new_maps)
        body = product.regions[0].blocks[0]
        clone_ops(operations_of(body), dict(zip(body.arguments, block.arguments)), ir.InsertionPoint(block))
        shape = ir.RankedTensorType(product.results[0].type).shape
        result = _merged(generic.results[0], shape, [places[loop] for loop in loops[2]])
    rewriter.replace_op(product, [result])


def _transposed(value: ir.Value, kernel_ops: Sequence[ir.Operation]) -> _Transposed | None:
    """Returns what an operand is transposed from; None where it is not, or where the kernel reads it as a layout."""
    op = producer(value)
    groups = [[axis] for axis in range(ir.RankedTensorType(value.type).rank)]
    if op is not None and op.name == "tensor.collapse_shape":
        groups = groups_of(op)
        op = producer(op.operands[0])
    if op is None or op.name != "linalg.transpose" or op in kernel_ops:
        return None
    shape = ir.RankedTensorType(op.results[0].type).shape
    axes = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    return _Transposed(op.operands[0], axes, [[shape[axis] for axis in group] for group in groups])


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
