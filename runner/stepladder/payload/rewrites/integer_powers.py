"""Powers of integers (`math.ipowi`) as products: by squares of the base, one for each bit of the exponent.

Products wrap. A negative power is 1 / x^n as an integer: of 1 and -1 one of them, of other bases 0.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import producer, walk

_POWER = "math.ipowi"
_EQ, _NE, _SLT = 0, 1, 2


def expand(function: ir.Operation) -> None:
    """Replaces powers of integers, of scalars and of static tensors.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, _POWER):
        with ir.InsertionPoint(op), op.location:
            result = (
                _of_tensors(op) if isinstance(op.results[0].type, ir.RankedTensorType) else _of_scalars(*op.operands)
            )
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _of_tensors(op: ir.Operation) -> ir.Value:
    """Creates an elementwise op, and the powers in its body; a splat exponent is a constant of the body."""
    type_ = ir.RankedTensorType(op.results[0].type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    identity = ir.AffineMap.get_identity(type_.rank)
    exponent = _known(op.operands[1])
    inputs = list(op.operands)[: 2 if exponent is None else 1]
    generic, body = create_generic(inputs, [empty], [identity] * (len(inputs) + 1))
    with ir.InsertionPoint(body):
        power = body.arguments[1] if exponent is None else _number(type_.element_type, exponent)
        ir.Operation.create("linalg.yield", operands=[_of_scalars(body.arguments[0], power)])
    return generic.results[0]


def _of_scalars(base: ir.Value, power: ir.Value) -> ir.Value:
    width = ir.IntegerType(base.type).width
    exponent = _known(power)
    if exponent is not None and exponent >= 0:
        return _of_constant(base, exponent)
    zero, one = (_number(base.type, number) for number in (0, 1))
    result = one
    square = base
    for bit in range(width - 1):
        is_set = _compared(_NE, _of("arith.andi", power, _number(base.type, 1 << bit)), zero)
        result = _chosen(is_set, _of("arith.muli", result, square), result)
        square = _of("arith.muli", square, square)
    minus_one = _number(base.type, -1)
    is_odd = _compared(_NE, _of("arith.andi", power, one), zero)
    of_minus_one = _chosen(_compared(_EQ, base, minus_one), _chosen(is_odd, minus_one, one), zero)
    inverse = _chosen(_compared(_EQ, base, one), one, of_minus_one)
    return _chosen(_compared(_SLT, power, zero), inverse, result)


def _of_constant(base: ir.Value, exponent: int) -> ir.Value:
    """Creates the products of a power that is not negative."""
    result: ir.Value | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else _of("arith.muli", result, base)
        exponent >>= 1
        if exponent:
            base = _of("arith.muli", base, base)
    return _number(base.type, 1) if result is None else result


def _known(power: ir.Value) -> int | None:
    """Returns an exponent that is a constant, or the same for all elements; None for others."""
    op = producer(power)
    if op is None or op.name != "arith.constant":
        return None
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            return None
        value = value.get_splat_value()
    return ir.IntegerAttr(value).value


def _number(type_: ir.Type, number: int) -> ir.Value:
    value = ir.IntegerAttr.get(type_, number)
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": value}).results[0]


def _of(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[left.type], operands=[left, right]).results[0]


def _compared(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return ir.Operation.create(
        "arith.cmpi",
        results=[ir.IntegerType.get_signless(1)],
        operands=[left, right],
        attributes={"predicate": number},
    ).results[0]


def _chosen(condition: ir.Value, first: ir.Value, second: ir.Value) -> ir.Value:
    return ir.Operation.create("arith.select", results=[first.type], operands=[condition, first, second]).results[0]
