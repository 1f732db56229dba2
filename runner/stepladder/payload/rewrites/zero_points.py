"""Zero points of quantized operands: a sum of products of differences becomes one of stored elements, and corrections.

Matrix units multiply i8. A product of i8 values less constants, which need nine bits, is

    sum (a - x)(b - y) = sum a b - sum y (a - x) - sum x b

The first sum is the matmul, and the others are vectors along the rows and columns of C, which kernels before the
matmul's compute and its epilogue subtracts. Integers of 32 bits wrap, so that the equation holds for all values.

Zero points that are no constants, one for all or one for each row or column of C, are operands of the epilogue:

    sum (a - x)(b - y) = sum a b - y sum a - x sum b + k x y
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps
from stepladder.mlir.reshapes import TENSOR_RESHAPES
from stepladder.mlir.traverse import attributes_of, producer
from stepladder.payload.front import bodies
from stepladder.payload.refusal import refuse
from stepladder.payload.rewrites.inlined_zero_points import inlined
from stepladder.payload.rewrites.shifted_numbers import SIGN, SUMS, ShiftedFactor, ShiftedNumber, factors_of, number_of
from stepladder.runtime.errors import StepladderError

_ACCEPTED = (
    "accepted: linalg ops on tensors that sum products of i8, each less a zero point, in i32, as "
    "linalg.quantized_matmul does; zero points of up to 32 bits, the same for all products of a sum"
)


def expand(function: ir.Operation) -> list[ir.Value]:
    """Rewrites contractions of a function on tensors whose factors have zero points.

    Args:
        function: a `func.func` of one block; it is changed where there are any.

    Returns:
        The vectors of corrections: sums of the operands, which read them and constants.

    Raises:
        StepladderError: a `linalg.quantized_matmul` or its like with zero points of another form, or of buffers.
    """
    if len(function.regions[0].blocks) != 1:
        return []
    products: list[ir.Value] = []
    for op in [item.operation for item in function.regions[0].blocks[0].operations]:
        if not op.name.startswith("linalg.") or len(op.regions) != 1 or op.name in ("linalg.fill", "linalg.index"):
            continue
        is_quantized = op.name.startswith("linalg.quantized_")
        try:
            item = bodies.structured(op)
        except StepladderError:
            if is_quantized:
                raise
            continue
        factors = factors_of(item)
        if factors is None and (with_bodies := inlined(item)) is not None:
            item, factors = with_bodies, factors_of(with_bodies)
        if is_quantized and factors is None:
            raise refuse(op, f"{op.name} has zero points of another form, or is on buffers", _ACCEPTED)
        if factors is not None and (bodies.factors(item) is None or any(map(_is_shifted, factors))):
            products += _rewrite(item, factors)
    return products


def _is_shifted(factor: ShiftedFactor) -> bool:
    """Returns whether more than views and extensions make a factor of i8 values."""
    casts = [bodies.casts_of_one(bodies.structured(op)) for op in factor.number.path if op.name not in TENSOR_RESHAPES]
    are_extensions = all(names is not None and set(names) <= set(bodies.EXTENSIONS) for names in casts)
    has_zero = factor.number.offset != 0 or factor.zero is not None
    return has_zero or factor.number.is_unsigned or not are_extensions


def _length(item: bodies.Structured) -> int:
    """Returns how many products a sum has."""
    return math.prod(size for loop, size in enumerate(item.sizes) if loop not in item.maps[-1])


def _rewrite(item: bodies.Structured, factors: tuple[ShiftedFactor, ShiftedFactor]) -> list[ir.Value]:
    """Replaces a contraction by one of i8 values, less the corrections; returns these."""
    op = item.op
    cone = _cone(op)
    with ir.InsertionPoint(op), op.location:
        operands = [_stored(factor.number) for factor in factors]
        product = _contraction(item, factors, operands)
        zeros = [_zero_point(factor.number) for factor in factors]
        if any(factor.zero is not None for factor in factors):
            terms, result = _less_given(item, product, factors, operands, zeros)
        else:
            sums = [
                _term(item, factors[0], operands[0], zeros[0], zeros[1]),
                _term(item, factors[1], operands[1], 0, zeros[0]),
            ]
            corrections = [(factor, term) for factor, term in zip(factors, sums) if term is not None]
            terms = [term for _, term in corrections]
            result = _corrected(item, product, corrections) if corrections else product
    op.results[0].replace_all_uses_with(result)
    for inner_op in reversed([inner.operation for inner in op.block.operations]):
        if inner_op in cone and not any(list(value.uses) for value in inner_op.results):
            inner_op.erase()
    return terms


def _less_given(
    item: bodies.Structured,
    product: ir.Value,
    factors: tuple[ShiftedFactor, ShiftedFactor],
    stored: Sequence[ir.Value],
    constants: Sequence[int],
) -> tuple[list[ir.Value], ir.Value]:
    """Returns the sums of both factors that zero points of the other one need, and the product less the corrections,
    where zero points are no constants."""
    is_needed_by_factor = [constants[1 - number] != 0 or factors[1 - number].zero is not None for number in range(2)]
    sums = [
        _term(item, factor, numbers, 0, 1) if is_needed else None
        for factor, numbers, is_needed in zip(factors, stored, is_needed_by_factor)
    ]
    inputs: list[tuple[ir.Value, Sequence[int | None]]] = [(product, item.maps[-1])]
    inputs += [(term, _kept(item, factor)) for factor, term in zip(factors, sums) if term is not None]
    inputs += [(factor.zero.value, factor.zero.loops) for factor in factors if factor.zero is not None]
    loops = item.maps[-1]
    maps = [_map(len(loops), [None if loop is None else loops.index(loop) for loop in axes]) for _, axes in inputs]
    empty = _empty(list(ir.ShapedType(product.type).shape), SUMS)
    identity = ir.AffineMap.get_identity(len(loops))
    generic, body = create_generic([value for value, _ in inputs], [empty], [identity, *maps[1:], identity])
    with ir.InsertionPoint(body):
        value, *rest = list(body.arguments)[:-1]
        totals = [rest.pop(0) if term is not None else None for term in sums]
        zeros = [
            _sum_of(constant, _extended(rest.pop(0), factor.zero.is_unsigned) if factor.zero else None)
            for constant, factor in zip(constants, factors)
        ]
        for total, zero in zip(totals, reversed(zeros)):
            if total is not None and zero is not None:
                value = arith.subi(value, arith.muli(total, zero))
        if zeros[0] is not None and zeros[1] is not None:
            product_of_zeros = arith.muli(arith.muli(zeros[0], zeros[1]), _integer(_length(item)))
            value = arith.addi(value, product_of_zeros)
        _yield(value)
    return [term for term in sums if term is not None], generic.results[0]


def _sum_of(constant: int, zero: ir.Value | None) -> ir.Value | None:
    """Returns a zero point: a constant and a scalar, both in the type of sums; None for 0."""
    if zero is None:
        return _integer(constant) if constant else None
    return arith.addi(zero, _integer(constant)) if constant else zero


def _kept(item: bodies.Structured, factor: ShiftedFactor) -> list[int]:
    """Returns the loops of a factor that are not summed over, in the order of the result."""
    return [loop for loop in item.maps[-1] if loop is not None and loop in factor.loops]


def _cone(op: ir.Operation) -> set[ir.Operation]:
    """Returns an op on tensors and those that make what it reads."""
    ops: set[ir.Operation] = set()
    pending: list[ir.Operation | None] = [op]
    while pending:
        definition = pending.pop()
        if definition is not None and definition not in ops and not definition.name.startswith("bufferization."):
            ops.add(definition)
            pending += map(producer, definition.operands)
    return ops


def _zero_point(number: ShiftedNumber) -> int:
    """Returns what is subtracted from the i8 values that `_stored` makes."""
    return -(number.offset - SIGN if number.is_unsigned else number.offset)


def _stored(number: ShiftedNumber) -> ir.Value:
    """Returns the i8 values, in the shape of the operand; those from 0 to 255 less 128."""
    value = number.source
    if number.is_unsigned:
        identity = ir.AffineMap.get_identity(ir.RankedTensorType(value.type).rank)
        generic, body = create_generic([value], [_empty(list(ir.ShapedType(value.type).shape), "i8")], [identity] * 2)
        with ir.InsertionPoint(body):
            sign = arith.constant(body.arguments[0].type, SIGN)
            _yield(arith.xori(body.arguments[0], sign))
        value = generic.results[0]
    for op in number.path:
        value = _in_shape_of(op, value)
    return value


def _in_shape_of(op: ir.Operation, value: ir.Value) -> ir.Value:
    """Returns i8 values in place of those that an op takes: its view of them, without its arithmetic."""
    shape = list(ir.ShapedType(op.results[0].type).shape)
    if op.name in TENSOR_RESHAPES:
        type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
        return ir.Operation.create(
            op.name, results=[type_], operands=[value, *list(op.operands)[1:]], attributes=attributes_of(op)
        ).results[0]
    item = bodies.structured(op)
    (place,) = [place for place, operand in enumerate(item.inputs) if isinstance(number_of(operand), ShiftedNumber)]
    maps = indexing_maps(op)
    if maps[place] == maps[-1]:
        return value
    generic, body = create_generic([value], [_empty(shape, "i8")], [maps[place], maps[-1]])
    with ir.InsertionPoint(body):
        _yield(body.arguments[0])
    return generic.results[0]


def _contraction(item: bodies.Structured, factors: Sequence[ShiftedFactor], stored: Sequence[ir.Value]) -> ir.Value:
    """Returns the sums of products of i8 values; by a named op where there was one."""
    name = item.op.name.replace("quantized_", "")
    (output,) = item.outputs
    if name in ("linalg.matmul", "linalg.batch_matmul"):
        attributes = {"indexing_maps": item.op.attributes["indexing_maps"]} if name == item.op.name else {}
        return create_named_op(name, stored, output, attributes).results[0]
    count = len(item.sizes)
    maps = [_map(count, factor.loops) for factor in factors]
    generic, body = create_generic(stored, [output], [*maps, _map(count, item.maps[-1])])
    with ir.InsertionPoint(body):
        a, b, so_far = body.arguments
        product = arith.muli(_extended(a), _extended(b))
        _yield(arith.addi(so_far, product))
    return generic.results[0]


def _term(item: bodies.Structured, factor: ShiftedFactor, stored: ir.Value, zero: int, scale: int) -> ir.Value | None:
    """Returns the sums of a factor's elements, less its zero point, times the zero point of the other factor.

    None represents a factor of 0.
    """
    if scale == 0:
        return None
    loops = _kept(item, factor)
    order = loops + [loop for loop in factor.loops if loop is not None and loop not in loops]
    source = _map(len(order), [None if loop is None else order.index(loop) for loop in factor.loops])
    empty = _empty([item.sizes[loop] for loop in loops], SUMS)
    zeros = create_named_op("linalg.fill", [_integer(0)], empty).results[0]
    generic, body = create_generic([stored], [zeros], [source, _map(len(order), range(len(loops)))])
    with ir.InsertionPoint(body):
        value, so_far = body.arguments
        value = _extended(value)
        value = arith.subi(value, _integer(zero)) if zero else value
        _yield(arith.addi(so_far, arith.muli(value, _integer(scale))))
    return generic.results[0]


def _corrected(
    item: bodies.Structured, product: ir.Value, corrections: Sequence[tuple[ShiftedFactor, ir.Value]]
) -> ir.Value:
    """Returns the product less the corrections."""
    loops = item.maps[-1]
    rank = len(loops)
    maps = [
        _map(rank, [place for place, loop in enumerate(loops) if loop is not None and loop in factor.loops])
        for factor, _ in corrections
    ]
    identity = ir.AffineMap.get_identity(rank)
    empty = _empty(list(ir.ShapedType(product.type).shape), SUMS)
    generic, body = create_generic([product, *(term for _, term in corrections)], [empty], [identity, *maps, identity])
    with ir.InsertionPoint(body):
        value, *terms, _ = body.arguments
        for term in terms:
            value = arith.subi(value, term)
        _yield(value)
    return generic.results[0]


def _map(count: int, loops: Iterable[int | None]) -> ir.AffineMap:
    zero = ir.AffineExpr.get_constant(0)
    return ir.AffineMap.get(count, 0, [zero if loop is None else ir.AffineExpr.get_dim(loop) for loop in loops])


def _empty(shape: list[int], element: str) -> ir.Value:
    type_ = ir.RankedTensorType.get(shape, ir.Type.parse(element))
    return ir.Operation.create("tensor.empty", results=[type_]).results[0]


def _integer(value: int) -> ir.Value:
    """Returns a constant of the type of the sums, in which values wrap."""
    half = 1 << 31
    return arith.constant(ir.Type.parse(SUMS), (value + half) % (2 * half) - half)


def _extended(value: ir.Value, is_unsigned: bool = False) -> ir.Value:
    """Returns an integer in the type of sums."""
    type_ = ir.Type.parse(SUMS)
    return value if value.type == type_ else (arith.extui if is_unsigned else arith.extsi)(type_, value)


def _yield(value: ir.Value) -> None:
    ir.Operation.create("linalg.yield", operands=[value])
