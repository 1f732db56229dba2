"""`tc.outline_attention`: gives each attention of a function a function of its own, where one kernel computes it."""

import contextlib

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.attention import Attention, find, find_last, last_products
from stepladder.extension.lib.multi_kernel.attention_form import normalize, ops_around
from stepladder.extension.lib.multi_kernel.stages import is_start, one_function, outline, write_stage
from stepladder.mlir.bindings import ir


class OutlineAttention(Tc.Operation, name="outline_attention"):
    """Moves the two products of an attention, and the softmax and elementwise ops between them, to a private function.

    An attention as JAX writes it is moved too, and gets the form of others there: products in f32, fused elementwise
    ops.

    Attributes: `columns`: keys of a tile of the kernel.

    Operands: a handle to a module with one public function. Other products are left as they are, and so is an attention
    whose keys are a single tile: its kernel has no next tiles to copy while it multiplies these.
    """

    target: Handle
    columns: ir.IntegerAttr


@transform_op(OutlineAttention)
def outline_attention(payload: ir.Operation, op: OutlineAttention, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for product in list(last_products(one_function(payload).regions[0].blocks[0])):
        with contextlib.suppress(Refusal):
            attention = find(product)
            if _has_tiles(attention, op):
                outline(attention.ops, [attention.result.value], "attention", rewriter)
            continue
        ops = ops_around(product)
        if ops and _is_attention(ops, op):
            normalize(outline(ops, [ops[-1].results[0]], "attention", rewriter))


def _has_tiles(attention: Attention, op: OutlineAttention) -> bool:
    """Returns whether there are queries, and several tiles of keys."""
    queries, keys = attention.shape[-2:]
    return queries > 0 and keys > op.columns.value


def _is_attention(ops: list[ir.Operation], op: OutlineAttention) -> bool:
    """Returns whether some ops are an attention in another form, and nothing else."""
    module = ir.Module.create()
    function, _ = write_stage(module.body, "attention", ops, [ops[-1].results[0]])
    body = function.regions[0].blocks[0]
    try:
        normalize(function)
        attention = find_last(body)
    except (Refusal, ir.MLIRError):
        return False
    computing_ops = {item for item in operations_of(body) if item.name.startswith("linalg.") and not is_start(item)}
    return _has_tiles(attention, op) and computing_ops <= set(attention.ops)
