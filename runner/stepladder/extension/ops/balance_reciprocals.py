"""`tc.balance_reciprocals`: computes half of an epilogue's approximate reciprocals by multiplications and additions."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.vectors import extract
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, walk


class BalanceReciprocals(Tc.Operation, name="balance_reciprocals"):
    """Rewrites the reciprocals of sigmoids on vectors, of which each second element is computed without `rcp.approx`.

    The rewritten quotients are those that `tc.approximate_math` makes: 1 / d, where d is a sum of an `exp2` and a
    number, with the flag `afn`. An integer subtraction from the bits of d gives 1 / d with a relative error of at most
    5.1%, and two steps of Newton's iteration one of at most 2^-19. Their constants are larger than 2, so that the
    errors, which are otherwise of one sign, are of both. d is limited to the value with the bits that are subtracted
    from: a larger one and an infinity make 0, like a reciprocal that is flushed. NaN stays NaN.

    Operands: a handle to any op.
    """

    target: Handle


_MAGIC = 0x7EF35000
_FIRST, _SECOND = 2.00134614, 2.00000091
# The value with the bits of _MAGIC, of which the estimate is 0, also where subnormal numbers are not flushed.
_LARGEST = float.fromhex("0x1.e6ap126")


def _is_of_sigmoid(op: ir.Operation) -> bool:
    """Returns whether an op is an approximate quotient of vectors whose divisor is a sum with an `exp2`."""
    if "afn" not in str(op.attributes["fastmath"]) or not isinstance(op.results[0].type, ir.VectorType):
        return False
    total = producer(op.operands[1])
    if total is None or total.name != "arith.addf":
        return False
    parts = [producer(part) for part in total.operands]
    parts += [producer(part) for op in parts if op is not None and op.name == "arith.mulf" for part in op.operands]
    return any(part is not None and part.name == "math.exp2" for part in parts)


def _reciprocal(divisor: ir.Value) -> ir.Value:
    """Creates the reciprocal of a number of at least 1/2, without a division."""
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    contract = ir.Attribute.parse("#arith.fastmath<contract>")
    bounded_divisor = arith.minimumf(divisor, arith.constant(f32, _LARGEST))
    estimate = arith.bitcast(f32, arith.subi(arith.constant(i32, _MAGIC), arith.bitcast(i32, bounded_divisor)))
    for two in (_FIRST, _SECOND):
        product = arith.mulf(bounded_divisor, estimate, fastmath=contract)
        estimate = arith.mulf(estimate, arith.subf(arith.constant(f32, two), product, fastmath=contract))
    return estimate


@transform_op(BalanceReciprocals)
def balance_reciprocals(payload: ir.Operation, op: BalanceReciprocals, rewriter: Rewriter) -> None:
    """Rewrites the quotients below `payload`; see the op."""
    for quotient in walk(payload, "arith.divf"):
        if not _is_of_sigmoid(quotient):
            continue
        type_ = ir.VectorType(quotient.results[0].type)
        with ir.InsertionPoint(quotient), quotient.location:
            elements = []
            for number in range(type_.shape[0]):
                dividend, divisor = (extract(operand, [number], type_.element_type) for operand in quotient.operands)
                if number % 2:
                    elements.append(_reciprocal(divisor))
                else:
                    elements.append(arith.divf(dividend, divisor, fastmath=quotient.attributes["fastmath"]))
            result = ir.Operation.create("vector.from_elements", results=[type_], operands=elements).results[0]
        rewriter.replace_op(quotient, [result])
