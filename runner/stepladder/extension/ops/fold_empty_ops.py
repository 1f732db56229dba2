"""`tc.fold_empty_ops`: replaces sums of no terms by what they start from, and drops results without elements."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import walk

_INSERTION = "tensor.insert_slice"


class FoldEmptyOps(Tc.Operation, name="fold_empty_ops"):
    """Leaves out ops that compute nothing: a loop of theirs has no iterations, because an extent is 0.

    A matmul with k = 0, and any reduction of no elements, is the tensor that it starts from. A tensor without elements
    is a `tensor.empty`, whatever computes it, and its insertion into another tensor is that tensor.

    Operands: a handle to functions on tensors. Ops on tensors of dynamic sizes stay.
    """

    target: Handle


@transform_op(FoldEmptyOps)
def fold_empty_ops(payload: ir.Operation, op: FoldEmptyOps, rewriter: Rewriter) -> None:
    """Rewrites the ops below `payload`; see the op."""
    erased = []  # at the end: `walk` has also the ops in them
    for item in walk(payload):
        if item.name == _INSERTION and _is_empty(item.operands[0].type):
            item.results[0].replace_all_uses_with(item.operands[1])
            erased.append(item)
        elif item.name.startswith("linalg.") and item.results and _has_no_iterations(item):
            starts = list(item.operands)[-len(item.results) :]
            for result, start in zip(item.results, starts):
                result.replace_all_uses_with(start)
            erased.append(item)
        elif item.name != "tensor.empty":
            _replace_empty_results(item)
    for item in reversed(erased):
        rewriter.erase_op(item)


def _replace_empty_results(op: ir.Operation) -> None:
    """Has what reads results of an op that have no elements read empty tensors."""
    for result in op.results:
        if _is_empty(result.type) and list(result.uses):
            with ir.InsertionPoint(op), op.location:
                empty = ir.Operation.create("tensor.empty", results=[result.type]).results[0]
            result.replace_all_uses_with(empty)


def _is_empty(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and 0 in type_.shape


def _has_no_iterations(op: ir.Operation) -> bool:
    """Returns whether a linalg op has a loop along an axis of extent 0, of any of its operands."""
    if not any(_is_empty(value.type) for value in op.operands):
        return False
    values = [value for value in op.operands if isinstance(value.type, ir.RankedTensorType)]
    maps = [map_ for map_, value in zip(indexing_maps(op), op.operands) if value in values]
    return any(
        size == 0 and isinstance(loop, ir.AffineDimExpr)
        for map_, value in zip(maps, values)
        for loop, size in zip(map_.results, ir.RankedTensorType(value.type).shape)
    )
