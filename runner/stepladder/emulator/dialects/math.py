"""math: elementary functions, computed in float64 and rounded once to the op's type.

Hardware approximations (`ex2.approx` and others) are less exact; no op of this dialect lowers to them here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np

from stepladder.emulator.core.elements import (
    plain,
    rounded,
    rounded_sum,
    signed,
    unsigned,
    wrapped,
)
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.registry import executes
from stepladder.emulator.core.values import Value


def _function(function: Callable) -> Callable:
    """Returns what executes an op on floating-point numbers, given the function on float64."""

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        return rounded(
            function(*[np.asarray(operand).astype(np.float64) for operand in operands]), op.result_types[0].element
        )

    return execute


_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _round_away(value: Value) -> Value:
    integral = np.trunc(value)
    return integral + np.copysign(np.abs(value - integral) >= 0.5, value)


for _name, _numpy in {
    "absf": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _erf,
    "erfc": _erfc,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "powf": np.float_power,  # np.power takes the square root for a scalar exponent of 0.5, of -inf a NaN
    "round": _round_away,
    "roundeven": np.rint,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "fpowi": np.power,
    "clampf": lambda value, low, high: np.maximum(np.minimum(value, high), low),  # as upstream expands it
}.items():
    executes(f"math.{_name}")(_function(_numpy))


@executes("math.sincos")
def sincos(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The sine and the cosine."""
    value = np.asarray(value).astype(np.float64)
    return tuple(rounded(function(value), op.result_types[0].element) for function in (np.sin, np.cos))


def exact_fma(left: float, right: float, addend: float) -> float:
    """Returns a product plus an addend, rounded once.

    Args:
        left, right: the factors.
        addend: the value that is added.
    """
    if not all(map(math.isfinite, (left, right, addend))):
        return left * right + addend
    try:
        exact = Fraction(left) * Fraction(right) + Fraction(addend)
        return float(exact) if exact else left * right + addend
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@executes("math.fma")
def fma(fiber: Fiber, op: Instruction, left: Value, right: Value, addend: Value) -> Value:
    """A product and a sum, rounded once."""
    element = op.result_types[0].element
    left, right, addend = (np.asarray(operand).astype(np.float64) for operand in (left, right, addend))
    if element.name == "f64":
        return plain(np.vectorize(exact_fma, otypes=[np.float64])(left, right, addend))
    # The product of two narrower values is exact in float64.
    return rounded_sum(left * right, addend, element)


def _is(function: Callable) -> Callable:
    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        return plain(function(np.asarray(value).astype(np.float64)))

    return execute


executes("math.isfinite")(_is(np.isfinite))
executes("math.isinf")(_is(np.isinf))
executes("math.isnan")(_is(np.isnan))


@executes("math.isnormal")
def isnormal(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """Whether a value is neither zero, subnormal, infinite nor NaN."""
    value = np.asarray(value)
    smallest = float((np.finfo if value.dtype.kind == "f" else ml_dtypes.finfo)(value.dtype).smallest_normal)
    size = np.abs(value.astype(np.float64))
    return plain((size >= smallest) & np.isfinite(size))


# Integers.


@executes("math.absi")
def absi(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The absolute value; the minimum wraps to itself."""
    element = op.result_types[0].element
    return wrapped(abs(signed(value, element.width)), element)


@executes("math.ipowi")
def ipowi(fiber: Fiber, op: Instruction, base: Value, exponent: Value) -> Value:
    """An integer to the power of another, wrapped; a negative power of other than 1 and -1 is 0."""
    element = op.result_types[0].element
    modulus = 1 << element.width

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return base ** (-exponent % 2) if abs(base) == 1 else 0
        return wrapped(pow(base, exponent, modulus), element)

    if not isinstance(base, np.ndarray) and not isinstance(exponent, np.ndarray):
        return power(base, exponent)
    return wrapped(np.vectorize(power, otypes=[np.int64])(base, exponent), element)


def _bits(function: Callable) -> Callable:
    """Returns what executes an op on the bits of an integer, given as a text of 0 and 1."""

    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        element = op.result_types[0].element

        def count(number: int) -> int:
            return function(f"{int(number):0{element.width}b}")

        value = unsigned(value, element.width)
        if not isinstance(value, np.ndarray):
            return wrapped(count(value), element)
        return wrapped(np.vectorize(count, otypes=[np.int64])(value), element)

    return execute


executes("math.ctpop")(_bits(lambda text: text.count("1")))
executes("math.ctlz")(_bits(lambda text: len(text) - len(text.lstrip("0"))))
executes("math.cttz")(_bits(lambda text: len(text) - len(text.rstrip("0"))))
