"""What the front plans: a matmul, or a batch of them, on matrices that are views of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stepladder.mlir.bindings import ir


class Layout(NamedTuple):
    """Where in an argument a matrix is.

    Attributes:
        offset: of the first element, in elements.
        strides: of each dimension, in elements.
        batch: extents that the batch divides into, where each has a stride of its own; else empty.
    """

    offset: int
    strides: tuple[int, ...]
    batch: tuple[int, ...] = ()


@dataclass(frozen=True)
class Matrix:
    """An operand.

    Attributes:
        argument: which argument it is.
        element: its element type there.
        is_transposed: whether the buffer holds the transpose, row-major.
        is_broadcast: whether all matmuls of a batch take the one matrix.
        part: where in the argument it is; None where it is all of it.
    """

    argument: int
    element: str
    is_transposed: bool = False
    is_broadcast: bool = False
    part: Layout | None = None


@dataclass(frozen=True)
class Read:
    """An operand, other than the product, of an elementwise op on the product.

    Attributes:
        argument: the index of the argument.
        stored, element: its element type, and that which it is extended to.
        axes: which axes of C it has, outermost first: of a matrix, (0, 1) for a matrix, (1,) for a row, none for one
            number.
        part: as of a `Matrix`.
    """

    argument: int
    stored: str
    element: str
    axes: tuple[int, ...]
    part: Layout | None = None


# An operand of an elementwise op: the product at a stage, another tensor, or None for a scalar that stays as it is.
Input = int | Read | None


@dataclass(frozen=True)
class Elementwise:
    """An elementwise op on the product, or a reduction of elementwise functions of it.

    Attributes:
        op: the op, whose body it has.
        inputs: its inputs.
        output: what its body reads from its output, or None.
        stage: of the product that it makes.
        element: element type of that.
        begin: the constant that a reduction begins with; None for an elementwise op.
    """

    op: ir.Operation
    inputs: tuple[Input, ...]
    output: Input
    stage: int
    element: str
    begin: ir.Attribute | None = None


@dataclass(frozen=True)
class Stored:
    """A result that is stored.

    Attributes:
        matrix: where; a result that is returned has the number of a new argument, after those of the function.
        stage: of the product: 0 for the sums, else that of the elementwise op or the reduction that makes it.
        kept: of a reduction, the axis of C that it has: 0 for a number for each row, 1 for each column; else None.
    """

    matrix: Matrix
    stage: int
    kept: int | None = None


@dataclass(frozen=True)
class Plan:
    """One matmul, or a batch of them, on matrices that are views of arguments.

    Attributes:
        batch: how many; None for one.
        m, n, k: extents.
        a, b: the operands.
        c, others: the results.
        start: what the sums begin from; None for zeros.
        acc_type: element type of the sums.
        consumers: elementwise ops on the product and its reductions, in order.
        location: of the contraction.
    """

    batch: int | None
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    c: Stored
    others: tuple[Stored, ...]
    start: Read | None
    acc_type: str
    consumers: tuple[Elementwise, ...]
    location: ir.Location

    @property
    def results(self) -> tuple[Stored, ...]:
        """All results, C first."""
        return (self.c, *self.others)

    @property
    def shape(self) -> list[int]:
        """Extents of C."""
        return [self.m, self.n] if self.batch is None else [self.batch, self.m, self.n]

    def shape_of(self, result: Stored) -> list[int]:
        """Returns the extents of a result.

        Args:
            result: one of `results`.
        """
        return self.shape if result.kept is None else [self.shape[result.kept]]
