"""Integers without a sign as integers of the same bits: ops that depend on the sign become others.

Results and arguments of a payload change their types; what they hold stays.
"""

from __future__ import annotations

from collections.abc import Callable

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.traverse import attributes_of, walk
from stepladder.payload.stablehlo.builder import Tensor, constant, created, where
from stepladder.runtime.errors import StepladderError

_PASS = "builtin.module(stablehlo-convert-to-signless)"
_WIDE = 64


def rewrite(module: ir.Module) -> None:
    """Replaces ops on integers without a sign, and their types.

    Args:
        module: with functions of StableHLO.

    Raises:
        StepladderError: an op on such integers that is not computed, such as a product of those of 64 bits.
    """
    _widen_indices(module)
    is_found = False
    for op in walk(module, *(f"stablehlo.{each}" for each in _REPLACED)):
        types = [_integer(value) for value in (*op.operands, *op.results)]
        if not any(type_ is not None and type_.is_unsigned for type_ in types):
            continue
        is_found = True
        with ir.InsertionPoint(op), op.location:
            replacement = _REPLACED[op.name.removeprefix("stablehlo.")](op)
        if replacement is None:
            raise StepladderError(
                f"'{op.name}' of integers without a sign, of {op.operands[0].type}",
                location=location_text(op.location),
                notes=["accepted: factors of up to 32 bits, and ui64 in elementwise ops"],
            )
        op.results[0].replace_all_uses_with(replacement.value)
        op.erase()
    for op in walk(module):
        types = [_integer(value) for value in (*op.operands, *op.results)]
        if any(type_ is not None and type_.is_unsigned for type_ in types):
            is_found = True
            if op.name.startswith("stablehlo.") and op.name.removeprefix("stablehlo.") not in _OF_BITS:
                raise StepladderError(
                    f"'{op.name}' of integers without a sign",
                    location=location_text(op.location),
                    notes=["accepted: x.astype(jnp.int32) or x.astype(jnp.float32) before it"],
                )
    if is_found:
        passmanager.PassManager.parse(_PASS).run(module.operation)


def _widen_indices(module: ir.Module) -> None:
    """Gives ops that read or write at indices without a sign indices of 64 bits."""
    for op in walk(module, *(f"stablehlo.{each}" for each in _FIRST_INDICES)):
        first, count = _FIRST_INDICES[op.name.removeprefix("stablehlo.")]
        for number in range(first, len(op.operands) if count is None else first + count):
            type_ = _integer(op.operands[number])
            if type_ is None or not type_.is_unsigned:
                continue
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = _index(Tensor(op.operands[number])).value


def _index(x: Tensor) -> Tensor:
    """Returns indices without a sign in 64 bits; those that are longer are beyond all arrays."""
    wide = _widened(x)
    if wide is not None:
        return wide
    signed = _signed(x)
    return where(signed < 0, (1 << (_WIDE - 1)) - 1, signed)


def _integer(value: ir.Value) -> ir.IntegerType | None:
    type_ = Tensor(value).element if isinstance(value.type, ir.RankedTensorType) else None
    return type_ if isinstance(type_, ir.IntegerType) else None


def _signed(x: Tensor) -> Tensor:
    """Returns the bits as integers with a sign."""
    return x.convert(ir.IntegerType.get_signless(ir.IntegerType(x.element).width))


def _flipped(x: Tensor) -> Tensor:
    """Returns integers with a sign, in the order of those without one."""
    signed = _signed(x)
    return signed ^ constant(-(1 << (ir.IntegerType(signed.element).width - 1)), x.shape, signed.element)


def _widened(x: Tensor) -> Tensor | None:
    """Returns the integers in 64 bits; None for those that are as long."""
    width = ir.IntegerType(x.element).width
    if width >= _WIDE:
        return None
    wide = _signed(x).convert(ir.IntegerType.get_signless(_WIDE))
    return wide & constant((1 << width) - 1, x.shape, wide.element)


def _compared(op: ir.Operation) -> Tensor:
    x, y = (_flipped(Tensor(operand)) for operand in op.operands)
    direction = op.attributes["comparison_direction"]
    return Tensor(created("stablehlo.compare", op.results[0].type, x.value, y.value, comparison_direction=direction))


def _converted(op: ir.Operation) -> Tensor:
    """Returns a conversion from or to integers without a sign."""
    x, wanted = Tensor(op.operands[0]), Tensor(op.results[0]).element
    source = _integer(op.operands[0])
    if source is not None and source.is_unsigned:
        to_bits = isinstance(wanted, ir.IntegerType) and wanted.width <= source.width
        if to_bits:
            # Of one bit, which holds whether a number is not 0.
            width = ir.IntegerType(wanted).width
            return _signed(x).convert(ir.IntegerType.get_signless(width)).convert(wanted)
        if not isinstance(wanted, ir.IntegerType):
            return _cast("arith.uitofp", _signed(x), wanted)
        return _cast("arith.extui", _signed(x), ir.IntegerType.get_signless(wanted.width)).convert(wanted)
    width = ir.IntegerType(wanted).width
    if source is not None:
        return x.convert(ir.IntegerType.get_signless(width)).convert(wanted)
    if width >= _WIDE:
        return _cast("arith.fptoui", x, ir.IntegerType.get_signless(width)).convert(wanted)
    whole = x.convert(ir.IntegerType.get_signless(_WIDE))
    return whole.convert(ir.IntegerType.get_signless(width)).convert(wanted)


