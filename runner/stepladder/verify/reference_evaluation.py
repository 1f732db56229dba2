"""Computes reference programs: real arithmetic in float64, integers exactly.

Rounding to a narrower floating-point type is not repeated: the reference is what the function computes in real numbers
from the inputs as stored, to the accuracy of float64. Integers wrap as their types do. A contraction is one matrix
product, any other op is computed on whole arrays. What is asked for is computed, and nothing else: `part` of an output
takes the parts of the inputs that it depends on, so that a large result can be compared block by block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import (
    Constant,
    Empty,
    Generic,
    Operation,
    Program,
    Reshape,
    Slice,
)
from stepladder.verify.arrays import NumPyArrays

# Elements of the largest temporary array: an op that is no contraction of two arrays may need all its loops at once.
LARGEST = 1 << 30

Relation = Callable[[Any, Any], Any]
_SIGNED: dict[int, Relation] = {
    0: lambda x, y: x == y,
    1: lambda x, y: x != y,
    2: lambda x, y: x < y,
    3: lambda x, y: x <= y,
    4: lambda x, y: x > y,
    5: lambda x, y: x >= y,
}
# By MLIR's numbers: oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno.
_FLOAT: dict[int, Relation] = {
    1: lambda x, y: x == y,
    2: lambda x, y: x > y,
    3: lambda x, y: x >= y,
    4: lambda x, y: x < y,
    5: lambda x, y: x <= y,
    6: lambda x, y: (x < y) | (x > y),
    7: lambda x, y: (x == x) & (y == y),
    8: lambda x, y: ~((x < y) | (x > y)),
    9: lambda x, y: ~(x <= y),
    10: lambda x, y: ~(x < y),
    11: lambda x, y: ~(x >= y),
    12: lambda x, y: ~(x > y),
    13: lambda x, y: x != y,
    14: lambda x, y: (x != x) | (y != y),
}


def _add(arrays: NumPyArrays, x: Any, y: Any) -> Any:
    return x + y


def _multiply(arrays: NumPyArrays, x: Any, y: Any) -> Any:
    return x * y


def _of(name: str) -> Callable[..., Any]:
    """Returns a function that NumPy and PyTorch have under one name."""
    return lambda arrays, *operands: getattr(arrays.xp, name)(*operands)


# Ops on numbers of one type.
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "arith.addf": _add,
    "arith.addi": _add,
    "arith.mulf": _multiply,
    "arith.muli": _multiply,
    "arith.subf": lambda arrays, x, y: x - y,
    "arith.subi": lambda arrays, x, y: x - y,
    "arith.divf": lambda arrays, x, y: x / y,
    "arith.negf": lambda arrays, x: -x,
    "arith.maximumf": _of("maximum"),
    "arith.minimumf": _of("minimum"),
    "arith.maxnumf": _of("fmax"),
    "arith.minnumf": _of("fmin"),
    "arith.maxsi": _of("maximum"),
    "arith.minsi": _of("minimum"),
    "arith.andi": lambda arrays, x, y: x & y,
    "arith.ori": lambda arrays, x, y: x | y,
    "arith.xori": lambda arrays, x, y: x ^ y,
    "arith.select": _of("where"),
    "math.absf": _of("abs"),
    "math.absi": _of("abs"),
    "math.ceil": _of("ceil"),
    "math.floor": _of("floor"),
    "math.exp": _of("exp"),
    "math.exp2": _of("exp2"),
    "math.expm1": _of("expm1"),
    "math.log": _of("log"),
    "math.log2": _of("log2"),
    "math.log1p": _of("log1p"),
    "math.sqrt": _of("sqrt"),
    "math.tanh": _of("tanh"),
    "math.sin": _of("sin"),
    "math.cos": _of("cos"),
    "math.roundeven": _of("round"),
    "math.rsqrt": lambda arrays, x: 1 / arrays.xp.sqrt(x),
    "math.erf": lambda arrays, x: arrays.erf(x),
    "math.powf": lambda arrays, x, y: x**y,
    "math.fma": lambda arrays, x, y, z: x * y + z,
}
_SAME = ("arith.extf", "arith.truncf")
_CASTS = (
    *_SAME,
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.sitofp",
    "arith.uitofp",
    "arith.fptosi",
    "arith.index_cast",
)
OPERATIONS = frozenset((*_ARITHMETIC, *_CASTS, "arith.cmpf", "arith.cmpi", "arith.constant", "linalg.index"))
PREDICATES: dict[str, dict[int, Relation]] = {"arith.cmpf": _FLOAT, "arith.cmpi": _SIGNED}

# What folds the values of reduction loops: along axes of an array.
_FOLDS: dict[str, str] = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.mulf": "prod",
    "arith.muli": "prod",
    "arith.maximumf": "amax",
    "arith.minimumf": "amin",
    "arith.maxnumf": "amax",
    "arith.minnumf": "amin",
    "arith.maxsi": "amax",
    "arith.minsi": "amin",
}

Region = tuple[slice, ...]


def is_float(type_: str) -> bool:
    """Tells whether MLIR's name of a type is that of a floating-point type."""
    return type_.startswith(("f", "bf", "tf"))


