"""`tc.matmul_to_tiles`: writes a matmul as a XeTile program at work-group level."""

from stepladder.extension.lib.arithmetic import index, zero_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.xetile.tiles import create, init_tile, load_tile, store_tile
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.linalg_ops import indexing_maps, loops_of
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.mlir.xetile.tile_type import TileType
from stepladder.mlir.xetile.wg_map import WgMap, Wrong


class MatmulToTiles(Tc.Operation, name="matmul_to_tiles"):
    """Replaces a `linalg.matmul` by a parallel loop over tiles of C, with a loop over k inside.

    A tile of C has block_m x block_n elements and belongs to a work-group; each subgroup owns sg_m x sg_n of them. The
    tiles at the edges are whole ones: loads beyond the matrix give zeros, and stores there are left out.

    Operands: a handle to the module, which has one function in the form that `tc.normalize_payload` creates.
    Attributes: the sizes of the tiles.
    Refuses: a batch; element types that `xetile.tile_mma` does not multiply; an op between the matmul and C, also a
        rounding; tiles that subgroups do not divide.
    """

    target: Handle
    block_m: ir.IntegerAttr
    block_n: ir.IntegerAttr
    block_k: ir.IntegerAttr
    sg_m: ir.IntegerAttr
    sg_n: ir.IntegerAttr


@transform_op(MatmulToTiles)
def matmul_to_tiles(payload: ir.Operation, op: MatmulToTiles, rewriter: Rewriter) -> None:
    """Writes the matmul below `payload` as tiles; see the op."""
    batches = walk(payload, "linalg.batch_matmul", "linalg.contract")
    if batches:
        raise Refusal(batches[0], f"{batches[0].name} has no tile form: a linalg.matmul has")
    for matmul in walk(payload, "linalg.matmul"):
        try:
            _Program(matmul, op).write(rewriter)
        except Wrong as wrong:
            raise Refusal(matmul, str(wrong)) from None


