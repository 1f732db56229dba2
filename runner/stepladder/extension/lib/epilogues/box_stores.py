"""Stores of accumulators to C through boxes in shared memory, by TMA."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from stepladder.extension.lib import memory, threads, tma
from stepladder.extension.lib.arithmetic import apply, equal, index, integer, less_than, times
from stepladder.extension.lib.control_flow import body_of, create_if
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.epilogues import operand_boxes
from stepladder.extension.lib.epilogues.epilogue import (
    MATRIX,
    PAIR,
    AccumulatorFragment,
    ComputedFragment,
    Epilogue,
    extents_of,
    thread_row,
)
from stepladder.extension.lib.epilogues.operand_boxes import UNIT, OperandBoxes
from stepladder.extension.lib.epilogues.tma_stores import load_matrices, reduce_add, store_matrices
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref, nvgpu, nvvm
from stepladder.mlir.traverse import defining_op

WARP_ROWS = MMA_ROWS * WARP // WARPGROUP  # of an instruction's rows, those that a warp has
_FIRST_BARRIER = 1  # named barriers of the warpgroups; 0 is that of the whole block

# The number of a part of a box, which may depend on the warp.
Part = int | ir.Value


class BoxStore:
    """The stores of one epilogue.

    Attributes:
        height, width: of the highest box, in elements; its rows have the bytes of `swizzle`.
        boxes: that a warpgroup writes, one after the other.
        parts: boxes of TMA that one of these consists of, one above the other in the buffer.
        descriptors: of C, by the height of their boxes.
        group: threads that store together: a warpgroup, or a warp.
        operand: a matrix that is in the first boxes before C is (`copy_operand`); None for none.

    Args:
        epilogue: the epilogue.
        launch: the `gpu.launch`.
        stages: buffers of each warpgroup.
        warpgroups: that store.
        group: the attribute; 128 or 32.
        result: which result of the elementwise op is stored; 0 is C.
    """

    def __init__(
        self, epilogue: Epilogue, launch: ir.Operation, stages: int, warpgroups: int, group: int, result: int = 0
    ) -> None:
        self.epilogue = epilogue
        self.group = group
        self.result = result
        self.operand: OperandBoxes | None = None
        self.c_tile = epilogue.c_tile if epilogue.elementwise is None else epilogue.elementwise.outputs[result]
        self.c_type = ir.MemRefType(self.c_tile.type).element_type
        self.rows, self.columns = epilogue.shape
        self.stages = stages
        self.bytes = types.byte_width(self.c_type)
        self.swizzle = self._swizzle()
        self.width = self.swizzle // self.bytes
        self.height, self.boxes, self.parts = self._divide()
        if self.height > tma.BOX_LIMIT:
            raise Refusal(
                epilogue.consumer, f"a warpgroup's {self.height} rows are more than a box of TMA has, {tma.BOX_LIMIT}"
            )
        with ir.InsertionPoint(epilogue.consumer), epilogue.consumer.location:
            self.origin = tma.global_tile(epilogue.consumer, self._tile())
        tma.check_buffer(epilogue.consumer, self.origin.buffer, "C" if result == 0 else "a result")
        heights = sorted({self._rows_of(number) for number in range(self.boxes)}, reverse=True)
        with ir.InsertionPoint(launch), launch.location:
            self.descriptors = {height: self._create_descriptor(height) for height in heights}
        with ir.InsertionPoint.at_block_begin(body_of(launch)), launch.location:
            shape = [warpgroups, stages, self.parts * self.height, self.width]
            space = ir.MemRefType(epilogue.accumulator_tile.results[0].type).memory_space
            self.buffers: ir.Value = memref.alloc(ir.MemRefType.get(shape, self.c_type, memory_space=space), [], [])
            defining_op(self.buffers).attributes["operand_c"] = ir.UnitAttr.get()

    def _swizzle(self) -> int:
        """Returns the bytes of a row of a box."""
        swizzle = tma.row_swizzle(self.columns * self.bytes)
        if swizzle is None:
            raise Refusal(
                self.epilogue.consumer,
                f"rows of the tile of C are {self.columns} x {self.c_type}; TMA stores require multiples of "
                f"{min(tma.SWIZZLES) // self.bytes}",
            )
        return swizzle

    def _divide(self) -> tuple[int, int, int]:
        """Returns the rows of a box, the boxes of a warpgroup, and the parts of each."""
        height = self.rows if self.group == WARPGROUP else WARP_ROWS
        return height, self.columns // self.width, self.rows // height

    def _rows_of(self, number: int) -> int:
        """Returns the rows of box `number`."""
        return self.height

    def _create_descriptor(self, height: int) -> ir.Value:
        """Returns a descriptor of C with boxes of a height, created on the host."""
        type_ = types.tensor_map(height, self.width, self.c_type, self.swizzle, rank=self.origin.rank)
        return tma.create_descriptor(self.origin.buffer, type_, height, self.width)

    def _tile(self) -> ir.Value:
        """Returns the view of C that the block writes."""
        return self.c_tile

    def create(self, in_flight: "Callable[[BoxStore, int], int]") -> None:
        """Creates the stores of all boxes, at the current insertion point.

        Args:
            in_flight: returns how many stores were issued after the previous one from the buffer that a box uses.
        """
        i32 = ir.IntegerType.get_signless(32)
        fragment = self.epilogue.fragment()
        warpgroup = threads.warpgroup_id()
        is_leader = self._is_leader()
        barrier = arith.addi(arith.index_cast(i32, warpgroup), integer(_FIRST_BARRIER, 32))
        thread_count = integer(WARPGROUP, 32)

        def meet() -> None:
            if self.group == WARP:
                nvvm.bar_warp_sync(integer(-1, 32))
            else:
                nvvm.barrier(barrier_id=barrier, number_of_threads=thread_count)

        begin = self._begin()
        coordinates = self._coordinates()
        for number in range(self.boxes):
            box = self._box(warpgroup, number, 2)
            if self.operand is None or number >= self.operand.count:
                with create_if(is_leader):  # TMA has read what the buffer held before
                    nvvm.cp_async_bulk_wait_group(in_flight(self, number), read=True)
                meet()
            elif number == 0:  # all boxes of the operand are written
                self.operand.create_wait()
                nvvm.barrier(barrier_id=barrier, number_of_threads=thread_count)
            with self._if_in_c(number):
                self._write(fragment, box, number, coordinates)
            tma.fence_async_proxy()
            meet()
            places = self._places(begin, number)
            is_one = self.parts == 1 and self._rows_of(number) == self.height
            with create_if(is_leader):
                with self._if_in_c(number):
                    for part, column, row in places:
                        with self._if_part_in_c(part):
                            self._issue(box if is_one else None, warpgroup, number, part, column, row)
                nvvm.cp_async_bulk_commit_group()

    def copy_operand(self) -> None:
        """Creates copies of a matrix that the elementwise op reads to the first boxes, during the main loop.

        Nothing is created where no operand of the op is such a matrix (`operand_boxes.find_matrix`), or the
        accumulator comes from no loop of two steps at least.
        """
        boxes, loop = self._operand_boxes(), operand_boxes.find_loop(self.epilogue)
        if loop is None:
            return
        with ir.InsertionPoint(self.epilogue.consumer), self.epilogue.consumer.location:
            matrix = operand_boxes.find_matrix(self.epilogue, self.bytes, self._tile, transposed=boxes.transposed)
        if matrix is None:
            return
        self.operand = OperandBoxes(self.epilogue, matrix, boxes, min(self.stages, self.boxes))
        self.operand.create_copies(loop, _FIRST_BARRIER, self._is_leader)
        self.operand.mark(defining_op(self.descriptors[self.height]), self.origin.rank)

    def _operand_boxes(self) -> operand_boxes.Boxes:
        """Returns the boxes as the copies of an operand need them."""

        def origin(number: int) -> tuple[ir.Value, ir.Value]:
            row, column = self._starts(number)
            return row(), column()

        return operand_boxes.Boxes(
            self.width,
            self.bytes,
            lambda number: self.rows,
            origin,
            self._permutation,
            lambda warpgroup, number: self._box(warpgroup, number, 2),
            self._if_in_c,
        )

    @contextlib.contextmanager
    def _if_in_c(self, number: int) -> Iterator[None]:
        """Sets the insertion point to where box `number` has elements of C, if an elementwise op makes them.

        Beyond the edges the op reads its operands at the last row and column of C. Where it reads C, these are elements
        that this warpgroup writes, if the box has any; of a box without, others may write them at the same time.
        """
        starts = self._starts(number)
        with contextlib.ExitStack() as conditions:
            for start, extent in zip(starts, self._extents()):
                if extent is not None:
                    conditions.enter_context(create_if(less_than(start(), extent)))
            yield

    def _extents(self) -> Sequence[ir.Value | None]:
        """Returns how many rows and columns of the tile are in C, None for all; nothing without an elementwise op."""
        return extents_of(self.epilogue.c_tile, self.epilogue.tile_shape) if self.epilogue.elementwise else ()

    @contextlib.contextmanager
    def _if_part_in_c(self, part: Part) -> Iterator[None]:
        """Sets the insertion point to where a part that a warp stores by itself has rows of C: see `_if_in_c`."""
        extent = next(iter(self._extents()), None)
        if extent is None or isinstance(part, int):
            yield
            return
        with create_if(less_than(arith.addi(self.epilogue.first_row(), times(part, self.height)), extent)):
            yield

    def _starts(self, number: int) -> tuple[Callable[[], ir.Value], Callable[[], ir.Value]]:
        """Returns what creates the row and the column of the tile at which box `number` begins."""
        return self.epilogue.first_row, lambda: index(number * self.width)

    def stored_fragment(self, fragment: AccumulatorFragment) -> AccumulatorFragment | ComputedFragment:
        """Returns the fragment that is stored: of the accumulator, or of the elementwise op on it.

        Args:
            fragment: of the accumulator.
        """
        if self.epilogue.elementwise is None:
            return fragment
        return ComputedFragment(fragment, self.epilogue, self.result, self.operand and self.operand.pair)

    def _begin(self) -> ir.Value:
        """Returns the row of C at which the warpgroup's rows of the tile begin."""
        return arith.addi(self.origin.row, self.epilogue.first_row())

    def _is_leader(self) -> ir.Value:
        """Returns whether a thread is the one of its group that issues stores."""
        if self.group == WARPGROUP:
            return equal(threads.thread_in_warpgroup(), index(0))
        return equal(apply(lambda t: ir.AffineExpr.get_mod(t, WARP), threads.thread_id()), index(0))

    def _places(self, begin: ir.Value, number: int) -> list[tuple[Part, ir.Value, ir.Value]]:
        """Returns the parts of box `number` that a leader stores, with column and row of C at which each begins."""
        column = self.origin.column
        if number:
            column = arith.addi(column, index(number * self.width))
        if self.group == WARPGROUP:
            return [(0, column, begin)]
        return [(part, column, arith.addi(begin, times(part, self.height))) for part in self._own_parts()]

    def _own_parts(self) -> list[ir.Value]:
        """Returns the parts of a box that a warp stores by itself: one of each instruction's rows."""
        own = apply(
            lambda t: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, WARPGROUP), WARP), threads.thread_id()
        )
        warps = WARPGROUP // WARP
        return [arith.addi(own, index(first)) if first else own for first in range(0, self.parts, warps)]

    def _issue(
        self, box: ir.Value | None, warpgroup: ir.Value, number: int, part: Part, column: ir.Value, row: ir.Value
    ) -> None:
        """Creates the TMA store of a part of box `number`, or the TMA reduction that adds it to C; `box` is a view of
        the part, None where there is none yet."""
        coordinates, descriptor = self.origin.coordinates(column, row), self.descriptors[self._rows_of(number)]
        if self.epilogue.accumulates:
            reduce_add(self._box(warpgroup, number, 2, part) if box is None else box, descriptor, coordinates)
            return
        if box is None or self.origin.rank > 2:
            box = self._box(warpgroup, number, self.origin.rank, part)
        nvgpu.tma_async_store(box, descriptor, coordinates)

    def _box(self, warpgroup: ir.Value, number: int, rank: int, part: Part | None = None) -> ir.Value:
        """Returns the buffer of store `number`, or a part of it, as a view of a rank, whose outer dimensions are 1."""
        height = self.height * self.parts if part is None else self._rows_of(number)
        row = times(part, self.height) if isinstance(part, ir.Value) else self.height * (part or 0)
        offsets = [warpgroup, number % self.stages, row, 0]
        return memory.subview(self.buffers, offsets, [1, 1, height, self.width], drop=4 - rank)

    def create_final_wait(self) -> None:
        """Creates the wait for the last stores, at the current insertion point."""
        with create_if(self._is_leader()):
            nvvm.cp_async_bulk_wait_group(0, read=True)

    def _coordinates(self) -> list[tuple[ir.Value, ir.Value]]:
        """Returns the row and the column of a box that a thread accesses.

        The list has an entry for each matrix of 8- and 32-bit elements, or each two matrices of 16-bit elements. The
        rows of other matrices differ by multiples of 8, which are not included.
        """
        thread = threads.thread_id()
        lane = apply(lambda t: ir.AffineExpr.get_mod(t, WARP), thread)
        if self.bytes != 2:
            row = thread_row()
            permutation = self._permutation(apply(lambda x: ir.AffineExpr.get_floor_div(x, 4), lane))
        if self.bytes == 1:
            return [(row, self._of_bytes(matrix, lane, permutation)) for matrix in range(self.swizzle // MATRIX)]
        if self.bytes == 4:
            unit = apply(lambda x: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(x, 4), 2), lane)
            within = apply(lambda x: ir.AffineExpr.get_mod(x, 2) * 2, lane)
        else:
            # Lane l provides the address of row l mod 8 of matrix l / 8: the upper and lower left, then the right ones.
            warp_row = apply(
                lambda t: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, WARPGROUP), WARP) * 16, thread
            )
            in_matrices = apply(lambda x: ir.AffineExpr.get_mod(x, 16), lane)
            row = arith.addi(warp_row, in_matrices)
            permutation = self._permutation(apply(lambda x: ir.AffineExpr.get_mod(x, MATRIX), lane))
            unit = apply(lambda x: ir.AffineExpr.get_floor_div(x, 16), lane)
            within = index(0)
        coordinates: list[tuple[ir.Value, ir.Value]] = []
        for pair in range(self.swizzle // (2 * UNIT)):
            swizzled_unit = arith.xori(arith.addi(unit, index(2 * pair)), permutation)
            coordinates.append((row, arith.addi(times(swizzled_unit, UNIT // self.bytes), within)))
        return coordinates

    def _of_bytes(self, matrix: int, lane: ir.Value, permutation: ir.Value) -> ir.Value:
        """Returns the column of a thread's pair of a matrix, of which two are side by side in a unit."""
        unit = arith.xori(index(matrix // PAIR), permutation)
        within = apply(lambda x: ir.AffineExpr.get_mod(x, 4) * PAIR + matrix % PAIR * MATRIX, lane)
        return arith.addi(times(unit, UNIT), within)

    def _permutation(self, row: ir.Value) -> ir.Value:
        """Returns what the swizzle XORs the units of a row with."""
        return tma.permutation(row, self.swizzle)

    def _read(
        self, box: ir.Value, number: int, block: int, coordinates: list[tuple[ir.Value, ir.Value]]
    ) -> dict[tuple[int, int, int], ir.Value]:
        """Returns the pairs that a thread writes of 64 rows of box `number`, as its buffer has them, by their places as
        in `OperandBoxes.pairs`; arguments as for `read_operand`."""
        first, pair = number * self.width // MATRIX, ir.VectorType.get([PAIR], self.c_type)
        pairs: dict[tuple[int, int, int], ir.Value] = {}
        for position, (row, column) in enumerate(coordinates):
            own = arith.addi(row, index(MMA_ROWS * block))
            if self.bytes == 2:
                places = [(block, first + 2 * position + side, half) for side in (0, 1) for half in (0, 1)]
                pairs |= zip(places, load_matrices(box, own, column, len(places)))
                continue
            for half in (0, 1):
                own_half = arith.addi(own, index(MATRIX * half))
                pairs[block, first + position, half] = memory.load_vector(pair, box, own_half, column)
        return pairs

    def read_operand(
        self, box: ir.Value, number: int, block: int, coordinates: list[tuple[ir.Value, ir.Value]]
    ) -> None:
        """Creates the loads of an operand in 64 rows of box `number`, if it has one.

        They precede the stores to these rows: compilers keep the order of loads and stores in the same box.

        Args:
            box: the buffer.
            number: of the box.
            block: the 64 rows, of the warpgroup's, whose pairs are loaded.
            coordinates: that a thread accesses.
        """
        if self.operand is not None and number < self.operand.count:
            self.operand.pairs |= self._read(box, number, block, coordinates)

    def _write(
        self,
        fragment: AccumulatorFragment,
        box: ir.Value,
        number: int,
        coordinates: list[tuple[ir.Value, ir.Value]],
    ) -> None:
        """Writes the elements of box `number` to its buffer."""
        matrices = self.width // MATRIX
        source = self.stored_fragment(fragment)
        blocks = range(self.rows // MMA_ROWS)
        parts = self._own_parts() if self.group == WARP else blocks
        for block, part in zip(blocks, parts):
            with self._if_part_in_c(part):
                self.read_operand(box, number, block, coordinates)
                for position, (row, column) in enumerate(coordinates):
                    if self.bytes != 2:
                        for half in (0, 1):
                            pair = source.pair(block, number * matrices + position, half)
                            own = arith.addi(row, index(MMA_ROWS * block + MATRIX * half))
                            memory.store_vector(pair, box, own, column)
                    else:
                        first = number * matrices + 2 * position
                        pairs = [source.pair(block, first + side, half) for side in (0, 1) for half in (0, 1)]
                        own = arith.addi(row, index(MMA_ROWS * block))
                        store_matrices(box, own, column, pairs)