def reduces(generic: Generic) -> str | None:
    """Returns why an op's reduction cannot be computed, or None where it can or there is none."""
    inputs = len(generic.inputs)
    for output, yielded in enumerate(generic.yields):
        loops = {loop for loop in generic.maps[inputs + output] if loop is not None}
        if loops == {loop for loop, _ in enumerate(generic.sizes)}:
            continue
        made = {op.result: op for op in generic.body}
        fold = made.get(yielded)
        sums = generic.arguments[inputs + output]
        if fold is None or fold.name not in _FOLDS or sums not in fold.operands:
            return "a reduction whose last op does not fold the values into the result"
        if sum(op.operands.count(sums) for op in generic.body) + generic.yields.count(sums) > 1:
            return "a reduction that reads the result so far for more than to fold the next value into it"
    return None


@dataclass(frozen=True)
class _Labelled:
    """An array of which axis i runs along the loop `loops[i]`."""

    array: Any
    loops: tuple[int, ...]


class Evaluation:
    """A program on given inputs.

    Args:
        program: what to compute.
        inputs: arrays by argument number, of the arguments' types and shapes; those that the program reads.
        arrays: what computes.
        wide: `float64`, or `float32` where that has all values exactly.
    """

    def __init__(self, program: Program, inputs: Mapping[int, np.ndarray], arrays: NumPyArrays, wide: str = "float64"):
        self._arrays = arrays
        self._wide = wide
        self._arguments = {
            argument.value: (argument, inputs.get(number)) for number, argument in enumerate(program.arguments)
        }
        self._makers: dict[int, tuple[Any, int]] = {}
        for instruction in program.instructions:
            results = instruction.results if isinstance(instruction, Generic) else (instruction.result,)
            for number, result in enumerate(results):
                self._makers[result] = instruction, number
        self._shapes = {value: argument.shape for value, (argument, _) in self._arguments.items()}
        for instruction in program.instructions:
            self._note_shapes(instruction)
        self._kept: dict[tuple[int, tuple], Any] = {}

    def _note_shapes(self, instruction: Any) -> None:
        if isinstance(instruction, Generic):
            for output, result in zip(instruction.outputs, instruction.results):
                self._shapes[result] = self._shapes[output]
        elif isinstance(instruction, Slice):
            self._shapes[instruction.result] = tuple(instruction.sizes[axis] for axis in instruction.kept)
        else:
            self._shapes[instruction.result] = instruction.shape

    def whole(self, value: int) -> Any:
        """Returns a value: floating-point numbers as `wide`, integers as int64."""
        return self._part(value, tuple(slice(0, size) for size in self._shapes[value]))

    def rows(self, value: int, rows: slice) -> Any:
        """Returns the rows of a value that `rows` names; as `whole`."""
        others = self._shapes[value][1:]
        return self._part(value, (slice(rows.start, rows.stop), *(slice(0, size) for size in others)), keep=False)

    def _part(self, value: int, region: Region, *, keep: bool = True) -> Any:
        key = value, tuple((part.start, part.stop) for part in region)
        if key in self._kept:
            return self._kept[key]
        array = self._computed(value, region)
        # A part of a value is asked for once, block by block; the whole of one for every block.
        if keep and all((part.start, part.stop) == (0, size) for part, size in zip(region, self._shapes[value])):
            self._kept[key] = array
        return array

    def _computed(self, value: int, region: Region) -> Any:
        if value in self._arguments:
            argument, stored = self._arguments[value]
            if stored is None:
                raise StepladderError(f"the reference program reads an argument of {argument.type} that has no role")
            return self._arrays.load(stored[region], self._kind(argument.type))
        instruction, number = self._makers[value]
        match instruction:
            case Constant():
                scalar = (
                    instruction.number if isinstance(instruction.number, int) else float.fromhex(instruction.number)
                )
                return self._filled(scalar, instruction.type, region)
            case Empty():
                return self._filled(math.nan if is_float(instruction.type) else 0, instruction.type, region)
            case Reshape():
                return self.whole(instruction.source).reshape(instruction.shape)[region]
            case Slice():
                parts = tuple(
                    slice(offset, offset + (size - 1) * stride + 1, stride)
                    for offset, size, stride in zip(instruction.offsets, instruction.sizes, instruction.strides)
                )
                return self.whole(instruction.source)[parts].reshape(self._shapes[value])[region]
        return _Structured(self, instruction, number, region).computed()

    def _kind(self, type_: str) -> str:
        return self._wide if is_float(type_) else "bool" if type_ == "i1" else "int64"

    def _filled(self, number: float, type_: str, region: Region) -> Any:
        shape = [part.stop - part.start for part in region]
        return self._arrays.load(np.full(shape, number, self._kind(type_)), self._kind(type_))


