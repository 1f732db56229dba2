"""Elements of i8 less a zero point, as front ends write quantized operands in wider integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.reshapes import TENSOR_RESHAPES
from stepladder.mlir.traverse import producer
from stepladder.payload.front import bodies
from stepladder.runtime.errors import StepladderError

SUMS = "i32"  # the type in which products of i8 are summed
_CASTS = ("arith.extsi", "arith.extui")
# Ops of bodies that keep such elements what they are, or add to their offset.
_SHIFTS = (*_CASTS, "arith.addi", "arith.subi")
SIGN = -128  # of i8; exchanging this bit makes an integer from 0 to 255 one from -128 to 127


@dataclass(frozen=True)
class ShiftedNumber:
    """i8 values and an offset.

    Attributes:
        source: the tensor of i8.
        offset: what is added to each of its elements.
        is_unsigned: whether elements are from 0 to 255.
        path: ops that make of the source what an operand is: views, and elementwise ops that add the offset.
    """

    source: ir.Value
    offset: int = 0
    is_unsigned: bool = False
    path: tuple[ir.Operation, ...] = ()

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest value."""
        least = 0 if self.is_unsigned else SIGN
        return least + self.offset, least + 255 + self.offset


@dataclass(frozen=True)
class ZeroPoint:
    """A zero point that is no constant: a scalar or a tensor of integers of up to 32 bits, and the loops along its
    axes, None for an index of 0; none of them is summed over. The numbers of an unsigned one are not negative."""

    value: ir.Value
    loops: tuple[int | None, ...]
    is_unsigned: bool = False


@dataclass(frozen=True)
class ShiftedFactor:
    """A factor of a contraction: what it is, the loops along its axes, None for an index of 0, and what the body
    subtracts from it, beside constants."""

    number: ShiftedNumber
    loops: tuple[int | None, ...]
    zero: ZeroPoint | None = None


# i8 values and an offset, a constant, or None for anything else.
Known = ShiftedNumber | int | None


def factors_of(item: bodies.Structured) -> tuple[ShiftedFactor, ShiftedFactor] | None:
    """Returns what a contraction in i32 multiplies; None for another op, and for other factors.

    Args:
        item: a linalg op in its generic form.
    """
    op = item.op
    if len(item.outputs) != 1 or len(op.results) != 1 or not bodies.reduces(item):
        return None
    total = producer(item.yields[0])
    if total is None or total.name != "arith.addi" or str(item.yields[0].type) != SUMS:
        return None
    terms = [operand for operand in total.operands if operand != item.block.arguments[len(item.inputs)]]
    product = producer(terms[0]) if len(terms) == 1 else None
    if product is None or product.name != "arith.muli":
        return None
    known: dict[ir.Value, Known] = {
        argument: number_of(value) for argument, value in zip(item.block.arguments, item.inputs)
    }
    factors: list[ShiftedFactor] = []
    for factor in product.operands:
        operand, zero = _less_zero_point(item, factor, known)
        number = _scalar(operand, known)
        arguments = list(item.block.arguments)[: len(item.inputs)]
        tensors = [argument for argument in arguments if isinstance(known[argument], ShiftedNumber)]
        places = [arguments.index(argument) for argument in tensors if _reads(operand, argument)]
        if not isinstance(number, ShiftedNumber) or len(places) != 1:
            return None
        factors.append(ShiftedFactor(number, tuple(item.maps[places[0]]), zero))
    reductions = [{loop for loop in factor.loops if loop is not None} - set(item.maps[-1]) for factor in factors]
    return (factors[0], factors[1]) if reductions[0] == reductions[1] else None


def _less_zero_point(
    item: bodies.Structured, value: ir.Value, known: Mapping[ir.Value, Known]
) -> tuple[ir.Value, ZeroPoint | None]:
    """Returns what a factor is without the zero point that its body subtracts last, and this one; the factor itself,
    and None, where it subtracts none that is read from an input and the same for all products of a sum."""
    op = producer(value)
    if op is None or op.name != "arith.subi" or str(value.type) != SUMS:
        return value, None
    number, zero = op.operands
    casts: list[str] = []
    while (cast := producer(zero)) is not None and cast.name in _CASTS:
        casts.append(cast.name)
        zero = cast.operands[0]
    is_unsigned = casts[-1:] == ["arith.extui"]  # the first cast, after which the others extend by zeros
    if not is_unsigned and "arith.extui" in casts:
        return value, None
    inputs = list(item.block.arguments)[: len(item.inputs)]
    if producer(zero) is None and ir.BlockArgument(zero).owner != item.block:  # an argument of the function
        return number, ZeroPoint(zero, (), is_unsigned)
    if zero not in inputs or isinstance(known[zero], int):
        return value, None
    place = next(number for number, input_ in enumerate(inputs) if input_ == zero)
    loops = tuple(item.maps[place])
    if not {loop for loop in loops if loop is not None} <= set(item.maps[-1]):
        return value, None
    return number, ZeroPoint(item.inputs[place], loops, is_unsigned)