class _Program:
    """The XeTile program of one matmul."""

    def __init__(self, matmul: ir.Operation, op: MatmulToTiles) -> None:
        self.matmul = matmul
        self.block = (op.block_m.value, op.block_n.value)
        self.block_k = op.block_k.value
        sg = (op.sg_m.value, op.sg_n.value)
        if any(size % part for size, part in zip(self.block, sg)):
            raise Refusal(matmul, f"a tile of {self.block} is not divided by a subgroup's {sg}")
        layout = (self.block[0] // sg[0], self.block[1] // sg[1])
        self.maps = [WgMap(layout, data) for data in ((sg[0], self.block_k), (self.block_k, sg[1]), sg)]
        self.store = self._store()
        self.buffers = [self._buffer(operand) for operand in list(matmul.operands)[:2]]
        self.c = self.store.operands[1]
        self.starts_at_zero = self._starts_at_zero()

    def _store(self) -> ir.Operation:
        users = users_of(self.matmul.results[0])
        if len(users) != 1 or users[0].name != "bufferization.materialize_in_destination":
            raise Refusal(users[0] if users else self.matmul, "the product must be written to C as it is: no other op")
        return users[0]

    def _buffer(self, operand: ir.Value) -> ir.Value:
        source = producer(operand)
        if source is None or source.name != "bufferization.to_tensor":
            raise Refusal(self.matmul, "A and B must be tensors of buffers (bufferization.to_tensor)")
        return source.operands[0]

    def _starts_at_zero(self) -> bool:
        """Whether the sums start at zero, and not at C."""
        start = producer(self.matmul.operands[2])
        if start is not None and start.name == "bufferization.to_tensor" and start.operands[0] == self.c:
            return False
        zero = producer(start.operands[0]) if start is not None and start.name == "linalg.fill" else None
        if zero is None or zero.name != "arith.constant" or zero.attributes["value"].value != 0:
            raise Refusal(self.matmul, "the sums must start at C or at a linalg.fill of 0")
        return True

    def _view(self, number: int) -> tuple[ir.Value, bool]:
        """Returns a buffer as a matrix of m x k or k x n, and whether that view is column-major."""
        buffer = self.buffers[number]
        first, second = ((0, 2), (2, 1))[number]
        dims = loops_of(indexing_maps(self.matmul)[number])
        if dims == [first, second]:
            return buffer, False
        if dims != [second, first]:
            raise Refusal(self.matmul, "operands must be row- or column-major matrices")
        type_ = ir.MemRefType(buffer.type)
        rows, columns = type_.shape
        layout = ir.StridedLayoutAttr.get(0, [1, columns])
        view = ir.MemRefType.get([columns, rows], type_.element_type, layout=layout, memory_space=type_.memory_space)
        permutation = ir.AffineMapAttr.get(ir.AffineMap.get_permutation([1, 0]))
        launch = ir.Operation.create(
            "memref.transpose", results=[view], operands=[buffer], attributes={"permutation": permutation}
        )
        return launch.results[0], True

    def write(self, rewriter: Rewriter) -> None:
        """Creates the program, and erases the matmul and the write to C."""
        with ir.InsertionPoint(self.store), self.matmul.location:
            (a, a_swapped), (b, b_swapped) = self._view(0), self._view(1)
            m, k = ir.MemRefType(a.type).shape
            n = ir.MemRefType(b.type).shape[1]
            grid = [-(-size // block) for size, block in zip((m, n), self.block)]
            mapping = ir.Attribute.parse("[#gpu.block<y>, #gpu.block<x>]")
            loop = scf.ForallOp([0, 0], grid, [1, 1], mapping=mapping)
            with ir.InsertionPoint(loop.body):
                self._tile(a, b, (a_swapped, b_swapped), k, list(loop.body.arguments))
                scf.InParallelOp()
        rewriter.erase_op(self.store)
        rewriter.erase_op(self.matmul)

    def _tile(self, a: ir.Value, b: ir.Value, are_swapped: tuple[bool, bool], k: int, numbers: list[ir.Value]) -> None:
        zero, step = index(0), index(self.block_k)
        rows, columns = (arith.muli(number, index(size)) for number, size in zip(numbers, self.block))
        tiles = [
            TileType(shape, ir.MemRefType(base.type).element_type, wg, (0, 1) if column_major else (1, 0))
            for shape, base, wg, column_major in (
                ((self.block[0], self.block_k), a, self.maps[0], are_swapped[0]),
                ((self.block_k, self.block[1]), b, self.maps[1], are_swapped[1]),
                (self.block, self.c, self.maps[2], False),
            )
        ]
        for tile, wg in zip(tiles, self.maps):
            wg.check_shape(tile.shape)
        a_tile, b_tile = init_tile(tiles[0], a, [rows, zero]), init_tile(tiles[1], b, [zero, columns])
        c_tile = init_tile(tiles[2], self.c, [rows, columns])
        sums = tiles[2].vector
        start = arith.constant(sums, zero_of(sums)) if self.starts_at_zero else load_tile(c_tile, sums)
        loop = scf.ForOp(zero, index(k), step, [start, a_tile, b_tile])
        with ir.InsertionPoint(loop.body):
            _, total, a_here, b_here = loop.body.arguments
            operands = [load_tile(operand_tile, tile.vector) for operand_tile, tile in zip((a_here, b_here), tiles)]
            wg_map = {"wg_map": ir.Attribute.parse(str(self.maps[2]))}
            total = create("tile_mma", [*operands, total], [sums], wg_map).results[0]
            next_tiles = [
                create("update_tile_offset", [operand_tile, *deltas], [operand_tile.type]).results[0]
                for operand_tile, deltas in ((a_here, (zero, step)), (b_here, (step, zero)))
            ]
            scf.yield_([total, *next_tiles])
        store_tile(loop.results[0], c_tile)
