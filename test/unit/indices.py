"""Evaluates the index arithmetic of a kernel, op by op: what a block or a thread computes before it touches memory."""

import operator

from stepladder.mlir.bindings import ir
from stepladder.runtime.reference import Operation


def evaluate(expression: ir.AffineExpr, dims: list[int], symbols: list[int]) -> int:
    """Evaluates an affine expression."""
    match expression:
        case ir.AffineDimExpr():
            return dims[expression.position]
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
        case ir.AffineConstantExpr():
            return expression.value
    left, right = evaluate(expression.lhs, dims, symbols), evaluate(expression.rhs, dims, symbols)
    match expression:
        case ir.AffineAddExpr():
            return left + right
        case ir.AffineMulExpr():
            return left * right
        case ir.AffineModExpr():
            return left % right
        case ir.AffineFloorDivExpr():
            return left // right
    raise AssertionError(expression)


def unsigned(value: int) -> int:
    """Checks what `divui` and its like take for granted."""
    assert value >= 0
    return value


OPERATIONS = {
    "arith.addi": lambda left, right: left + right,
    "arith.subi": lambda left, right: left - right,
    "arith.muli": lambda left, right: left * right,
    "arith.divui": lambda left, right: unsigned(left) // unsigned(right),
    "arith.remui": lambda left, right: unsigned(left) % unsigned(right),
    "arith.shli": lambda left, right: left << right,
    "arith.xori": lambda left, right: left ^ right,
    "arith.andi": lambda left, right: left & right,
    "arith.index_cast": lambda value: value,
    "arith.trunci": lambda value: value & 0xFFFF,
    "arith.minui": lambda left, right: min(unsigned(left), unsigned(right)),
    "arith.maxsi": max,
    "arith.select": lambda condition, left, right: left if condition else right,
}

# By their numbers: eq, ne, slt, sle, sgt, sge, ult.
PREDICATES = {
    0: operator.eq,
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
    6: operator.lt,
}


def index_of(value: ir.Value, known: dict[ir.Value | str, int]) -> int:
    """Evaluates a value of a kernel.

    Args:
        value: an index, or an integer made of some.
        known: what is not computed: `gpu.block_id x` and the like, by their names; block arguments, by themselves.
    """
    for argument, number in known.items():
        if not isinstance(argument, str) and argument == value:
            return number
    source = value.owner.operation
    if source.name.startswith("gpu."):
        axis = next(axis for axis in "xyz" if f"dim {axis}" in str(source.attributes["dimension"]))
        return known[f"{source.name} {axis}"]
    if source.name == "arith.constant":
        return ir.IntegerAttr(source.attributes["value"]).value
    operands = [index_of(operand, known) for operand in source.operands]
    if source.name == "arith.cmpi":
        return PREDICATES[ir.IntegerAttr(source.attributes["predicate"]).value](*operands)
    if source.name in OPERATIONS:
        return OPERATIONS[source.name](*operands)
    if source.name == "affine.delinearize_index":
        basis = list(ir.DenseI64ArrayAttr(source.attributes["static_basis"]))
        dynamic = operands[1:]
        basis = [dynamic.pop(0) if size == ir.ShapedType.get_dynamic_size() else size for size in basis]
        digits, rest = [], unsigned(operands[0])
        for size in reversed(basis):
            digits.insert(0, rest % size)
            rest //= size
        assert rest == 0, "the number has more digits than the basis"
        return digits[ir.OpResult(value).result_number]
    assert source.name in ("affine.apply", "affine.min"), source.name
    map_ = ir.AffineMapAttr(source.attributes["map"]).value
    dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
    return min(evaluate(result, dims, symbols) for result in map_.results)


def offsets_of(view: Operation | None, known: dict[str | ir.BlockArgument, int]) -> list[int]:
    """Evaluates the offsets of a `memref.subview`."""
    dynamic = iter(list(view.operands)[1:])
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return [
        index_of(next(dynamic), known) if offset == unknown else offset
        for offset in ir.DenseI64ArrayAttr(view.attributes["static_offsets"])
    ]


def sizes_of(view: Operation | None, known: dict[str | ir.BlockArgument, int]) -> list[int]:
    """Evaluates the sizes of a `memref.subview`."""
    unknown = ir.ShapedType.get_dynamic_size()
    static = list(ir.DenseI64ArrayAttr(view.attributes["static_sizes"]))
    offsets = ir.DenseI32ArrayAttr(view.attributes["operandSegmentSizes"])[1]
    dynamic = iter(list(view.operands)[1 + offsets :])
    return [index_of(next(dynamic), known) if size == unknown else size for size in static]
