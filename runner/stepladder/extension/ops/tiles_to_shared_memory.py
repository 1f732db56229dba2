"""`tc.tiles_to_shared_memory`: writes a XeTile product of a work-group as copies to shared memory, and a matmul."""

from stepladder.extension.lib.arithmetic import apply, constant, index
from stepladder.extension.lib.control_flow import body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import BLOCK, GRID, set_launch_sizes
from stepladder.extension.lib.memory import subview
from stepladder.extension.lib.xetile.tile_products import Operand, TileProduct
from stepladder.mlir.bindings import affine, ir, memref, scf
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import address_space


class TilesToSharedMemory(Tc.Operation, name="tiles_to_shared_memory"):
    """Writes the product that a launch of XeTile computes in the form that the steps of `mma_sync` or `wgmma` take.

    Tiles of A and B that the work-group loads become copies to shared memory, `tile_mma` a `linalg.matmul` of them. An
    operand that is stored as its transpose is copied as it is stored. Several blocks share a tile of C that is larger
    than theirs: its parts do not depend on each other. Prefetches are left out: the stages of shared memory take their
    position. The maps are left out: warps, or warpgroups, take tiles of their own.

    Where tiles need not be whole, the tiles in shared memory are, with zeros beyond the matrices, and the sums are in
    one as well, which is copied to C. Else the matmul adds to C in memory. Where elementwise ops follow the product,
    the sums are in a tile in either case, of which a `linalg.generic` computes C.

    Operands: a handle to any op; the launch below with tiles is rewritten.
    Attributes: extents of what a block computes, and of a step along k; whether tiles must be whole.
    Refuses: several launches with tiles; what `TileProduct` does; where tiles must be whole, those that are not within
        their matrices, or that the extents do not divide; else those that do not cover their matrices.
    """

    target: Handle
    block_m: ir.IntegerAttr
    block_n: ir.IntegerAttr
    block_k: ir.IntegerAttr
    whole_tiles: ir.IntegerAttr


# Of a size or an offset: constant or not.
Extent = int | ir.Value


@transform_op(TilesToSharedMemory)
def tiles_to_shared_memory(payload: ir.Operation, op: TilesToSharedMemory, rewriter: Rewriter) -> None:
    """Rewrites the launch below `payload`; see the op."""
    launches = [
        launch for launch in walk(payload, "gpu.launch") if any(op.name.startswith("xetile.") for op in walk(launch))
    ]
    if len(launches) > 1:
        raise Refusal(launches[1], f"{len(launches)} launches have tiles; accepted: one")
    for launch in launches:
        extents = (op.block_m.value, op.block_n.value, op.block_k.value)
        _Staging(TileProduct(launch), extents, bool(op.whole_tiles.value)).write(rewriter)


def _check_division(product: TileProduct, block: tuple[int, int, int]) -> None:
    """Refuses tiles that blocks do not divide."""
    (tile_m, tile_n, _), (block_m, block_n, block_k) = product.tile, block
    if tile_m % block_m or tile_n % block_n:
        raise Refusal(
            product.mma,
            f"the tile of C is {tile_m} x {tile_n}, which block_m = {block_m} and block_n = {block_n} do not divide",
        )
    if product.depth % block_k:
        raise Refusal(product.mma, f"the depth is {product.depth}, which is not a multiple of block_k = {block_k}")


def _block_id(axis: str) -> ir.Value:
    attributes = {"dimension": ir.Attribute.parse(f"#gpu<dim {axis}>")}
    return ir.Operation.create("gpu.block_id", results=[ir.IndexType.get()], attributes=attributes).results[0]


def _inside(first: ir.Value, size: int, extent: int) -> Extent:
    """Returns how many of the `size` elements that begin at a multiple of `size` are below `extent`."""
    if extent % size == 0 or extent < size:
        return min(size, extent)
    remaining = ir.AffineExpr.get_constant(extent) - ir.AffineExpr.get_symbol(0)
    return affine.AffineMinOp(ir.AffineMap.get(0, 1, [remaining, ir.AffineExpr.get_constant(size)]), [first]).result


def _fill(tile: ir.Value, marks: dict[str, ir.Attribute] | None = None) -> None:
    create_named_op("linalg.fill", [constant(ir.MemRefType(tile.type).element_type, 0)], tile, marks)


