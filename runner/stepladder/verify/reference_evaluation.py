"""Computes reference programs: real arithmetic in float64, integers exactly.

Rounding to a narrower floating-point type is not repeated: the reference is what the function computes in real numbers
from the inputs as stored, to the accuracy of float64. Integers wrap as their types do. A contraction is one matrix
product, any other op is computed on whole arrays. Only what is asked for is computed: `part` of an output takes
the parts of the inputs that it depends on, so that a large result can be compared block by block.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import (
    Constant,
    Empty,
    Generic,
    Insert,
    Instruction,
    Program,
    Reshape,
    Slice,
    elements_of,
)
from stepladder.runtime.reference_operations import is_float
from stepladder.verify.arrays import Array, NumPyArrays
from stepladder.verify.structured_evaluation import Region, StructuredOp

# How many instructions that read each other's results are computed one within the other. Python's stack has room for a
# few times as many; of deeper programs, some values in between are computed before, as a whole.
DEPTH = 48
# Values of few instructions, such as empty and constant arrays, are computed where they are read.
SHALLOW = 3


class Evaluation:
    """A program on given inputs.

    Args:
        program: what to compute.
        inputs: arrays by argument number, of the arguments' types and shapes; those that the program reads.
        arrays: what computes.
        wide: `float64`, or `float32` where that has all values exactly.
    """

    def __init__(
        self, program: Program, inputs: Mapping[int, np.ndarray], arrays: NumPyArrays, wide: str = "float64"
    ) -> None:
        self.arrays = arrays
        self._wide = wide
        self._arguments = {
            argument.value: (argument, inputs.get(number)) for number, argument in enumerate(program.arguments)
        }
        self.makers: dict[int, tuple[Instruction, int]] = {}
        for instruction in program.instructions:
            for number, result in enumerate(self._results_of(instruction)):
                self.makers[result] = instruction, number
        self.shapes = {value: argument.shape for value, (argument, _) in self._arguments.items()}
        for instruction in program.instructions:
            self._note_shapes(instruction)
        # Whole values, and parts of those that several instructions read, while a part of a result is computed.
        self._kept: dict[int, Array] = {}
        self._parts: dict[tuple[int, tuple], Array] = {}
        self._is_computing = False
        self._readers: Counter[int] = Counter()
        # Instructions on the longest chain to a value, and those values that a deeper group of instructions reads.
        self._depths: dict[int, int] = {}
        self._between: set[int] = set()
        for instruction in program.instructions:
            sources = sources_of(instruction)
            self._readers.update(sources)
            depth = 1 + max((self._depths.get(source, 0) for source in sources), default=0)
            own_depths = ((source, self._depths.get(source, 0)) for source in sources)
            self._between |= {source for source, own in own_depths if SHALLOW < own < depth // DEPTH * DEPTH}
            self._depths |= dict.fromkeys(self._results_of(instruction), depth)

    @staticmethod
    def _results_of(instruction: Instruction) -> tuple[int, ...]:
        return instruction.results if isinstance(instruction, Generic) else (instruction.result,)

    def _note_shapes(self, instruction: Instruction) -> None:
        if isinstance(instruction, Generic):
            for output, result in zip(instruction.outputs, instruction.results):
                self.shapes[result] = self.shapes[output]
        elif isinstance(instruction, Slice):
            self.shapes[instruction.result] = tuple(instruction.sizes[axis] for axis in instruction.kept)
        else:
            self.shapes[instruction.result] = instruction.shape

    def shape(self, value: int) -> tuple[int, ...]:
        """Returns the extents of a value.

        Args:
            value: number of a value of the program.
        """
        return tuple(self.shapes[value])

    def whole(self, value: int) -> Array:
        """Returns a value: floating-point numbers as `wide`, integers as int64.

        Args:
            value: number of a value of the program.
        """
        return self.part(value, tuple(slice(0, size) for size in self.shapes[value]))

    def rows(self, value: int, rows: slice) -> Array:
        """Returns the rows of a value that `rows` names; as `whole`.

        Args:
            value: number of a value of the program, of one dimension at least.
            rows: of the first dimension, with its start and stop.
        """
        extents = self.shapes[value][1:]
        return self.part(value, (slice(rows.start, rows.stop), *(slice(0, size) for size in extents)), keep=False)

    def part(self, value: int, region: Region, *, keep: bool = True) -> Array:
        """Returns a region of a value; as `whole`.

        Args:
            value: its index.
            region: a slice for each axis, with start and stop.
            keep: keep the result, where the region is the whole value, for the next time.
        """
        if value in self._kept:
            return self._kept[value][region]
        key = value, tuple((part.start, part.stop) for part in region)
        if key in self._parts:
            return self._parts[key]
        is_outermost, self._is_computing = not self._is_computing, True
        try:
            if is_outermost and self._depths.get(value, 0) >= DEPTH:
                for source in self._before(value):
                    self.whole(source)
            array = self._computed(value, region)
        finally:
            if is_outermost:
                self._is_computing = False
                self._parts.clear()
        # A part of a value is asked for once, block by block; the whole of one for every block.
        if keep and all((part.start, part.stop) == (0, size) for part, size in zip(region, self.shapes[value])):
            self._kept[value] = array
        elif self._readers[value] > 1 and not is_outermost:
            self._parts[key] = array
        return array

    def _before(self, value: int) -> list[int]:
        """Returns the values that are computed before one, in the order of the program."""
        needed, left = set(), [value]
        while left:
            maker = self.makers.get(left.pop())
            sources = sources_of(maker[0]) - needed if maker else set()
            needed |= sources
            left.extend(sources)
        return [source for source in self._depths if source in needed & self._between]

    def _computed(self, value: int, region: Region) -> Array:
        if value in self._arguments:
            argument, array = self._arguments[value]
            if array is None:
                raise StepladderError(f"the reference program reads an argument of {argument.type} that has no role")
            return self.arrays.load(array[region], self.kind(argument.type))
        instruction, number = self.makers[value]
        match instruction:
            case Constant():
                scalar = (
                    instruction.number if isinstance(instruction.number, int) else float.fromhex(instruction.number)
                )
                return self.filled(scalar, instruction.type, region)
            case Empty():
                return self.filled(math.nan if is_float(instruction.type) else 0, instruction.type, region)
            case Reshape():
                return self.whole(instruction.source).reshape(instruction.shape)[region]
            case Slice():
                parts = elements_of(instruction)
                return self.whole(instruction.source)[parts].reshape(self.shapes[value])[region]
            case Insert():
                new = self.whole(instruction.source).reshape(instruction.sizes)
                return self.arrays.replaced(self.whole(instruction.target), elements_of(instruction), new)[region]
            case Generic():
                return StructuredOp(self, instruction, number, region).computed()

    def kind(self, type_: str) -> str:
        """Returns the array type that holds values of an MLIR type: `wide`, `bool` or `int64`.

        Args:
            type_: element type by its MLIR name, such as "f16".
        """
        return self._wide if is_float(type_) else "bool" if type_ == "i1" else "int64"

    def filled(self, number: float, type_: str, region: Region) -> Array:
        """Returns an array of a region's extents with copies of a scalar.

        Args:
            number: that `type_` has.
            type_: element type by its MLIR name, which decides the array type (`kind`).
            region: a slice for each axis, with its start and stop.
        """
        shape = [part.stop - part.start for part in region]
        return self.arrays.load(np.full(shape, number, self.kind(type_)), self.kind(type_))


def sources_of(instruction: Instruction) -> set[int]:
    """Returns the values of the program that an instruction reads.

    Args:
        instruction: of a program.
    """
    match instruction:
        case Generic():
            inside = {*instruction.arguments, *(op.result for op in instruction.body)}
            read = {operand for op in instruction.body for operand in op.operands} | set(instruction.yields)
            return {*instruction.inputs, *instruction.outputs} | (read - inside)
        case Reshape() | Slice():
            return {instruction.source}
        case Insert():
            return {instruction.source, instruction.target}
    return set()
