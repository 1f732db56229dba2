"""The problem that a kernel computes: a matmul or a batch of them, its sizes, element types and layouts.

A payload is recognized as one, a manifest holds one, and the checks of a kernel's results follow from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

LARGEST_SIZE = 2**63 - 1  # that a shape of MLIR has
_EPILOGUE = "d"
_RESULT = "r"


def epilogue_role(number: int) -> str:
    """Returns the role of an operand of the epilogue: `d0`, `d1` and so on.

    Args:
        number: from 0 on.
    """
    return f"{_EPILOGUE}{number}"


def result_role(number: int) -> str:
    """Returns the role of a result beside C: `r0`, `r1` and so on.

    Args:
        number: from 0 on.
    """
    return f"{_RESULT}{number}"


def operand_of(role: str) -> str:
    """Returns the operand of an argument's role: A for `ab`, the role of one buffer that is A and B.

    Args:
        role: of an argument of a payload.
    """
    return "a" if role == "ab" else role


@dataclass(frozen=True)
class Operand:
    """An operand of a problem in memory: its element type, the extents of its buffer, and how a kernel accesses it;
    with `by_value`, a scalar that a launch passes."""

    element_type: str
    shape: tuple[int, ...]
    access: str
    by_value: bool = False


@dataclass(frozen=True)
class EpilogueOperand:
    """An operand of elementwise ops, such as a bias or a scale, or of a second product. A kernel reads it.

    Attributes:
        element_type: MLIR's name of the element type.
        shape: extents of the buffer, outermost first.
        by_value: whether it is a scalar that a launch passes, and no buffer; it has no extents.
    """

    element_type: str
    shape: tuple[int, ...]
    by_value: bool = False


@dataclass(frozen=True)
class Window:
    """The part of a buffer that an operand is: dense rows with a pitch.

    Attributes:
        shape: extents of the buffer, outermost first.
        offset: elements before the first one of the operand.
        strides: elements from one index of the operand to the next, of each dimension; 1 for the innermost, 0 where
            the matmuls of a part of the batch read one matrix.
        batch: extents that a batch divides into, outermost first, where each has a stride of its own; empty where all
            matrices are apart by one stride.
    """

    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]
    batch: tuple[int, ...] = ()

    @property
    def unit(self) -> int:
        """The largest number of elements that each row begins at a multiple of."""
        return math.gcd(self.offset, *self.strides[:-1])

    def matrices(self, matmuls: int) -> int:
        """Returns how many matrices the matmuls of a batch read.

        Args:
            matmuls: of the batch.
        """
        return math.prod(size for size, stride in zip(self.batch, self.strides) if stride) if self.batch else matmuls

    def extents(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the extents that the strides are of.

        Args:
            shape: of the operand, with one dimension for a batch.
        """
        return (*self.batch, *shape[1:]) if self.batch else shape