class _Tile:
    """A tile in shared memory of an operand, as that is stored.

    Args:
        operand: of the product.
        name: "a", "b" or "c".
        sizes: rows and columns, as the program indexes the operand.
        element: type of its elements; None for that of the operand.
    """

    def __init__(self, operand: Operand, name: str, sizes: tuple[int, int], element: ir.Type | None = None) -> None:
        self._turns = operand.matrix.is_transposed
        self.marks: dict[str, ir.Attribute] = {f"operand_{name}": ir.UnitAttr.get()}
        self._sizes = list(sizes)[::-1] if self._turns else list(sizes)
        element = element or operand.matrix.element_type
        type_ = ir.MemRefType.get(self._sizes, element, memory_space=address_space("workgroup"))
        alloc = memref.AllocOp(type_, [], [])
        alloc.operation.attributes[next(iter(self.marks))] = ir.UnitAttr.get()
        self.buffer = alloc.memref

    def stored(self, rows: Extent, columns: Extent) -> list[Extent]:
        """Returns a pair in the order of the stored matrix."""
        return [columns, rows] if self._turns else [rows, columns]

    def within(self, rows: Extent, columns: Extent) -> ir.Value:
        """Returns the part of the tile that is within the matrix."""
        inside = self.stored(rows, columns)
        return self.buffer if inside == self._sizes else subview(self.buffer, [0, 0], inside)

    def load(self, part: ir.Value, rows: Extent, columns: Extent) -> None:
        """Copies a part of the matrix to the tile, with zeros beyond."""
        inside = self.within(rows, columns)
        if inside != self.buffer:
            _fill(self.buffer, self.marks)
        create_named_op("linalg.copy", [part], inside, self.marks)


class _Staging:
    """Writes a product by way of shared memory.

    Raises:
        Refusal: blocks of these extents cannot compute it.
    """

    def __init__(self, product: TileProduct, block: tuple[int, int, int], is_whole: bool) -> None:
        self.product, self.block, self.is_whole = product, block, is_whole
        if is_whole:
            _check_division(product, block)
            product.check_within()
        self.extents = product.reach if is_whole else product.extents()

    def write(self, rewriter: Rewriter) -> None:
        """Writes the product in place of the ops of the launch."""
        launch, (m, n, _), (block_m, block_n, _) = self.product.launch, self.extents, self.block
        body = body_of(launch)
        old = operations_of(body)[:-1]
        with ir.InsertionPoint(terminator_of(body)), launch.location:
            self._write_block()
        for op in reversed(old):
            rewriter.erase_op(op)
        set_launch_sizes(launch, GRID, [-(-n // block_n), -(-m // block_m), 1])
        set_launch_sizes(launch, BLOCK, [1, 1, 1])
        if "intel_reqd_sub_group_size" in launch.attributes:
            del launch.attributes["intel_reqd_sub_group_size"]

    def _write_block(self) -> None:
        """Creates the ops of a block."""
        product, (m, n, k), (block_m, block_n, _) = self.product, self.extents, self.block
        row, column = (
            apply(lambda number, size=size: number * size, _block_id(axis))
            for axis, size in (("y", block_m), ("x", block_n))
        )
        rows, columns = _inside(row, block_m, m), _inside(column, block_n, n)
        a = self._view(product.a, (row, 0), (rows, k))
        b = self._view(product.b, (0, column), (k, columns))
        c = self._view(product.c, (row, column), (rows, columns))
        if self.is_whole and not product.epilogue.ops:
            if product.from_zero:
                _fill(c)
            self._write_steps((a, b, c), (rows, columns))
            return
        sums, epilogue = _Tile(product.c, "c", (block_m, block_n), product.sums_type), product.epilogue
        own = sums.within(rows, columns)
        if product.from_zero or epilogue.ops:
            _fill(sums.buffer)
        else:
            sums.load(c, rows, columns)
        self._write_steps((a, b, sums.buffer), (rows, columns))
        if not epilogue.ops:
            create_named_op("linalg.copy", [own], c, sums.marks)
            return
        others = [
            subview(operand.matrix.buffer, [0, column], [1, columns], drop=1)
            if epilogue.is_row(operand)
            else self._view(operand, (row, column), (rows, columns))
            for operand in epilogue.operands
        ]
        consumer = epilogue.write(own, others, c, adds_c=not product.from_zero)
        consumer.attributes["operand_c"] = ir.UnitAttr.get()

    @staticmethod
    def _view(operand: Operand, offsets: tuple[Extent, Extent], sizes: tuple[Extent, Extent]) -> ir.Value:
        """Returns the part of a matrix, as it is stored, that has rows and columns as the program indexes it."""
        order = -1 if operand.matrix.is_transposed else 1
        return subview(operand.matrix.buffer, list(offsets)[::order], list(sizes)[::order])

    def _write_steps(self, matrices: tuple[ir.Value, ir.Value, ir.Value], inside: tuple[Extent, Extent]) -> None:
        """Creates the loop over k: copies of parts of A and B, and their product."""
        a, b, sums = matrices
        (block_m, block_n, block_k), k = self.block, self.extents[2]
        tile_a = _Tile(self.product.a, "a", (block_m, block_k))
        tile_b = _Tile(self.product.b, "b", (block_k, block_n))
        loop = scf.ForOp(index(0), index(k), index(block_k))
        with ir.InsertionPoint(loop.body):
            step = loop.induction_variable
            depth = _inside(step, block_k, k)
            copies = (
                (tile_a, a, (0, step), (inside[0], depth)),
                (tile_b, b, (step, 0), (depth, inside[1])),
            )
            parts = [subview(matrix, tile.stored(*at), tile.stored(*sizes)) for tile, matrix, at, sizes in copies]
            for (tile, _, _, sizes), part in zip(copies, parts):
                tile.load(part, *sizes)
            create_named_op("linalg.matmul", [tile_a.buffer, tile_b.buffer], sums, self.product.maps())
            scf.yield_([])
