"""Partial results of a reduction: each warp folds its part, and the last warp to arrive folds the parts.

A group of elements of the result, such as the rows of a warp's tile, has a partial result from each warp that computes
a part of these rows or columns. Each warp stores its own to a workspace in global memory and adds one to the counter of
the group; the warp that finds all others there folds the partial results, in the order of the warps, and stores the
result. The sum of floating-point numbers is the same at each launch, and no second kernel reads the workspace. The
counter is zero again for the next launch.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from stepladder.extension.lib import threads
from stepladder.extension.lib.arithmetic import apply, equal, index, integer, less_than
from stepladder.extension.lib.control_flow import create_if
from stepladder.extension.lib.epilogues.folds import Fold
from stepladder.extension.lib.epilogues.reduced_results import COLUMN, ROW, ReducedResult
from stepladder.extension.lib.memory import create_global, load_vector, write
from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import affine, arith, gpu, ir, memref, nvvm, scf, vector

_ADD = "1 : i64"  # of memref.atomic_rmw, on integers
_AT_ONCE = 8  # partial results that a thread loads before it folds them
_MOST = 32  # partial results that one warp folds, if there are no more
_VECTOR_BYTES = 16


def over_lanes(reduced: ReducedResult | Fold, value: ir.Value, distances: Sequence[int]) -> ir.Value:
    """Returns the values of lanes folded, whose indices differ in the bits `distances`: all of them have the result.

    Args:
        reduced: the reduction, or its fold, which folds two values.
        value: that each lane of a warp has.
        distances: powers of two, below the size of a warp.
    """
    for distance in distances:
        value = reduced.folded(value, of_other_lane(value, distance))
    return value


def of_other_lane(value: ir.Value, distance: int) -> ir.Value:
    """Returns the value of another lane; one of 64 bits is exchanged in halves.

    Args:
        value: that each lane of a warp has.
        distance: the bit in which the indices of the two lanes differ.
    """
    type_ = value.type
    if not isinstance(type_, ir.F64Type) and type_ != ir.IntegerType.get_signless(64):
        return gpu.shuffle(value, integer(distance, 32), integer(threads.WARP, 32), gpu.ShuffleMode.XOR)[0]
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    is_float, half = isinstance(type_, ir.F64Type), integer(32, 64)
    bits = arith.bitcast(i64, value) if is_float else value
    parts = [arith.trunci(i32, bits), arith.trunci(i32, arith.shrui(bits, half))]
    low, high = (arith.extui(i64, of_other_lane(part, distance)) for part in parts)
    joined = arith.ori(low, arith.shli(high, half))
    return arith.bitcast(type_, joined) if is_float else joined


def lane_id() -> ir.Value:
    """Returns the number of a thread in its warp, at the insertion point."""
    return apply(lambda t: ir.AffineExpr.get_mod(t, threads.WARP), threads.thread_id())


class PartialResults:
    """The workspace and the counters of a reduction.

    One warp would fold hundreds of partial results long after the others have ended. Where there are many, the last
    warp of some adjacent ones folds these, and its result is one of the partial results of a second workspace.

    Args:
        launch: the `gpu.launch`.
        reduced: the reduction.
        groups: how many groups of elements the result has.
        length: elements of a group; the last group may have fewer in the result.
        parts: partial results of an element.
    """

    def __init__(self, launch: ir.Operation, reduced: ReducedResult, groups: int, length: int, parts: int) -> None:
        self.reduced, self.length = reduced, length
        self._together = _folded_together(parts)
        self._folds = parts // self._together
        space = types.address_space(types.GLOBAL)
        self._type = ir.MemRefType.get([parts, groups * length], reduced.type, memory_space=space)
        self._symbol = create_global(launch, "partial_results", self._type, alignment=_VECTOR_BYTES)
        counters = [groups * self._folds]
        self._counters_type = ir.MemRefType.get(counters, ir.IntegerType.get_signless(32), memory_space=space)
        self._counters = create_global(launch, "partial_results_counters", self._counters_type, 0)
        self._next = PartialResults(launch, reduced, groups, length, self._folds) if self._folds > 1 else None
        self.extent = ir.MemRefType(reduced.result.type).shape[0]

    def store(
        self, values: Sequence[tuple[ir.Value, ir.Value]], writes: ir.Value | None, group: ir.Value, part: ir.Value
    ) -> None:
        """Stores some of a warp's partial results.

        Args:
            values: partial results of a lane, each with its index in the group.
            writes: whether the lane has them; None where each lane has some.
            group, part: of the warp's partial results.
        """
        workspace = memref.get_global(self._type, self._symbol)
        with create_if(writes) if writes is not None else contextlib.nullcontext():
            for place, value in values:
                memref.store(value, workspace, [part, self._place(group, place)])

    def arrive(self, group: ir.Value, part: ir.Value) -> None:
        """Counts a warp whose partial results are stored, and folds them with others where it is the last of these.

        Args:
            group: number of the group that the warp's partial results belong to, an index.
            part: of the warp's partial results, an index.
        """
        workspace = memref.get_global(self._type, self._symbol)
        _sync_warp()
        lane = lane_id()
        counters = memref.get_global(self._counters_type, self._counters)
        fold = apply(lambda p: ir.AffineExpr.get_floor_div(p, self._together), part)
        counter = apply(lambda g, f: g * self._folds + f, group, fold)
        i32 = ir.IntegerType.get_signless(32)
        arrival = scf.IfOp(equal(lane, index(0)), [i32], has_else=True)
        with ir.InsertionPoint(arrival.then_block):
            _fence()
            before = ir.Operation.create(
                "memref.atomic_rmw",
                results=[i32],
                operands=[integer(1, 32), counters, counter],
                attributes={"kind": ir.Attribute.parse(_ADD)},
            ).results[0]
            _fence()
            scf.yield_([before])
        with ir.InsertionPoint(arrival.else_block):
            scf.yield_([integer(0, 32)])
        before, _ = gpu.shuffle(arrival.results[0], integer(0, 32), integer(threads.WARP, 32), gpu.ShuffleMode.IDX)
        with create_if(equal(before, integer(self._together - 1, 32))):
            _sync_warp()
            with create_if(equal(lane, index(0))):
                memref.store(integer(0, 32), counters, [counter])
            self._finish(workspace, group, fold, lane)
            if self._next is not None:
                self._next.arrive(group, fold)

    def _place(self, group: ir.Value, place: ir.Value) -> ir.Value:
        """Returns where in the result an element of a group is."""
        return apply(lambda g, p: g * self.length + p, group, place)

    @property
    def _width(self) -> int:
        """Elements of a group that a lane folds together."""
        widest = _VECTOR_BYTES // types.byte_width(self.reduced.type)
        return math.gcd(widest, self.length // threads.WARP) if self.length % threads.WARP == 0 else 1

    def _finish(self, workspace: ir.Value, group: ir.Value, fold: ir.Value, lane: ir.Value) -> None:
        """Folds partial results of a group by the lanes of a warp."""
        width = self._width
        per_round = threads.WARP * width
        # Not an scf.for: later steps search for the loop over k.
        rounds = affine.AffineForOp(0, -(-self.length // per_round))
        with ir.InsertionPoint(rounds.body):
            place = apply(lambda r, t: r * per_round + t * width, rounds.induction_variable, lane)
            element = self._place(group, place)
            inside = less_than(element, index(self.extent))
            if self.length % threads.WARP:
                inside = arith.andi(inside, less_than(place, index(self.length)))
            with create_if(inside):
                self._store_folded(self._folded(workspace, fold, element), element, fold)
            affine.yield_([])

    def _store_folded(self, value: ir.Value, element: ir.Value, fold: ir.Value) -> None:
        """Stores what is folded of adjacent elements: in the result, or as a partial result."""
        if self._next is not None:
            further = memref.get_global(self._next._type, self._next._symbol)
            write(value, further, [fold, element], accumulates=False)
            return
        if not isinstance(value.type, ir.VectorType):
            memref.store(self.reduced.rounded(value), self.reduced.result, [element])
            return
        for number in range(self._width):
            place = arith.addi(element, index(number)) if number else element
            with create_if(less_than(place, index(self.extent))):
                total = self.reduced.rounded(extract(value, [number], self.reduced.type))
                memref.store(total, self.reduced.result, [place])

    def _folded(self, workspace: ir.Value, fold: ir.Value, place: ir.Value) -> ir.Value:
        """Returns partial results of adjacent elements folded, at last with what the result begins with."""
        value = self.reduced.neutral() if self._next is not None else self.reduced.initial()
        if self._width > 1:
            value = vector.broadcast(self._vector_type, value)
        first = apply(lambda f: f * self._together, fold)
        even = self._together // _AT_ONCE * _AT_ONCE
        if even:
            loop = affine.AffineForOp(0, even, _AT_ONCE, iter_args=[value])
            with ir.InsertionPoint(loop.body):
                parts = [
                    apply(lambda f, p, number=number: f + p + number, first, loop.induction_variable)
                    for number in range(_AT_ONCE)
                ]
                affine.yield_([self._with(workspace, parts, place, loop.inner_iter_args[0])])
            value = loop.results[0]
        parts = [apply(lambda f, part=part: f + part, first) for part in range(even, self._together)]
        return self._with(workspace, parts, place, value)

    @property
    def _vector_type(self) -> ir.VectorType:
        return ir.VectorType.get([self._width], self.reduced.type)

    def _with(self, workspace: ir.Value, parts: Sequence[ir.Value], place: ir.Value, value: ir.Value) -> ir.Value:
        """Returns a value with partial results of adjacent elements folded into it."""
        partials = [
            load_vector(self._vector_type, workspace, part, place)
            if self._width > 1
            else memref.load(workspace, [part, place])
            for part in parts
        ]
        for partial in partials:
            value = self.reduced.folded(value, partial)
        return value


def _folded_together(parts: int) -> int:
    """Returns how many adjacent partial results one warp folds: all, or a divisor for which two folds are short."""
    divisors = [number for number in range(2, parts) if parts % number == 0]
    if parts <= _MOST or not divisors:
        return parts
    return min(divisors, key=lambda number: number + parts // number)


def _sync_warp() -> None:
    """Synchronizes the lanes of a warp, which orders their accesses to memory."""
    nvvm.bar_warp_sync(integer(-1, 32))


def _fence() -> None:
    """Orders the accesses that a thread has observed before its next ones, for the threads of all blocks.

    LLVM's NVPTX back end makes relaxed updates of those that `memref.atomic_rmw` lowers to, which acquire and release.
    """
    attributes = {"ordering": ir.Attribute.parse("6 : i64"), "syncscope": ir.StringAttr.get("device")}
    ir.Operation.create("llvm.fence", attributes=attributes)


def of_tiles(
    launch: ir.Operation, reduced: ReducedResult, counts: tuple[int, int], extents: tuple[int, int]
) -> PartialResults:
    """Returns the partial results of a reduction in a matrix of tiles, of which a warp folds one.

    Args:
        launch: the `gpu.launch`.
        reduced: the reduction.
        counts: tiles along m and n.
        extents: rows and columns of a tile.
    """
    kept_axis = ROW if reduced.axis == COLUMN else COLUMN
    return PartialResults(launch, reduced, counts[kept_axis], extents[kept_axis], counts[reduced.axis])
