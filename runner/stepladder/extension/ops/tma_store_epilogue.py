"""`tc.tma_store_epilogue`: stores the accumulators to C through shared memory, by TMA."""

from collections.abc import Callable

from stepladder.extension.lib import epilogue, launches, memory, threads, tma
from stepladder.extension.lib.arithmetic import apply, equal, index, integer, times
from stepladder.extension.lib.control_flow import body_of, create_if, enclosing_loops
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import Position
from stepladder.extension.lib.epilogue import MATRIX, PAIR, AccumulatorFragment, Epilogue
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.tma_stores import reduce_add, shared_address
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, llvm, memref, nvgpu, nvvm, vector
from stepladder.mlir.traverse import defining_op


class TmaStoreEpilogue(Tc.Operation, name="tma_store_epilogue"):
    """Writes C from the accumulators through shared memory, in boxes of a warpgroup's rows and up to 128 bytes.

    Each warpgroup has `stages` buffers of one box. It writes the elements of a box to a buffer, swizzled as TMA
    expects, 16-bit elements by `stmatrix`. One thread issues the TMA store, or the TMA reduction that adds to C, and
    the next box is written to the next buffer while TMA reads this one. TMA leaves out elements beyond the edges of C.
    Several results of an elementwise op are stored one after the other, C last, each from buffers of its own.
    An elementwise op on the product is computed on pairs in registers, before they are written to the buffer; beyond
    the edges it reads its operands at the last row and column of C, so that no address leaves them.
    The last stores are waited for before the block exits, not before the next tile.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: stages, of each warpgroup; warpgroups, that store.
    Refuses: accumulators that reach C in another way than by a copy, an elementwise op or an addition; a matrix whose
        rows are not a multiple of 16 bytes; a tile whose rows are not a multiple of 32 bytes.
    """

    target: Handle
    stages: ir.IntegerAttr
    warpgroups: ir.IntegerAttr


_UNIT = 16  # bytes that the swizzle permutes as one
_WAVEFRONT = 128  # bytes, one in each bank
_FIRST_BARRIER = 1  # named barriers of the warpgroups; 0 is that of the whole block


