"""`tc.approximate_math`: computes sigmoids and both forms of GELU by the hardware's approximations."""

import math

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.gelu import create_gelu, find_gelu
from stepladder.extension.lib.epilogues.scalar_ops import approximated, constant, constant_of, other
from stepladder.extension.lib.epilogues.wide_chains import widen
from stepladder.extension.lib.outlined_producers import is_in_producer
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload.approximations import rounds_results_to_few_bits


class ApproximateMath(Tc.Operation, name="approximate_math"):
    """Rewrites sigmoids and GELU to hardware approximations, in elementwise ops whose results all have 8 or 16 bits.

    `x / (1 + exp(-v))` becomes `x * (1 / (1 + exp2(-v log2 e)))`, and `1 + tanh(u)` becomes twice the sigmoid of 2 u,
    which has no cancellation. `math.exp2` and `arith.divf` have the flag `afn`: they become `ex2.approx`, with a
    relative error of at most 2^-22, and `rcp.approx`, of at most 2^-23 (PTX ISA). A factor 1/2 of the sum is folded.
    Products and sums beside them may contract.

    `x/2 (1 + erf(x / sqrt(2)))` becomes max(x, 0) - |x| T, where the tail T is an exponential of a polynomial in |x|
    (`lib/gelu.py`), with an error of T of at most 2^-17 T or 2^-32. `x/2 (1 + erf(v))` of another v becomes x h for a
    negative v and x (1 - h) for others, where h = erfc(|v|) / 2 is exp(-v^2) times a polynomial in 1 / (1 + p |v|): the
    form of Abramowitz and Stegun, 7.1.26, with a bounded relative error.

    Arithmetic on 16-bit values beside `erf`, `exp` or `tanh` of them is computed in f32 first, and rounded where other
    ops read it.

    The relative error of a sigmoid is at most (8 + 1.5 |y|) 2^-24, and that of h at most 2^-17 + 3 |y| 2^-24, where y
    is the exponent of 2, against the 2^-12 and 2^-9 of a rounding to f16 and bf16. A quotient below 2^-126 times the
    numerator is 0. Other uses of the functions stay, and so do quotients whose numerator has an exponential: as in
    `exp(v) / (1 + exp(v))`, it may be as large as the denominator, of which the reciprocal is 0 from 2^126 on.

    Operands: a handle to any op with the `linalg.generic` below.
    """

    target: Handle


_LOG2_E = 1 / math.log(2)
_EXPONENTIALS = ("math.exp", "math.exp2")
# erfc(v) exp(v^2) for v >= 0 as a polynomial in t = 1 / (1 + P v) without a constant term: a relative error of at
# most 4.8e-6, by Lawson's iteration.
_ERFC_SCALE = 0.43
_ERFC = (0.24328222, 0.23224684, 0.28241652, -0.01275682, 0.40878831, -0.1539725)
_MIN_SCALE, _LARGEST_SCALE = 2.0**-20, 2.0**20  # of constants that are folded into the exponent
_CUBE = 3


def _scaled(value: ir.Value, factor: float) -> ir.Value:
    """Creates a product with a constant, into which negations and products with constants are folded."""
    source = producer(value)
    if source is not None and source.name == "arith.negf":
        return _scaled(source.operands[0], -factor)
    if source is not None and source.name == "arith.mulf":
        for operand in source.operands:
            number = constant_of(operand)
            if number is not None and _MIN_SCALE <= abs(number) <= _LARGEST_SCALE:
                return _scaled_sum(other(source, operand), number * factor)
    return _scaled_sum(value, factor)


def _scaled_sum(value: ir.Value, factor: float) -> ir.Value:
    """Creates a product with a constant; that of x + c x^3, the argument of GELU, as x (f + f c x^2)."""
    factors = _factored(value)
    if factors is None:
        return arith.mulf(value, constant(factor))
    x, cubic = factors
    return arith.mulf(x, arith.addf(arith.mulf(arith.mulf(x, x), constant(factor * cubic)), constant(factor)))


def _factors(value: ir.Value) -> tuple[float, list[ir.Value]]:
    """Returns a constant and the factors whose product a value is: those of nested products and powers."""
    source, number = producer(value), constant_of(value)
    if number is not None:
        return number, []
    if source is not None and source.name == "math.fpowi":
        exponent = producer(source.operands[1])
        power = ir.IntegerAttr(exponent.attributes["value"]).value if exponent is not None else 0
        if power == _CUBE:
            return 1.0, [source.operands[0]] * power
    if source is not None and source.name == "arith.mulf":
        (left, values), (right, others) = map(_factors, source.operands)
        return left * right, values + others
    return 1.0, [value]


def _factored(value: ir.Value) -> tuple[ir.Value, float] | None:
    """Returns x and c where a value is x + c x^3; None for another value."""
    source = producer(value)
    if source is None or source.name != "arith.addf":
        return None
    for operand in source.operands:
        x = other(source, operand)
        number, values = _factors(operand)
        if len(values) == _CUBE and all(factor == x for factor in values):
            return x, number
    return None


def _reciprocal_of_one_plus_exp2(exponent: ir.Value) -> ir.Value:
    total = arith.addf(approximated("math.exp2", exponent), constant(1.0))
    return approximated("arith.divf", constant(1.0), total)


