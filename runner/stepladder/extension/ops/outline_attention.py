"""`tc.outline_attention`: gives each attention of a function a function of its own, where one kernel computes it."""

import contextlib

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.argument_parts import part_of
from stepladder.extension.lib.multi_kernel.attention import (
    VECTOR_PRODUCTS,
    Attention,
    find,
    find_last,
    last_products,
    tile_of,
)
from stepladder.extension.lib.multi_kernel.attention_form import normalize, ops_around, reads_copies
from stepladder.extension.lib.multi_kernel.products import is_without_units
from stepladder.extension.lib.multi_kernel.stages import is_start, one_function, outline, write_stage
from stepladder.extension.lib.multi_kernel.strided_views import strided_view
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import defining_op, users_of


class OutlineAttention(Tc.Operation, name="outline_attention"):
    """Moves the two products of an attention, and the softmax and elementwise ops between them, to a private function.

    An attention as front ends write it gets the form of others before: products in f32 of the tensors as they are, and
    fused elementwise ops. A function whose products are those of vectors, of one query, gets the attribute
    `vector_products`.

    Attributes: `columns`: keys of a tile of the kernel, at most.

    Operands: a handle to a module with one public function. Other products are left as they are, and so is an attention
    whose keys are a single tile: its kernel has no next tiles to copy while it multiplies these.
    """

    target: Handle
    columns: ir.IntegerAttr


@transform_op(OutlineAttention)
def outline_attention(payload: ir.Operation, op: OutlineAttention, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for product in list(last_products(one_function(payload).regions[0].blocks[0])):
        has_vector_products = is_without_units(product)
        attention = _attention(product, op, rewriter)
        if attention is not None:
            ops = [*_slices(attention), *attention.ops]
            function = outline(ops, [attention.result.value], "attention", rewriter)
            if has_vector_products:
                function.attributes[VECTOR_PRODUCTS] = ir.UnitAttr.get()


def _attention(product: ir.Operation, op: OutlineAttention, rewriter: Rewriter) -> Attention | None:
    """Returns the attention whose last product an op is, rewritten to the form that the kernel takes; None for products
    that one kernel does not compute."""
    attention = None
    with contextlib.suppress(Refusal):
        attention = find(product)
    if attention is None or reads_copies(attention):
        ops = ops_around(product)
        attention = (_in_form(ops, op, rewriter) if ops else None) or attention
    return attention if attention is not None and _has_tiles(attention, op) else None


def _in_form(ops: list[ir.Operation], op: OutlineAttention, rewriter: Rewriter) -> Attention | None:
    """Returns the attention that some ops are, in place of them, in the form that the kernel takes; None for others."""
    module = ir.Module.create()
    function, inputs = write_stage(module.body, "attention", ops, [ops[-1].results[0]])
    body = function.regions[0].blocks[0]
    try:
        normalize(function)
        attention = find_last(body)
    except (Refusal, ir.MLIRError):
        return None
    *inside, end = operations_of(body)
    if not _has_tiles(attention, op) or any(_computes(item) and item not in attention.ops for item in inside):
        return None
    values = clone_ops(inside, dict(zip(body.arguments, inputs)), ir.InsertionPoint(ops[-1]))
    ops[-1].results[0].replace_all_uses_with(values[end.operands[0]])
    for item in reversed(ops):
        if not any(users_of(result) for result in item.results):
            rewriter.erase_op(item)
    return find(defining_op(values[list(last_products(body))[-1].results[0]]))


def _slices(attention: Attention) -> list[ir.Operation]:
    """Returns the slices that the kernel reads in place, and the views of them; it is launched on contiguous parts of
    arguments."""
    values = [operand.value for operand in (attention.queries, attention.keys, attention.values)]
    views = [strided_view(value) for value in values if not part_of(value, is_multiplied=True)]
    return list(dict.fromkeys(op for view in views if view is not None for op in view.ops))


def _has_tiles(attention: Attention, op: OutlineAttention) -> bool:
    """Returns whether there are queries, and several tiles of keys."""
    queries, keys = attention.shape[-2:]
    return queries > 0 and keys > tile_of(attention, op.columns.value)


def _computes(op: ir.Operation) -> bool:
    return op.name.startswith("linalg.") and not is_start(op)
