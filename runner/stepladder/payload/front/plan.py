"""Reduces a traced contraction to C = AB or C = AB + C of matrices: m, n, k and the layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.payload.front import bodies
from stepladder.payload.front.destinations import Destination, destinations_of
from stepladder.payload.front.digits import Digit, extent, flat
from stepladder.payload.front.dimensions import Dimensions, dimensions_of, interleaved
from stepladder.payload.front.planned import Elementwise, Input, Layout, Matrix, Plan, Read, Stored
from stepladder.payload.front.trace import ACCEPTED, Trace
from stepladder.payload.front.traced import Consumer, Contraction
from stepladder.payload.front.views import Origin, View, whole_of
from stepladder.payload.refusal import refuse, refuse_fill

# Dimensions of a batch that a kernel stores to: TMA addresses tensors of up to five.
_MAX_BATCH = 3
_READ_BITS = 16
# Of a contraction: its kernel reads an A or B of which the batch has several strides.
STRIDED = "strided"


def make_plan(trace: Trace) -> Plan:
    """Returns the matmul that a function computes.

    Args:
        trace: of the function, followed to its end.

    Raises:
        StepladderError: no contraction; operands that are no arguments; dimensions that do not collapse to m, n and k;
            a result that goes nowhere, or whose order differs from that of another.
    """
    contraction = trace.contraction
    if contraction is None and trace.reduction is not None:
        raise refuse(
            trace.reduction,
            f"{trace.reduction.name} is not a contraction: it does not add products of two operands, possibly "
            "extended, to its output",
            ACCEPTED,
        )
    if contraction is None:
        raise refuse(trace.function, "the function has no contraction: no linalg op that multiplies and adds", ACCEPTED)
    destinations = destinations_of(trace)
    for name, view in (("A", contraction.a), ("B", contraction.b)):
        _check_operand(name, view, contraction.op)
    _check_no_constant(contraction.start)
    if contraction.start.origin not in (Origin.ARGUMENT, Origin.ZEROS):
        raise refuse(
            contraction.op,
            f"the initial value of {contraction.op.name} is {contraction.start.origin.value}",
            "accepted initial values: a linalg.fill with 0 (C = AB), C itself (C = AB + C)",
        )
    return _matmul(trace, contraction, destinations)


def _check_no_constant(view: View) -> None:
    """Refuses a tensor that a `linalg.fill` makes of a constant other than 0, which only reductions begin with."""
    if view.origin is Origin.CONSTANT and view.op is not None:
        raise refuse_fill(view.op, getattr(bodies.constant_of(view.op.operands[0]), "value", None))


def _check_operand(name: str, view: View, op: ir.Operation) -> None:
    _check_no_constant(view)
    if view.origin is not Origin.ARGUMENT:
        name_of_op = f" ('{view.op.name}')" if view.op is not None else ""
        raise refuse(
            view.op if view.op is not None else op,
            f"{name} is {view.origin.value}{name_of_op}; it must be an argument of the function, as it is or through "
            "views, linalg.transpose and extensions",
        )


def _matmul(trace: Trace, contraction: Contraction, destinations: list[Destination]) -> Plan:
    """Returns the plan of a contraction whose results are stored in arguments, C first."""
    result, number, c_order = destinations[0].view, destinations[0].number, destinations[0].order
    dimensions = dimensions_of(contraction, c_order)
    groups = dimensions.of_c
    part = None
    if c_order != [digit for group in groups for digit in group]:
        part = _behind_rows(result, c_order, dimensions.batch, dimensions.m, dimensions.n)
        if part is None:
            raise interleaved(contraction, "C", None, c_order, dimensions)
    c = Matrix(number, result.element, part=part or _layout(contraction.op, "C", result, groups))
    others = tuple(_other(destination, groups) for destination in destinations[1:])
    all_axes = tuple(range(len(groups)))

    def read(view: View, op: ir.Operation) -> Read:
        """Returns what an op reads; C itself as it is written, with its batch at any place."""
        item = _read(view, op, groups)
        is_in_c = item.argument == number and flat(view.storage) == c_order
        laid_out = (view.window or whole_of(c_order)).laid_out(groups) if is_in_c else None
        is_c = laid_out is not None and Layout(*laid_out) == c.part
        return replace(item, axes=all_axes, part=c.part) if is_c else item

    start = None
    if contraction.start.origin is Origin.ARGUMENT:
        start = read(contraction.start, contraction.op)
        if start.axes != all_axes:
            raise refuse(
                contraction.op,
                f"{contraction.op.name} has an initial value that is a broadcast or transposed view of an argument",
            )
    consumers = _consumers(trace, [destination.view.stage for destination in destinations], read)
    _check_reads(c, contraction, start, consumers, all_axes)
    a, b = (contraction.b, contraction.a) if dimensions.swaps else (contraction.a, contraction.b)
    return Plan(
        extent(dimensions.batch) if dimensions.batch else None,
        extent(dimensions.m),
        extent(dimensions.n),
        extent(dimensions.k),
        _operand(contraction, "A", a, dimensions.m, dimensions.k, dimensions),
        _operand(contraction, "B", b, dimensions.k, dimensions.n, dimensions),
        Stored(c, result.stage),
        others,
        start,
        contraction.product.stored,
        consumers,
        contraction.op.location,
    )


def _operand(
    contraction: Contraction, name: str, view: View, rows: list[Digit], columns: list[Digit], dimensions: Dimensions
) -> Matrix:
    """Returns A or B as it lies in memory, given the digits of its rows and columns."""
    assert view.place is not None  # it is an argument
    order = flat(view.storage)
    is_broadcast = bool(dimensions.batch) and not set(dimensions.batch) & set(order)
    outer = [] if is_broadcast else dimensions.batch
    if order not in (outer + rows + columns, outer + columns + rows):
        apart = _apart(view, order, outer, rows, columns, is_strided=STRIDED in contraction.op.attributes)
        if apart is not None:
            return apart
        raise interleaved(contraction, name, view.place.argument, order, dimensions)
    is_transposed = order != outer + rows + columns
    groups = [*([outer] if outer else []), *((columns, rows) if is_transposed else (rows, columns))]
    part = _layout(contraction.op, name, view, groups)
    return Matrix(view.place.argument, view.stored, is_transposed, is_broadcast, part)


def _apart(
    view: View, order: list[Digit], batch: list[Digit], rows: list[Digit], columns: list[Digit], *, is_strided: bool
) -> Matrix | None:
    """Returns an operand of a batch that is not outermost, such as rows of all matrices: matrices with a row pitch, of
    16-bit elements, which all pipelines that read parts of buffers read in either layout, or of any elements where the
    contraction is for those that read all. Those also read a matrix for several matmuls, with a stride of 0. None for
    others.

    Args:
        view: the operand.
        order: the digits of the buffer, outermost first.
        batch, rows, columns: those of each dimension.
        is_strided: whether the batch may have several strides, and elements any width.
    """
    assert view.place is not None  # it is an argument
    bits, place = bits_of_name(str(view.stored)), view.window or whole_of(order)
    own = [digit for digit in batch if digit in order]
    if not own or (not is_strided and (bits != _READ_BITS or own != batch)) or {*order} != {*own, *rows, *columns}:
        return None
    place = place.repeated([digit for digit in batch if digit not in order])
    runs = place.runs(batch)
    if len(runs) > (_MAX_BATCH if is_strided else 1):
        return None
    extents = tuple(map(extent, runs)) if len(runs) > 1 else ()
    for is_transposed, inner in ((False, [rows, columns]), (True, [columns, rows])):
        laid_out = place.laid_out([*runs, *inner])
        if laid_out is not None and place.has_rows([*runs, *inner], bits):
            return Matrix(view.place.argument, view.stored, is_transposed, False, Layout(*laid_out, batch=extents))
    return None


def _layout(op: ir.Operation, name: str, view: View, groups: list[list[Digit]]) -> Layout | None:
    """Returns where in its argument a view is, in terms of the digits of each dimension; None where it is all of it."""
    if view.window is None:
        return None
    laid_out = view.window.laid_out(groups)
    if laid_out is None:
        raise refuse(
            op,
            f"{op.name} takes a part of a buffer as {name} and collapses dimensions that are not adjacent in memory",
            "accepted: parts whose rows, columns and matrices each are one dimension",
        )
    return Layout(*laid_out)


def _behind_rows(
    result: View, order: list[Digit], batch: list[Digit], rows: list[Digit], columns: list[Digit]
) -> Layout | None:
    """Returns where a result whose batch is not outermost is stored, as the heads of an attention behind its rows:
    matrices with a row pitch. The batch may have several strides, as the heads of several sequences do. None where no
    kernel stores it.

    Args:
        result: the product.
        order: the digits of the buffer, outermost first.
        batch, rows, columns: those of each dimension.
    """
    place = result.window or whole_of(order)
    runs = place.runs(batch)
    groups = [*runs, rows, columns]
    laid_out = place.laid_out(groups)
    if laid_out is None or len(runs) > _MAX_BATCH or not place.has_rows(groups, bits_of_name(result.element)):
        return None
    return Layout(*laid_out, batch=tuple(map(extent, runs)) if len(runs) > 1 else ())


def _other(destination: Destination, groups: list[list[Digit]]) -> Stored:
    """Returns a result beside C, whose dimensions are given by their digits."""
    view = destination.view
    if view.origin is Origin.REDUCED:
        return Stored(Matrix(destination.number, view.element), view.stage, _kept(destination, groups))
    if destination.order != [digit for group in groups for digit in group] or view.window is not None:
        raise refuse(
            destination.op,
            "a second result whose dimensions are in another order than those of the first, or a part of a buffer",
            "accepted: further results that are whole buffers, with the batch outermost, and then rows and columns as "
            "those of the first",
        )
    return Stored(Matrix(destination.number, view.element), view.stage)


def _kept(destination: Destination, groups: list[list[Digit]]) -> int:
    """Returns which axis of C a reduction of it has."""
    if len(groups) > 2:
        raise refuse(
            destination.op, "a result that reduces the products of a batch", "accepted: reductions of a single matmul"
        )
    if destination.view.window is not None or destination.order not in groups:
        raise refuse(
            destination.op,
            "a result that reduces dimensions other than all rows or all columns of the product",
            "accepted: further results that are whole buffers, with a number for each row, or for each column",
        )
    return groups.index(destination.order)


def _consumers(
    trace: Trace, stages: Sequence[int], read: Callable[[View, ir.Operation], Read]
) -> tuple[Elementwise, ...]:
    """Returns the elementwise ops and reductions that some stages of the product are made by, in order."""

    def planned(consumer: Consumer, view: View | None) -> Input:
        if view is None or view.origin is Origin.PRODUCT:
            return None if view is None else view.stage
        return read(view, consumer.op)

    by_stage: dict[int, Elementwise] = {}
    pending = [*stages]
    while pending:
        number = pending.pop()
        if number == 0 or number in by_stage:
            continue
        consumer = trace.consumers[number - 1]
        inputs = tuple(planned(consumer, view) for view in consumer.inputs)
        output = None if consumer.output is None else planned(consumer, consumer.output)
        by_stage[number] = Elementwise(consumer.op, inputs, output, number, consumer.element, consumer.begin)
        pending += [item for item in (*inputs, output) if isinstance(item, int)]
    return tuple(by_stage[number] for number in sorted(by_stage))


def _check_reads(
    c: Matrix,
    contraction: Contraction,
    start: Read | None,
    consumers: tuple[Elementwise, ...],
    identity: tuple[int, ...],
) -> None:
    """Refuses ops that read C other than each element where it is written, once."""
    is_read = start is not None and start.argument == c.argument
    if start is not None and is_read and start.part != c.part:
        raise refuse(
            contraction.op,
            f"{contraction.op.name} starts from another part of argument {c.argument} than the result is written to",
            "accepted: C = AB + C of one part, or of two buffers",
        )
    for item in consumers:
        for read in (*item.inputs, item.output):
            if not isinstance(read, Read) or read.argument != c.argument:
                continue
            if is_read or read.axes != identity or read.part != c.part:
                raise refuse(
                    item.op,
                    f"{item.op.name} reads argument {c.argument}, which the result is written to, a second time or in "
                    "another order",
                    "accepted: C read once, each element where the result's is written",
                )
            is_read = True


def _read(view: View, op: ir.Operation, groups: list[list[Digit]]) -> Read:
    """Returns an argument that is combined with the product, or that the sums begin from."""
    _check_no_constant(view)
    if view.origin is not Origin.ARGUMENT or view.place is None:
        raise refuse(
            view.op if view.op is not None else op,
            f"{op.name} combines the product with {view.origin.value}; accepted: arguments of the function",
        )
    order = flat(view.storage)
    axes = range(len(groups))
    for count in reversed(range(len(groups) + 1)):
        for form in permutations(axes, count):
            if order == [digit for number in form for digit in groups[number]]:
                part = _layout(op, "an operand", view, [groups[number] for number in form])
                return Read(view.place.argument, view.stored, view.element, form, part)
    raise refuse(
        op,
        f"{op.name} combines the product with an operand whose dimensions are not rows or columns of C",
        "accepted: operands with all dimensions of m, of n, of both, or none, in the order of C",
    )
