"""Recordings of epilogues: lists of scalar ops, and the arrays that they read."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from stepladder.api import side_effects
from stepladder.api.errors import EpilogueError
from stepladder.api.views import View, row_major, same_strides, view_of

FLOATS = {"f32": 3, "bf16": 2, "f16": 1}
INTEGERS = {"i32": 2, "i8": 1}
OPERAND_TYPES = (*FLOATS, *INTEGERS)
_ACCEPTED = (
    "accepted: + - * /, comparisons, casts by astype, and relu, gelu, silu, sigmoid, tanh, exp, log, sqrt, erf, abs, "
    "maximum, minimum, clip and where of stepladder.functions or NumPy"
)
# Ops that return one operand where the other one is this scalar.
_NEUTRAL = {
    "arith.addf": -0.0,
    "arith.subf": 0.0,
    "arith.mulf": 1.0,
    "arith.divf": 1.0,
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.addi": 0,
    "arith.subi": 0,
    "arith.muli": 1,
}
_COMMUTATIVE = frozenset(_NEUTRAL) - {"arith.subf", "arith.subi", "arith.divf"}
# Ops that return one of their last two operands.
_CHOICES = ("arith.select", "arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi")


@dataclass(frozen=True)
class Op:
    """A scalar op: `name` of `operands`, which are indices of earlier ops, and its result's type.

    `input` ops (with `text` the index of the input) represent the elements of the product (0) and of the operands.
    """

    name: str
    operands: tuple[int, ...]
    type: str
    text: str = ""


@dataclass(frozen=True)
class OperandSpec:
    """An operand of an epilogue: element type, extents of its row-major buffer, and the loops (i, j) of its axes, where
    None represents the coordinate 0."""

    type: str
    shape: tuple[int, ...]
    loops: tuple[str | None, ...]


@dataclass(frozen=True)
class Epilogue:
    """A traced epilogue: its ops in order, the number of the one that is the result, and its operands."""

    ops: tuple[Op, ...]
    result: int
    operands: tuple[OperandSpec, ...] = ()

    @property
    def type(self) -> str:
        """The type of the result."""
        return self.ops[self.result].type


def refuse(what: str, accepted: str = _ACCEPTED) -> NoReturn:
    """Refuses an operation of the epilogue, at its line.

    Args:
        what: is refused, as the end of "the epilogue cannot be traced".
        accepted: what would be accepted instead.

    Raises:
        EpilogueError: always.
    """
    raise EpilogueError(
        f"the epilogue cannot be traced: {what}", location=side_effects.current_place(), notes=[accepted]
    )


class Value:
    """A value of a recording: the number of its op, and its type."""

    __slots__ = ("number", "recording", "type")

    def __init__(self, recording: Recording, number: int, type_: str) -> None:
        self.recording = recording
        self.number = number
        self.type = type_


@dataclass
class Recording:
    """The ops recorded so far, for a product of `rows` x `columns`, and the arrays that it reads.

    `make` is the class of values; all arrays are on the GPU `device`, or in host memory for None.
    """

    rows: int
    columns: int
    device: int | None
    make: type[Value]
    ops: dict[Op, int] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    specs: list[OperandSpec] = field(default_factory=list)
    inputs: dict[int, Value] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def record(self, name: str, operands: Sequence[Value], type_: str, text: str = "") -> Value:
        """Records an op; one that is there already is not recorded twice, and one that returns an operand not at all.

        Args:
            name: of the op, with its dialect.
            operands: of this recording.
            type_: of the result, by its MLIR name.
            text: what the op has beside its operands: the number of a constant, the predicate of a comparison.

        Returns:
            The op's result.
        """
        operand = self._unchanged(name, operands)
        if operand is not None:
            return operand
        op = Op(name, tuple(item.number for item in operands), type_, text)
        return self.make(self, self.ops.setdefault(op, len(self.ops)), type_)

    def needed(self, result: Value) -> tuple[tuple[Op, ...], int]:
        """Returns the ops that a value depends on, and all inputs, in order; and the index of the value's op.

        Args:
            result: of the recording.
        """
        ops = list(self.ops)
        numbers = {number for number, op in enumerate(ops) if op.name == "input"} | {result.number}
        for number in range(len(ops) - 1, -1, -1):
            if number in numbers:
                numbers.update(ops[number].operands)
        places = {number: place for place, number in enumerate(sorted(numbers))}
        return (
            tuple(
                replace(ops[number], operands=tuple(places[item] for item in ops[number].operands)) for number in places
            ),
            places[result.number],
        )

    def _unchanged(self, name: str, operands: Sequence[Value]) -> Value | None:
        """Returns the operand that an op returns as it is, as x * 1 does: compilation folds such ops, and an epilogue
        of nothing else would be none."""
        if name == "arith.negf" and self._op(operands[0]).name == name:
            return self.make(self, self._op(operands[0]).operands[0], operands[0].type)
        if name in _CHOICES and operands[-1].number == operands[-2].number:
            return operands[-1]
        if name in _NEUTRAL:
            order = (operands, operands[::-1]) if name in _COMMUTATIVE else (operands,)
            for value, number in order:
                op = self._op(number)
                if op.name == "arith.constant" and op.text == literal(_NEUTRAL[name], op.type):
                    return value
        return None

    def _op(self, value: Value) -> Op:
        return next(itertools.islice(self.ops, value.number, None))

    def constant(self, value: float, type_: str) -> Value:
        """Records a scalar.

        Args:
            value: of the scalar.
            type_: by its MLIR name.

        Returns:
            The constant.
        """
        return self.record("arith.constant", (), type_, literal(value, type_))

    def operand(self, array: object) -> Value:
        """Records an array that the epilogue reads.

        Args:
            array: of a library that `view_of` knows, on the device of the product's operands.

        Returns:
            The elements that belong to one of the product.

        Raises:
            EpilogueError: an array on another device, or of a shape or type that epilogues do not read.
        """
        if id(array) not in self.inputs:
            name = self.names.get(id(array), f"operand {len(self.views)} of the epilogue")
            view = view_of(name, array)
            if view.device != self.device:
                place = "in host memory" if view.device is None else f"on GPU {view.device}"
                accepted_place = "in host memory" if self.device is None else f"on GPU {self.device}"
                refuse(
                    f"the array '{name}' is {place}",
                    f"accepted: arrays {accepted_place}, as the operands of the product",
                )
            self.specs.append(self._spec(view))
            self.views.append(view)
            self.inputs[id(array)] = self.record("input", (), view.type, str(len(self.views)))
        return self.inputs[id(array)]

    def _flat(self, view: View) -> View:
        """Returns a view of an array like the result of a batch as one of its rows below one another."""
        *batch, columns = view.shape or (1,)
        is_dense = same_strides(view.shape, view.strides, row_major(view.shape))
        if len(batch) > 1 and is_dense and (math.prod(batch), columns) == (self.rows, self.columns):
            return view.reshaped((self.rows, self.columns), (self.columns, 1))
        return view

    def _spec(self, view: View) -> OperandSpec:
        """Returns how the loops over C read an operand."""
        if view.type not in OPERAND_TYPES:
            refuse(f"'{view.name}' has elements of {view.type}", f"accepted: {', '.join(OPERAND_TYPES)}")
        extents = (self.rows, self.columns)
        view = self._flat(view)
        axes = list(zip(view.shape, view.strides, extents[2 - len(view.shape) :], ("i", "j")[2 - len(view.shape) :]))
        if len(view.shape) > 2 or any(extent not in (1, full) for extent, _, full, _ in axes):
            shape = "x".join(map(str, view.shape))
            refuse(
                f"'{view.name}' is {shape}, which does not broadcast to {self.rows}x{self.columns}",
                "accepted: one element, (n,), (1, n), (m, 1), (m, n)",
            )
        # The axes with elements, outermost first in memory; broadcast ones have a stride of 0 or one element.
        strided_axes = [(stride, extent, loop) for extent, stride, _, loop in axes if extent > 1 and stride != 0]
        strided_axes.sort(key=lambda item: -item[0])
        expected = 1
        for stride, extent, _ in reversed(strided_axes):
            if stride != expected:
                refuse(
                    f"'{view.name}' has strides {view.strides}",
                    "accepted: contiguous rows, columns and matrices, also transposed or broadcast",
                )
            expected *= extent
        if not strided_axes:
            return OperandSpec(view.type, (1,), (None,))
        return OperandSpec(view.type, tuple(item[1] for item in strided_axes), tuple(item[2] for item in strided_axes))


def literal(value: float, type_: str) -> str:
    """Returns a scalar in MLIR syntax.

    Args:
        value: also infinite, or NaN, of a type of floating point.
        type_: by its MLIR name.
    """
    if type_ in INTEGERS:
        return str(operator.index(int(value)))
    # NumPy warns of a scalar that becomes infinite, and a warning has side effects.
    with np.errstate(over="ignore"):
        is_finite = bool(np.isfinite(np.float32(value)))
    if is_finite:
        return f"{float(value):.17e}"
    bits = {"f32": (0x7FC00000, 0x7F800000), "f16": (0x7E00, 0x7C00), "bf16": (0x7FC0, 0x7F80)}[type_]
    sign = 0 if math.isnan(value) or value > 0 else 1 << (31 if type_ == "f32" else 15)
    return hex(sign | bits[not math.isnan(value)])