def _cast(name: str, x: Tensor, element: ir.Type) -> Tensor:
    """Returns a cast of upstream's arithmetic, whose integers have a sign in the op."""
    return Tensor(created(name, ir.RankedTensorType.get(x.shape, element), x.value))


def _divided(op: ir.Operation) -> Tensor:
    """Returns a quotient or remainder, of 64 bits."""
    x, y = (Tensor(operand) for operand in op.operands)
    name, wide_x, wide_y = op.name.removeprefix("stablehlo."), _widened(x), _widened(y)
    if wide_x is None or wide_y is None:
        return _divided_in_wide(_signed(x), _signed(y), name).convert(x.element)
    width = ir.IntegerType(x.element).width
    return wide_x.combined(name, wide_y).convert(ir.IntegerType.get_signless(width)).convert(x.element)


def _divided_in_wide(x: Tensor, y: Tensor, name: str) -> Tensor:
    """Returns a quotient or remainder of bits that are integers without a sign: by 0, all bits, or the dividend."""
    by_zero = y.equals(0)
    upstream = "arith.divui" if name == "divide" else "arith.remui"
    result = created(upstream, x.value.type, x.value, where(by_zero, 1, y).value)
    return where(by_zero, -1 if name == "divide" else x, Tensor(result))


def _extremum(is_largest: bool) -> Callable[[ir.Operation], Tensor]:
    def extremum(op: ir.Operation) -> Tensor:
        x, y = (Tensor(operand) for operand in op.operands)
        is_greater = _flipped(x) > _flipped(y)
        return where(is_greater, x, y) if is_largest else where(is_greater, y, x)

    return extremum


def _clamped(op: ir.Operation) -> Tensor:
    low, x, high = (Tensor(operand) for operand in op.operands)
    low, high = (item if item.shape == x.shape else item.expand(x.shape, []) for item in (low, high))
    x = where(_flipped(x) < _flipped(low), low, x)
    return where(_flipped(x) > _flipped(high), high, x)


def _multiplied(op: ir.Operation) -> Tensor | None:
    """Returns a product of integers, of which one or both have no sign; None for those of 64 bits."""
    result = Tensor(op.results[0])
    type_ = result.element
    sums = ir.IntegerType.get_signless(type_.width) if isinstance(type_, ir.IntegerType) else type_
    factors = [_factor(Tensor(operand), sums) for operand in op.operands]
    values = [factor.value for factor in factors if factor is not None]
    if len(values) < len(factors):
        return None
    wide = ir.RankedTensorType.get(result.shape, sums)
    return Tensor(created(op.name, wide, *values, **attributes_of(op))).convert(type_)


def _factor(x: Tensor, sums: ir.Type) -> Tensor | None:
    """Returns the elements of a factor in the type of the sums; None for those of 64 bits.

    Sums of integers wrap. Integers of fewer bits than these are signed integers with a zero point: matrix units
    multiply those of i8.
    """
    type_ = ir.IntegerType(x.element)
    if type_.width >= _WIDE:
        return None
    if not type_.is_unsigned:
        return x.convert(sums)
    if not isinstance(sums, ir.IntegerType):
        wide = _widened(x)
        return None if wide is None else wide.convert(sums)
    if type_.width >= sums.width:
        return _signed(x).convert(sums)
    return _flipped(x).convert(sums) + (1 << (type_.width - 1))


_REPLACED: dict[str, Callable[[ir.Operation], Tensor | None]] = {
    "compare": _compared,
    "convert": _converted,
    "divide": _divided,
    "remainder": _divided,
    "maximum": _extremum(True),
    "minimum": _extremum(False),
    "clamp": _clamped,
    "dot_general": _multiplied,
}
# The first operand that has indices, and how many there are; None for all that follow.
_FIRST_INDICES: dict[str, tuple[int, int | None]] = {
    "gather": (1, 1),
    "scatter": (1, 1),
    "dynamic_slice": (1, None),
    "dynamic_update_slice": (2, None),
}
# Ops that compute the same bits with a sign or without one, where those above are replaced.
_OF_BITS = frozenset(
    (
        *("add", "and", "bitcast_convert", "broadcast_in_dim", "concatenate", "constant", "convert", "gather", "iota"),
        *("dynamic_slice", "dynamic_update_slice", "multiply", "negate", "not", "or", "pad", "reduce", "reduce_window"),
        *("reshape", "return", "reverse", "scatter", "select", "shift_left", "shift_right_logical", "slice", "sort"),
        *("subtract", "transpose", "xor"),
    )
)
