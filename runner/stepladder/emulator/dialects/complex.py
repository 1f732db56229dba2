"""complex: arithmetic and elementary functions, on NumPy's complex types of the same width."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepladder.emulator.core.elements import plain
from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.values import Value
from stepladder.mlir.bindings import ir


def _wide(value: Value) -> np.ndarray:
    return np.asarray(value).astype(np.complex128)


def _function(function: Value) -> Callable:
    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        """The result, computed in 64-bit components and rounded once."""
        return plain(np.asarray(function(*map(_wide, operands))).astype(op.result_types[0].element.dtype))

    return execute


def _sign(value: np.ndarray) -> np.ndarray:
    size = np.abs(value)
    return np.where(size == 0, value, value / np.where(size == 0, 1, size))


for _name, _numpy in {
    "abs": np.abs,
    "add": np.add,
    "angle": np.angle,
    "conj": np.conj,
    "cos": np.cos,
    "div": np.divide,
    "exp": np.exp,
    "expm1": np.expm1,
    "im": np.imag,
    "log": np.log,
    "log1p": np.log1p,
    "mul": np.multiply,
    "neg": np.negative,
    "pow": np.power,
    "re": np.real,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "sign": _sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "sub": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "atan2": lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)),
}.items():
    executes(f"complex.{_name}")(_function(_numpy))


@executes("complex.create")
def create(fiber: Fiber, op: Instruction, real: Value, imaginary: Value) -> Value:
    """A complex number of its real and imaginary parts."""
    return plain((np.asarray(real) + 1j * np.asarray(imaginary)).astype(op.result_types[0].element.dtype))


@executes("complex.powi")
def powi(fiber: Fiber, op: Instruction, base: Value, exponent: Value) -> Value:
    """A value to the power of an integer."""
    return plain(np.power(_wide(base), np.asarray(exponent)).astype(op.result_types[0].element.dtype))


@executes("complex.eq")
def equal(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Whether two values are the same."""
    return plain(np.asarray(left == right))


@executes("complex.neq")
def different(fiber: Fiber, op: Instruction, left: Value, right: Value) -> Value:
    """Whether two values differ."""
    return plain(np.asarray(left != right))


@executes("complex.bitcast")
def bitcast(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """The same bits as another type."""
    return plain(np.ascontiguousarray(value).view(op.result_types[0].element.dtype).reshape(np.shape(value)))


@lowers("complex.constant")
def lower_constant(builder: Builder, op: ir.Operation) -> None:
    """`complex.constant`: its two parts."""
    results = builder.defined(op.results)
    real, imaginary = (part.value for part in op.attributes["value"])
    builder.emit(op.name, _constant, (), results, {"value": complex(real, imaginary)})


def _constant(fiber: Fiber, op: Instruction) -> Value:
    return op.result_types[0].element.dtype.type(op.attributes["value"])