class _Structured:
    """One output of a structured op, for the iterations of loops that a region of it takes."""

    def __init__(self, evaluation: Evaluation, op: Generic, output: int, region: Region):
        self.evaluation = evaluation
        self.arrays = evaluation._arrays
        self.op = op
        self.output = len(op.inputs) + output
        self.made = {inner.result: inner for inner in op.body}
        self.loops = {number: slice(0, size) for number, size in enumerate(op.sizes)}
        self.order = [loop for loop in op.maps[self.output] if loop is not None]
        self.loops |= {loop: part for loop, part in zip(op.maps[self.output], region) if loop is not None}
        self.shape = [part.stop - part.start for part in region]
        self.values: dict[int, _Labelled] = {}

    def computed(self) -> Any:
        """Returns the region of the output."""
        reductions = [loop for loop in self.loops if loop not in self.order]
        yielded = self.op.yields[self.output - len(self.op.inputs)]
        if not reductions:
            return self._ordered(self._value(yielded))
        fold = self.made[yielded]
        sums = self.op.arguments[self.output]
        term = next(operand for operand in fold.operands if operand != sums)
        folded = self._contracted(term, reductions) if fold.name in ("arith.addf", "arith.addi") else None
        if folded is None:
            folded = self._folded(term, reductions, _FOLDS[fold.name])
        start = self._ordered(self._value(sums))
        return self._typed(fold, _ARITHMETIC[fold.name](self.arrays, start, self._ordered(folded)))

    def _size(self, loop: int) -> int:
        return self.loops[loop].stop - self.loops[loop].start

    def _ordered(self, value: _Labelled) -> Any:
        """Returns an array with the output's axes, of the output's shape."""
        aligned = self._aligned(value, tuple(self.order))
        return self.arrays.xp.broadcast_to(aligned, [self._size(loop) for loop in self.order]).reshape(self.shape)

    def _aligned(self, value: _Labelled, loops: tuple[int, ...]) -> Any:
        """Returns an array with an axis for each of `loops`: of size 1 for those that the value does not have."""
        order = sorted(range(len(value.loops)), key=lambda axis: loops.index(value.loops[axis]))
        array = self.arrays.permuted(value.array, order)
        sizes = dict(zip((value.loops[axis] for axis in order), array.shape))
        return array.reshape([sizes.get(loop, 1) for loop in loops])

    def _value(self, number: int) -> _Labelled:
        if number not in self.values:
            self.values[number] = (
                self._operand(number)
                if number in self.op.arguments
                else self._applied(self.made[number])
                if number in self.made
                else _Labelled(self.evaluation.whole(number), ())
            )
        return self.values[number]

    def _operand(self, number: int) -> _Labelled:
        """Returns an input or output, for the iterations that run."""
        place = self.op.arguments.index(number)
        map_ = self.op.maps[place]
        region = tuple(slice(0, 1) if loop is None else self.loops[loop] for loop in map_)
        array = self.evaluation._part((*self.op.inputs, *self.op.outputs)[place], region)
        loops = tuple(loop for loop in map_ if loop is not None)
        return _Labelled(array.reshape([self._size(loop) for loop in loops]), loops)

    def _applied(self, op: Operation) -> _Labelled:
        """Returns a scalar op's result, for all iterations that its operands differ in."""
        if op.name == "linalg.index":
            part = self.loops[int(op.attribute or 0)]
            return _Labelled(self.arrays.load(np.arange(part.start, part.stop), "int64"), (int(op.attribute or 0),))
        if op.name == "arith.constant":
            number = op.attribute if isinstance(op.attribute, int) else float.fromhex(str(op.attribute))
            return _Labelled(self.evaluation._filled(number, op.type, ()), ())
        operands = [self._value(operand) for operand in op.operands]
        loops = tuple(sorted({loop for operand in operands for loop in operand.loops}))
        self._check_size(loops)
        aligned = [self._aligned(operand, loops) for operand in operands]
        return _Labelled(self._typed(op, self._result(op, aligned)), loops)

    def _check_size(self, loops: tuple[int, ...]) -> None:
        if math.prod(map(self._size, loops)) > LARGEST:
            raise StepladderError(
                f"the reference of {self.op.name} needs an array of "
                f"{'x'.join(str(self._size(loop)) for loop in loops)} numbers, and the most is "
                f"{LARGEST}",
                location=self.op.location,
            )

    def _result(self, op: Operation, operands: list[Any]) -> Any:
        if op.name in _ARITHMETIC:
            return _ARITHMETIC[op.name](self.arrays, *operands)
        if op.name in PREDICATES:
            return PREDICATES[op.name][int(op.attribute or 0)](*operands)
        (operand,) = operands
        if op.name in ("arith.extui", "arith.uitofp") and op.operand_type != "i1":
            return operand & (1 << int(op.operand_type[1:])) - 1
        if op.name == "arith.extsi" and op.operand_type == "i1":
            return -self.arrays.cast(operand, "int64")
        return operand

    def _typed(self, op: Operation, array: Any) -> Any:
        """Returns an op's result as its type holds it: floating point unrounded, integers wrapped."""
        if is_float(op.type) or op.type in ("i1", "i64", "index") or op.name == "arith.extsi":
            return self.arrays.cast(array, self.evaluation._kind(op.type))
        half = 1 << int(op.type[1:]) - 1
        return (self.arrays.cast(array, "int64") + half & 2 * half - 1) - half

    def _folded(self, number: int, reductions: list[int], fold: str) -> _Labelled:
        """Returns a value folded over loops."""
        value = self._value(number)
        loops = tuple(sorted({*value.loops, *reductions}))
        self._check_size(loops)
        array = self._aligned(value, loops)
        array = self.arrays.xp.broadcast_to(
            array, [self._size(loop) if loop in reductions else size for loop, size in zip(loops, array.shape)]
        )
        for loop in sorted(reductions, reverse=True):
            array = getattr(self.arrays.xp, fold)(array, loops.index(loop))
            loops = tuple(other for other in loops if other != loop)
        return _Labelled(array, loops)

    def _contracted(self, number: int, reductions: list[int]) -> _Labelled | None:
        """Returns the sum of products of two arrays as a matrix product, or None where it is no such sum."""
        product = self.made.get(number)
        while product is not None and product.name in _SAME:
            product = self.made.get(product.operands[0])
        if product is None or product.name not in ("arith.mulf", "arith.muli"):
            return None
        left, right = map(self._value, product.operands)
        if not set(reductions) <= set(left.loops) & set(right.loops):
            return None
        batch = tuple(loop for loop in left.loops if loop in right.loops and loop not in reductions)
        rows = tuple(loop for loop in left.loops if loop not in right.loops)
        columns = tuple(loop for loop in right.loops if loop not in left.loops)
        sizes = [[self._size(loop) for loop in group] for group in (batch, rows, columns, reductions)]
        batches, height, width, depth = map(math.prod, sizes)
        factors = self._exact_factors(left.array, right.array, depth)
        if factors is None:
            return None
        a = self._aligned(_Labelled(factors[0], left.loops), (*batch, *rows, *reductions))
        b = self._aligned(_Labelled(factors[1], right.loops), (*batch, *reductions, *columns))
        shapes = ([height, depth], [depth, width]) if not batch else ([batches, height, depth], [batches, depth, width])
        total = a.reshape(shapes[0]) @ b.reshape(shapes[1])
        if product.name == "arith.muli":
            total = self.arrays.cast(total, "int64")
        return _Labelled(total.reshape([*sizes[0], *sizes[1], *sizes[2]]), (*batch, *rows, *columns))

    def _exact_factors(self, left: Any, right: Any, depth: int) -> tuple[Any, Any] | None:
        """Returns factors in a type in which matrix products are fast, and exact where they are of integers."""
        if "int" not in str(left.dtype):
            return left, right
        largest = depth * int(abs(left).max()) * int(abs(right).max())
        if largest >= 1 << 53:
            return None
        kind = "float32" if largest < 1 << 24 else "float64"
        return self.arrays.cast(left, kind), self.arrays.cast(right, kind)
