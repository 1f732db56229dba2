"""`tc.round_weights`: rounds the weights of attentions to the type of the values."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.attention import Attention, find_last
from stepladder.extension.lib.multi_kernel.products import is_contraction
from stepladder.extension.lib.multi_kernel.stages import is_private
from stepladder.mlir.bindings import arith, ir, linalg
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import defining_op, walk
from stepladder.mlir.types import element_of


class RoundWeights(Tc.Operation, name="round_weights"):
    """Rounds weights of f32 to the type of the values that they multiply; sums stay f32.

    Operands: a handle to a module with outlined attentions, each a private function. Attentions that round weights
    stay as they are.
    """

    target: Handle


@transform_op(RoundWeights)
def round_weights(payload: ir.Operation, op: RoundWeights, rewriter: Rewriter) -> None:
    """Rewrites the functions below `payload`; see the op."""
    for function in walk(payload, "func.func"):
        if is_private(function):
            attention = find_last(function.regions[0].blocks[0])
            if attention.terms > 1:
                _round(attention)


def _round(attention: Attention) -> None:
    """Rounds the weights of an attention before the product with the values."""
    product = [op for op in attention.ops if is_contraction(op)][-1]
    place = next(place for place in (0, 1) if product.operands[place] != attention.values.value)
    weights, element = product.operands[place], element_of(attention.values.value.type)
    type_ = ir.RankedTensorType(weights.type)
    with ir.InsertionPoint(product), product.location:
        rounded = ir.RankedTensorType.get(type_.shape, element)
        empty = ir.Operation.create("tensor.empty", results=[rounded]).results[0]
        generic, body = create_generic([weights], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
        with ir.InsertionPoint(body):
            linalg.yield_([arith.truncf(element, body.arguments[0])])
    product.operands[place] = generic.results[0]
    block = product.regions[0].blocks[0]
    weight = block.arguments[place]
    weight.set_type(element)
    with ir.InsertionPoint.at_block_begin(block), product.location:
        extension = arith.extf(ir.F32Type.get(), weight)
    weight.replace_all_uses_except(extension, [defining_op(extension)])
