"""`tc.outline_attention`: gives each attention of a function a function of its own, where one kernel computes it."""

import contextlib

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.attention import find, last_products
from stepladder.extension.lib.multi_kernel.stages import one_function, outline
from stepladder.mlir.bindings import ir


class OutlineAttention(Tc.Operation, name="outline_attention"):
    """Moves the two products of an attention, and the softmax and elementwise ops between them, to a private function.

    Attributes: `rows`, `columns`: queries of a block of the kernel, and keys of its tiles.

    Operands: a handle to a module with one public function. Other products are left as they are, and so is an attention
    whose queries or keys are no multiples of `rows` and `columns`, or whose keys are a single tile: its kernel has no
    next tiles to copy while it multiplies these.
    """

    target: Handle
    rows: ir.IntegerAttr
    columns: ir.IntegerAttr


@transform_op(OutlineAttention)
def outline_attention(payload: ir.Operation, op: OutlineAttention, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for product in list(last_products(one_function(payload).regions[0].blocks[0])):
        with contextlib.suppress(Refusal):
            attention = find(product)
            queries, keys = attention.shape[-2:]
            has_tiles = keys % op.columns.value == 0 and keys > op.columns.value
            if queries % op.rows.value == 0 and has_tiles:
                outline(attention.ops, [attention.result.value], "attention", rewriter)
