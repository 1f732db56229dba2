"""The epilogue of a GEMM in general form, and the accumulator fragment that a thread holds.

After the loop over k, each warpgroup stores its accumulator to its rows of an accumulator tile in shared memory, and
one linalg op writes that tile to C: as it is, rounded, added to C, or as the operand of an elementwise op.
`tc.direct_store_epilogue` and `tc.tma_store_epilogue` replace this form by stores to C from the accumulators; the tile
is never materialized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory, threads, transposes, vectors
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.epilogues.elementwise import Elementwise, Position, computes, is_elementwise
from stepladder.extension.lib.threads import WARP, WARPGROUP
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS, STORES
from stepladder.mlir.bindings import arith, builtin, ir
from stepladder.mlir.traverse import defining_op, producer, walk

# Rows and columns of the matrices that an accumulator consists of; a thread holds two adjacent elements of each.
MATRIX = 8
PAIR = 2


@dataclass
class Epilogue:
    """The ops that write the accumulators to C.

    Attributes:
        store: the `nvgpu.warpgroup.mma.store`.
        consumer: the linalg op that writes the accumulator tile to C.
        accumulator_tile: the alloc of the accumulator tile.
        c_tile: the view of C that the block computes.
        accumulates: whether the consumer adds to C; else it overwrites C.
        elementwise: the consumer, where it is an elementwise op that does more than to round; else None.
    """

    store: ir.Operation
    consumer: ir.Operation
    accumulator_tile: ir.Operation
    c_tile: ir.Value
    accumulates: bool
    elementwise: Elementwise | None = None

    @property
    def c_type(self) -> ir.Type:
        """Element type of C."""
        return ir.MemRefType(self.c_tile.type).element_type

    def first_row(self) -> ir.Value:
        """Returns the row of the block's tile at which the warpgroup's accumulator begins, at the insertion point."""
        view = defining_op(self.store.operands[1])
        type_ = ir.MemRefType(self.store.operands[1].type)
        # One of several tiles in a buffer of higher rank begins at row 0.
        is_whole = view == self.accumulator_tile or ir.MemRefType(view.operands[0].type).rank > type_.rank
        return index(0) if is_whole else first_offset(view)

    def fragment(self) -> AccumulatorFragment:
        """Returns the thread's fragment of the accumulator, at the current insertion point."""
        acc_type = ir.MemRefType(self.store.operands[1].type).element_type
        # An elementwise op makes elements of C's type from those of the accumulator.
        c_type = self.c_type if self.elementwise is None else acc_type
        rows, columns = self.shape
        return AccumulatorFragment(
            self.store.operands[0], (rows, columns * self.products), acc_type, c_type, self.products
        )

    @property
    def products(self) -> int:
        """How many products the accumulator holds, side by side."""
        return 1 if self.elementwise is None else self.elementwise.products

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a warpgroup's part of the tile of C."""
        rows, columns = ir.MemRefType(self.store.operands[1].type).shape
        return rows, columns // self.products

    @property
    def tile_shape(self) -> tuple[int, int]:
        """Rows and columns of the block's tile of C."""
        rows, columns = ir.MemRefType(self.accumulator_tile.results[0].type).shape[-2:]
        return rows, columns // self.products

    def erase(self, rewriter: Rewriter) -> None:
        """Erases the general form, after stores to C have replaced it.

        Args:
            rewriter: that erases ops.
        """
        views = [producer(value) for value in [self.store.operands[1], *self.consumer.operands]]
        rewriter.erase_op(self.store)
        rewriter.erase_op(self.consumer)
        for view in dict.fromkeys(view for view in views if view is not None and view.name in memory.VIEWS):
            if not list(view.results[0].uses):
                rewriter.erase_op(view)
        if not list(self.accumulator_tile.results[0].uses):
            rewriter.erase_op(self.accumulator_tile)


