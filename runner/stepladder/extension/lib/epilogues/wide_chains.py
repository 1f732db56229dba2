"""Functions of 16-bit values, computed in f32 with the arithmetic around them, and rounded once.

Front ends write functions such as GELU as ops on 16-bit values, each of which is rounded. Without the roundings between
them, results have smaller errors, and the function is one that `approximate_math` knows.
"""

from __future__ import annotations

import math

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.epilogues.scalar_ops import constant
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.traverse import producer

_FUNCTIONS = ("math.erf", "math.exp", "math.exp2", "math.tanh")
_ARITHMETIC = ("arith.addf", "arith.divf", "arith.mulf", "arith.negf", "arith.subf", *_FUNCTIONS)
# Relative error of a rounding, at most.
_ROUNDING = {ir.F16Type: 2.0**-12, ir.BF16Type: 2.0**-9}
# Irrational constants of GELU: a 16-bit constant that is the nearest one stands for them.
_EXACT = (math.sqrt(2), math.sqrt(0.5))
_LARGEST = 2.0**16  # divisor, or its reciprocal, whose reciprocal is no subnormal number


def widen(body: ir.Block) -> None:
    """Computes arithmetic on 16-bit values in f32, with casts where other ops make or read them.

    Args:
        body: of an elementwise op; it is changed where it has functions of 16-bit values.
    """
    ops = [op for op in operations_of(body) if op.name in _ARITHMETIC and type(op.results[0].type) in _ROUNDING]
    if not any(op.name in _FUNCTIONS for op in ops):
        return
    wide: dict[ir.Value, ir.Value] = {}
    for op in ops:
        with ir.InsertionPoint(op), op.location:
            for value in op.operands:
                if value not in wide:
                    wide[value] = _widened(value)
            wide[op.results[0]] = _created(op.name, [wide[value] for value in op.operands])
    for op in reversed(ops):
        if list(op.results[0].uses):
            with ir.InsertionPoint(op), op.location:
                rounded = arith.truncf(op.results[0].type, wide[op.results[0]])
            op.results[0].replace_all_uses_with(rounded)
        op.erase()


def _created(name: str, operands: list[ir.Value]) -> ir.Value:
    """Creates an op on f32; that of a division by a constant as a product, whose error is small beside a rounding."""
    divisor = constant_number(operands[1]) if name == "arith.divf" else None
    if isinstance(divisor, ir.FloatAttr) and 1 / _LARGEST <= abs(divisor.value) <= _LARGEST:
        name, operands = "arith.mulf", [operands[0], constant(1 / divisor.value)]
    return ir.Operation.create(name, [ir.F32Type.get()], operands).results[0]


def _widened(value: ir.Value) -> ir.Value:
    """Creates a value in f32."""
    number = _number(value)
    if number is None:
        return arith.extf(ir.F32Type.get(), value)
    rounding = _ROUNDING[type(value.type)]
    return constant(next((exact for exact in _EXACT if abs(number - exact) <= exact * rounding), number))


def _number(value: ir.Value) -> float | None:
    """Returns a constant, or the root of one; None for another value."""
    source = producer(value)
    if source is not None and source.name == "math.sqrt":
        square = _number(source.operands[0])
        return math.sqrt(square) if square is not None and square >= 0 else None
    number = constant_number(value)
    return number.value if isinstance(number, ir.FloatAttr) else None
