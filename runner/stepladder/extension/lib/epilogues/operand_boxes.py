"""Copies of a matrix that an epilogue reads to the boxes that C is stored from, during the main loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.extension.lib import memory, threads
from stepladder.extension.lib.arithmetic import apply, equal, index, integer, less_than, times
from stepladder.extension.lib.control_flow import body_of, bounds_over_k, constant_bounds, create_if, terminator_of
from stepladder.extension.lib.epilogues.epilogue import Epilogue, extents_of, inside
from stepladder.extension.lib.schedule import move_with_operands
from stepladder.extension.lib.threads import WARPGROUP
from stepladder.mlir.bindings import arith, ir, nvgpu, nvvm
from stepladder.mlir.tensor_maps import COPIED_ONCE
from stepladder.mlir.traverse import producer

UNIT = 16  # bytes: of a copy, and of what the swizzle permutes
_ELEMENT_BYTES = (2, 4)
_LINE = 128  # bytes


@dataclass(frozen=True)
class Boxes:
    """The boxes that a warpgroup stores C from.

    Attributes:
        columns: of a box, in elements.
        bytes: of an element.
        rows: returns the rows of box `number`.
        origin: creates the row and the column of box `number` in the tile of C.
        permutation: returns what the swizzle XORs the units of a row with.
        box: returns the buffer of a warpgroup and the number of a box.
        if_in_c: sets the insertion point to where box `number` has elements of C.
        transposed: whether rows of C are columns of the accumulator.
    """

    columns: int
    bytes: int
    rows: Callable[[int], int]
    origin: Callable[[int], tuple[ir.Value, ir.Value]]
    permutation: Callable[[ir.Value], ir.Value]
    box: Callable[[ir.Value, int], ir.Value]
    if_in_c: Callable[[int], contextlib.AbstractContextManager[None]]
    transposed: bool = False

    def column(self, unit: ir.Value, row: ir.Value) -> ir.Value:
        """Returns the column at which a unit of a row begins in the buffer of a box.

        Args:
            unit: of the row, an index.
            row: of the box, an index.
        """
        return times(arith.xori(unit, self.permutation(row)), UNIT // self.bytes)


@dataclass(frozen=True)
class Matrix:
    """A matrix that an elementwise op reads, in the rows and columns of C.

    Attributes:
        view: the part that the tile reads.
        argument: of the op's body, for its elements.
        is_c: whether it is C itself, which the op overwrites.
    """

    view: ir.Value
    argument: ir.Value
    is_c: bool = False


def find_matrix(
    epilogue: Epilogue, bytes_: int, create_c_tile: Callable[[], ir.Value], *, transposed: bool
) -> Matrix | None:
    """Returns the first operand of an elementwise op that boxes of C can hold; None where there is none.

    It is C, or a matrix like it, of its element type, in a buffer of its own; its rows have whole units.

    Args:
        epilogue: the epilogue.
        bytes_: of an element of C.
        create_c_tile: returns the view of C whose rows are rows of C.
        transposed: whether rows of C are columns of the accumulator.
    """
    op = epilogue.elementwise
    if op is None or len(op.outputs) != 1 or bytes_ not in _ELEMENT_BYTES:
        return None
    rows_of_c = ir.AffineMap.get_permutation([1, 0] if transposed else [0, 1])
    *arguments, old_c = list(op.body.arguments)[op.products :]
    operands = list(zip(op.operands[op.products :], op.maps[op.products :], arguments))
    matrices = [
        Matrix(operand, argument)
        for operand, map_, argument in operands
        if map_ == rows_of_c and memory.viewed(operand) != memory.viewed(epilogue.c_tile)
    ]
    if list(old_c.uses):
        matrices.append(Matrix(create_c_tile(), old_c, is_c=True))
    return next((matrix for matrix in matrices if _has_whole_units(matrix.view, epilogue.c_type, bytes_)), None)


def _has_whole_units(view: ir.Value, element: ir.Type, bytes_: int) -> bool:
    """Returns whether a view has elements of a type, in rows of whole units that are side by side."""
    type_ = ir.MemRefType(view.type)
    (pitch, stride), _ = type_.get_strides_and_offset()
    is_known = pitch != ir.ShapedType.get_dynamic_stride_or_offset()
    return type_.element_type == element and stride == 1 and is_known and pitch * bytes_ % UNIT == 0


def find_loop(epilogue: Epilogue) -> ir.Operation | None:
    """Returns the loop over k that makes the accumulator; None without one of constant bounds and two steps at least.

    Args:
        epilogue: the epilogue.
    """
    loop = producer(epilogue.store.operands[0])
    if loop is None or loop.name != "scf.for" or loop.block != epilogue.consumer.block:
        return None
    bounds = constant_bounds(loop)
    return None if bounds is None or bounds[0] + bounds[2] >= bounds[1] else loop


class OperandBoxes:
    """The copies of one matrix to boxes, and the loads from them.

    Attributes:
        count: how many boxes of the matrix are copied, the first ones of a warpgroup's part of the tile.
        pairs: what is loaded from boxes, by the position in the accumulator, as for `AccumulatorFragment.pair`.

    Args:
        epilogue: the epilogue.
        matrix: the matrix (`find_matrix`).
        boxes: that C is stored from.
        count: the attribute.
    """

    def __init__(self, epilogue: Epilogue, matrix: Matrix, boxes: Boxes, count: int) -> None:
        self.epilogue, self.matrix, self.boxes, self.count = epilogue, matrix, boxes, count
        self.pairs: dict[tuple[int, int, int], ir.Value] = {}

    def create_copies(self, loop: ir.Operation, first_barrier: int, is_leader: Callable[[], ir.Value]) -> None:
        """Creates the copies of a tile: one box after the other, evenly over the main loop.

        The copies take from the rate at which L2 fills the stages; all at once, the MMAs would wait for these. TMA has
        read the previous tile before the first copy, which is in the second k step or later.

        Args:
            loop: over k (`find_loop`).
            first_barrier: number of the first warpgroup's named barrier.
            is_leader: creates the condition of the threads that issue TMA stores.
        """
        for value in (self.matrix.view, self.epilogue.store.operands[1], self.epilogue.c_tile):
            view = producer(value)
            if view is not None and view.block == loop.block and loop.is_before_in_block(view):
                move_with_operands(view, loop)
        lower, upper, step = bounds_over_k(loop)
        body = body_of(loop)
        with ir.InsertionPoint(terminator_of(body)), loop.location:
            for place, numbers in self._places(-(-(upper - lower) // step)).items():
                with create_if(equal(body.arguments[0], index(lower + place * step))):
                    warpgroup = threads.warpgroup_id()
                    if 0 in numbers:
                        self._wait_for_boxes(warpgroup, first_barrier, is_leader)
                    for number in numbers:
                        # No row of a tile that only fills up a cluster is in the matrix, and what is copied of C for
                        # boxes without elements of it, another warpgroup may write.
                        with self.boxes.if_in_c(number):
                            self._copy(number, self.boxes.box(warpgroup, number))
                    nvvm.cp_async_commit_group()

    def _places(self, steps: int) -> dict[int, list[int]]:
        """Returns the indices of the boxes that are copied in a k step, by the index of the step.

        Args:
            steps: of the loop, two or more.
        """
        places: dict[int, list[int]] = {}
        for number in range(self.count):
            places.setdefault(1 + (number + 1) * (steps - 2) // (self.count + 1), []).append(number)
        return places

    def _wait_for_boxes(self, warpgroup: ir.Value, first_barrier: int, is_leader: Callable[[], ir.Value]) -> None:
        """Creates the wait until TMA has read the previous tile, for all threads of the warpgroup."""
        with create_if(is_leader()):
            nvvm.cp_async_bulk_wait_group(0, read=True)
        i32 = ir.IntegerType.get_signless(32)
        barrier = arith.addi(arith.index_cast(i32, warpgroup), integer(first_barrier, 32))
        nvvm.barrier(barrier_id=barrier, number_of_threads=integer(WARPGROUP, 32))

    def _copy(self, number: int, box: ir.Value) -> None:
        """Creates the copies of a box with elements of C, whose units the threads take in turn.

        Beyond the edges of C, the last row and the last unit are copied.
        """
        count = UNIT // self.boxes.bytes
        units = self.boxes.columns // count
        rows_at_once = WARPGROUP // units
        thread = threads.thread_in_warpgroup()
        first_row = apply(lambda x: ir.AffineExpr.get_floor_div(x, units), thread)
        unit = apply(lambda x: ir.AffineExpr.get_mod(x, units), thread)
        to = self.boxes.column(unit, first_row)
        rows, columns = extents_of(self.epilogue.c_tile, self.epilogue.tile_shape)
        if self.boxes.transposed:
            rows, columns = columns, rows
        begin, first = self.boxes.origin(number)
        from_ = inside(arith.addi(times(unit, count), first), columns, count)
        height = self.boxes.rows(number)
        for start in range(0, height, rows_at_once):
            row = arith.addi(first_row, index(start))
            is_whole = start + rows_at_once <= height
            with contextlib.nullcontext() if is_whole else create_if(less_than(row, index(height))):
                source = inside(arith.addi(begin, row), rows, 1)
                nvgpu.device_async_copy(box, [row, to], self.matrix.view, [source, from_], count, bypass_l1=True)

    def mark(self, descriptor: ir.Operation, rank: int) -> None:
        """Marks C's descriptor where each line of the L2 cache that copies read is read by one of them, and not written
        after that: a matmul of a batch may read the same matrix as others.

        Args:
            descriptor: the op that creates it.
            rank: of C, with its batch.
        """
        matrix_type = ir.MemRefType(memory.viewed(self.matrix.view).type)
        (pitch, _), _ = ir.MemRefType(self.matrix.view.type).get_strides_and_offset()
        widths = (self.boxes.columns, pitch)
        if (
            not self.matrix.is_c
            and matrix_type.rank == rank
            and all(width * self.boxes.bytes % _LINE == 0 for width in widths)
        ):
            descriptor.attributes[COPIED_ONCE] = ir.UnitAttr.get()

    def create_wait(self) -> None:
        """Creates the wait for the thread's copies, at the current insertion point."""
        nvvm.cp_async_wait_group(0)

    def pair(self, block: int, matrix: int, half: int) -> dict[ir.Value, ir.Value]:
        """Returns what is loaded of the operand at the position of a thread's pair, by the argument of the elementwise
        op's body.

        Empty for a pair that is not in `pairs`, of a box that is not copied.

        Args:
            block, matrix, half: the position in the accumulator, as for `AccumulatorFragment.pair`.
        """
        pair = self.pairs.get((block, matrix, half))
        return {} if pair is None else {self.matrix.argument: pair}
