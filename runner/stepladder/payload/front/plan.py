"""Reduces a traced contraction to C = AB or C = AB + C of matrices: what is m, n and k, and which layouts."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.payload.front.digits import Digit, extent, flat
from stepladder.payload.front.trace import ACCEPTED, Contraction, Trace
from stepladder.payload.front.views import Origin, View
from stepladder.payload.refusal import refuse


@dataclass(frozen=True)
class Matrix:
    """An operand: which argument, its element type there, and whether its buffer holds the transpose, row-major."""

    argument: int
    element: str
    is_transposed: bool = False


@dataclass(frozen=True)
class Plan:
    """One matmul on matrices that are views of arguments.

    Attributes:
        m, n, k: extents.
        a, b, c: the operands; the argument of a result that is returned has the number of one more.
        acc_type: element type of the sums.
        accumulates: whether they start from C.
        location, rounding_location: of the contraction, and of the op that rounds the sums to C's type, if any.
    """

    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    c: Matrix
    acc_type: str
    accumulates: bool
    location: ir.Location
    rounding_location: ir.Location | None


def make_plan(trace: Trace) -> Plan:
    """Returns the matmul that a function computes.

    Args:
        trace: of the function, followed to its end.

    Raises:
        StepladderError: no contraction; operands that are no arguments; dimensions that do not collapse to m, n and k;
            a result that goes nowhere, or to several places.
    """
    found = trace.contraction
    if found is None and trace.reduction is not None:
        raise refuse(
            trace.reduction,
            f"{trace.reduction.name} is no contraction: it does not add products of two operands, each as it is or "
            "extended, to its output",
            ACCEPTED,
        )
    if found is None:
        raise refuse(trace.function, "the function has no contraction: no linalg op that multiplies and adds", ACCEPTED)
    result, number, c_order = _destination(trace)
    for name, view in (("A", found.a), ("B", found.b)):
        _check_operand(name, view, found.op)
    accumulates = found.start.origin is Origin.ARGUMENT
    if not accumulates and found.start.origin is not Origin.ZEROS:
        raise refuse(
            found.op,
            f"{found.op.name} starts from {found.start.origin.value}",
            "C = AB starts from a linalg.fill with 0, C = AB + C from C itself",
        )
    rounding, c_type = trace.rounding or (None, result.stored)
    if accumulates and rounding is not None:
        raise refuse(
            rounding,
            "the sums begin in an argument and are rounded to another type: they must begin in zeros",
            "C = AB + C accumulates in C's own type",
        )
    return _matmul(found, number, c_order, c_type, accumulates, rounding)


def _destination(trace: Trace) -> tuple[View, int, list[Digit]]:
    """Returns the product as it is stored, the number of the argument that it is stored in, and the digits of that."""
    arguments = list(trace.function.regions[0].blocks[0].arguments)
    results = []
    for number, op in trace.written.items():
        content = trace.contents[number]
        if content.origin is not Origin.PRODUCT:
            raise refuse(
                op, f"{op.name} writes {content.origin.value} to argument {number}, and a pipeline would lose it"
            )
        place = trace.values[arguments[number]]
        results.append((content, op, number, flat(place.storage)))
    if trace.result is not None:
        view, op = trace.result
        if view.origin is not Origin.PRODUCT:
            raise refuse(op, f"{op.name} takes {view.origin.value}; it must take the result of the contraction")
        number = len(arguments) if view.place is None else view.place.argument
        if number < len(arguments) and isinstance(arguments[number].type, ir.MemRefType):
            raise refuse(
                op,
                f"the result begins in argument {number}, a buffer, and is returned as a tensor",
                "accepted: bufferization.materialize_in_destination to the buffer",
            )
        results.append((view, op, number, view.digits()))
    if len(results) != 1:
        op = results[1][1] if results else trace.function
        raise refuse(op, "a second result; a pipeline computes one" if results else "nothing takes the result")
    view, op, number, order = results[0]
    place = view.place
    if place is not None and (place.argument != number or flat(place.storage) != order):
        raise refuse(
            op,
            f"the result begins in argument {place.argument} and ends in another place, or in another order; "
            "both must be C",
        )
    if sorted(map(id, order)) != sorted(map(id, view.digits())) or len(set(map(id, order))) != len(order):
        raise refuse(op, "the result is a part of the product, or repeats it", ACCEPTED)
    return view, number, order


def _check_operand(name: str, view: View, op: ir.Operation) -> None:
    if view.origin is not Origin.ARGUMENT:
        made = f" ('{view.op.name}')" if view.op is not None else ""
        raise refuse(
            view.op if view.op is not None else op,
            f"{name} is {view.origin.value}{made}; it must be an argument of the function, as it is or through views, "
            "linalg.transpose and extensions",
        )


def _matmul(
    found: Contraction, number: int, c_order: list[Digit], c_type: str, accumulates: bool, rounding: ir.Operation | None
) -> Plan:
    """Returns the plan of a contraction whose result is stored in the order of given digits."""
    a, b = found.a, found.b
    orders = {"A": flat(a.storage), "B": flat(b.storage)}
    used = {name: set(order) for name, order in orders.items()}
    for name, view in (("A", a), ("B", b)):
        if len(orders[name]) != len(used[name]) or not used[name] <= set(view.digits()):
            raise refuse(found.op, f"{found.op.name} takes a diagonal or a part of {name}", ACCEPTED)
    of_c = set(c_order)
    if found.start.origin is Origin.ARGUMENT and set(flat(found.start.storage)) != of_c:
        raise refuse(found.op, f"{found.op.name} starts from a view that repeats C, or is a part of it", ACCEPTED)
    loops = [*orders["A"], *orders["B"], *c_order]
    for digit in [*loops, *a.digits(), *b.digits()]:
        places = [name for name, digits in (*used.items(), ("C", of_c)) if digit in digits]
        if len(places) == 3:
            raise refuse(
                found.op,
                f"{found.op.name} has a batch dimension of {digit.size}, which A, B and C have: pipelines compute one "
                "matrix product",
            )
        if len(places) != 2:
            owner = f"only {places[0]}" if places else "no operand"
            raise refuse(
                found.op,
                f"{found.op.name} has a dimension of {digit.size} that {owner} "
                "has; it must be one of m, n and k, which two operands have",
            )
    m_order = [digit for digit in c_order if digit in used["A"]]
    n_order = [digit for digit in c_order if digit in used["B"]]
    k_order = [digit for digit in orders["A"] if digit not in of_c]
    # C is row-major: the factor whose digits come first is A. An extent of 1 is m's, so that rows are long.
    swaps = c_order != m_order + n_order or not n_order
    if swaps and c_order != n_order + m_order:
        raise _interleaved(found, "C")
    if swaps:
        orders = {"A": orders["B"], "B": orders["A"]}
        m_order, n_order = n_order, m_order
        a, b = b, a
    layouts = []
    for name, rows, columns in (("A", m_order, k_order), ("B", k_order, n_order)):
        if orders[name] not in (rows + columns, columns + rows):
            raise _interleaved(found, name)
        layouts.append(orders[name] != rows + columns)
    return Plan(
        extent(m_order),
        extent(n_order),
        extent(k_order),
        _matrix(a, layouts[0]),
        _matrix(b, layouts[1]),
        Matrix(number, c_type),
        found.product.stored,
        accumulates,
        found.op.location,
        None if rounding is None else rounding.location,
    )


def _matrix(view: View, is_transposed: bool) -> Matrix:
    assert view.place is not None  # it is an argument
    return Matrix(view.place.argument, view.stored, is_transposed)


def _interleaved(found: Contraction, name: str) -> Exception:
    return refuse(
        found.op,
        f"{found.op.name}: the dimensions of {name} are in an order that is neither row- nor column-major",
        "accepted: an operand that holds all dimensions of m (or n) next to each other and all of k next to each "
        "other, in the same order as the other operands",
    )
