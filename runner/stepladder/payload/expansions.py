"""Scalar functions as ops that all that follows computes: epilogues, kernels without a matmul, references."""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.traverse import walk

# Those of upstream's expansions that lose no digits: asinh of large negative numbers does.
_BY_UPSTREAM = ("fpowi", "tan", "sinh", "cosh", "acosh", "atanh")
# Bits of the widest integers of which kernels compute magnitudes.
_WIDEST = 32


def expand(function: ir.Operation) -> None:
    """Replaces powers with constant integers by multiplications, functions by exponentials, logarithms, sines and
    cosines, roundings towards zero by those down and up, and magnitudes of wide integers by the larger of a number and
    its negative.

    Args:
        function: a function; it is changed where there are such ops.
    """
    if walk(function, *(f"math.{name}" for name in _BY_UPSTREAM)):
        passmanager.PassManager.parse(f"{function.name}(math-expand-ops{{ops={','.join(_BY_UPSTREAM)}}})").run(function)
    for op in walk(function, "math.trunc"):
        _expand_truncation(op)
    for op in walk(function, "math.absi"):
        type_ = op.results[0].type
        element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
        if isinstance(element, ir.IntegerType) and element.width > _WIDEST:
            _expand_magnitude(op)


def _expand_truncation(op: ir.Operation) -> None:
    """Replaces a rounding towards zero, which the conversion to NVVM lacks, by one up below zero, and else down."""
    (value,), type_ = op.operands, op.results[0].type
    zero = _zero(type_)
    below = ir.IntegerType.get_signless(1)
    if isinstance(type_, ir.RankedTensorType):
        below = ir.RankedTensorType.get(type_.shape, below)
    olt = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)

    def create(name: str, result: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).results[0]

    with ir.InsertionPoint(op), op.location:
        is_below = create("arith.cmpf", below, value, create("arith.constant", type_, value=zero), predicate=olt)
        up, down = create("math.ceil", type_, value), create("math.floor", type_, value)
        whole = create("arith.select", type_, is_below, up, down)
    op.results[0].replace_all_uses_with(whole)
    op.erase()


def _zero(type_: ir.Type) -> ir.Attribute:
    """Returns zero, or as many as a tensor has elements."""
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    return ir.DenseElementsAttr.get_splat(type_, zero) if isinstance(type_, ir.ShapedType) else zero


def _expand_magnitude(op: ir.Operation) -> None:
    (value,), type_ = op.operands, op.results[0].type
    with ir.InsertionPoint(op), op.location:
        nothing = ir.Operation.create("arith.constant", results=[type_], attributes={"value": _zero(type_)}).results[0]
        negative = ir.Operation.create("arith.subi", results=[type_], operands=[nothing, value]).results[0]
        larger = ir.Operation.create("arith.maxsi", results=[type_], operands=[value, negative]).results[0]
    op.results[0].replace_all_uses_with(larger)
    op.erase()
