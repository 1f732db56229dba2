"""`tc.multiply_as_3xtf32`: splits products of f32 into three products of tf32."""

import itertools

from stepladder.extension.lib.arithmetic import zero_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tf32_parts import split
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import attributes_of, walk


class MultiplyAs3xtf32(Tc.Operation, name="multiply_as_3xtf32"):
    """Replaces each `nvgpu.mma.sync` of f32 that is not marked `tf32Enabled` by three that are, on split operands.

    An element is the sum of its first 11 bits, rounded to nearest, and of what is left. Of the four products of these
    parts, that of the two small ones is below the roundoff of f32 and is left out. The three others are summed from
    zero, the small ones first, and `arith.addf` adds their sum to the accumulator: tensor cores cut sums off where
    `arith.addf` rounds to nearest, and the cuts of a long sum have a bias.

    A fragment is split before the first product that takes it, once in each block. Products that are marked
    `keeps_infinities` (`recompute_nan_tiles`) have parts that keep them.

    Operands: a handle to any op; products of other types, and those that are marked, stay as they are.
    """

    target: Handle


_MMA = "nvgpu.mma.sync"
_MARK = "tf32Enabled"
_KEEPS = "keeps_infinities"


def _multiply(mma: ir.Operation, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Returns the product of tf32 that replaces `mma`, at the current insertion point."""
    attributes = attributes_of(mma) | {_MARK: ir.UnitAttr.get()}
    attributes.pop(_KEEPS, None)
    type_ = mma.results[0].type
    return ir.Operation.create(_MMA, results=[type_], operands=[a, b, c], attributes=attributes).results[0]


def _is_f32(mma: ir.Operation) -> bool:
    return ir.VectorType(mma.operands[0].type).element_type == ir.F32Type.get()


@transform_op(MultiplyAs3xtf32)
def multiply_as_3xtf32(payload: ir.Operation, op: MultiplyAs3xtf32, rewriter: Rewriter) -> None:
    """Splits the products below `payload`; see the op."""
    mmas = [mma for mma in walk(payload, _MMA) if _is_f32(mma) and _MARK not in mma.attributes]
    for _, of_block in itertools.groupby(mmas, lambda mma: mma.block):
        parts: dict[ir.Value, tuple[ir.Value, ir.Value]] = {}
        for mma in of_block:
            a, b, sums = mma.operands
            with ir.InsertionPoint(mma), mma.location:
                for fragment in (a, b):
                    if fragment not in parts:
                        parts[fragment] = split(fragment, keeps_infinities=_KEEPS in mma.attributes)
                (a_large, a_small), (b_large, b_small) = parts[a], parts[b]
                type_ = ir.VectorType(sums.type)
                step = arith.constant(type_, zero_of(type_))
                for left, right in ((a_small, b_large), (a_large, b_small), (a_large, b_large)):
                    step = _multiply(mma, left, right, step)
                total = arith.addf(sums, step)
            rewriter.replace_op(mma, [total])