def _summand_of(total: ir.Value, *names: str) -> ir.Operation | None:
    """Returns the op of a name whose result a sum with the constant 1 adds; None for another value."""
    source = producer(total)
    if source is None or source.name != "arith.addf":
        return None
    for operand in source.operands:
        function = producer(operand)
        if function is not None and function.name in names and constant_of(other(source, operand)) == 1.0:
            return function
    return None


def _has_exponential(value: ir.Value) -> bool:
    """Returns whether a value of a body is computed from an exponential."""
    makers, body = [producer(value)], []
    while makers:
        maker = makers.pop()
        if maker is None or maker in body:
            continue
        if maker.name in _EXPONENTIALS:
            return True
        body.append(maker)
        makers += [producer(operand) for operand in maker.operands]
    return False


def _rewrite_quotient(op: ir.Operation, rewriter: Rewriter) -> None:
    """Rewrites n / (1 + exp(v))."""
    function = _summand_of(op.operands[1], *_EXPONENTIALS)
    if function is None or _has_exponential(op.operands[0]):
        return
    with ir.InsertionPoint(op), op.location:
        value = function.operands[0]
        exponent = _scaled(value, _LOG2_E) if function.name == "math.exp" else value
        result = _reciprocal_of_one_plus_exp2(exponent)
        if constant_of(op.operands[0]) != 1.0:
            result = arith.mulf(op.operands[0], result)
    rewriter.replace_op(op, [result])


def _halved(total: ir.Value) -> tuple[ir.Operation, ir.Value | None] | None:
    """Returns the one user of a sum, where it is a product with 1/2 or with x/2: the product, and x in the second
    case."""
    users = users_of(total)
    if len(users) != 1 or users[0].name != "arith.mulf":
        return None
    factor = other(users[0], total)
    if constant_of(factor) == 0.5:
        return users[0], None
    scale = producer(factor)
    if scale is not None and scale.name == "arith.mulf":
        for operand in scale.operands:
            if constant_of(operand) == 0.5:
                return users[0], other(scale, operand)
    return None


def _half_of_one_plus_erf(value: ir.Value) -> ir.Value:
    """Creates (1 + erf(v)) / 2."""
    magnitude = ir.Operation.create("math.absf", results=[value.type], operands=[value]).results[0]
    one, zero = constant(1.0), constant(0.0)
    part = approximated("arith.divf", one, arith.addf(arith.mulf(magnitude, constant(_ERFC_SCALE)), one))
    total = constant(_ERFC[-1] / 2)
    for coefficient in reversed(_ERFC[:-1]):
        total = arith.addf(arith.mulf(total, part), constant(coefficient / 2))
    power = approximated("math.exp2", arith.mulf(arith.mulf(value, value), constant(-_LOG2_E)))
    half = arith.mulf(arith.mulf(total, part), power)
    is_negative = arith.cmpf(arith.CmpFPredicate.OLT, value, zero)
    return arith.select(is_negative, half, arith.subf(one, half))


def _rewrite_sum(op: ir.Operation, rewriter: Rewriter) -> None:
    """Rewrites 1 + tanh(u), also its products with 1/2 and x/2, and such products of 1 + erf(v)."""
    function = _summand_of(op.results[0], "math.tanh", "math.erf")
    gelu = find_gelu(function, op) if function is not None and function.name == "math.erf" else None
    if gelu is not None:
        x, product = gelu
        with ir.InsertionPoint(product), op.location:
            rewriter.replace_op(product, [create_gelu(x)])
        return
    half_of_sum = _halved(op.results[0])
    if function is None or (function.name == "math.erf" and half_of_sum is None):
        return
    op_to_replace = op if half_of_sum is None else half_of_sum[0]
    with ir.InsertionPoint(op_to_replace), op.location:
        if function.name == "math.erf" and half_of_sum is not None:
            result = _half_of_one_plus_erf(function.operands[0])
            rewriter.replace_op(
                op_to_replace, [result if half_of_sum[1] is None else arith.mulf(half_of_sum[1], result)]
            )
            return
        exponent = _scaled(function.operands[0], -2 * _LOG2_E)
        if half_of_sum is None:  # 2 / (1 + e), without a product by 2
            half = constant(0.5)
            total = arith.addf(arith.mulf(approximated("math.exp2", exponent), half), half)
            result = approximated("arith.divf", constant(1.0), total)
        else:
            result = _reciprocal_of_one_plus_exp2(exponent)
            if half_of_sum[1] is not None:
                result = arith.mulf(half_of_sum[1], result)
    rewriter.replace_op(op_to_replace, [result])


@transform_op(ApproximateMath)
def approximate_math(payload: ir.Operation, op: ApproximateMath, rewriter: Rewriter) -> None:
    """Rewrites the elementwise ops below `payload`; see the op."""
    for generic in walk(payload, "linalg.generic"):
        if is_in_producer(generic) or not rounds_results_to_few_bits(generic):
            continue
        body = generic.regions[0].blocks[0]
        widen(body)
        for inner in operations_of(body):
            if inner.name == "arith.divf" and isinstance(inner.results[0].type, ir.F32Type):
                _rewrite_quotient(inner, rewriter)
        for inner in [inner for inner in operations_of(body) if inner.name == "arith.addf"]:
            if isinstance(inner.results[0].type, ir.F32Type):
                _rewrite_sum(inner, rewriter)
        for inner in operations_of(body):
            if inner.name in ("arith.mulf", "arith.addf", "arith.subf"):
                inner.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<contract>")
