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
    cosines, and magnitudes of wide integers by the larger of a number and its negative.

    Args:
        function: a function; it is changed where there are such ops.
    """
    if walk(function, *(f"math.{name}" for name in _BY_UPSTREAM)):
        passmanager.PassManager.parse(f"{function.name}(math-expand-ops{{ops={','.join(_BY_UPSTREAM)}}})").run(function)
    for op in walk(function, "math.absi"):
        type_ = op.results[0].type
        element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
        if isinstance(element, ir.IntegerType) and element.width > _WIDEST:
            _expand_magnitude(op, element)


def _expand_magnitude(op: ir.Operation, element: ir.Type) -> None:
    (value,), type_ = op.operands, op.results[0].type
    zero: ir.Attribute = ir.IntegerAttr.get(element, 0)
    if isinstance(type_, ir.ShapedType):
        zero = ir.DenseElementsAttr.get_splat(type_, zero)
    with ir.InsertionPoint(op), op.location:
        nothing = ir.Operation.create("arith.constant", results=[type_], attributes={"value": zero}).results[0]
        negative = ir.Operation.create("arith.subi", results=[type_], operands=[nothing, value]).results[0]
        larger = ir.Operation.create("arith.maxsi", results=[type_], operands=[value, negative]).results[0]
    op.results[0].replace_all_uses_with(larger)
    op.erase()
