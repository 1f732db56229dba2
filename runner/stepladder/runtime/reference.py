"""The reference program of a bundle: the computation of the payload, in a form that needs no MLIR.

`reference.json` holds the payload's function as a list of instructions on whole arrays, exported from its linalg IR by
`reference_export`, before any step and without regard to what a pipeline makes of it. `reference_evaluation` computes
it in float64. Values are numbered; an instruction takes values that are made before it and makes new ones, and none is
changed afterwards. A buffer that the function writes is an argument whose `after` is the value that it holds at the
end.

    constant   a scalar, in `shape` copies
    empty      an array whose content nothing may depend on
    generic    a linalg op in its generic form: loops of `sizes` around a scalar `body`; `maps` gives for each operand
               the loop that runs along each of its axes (None where the coordinate is 0)
    reshape    `linalg` collapse_shape and expand_shape: the same elements in another shape
    slice      every `strides`-th element from `offsets` on, `sizes` of them
    insert     `target` with the elements that such a slice has replaced by those of `source`

The format has a version of its own, which changes when an older reader would misread it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem

VERSION = 1
REFERENCE = "reference.json"


@dataclass(frozen=True)
class Argument:
    """An argument of the function.

    Attributes:
        value: its content when the function begins.
        type: MLIR's name of the element type.
        shape: extents, outermost first; () for a scalar.
        role: which operand of the kernel it is ("ab" for A and B in one), or None where the kernel does not take it.
        after: the value that the buffer holds when the function ends, or None where it is not written.
    """

    value: int
    type: str
    shape: tuple[int, ...]
    role: str | None = None
    after: int | None = None


@dataclass(frozen=True)
class Result:
    """A tensor that the function returns: `value`, of `type` and `shape`; `role` as for an argument."""

    value: int
    type: str
    shape: tuple[int, ...]
    role: str | None = None


@dataclass(frozen=True)
class Constant:
    """A number in `shape` copies: an integer, or a floating-point number as `float.hex` writes it."""

    kind: ClassVar[str] = "constant"
    result: int
    type: str
    shape: tuple[int, ...]
    number: int | str


@dataclass(frozen=True)
class Empty:
    """An array without content."""

    kind: ClassVar[str] = "empty"
    result: int
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    """A scalar op in a body.

    Attributes:
        name: MLIR's, for example `arith.mulf`.
        operands: values: of the body, or single scalars from outside; of `tensor.extract` a value of the program, of
            any shape, and the indices of an element.
        result: the value it makes; `type`: of which type; `operand_type`: type of its last operand.
        attribute: the predicate of a comparison, the loop of `linalg.index`, the number of a constant; else None.
    """

    name: str
    operands: tuple[int, ...]
    result: int
    type: str
    operand_type: str = ""
    attribute: int | str | None = None


@dataclass(frozen=True)
class Generic:
    """A structured op.

    Attributes:
        name, location: of the op in the payload.
        inputs: values that the body reads.
        outputs: values that the results start from.
        results: values that it makes, one for each output, of the types `types` and the outputs' shapes.
        maps: for each input and output, which loop runs along each axis.
        sizes: how often each loop runs. Loops that no output depends on are reductions.
        arguments: of the body, inputs first; `body`: its ops in order; `yields`: the new elements.
    """

    kind: ClassVar[str] = "generic"
    name: str
    location: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[str, ...]
    maps: tuple[tuple[int | None, ...], ...]
    sizes: tuple[int, ...]
    arguments: tuple[int, ...]
    body: tuple[Operation, ...]
    yields: tuple[int, ...]

    @property
    def reduces(self) -> bool:
        """Whether a loop does not run along any axis of the last output: its values are folded."""
        return len([loop for loop in self.maps[-1] if loop is not None]) < len(self.sizes)


@dataclass(frozen=True)
class Reshape:
    """The elements of `source` in row-major order, in another shape."""

    kind: ClassVar[str] = "reshape"
    source: int
    result: int
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Slice:
    """Part of `source`: along each axis `sizes` elements, every `strides`-th, from `offsets` on; axes not in `kept`,
    of size 1, are dropped."""

    kind: ClassVar[str] = "slice"
    source: int
    result: int
    type: str
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Insert:
    """`target`, of `shape`, with `sizes` elements along each axis, every `strides`-th from `offsets` on, replaced by
    those of `source`, in row-major order."""

    kind: ClassVar[str] = "insert"
    source: int
    target: int
    result: int
    type: str
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


Instruction = Constant | Empty | Generic | Reshape | Slice | Insert


def elements_of(instruction: Slice | Insert) -> tuple[slice, ...]:
    """Returns which elements a slice takes, or an insertion replaces, along each axis.

    Args:
        instruction: of a reference program.

    Returns:
        A slice for each axis.
    """
    return tuple(
        slice(offset, offset + (size - 1) * stride + 1, stride)
        for offset, size, stride in zip(instruction.offsets, instruction.sizes, instruction.strides)
    )


@dataclass(frozen=True)
class Program:
    """A function: its arguments, its instructions in order, its results."""

    arguments: tuple[Argument, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Result, ...] = ()

    @property
    def roles(self) -> dict[int, str]:
        """Roles by argument number; results follow the arguments."""
        return {
            number: item.role for number, item in enumerate((*self.arguments, *self.results)) if item.role is not None
        }

    def outputs(self) -> Iterator[tuple[str | None, int]]:
        """Yields the role and the value of everything that the function writes or returns."""
        for argument in self.arguments:
            if argument.after is not None:
                yield argument.role, argument.after
        for result in self.results:
            yield result.role, result.value

    def output(self, role: str) -> int:
        """Returns the value that a role's buffer holds at the end.

        Args:
            role: `c`, or that of a result beside C: `r0` and so on.

        Raises:
            StepladderError: the program writes no buffer of that role.
        """
        for output_role, value in self.outputs():
            if output_role == role:
                return value
        raise StepladderError(f"the reference program writes no {role.upper()}")

    def operations(self) -> list[str]:
        """Returns the names of all scalar ops, in order."""
        return [
            op.name for instruction in self.instructions if isinstance(instruction, Generic) for op in instruction.body
        ]

    def to_text(self) -> str:
        """Returns the program as JSON."""
        data = {
            "version": VERSION,
            "arguments": [dataclasses.asdict(item) for item in self.arguments],
            "instructions": [{"kind": item.kind, **dataclasses.asdict(item)} for item in self.instructions],
            "results": [dataclasses.asdict(item) for item in self.results],
        }
        return json.dumps(data, indent=1) + "\n"


def matmul_program(problem: Problem) -> Program:
    """Returns the program of a manifest's problem: for bundles without a `reference.json`, and for tests.

    Args:
        problem: one matmul, without elementwise ops.
    """
    sizes = (problem.m, problem.n, problem.k)
    is_integer = problem.acc_type.startswith("i")
    letter = "i" if is_integer else "f"
    arguments = (
        Argument(0, problem.a_type, problem.a_shape, "a"),
        Argument(1, problem.b_type, problem.b_shape, "b"),
        Argument(2, problem.c_type, problem.c_shape, "c", after=5),
    )
    zero = Constant(3, problem.acc_type, problem.c_shape, 0 if is_integer else (0.0).hex())
    maps = ((0, 2) if problem.a_layout == "row" else (2, 0), (2, 1) if problem.b_layout == "row" else (1, 2), (0, 1))
    if problem.batch is not None:  # loops of the batch, m, n and k
        sizes = (problem.batch, *sizes)
        broadcast = (problem.a_broadcast, problem.b_broadcast, False)
        maps = tuple(
            (*(() if is_broadcast else (0,)), *(loop + 1 for loop in map_))
            for map_, is_broadcast in zip(maps, broadcast)
        )
    extension = "arith.extsi" if is_integer else "arith.extf"
    factors, extensions = [10, 11], []
    for place, type_ in enumerate((problem.a_type, problem.b_type)):
        if type_ != problem.acc_type:
            extensions.append(Operation(extension, (factors[place],), 15 + place, problem.acc_type, type_))
            factors[place] = 15 + place
    body = (
        *extensions,
        Operation(f"arith.mul{letter}", tuple(factors), 13, problem.acc_type, problem.acc_type),
        Operation(f"arith.add{letter}", (12, 13), 14, problem.acc_type, problem.acc_type),
    )
    start = 2 if problem.accumulate else 3
    product = Generic(
        "linalg.matmul", "", (0, 1), (start,), (5,), (problem.acc_type,), maps, sizes, (10, 11, 12), body, (14,)
    )
    return Program(arguments, (product,) if problem.accumulate else (zero, product))
