"""`tc.transpose_slices`: transposes slices of a tensor, rather than the tensor that they are of."""

import math

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.slices import kept_axes, numbers_of, static_numbers
from stepladder.mlir.traverse import users_of

_SLICE = "tensor.extract_slice"


class TransposeSlices(Tc.Operation, name="transpose_slices"):
    """Replaces slices of a transposed tensor by transposed slices of the tensor.

    A projection that computes queries, keys and values at once is transposed as a whole by some front ends, and then
    divided. A matmul reads a transposed part of a buffer in place, but no part of a transpose.

    Operands: a handle to a module with one public function. A transpose stays that has other users than slices of
        static sizes, or whose slices have more elements than it has.
    """

    target: Handle


@transform_op(TransposeSlices)
def transpose_slices(payload: ir.Operation, op: TransposeSlices, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for transpose in reversed(operations_of(one_function(payload).regions[0].blocks[0])):
        if transpose.name != "linalg.transpose":
            continue
        slices = users_of(transpose.results[0])
        if not slices or not all(item.name == _SLICE and _is_static(item) for item in slices):
            continue
        shape = ir.RankedTensorType(transpose.results[0].type).shape
        if sum(math.prod(numbers_of(item)[1]) for item in slices) > math.prod(shape):
            continue
        for item in slices:
            with ir.InsertionPoint(item), item.location:
                rewriter.replace_op(item, [_transposed_slice(item, transpose)])
        rewriter.erase_op(transpose)


def _is_static(slice_: ir.Operation) -> bool:
    return all(ir.ShapedType.get_dynamic_size() not in numbers for numbers in numbers_of(slice_))


def _transposed_slice(slice_: ir.Operation, transpose: ir.Operation) -> ir.Value:
    """Returns a slice of what a transpose reads, transposed to the slice of its result, at the insertion point."""
    type_ = ir.RankedTensorType(slice_.results[0].type)
    permutation = list(ir.DenseI64ArrayAttr(transpose.attributes["permutation"]))
    numbers = [[0] * len(permutation) for _ in range(3)]
    for axis, values in zip(permutation, zip(*numbers_of(slice_))):
        for own, value in zip(numbers, values):
            own[axis] = value
    kept = [permutation[axis] for axis in kept_axes(numbers_of(slice_)[1], type_.shape)]
    order = sorted(kept)
    shape = [numbers[1][axis] for axis in order]
    part = ir.Operation.create(
        _SLICE,
        results=[ir.RankedTensorType.get(shape, type_.element_type)],
        operands=[transpose.operands[0]],
        attributes=static_numbers(*numbers),
    )
    if kept == order:
        return part.results[0]
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    new_permutation = ir.DenseI64ArrayAttr.get([order.index(axis) for axis in kept])
    return create_named_op("linalg.transpose", part.results, empty, {"permutation": new_permutation}).results[0]
