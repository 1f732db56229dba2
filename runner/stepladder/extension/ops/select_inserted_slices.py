"""`tc.select_inserted_slices`: rewrites insertions of slices as linalg ops that select elements."""

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.inserted_slices import INSERTION, extracted
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import producer


class SelectInsertedSlices(Tc.Operation, name="select_inserted_slices"):
    """Rewrites each `tensor.insert_slice` of a function as a `linalg.generic` that computes the whole result.

    An element of the result is one of the slice (`tensor.extract`) where its indices are in it, and one of the tensor
    that the slice is inserted into elsewhere. As a linalg op an insertion fuses with elementwise ops and with other
    insertions, those of a concatenation for example.

    Operands: a handle to a module with one public function. A slice with offsets, sizes or strides that are not
    constants stays.
    """

    target: Handle


@transform_op(SelectInsertedSlices)
def select_inserted_slices(payload: ir.Operation, op: SelectInsertedSlices, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        if item.name == INSERTION and len(item.operands) == 2:
            with ir.InsertionPoint(item), item.location:
                rewriter.replace_op(item, _selected(item).results)


def _selected(insertion: ir.Operation) -> ir.Operation:
    """Creates the op that computes the result of an insertion, at the insertion point."""
    target = insertion.operands[1]
    type_ = ir.RankedTensorType(target.type)
    start = producer(target)
    # Nothing may depend on the elements of an empty tensor: zeros do as well.
    inputs = [] if start is not None and start.name == "tensor.empty" else [target]
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic(inputs, [empty], [ir.AffineMap.get_identity(type_.rank)] * (len(inputs) + 1))
    with ir.InsertionPoint(body):
        otherwise = body.arguments[0] if inputs else constant(type_.element_type, 0)
        inside, element = extracted(insertion)
        ir.Operation.create("linalg.yield", operands=[arith.select(inside, element, otherwise)])
    return generic
