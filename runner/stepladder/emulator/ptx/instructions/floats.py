"""Floating-point arithmetic, rounded to nearest, and functions, computed exactly and rounded once.

Approximations of the hardware (`ex2.approx`, `div.full`) are less exact than that.
Source: PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core.elements import rounded, rounded_sum
from stepladder.emulator.dialects.math import exact_fma
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import carries, integers
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_DIRECTED = ("rz", "rm", "rp")
_each_fma = np.vectorize(exact_fma, otypes=[np.float64])


def emit(site: Site, function: Callable, type_: PtxType, operands: int, *, keeps_nan: bool = False) -> None:
    """Emits the computation of floating-point values of a type from others, rounded to nearest.

    Args:
        site: the instruction, with its modifiers `ftz`, `sat`, `relu` and `rn`; the tables of forms have checked it.
        function: of arrays or NumPy's scalars.
        type_: of operands and the result.
        operands: how many are read.
        keeps_nan: whether a NaN is the operand's own, as of `abs`, and not the canonical one.
    """
    site.count(1 + operands)
    site.flag("rn")
    flushes, saturates, clamps = site.flag("ftz"), site.flag("sat"), site.flag("relu")

    def execute(fiber: Fiber, op: Instruction, *values: Value) -> Value:
        numbers = [types.floats(value, type_) for value in values]
        if flushes:
            numbers = [types.flushed(number) for number in numbers]
        result = np.asarray(function(*numbers)).astype(type_.dtype, copy=False)
        if flushes:
            result = types.flushed(result)
        if saturates:
            result = types.within_one(result).astype(type_.dtype)
        if clamps:
            result = np.where(result < 0, 0, result).astype(type_.dtype)
        if not keeps_nan:
            result = types.with_canonical_nan(result, type_)
        return types.from_floats(result, type_)

    reads = [site.read(1 + number, type_) for number in range(operands)]
    site.emit(execute, reads, [site.write(0, type_.width)])


def _fma(type_: PtxType) -> Callable:
    """Returns what computes a product and a sum, rounded once."""

    def fma(left: Value, right: Value, addend: Value) -> Value:
        left, right, addend = (np.asarray(value).astype(np.float64) for value in (left, right, addend))
        if type_.bits == 64:
            return _each_fma(left, right, addend)
        # Products of two significands of up to 24 bits are exact.
        return rounded_sum(left * right, addend, type_.scalar)

    return fma


def _element(type_: PtxType) -> PtxType:
    return PtxType(type_.name, type_.kind, type_.bits)


@instruction("add", "sub", "mul", "mad", "div", "rem", "min", "max", "neg", "abs", is_pure=True)
def arithmetic(site: Site) -> None:
    """Arithmetic of integers and of floating-point numbers."""
    type_ = site.type()
    if type_.kind in "sub" and type_.count == 1:
        if "cc" in site.rest and site.family in ("add", "sub", "mad"):
            carries.emit(site, type_)
            return
        _OF_INTEGERS[site.family](site, type_)
        return
    if type_.kind in "su":
        integers.pairs(site, type_)
        return
    match site.family:
        case "mad":
            _fused(site, type_)
        case "div":
            site.flag("approx", "full")
            direction = _direction(site, type_)
            emit(site, _directed_quotient(direction[0], type_) if direction else np.divide, type_, 2)
        case "min" | "max":
            _extreme(site, type_)
        case "neg" | "abs":
            emit(site, np.negative if site.family == "neg" else np.abs, type_, 1, keeps_nan=True)
        case _:
            direction = _direction(site, type_)
            if direction:
                function = _DIRECTED_ARITHMETIC[site.family](_directed_fma(direction[0], type_))
            else:
                function = _NEAREST_ARITHMETIC[site.family]
            emit(site, function, type_, 2)


_OF_INTEGERS = {
    "add": integers.add,
    "sub": integers.add,
    "mul": integers.multiply,
    "mad": integers.multiply,
    "div": integers.divide,
    "rem": integers.divide,
    "min": integers.extreme,
    "max": integers.extreme,
    "neg": integers.unary,
    "abs": integers.unary,
}


def _extreme(site: Site, type_: PtxType) -> None:
    of_magnitudes = site.flag("xorsign", "abs")
    spreads = site.flag("NaN")
    functions = {
        ("min", True): np.minimum,
        ("min", False): np.fmin,
        ("max", True): np.maximum,
        ("max", False): np.fmax,
    }
    extremum = _of_signed_zeros(functions[site.family, spreads], site.family)
    emit(site, _with_both_signs(extremum) if of_magnitudes else extremum, type_, 2)


def _with_both_signs(function: Callable) -> Callable:
    """Returns a function of two magnitudes, whose result has the product of the two signs (`.xorsign.abs`)."""

    def extremum(left: Value, right: Value) -> Value:
        magnitude = function(np.abs(left), np.abs(right))
        return np.where(np.signbit(left) != np.signbit(right), np.negative(magnitude), magnitude)

    return extremum


def _of_signed_zeros(function: Callable, family: str) -> Callable:
    """Returns an extremum for which -0 is less than 0, as in PTX; NumPy takes the first of two zeros."""
    combine_signs = np.bitwise_or if family == "min" else np.bitwise_and

    def extremum(left: Value, right: Value) -> Value:
        left, right = np.asarray(left), np.asarray(right)
        result = np.asarray(function(left, right))
        negative = combine_signs(np.signbit(left), np.signbit(right))
        return np.where(
            (left == 0) & (right == 0), np.where(negative, -np.zeros_like(result), np.zeros_like(result)), result
        )

    return extremum


def _each_directed_fma(direction: str, left: float, right: float, addend: float) -> float:
    """Returns a product and a sum of f64, rounded once, in a direction."""
    nearest = exact_fma(left, right, addend)
    if not all(map(math.isfinite, (left, right, addend))):
        return nearest
    exact = Fraction(left) * Fraction(right) + Fraction(addend)
    is_above = nearest == math.inf or (math.isfinite(nearest) and nearest > exact)
    is_below = nearest == -math.inf or (math.isfinite(nearest) and nearest < exact)
    return float(_moved(direction, np.float64(nearest), is_above=is_above, is_below=is_below))


def _moved(direction: str, nearest: np.floating, *, is_above: bool, is_below: bool) -> np.floating:
    """Returns a value that was rounded to nearest, rounded in a direction instead.

    Args:
        direction: `rm`, `rp` or `rz`.
        nearest: the value, of its own type.
        is_above, is_below: whether it is more or less than the exact one.
    """
    if is_above and (direction == "rm" or (direction == "rz" and nearest > 0)):
        return np.nextafter(nearest, nearest.dtype.type(-np.inf))
    if is_below and (direction == "rp" or (direction == "rz" and nearest < 0)):
        return np.nextafter(nearest, nearest.dtype.type(np.inf))
    return nearest


def _directed_quotient(direction: str, type_: PtxType) -> Callable:
    """Returns the function that divides two values of f32 or f64, rounded once in a direction."""

    def divide(left: np.floating, right: np.floating) -> np.floating:
        nearest = left / right
        if not (np.isfinite(left) and np.isfinite(right) and right):
            return nearest
        exact = Fraction(float(left)) / Fraction(float(right))
        is_above = nearest == np.inf or bool(np.isfinite(nearest) and Fraction(float(nearest)) > exact)
        is_below = nearest == -np.inf or bool(np.isfinite(nearest) and Fraction(float(nearest)) < exact)
        return _moved(direction, nearest, is_above=is_above, is_below=is_below)

    return _each(divide, type_)


def _directed_root(direction: str, type_: PtxType) -> Callable:
    """Returns what takes the square root of a number of f32 or f64, rounded once in a direction."""

    def root(value: np.floating) -> np.floating:
        nearest = np.sqrt(value)
        if not np.isfinite(nearest):
            return nearest
        square, exact = Fraction(float(nearest)) ** 2, Fraction(float(value))
        return _moved(direction, nearest, is_above=square > exact, is_below=square < exact)

    return _each(root, type_)


def _each(function: Callable, type_: PtxType) -> Callable:
    """Returns a function of arrays of f32 or f64 that takes them element by element."""

    def of_arrays(*arrays: Value) -> np.ndarray:
        operands = np.broadcast_arrays(*(np.asarray(array, type_.dtype) for array in arrays))
        results = [function(*numbers) for numbers in zip(*(array.ravel() for array in operands))]
        return np.array(results, type_.dtype).reshape(operands[0].shape)

    return of_arrays


def _directed_fma(direction: str, type_: PtxType) -> Callable:
    """Returns what computes a product and a sum, rounded once: down (`rm`), up (`rp`), towards zero (`rz`)."""
    if type_.bits == 64:
        return np.vectorize(functools.partial(_each_directed_fma, direction), otypes=[np.float64])

    def fma(left: Value, right: Value, addend: Value) -> Value:
        left, right, addend = (np.asarray(value).astype(np.float64) for value in (left, right, addend))
        product = left * right  # exact, and so is the sum with what it lost (Knuth's TwoSum)
        total = product + addend
        part = total - product
        error = (product - (total - part)) + (addend - part)
        nearest = total.astype(np.float32)
        off = nearest.astype(np.float64) - total
        above, below = (off > 0) | ((off == 0) & (error < 0)), (off < 0) | ((off == 0) & (error > 0))
        down, up = (np.nextafter(nearest, np.float32(limit)) for limit in (-np.inf, np.inf))
        if direction == "rz":
            return np.where(above & (total > 0), down, np.where(below & (total < 0), up, nearest))
        return np.where(above, down, nearest) if direction == "rm" else np.where(below, up, nearest)

    return fma


def _direction(site: Site, type_: PtxType) -> list[str]:
    """Returns how f32 or f64 is rounded where that is not to nearest: `rm`, `rp` or `rz`, or none."""
    return [direction for direction in _DIRECTED if type_.name in ("f32", "f64") and site.flag(direction)]


_NEAREST_ARITHMETIC: dict[str, Callable] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
# By a directed product and sum; a product has -0 added to it, which keeps the sign of a zero.
_DIRECTED_ARITHMETIC: dict[str, Callable[[Callable], Callable]] = {
    "add": lambda fma: lambda left, right: fma(left, 1, right),
    "sub": lambda fma: lambda left, right: fma(left, 1, np.negative(right)),
    "mul": lambda fma: lambda left, right: fma(left, right, -0.0),
}


@instruction("fma", is_pure=True)
def fma(site: Site) -> None:
    """A product and a sum, rounded once."""
    _fused(site, site.type("f"))


def _fused(site: Site, type_: PtxType) -> None:
    direction = _direction(site, type_)
    emit(site, _directed_fma(direction[0], type_) if direction else _fma(_element(type_)), type_, 3)


@instruction("copysign", is_pure=True)
def copysign(site: Site) -> None:
    """The second operand with the sign of the first."""
    emit(site, lambda sign, value: np.copysign(value, sign), site.type("f", (32, 64)), 2, keeps_nan=True)


_FUNCTIONS: dict[str, Callable] = {
    "rcp": lambda value: 1 / value,
    "sqrt": np.sqrt,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


@instruction(*_FUNCTIONS, is_pure=True)
def function(site: Site) -> None:
    """A function of one operand."""
    type_ = site.type("f")
    direction = _direction(site, type_) if site.family in ("rcp", "sqrt") else []
    if direction:
        quotient = _directed_quotient(direction[0], type_)
        root = _directed_root(direction[0], type_)
        emit(site, root if site.family == "sqrt" else lambda value: quotient(1, value), type_, 1)
        return
    site.flag("approx")
    exact = _FUNCTIONS[site.family]
    emit(site, lambda value: rounded(exact(np.asarray(value).astype(np.float64)), _element(type_).scalar), type_, 1)


_TESTS: dict[str, Callable] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda value: ~np.isnan(value),
    "notanumber": np.isnan,
    "normal": lambda value: np.isfinite(value) & (np.abs(value) >= np.finfo(value.dtype).tiny),
    "subnormal": lambda value: (value != 0) & (np.abs(value) < np.finfo(value.dtype).tiny),
}


@instruction("testp", is_pure=True)
def testp(site: Site) -> None:
    """A test of the class of a floating-point value."""
    test = _TESTS[site.choice(tuple(_TESTS))]
    type_ = site.type("f", (32, 64))
    site.count(2)

    def execute(fiber: Fiber, op: Instruction, value: Value) -> Value:
        holds = test(types.floats(value, type_))
        return holds if np.ndim(holds) else bool(holds)

    site.emit(execute, [site.read(1, type_)], [site.write(0, 1)])
