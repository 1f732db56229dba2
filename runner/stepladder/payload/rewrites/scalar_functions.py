"""Functions of scalars as ops that epilogues, kernels without a matmul and reference programs compute."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import element_of

# Bits of the integers of which kernels have a function that computes magnitudes.
_MAGNITUDE_BITS = 32
_INDEX_BITS = 64
# Predicates of arith.cmpf.
_OEQ, _OGE, _OLT, _UNO = 1, 3, 4, 14
# The least normal values, by type.
_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


def expand(function: ir.Operation) -> None:
    """Replaces functions of `math` and casts that kernels lack, and splats, by other ops.

    Args:
        function: a function; it is changed where there are such ops.
    """
    names = _names_in(function)
    for name, replace_op in _EXPANSIONS.items():
        if name in names:
            for op in walk(function, name):
                replace_op(op)
            names = _names_in(function)


def _names_in(function: ir.Operation) -> set[str]:
    return {op.name for op in walk(function)}


def _created(name: str, result: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).results[0]


def _constant(type_: ir.Type, number: float) -> ir.Value:
    """Creates a scalar, or a splat tensor of it."""
    element = element_of(type_)
    value = ir.FloatAttr.get(element, number) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    attribute = ir.DenseElementsAttr.get_splat(type_, value) if isinstance(type_, ir.ShapedType) else value
    return _created("arith.constant", type_, value=attribute)


def _compared(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    type_ = ir.IntegerType.get_signless(1)
    if isinstance(left.type, ir.RankedTensorType):
        type_ = ir.RankedTensorType.get(left.type.shape, type_)
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return _created("arith.cmpf", type_, left, right, predicate=number)


def _replace(op: ir.Operation, *values: ir.Value) -> None:
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def _expand_truncation(op: ir.Operation) -> None:
    """Replaces a rounding towards zero, which the conversion to NVVM lacks, by one up below zero, and else down."""
    (value,), type_ = op.operands, op.results[0].type
    with ir.InsertionPoint(op), op.location:
        is_below = _compared(_OLT, value, _constant(type_, 0.0))
        up, down = _created("math.ceil", type_, value), _created("math.floor", type_, value)
        truncated = _created("arith.select", type_, is_below, up, down)
    _replace(op, truncated)


def _expand_test(op: ir.Operation) -> None:
    """Replaces a test for NaN, infinity, and finite or normal values by comparisons."""
    (value,) = op.operands
    with ir.InsertionPoint(op), op.location:
        if op.name == "math.isnan":
            test = _compared(_UNO, value, value)
        else:
            size = _created("math.absf", value.type, value)
            infinity = _constant(value.type, float("inf"))
            test = _compared(_OEQ if op.name == "math.isinf" else _OLT, size, infinity)
            if op.name == "math.isnormal":
                least = _constant(value.type, _NORMAL[str(element_of(value.type))])
                test = _created("arith.andi", test.type, test, _compared(_OGE, size, least))
    _replace(op, test)


def _expand_sincos(op: ir.Operation) -> None:
    (value,) = op.operands
    with ir.InsertionPoint(op), op.location:
        values = [_created(name, value.type, value) for name in ("math.sin", "math.cos")]
    _replace(op, *values)


def _expand_fma(op: ir.Operation) -> None:
    """Replaces a product and sum that adds to what a reduction has summed so far; others are rounded once."""
    parent, (left, right, total) = op.parent, op.operands
    if parent is None or "reduction" not in str(parent.attributes.get("iterator_types", "")):
        return
    block = parent.regions[0].blocks[0]
    outputs = len(block.operations[len(block.operations) - 1].operands)
    if total not in list(block.arguments)[-outputs:]:
        return
    with ir.InsertionPoint(op), op.location:
        product = _created("arith.mulf", total.type, left, right)
        new = _created("arith.addf", total.type, total, product)
    _replace(op, new)


def _expand_splat(op: ir.Operation) -> None:
    type_ = op.results[0].type
    if len(op.operands) > 1:  # with dynamic dimensions
        return
    with ir.InsertionPoint(op), op.location:
        empty = _created("tensor.empty", type_)
        splat = create_named_op("linalg.fill", [op.operands[0]], empty).results[0]
    _replace(op, splat)


def _expand_magnitude(op: ir.Operation) -> None:
    """Replaces a magnitude of integers of other than 32 bits by the larger of a value and its negative."""
    (value,), type_ = op.operands, op.results[0].type
    element = element_of(type_)
    if not isinstance(element, ir.IntegerType) or element.width == _MAGNITUDE_BITS:
        return
    with ir.InsertionPoint(op), op.location:
        negative = _created("arith.subi", type_, _constant(type_, 0), value)
        larger = _created("arith.maxsi", type_, value, negative)
    _replace(op, larger)


def _expand_unsigned_index(op: ir.Operation) -> None:
    """Replaces a cast between an index and an integer without a sign by one of a wider integer, which is not negative;
    of an index, both casts keep the low bits."""
    (value,), type_ = op.operands, op.results[0].type
    element = element_of(value.type)
    with ir.InsertionPoint(op), op.location:
        if isinstance(element, ir.IntegerType) and element.width < _INDEX_BITS:
            wider: ir.Type = ir.IntegerType.get_signless(32 if element.width < 32 else _INDEX_BITS)
            if isinstance(value.type, ir.RankedTensorType):
                wider = ir.RankedTensorType.get(value.type.shape, wider)
            value = _created("arith.extui", wider, value)
        cast = _created("arith.index_cast", type_, value)
    _replace(op, cast)


_EXPANSIONS = {
    "arith.index_castui": _expand_unsigned_index,
    "math.trunc": _expand_truncation,
    "math.isfinite": _expand_test,
    "math.isinf": _expand_test,
    "math.isnan": _expand_test,
    "math.isnormal": _expand_test,
    "math.sincos": _expand_sincos,
    "math.fma": _expand_fma,
    "tensor.splat": _expand_splat,
    "math.absi": _expand_magnitude,
}
