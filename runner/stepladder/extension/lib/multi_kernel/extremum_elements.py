"""An element of an extremum and of what is selected with it, such as its index, by the threads of a warp or a block."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import apply, equal, index, integer
from stepladder.extension.lib.control_flow import create_if
from stepladder.extension.lib.element_bodies import LANES, converted
from stepladder.extension.lib.epilogues.first_extrema import FirstExtremum
from stepladder.extension.lib.memory import create_global
from stepladder.extension.lib.multi_kernel.element_values import ElementValues
from stepladder.extension.lib.threads import WARP
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, gpu, ir, memref, scf

# Values that a thread loads before it compares them, so that their loads overlap.
_AT_ONCE = 8

Loops = dict[int, ir.Value]


def store_extremum(values: ElementValues, extremum: FirstExtremum, loops: Loops, lane: ir.Value, lanes: int) -> None:
    """Computes an element of the two results and stores it, at the insertion point.

    Each thread takes every `lanes`th value, so that neighbours load neighbours. Where the extremum is NaN, the first
    thread computes the element again, in the order of the payload.

    Args:
        values: of the op.
        extremum: how its results are reduced.
        loops: indices of the element.
        lane: of the thread among those of the element.
        lanes: how many those are: a warp, or all threads of a block.
    """
    starts = [start for number in range(values.outputs) if (start := values.start(number, loops)) is not None]
    best, number = _of_thread(values, extremum, loops, lane, lanes, converted(starts[extremum.value], ir.F32Type.get()))
    best, number = extremum.over_lanes(best, number, LANES)
    if lanes > WARP:
        best, number = _over_warps(values.generic, extremum, best, number, lane, lanes // WARP)
    with create_if(equal(lane, index(0))):
        branch = scf.IfOp(arith.cmpf(arith.CmpFPredicate.UNO, best, best), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            again = scf.ForOp(index(0), index(values.terms()), index(1), list(starts))
            with ir.InsertionPoint(again.body):
                inner = {**loops, **values.indices(again.induction_variable, values.reduced)}
                scf.yield_(values.iteration(inner, list(again.inner_iter_args)))
            values.store(list(again.results_), loops)
            scf.yield_([])
        with ir.InsertionPoint(branch.else_block):
            _store_selected(values, extremum, loops, starts, best, number)
            scf.yield_([])


def _of_thread(
    values: ElementValues, extremum: FirstExtremum, loops: Loops, lane: ir.Value, lanes: int, start: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Returns the extremum of the values of a thread, and the number of the one that has it; -1 if none exceeds the
    start."""
    first, count, results = 0, values.terms(), [start, integer(-1, 32)]
    for at_once in (_AT_ONCE, 1):
        step = lanes * at_once
        end = first + (count - first) // step * step if at_once > 1 else count
        if first == end:
            continue
        begin = apply(lambda t, n=first: t + n, lane) if first else lane
        loop = scf.ForOp(begin, index(end), index(step), results)
        with ir.InsertionPoint(loop.body):
            numbers = [
                apply(lambda x, n=place * lanes: x + n, loop.induction_variable) if place else loop.induction_variable
                for place in range(at_once)
            ]
            computed = [values.values_of({**loops, **values.indices(own, values.reduced)}) for own in numbers]
            best, number = loop.inner_iter_args
            for own, of_iteration in zip(numbers, computed):
                term = converted(of_iteration.get(extremum.term, extremum.term), best.type)
                number = arith.select(extremum.exceeds(term, best), arith.index_cast(number.type, own), number)
                best = extremum.folded(best, term)
            scf.yield_([best, number])
        first, results = end, list(loop.results_)
    return results[0], results[1]


def _over_warps(
    generic: ir.Operation, extremum: FirstExtremum, best: ir.Value, number: ir.Value, lane: ir.Value, warps: int
) -> tuple[ir.Value, ir.Value]:
    """Returns the extremum of the warps of a block, and its number: all threads have both."""
    space = types.address_space(types.WORKGROUP)
    buffers = []
    for name, value in (("extrema", best), ("places", number)):
        type_ = ir.MemRefType.get([warps], value.type, memory_space=space)
        buffers.append(memref.get_global(type_, create_global(generic, name, type_)))
    warp = apply(lambda t: ir.AffineExpr.get_floor_div(t, WARP), lane)
    with create_if(equal(apply(lambda t: t % WARP, lane), index(0))):
        for buffer, value in zip(buffers, (best, number)):
            memref.store(value, buffer, [warp])
    gpu.barrier()
    parts = [[memref.load(buffer, [index(place)]) for buffer in buffers] for place in range(warps)]
    best, number = parts[0]
    for other, further in parts[1:]:
        best, number = extremum.merged(best, number, other, further)
    return best, number


def _store_selected(
    values: ElementValues,
    extremum: FirstExtremum,
    loops: Loops,
    starts: Sequence[ir.Value],
    best: ir.Value,
    number: ir.Value,
) -> None:
    """Stores an extremum and what its iteration selects; where no value exceeds the start, what the results hold."""
    exceeds = arith.cmpi(arith.CmpIPredicate.sge, number, integer(0, 32))
    place = arith.index_cast(ir.IndexType.get(), arith.maxsi(number, integer(0, 32)))
    of_iteration = values.values_of({**loops, **values.indices(place, values.reduced)})
    results = list(starts)
    selected_value = of_iteration.get(extremum.selected, extremum.selected)
    results[extremum.place] = arith.select(exceeds, selected_value, starts[extremum.place])
    results[extremum.value] = converted(best, starts[extremum.value].type)
    values.store(results, loops)
