"""`tc.distribute_attention`: maps an attention to blocks and warpgroups, with scores in registers."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.attention import find_last, tile_of
from stepladder.extension.lib.multi_kernel.attention_kernel import AttentionKernel
from stepladder.extension.lib.multi_kernel.stages import STARTS, one_function
from stepladder.extension.lib.multi_kernel.strided_views import strided_view
from stepladder.mlir.bindings import bufferization, ir, memref
from stepladder.mlir.traverse import producer


class DistributeAttention(Tc.Operation, name="distribute_attention"):
    """Rewrites an attention on tensors to loops over blocks and threads (`scf.forall`) on buffers.

    A block has 64 rows for each of its `warpgroups`: queries of a head, or of all heads that share keys and values, if
    a block has so many rows. Their scores with a tile of `columns` keys are an accumulator of `wgmma`. Each thread
    computes the softmax of what it holds of them, and multiplies the exponentials by a tile of values, as the operand
    in registers. Results so far are multiplied by what the maxima of rows have grown by.

    With `splits`, as many adjacent blocks have a part of the tiles each, and combine their results at the end: they
    have to be a cluster.

    Attributes: `columns`, of which a tile has half where there are no more keys; `warpgroups`; `splits`; `fast`, 1
    where exponentials are approximated, and tiles of keys left out that a causal mask hides from all queries of a
    block.

    Tiles may extend beyond the queries and keys: what is copied there is zero, logits are minus infinity, and results
    are not stored.

    Operands: a handle to a module with one function that returns an attention.
    Refuses: other functions; more splits than there are tiles of keys.
    """

    target: Handle
    columns: ir.IntegerAttr
    warpgroups: ir.IntegerAttr
    splits: ir.IntegerAttr
    fast: ir.IntegerAttr


@transform_op(DistributeAttention)
def distribute_attention(payload: ir.Operation, op: DistributeAttention, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    body = one_function(payload).regions[0].blocks[0]
    attention = find_last(body)
    last = attention.ops[-1]
    keys = tile_of(attention, op.columns.value)
    tiles = -(-attention.shape[-1] // keys)
    if op.splits.value > tiles:
        raise Refusal(last, f"{op.splits.value} splits of {tiles} tiles of keys; accepted: at most one for each tile")
    inside = {result for item in attention.ops for result in item.results}
    with ir.InsertionPoint(last), last.location:
        tensors = dict.fromkeys(
            operand
            for item in attention.ops
            for operand in item.operands
            if operand not in inside and isinstance(operand.type, ir.RankedTensorType) and _is_read(operand)
        )
        buffers = {value: _buffer_of(value) for value in tensors}
        type_ = ir.RankedTensorType(attention.result.value.type)
        result = memref.alloc(ir.MemRefType.get(type_.shape, type_.element_type), [], [])
        AttentionKernel(
            attention,
            buffers,
            result,
            keys=keys,
            warpgroups=op.warpgroups.value,
            splits=op.splits.value,
            fast=bool(op.fast.value),
        ).write()
        tensor = bufferization.to_tensor(type_, result, restrict=True)
    rewriter.replace_op(last, [tensor])
    for item in reversed(attention.ops[:-1]):
        rewriter.erase_op(item)


def _is_read(value: ir.Value) -> bool:
    """Returns whether a tensor holds something, unlike what an op begins from."""
    source = producer(value)
    return source is None or source.name not in STARTS


def _buffer_of(value: ir.Value) -> ir.Value:
    """Returns the buffer of a tensor, or of the slice of one."""
    view = strided_view(value)
    if view is not None:
        return view.of_buffer(_buffer_of(view.root))
    type_ = ir.RankedTensorType(value.type)
    return bufferization.to_buffer(ir.MemRefType.get(type_.shape, type_.element_type), value, read_only=True)
