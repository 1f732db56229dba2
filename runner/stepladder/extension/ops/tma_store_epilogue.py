"""`tc.tma_store_epilogue`: the sums go to C through shared memory, in boxes that TMA stores."""

from stepladder.extension.lib import building, epilogue, tma
from stepladder.extension.lib.building import WARPGROUP, index, integer
from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.extension.lib.tma_stores import add_by_tma, shared_address
from stepladder.extension.lib.warpgroup_ops import ROWS
from stepladder.mlir.bindings import (
    arith,
    ext,
    ir,
    llvm,
    memref,
    nvgpu,
    nvvm,
    transform,
    vector,
)


class TmaStoreEpilogue(Tc.Operation, name="tma_store_epilogue"):
    """Writes C from the accumulators by way of shared memory: a warpgroup's sums in boxes up to 128 bytes wide.

    Each warpgroup has `buffers` boxes. It writes the sums of one box, swizzled as TMA expects it, 16-bit ones by
    `stmatrix`; one thread has TMA store it, or add it to C; and the next box is written while TMA reads this one. TMA
    leaves out what is beyond the edges of C. The last boxes are waited for before the block ends, not before the next
    tile.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: buffers, boxes of a warpgroup; warpgroups, that store.
    Refuses: sums that go another way than to C by a copy, a rounding or an addition; a matrix whose rows are no
        multiple of 16 bytes; a tile whose rows are no multiple of 32 bytes.
    """

    target: ext.Operand[transform.AnyOpType]
    buffers: ir.IntegerAttr
    warpgroups: ir.IntegerAttr


_UNIT = 16  # bytes that the swizzle moves as one
_WAVEFRONT = 128  # bytes that lie in different banks
_FIRST_BARRIER = 1  # named barriers of the warpgroups; 0 is that of the block


