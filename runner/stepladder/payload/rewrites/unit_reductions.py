"""Reductions along axes of one element become elementwise ops, or views.

JAX writes them for gradients of what broadcasts along such an axis. Reductions would be kernels of their own between
elementwise ops.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_generic, indexing_maps, loops_of
from stepladder.mlir.reshapes import TENSOR_VIEWS, reshaped
from stepladder.mlir.traverse import origin, producer, walk

_REDUCTIONS = ("linalg.generic", "linalg.reduce")
_PRODUCTS = ("linalg.matmul", "linalg.batch_matmul", "linalg.contract")


def fold(function: ir.Operation) -> None:
    """Replaces reductions of one static tensor whose loops along reduced axes have one iteration.

    Sums that start from 0 become views where the sign of a zero stays: where the tensor is itself a sum from 0. What
    elementwise ops compute of a product stays: its reductions are part of the epilogue.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, *_REDUCTIONS):
        axes = _reduced_axes(op)
        if axes and not _follows_product(op.operands[0]):
            with ir.InsertionPoint(op), op.location:
                value = _folded(op, axes)
            op.results[0].replace_all_uses_with(value)
            op.erase()


def _reduced_axes(op: ir.Operation) -> list[int]:
    """Returns the axes of the one input that are reduced, if all have one element; else none."""
    if len(op.operands) != 2 or len(op.results) != 1 or walk(op, "linalg.index"):
        return []
    type_ = op.operands[0].type
    read, written = indexing_maps(op)
    is_plain = read.is_permutation and written.is_projected_permutation
    if not is_plain or not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return []
    kept = loops_of(written)
    axes = [axis for axis, loop in enumerate(loops_of(read)) if loop not in kept]
    return axes if all(type_.shape[axis] == 1 for axis in axes) else []


def _follows_product(value: ir.Value) -> bool:
    """Returns whether elementwise ops alone compute a tensor of what a contraction makes."""
    left, seen = [value], set()
    while left:
        op = producer(origin(left.pop(), TENSOR_VIEWS))
        if op is None or op in seen or not op.name.startswith("linalg.") or not op.results or not len(op.regions):
            continue  # a softmax, for example, has no loops
        seen.add(op)
        inputs = list(op.operands)[: -len(op.results)]
        written = indexing_maps(op)[-1]
        if len(loops_of(written)) == written.n_dims:
            left += inputs
        elif len(inputs) > 1:
            return True
    return False


def _folded(op: ir.Operation, axes: list[int]) -> ir.Value:
    """Returns what one iteration of the reduced loops gives."""
    value, start = op.operands
    type_ = ir.RankedTensorType(value.type)
    read, written = indexing_maps(op)
    kept = [axis for axis in range(type_.rank) if axis not in axes]
    bounds = [0, *(axis + 1 for axis in kept[:-1]), type_.rank]
    groups = [range(first, last) for first, last in zip(bounds, bounds[1:])] if kept else []
    view = reshaped(value, [type_.shape[axis] for axis in kept], groups)
    loops = [loops_of(read)[axis] for axis in kept]  # of the axes of the view
    results = loops_of(written)
    body = op.regions[0].blocks[0]
    if loops == results and _is_same(op, value):
        return view
    identity = ir.AffineMap.get_identity(len(results))
    order = [ir.AffineExpr.get_dim(results.index(loop)) for loop in loops]
    maps = [ir.AffineMap.get(len(results), 0, order), identity]
    empty = ir.Operation.create("tensor.empty", results=[start.type]).results[0]
    fill = producer(start)
    number = fill.operands[0] if fill is not None and fill.name == "linalg.fill" else None
    inputs = [view] if number is not None else [view, start]
    generic, block = create_generic(inputs, [empty], [*maps[: len(inputs)], identity])
    *ops, end = (item.operation for item in body.operations)
    element, so_far = body.arguments
    values: dict[ir.Value, ir.Value] = {
        element: block.arguments[0],
        so_far: block.arguments[1] if number is None else number,
    }
    with ir.InsertionPoint(block):
        known = clone_ops(ops, values, ir.InsertionPoint(block))
        ir.Operation.create("linalg.yield", operands=[known.get(item, item) for item in end.operands])
    return generic.results[0]


def _is_same(op: ir.Operation, value: ir.Value) -> bool:
    """Returns whether an op adds a value to 0, and no zero of the value is negative if it is of floating point."""
    number, body = repeated_number(op.operands[1]), op.regions[0].blocks[0]
    first = body.operations[0].operation
    if number is None or len(body.operations) != 2 or number.value != 0 or set(first.operands) != set(body.arguments):
        return False
    if first.name == "arith.addi":
        return True
    return first.name == "arith.addf" and (str(number).startswith("-") or _is_a_sum(value))


def _is_a_sum(value: ir.Value) -> bool:
    """Returns whether a linalg op has added terms to a positive 0: no such sum is a negative zero."""
    op = producer(origin(value, TENSOR_VIEWS))
    if op is None or op.name not in (*_PRODUCTS, *_REDUCTIONS):
        return False
    number = repeated_number(op.operands[len(op.operands) - 1])
    if number is None or number.value != 0 or str(number).startswith("-"):
        return False
    if op.name in _PRODUCTS:
        return True
    body = op.regions[0].blocks[0]
    *_, last, end = (item.operation for item in body.operations)
    is_reduced = len(loops_of(indexing_maps(op)[-1])) < indexing_maps(op)[-1].n_dims
    adds = last.name == "arith.addf" and body.arguments[len(body.arguments) - 1] in list(last.operands)
    return len(op.results) == 1 and is_reduced and adds and end.operands[0] == last.results[0]