def _reads(value: ir.Value, argument: ir.Value) -> bool:
    """Returns whether a value of a body depends on an argument of it."""
    seen: set[ir.Value] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value == argument:
            return True
        op = producer(value)
        if op is not None and value not in seen:
            waiting += op.operands
        seen.add(value)
    return False


def number_of(value: ir.Value) -> Known:
    """Returns what a tensor or a scalar of a function is: i8 values and an offset, or copies of a constant.

    Args:
        value: on tensors.

    Returns:
        The values or the constant; None where it is something else.
    """
    if not isinstance(value.type, ir.RankedTensorType):
        return _constant(value)
    op = producer(value)
    constant = _copies(value)
    if constant is not None:
        return constant
    if str(value.type.element_type) == "i8" or op is None:
        return ShiftedNumber(value) if str(value.type.element_type) == "i8" else None
    if op.name in TENSOR_RESHAPES:
        inner = number_of(op.operands[0])
        return replace(inner, path=(*inner.path, op)) if isinstance(inner, ShiftedNumber) else None
    item = elementwise(op)
    if item is None:
        return None
    known: dict[ir.Value, Known] = {
        argument: number_of(operand) for argument, operand in zip(item.block.arguments, item.inputs)
    }
    number = _scalar(item.yields[0], known)
    return replace(number, path=(*number.path, op)) if isinstance(number, ShiftedNumber) else None


def elementwise(op: ir.Operation) -> bodies.Structured | None:
    """Returns an op on tensors that makes each element of one result once; None for another one.

    Args:
        op: any op.
    """
    if not op.name.startswith("linalg.") or len(op.regions) != 1 or op.name == "linalg.fill":
        return None
    try:
        item = bodies.structured(op)
    except StepladderError:
        return None
    return item if bodies.is_elementwise(item) and not bodies.reads_output(item) else None


def _copies(value: ir.Value) -> int | None:
    """Returns the value that all elements of a tensor are; None where it is not known."""
    op = producer(value)
    if op is None:
        return None
    if op.name in ("linalg.fill", "linalg.broadcast", *TENSOR_RESHAPES):
        source = op.operands[0]
        return _copies(source) if isinstance(source.type, ir.RankedTensorType) else _constant(source)
    return _constant(value)


def _constant(value: ir.Value) -> int | None:
    """Returns the integer of a constant, a scalar or a splat tensor of it; None for another value."""
    number = constant_number(value)
    return number.value if isinstance(number, ir.IntegerAttr) else None


def _scalar(value: ir.Value, known: dict[ir.Value, Known]) -> Known:
    """Returns what a value of a body is, None where it is something else.

    Args:
        value: of the body.
        known: what values of it are, with those of the arguments; other values are added, which several ops may read.
    """
    if value not in known:
        known[value] = _computed(value, known)
    return known[value]


def _computed(value: ir.Value, known: dict[ir.Value, Known]) -> Known:
    op = producer(value)
    if op is None:
        return None
    if op.name == "arith.constant":
        return _constant(value)
    if op.name not in _SHIFTS:
        return None
    operands = [_scalar(operand, known) for operand in op.operands]
    match op.name, operands:
        case ("arith.extsi", (ShiftedNumber() | int() as inner,)):
            return inner
        case ("arith.extui", (ShiftedNumber() as inner,)):
            if inner.bounds[0] >= 0:
                return inner
            is_stored = str(op.operands[0].type) == "i8" and not inner.offset and not inner.is_unsigned
            return replace(inner, is_unsigned=True) if is_stored else None
        case ("arith.extui", (int() as inner,)):
            return inner if inner >= 0 else None
        case ("arith.addi", (ShiftedNumber() as number, int() as shift) | (int() as shift, ShiftedNumber() as number)):
            return _shifted(number, shift, value)
        case ("arith.subi", (ShiftedNumber() as number, int() as shift)):
            return _shifted(number, -shift, value)
        case _:
            return None


def _shifted(number: ShiftedNumber, shift: int, value: ir.Value) -> ShiftedNumber | None:
    """Returns values with another offset; None where the type of the value does not hold them all."""
    shifted = replace(number, offset=number.offset + shift)
    limit = 1 << ir.IntegerType(value.type).width - 1
    is_wide = str(value.type) == SUMS  # wraps as the sums do
    return shifted if is_wide or (-limit <= shifted.bounds[0] and shifted.bounds[1] < limit) else None
