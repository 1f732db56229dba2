"""Where a function stores the product, elementwise functions of it and reductions: in arguments, or as results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepladder.mlir.bindings import ir
from stepladder.payload.front.digits import Digit, flat
from stepladder.payload.front.trace import ACCEPTED, Trace
from stepladder.payload.front.views import Origin, View
from stepladder.payload.refusal import refuse

_OF_PRODUCT = (Origin.PRODUCT, Origin.REDUCED)


@dataclass(frozen=True)
class Destination:
    """A result, and where it is stored.

    Attributes:
        view: the product, or a reduction of it, at the stage that is stored.
        op: the one that stores or returns it.
        number: of the argument; a result that is returned has the number of a new one, after those of the function.
        order: the digits of the argument, outermost first.
    """

    view: View
    op: ir.Operation
    number: int
    order: list[Digit]


def destinations_of(trace: Trace) -> list[Destination]:
    """Returns where the results of a function are stored: C first, then the others in the order of their numbers.

    C is the one whose buffer is read too, or else the first that is no reduction.

    Args:
        trace: of the function, followed to its end.

    Raises:
        StepladderError: no result, one that is not of the product, one that goes elsewhere than where its sums begin,
            the same one twice, several whose buffers are read, reductions alone, or results that are returned as well
            as written.
    """
    written = [_written(trace, number, op) for number, op in trace.written.items()]
    returned = [_returned(trace, place) for place in range(len(trace.results))]
    if not written and not returned:
        raise refuse(trace.function, "the result is unused")
    if written and returned:
        raise refuse(returned[0].op, "results are returned as well as written to buffers; accepted: one of the two")
    found = sorted([*written, *returned], key=lambda destination: destination.number)
    for destination in found:
        _check(destination)
    stages = [destination.view.stage for destination in found]
    for place, destination in enumerate(found):
        if destination.view.stage in stages[:place]:
            raise refuse(
                destination.op,
                "a value is stored or returned twice; each result must be a different value",
                "accepted: the sums, and each elementwise function of them, once",
            )
    read = [destination for destination in found if destination.number in _read_arguments(trace)]
    if len(found) > 1 and len(read) > 1:
        raise refuse(
            read[1].op,
            f"a second result, argument {read[1].number}, that is also read",
            "accepted: several results, of which the initial value of one is read",
        )
    matrices = [destination for destination in found if destination.view.origin is Origin.PRODUCT]
    if not matrices:
        raise refuse(
            found[0].op,
            f"{found[0].op.name} has only reductions of the product as results",
            "accepted: reductions beside the product, or an elementwise function of it",
        )
    c = read[0] if read else matrices[0]
    return [c, *(destination for destination in found if destination is not c)]


def _written(trace: Trace, number: int, op: ir.Operation) -> Destination:
    content, home = trace.contents[number], trace.home(number)
    assert home.place is not None  # an argument, or a part of one
    argument = home.place.argument
    if content.origin not in _OF_PRODUCT:
        raise refuse(op, f"{op.name} writes {content.origin.value} to argument {argument}, which a pipeline would drop")
    return Destination(replace(content, window=home.window), op, argument, flat(home.storage))


def _returned(trace: Trace, place: int) -> Destination:
    arguments = list(trace.function.regions[0].blocks[0].arguments)
    view, op = trace.results[place]
    if view.origin not in _OF_PRODUCT:
        raise refuse(op, f"{op.name} reads {view.origin.value}; it must read the result of the contraction")
    number = len(arguments) + place if view.place is None else view.place.argument
    if view.place is not None and len(trace.results) > 1:
        raise refuse(
            op,
            f"result {place} of {len(trace.results)} is initialized from argument {number}",
            "accepted: tensor.empty as initial values, or bufferization.materialize_in_destination",
        )
    if number < len(arguments) and isinstance(arguments[number].type, ir.MemRefType):
        raise refuse(
            op,
            f"the result is initialized from argument {number}, a buffer, and returned as a tensor",
            "accepted: bufferization.materialize_in_destination to the buffer",
        )
    return Destination(view, op, number, view.digits())


def _check(destination: Destination) -> None:
    """Refuses a result that goes elsewhere than where its sums begin, and one that is not all of the product, once."""
    view, order, place = destination.view, destination.order, destination.view.place
    if place is not None and (place.argument != destination.number or flat(place.storage) != order):
        raise refuse(
            destination.op,
            f"the result is initialized from argument {place.argument} and written elsewhere, or in another order; "
            "both must be C",
        )
    if sorted(map(id, order)) != sorted(map(id, view.digits())) or len(set(map(id, order))) != len(order):
        raise refuse(destination.op, "the result is a part of the product, or repeats it", ACCEPTED)


def _read_arguments(trace: Trace) -> set[int]:
    """Returns the arguments that the sums begin from, and those that are combined with the product."""
    views = [view for item in trace.consumers for view in (*item.inputs, item.output)]
    if trace.contraction is not None:
        views.append(trace.contraction.start)
    return {
        view.place.argument
        for view in views
        if view is not None and view.origin is Origin.ARGUMENT and view.place is not None
    }
