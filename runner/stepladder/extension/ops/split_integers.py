"""`tc.split_integers`: products of wider integers become sums of products of their i8 digits."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.products import is_product, layout_sources
from stepladder.extension.lib.multi_kernel.stages import inner_ops, is_elementwise, is_structured, one_function
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps
from stepladder.mlir.reshapes import TENSOR_RESHAPES
from stepladder.mlir.traverse import attributes_of, producer
from stepladder.payload.front import bodies
from stepladder.payload.rewrites import zero_points
from stepladder.payload.rewrites.inlined_zero_points import inlined
from stepladder.runtime.errors import StepladderError

_DIGIT_BITS = 8
_SIGN = -128  # of a digit with a sign
_SUMS_BITS = 32  # in which matrix units sum products of digits
_WIDEST_BITS, _WIDEST_SUMS_BITS = 32, 64
_SIGNED, _UNSIGNED = "arith.extsi", "arith.extui"
_CASTS = (_SIGNED, _UNSIGNED, "arith.trunci")


class SplitIntegers(Tc.Operation, name="split_integers"):
    """Replaces products of integers that no matrix unit multiplies by products of i8.

    An integer of 16 or 32 bits is a sum of digits of 8 bits, times powers of 256, and a product of two is the sum of
    the products of their digits. Each of these is a contraction of i8 in i32 like the given one; elementwise ops
    between them shift the sum so far to the next digit and add, so that a kernel of a contraction has them as its
    epilogue.

    Where an operand has as many bits as the sums, which wrap, its digits are from -128 to 127: those of x are the bytes
    of x + 0x8080..., less 128. Where it has fewer bits, it is extended: its highest digit has its sign, and the others
    are from 0 to 255, which the body extends without a sign. Digits of which the product is a multiple of what sums
    wrap at are left out. Narrower sums are computed in i32 and cut off. Sums of 64 bits add those of 32, which must not
    wrap. Integers of less than 8 bits are extended. Where elementwise ops in front extend an operand, its digits are
    those of the narrow values; views and transposes between are created again.

    Operands: a handle to a module with one public function on tensors.
    Refuses: sums in i64 of so many products that the sums of the products of their digits may exceed i32.
    """

    target: Handle


class _Factor(NamedTuple):
    """A factor of a product: the operand, its bits, and whether it is extended with its sign."""

    value: ir.Value
    bits: int
    is_signed: bool


class _Digit(NamedTuple):
    """A tensor of i8, the bits that its elements are shifted by, and whether they have a sign."""

    value: ir.Value
    shift: int
    is_signed: bool


@transform_op(SplitIntegers)
def split_integers(payload: ir.Operation, op: SplitIntegers, rewriter: Rewriter) -> None:
    """Rewrites the products of the function below `payload`; see the op."""
    for product in operations_of(one_function(payload).regions[0].blocks[0]):
        factors = _factors_of(product) if is_product(product) and is_structured(product) else None
        if factors is None or inlined(bodies.structured(product)) is not None:
            continue
        with ir.InsertionPoint(product), product.location:
            result = _split(product, [_narrowed(factor) for factor in factors])
        rewriter.replace_op(product, [result])


def _bits(value: ir.Value) -> int | None:
    """Returns the width of the integers of a tensor, or of an integer; None for other types."""
    type_ = value.type.element_type if isinstance(value.type, ir.RankedTensorType) else value.type
    return type_.width if isinstance(type_, ir.IntegerType) else None


def _factors_of(product: ir.Operation) -> tuple[_Factor, _Factor] | None:
    """Returns what a product of integers multiplies; None where matrix units do, and where digits do not help."""
    try:
        item = bodies.structured(product)
    except StepladderError:
        return None
    total = producer(item.yields[0])
    if len(item.inputs) != len("ab") or len(item.yields) != 1 or total is None or total.name != "arith.addi":
        return None
    terms = [operand for operand in total.operands if operand != item.block.arguments[len(item.inputs)]]
    inner = producer(terms[0]) if len(terms) == 1 else None
    if inner is None or inner.name != "arith.muli" or zero_points.factors_of(item) is not None:
        return None
    arguments: list[ir.Value] = [*item.block.arguments[: len(item.inputs)]]
    factors: dict[int, _Factor] = {}  # by the number of the operand: a body may multiply them in either order
    casts = 0
    for operand in inner.operands:
        names, value = [], operand
        while (cast := producer(value)) is not None and cast.name in _CASTS:
            names.append(cast.name)
            value = cast.operands[0]
        bits = _bits(value)
        if len(set(names)) > 1 or value not in arguments or bits is None or bits > _WIDEST_BITS:
            return None
        casts += len(names)
        place = arguments.index(value)
        factors[place] = _Factor(item.inputs[place], bits, _UNSIGNED not in names)
    sums = _bits(item.yields[0])
    is_plain = len(factors) == len(item.inputs) and len(item.body) == casts + 2
    is_known = is_plain and sums is not None and sums <= _WIDEST_SUMS_BITS
    is_multiplied = sums == _SUMS_BITS and _is_extended_before(product)
    return (factors[0], factors[1]) if is_known and not is_multiplied else None


def _is_extended_before(product: ir.Operation) -> bool:
    """Returns whether ops before a product extend both operands from i8, as kernels of matmuls do."""
    sources = (layout_sources(product, [value]) for value in list(product.operands)[:2])
    return all(ops and _bits(ops[-1].operands[0]) == _DIGIT_BITS for ops in sources)


def _narrowed(factor: _Factor) -> _Factor:
    """Returns a factor of what elementwise ops before the product extend, which has fewer digits.

    Views and transposes between are created again, of the narrow integers, at the insertion point.
    """
    views: list[ir.Operation] = []
    narrowest, value = factor, factor.value
    while (op := producer(value)) is not None and len(op.operands):  # a constant has none
        value = op.operands[0]
        if op.name == "linalg.transpose" or op.name in TENSOR_RESHAPES:
            views.append(op)
            continue
        extension, bits = _extension(op), _bits(value)
        # A signed integer that is zero-extended later is another integer.
        if bits is None or extension is None or (extension == _SIGNED and not narrowest.is_signed):
            break
        narrowest = _Factor(_viewed(value, views), bits, extension == _SIGNED)
    return narrowest


def _viewed(value: ir.Value, views: Sequence[ir.Operation]) -> ir.Value:
    """Creates views and transposes of a tensor, at the insertion point; returns the last.

    Args:
        value: the tensor.
        views: the ops of a tensor of another element type to create again, the last one first.
    """
    element = ir.RankedTensorType(value.type).element_type
    for view in reversed(views):
        type_ = ir.RankedTensorType.get(ir.RankedTensorType(view.results[0].type).shape, element)
        attributes = attributes_of(view)
        if view.name in TENSOR_RESHAPES:
            value = ir.Operation.create(view.name, results=[type_], operands=[value], attributes=attributes).results[0]
        else:
            empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
            value = create_named_op(view.name, [value], empty, {"permutation": attributes["permutation"]}).results[0]
    return value


def _extension(op: ir.Operation) -> str | None:
    """Returns the name of the op by which an elementwise op extends integers, element by element; else None."""
    if not is_elementwise(op) or len(op.operands) != 2 or len({*indexing_maps(op)}) > 1:
        return None
    name, *end = inner_ops(op)
    return name if name in (_SIGNED, _UNSIGNED) and end == ["linalg.yield"] else None


def _elementwise(type_: ir.Type, inputs: Sequence[ir.Value], compute: Callable[..., ir.Value]) -> ir.Value:
    """Returns a tensor whose elements are computed from those of others of its shape, at the insertion point."""
    shape = ir.RankedTensorType(inputs[0].type).shape
    empty = ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, type_)]).results[0]
    identity = ir.AffineMap.get_identity(len(shape))
    generic, body = create_generic(inputs, [empty], [identity] * (len(inputs) + 1))
    with ir.InsertionPoint(body):
        numbers = list(body.arguments)[: len(inputs)]
        ir.Operation.create("linalg.yield", operands=[compute(*numbers)])
    return generic.results[0]


def _number(type_: ir.Type, value: int) -> ir.Value:
    """Creates an integer, which wraps."""
    half = 1 << (ir.IntegerType(type_).width - 1)
    return arith.constant(type_, (value + half) % (2 * half) - half)


def _digits(factor: _Factor, sums_bits: int) -> list[_Digit]:
    """Returns the digits of an operand, the lowest first."""
    byte = ir.IntegerType.get_signless(_DIGIT_BITS)
    if factor.bits == _DIGIT_BITS:
        return [_Digit(factor.value, 0, factor.is_signed)]
    if factor.bits < _DIGIT_BITS:
        return [_Digit(_elementwise(byte, [factor.value], lambda x: _extended(x, byte, factor)), 0, is_signed=True)]
    wraps = factor.bits >= sums_bits
    bits = min(factor.bits, sums_bits)
    bias = sum(1 << (place + _DIGIT_BITS - 1) for place in range(0, bits, _DIGIT_BITS))

    def digit(x: ir.Value, shift: int) -> ir.Value:
        if wraps:
            x = arith.addi(x, _number(x.type, bias))
        part = arith.trunci(byte, arith.shrui(x, _number(x.type, shift)) if shift else x)
        return arith.xori(part, _number(byte, _SIGN)) if wraps else part

    return [
        _Digit(
            _elementwise(byte, [factor.value], lambda x, shift=shift: digit(x, shift)),
            shift,
            wraps or (factor.is_signed and shift + _DIGIT_BITS >= bits),
        )
        for shift in range(0, bits, _DIGIT_BITS)
    ]


def _extended(x: ir.Value, byte: ir.Type, factor: _Factor) -> ir.Value:
    """Returns a number of less than 8 bits as one of i8; no `arith.extsi`, which kernels of matmuls would take for
    theirs."""
    x, distance = arith.extui(byte, x), _DIGIT_BITS - factor.bits
    return arith.shrsi(arith.shli(x, _number(byte, distance)), _number(byte, distance)) if factor.is_signed else x


def _split(product: ir.Operation, factors: Sequence[_Factor]) -> ir.Value:
    """Creates the products of digits and their sum, at the insertion point; returns it."""
    sums_type = ir.RankedTensorType(product.results[0].type).element_type
    bits = sums_type.width
    left, right = (_digits(factor, bits) for factor in factors)
    pairs = [(a, b) for a in left for b in right if a.shift + b.shift < bits]
    pairs.sort(key=lambda pair: -(pair[0].shift + pair[1].shift))
    _check_sums(product, bits, pairs)
    wide = sums_type if bits > _SUMS_BITS else ir.IntegerType.get_signless(_SUMS_BITS)
    shifts = [a.shift + b.shift for a, b in pairs]
    total: ir.Value | None = None
    for (a, b), shift, lower in zip(pairs, shifts, [*shifts[1:], 0]):
        total = _added(wide, total, _contraction(product, a, b), shift - lower)
    assert total is not None  # the lowest digits of both
    initial = product.operands[2]
    starts_from_zero = _is_zero(initial)
    if wide == sums_type and starts_from_zero:
        return total

    def finished(x: ir.Value, *start: ir.Value) -> ir.Value:
        x = x if wide == sums_type else arith.trunci(sums_type, x)
        return arith.addi(x, start[0]) if start else x

    return _elementwise(sums_type, [total] if starts_from_zero else [total, initial], finished)


def _check_sums(product: ir.Operation, bits: int, pairs: Sequence[tuple[_Digit, _Digit]]) -> None:
    """Refuses sums of 64 bits where sums of products of digits may wrap."""
    item = bodies.structured(product)
    count = math.prod(size for loop, size in enumerate(item.sizes) if loop not in item.maps[-1])
    largest = max((128 if a.is_signed else 255) * (128 if b.is_signed else 255) for a, b in pairs)
    limit = ((1 << (_SUMS_BITS - 1)) - 1) // largest
    if bits > _SUMS_BITS and count > limit:
        raise Refusal(
            product,
            f"sums in i{bits} of {count} products; accepted: up to {limit}, of which matrix units compute sums of "
            f"digits in i{_SUMS_BITS}",
        )


def _contraction(product: ir.Operation, a: _Digit, b: _Digit) -> ir.Value:
    """Returns the sums of products of two digits, in i32."""
    sums = ir.IntegerType.get_signless(_SUMS_BITS)
    shape = ir.RankedTensorType(product.results[0].type).shape
    empty = ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, sums)]).results[0]
    zeros = create_named_op("linalg.fill", [_number(sums, 0)], empty).results[0]
    generic, body = create_generic([a.value, b.value], [zeros], indexing_maps(product))
    with ir.InsertionPoint(body):
        x, y = (
            (arith.extsi if digit.is_signed else arith.extui)(sums, number)
            for digit, number in zip((a, b), body.arguments)
        )
        total = arith.addi(body.arguments[2], arith.muli(x, y))
        ir.Operation.create("linalg.yield", operands=[total])
    return generic.results[0]


def _added(wide: ir.Type, total: ir.Value | None, sums: ir.Value, shift: int) -> ir.Value:
    """Returns the sum so far with another one added, shifted to the next digit."""
    if total is None and shift == 0 and _bits(sums) == ir.IntegerType(wide).width:
        return sums

    def compute(x: ir.Value, *so_far: ir.Value) -> ir.Value:
        x = x if x.type == wide else arith.extsi(wide, x)
        x = arith.addi(so_far[0], x) if so_far else x
        return arith.shli(x, _number(wide, shift)) if shift else x

    return _elementwise(wide, [sums] if total is None else [sums, total], compute)


def _is_zero(initial: ir.Value) -> bool:
    """Returns whether sums start from zeros."""
    number = repeated_number(initial)
    return number is not None and number.value == 0
