"""Ops that only add axes of one element, such as those of `stablehlo.broadcast_in_dim`, become views.

JAX writes them for what it inserts into a stack or joins with other tensors; as ops, they would be kernels that copy.
Those that other linalg ops read stay until ops are fused: most are fused with these.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import users_of, walk

_PLACING = ("func.return", "tensor.concat", "tensor.insert_slice")


def expand(function: ir.Operation) -> None:
    """Replaces `linalg.broadcast` and copying `linalg.generic` ops on static tensors by `tensor.expand_shape`, where
    their result is returned, or a part of another tensor.

    Args:
        function: a function; it is changed where there are such ops.
    """
    _expand(function, _PLACING)


def expand_unfused(function: ir.Operation) -> None:
    """Replaces such ops that linalg ops and calls read, and that fusion has left.

    Args:
        function: a function with calls of matmuls; it is changed where there are such ops.
    """
    _expand(function, None)


def _expand(function: ir.Operation, readers: tuple[str, ...] | None) -> None:
    """Replaces ops of which all readers are ops of these names; all ops if there are no names."""
    for op in walk(function, "linalg.broadcast", "linalg.generic"):
        kept = _kept_axes(op)
        if kept is None or (readers and any(user.name not in readers for user in users_of(op.results[0]))):
            continue
        shape = list(ir.RankedTensorType(op.results[0].type).shape)
        bounds = [0, *kept[1:], len(shape)]
        groups = [range(first, last) for first, last in zip(bounds, bounds[1:])] if kept else []
        with ir.InsertionPoint(op), op.location:
            value = reshaped(op.operands[0], shape, groups)
        op.results[0].replace_all_uses_with(value)
        op.erase()


def _kept_axes(op: ir.Operation) -> list[int] | None:
    """Returns the axes of the result that those of the one input are, in order, where all others, of which there is at
    least one, have one element; None for another op."""
    if len(op.results) != 1 or len(op.operands) != 2:
        return None
    read, made = (value.type for value in (op.operands[0], op.results[0]))
    if not all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in (read, made)):
        return None
    body = op.regions[0].blocks[0]
    if len(body.operations) != 1 or body.operations[0].operands[0] != body.arguments[0]:
        return None
    source, result = indexing_maps(op)
    if result != ir.AffineMap.get_identity(result.n_dims) or not all(
        isinstance(item, ir.AffineDimExpr) for item in source.results
    ):
        return None
    kept = [ir.AffineDimExpr(item).position for item in source.results]
    shape = ir.RankedTensorType(made).shape
    added = [extent for axis, extent in enumerate(shape) if axis not in kept]
    is_in_order = kept == sorted(set(kept))
    return kept if is_in_order and added and all(extent == 1 for extent in added) else None