@dataclass(frozen=True)
class FurtherResult:
    """A result beside C that elementwise ops make of the product, or that is a reduction of such a matrix, of fewer
    dimensions than C. A kernel writes it and does not read it."""

    element_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """A matmul: C = AB + C in place (`accumulate`), or C = AB; A is m x k, B is k x n, C is m x n and row-major.

    In a batch, C and the operands that are not broadcast are buffers of as many matrices, one after the other. All
    matmuls of the batch read the one matrix of an operand that is broadcast.

    Attributes:
        m, n, k: extents in elements.
        a_type, b_type, c_type: element types as stored.
        acc_type: element type in which products are summed.
        accumulate: whether C is read as well as written.
        kind: always `matmul`.
        a_layout, b_layout: `row`, or `column` for an operand stored as the row-major buffer of its transpose.
        compute_type: type whose accuracy the products have: `a_type`, or `tf32` for f32 that loses bits. None, when
            made, represents `a_type`.
        batch: matmuls of a batch; None for a plain matmul, whose buffers have no batch dimension.
        a_broadcast, b_broadcast: whether all matmuls of a batch read one A, or one B.
        b_is_a: whether A and B are one buffer, each in its own layout.
        consumers: names of the elementwise ops on the product, in order, beside its rounding to C's type. With them C
            is f(AB), or f(AB, C) where the kernel accumulates.
        epilogue_operands: what elementwise ops, before the product and on it, read beside `a_source`, `b_source`,
            the product and C; roles `d0`, `d1` and so on.
        results: what the elementwise ops make beside C, among them reductions of rows or columns, which have fewer
            dimensions than C; roles `r0`, `r1` and so on.
        second_b: which of `epilogue_operands` is the B of a second product, of the same A: C is f(AB, AD0) where it is
            0. It has the type, layout and extents of B. None where there is one product.
        producers: names of the scalar ops that prepare A, B, or sums of their rows or columns that the epilogue reads,
            in order. `a_type` and the layouts are of what they make; what they read beside `a_source` and `b_source` is
            among `epilogue_operands`.
        a_source, b_source: the buffer that A, or B, is prepared from; None where it is the operand itself.
        a_window, b_window, c_window: the part of a buffer that A, B or C is; None where it is all of one.
        fits_tf32: whether A and B of f32 have only tf32 values, and their products are of tf32, which is exact.
    """

    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    acc_type: str
    c_type: str
    accumulate: bool
    kind: str = "matmul"
    a_layout: str = "row"
    b_layout: str = "row"
    compute_type: str | None = None
    batch: int | None = None
    a_broadcast: bool = False
    b_broadcast: bool = False
    b_is_a: bool = False
    consumers: tuple[str, ...] = ()
    epilogue_operands: tuple[EpilogueOperand, ...] = ()
    results: tuple[FurtherResult, ...] = ()
    second_b: int | None = None
    producers: tuple[str, ...] = ()
    a_source: EpilogueOperand | None = None
    b_source: EpilogueOperand | None = None
    a_window: Window | None = None
    b_window: Window | None = None
    c_window: Window | None = None
    fits_tf32: bool = False

    def __post_init__(self) -> None:
        if self.compute_type is None:
            object.__setattr__(self, "compute_type", self.a_type)

    @property
    def sizes(self) -> str:
        """The extents as a message shows them: `128 x 256 x 64`, or `16 x 128 x 256 x 64` of a batch."""
        return " x ".join(str(size) for size in (self.batch, self.m, self.n, self.k) if size is not None)

    @property
    def has_epilogue(self) -> bool:
        """Whether elementwise ops, or stores of several results, follow the product."""
        return bool(self.consumers or self.results)

    @property
    def products(self) -> int:
        """How many products of A the elementwise ops combine: 1, or 2 of a pair."""
        return 1 if self.second_b is None else 2

    @property
    def alone(self) -> Problem:
        """The same matmul without elementwise ops before and after it."""
        problem = replace(self, producers=(), a_source=None, b_source=None)
        problem = replace(problem, a_window=None, b_window=None, c_window=None)
        return replace(problem, consumers=(), epilogue_operands=(), results=(), second_b=None)

    def window(self, role: str) -> Window | None:
        """Returns the part of a buffer that an operand is, None where it is all of one.

        Args:
            role: of the operand.
        """
        return {"a": self.a_window, "b": self.b_window, "c": self.c_window}.get(role)

    @property
    def has_windows(self) -> bool:
        """Whether an operand is a part of a buffer."""
        return any(self.window(role) is not None for role in "abc")

    @property
    def is_in_larger(self) -> bool:
        """Whether the buffer of C has elements beside it, which stay as they are."""
        return self.c_window is not None and math.prod(self.c_window.shape) != math.prod(self.c_shape)

    @property
    def is_prepared(self) -> bool:
        """Whether preceding kernels make A, B, or sums of them that the epilogue reads."""
        return self.a_source is not None or self.b_source is not None or bool(self.producers)

    @property
    def reductions(self) -> int:
        """How many of the results beside C are reductions of rows or columns."""
        return sum(len(result.shape) < len(self.c_shape) for result in self.results)

    @property
    def matmuls(self) -> int:
        """How many matmuls the problem consists of: those of its batch, or 1."""
        return self.batch or 1

    @property
    def a_shape(self) -> tuple[int, ...]:
        """Extents of A's buffer, outermost first: (m, k), or (k, m) where A is column-major; (batch, m, k) in a batch,
        unless A is broadcast."""
        return self._batched((self.m, self.k) if self.a_layout == "row" else (self.k, self.m), self.a_broadcast)

    @property
    def b_shape(self) -> tuple[int, ...]:
        """Extents of B's buffer, outermost first: (k, n), or (n, k) where B is column-major; (batch, k, n) in a batch,
        unless B is broadcast."""
        return self._batched((self.k, self.n) if self.b_layout == "row" else (self.n, self.k), self.b_broadcast)

    @property
    def c_shape(self) -> tuple[int, ...]:
        """Extents of C's buffer, outermost first: (m, n), or (batch, m, n)."""
        return self._batched((self.m, self.n), False)

    def _batched(self, matrix: tuple[int, int], is_broadcast: bool) -> tuple[int, ...]:
        return matrix if self.batch is None or is_broadcast else (self.batch, *matrix)

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of all operands: `a`, `b`, `c`, those of the epilogue, and those of results beside C."""
        return ("a", "b", "c", *self.epilogue_roles, *self.result_roles)

    @property
    def epilogue_roles(self) -> tuple[str, ...]:
        """Roles of the operands of the epilogue."""
        return tuple(epilogue_role(number) for number in range(len(self.epilogue_operands)))

    @property
    def result_roles(self) -> tuple[str, ...]:
        """Roles of the results beside C."""
        return tuple(result_role(number) for number in range(len(self.results)))

    def operand(self, role: str) -> Operand:
        """Returns the operand of a role, one of `roles`.

        Args:
            role: `a`, `b`, `c`, `d0` and so on for operands of the epilogue, `r0` and so on for results beside C.
        """
        if role.startswith(_RESULT):
            result = self.results[int(role.removeprefix(_RESULT))]
            return Operand(result.element_type, result.shape, "write")
        if role not in "abc":
            operand = self.epilogue_operands[int(role.removeprefix(_EPILOGUE))]
            return Operand(operand.element_type, operand.shape, "read", operand.by_value)
        window = self.window(role)
        if role == "c":
            # Elements outside of the window are unchanged.
            shape = self.c_shape if window is None else window.shape
            return Operand(self.c_type, shape, "readwrite" if self.accumulate or self.is_in_larger else "write")
        source = self.a_source if role == "a" else self.b_source
        if source is not None:
            return Operand(source.element_type, source.shape, "read")
        type_, shape = (self.a_type, self.a_shape) if role == "a" else (self.b_type, self.b_shape)
        return Operand(type_, shape if window is None else window.shape, "read")

    @property
    def flops(self) -> int:
        """Arithmetic operations of one launch, of floating-point numbers or integers: 2 m n k, times the batch and the
        products."""
        return 2 * self.products * self.matmuls * self.m * self.n * self.k

    def describe(self) -> str:
        """Returns one line for people, for example `C = AB + C, 128 x 256 x 64, f16 x f16 -> f32 (f32 accumulation)`.

        Products in another type than the operands', operands that are not row-major, and the elementwise ops of the
        epilogue are mentioned too: `..., f32 x f32 -> f32 (tf32 products, f32 accumulation), A column-major`,
        `C = f(AB), ..., f: addf, maximumf with D0 (256xf32)`. The sizes of a batch begin with the number of its
        matmuls: `C = AB, 16 x 128 x 256 x 64, ...`.
        """
        formula = "C = AB + C" if self.accumulate else "C = AB"
        if self.consumers:
            products = "AB" if self.second_b is None else f"AB, A{epilogue_role(self.second_b).upper()}"
            formula = f"C = f({products}, C)" if self.accumulate else f"C = f({products})"
        products = "" if self.compute_type == self.a_type else f"{self.compute_type} products, "
        products = "exact tf32 products, " if self.fits_tf32 else products
        columns = [name for name, layout in (("A", self.a_layout), ("B", self.b_layout)) if layout == "column"]
        layouts = f", {' and '.join(columns)} column-major" if columns else ""
        broadcast = [name for name, is_one in (("A", self.a_broadcast), ("B", self.b_broadcast)) if is_one]
        layouts += f", {' and '.join(broadcast)} broadcast" if broadcast else ""
        layouts += ", B is A's buffer" if self.b_is_a else ""
        layouts += "".join(
            f", {role.upper()} in {'x'.join(map(str, window.shape))} from {window.offset} on with pitches "
            f"{'x'.join(map(str, window.strides[:-1]))}"
            for role in "abc"
            if (window := self.window(role)) is not None
        )
        return (
            f"{formula}, {self.sizes}, {self.a_type} x {self.b_type} -> {self.c_type} "
            f"({products}{self.acc_type} accumulation){layouts}{self._describe_epilogue()}"
        )

    def _describe_epilogue(self) -> str:
        results = ", ".join(
            f"{role.upper()} ({'x'.join(map(str, (*result.shape, result.element_type)))})"
            for role, result in zip(self.result_roles, self.results)
        )
        results = f", also stores {results}" if results else ""
        text = f", f: {_names(self.consumers)}" if self.consumers else ""
        sources = ", ".join(
            f"{name} prepared from {'x'.join(map(str, (*source.shape, source.element_type)))}"
            for name, source in (("A", self.a_source), ("B", None if self.b_is_a else self.b_source))
            if source is not None
        )
        sources = sources or ("sums of A or B prepared" if self.producers else "")
        by = f" by {_names(self.producers)}" if self.producers else ", in another order"
        text += f", {sources}{by}" if sources else ""
        if not text:
            return results
        operands = ", ".join(
            f"{epilogue_role(number).upper()} ({'x'.join(map(str, (*operand.shape, operand.element_type)))})"
            for number, operand in enumerate(self.epilogue_operands)
        )
        return text + (f" with {operands}" if operands else "") + results


def _names(operations: tuple[str, ...]) -> str:
    """Returns names of scalar ops without their dialects."""
    return ", ".join(name.split(".")[1] for name in operations)
