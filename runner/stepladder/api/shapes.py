"""The matmul of two arrays: sizes, layouts and batch, recognized from their shapes and strides."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepladder.api.errors import ArgumentError, shape_text
from stepladder.api.views import View

_ACCEPTED = (
    "contiguous rows (row-major) or columns (column-major, such as x.T), and in a batch matrices one behind the other, "
    "or one matrix for all"
)


@dataclass(frozen=True)
class Shapes:
    """The sizes of a matmul, and how its operands are seen.

    Attributes:
        m, n, k: extents.
        batch: matmuls of a batch; None for one.
        a_layout, b_layout: `row` or `column`.
        broadcast: the operands that all matmuls of a batch share: ``, `a`, `b` or `ab`.
        result: the shape of the result, as of `np.matmul`.
    """

    m: int
    n: int
    k: int
    batch: int | None
    a_layout: str
    b_layout: str
    broadcast: str
    result: tuple[int, ...]

    @property
    def matrix(self) -> tuple[int, ...]:
        """The shape of C as a kernel writes it."""
        return (self.m, self.n) if self.batch is None else (self.batch, self.m, self.n)


def _layout(view: View, shape: tuple[int, int], strides: tuple[int, int]) -> str:
    """Returns `row` or `column`, for a dense matrix."""
    (rows, columns), (row_stride, column_stride) = shape, strides
    if (columns == 1 or column_stride == 1) and (rows == 1 or row_stride == columns):
        return "row"
    if (rows == 1 or row_stride == 1) and (columns == 1 or column_stride == rows):
        return "column"
    raise ArgumentError(
        f"argument '{view.name}' has strides {view.strides} in elements; accepted: {_ACCEPTED}",
        notes=["np.ascontiguousarray(x) and x.contiguous() make a copy with contiguous rows"],
    )


@dataclass(frozen=True)
class _Operand:
    """A dense operand: its matrix, its layout, the extents before the matrix, and what the batch dimensions are in
    memory: `none` without any, `dense` for matrices one after the other, `one` for one matrix for all."""

    shape: tuple[int, int]
    layout: str
    batch: tuple[int, ...]
    kind: str


def _operand(view: View, shape: tuple[int, ...], strides: tuple[int, ...]) -> _Operand:
    if 0 in shape:
        raise ArgumentError(f"argument '{view.name}' is {shape_text(view.shape)}; accepted: extents of at least 1")
    matrix, batch = (shape[-2], shape[-1]), shape[:-2]
    layout = _layout(view, matrix, (strides[-2], strides[-1]))
    axes = [(extent, stride) for extent, stride in zip(batch, strides[:-2]) if extent > 1]
    if not axes:
        return _Operand(matrix, layout, batch, "one" if batch else "none")
    if all(stride == 0 for _, stride in axes):
        return _Operand(matrix, layout, batch, "one")
    expected = math.prod(matrix)
    for extent, stride in reversed(axes):
        if stride != expected:
            raise ArgumentError(
                f"argument '{view.name}' has strides {view.strides} in elements; accepted: {_ACCEPTED}",
                notes=["np.ascontiguousarray(x) and x.contiguous() make a copy with contiguous matrices"],
            )
        expected *= extent
    return _Operand(matrix, layout, batch, "dense")


def recognize(a: View, b: View) -> Shapes:
    """Returns the matmul of two arrays, whose shapes are those that `np.matmul` accepts.

    Args:
        a: of the first argument of the product.
        b: of the second one.

    Raises:
        ArgumentError: shapes that do not go together, or strides that would need a copy; names the argument.
    """
    for view in (a, b):
        if not view.shape:
            raise ArgumentError(f"argument '{view.name}' is a single element; accepted: arrays of 1 or more dimensions")
    a_shape, a_strides = (a.shape, a.strides) if len(a.shape) > 1 else ((1, *a.shape), (1, *a.strides))
    b_shape, b_strides = (b.shape, b.strides) if len(b.shape) > 1 else ((*b.shape, 1), (*b.strides, 1))
    first, second = _operand(a, a_shape, a_strides), _operand(b, b_shape, b_strides)
    (m, k), (inner, n) = first.shape, second.shape
    if k != inner:
        raise ArgumentError(
            f"argument 'a' is {shape_text(a.shape)} and 'b' is {shape_text(b.shape)}: a has {k} columns, and b {inner} "
            "rows; accepted: equal numbers"
        )
    batch = _batch(a, b, first, second)
    ends = (*((m,) if len(a.shape) > 1 else ()), *((n,) if len(b.shape) > 1 else ()))
    count = math.prod(batch)
    if count == 1:
        return Shapes(m, n, k, None, first.layout, second.layout, "", (*batch, *ends))
    if second.kind != "dense" and first.kind == "dense" and first.layout == "row":
        # One B for all: the rows of all matrices of A are rows of one matrix.
        return Shapes(count * m, n, k, None, "row", second.layout, "", (*batch, *ends))
    if 1 in (m, n, k):
        raise ArgumentError(
            f"argument 'a' is {shape_text(a.shape)} and 'b' is {shape_text(b.shape)}: m, n or k is 1 in each "
            f"product of the batch: {m} x {n} x {k}; accepted: sizes above 1, one product, or a batch a with one b"
        )
    broadcast = ("" if first.kind == "dense" else "a") + ("" if second.kind == "dense" else "b")
    return Shapes(m, n, k, count, first.layout, second.layout, broadcast, (*batch, *ends))


def _batch(a: View, b: View, first: _Operand, second: _Operand) -> tuple[int, ...]:
    """Returns the extents of the batch."""
    if math.prod(second.batch) == 1:
        batch = first.batch
    elif math.prod(first.batch) == 1:
        batch = second.batch
    elif first.batch == second.batch:
        return first.batch
    else:
        raise ArgumentError(
            f"argument 'a' is {shape_text(a.shape)} and 'b' is {shape_text(b.shape)}; accepted: the same batch, or one "
            "matrix for all"
        )
    longest = max(len(first.batch), len(second.batch))
    return (1,) * (longest - len(batch)) + batch