class _Store:
    """One epilogue on its way to TMA."""

    def __init__(self, found, launch, buffers: int, warpgroups: int):
        self.found = found
        self.rows, self.columns = found.shape
        self.element_type = found.c_type
        self.bytes = found.c_type.width // 8
        self.swizzle = tma.row_swizzle(self.columns * self.bytes)
        if self.swizzle is None:
            raise Refusal(
                found.consumer,
                f"rows of the tile of C are {self.columns} x {found.c_type}, and TMA stores "
                f"multiples of {min(tma.SWIZZLES) // self.bytes}",
            )
        self.width = self.swizzle // self.bytes
        if self.rows > tma.BOX_LIMIT:
            raise Refusal(
                found.consumer, f"a warpgroup's {self.rows} rows are more than a box of TMA has, {tma.BOX_LIMIT}"
            )
        with ir.InsertionPoint(found.consumer), found.consumer.location:
            self.origin = tma.global_tile(found.consumer, found.tile)
        tma.check_buffer(found.consumer, self.origin.buffer, "C")
        type_ = tma.descriptor_type(self.rows, self.width, self.element_type, self.swizzle)
        with ir.InsertionPoint(launch), launch.location:
            self.descriptor = tma.create_descriptor(self.origin.buffer, type_, self.rows, self.width)
        self.buffers = buffers
        with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), launch.location:
            shape = [warpgroups, buffers, self.rows, self.width]
            space = ir.MemRefType(found.sums.results[0].type).memory_space
            self.boxes = memref.alloc(ir.MemRefType.get(shape, self.element_type, memory_space=space), [], [])
            self.boxes.owner.attributes["operand_c"] = ir.UnitAttr.get()

    def emit(self) -> None:
        """Writes the stores of all boxes, at the current insertion point."""
        i32 = ir.IntegerType.get_signless(32)
        sums = self.found.held_sums()
        warpgroup = building.warpgroup_number()
        is_first = building.equal(building.thread_in_warpgroup(), index(0))
        barrier = arith.addi(arith.index_cast(i32, warpgroup), integer(_FIRST_BARRIER, 32))
        threads = integer(WARPGROUP, 32)
        row = arith.addi(self.origin.row, self.found.first_row())
        places = self._places()
        for number in range(self.columns // self.width):
            box = building.view(
                self.boxes, [warpgroup, number % self.buffers, 0, 0], [1, 1, self.rows, self.width], drop=2
            )
            with building.if_(is_first):  # what TMA read this box for before is done
                nvvm.cp_async_bulk_wait_group(self._stores_since(number), read=True)
            nvvm.barrier(barrier_id=barrier, number_of_threads=threads)
            self._write(sums, box, number, places)
            nvvm.fence_proxy(
                ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
                space=ir.Attribute.parse("#nvvm.shared_space<cta>"),
            )
            nvvm.barrier(barrier_id=barrier, number_of_threads=threads)
            column = self.origin.column
            if number:
                column = arith.addi(column, index(number * self.width))
            with building.if_(is_first):
                if self.found.adds:
                    add_by_tma(box, self.descriptor, column, row)
                else:
                    nvgpu.tma_async_store(box, self.descriptor, [column, row])
                nvvm.cp_async_bulk_commit_group()

    def _stores_since(self, number: int) -> int:
        """Returns how many stores have begun since the one that used the place of store `number` before.

        That is one less than there are places; but where the last store of a tile and the first of the next share one
        (three boxes in two places), there are none.
        """
        boxes = self.columns // self.width
        if number >= self.buffers:
            return self.buffers - 1
        last = number + (boxes - 1 - number) // self.buffers * self.buffers  # of the tile before, in the same place
        return boxes - 1 - last + number

    def finish(self) -> None:
        """Writes the wait for the last boxes, at the current insertion point."""
        with building.if_(building.equal(building.thread_in_warpgroup(), index(0))):
            nvvm.cp_async_bulk_wait_group(0, read=True)

    def _places(self) -> list:
        """Returns where a thread writes in a box: for each two fragments of 16-bit sums, or each of 32-bit sums, the
        row and the column, without the rows that a multiple of 8 adds."""
        thread = building.thread_number()
        lane = building.apply(lambda t: ir.AffineExpr.get_mod(t, epilogue.WARP), thread)
        if self.bytes == 4:
            row = epilogue.thread_row()
            in_swizzle = self._exchange(building.apply(lambda x: ir.AffineExpr.get_floor_div(x, 4), lane))
            unit = building.apply(lambda x: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(x, 4), 2), lane)
            within = building.apply(lambda x: ir.AffineExpr.get_mod(x, 2) * 2, lane)
        else:
            # Lane l gives the address of row l mod 8 of matrix l / 8: two matrices below each other, then two beside.
            warp_row = building.apply(
                lambda t: ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(t, WARPGROUP), epilogue.WARP) * 16, thread
            )
            in_matrices = building.apply(lambda x: ir.AffineExpr.get_mod(x, 16), lane)
            row = arith.addi(warp_row, in_matrices)
            in_swizzle = self._exchange(building.apply(lambda x: ir.AffineExpr.get_mod(x, epilogue.FRAGMENT), lane))
            unit = building.apply(lambda x: ir.AffineExpr.get_floor_div(x, 16), lane)
            within = index(0)
        places = []
        for pair in range(self.swizzle // (2 * _UNIT)):
            swizzled = arith.xori(arith.addi(unit, index(2 * pair)), in_swizzle)
            places.append((row, arith.addi(building.times(swizzled, _UNIT // self.bytes), within)))
        return places

    def _exchange(self, row):
        """Returns what the units of a row are exchanged by: rows that share 128 bytes are by the same."""
        rows, units = _WAVEFRONT // self.swizzle, self.swizzle // _UNIT
        return building.apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, rows), units), row)

    def _write(self, sums, box, number: int, places) -> None:
        """Writes the sums of box `number`."""
        fragments = self.width // epilogue.FRAGMENT
        for block in range(self.rows // ROWS):
            for place, (row, column) in enumerate(places):
                if self.bytes == 4:
                    for half in (0, 1):
                        pair = sums.pair(block, number * fragments + place, half)
                        own = arith.addi(row, index(ROWS * block + epilogue.FRAGMENT * half))
                        ir.Operation.create(
                            "vector.store", operands=[pair, box, own, column], attributes=building.aligned(pair.type)
                        )
                else:
                    first = number * fragments + 2 * place
                    pairs = [sums.pair(block, first + side, half) for side in (0, 1) for half in (0, 1)]
                    own = arith.addi(row, index(ROWS * block))
                    _store_matrices(box, own, column, pairs)


def _store_matrices(box, row, column, pairs: list) -> None:
    """Stores four 8 x 8 matrices of 16-bit elements, of which each lane holds a pair and gives the address of a row."""
    i32 = ir.IntegerType.get_signless(32)
    registers = []
    for pair in pairs:
        one = vector.bitcast(ir.VectorType.get([1], i32), pair)
        registers.append(
            ir.Operation.create(
                "vector.extract",
                results=[i32],
                operands=[one],
                attributes={"static_position": ir.DenseI64ArrayAttr.get([0])},
            ).results[0]
        )
    pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), shared_address(box, row, column))
    nvvm.stmatrix(
        pointer,
        registers,
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
    )


@transform_op(TmaStoreEpilogue)
def tma_store_epilogue(payload, op, rewriter) -> None:
    """Writes the epilogue of the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    for found in epilogue.find_epilogues(launch):
        store = _Store(found, launch, op.buffers.value, op.warpgroups.value)
        around = building.loops_around(found.consumer)
        with ir.InsertionPoint(found.consumer), found.consumer.location:
            store.emit()
        with ir.InsertionPoint.after(around[0] if around else found.consumer), found.consumer.location:
            store.finish()
        found.erase(rewriter)
