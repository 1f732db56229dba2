"""`tc.extend_integers`: writes out the extension of the integers that a contraction multiplies."""

from stepladder.extension.lib.control_flow import behind
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import walk


class ExtendIntegers(Tc.Operation, name="extend_integers"):
    """Extends integer operands of each `vector.contract` to the type of its sums by `arith.extsi`, once for each value.

    Upstream's conversion to WMMA reads the sign of a fragment from this op.

    Operands: a handle to any op; contractions of other types stay as they are.
    """

    target: Handle


@transform_op(ExtendIntegers)
def extend_integers(payload: ir.Operation, op: ExtendIntegers, rewriter: Rewriter) -> None:
    """Rewrites the contractions below `payload`; see the op."""
    for contraction in walk(payload, "vector.contract"):
        wide = ir.VectorType(contraction.results[0].type).element_type
        for number in range(2):
            operand = contraction.operands[number]
            type_ = ir.VectorType(operand.type)
            if not isinstance(type_.element_type, ir.IntegerType) or type_.element_type == wide:
                continue
            with behind(operand), contraction.location:
                contraction.operands[number] = arith.extsi(ir.VectorType.get(type_.shape, wide), operand)