def find_epilogues(launch: ir.Operation) -> list[Epilogue]:
    """Returns the epilogues of a launch: one for each warp-specialized role that has one.

    Args:
        launch: a `gpu.launch`.

    Raises:
        Refusal: the accumulators reach C in another way than by a copy, an addition or an elementwise op.
    """
    epilogues: list[Epilogue] = []
    stores = walk(launch, *STORES)
    tiles = [memory.shared_tile_of(store, store.operands[1]) for store in stores]
    # An op that reads a pair of products takes a view of each.
    uses = [reader for tile in tiles[:1] for reader, _ in memory.linalg_uses(tile.results[0])]
    consumers = list(dict.fromkeys(uses))
    if len(consumers) != len(stores):
        raise Refusal(launch, f"expected one op that reads the accumulator tile, found {len(consumers)}")
    for store, tile, consumer in zip(stores, tiles, consumers):
        accumulates = consumer.name == "linalg.add"
        elementwise: Elementwise | None = None
        if consumer.name not in ("linalg.copy", "linalg.add", "linalg.transpose"):
            if not is_elementwise(consumer):
                accepted_forms = "a copy, an addition or an elementwise linalg.generic of the product"
                raise Refusal(consumer, f"expected {accepted_forms} as epilogue, found {consumer.name}")
            elementwise = Elementwise(consumer) if computes(consumer) else None
        c_tile = consumer.operands[len(consumer.operands) - 1] if elementwise is None else elementwise.outputs[0]
        epilogues.append(Epilogue(store, consumer, tile, c_tile, accumulates, elementwise))
    return epilogues


