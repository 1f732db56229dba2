"""`tc.absorb_transposes`: contractions of transposed tensors read the tensors in the order that they have."""

import contextlib

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.products import is_product, is_without_units, smallest
from stepladder.extension.lib.multi_kernel.stages import one_function
from stepladder.extension.lib.multi_kernel.transposed_operands import absorbed
from stepladder.mlir.bindings import ir


class AbsorbTransposes(Tc.Operation, name="absorb_transposes"):
    """Makes contractions of transposed tensors, maybe with axes collapsed, contractions of the tensors.

    The loops of a dimension that consists of several axes of the tensor become a loop for each axis. Operands without
    these axes, and the result, are expanded. A transpose that the kernel of the matmul reads as a layout stays.

    A tensor may be repeated along a part of the batch as well, such as keys and values for several heads of queries:
    the loop of the copies is one that the tensor has no axis for, and so one of m or n.

    Operands: a handle to a module with one public function on tensors.
    """

    target: Handle


@transform_op(AbsorbTransposes)
def absorb_transposes(payload: ir.Operation, op: AbsorbTransposes, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        kernel_ops = _layouts(item) if is_product(item) and not is_without_units(item) else None
        if kernel_ops is not None and (result := absorbed(item, kernel_ops)) is not None:
            rewriter.replace_op(item, [result])


def _layouts(product: ir.Operation) -> list[ir.Operation] | None:
    """Returns the ops that the kernel of a matmul takes as layouts of whole buffers, where it takes these alone; None
    where no kernel computes it."""
    for columns in (False, True):
        with contextlib.suppress(Refusal):
            return smallest(product, columns=columns)[0]
    return None
