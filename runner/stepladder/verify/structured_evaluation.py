"""Evaluates structured ops of reference programs: contractions as matrix products, others on whole arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stepladder.runtime.element_types import FP8_TYPES
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import Generic, Operation
from stepladder.runtime.reference_extrema import IndexedExtremum, indexed_extremum
from stepladder.runtime.reference_operations import BITCAST, FLOAT_CASTS, GATHER, fold_of, is_float
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.scalar_operations import ARITHMETIC, PREDICATES, UNSIGNED
from stepladder.verify.wide_unsigned import WIDE_UNSIGNED, from_float, to_float

# Elements of the largest temporary array: an op that is no contraction of two arrays may need all its loops at once.
LARGEST = 1 << 30
# Ops that take booleans as such, and not as signed integers of one bit.
_ON_TRUTH = ("arith.andi", "arith.ori", "arith.xori", "arith.select", "arith.extui", "arith.uitofp")

Region = tuple[slice, ...]


class Values(Protocol):
    """The values of a program."""

    @property
    def arrays(self) -> NumPyArrays:
        """The array library that evaluates the program."""
        ...

    def whole(self, value: int) -> Array:
        """Returns a value.

        Args:
            value: number of a value of the program.
        """
        ...

    def part(self, value: int, region: Region) -> Array:
        """Returns a region of a value.

        Args:
            value: number of a value of the program.
            region: a slice for each of its axes, with its start and stop.
        """
        ...

    def kind(self, type_: str) -> str:
        """Returns the array type that holds values of an MLIR type.

        Args:
            type_: element type by its MLIR name, such as "f16".
        """
        ...

    def filled(self, number: float, type_: str, region: Region) -> Array:
        """Returns an array of a region's extents with copies of a scalar.

        Args:
            number: that `type_` has.
            type_: element type by its MLIR name, which decides the array type (`kind`).
            region: a slice for each axis, with its start and stop.
        """
        ...


@dataclass(frozen=True)
class Labelled:
    """An array of which axis i runs along the loop `loops[i]`."""

    array: Array
    loops: tuple[int, ...]


class StructuredOp:
    """One output of a structured op, for the iterations of loops that a region of it takes.

    Args:
        values: of the program.
        op: the structured op.
        output: the index of the output.
        region: what to compute of the output.
    """

    def __init__(self, values: Values, op: Generic, output: int, region: Region) -> None:
        self.program = values
        self.arrays = values.arrays
        self.op = op
        self.output = len(op.inputs) + output
        self.definitions = {inner.result: inner for inner in op.body}
        self.loops = {number: slice(0, size) for number, size in enumerate(op.sizes)}
        self.order = [loop for loop in op.maps[self.output] if loop is not None]
        self.loops |= {loop: part for loop, part in zip(op.maps[self.output], region) if loop is not None}
        self.shape = [part.stop - part.start for part in region]
        self.values: dict[int, Labelled] = {}

    def computed(self) -> Array:
        """Returns the region of the output."""
        reductions = [loop for loop in self.loops if loop not in self.order]
        yielded = self.op.yields[self.output - len(self.op.inputs)]
        if not reductions:
            return self.ordered(self.value_of(yielded))
        found = indexed_extremum(self.op, self.output - len(self.op.inputs))
        if found is not None:
            return self._kept_of(found)
        fold = self.definitions[yielded]
        sums = self.op.arguments[self.output]
        term = next(operand for operand in fold.operands if operand != sums)
        folded = self._contracted(term, reductions) if fold.name in ("arith.addf", "arith.addi") else None
        if folded is None:
            name = fold_of(fold)
            assert name is not None  # the export refuses other reductions
            folded = self._folded(term, reductions, name)
        start = self.ordered(self.value_of(sums))
        operands = self._with_signs(fold, [start, self.ordered(folded)])
        return self._typed(fold, ARITHMETIC[fold.name](self.arrays, *operands))

    def spread(self, value: int) -> Array:
        """Returns a value of the body for all elements of the output, with the iterations that reduce as a last axis.

        Args:
            value: its index.
        """
        loops = (*self.order, *(loop for loop in self.loops if loop not in self.order))
        sizes = [self.size_of(item) for item in loops]
        self._check_size(loops)
        whole = self.arrays.xp.broadcast_to(self.aligned(self.value_of(value), loops), sizes)
        return whole.reshape([*sizes[: len(self.order)], math.prod(sizes[len(self.order) :])])

    def _kept_of(self, found: IndexedExtremum) -> Array:
        """Returns what is kept of the iteration with the extremum; a NaN is skipped, or nothing replaces it."""
        xp = self.arrays.xp
        terms, kept = self.spread(found.term), self.spread(found.kept)
        lowest = -math.inf if found.largest else math.inf
        values = self._as_unsigned(self.arrays.cast(terms, "float64"), found.bits)
        is_nan = values != values
        is_left_out = is_nan if found.skips_nan else xp.cumsum(is_nan, -1) > 0
        values = xp.where(is_left_out, lowest, values)
        size = terms.shape[-1]
        first = (xp.argmax if found.largest else xp.argmin)(values, -1)
        best = (xp.amax if found.largest else xp.amin)(values, -1)
        start = self.ordered(self.value_of(self.op.arguments[len(self.op.inputs) + found.extremum]))
        start = self._as_unsigned(start.reshape(first.shape), found.bits)
        is_better = best > start if found.largest else best < start
        if found.last:
            is_best = (values == best.reshape([*first.shape, 1])) & ~is_left_out
            first = size - 1 - xp.argmax(self.arrays.cast(xp.flip(is_best, (-1,)), "int64"), -1)
            is_better = is_better | ((best == start) & xp.any(is_best, -1))
        places = self.arrays.load(np.arange(size), "int64")
        chosen = first.reshape([*first.shape, 1]) == places
        before = self.ordered(self.value_of(self.op.arguments[self.output])).reshape(first.shape)
        return xp.where(is_better, xp.sum(kept * chosen, -1), before).reshape(self.shape)

    def _as_unsigned(self, values: Array, bits: int) -> Array:
        """Returns the values of unsigned integers; others, of 0 bits, as they are."""
        return values if not bits else self.arrays.xp.where(values < 0, values + 2.0**bits, values)

    def size_of(self, loop: int) -> int:
        """Returns how many iterations of a loop run.

        Args:
            loop: index of the loop.
        """
        return self.loops[loop].stop - self.loops[loop].start

    def ordered(self, value: Labelled) -> Array:
        """Returns an array with the output's axes, of the output's shape.

        Args:
            value: along loops of the output only.
        """
        aligned = self.aligned(value, tuple(self.order))
        return self.arrays.xp.broadcast_to(aligned, [self.size_of(loop) for loop in self.order]).reshape(self.shape)

    def aligned(self, value: Labelled, loops: tuple[int, ...]) -> Array:
        """Returns an array with an axis for each of `loops`, of size 1 where the value does not have the loop.

        Args:
            value: along some of `loops`, in any order.
            loops: indices of the loops, in the order of the axes.
        """
        order = sorted(range(len(value.loops)), key=lambda axis: loops.index(value.loops[axis]))
        array = self.arrays.permuted(value.array, order)
        sizes = dict(zip((value.loops[axis] for axis in order), array.shape))
        return array.reshape([sizes.get(loop, 1) for loop in loops])

    def value_of(self, number: int) -> Labelled:
        """Returns a value of the body, for the iterations that run.

        Args:
            number: of a value: an argument of the body, the result of an op in it, or a value of the program.
        """
        left = [number]
        while left:
            value = left[-1]
            op = self.definitions.get(value)
            missing = [operand for operand in op.operands if self._is_inside(operand)] if op else []
            if missing and value not in self.values:
                left.extend(missing)
                continue
            left.pop()
            if value not in self.values:
                self.values[value] = self._evaluated(value)
        return self.values[number]

    def _is_inside(self, number: int) -> bool:
        """Returns whether a value is the result of an op of the body that was not evaluated yet."""
        return number in self.definitions and number not in self.values

    def _evaluated(self, number: int) -> Labelled:
        if number in self.op.arguments:
            return self._operand(number)
        if number in self.definitions:
            return self._applied(self.definitions[number])
        return Labelled(self.program.whole(number), ())

    def _operand(self, number: int) -> Labelled:
        """Returns an input or output, for the iterations that run."""
        place = self.op.arguments.index(number)
        map_ = self.op.maps[place]
        region = tuple(slice(0, 1) if loop is None else self.loops[loop] for loop in map_)
        array = self.program.part((*self.op.inputs, *self.op.outputs)[place], region)
        loops = tuple(loop for loop in map_ if loop is not None)
        return Labelled(array.reshape([self.size_of(loop) for loop in loops]), loops)

    def _applied(self, op: Operation) -> Labelled:
        """Returns a scalar op's result, for all iterations that its operands differ in."""
        if op.name == "linalg.index":
            part = self.loops[int(op.attribute or 0)]
            return Labelled(self.arrays.load(np.arange(part.start, part.stop), "int64"), (int(op.attribute or 0),))
        if op.name == "arith.constant":
            number = op.attribute if isinstance(op.attribute, int) else float.fromhex(str(op.attribute))
            return Labelled(self.program.filled(number, op.type, ()), ())
        if op.name == GATHER:
            return self._gathered(op)
        operands = [self.value_of(operand) for operand in op.operands]
        loops = tuple(sorted({loop for operand in operands for loop in operand.loops}))
        self._check_size(loops)
        aligned = [self.aligned(operand, loops) for operand in operands]
        return Labelled(self._typed(op, self._result(op, aligned)), loops)

    def _gathered(self, op: Operation) -> Labelled:
        """Returns the elements of a value that indices name, for all iterations that the indices differ in."""
        source = self.program.whole(op.operands[0])
        indices = [self.value_of(operand) for operand in op.operands[1:]]
        loops = tuple(sorted({loop for item in indices for loop in item.loops}))
        self._check_size(loops)
        aligned = [self.aligned(item, loops) for item in indices]
        for axis, index in enumerate(aligned):
            extent = source.shape[axis]
            if bool(((index < 0) | (index >= extent)).any()):
                raise StepladderError(
                    f"the reference of {self.op.name} reads an element outside of an axis of {extent} elements",
                    location=self.op.location,
                )
        return Labelled(source[tuple(aligned)], loops)

    def _check_size(self, loops: tuple[int, ...]) -> None:
        if math.prod(map(self.size_of, loops)) > LARGEST:
            raise StepladderError(
                f"the reference of {self.op.name} needs an array of "
                f"{'x'.join(str(self.size_of(loop)) for loop in loops)} numbers, and the most is "
                f"{LARGEST}",
                location=self.op.location,
            )

    def _with_signs(self, op: Operation, operands: list[Array]) -> list[Array]:
        """Returns the operands of an op on booleans (i1) that takes them as integers, of which the larger one is
        -1; of other ops, what they are."""
        if op.operand_type != "i1" or op.name in _ON_TRUTH:
            return operands
        return [-self.arrays.cast(operand, "int64") for operand in operands]

    def _result(self, op: Operation, operands: list[Array]) -> Array:
        operands = self._with_signs(op, operands)
        if op.name in UNSIGNED:
            if op.type in ("i64", "index"):
                return WIDE_UNSIGNED[op.name](self.arrays, *operands)
            return UNSIGNED[op.name](*(operand & (1 << int(op.type[1:])) - 1 for operand in operands))
        if op.name in ARITHMETIC:
            return ARITHMETIC[op.name](self.arrays, *operands)
        if op.name in PREDICATES:
            return PREDICATES[op.name][int(op.attribute or 0)](*operands)
        (operand,) = operands
        if op.name == BITCAST:
            return self.arrays.bits(operand, op.operand_type, op.type)
        if op.name == "arith.uitofp" and op.operand_type == "i64":
            return to_float(self.arrays, operand, self.program.kind(op.type))
        if op.name in ("arith.extui", "arith.uitofp") and op.operand_type != "i1":
            return operand & (1 << int(op.operand_type[1:])) - 1
        return operand

    def _typed(self, op: Operation, array: Array) -> Array:
        """Returns an op's result as its type holds it: floating point unrounded, but fp8 rounded, integers wrapped."""
        if op.type in FP8_TYPES:
            return self.arrays.rounded(array, op.type)
        if op.type == "i1" and "bool" not in str(array.dtype):
            array = self.arrays.cast(array, "int64") & 1
        if op.name == "arith.fptoui" and op.type == "i64":
            return from_float(self.arrays, array)
        if is_float(op.type) or op.type in ("i1", "i64", "index") or op.name == "arith.extsi":
            return self.arrays.cast(array, self.program.kind(op.type))
        half = 1 << int(op.type[1:]) - 1
        return (self.arrays.cast(array, "int64") + half & 2 * half - 1) - half

    def _folded(self, number: int, reductions: list[int], fold: str) -> Labelled:
        """Returns a value folded over loops."""
        value = self.value_of(number)
        loops = tuple(sorted({*value.loops, *reductions}))
        self._check_size(loops)
        array = self.aligned(value, loops)
        array = self.arrays.xp.broadcast_to(
            array, [self.size_of(loop) if loop in reductions else size for loop, size in zip(loops, array.shape)]
        )
        for loop in sorted(reductions, reverse=True):
            axis = loops.index(loop)
            if fold in ARITHMETIC:
                array = self._by_halves(array, axis, fold)
            else:
                array = getattr(self.arrays.xp, fold)(array, axis)
            loops = tuple(other for other in loops if other != loop)
        return Labelled(array, loops)

    def _by_halves(self, array: Array, axis: int, name: str) -> Array:
        """Returns an array folded along an axis by an op of two operands that does so in any order."""
        xp = self.arrays.xp
        array = xp.moveaxis(array, axis, 0)
        while array.shape[0] > 1:
            half = array.shape[0] // 2
            folded = ARITHMETIC[name](self.arrays, array[:half], array[half : 2 * half])
            array = xp.concatenate([folded, array[2 * half :]])
        return array[0]

    def _contracted(self, number: int, reductions: list[int]) -> Labelled | None:
        """Returns the sum of products of two arrays as a matrix product, or None where it is no such sum."""
        product = self.definitions.get(number)
        while product is not None and product.name in FLOAT_CASTS:
            product = self.definitions.get(product.operands[0])
        if product is None or product.name not in ("arith.mulf", "arith.muli"):
            return None
        left, right = map(self.value_of, product.operands)
        if not set(reductions) <= set(left.loops) & set(right.loops):
            return None
        batch = tuple(loop for loop in left.loops if loop in right.loops and loop not in reductions)
        rows = tuple(loop for loop in left.loops if loop not in right.loops)
        columns = tuple(loop for loop in right.loops if loop not in left.loops)
        sizes = [[self.size_of(loop) for loop in group] for group in (batch, rows, columns, reductions)]
        batches, height, width, depth = map(math.prod, sizes)
        factors = self._exact_factors(left.array, right.array, depth)
        if factors is None:
            return None
        a = self.aligned(Labelled(factors[0], left.loops), (*batch, *rows, *reductions))
        b = self.aligned(Labelled(factors[1], right.loops), (*batch, *reductions, *columns))
        shapes = ([height, depth], [depth, width]) if not batch else ([batches, height, depth], [batches, depth, width])
        total = a.reshape(shapes[0]) @ b.reshape(shapes[1])
        if product.name == "arith.muli":
            total = self.arrays.cast(total, "int64")
        return Labelled(total.reshape([*sizes[0], *sizes[1], *sizes[2]]), (*batch, *rows, *columns))

    def _exact_factors(self, left: Array, right: Array, depth: int) -> tuple[Array, Array] | None:
        """Returns factors in a type in which matrix products are fast, and exact where they are of integers."""
        if "int" not in str(left.dtype):
            return left, right
        largest = depth * int(abs(left).max()) * int(abs(right).max())
        if largest >= 1 << 53:
            return None
        kind = "float32" if largest < 1 << 24 else "float64"
        return self.arrays.cast(left, kind), self.arrays.cast(right, kind)