class _Store:
    """The stores of one epilogue.

    Args:
        found: the epilogue.
        launch: the `gpu.launch`.
        stages: buffers of each warpgroup.
        warpgroups: that store.
        result: which result of the elementwise op is stored; 0 is C.
    """

    def __init__(self, found: Epilogue, launch: ir.Operation, stages: int, warpgroups: int, result: int = 0) -> None:
        self.found = found
        self.result = result
        self.c_tile = found.c_tile if found.elementwise is None else found.elementwise.outputs[result]
        self.c_type = ir.MemRefType(self.c_tile.type).element_type
        self.rows, self.columns = found.shape
        self.stages = stages
        self.bytes = types.byte_width(self.c_type)
        swizzle = tma.row_swizzle(self.columns * self.bytes)
        if swizzle is None:
            raise Refusal(
                found.consumer,
                f"rows of the tile of C are {self.columns} x {self.c_type}, and TMA stores "
                f"multiples of {min(tma.SWIZZLES) // self.bytes}",
            )
        self.swizzle = swizzle
        self.width = swizzle // self.bytes
        if self.rows > tma.BOX_LIMIT:
            raise Refusal(
                found.consumer, f"a warpgroup's {self.rows} rows are more than a box of TMA has, {tma.BOX_LIMIT}"
            )
        with ir.InsertionPoint(found.consumer), found.consumer.location:
            self.origin = tma.global_tile(found.consumer, self.c_tile)
        tma.check_buffer(found.consumer, self.origin.buffer, "C" if result == 0 else "a result")
        type_ = types.tensor_map(self.rows, self.width, self.c_type, swizzle, rank=self.origin.rank)
        with ir.InsertionPoint(launch), launch.location:
            self.descriptor = tma.create_descriptor(self.origin.buffer, type_, self.rows, self.width)
        with ir.InsertionPoint.at_block_begin(body_of(launch)), launch.location:
            shape = [warpgroups, stages, self.rows, self.width]
            space = ir.MemRefType(found.accumulator_tile.results[0].type).memory_space
            self.buffers: ir.Value = memref.alloc(ir.MemRefType.get(shape, self.c_type, memory_space=space), [], [])
            defining_op(self.buffers).attributes["operand_c"] = ir.UnitAttr.get()

    @property
    def boxes(self) -> int:
        """How many boxes a warpgroup stores for a tile."""
        return self.columns // self.width

    def create(self, in_flight: "Callable[[_Store, int], int]") -> None:
        """Creates the stores of all boxes, at the current insertion point.

        Args:
            in_flight: tells how many stores were issued after the previous one from the buffer that a box uses.
        """
        i32 = ir.IntegerType.get_signless(32)
        fragment = self.found.fragment()
        warpgroup = threads.warpgroup_id()
        is_leader = equal(threads.thread_in_warpgroup(), index(0))
        barrier = arith.addi(arith.index_cast(i32, warpgroup), integer(_FIRST_BARRIER, 32))
        thread_count = integer(WARPGROUP, 32)
        row = arith.addi(self.origin.row, self.found.first_row())
        coordinates = self._coordinates()
        for number in range(self.boxes):
            box = self._box(warpgroup, number, 2)
            with create_if(is_leader):  # TMA has read what the buffer held before
                nvvm.cp_async_bulk_wait_group(in_flight(self, number), read=True)
            nvvm.barrier(barrier_id=barrier, number_of_threads=thread_count)
            self._write(fragment, box, number, coordinates)
            nvvm.fence_proxy(
                ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
                space=ir.Attribute.parse("#nvvm.shared_space<cta>"),
            )
            nvvm.barrier(barrier_id=barrier, number_of_threads=thread_count)
            column = self.origin.column
            if number:
                column = arith.addi(column, index(number * self.width))
            with create_if(is_leader):
                coordinates_of_box = self.origin.coordinates(column, row)
                if self.found.accumulates:
                    reduce_add(box, self.descriptor, coordinates_of_box)
                else:
                    source = box if self.origin.rank == 2 else self._box(warpgroup, number, self.origin.rank)
                    nvgpu.tma_async_store(source, self.descriptor, coordinates_of_box)
                nvvm.cp_async_bulk_commit_group()

    def _box(self, warpgroup: ir.Value, number: int, rank: int) -> ir.Value:
        """Returns the buffer of store `number` as a view of a rank, whose outer dimensions are 1."""
        sizes = [1, 1, self.rows, self.width]
        return memory.subview(self.buffers, [warpgroup, number % self.stages, 0, 0], sizes, drop=4 - rank)

    def create_final_wait(self) -> None:
        """Creates the wait for the last stores, at the current insertion point."""
        with create_if(equal(threads.thread_in_warpgroup(), index(0))):
            nvvm.cp_async_bulk_wait_group(0, read=True)

    def _coordinates(self) -> list[tuple[ir.Value, ir.Value]]:
        """Returns the row and the column of a box that a thread accesses.

        The list has an entry for each matrix of 32-bit elements, or each two matrices of 16-bit elements. The rows of
        other matrices differ by multiples of 8, which are not included.
        """
        thread = threads.thread_id()
        lane = apply(lambda t: ir.AffineExpr.get_mod(t, WARP), thread)
        if self.bytes == 4:
            row = epilogue.thread_row()
            permutation = self._permutation(apply(lambda x: ir.AffineExpr.get_floor_div(x, 4), lane))
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
        for pair in range(self.swizzle // (2 * _UNIT)):
            swizzled = arith.xori(arith.addi(unit, index(2 * pair)), permutation)
            coordinates.append((row, arith.addi(times(swizzled, _UNIT // self.bytes), within)))
        return coordinates

    def _permutation(self, row: ir.Value) -> ir.Value:
        """Returns what the swizzle XORs the units of a row with: the same for rows in one wavefront."""
        rows, units = _WAVEFRONT // self.swizzle, self.swizzle // _UNIT
        return apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, rows), units), row)

    def _write(
        self,
        fragment: AccumulatorFragment,
        box: ir.Value,
        number: int,
        coordinates: list[tuple[ir.Value, ir.Value]],
    ) -> None:
        """Writes the elements of box `number` to its buffer."""
        matrices = self.width // MATRIX
        source = fragment if self.found.elementwise is None else _Computed(fragment, self.found, self.result)
        for block in range(self.rows // MMA_ROWS):
            for position, (row, column) in enumerate(coordinates):
                if self.bytes == 4:
                    for half in (0, 1):
                        pair = source.pair(block, number * matrices + position, half)
                        own = arith.addi(row, index(MMA_ROWS * block + MATRIX * half))
                        memory.store_vector(pair, box, own, column)
                else:
                    first = number * matrices + 2 * position
                    pairs = [source.pair(block, first + side, half) for side in (0, 1) for half in (0, 1)]
                    own = arith.addi(row, index(MMA_ROWS * block))
                    _store_matrices(box, own, column, pairs)


class _Computed:
    """A fragment of what an elementwise op makes of the accumulator, for the box that is being written.

    Args:
        fragment: of the accumulator.
        found: the epilogue, with an elementwise op.
        result: which of its results.
    """

    def __init__(self, fragment: AccumulatorFragment, found: Epilogue, result: int) -> None:
        self.fragment, self.found, self.result = fragment, found, result
        whole = ir.MemRefType(found.accumulator_tile.results[0].type).shape[-2:]
        self.extents = epilogue.extents_of(found.c_tile, whole)
        self.first_row = arith.addi(found.first_row(), epilogue.thread_row())
        self.first_column = epilogue.thread_column()

    def pair(self, block: int, matrix: int, half: int) -> ir.Value:
        """Returns two adjacent elements of a row, as a vector of C's type."""
        assert self.found.elementwise is not None
        row = arith.addi(self.first_row, index(MMA_ROWS * block + MATRIX * half))
        column = arith.addi(self.first_column, index(MATRIX * matrix))
        position = Position(_inside(row, self.extents[0], 1), _inside(column, self.extents[1], PAIR))
        pair = self.fragment.pair(block, matrix, half)
        return self.found.elementwise.compute(pair, position, [self.result])[0]


def _inside(number: ir.Value, extent: ir.Value | None, width: int) -> ir.Value:
    """Returns `number`, or the last from which `width` elements are inside of an extent; None for one never left."""
    return number if extent is None else arith.minui(number, arith.subi(extent, index(width)))


def _store_matrices(box: ir.Value, row: ir.Value, column: ir.Value, pairs: list[ir.Value]) -> None:
    """Stores four 8 x 8 matrices of 16-bit elements by `stmatrix`.

    Args:
        box: the buffer.
        row, column: of the matrix row whose address the lane provides.
        pairs: the lane's pair of each matrix.
    """
    i32 = ir.IntegerType.get_signless(32)
    registers = [memory.extract(vector.bitcast(ir.VectorType.get([1], i32), pair), [0], i32) for pair in pairs]
    pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), shared_address(box, row, column))
    nvvm.stmatrix(
        pointer,
        registers,
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
    )


def _in_flight(stores: list[_Store]) -> Callable[[_Store, int], int]:
    """Returns a function that tells how many stores were issued after the previous store from a box's buffer.

    The boxes of all results are stored in turn, tile by tile. Each result uses its buffers in turn. Where the number of
    its boxes is no multiple of that of its buffers, the last store of a tile and the first of the next may use the same
    buffer.
    """
    order = [(store, number, number % store.stages) for store in stores for number in range(store.boxes)]

    def count(store: _Store, number: int) -> int:
        own = next(place for place, (other, box, _) in enumerate(order) if other is store and box == number)
        for distance in range(1, len(order) + 1):
            other, _, buffer = order[own - distance]  # of the tile before where it is negative
            if other is store and buffer == number % store.stages:
                return distance - 1
        raise AssertionError("a box uses its own buffer a tile before")

    return count


@transform_op(TmaStoreEpilogue)
def tma_store_epilogue(payload: ir.Operation, op: TmaStoreEpilogue, rewriter: Rewriter) -> None:
    """Rewrites the epilogues of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    for found in epilogue.find_epilogues(launch):
        outputs = 1 if found.elementwise is None else len(found.elementwise.outputs)
        # C last: the other results may be computed from what it held.
        stores = [
            _Store(found, launch, op.stages.value, op.warpgroups.value, result) for result in reversed(range(outputs))
        ]
        loops = enclosing_loops(found.consumer)
        with ir.InsertionPoint(found.consumer), found.consumer.location:
            for store in stores:
                store.create(_in_flight(stores))
        with ir.InsertionPoint.after(loops[0] if loops else found.consumer), found.consumer.location:
            stores[-1].create_final_wait()
        found.erase(rewriter)