class AccumulatorFragment:
    """The registers of a thread that hold its fragment of an accumulator: vector<blocks x matrices x 2 x 2>.

    The pair at (block, matrix, half) is in row `64 block + 8 half + thread_row()` of the warpgroup's accumulator, in
    two columns from `8 matrix + thread_column()` on.
    Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.

    Args:
        accumulator: of the warpgroup.
        shape: rows and columns of the accumulator.
        acc_type: element type of the accumulator.
        c_type: element type of C, which pairs are rounded to.
        products: that the accumulator holds, each in as many adjacent columns.
    """

    def __init__(
        self, accumulator: ir.Value, shape: tuple[int, int], acc_type: ir.Type, c_type: ir.Type, products: int = 1
    ) -> None:
        rows, columns = shape
        self.matrices, self.products = columns // MATRIX // products, products
        type_ = ir.VectorType.get([rows // MMA_ROWS, columns // MATRIX, 2, PAIR], acc_type)
        self.registers = builtin.unrealized_conversion_cast([type_], [accumulator])
        self.acc_type = acc_type
        self.c_type = c_type

    def pair(self, block: int, matrix: int, half: int) -> ir.Value:
        """Returns two adjacent elements of a row, as a vector of C's type.

        Args:
            block: of 64 rows of the accumulator, from 0 on.
            matrix: of 8 columns of the accumulator, from 0 on.
            half: 0 for the first 8 of each 16 rows, 1 for the others.
        """
        pair = vectors.extract(self.registers, [block, matrix, half], ir.VectorType.get([PAIR], self.acc_type))
        if self.acc_type == self.c_type:
            return pair
        return arith.truncf(ir.VectorType.get([PAIR], self.c_type), pair)

    def pairs(self, block: int, matrix: int, half: int) -> list[ir.Value]:
        """Returns the pair at a position of each product, `matrix` being one of C.

        Args:
            block: as for `pair`.
            matrix: of 8 columns of C, from 0 on.
            half: as for `pair`.
        """
        return [self.pair(block, matrix + product * self.matrices, half) for product in range(self.products)]


class ComputedFragment:
    """A fragment of what an elementwise op makes of the accumulator.

    Beyond the edges of C, operands are read at its last row and column. The columns of a transposed C may be odd, and
    its last pair have one element of C: each element of a pair is computed by itself there.

    Args:
        fragment: of the accumulator.
        epilogue: the epilogue, with an elementwise op.
        result: which of its results.
        operands_of_pair: returns what is loaded already for a pair, by arguments of the op's body; None for nothing.
    """

    def __init__(
        self,
        fragment: AccumulatorFragment,
        epilogue: Epilogue,
        result: int,
        operands_of_pair: Callable[[int, int, int], dict[ir.Value, ir.Value]] | None = None,
    ) -> None:
        self.fragment, self.epilogue, self.result, self.operands_of_pair = fragment, epilogue, result, operands_of_pair
        self.extents = extents_of(epilogue.c_tile, epilogue.tile_shape)
        self.has_odd_rows = transposes.has_odd_rows(epilogue.c_tile)
        self.first_row = arith.addi(epilogue.first_row(), thread_row())
        self.first_column = thread_column()

    def pair(self, block: int, matrix: int, half: int) -> ir.Value:
        """Returns two adjacent elements of a row, as a vector of C's type.

        Args:
            block, matrix, half: as for `AccumulatorFragment.pair`.
        """
        row = arith.addi(self.first_row, index(MMA_ROWS * block + MATRIX * half))
        column = arith.addi(self.first_column, index(MATRIX * matrix))
        sums = self.fragment.pairs(block, matrix, half)
        operands = self.operands_of_pair(block, matrix, half) if self.operands_of_pair else {}
        if not self.has_odd_rows:
            return self._computed(sums, operands, row, column, PAIR)
        elements = []
        for side in range(PAIR):
            own = [vectors.extract(pair, [side], ir.VectorType(pair.type).element_type) for pair in sums]
            elements.append(self._computed(own, operands, row, arith.addi(column, index(side)), 1))
        vector = ir.VectorType.get([PAIR], elements[0].type)
        return ir.Operation.create("vector.from_elements", results=[vector], operands=elements).results[0]

    def _computed(
        self,
        sums: list[ir.Value],
        operand_values: dict[ir.Value, ir.Value],
        row: ir.Value,
        column: ir.Value,
        width: int,
    ) -> ir.Value:
        """Returns the result for adjacent elements of a row of each product, from a row and a column of the tile on."""
        elementwise = self.epilogue.elementwise
        assert elementwise is not None
        position = Position(inside(row, self.extents[0], 1), inside(column, self.extents[1], width))
        operands = elementwise.load(position, width if width > 1 else None, [self.result], operand_values)
        return elementwise.compute(sums, position, [self.result], operands)[0]


def thread_row() -> ir.Value:
    """Returns the row, of the 64 of an instruction, of the first pair that a thread holds."""
    return apply(
        lambda thread: (
            ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(thread, WARPGROUP), WARP) * (MMA_ROWS // 4)
            + ir.AffineExpr.get_floor_div(ir.AffineExpr.get_mod(thread, WARP), 4)
        ),
        threads.thread_id(),
    )


def thread_column() -> ir.Value:
    """Returns the column, of the 8 of a matrix, of the first element of the pair that a thread holds."""
    return apply(lambda thread: ir.AffineExpr.get_mod(thread, 4) * PAIR, threads.thread_id())


def first_offset(view: ir.Operation) -> ir.Value:
    """Returns the offset of a `memref.subview` in its outermost dimension, at the current insertion point.

    Args:
        view: the op.
    """
    offset = list(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))[0]
    is_dynamic = offset == ir.ShapedType.get_dynamic_stride_or_offset()
    return view.operands[1] if is_dynamic else index(offset)


def extents_of(tile: ir.Value, shape: Sequence[int]) -> list[ir.Value | None]:
    """Returns the extents of a view of C as values, None for an extent equal to that of a whole tile.

    Args:
        tile: the view.
        shape: extents of a tile inside C.
    """
    type_ = ir.MemRefType(tile.type)
    source = producer(tile)
    dynamic: list[ir.Value] = []
    if source is not None and source.name == "memref.subview":
        offsets = list(ir.DenseI64ArrayAttr(source.attributes["static_offsets"]))
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        dynamic = list(source.operands)[1 + sum(offset == unknown for offset in offsets) :]
    extents: list[ir.Value | None] = []
    for axis, extent in enumerate(shape):
        if type_.is_dynamic_dim(axis):
            extents.append(dynamic.pop(0))
        else:
            extents.append(None if type_.shape[axis] == extent else index(type_.shape[axis]))
    return extents


def inside(number: ir.Value, extent: ir.Value | None, width: int) -> ir.Value:
    """Returns an index, or the last from which some elements are inside of an extent, at the current insertion point.

    Args:
        number: of a row or a column of a tile.
        extent: of the tile inside of C; None for one that is never left.
        width: how many elements.
    """
    return number if extent is None else arith.minui(number, arith.subi(extent, index(width)))
