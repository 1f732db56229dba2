"""Error bounds of a correct kernel where elementwise ops follow a product.

The bound of the product's elements (`tolerance.Tolerance`) is carried through the ops of the reference program, element
by element, beside their values: a forward error analysis at the point where the values are, so that no global Lipschitz
constant is needed. For an op that makes r from x and y with errors of at most e and f, the error of r is at most

    x + y, x - y           e + f
    x y                    |x| f + |y| e + e f
    x / y                  (e + |r| f) / (|y| - f), unbounded where f reaches |y|
    max, min               max(e, f): neither moves further than its operands
    |x|, -x, wider types   e
    sin x, cos x           e: their derivatives are at most 1 in magnitude
    other functions g      max(|g(x + e) - r|, |g(x - e) - r|): they are monotone
    x as an integer, fp8   as for these; unbounded where x can leave the range of the type
    tan x                  e / (|cos x| (|cos x| - e)), unbounded where e reaches |cos x|
    cosh x                 cosh(|x| + e) - cosh x
    x^y                    the largest at the ends of both intervals; |y| (|x| + e)^(y - 1) e across 0
    angle of (x, y)        pi / 2 of the share of its radius that the point can move, unbounded across the negative axis
    remainder of x by y    e, unbounded where the quotient may be another integer
    sign of y given to x   e, and 2 |x| where y can have another sign
    x < y and its like     uncertain where |x - y| <= e + f, unless both are exact
    bits of x as a number  as for monotone functions; unbounded across 0
    x shifted right by n   e / 2^n + 1; unbounded across 0
    x without n low bits   e + 2^n
    other ops on integers  none where the operands have none, else unbounded
    condition ? x : y      that of the chosen operand; where the condition is uncertain, |x - y| + max(e, f)
    sum of n values        the sum of their errors, and 6 sqrt(n) u times the sum of their magnitudes, for any order
    extremum of n values   the largest of their errors

to which an op on floating-point numbers adds its own rounding: none where its operands have no error and its type has
r, none of fp8, in which the reference rounds as well, else u |r|, with the unit roundoff u of its type, and for
functions of the math dialect 4 u of f32 besides, or 8 u, as libdevice computes them in f32 with errors of at most two
or four units in the last place (CUDA C++ Programming Guide, "Mathematical Functions", table of maximum errors), and the
smallest normal number of the type, for results that are flushed to zero. Where all results of a program have 16 bits or
8, a kernel may approximate sigmoids (step `approximate_math`): an exponential has 2 |x| u more, of its scaled operand,
erf 2^-17 more, and a quotient 2 u more, of its reciprocal, and |x| times the smallest normal value, below which the
reciprocal is flushed to zero. Where a value and its error can pass the largest number of its type, or an error is not a
number, nothing is known of the result: its error is unbounded.

The bound of a sum's roundings is the probabilistic one of Higham and Mary, "A New Approach to Probabilistic Rounding
Error Analysis" (SIAM J. Sci. Comput. 41, 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from stepladder.runtime.element_types import ELEMENT_TYPES, FP8_TYPES
from stepladder.runtime.reference import (
    Argument,
    Constant,
    Empty,
    Generic,
    Insert,
    Operation,
    Program,
    Slice,
    elements_of,
)
from stepladder.runtime.reference_operations import CONSTANT_PREDICATES, is_float
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.function_errors import FURTHER, as_number, of_bits, range_of, unbounded_where
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.reference_products import prepared_values
from stepladder.verify.scalar_operations import ARITHMETIC
from stepladder.verify.structured_evaluation import Labelled, Region, StructuredOp

# Function of a region of the product: bounds of the errors of its elements.
Bound = Callable[[Region], Array]

_LARGEST = {
    "f8E4M3FN": 448.0,
    "f8E5M2": 57344.0,
    "f16": 65504.0,
    "bf16": 3.3895313892515355e38,
    "f32": 3.4028234663852886e38,
    "f64": 1.7976931348623157e308,
}
_SMALLEST = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
_UNIT = 2.0**-24
_LIBRARY = 4 * _UNIT
_LESS_EXACT = tuple(f"math.{name}" for name in ("acosh", "asinh", "atan2", "atanh", "erfc", "powf", "sinh", "tan"))
_LIKELY = 6.0  # of the probabilistic bound of a sum: one in 10^7 exceeds it
_KEPT = ("arith.absf", "math.absf", "math.absi", "arith.negf", "arith.extf", "arith.extsi", "arith.truncf", "math.sin")
_EXTREMES = tuple(f"arith.{name}" for name in ("maximumf", "minimumf", "maxnumf", "minnumf", "maxsi", "minsi"))
# Ops that round the exact result to nearest, if their type does not have it.
_TO_NEAREST = tuple(f"arith.{name}" for name in ("addf", "subf", "mulf", "sitofp", "uitofp"))
_TO_INTEGERS = tuple(f"math.{name}" for name in ("ceil", "floor", "round", "roundeven"))
# Ops whose result is exact where the operands are.
_UNROUNDED = (
    *_EXTREMES,
    *_TO_INTEGERS,
    "arith.bitcast",
    "arith.negf",
    "math.absf",
    "math.absi",
    "arith.extf",
    "arith.extsi",
    "arith.select",
    "arith.remf",
    "math.copysign",
)


class RoundedOp(StructuredOp):
    """One output of an op that prepares a factor, each value of it rounded to its type, as by a kernel."""

    def _typed(self, op: Operation, array: Array) -> Array:
        array = super()._typed(op, array)
        return self.arrays.rounded(array, op.type) if is_float(op.type) and op.type != "f64" else array


class BoundedEvaluation(Evaluation):
    """A program on given inputs, with bounds of the errors of its values.

    Args:
        evaluation: the program on its inputs: `Evaluation`'s arguments.
        products: the bounds of each product's elements, by its value.
    """

    def __init__(
        self, program: Program, inputs: dict[int, np.ndarray], arrays: NumPyArrays, products: Mapping[int, Bound]
    ) -> None:
        super().__init__(program, inputs, arrays, "float64")
        self._products = products
        types = {item.value: item.type for item in program.arguments} | {
            item.value: item.type for item in program.results
        }
        types |= {
            result: type_
            for item in program.instructions
            if isinstance(item, Generic)
            for result, type_ in zip(item.results, item.types)
        }
        narrow = ("f16", "bf16", *FP8_TYPES)
        self.may_approximate = all(types.get(value) in narrow for _, value in program.outputs())
        self._arguments_of_program: dict[int, Argument] = {item.value: item for item in program.arguments}
        self._prepared = prepared_values(program)

    def _computed(self, value: int, region: Region) -> Array:
        instruction, number = self.makers.get(value, (None, 0))
        if value in self._prepared and isinstance(instruction, Generic):
            return RoundedOp(self, instruction, number, region).computed()
        return super()._computed(value, region)

    def error_of_rows(self, value: int, rows: slice, shape: tuple[int, ...]) -> Array:
        """Returns the bounds of the errors of rows of a value, taken for a row-major buffer of a shape.

        Args:
            value: its index.
            rows: of the buffer.
            shape: of the buffer.
        """
        if self.shape(value) == shape:
            return self.error(value, (rows, *(slice(0, size) for size in shape[1:])))
        return self._error_of(value).reshape(shape)[rows]

    def error(self, value: int, region: Region) -> Array:
        """Returns the bounds of the errors of a region of a value.

        Args:
            value: its index.
            region: slices of its axes.
        """
        if value in self._products:
            return self._products[value](region)
        if value in self._arguments_of_program:
            return self._zeros(region)
        instruction, number = self.makers[value]
        if isinstance(instruction, Generic):
            return BoundedOp(self, instruction, number, region).error()
        if isinstance(instruction, (Constant, Empty)):
            return self._zeros(region)
        if isinstance(instruction, Slice):
            parts = elements_of(instruction)
            return self._error_of(instruction.source)[parts].reshape(self.shapes[value])[region]
        if isinstance(instruction, Insert):
            new = self._error_of(instruction.source).reshape(instruction.sizes)
            errors = self.arrays.replaced(self._error_of(instruction.target), elements_of(instruction), new)
            return errors[region]
        return self._error_of(instruction.source).reshape(instruction.shape)[region]

    def _error_of(self, value: int) -> Array:
        return self.error(value, tuple(slice(0, size) for size in self.shapes[value]))

    def _zeros(self, region: Region) -> Array:
        return self.filled(0.0, "f32", region)


class BoundedOp(StructuredOp):
    """One output of an elementwise op, with bounds of the errors of its elements; arguments as for `StructuredOp`."""

    def __init__(self, values: BoundedEvaluation, op: Generic, output: int, region: Region) -> None:
        super().__init__(values, op, output, region)
        self.bounded = values
        self.region = region
        self.errors: dict[int, Labelled] = {}

    def error(self) -> Array:
        """Returns the bounds of the errors of the region of the output."""
        yielded = self.op.yields[self.output - len(self.op.inputs)]
        reductions = tuple(loop for loop in self.loops if loop not in self.order)
        with np.errstate(all="ignore"):
            if reductions:
                return self._error_of_fold(self.definitions[yielded], reductions)
            return self.ordered(self._error(yielded))

    def _error_of_fold(self, fold: Operation, reductions: tuple[int, ...]) -> Array:
        """Returns the error of what values are folded to over loops."""
        so_far = self.op.arguments[self.output]
        term = next(operand for operand in fold.operands if operand != so_far)
        values, errors = self.value_of(term), self._error(term)
        total = self._over(errors, reductions, "amax" if fold.name in _EXTREMES else "sum")
        if not is_float(fold.type):
            return total
        result = self.bounded.part(self.op.results[self.output - len(self.op.inputs)], self.region, keep=False)
        if fold.name in _EXTREMES:
            return self._rounded(fold, total, result)
        magnitude = self._over(Labelled(abs(values.array), values.loops), reductions, "sum") + total
        count = math.prod(map(self.size_of, reductions))
        unit = ELEMENT_TYPES[fold.type].unit_roundoff
        return self._rounded(fold, total + magnitude * (_LIKELY * math.sqrt(count) * unit), result)

    def _over(self, value: Labelled, reductions: tuple[int, ...], function: str) -> Array:
        """Returns a value folded over loops, with the output's axes."""
        loops = tuple(sorted({*value.loops, *reductions}))
        array = self.aligned(value, loops)
        sizes = [self.size_of(loop) if loop in reductions else size for loop, size in zip(loops, array.shape)]
        array = self.arrays.xp.broadcast_to(array, sizes)
        for loop in sorted(reductions, reverse=True):
            array = getattr(self.arrays.xp, function)(array, loops.index(loop))
            loops = tuple(item for item in loops if item != loop)
        return self.ordered(Labelled(array, loops))

    def _error(self, number: int) -> Labelled:
        if number not in self.errors:
            if number in self.op.arguments:
                self.errors[number] = self._error_of_operand(number)
            elif number in self.definitions:
                self.errors[number] = self._carried(self.definitions[number])
            else:
                self.errors[number] = Labelled(self.program.filled(0.0, "f32", ()), ())
        return self.errors[number]

    def _error_of_operand(self, number: int) -> Labelled:
        place = self.op.arguments.index(number)
        map_ = self.op.maps[place]
        region = tuple(slice(0, 1) if loop is None else self.loops[loop] for loop in map_)
        array = self.bounded.error((*self.op.inputs, *self.op.outputs)[place], region)
        loops = tuple(loop for loop in map_ if loop is not None)
        return Labelled(array.reshape([self.size_of(loop) for loop in loops]), loops)

    def _carried(self, op: Operation) -> Labelled:
        """Returns the error of a scalar op's result, for all iterations that its operands differ in."""
        if not op.operands:
            return Labelled(self.program.filled(0.0, "f32", ()), ())
        operand_values = [self.value_of(operand) for operand in op.operands]
        operand_errors = [self._error(operand) for operand in op.operands]
        loops = tuple(sorted({loop for item in (*operand_values, *operand_errors) for loop in item.loops}))
        values = [self.aligned(item, loops) for item in operand_values]
        errors = [self.aligned(item, loops) for item in operand_errors]
        result = self.aligned(self.value_of(op.result), loops)
        error = self._combined(op, values, errors, result)
        if is_float(op.type):
            error = self._rounded(op, error, result)
            if self.bounded.may_approximate and op.type == "f32":
                error = error + self._approximated(op, values, result)
        return Labelled(error, loops)

    def _approximated(self, op: Operation, values: list[Array], result: Array) -> Array:
        """Returns how much further a result may be where the op is approximated."""
        if op.name == "math.exp":
            return abs(values[0]) * abs(result) * (2 * _UNIT)
        if op.name == "math.erf":
            return abs(result) * 0 + 2.0**-17
        if op.name == "arith.divf":
            return abs(result) * (2 * _UNIT) + abs(values[0]) * _SMALLEST["f32"]
        return abs(result) * 0

    def _rounded(self, op: Operation, error: Array, result: Array) -> Array:
        """Returns the error with that of the op's own rounding, unbounded where the result can leave its type."""
        xp = self.arrays.xp
        magnitude = abs(result) + error
        if op.name not in _UNROUNDED and op.type not in FP8_TYPES:
            unit = ELEMENT_TYPES[op.type].unit_roundoff
            if op.name.startswith("math.") and op.name not in ("math.fma", "math.sqrt"):
                unit += 2 * _LIBRARY if op.name in _LESS_EXACT else _LIBRARY
            rounded = error + magnitude * unit + _SMALLEST[op.type]
            if op.name in _TO_NEAREST:
                is_exact = (error == 0) & (self.arrays.rounded(result, op.type) == result)
                rounded = xp.where(is_exact, error, rounded)
            error = rounded
        unbounded = xp.full_like(error + magnitude, float("inf"))
        return xp.where(abs(result) + error <= _LARGEST[op.type], error + magnitude * 0, unbounded)

    def _combined(self, op: Operation, values: list[Array], errors: list[Array], result: Array) -> Array:
        """Returns how far the exact result for wrong operands can be from that for the reference's."""
        xp = self.arrays.xp
        *values, result = (as_number(self.arrays, value) for value in (*values, result))
        match op.name.split(".")[1], errors:
            case (("addf" | "addi" | "subf" | "subi"), (first, second)):
                return first + second
            case (("mulf" | "muli"), (first, second)):
                return abs(values[0]) * second + abs(values[1]) * first + first * second
            case "fma", (first, second, third):
                return abs(values[0]) * second + abs(values[1]) * first + first * second + third
            case "divf", (first, second):
                room = abs(values[1]) - second
                quotient = (first + abs(result) * second) / xp.where(room > 0, room, xp.ones_like(room))
                return xp.where(room > 0, quotient, xp.full_like(quotient, float("inf")))
            case "select", (condition, first, second):
                chosen = xp.where(values[0] > 0, first, second)
                either = abs(values[1] - values[2]) + xp.maximum(first, second)
                return xp.where(condition > 0, either, chosen)
            case "cmpf", _ if op.attribute in CONSTANT_PREDICATES:
                return xp.zeros_like(errors[0] + errors[1])
            case (("cmpf" | "cmpi"), (first, second)):
                margin = first + second
                near = (abs(values[0] - values[1]) <= margin) & (margin > 0)
                return self.arrays.cast(near, "float64")
            case _, (first, second) if op.name in _EXTREMES:
                return xp.maximum(first, second)
            case (("cos" | "sitofp"), (first,)):
                return first
            case "truncf", (first,) if op.type in FP8_TYPES:
                return self._of_monotone(lambda _, value: self._typed(op, value), values[0], first, result)
            case (("fptosi" | "fptoui"), (first,)):
                return self._of_integer(op, values[0], first, result)
            case _ if not is_float(op.type) and all(float(item.max()) == 0 for item in errors):
                return errors[0]
            case "trunci", (first,):
                return self._of_bits(op, values[0], first)
            case "bitcast", (first,):
                return of_bits(self.arrays, op, values[0], first, result)
            case _ if op.name in FURTHER:
                return FURTHER[op.name](self.arrays, values, errors, result)
            case _, (first,) if op.name in _KEPT:
                return first
            case _, (first,) if op.name in ARITHMETIC:
                return self._of_monotone(ARITHMETIC[op.name], values[0], first, result)
        return unbounded_where(self.arrays, sum(errors[1:], errors[0]) > 0, errors[0])

    def _of_integer(self, op: Operation, value: Array, error: Array, result: Array) -> Array:
        """Returns how far a value as an integer can be off; nothing is known of one that is out of range."""
        xp = self.arrays.xp
        least, end = range_of(op.type, is_signed=op.name == "arith.fptosi")
        above, below = (abs(self._typed(op, value + shift) - result) for shift in (error, -error))
        # Unsigned values of more than a unit apart may have others between them, whose bits are further off.
        is_inside = (value - error > least - 1) & (value + error < end) & ((error <= 1) | (least < 0))
        return xp.where(is_inside, xp.maximum(above, below) + error * 0, xp.full_like(value, float("inf")))

    def _of_bits(self, op: Operation, value: Array, error: Array) -> Array:
        """Returns how far the low bits of an integer can be off: as far as it, where the bits above are the same."""
        xp = self.arrays.xp
        least, end = range_of(op.type, is_signed=True)
        first, last = (xp.floor((value + shift - least) / (end - least)) for shift in (-error, error))
        is_constant = (error == 0) | (first == last)
        return xp.where(is_constant, error, xp.full_like(error, float("inf")))

    def _of_monotone(self, function: Callable[..., Array], value: Array, error: Array, result: Array) -> Array:
        """Returns how far a monotone function of a value within `error` can be from that of the value."""
        above, below = (abs(function(self.arrays, value + shift) - result) for shift in (error, -error))
        # Beyond the edge of the function's domain there is no value.
        return self.arrays.xp.maximum(above, below)
