"""What the ops about the epilogue share: what becomes of the sums, and which of them a thread holds.

Behind the loop over k stands the general form: each warpgroup stores its accumulator to its rows of a tile of sums in
shared memory, and one linalg op takes that tile to C, as it is, rounded, or added to what is there. The tile is never
made: `tc.direct_store_epilogue` and `tc.tma_store_epilogue` write C from the accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib import building
from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal, producer
from stepladder.extension.lib.warpgroup_ops import ROWS, STORES
from stepladder.mlir.bindings import arith, builtin, ir
from stepladder.mlir.traverse import walk

WARP = 32  # threads
# An accumulator is made of fragments of 8 x 8 elements, of which a thread holds two neighbours in a row.
FRAGMENT = 8


@dataclass
class Epilogue:
    """How sums become C.

    Attributes:
        store: the `nvgpu.warpgroup.mma.store`.
        consumer: the linalg op that takes the tile of sums to C.
        sums: the alloc of the tile of sums.
        tile: the view of C that the block computes.
        adds: whether the sums are added to C; else they replace it.
    """

    store: object
    consumer: object
    sums: object
    tile: object
    adds: bool

    @property
    def c_type(self):
        """Element type of C."""
        return ir.MemRefType(self.tile.type).element_type

    def first_row(self):
        """Returns the row of the block's tile where the warpgroup's accumulator begins, at the insertion point."""
        view = producer(self.store.operands[1])
        type_ = ir.MemRefType(self.store.operands[1].type)
        # A tile of its own, of several that lie behind each other, begins at row 0.
        is_whole = view == self.sums or ir.MemRefType(view.operands[0].type).rank > type_.rank
        return index(0) if is_whole else first_offset(view)

    def held_sums(self) -> Sums:
        """Returns the sums that a thread holds, at the current insertion point."""
        sum_type = ir.MemRefType(self.store.operands[1].type).element_type
        return Sums(self.store.operands[0], self.shape, sum_type, self.c_type)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a warpgroup's accumulator."""
        rows, columns = ir.MemRefType(self.store.operands[1].type).shape
        return rows, columns

    def erase(self, rewriter) -> None:
        """Removes the general form, once C is written in another way."""
        views = [
            value
            for value in [self.store.operands[1], *self.consumer.operands]
            if producer(value) is not None and producer(value).name in building.VIEWS
        ]
        rewriter.erase_op(self.store)
        rewriter.erase_op(self.consumer)
        for view in dict.fromkeys(views):
            if not list(view.uses):
                rewriter.erase_op(producer(view))
        if not list(self.sums.results[0].uses):
            rewriter.erase_op(self.sums)


def _is_rounding(consumer) -> bool:
    inner = [op.operation.name for op in consumer.regions[0].blocks[0].operations]
    return inner in (["arith.truncf", "linalg.yield"], ["linalg.yield"])


def _tile_of(store):
    """Returns the alloc of the tile of sums that a store writes, wholly or in part."""
    source = producer(store.operands[1])
    while source.name != "memref.alloc":
        source = producer(source.operands[0])
    return source


def find_epilogues(launch) -> list[Epilogue]:
    """Returns the epilogues of a launch: one, or one for each of several roles.

    Raises:
        Refusal: the sums go another way than to C by a copy, a rounding or an addition.
    """
    found = []
    stores = walk(launch, *STORES)
    consumers = [reader for store in stores[:1] for reader, _ in building.linalg_uses(_tile_of(store).results[0])]
    if len(consumers) != len(stores):
        raise Refusal(launch, f"expected the sums to be read once to write C, found {len(consumers)} readers")
    for store, consumer in zip(stores, consumers):
        sums = _tile_of(store)
        adds = consumer.name == "linalg.add"
        if consumer.name not in ("linalg.copy", "linalg.add", "linalg.transpose") and not _is_rounding(consumer):
            raise Refusal(consumer, "between the product and C this pipeline rounds and does nothing else")
        found.append(Epilogue(store, consumer, sums, consumer.operands[len(consumer.operands) - 1], adds))
    return found


class Sums:
    """The sums that a thread holds of an accumulator: vector<blocks x columns x 2 x 2>.

    The two elements at (block, column, half) stand in row 64 block + 8 half + thread_row() and in the columns from
    8 column + thread_column() on, of the warpgroup's accumulator.
    Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.
    """

    def __init__(self, accumulator, shape: tuple[int, int], sum_type, c_type):
        rows, columns = shape
        held = ir.VectorType.get([rows // ROWS, columns // FRAGMENT, 2, 2], sum_type)
        self.held = builtin.unrealized_conversion_cast([held], [accumulator])
        self.sum_type = sum_type
        self.c_type = c_type

    def pair(self, block: int, column: int, half: int):
        """Returns two neighbours in a row, as a vector of C's type."""
        pair = ir.Operation.create(
            "vector.extract",
            results=[ir.VectorType.get([2], self.sum_type)],
            operands=[self.held],
            attributes={"static_position": ir.DenseI64ArrayAttr.get([block, column, half])},
        ).results[0]
        if self.sum_type == self.c_type:
            return pair
        return arith.truncf(ir.VectorType.get([2], self.c_type), pair)


def thread_row():
    """Returns the row in a warpgroup's 64 rows of the first fragment that a thread holds part of."""
    return building.apply(
        lambda thread: (
            ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(thread, building.WARPGROUP), WARP) * (ROWS // 4)
            + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(thread, WARP), 4)
        ),
        building.thread_number(),
    )


def thread_column():
    """Returns the column of the first of the two elements of a fragment that a thread holds."""
    return building.apply(lambda thread: ir.AffineExpr.get_mod(thread, 4) * 2, building.thread_number())


def first_offset(view):
    """Returns the offset of a `memref.subview` in its outermost dimension, at the current insertion point."""
    offset = list(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))[0]
    is_dynamic = offset == ir.ShapedType.get_dynamic_stride_or_offset()
    return view.operands[1] if is_dynamic else index(offset)


def extents_of(tile, whole: tuple[int, int]) -> list:
    """Returns the extents of a view of C as values, None where the view is as large as the block's tile."""
    type_ = ir.MemRefType(tile.type)
    source = producer(tile)
    dynamic = []
    if source is not None:
        offsets = list(ir.DenseI64ArrayAttr(source.attributes["static_offsets"]))
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        dynamic = list(source.operands)[1 + sum(offset == unknown for offset in offsets) :]
    extents = []
    for axis, extent in enumerate(whole):
        if type_.is_dynamic_dim(axis):
            extents.append(dynamic.pop(0))
        else:
            extents.append(None if type_.shape[axis] == extent else index(type_.shape[axis]))
    return extents
