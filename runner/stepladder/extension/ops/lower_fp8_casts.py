"""`tc.lower_fp8_casts`: casts to and from fp8, which the conversion to NVVM does not have."""

import math

from stepladder.extension.lib import narrow_floats
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


class LowerFp8Casts(Tc.Operation, name="lower_fp8_casts"):
    """Replaces `arith.extf` of fp8, and `arith.truncf` to it of f16, bf16 and f32, on scalars and on vectors.

    Casts between fp8 and integers, which upstream's canonicalizer makes of two casts, are by way of f32 again.
    Extensions become integer arithmetic. Values are rounded to nearest by `nvvm.convert.f32x2.to.f8x2`, or by integer
    arithmetic; what is too large becomes NaN of f8E4M3FN, and infinity of f8E5M2, as `arith.truncf` has it.

    Operands: a handle to any op. Attributes: `instruction`, whether the GPU has the conversion.
    """

    target: Handle
    instruction: ir.IntegerAttr


@transform_op(LowerFp8Casts)
def lower_fp8_casts(payload: ir.Operation, op: LowerFp8Casts, rewriter: Rewriter) -> None:
    """Rewrites the casts below `payload`; see the op."""
    for cast in walk(payload, *narrow_floats.INTEGER_CASTS):
        if narrow_floats.is_fp8(cast.operands[0]) or narrow_floats.is_fp8(cast.results[0]):
            with ir.InsertionPoint(cast), cast.location:
                result = narrow_floats.converted_by_f32(cast)
            rewriter.replace_op(cast, [result])
    for cast in walk(payload, "arith.extf", "arith.truncf"):
        value, type_ = cast.operands[0], cast.results[0].type
        with ir.InsertionPoint(cast), cast.location:
            if narrow_floats.rounds(cast):
                has_pairs = not isinstance(type_, ir.VectorType) or math.prod(type_.shape) % 2 == 0
                by_instruction = bool(op.instruction.value) and has_pairs
                result = (narrow_floats.rounded_pairs if by_instruction else narrow_floats.rounded)(value, type_)
            elif cast.name == "arith.extf" and narrow_floats.is_fp8(value):
                result = narrow_floats.extended(value, type_)
            else:
                continue
        rewriter.replace_op(cast, [result])
