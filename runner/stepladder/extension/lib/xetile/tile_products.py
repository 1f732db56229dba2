"""Reads the matmul that a XeTile program at work-group level computes."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.control_flow import BOUNDS, body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.launches import GRID, launch_sizes
from stepladder.extension.lib.xetile.forwarded_tiles import forward_tiles
from stepladder.extension.lib.xetile.tile_epilogues import Epilogue
from stepladder.extension.lib.xetile.tile_matrices import Operand, Start, matrix_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import number_in
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.xetile.tile_type import read_tile

# Ops around the loop over k, and in it. Of prefetches nothing is read, nor of what moves their tiles.
_INDICES = ("arith.", "affine.", "math.")
_TILES = (
    "xetile.init_tile",
    "xetile.update_tile_offset",
    "xetile.load_tile",
    "xetile.transpose",
    "xetile.prefetch_tile",
    "xetile.tile_mma",
    "xetile.broadcast",
)
_CONTROL = ("scf.for", "scf.if", "scf.yield", "gpu.barrier")
_AROUND = (
    "gpu.block_id",
    "memref.transpose",
    "memref.alloc",
    "gpu.terminator",
    "xetile.store_tile",
    *_TILES,
    *_CONTROL,
)


class TileProduct:
    """The matmul that a launch with tiles of work-groups computes: C = AB, or C = AB + C.

    Args:
        launch: the `gpu.launch`, canonicalized.

    Attributes:
        launch: the same.
        mma: the only `tile_mma`.
        tile: m, n and k of it.
        depth: that all steps of k reach.
        a, b, c: the matrices.
        from_zero: whether the sums start at zero, and not at C.
        epilogue: elementwise ops between the sums and their store, if any.
        reach: m, n and k that the tiles of all blocks reach.

    Raises:
        Refusal: the launch is not of this form: one loop along k, or one step of k, with loads of A and B, also by way
            of shared local memory, and one `tile_mma`, whose sums start at zero or at C and are stored to C, by blocks
            with tiles of C side by side.
    """

    def __init__(self, launch: ir.Operation) -> None:
        forward_tiles(launch)
        self.launch = launch
        self._body = body_of(launch)
        loops = [op for op in operations_of(self._body) if op.name == "scf.for"]
        if len(loops) > 1:
            raise Refusal(launch, f"the launch has {len(loops)} loops; accepted: one along k")
        # A loop of one iteration is none any more: its ops are in the launch.
        self._has_loop, self._loop = bool(loops), (loops or [launch])[0]
        self._check_ops()
        self.mma = self._only("xetile.tile_mma", self._loop)
        rows, depth = ir.VectorType(self.mma.operands[0].type).shape
        self.tile = (rows, ir.VectorType(self.mma.operands[1].type).shape[1], depth)
        self.a, self.b = self._read_loop() if self._has_loop else self._read_step()
        self.c, self.from_zero = self._read_c()
        grid = launch_sizes(launch, GRID)
        row, column = self._axes(grid)
        self.reach = (grid[row] * self.tile[0], grid[column] * self.tile[1], self.depth)

    def _check_ops(self) -> None:
        for op in walk(self.launch)[1:]:
            if not (op.name in _AROUND or op.name.startswith(_INDICES)):
                raise Refusal(
                    op,
                    f"{op.name} is not supported here; accepted: loads and stores of tiles, transposes of loaded "
                    "tiles, prefetches, an xetile.tile_mma and elementwise ops on its result",
                )
            if op.name == "xetile.init_tile" and read_tile(op.results[0].type).space != "global":
                raise Refusal(
                    op,
                    "a tile of shared local memory is not supported here, since stages of shared memory replace it; "
                    "accepted: one that is stored once, and loaded as it is after a barrier",
                )
        stores = walk(self.launch, "xetile.store_tile")
        if len(stores) > 1:
            raise Refusal(stores[1], f"the launch has {len(stores)} xetile.store_tile; accepted: one, of the sums")

    def _only(self, name: str, place: ir.Operation) -> ir.Operation:
        """Returns the only op of a name in the loop, or in the launch."""
        ops = walk(place, name)
        if len(ops) != 1 or ops[0].block != body_of(place):
            scope = "the loop" if self._has_loop else "the launch"
            raise Refusal(place, f"{scope} has {len(ops)} {name}; accepted: one")
        return ops[0]

    def _read_loop(self) -> tuple[Operand, Operand]:
        """Reads the loop: A and B, each with a tile that moves along k."""
        bounds = [constant_value(operand) for operand in list(self._loop.operands)[:BOUNDS]]
        step = self.tile[2]
        self.depth = bounds[1] or 0
        if bounds != [0, self.depth, step]:
            raise Refusal(self._loop, f"the loop must go from 0 by {step}, the k of a tile, to a constant")
        self.depth = -(-self.depth // step) * step
        arguments: list[ir.Value] = [*list(body_of(self._loop).arguments)[1:]]
        end = terminator_of(body_of(self._loop))
        sums = list(self.mma.operands)[2:]
        self._place = arguments.index(sums[0]) if sums and sums[0] in arguments else -1
        if self._place < 0 or end.operands[self._place] != self.mma.results[0]:
            raise Refusal(self.mma, "the sums must be carried by the loop: C of the xetile.tile_mma, and its result")
        a, b = (self._moving(number, arguments, end) for number in (0, 1))
        return a, b

    def _read_step(self) -> tuple[Operand, Operand]:
        """Reads the only step of k: A and B."""
        self.depth = self.tile[2]
        loads = [self._load_of(number) for number in (0, 1)]
        a, b = (self._operand(load, load.operands[0], is_transposed) for load, is_transposed in loads)
        return a, b

    def _load_of(self, number: int) -> tuple[ir.Operation, bool]:
        """Returns the load of A or B, by index, and whether its vector is transposed before it is multiplied."""
        load, is_transposed = producer(self.mma.operands[number]), False
        if load is not None and load.name == "xetile.transpose":
            load, is_transposed = producer(load.operands[0]), True
        if load is None or load.name != "xetile.load_tile":
            raise Refusal(self.mma, f"operand {number} must be an xetile.load_tile, or the transpose of one")
        return load, is_transposed

    def _moving(self, number: int, arguments: list[ir.Value], end: ir.Operation) -> Operand:
        """Returns A or B, by index."""
        load, is_transposed = self._load_of(number)
        if load.operands[0] not in arguments:
            raise Refusal(self.mma, f"operand {number} must be an xetile.load_tile of a tile that the loop carries")
        place = arguments.index(load.operands[0])
        update = producer(end.operands[place])
        expected_deltas = [0, self.tile[2]] if (number == 0) != is_transposed else [self.tile[2], 0]
        if (
            update is None
            or update.name != "xetile.update_tile_offset"
            or update.operands[0] != arguments[place]
            or [constant_value(delta) for delta in list(update.operands)[1:]] != expected_deltas
        ):
            raise Refusal(end, f"the tile of operand {number} must move by {expected_deltas} an iteration")
        return self._operand(load, self._loop.operands[BOUNDS + place], is_transposed)

    def _operand(self, op: ir.Operation, tile: ir.Value, is_transposed: bool = False) -> Operand:
        """Returns the matrix of a tile, which `op` uses, and where the tile begins."""
        matrix, offsets = matrix_of(op, tile)
        if matrix.is_in(self.launch):
            raise Refusal(op, "the matrix of the tile must be a buffer from before the launch")
        rows, columns = (self._start(op, offset) for offset in offsets)
        return Operand(matrix.turned(), (columns, rows)) if is_transposed else Operand(matrix, (rows, columns))

    def _start(self, op: ir.Operation, offset: ir.Value) -> Start:
        """Returns where a tile begins."""
        if constant_value(offset) == 0:
            return Start()
        source = producer(offset)
        if source is not None and source.name == "arith.muli":
            for number, factor in (source.operands, list(source.operands)[::-1]):
                axis, size = self._axis(number), constant_value(factor)
                if axis is not None and size is not None:
                    return Start(axis, size)
        raise Refusal(op, "a tile begins at 0, or at the number of the block times a constant")

    def _axis(self, number: ir.Value) -> int | None:
        if isinstance(number.owner, ir.Block):
            place = ir.BlockArgument(number).arg_number
            return place if number.owner == self._body and place < 3 else None
        source = producer(number)
        if source is None or source.name != "gpu.block_id":
            return None
        return "xyz".index(str(source.attributes["dimension"]).rpartition(" ")[2].rstrip(">"))

    def _read_c(self) -> tuple[Operand, bool]:
        """Returns C, which the sums are stored to, and whether they start at zero."""
        sums = self._loop.results[self._place] if self._has_loop else self.mma.results[0]
        stores = walk(self.launch, "xetile.store_tile")
        if len(stores) != 1 or stores[0].block != self._body:
            raise Refusal(self._loop, "the sums must be stored by one xetile.store_tile in the launch")
        (store,) = stores
        c = self._operand(store, store.operands[1])
        if c.matrix.is_transposed:
            raise Refusal(store, "C must be row-major")
        if c.matrix.buffer in (self.a.matrix.buffer, self.b.matrix.buffer):
            raise Refusal(store, "C must be another matrix than A and B")
        self.epilogue = Epilogue(sums, c, self._operand)
        self.epilogue.read(store)
        if not self._has_loop and len(self.mma.operands) < 3:
            return c, True
        source = producer(self._loop.operands[BOUNDS + self._place] if self._has_loop else self.mma.operands[2])
        if source is not None and source.name == "arith.constant" and _is_zero(source.attributes["value"]):
            return c, True
        if source is None or source.name != "xetile.load_tile" or self._operand(source, source.operands[0]) != c:
            raise Refusal(self._loop, "the sums must start at zero or at C")
        return c, False

    def _axes(self, grid: Sequence[int]) -> tuple[int, int]:
        """Returns the dimensions of the grid along the rows and columns of C; refuses tiles that are not where those of
        a product are."""
        starts = self.c.starts
        if self.a.starts != (starts[0], Start()) or self.b.starts != (Start(), starts[1]):
            raise Refusal(self._loop, "A must begin at the rows of C and B at its columns")
        # The number of the only block along a dimension is 0: a dimension with one block is taken.
        free = [axis for axis in (1, 0, 2) if grid[axis] == 1 and axis not in {start.axis for start in starts}]
        axes = []
        for start, size in zip(starts, self.tile):
            if (start.axis is not None and start.factor != size) or (start.axis is None and not free):
                raise Refusal(
                    self.launch, f"blocks must compute tiles of C of {self.tile[0]} x {self.tile[1]}, side by side"
                )
            axes.append(free.pop(0) if start.axis is None else start.axis)
        if axes[0] == axes[1]:
            raise Refusal(self.launch, "the rows and the columns of C must follow different numbers of a block")
        (other,) = {0, 1, 2} - set(axes)
        if grid[other] != 1:
            raise Refusal(self.launch, f"{grid[other]} blocks along {'xyz'[other]} would compute the same tile of C")
        return axes[0], axes[1]

    @property
    def sums_type(self) -> ir.Type:
        """Element type of the sums."""
        return ir.VectorType(self.mma.results[0].type).element_type

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of A, B and C, as the program indexes them."""
        return self.a.matrix.shape, self.b.matrix.shape, self.c.matrix.shape

    def maps(self) -> dict[str, ir.Attribute]:
        """Returns the indexing maps of a `linalg.matmul` of the buffers, as attributes; none where A and B are
        row-major."""
        matrices = (self.a.matrix, self.b.matrix)
        if not any(matrix.is_transposed for matrix in matrices):
            return {}
        m, n, k = (ir.AffineExpr.get_dim(number) for number in range(3))
        orders = [pair[::-1] if matrix.is_transposed else pair for matrix, pair in zip(matrices, ((m, k), (k, n)))]
        maps = [ir.AffineMapAttr.get(ir.AffineMap.get(3, 0, list(order))) for order in (*orders, (m, n))]
        return {"indexing_maps": ir.ArrayAttr.get(maps)}

    def check_within(self) -> None:
        """Refuses tiles that reach beyond their matrices."""
        m, n, k = self.reach
        for operand, sizes in ((self.a, (m, k)), (self.b, (k, n)), (self.c, (m, n))):
            if any(size > extent for size, extent in zip(sizes, operand.matrix.shape)):
                raise Refusal(
                    self.launch,
                    f"the tiles reach {sizes[0]} x {sizes[1]} elements of {operand.matrix.buffer.type}: copies to "
                    "shared memory have no bounds, so that tiles must divide the matrices",
                )

    def extents(self) -> tuple[int, int, int]:
        """Returns m, n and k of the product of the whole matrices; refuses tiles that do not cover them, and paddings.

        Tiles may reach beyond: loads give zeros there, and stores are left out.
        """
        (m, k), (_, n), _ = self.shapes
        texts = [" x ".join(map(str, sizes)) for sizes in (*self.shapes, self.reach)]
        if self.shapes != ((m, k), (k, n), (m, n)):
            raise Refusal(self.launch, f"A is {texts[0]}, B {texts[1]} and C {texts[2]}, of no product of matrices")
        if any(end < size for end, size in zip(self.reach, (m, n, k))):
            raise Refusal(
                self.launch, f"the tiles reach {texts[3]} of m x n x k = {m} x {n} x {k}: they must cover the matrices"
            )
        for load in walk(self.launch, "xetile.load_tile"):
            padding = load.attributes.get("padding")
            if self.reach != (m, n, k) and padding is not None and not _is_zero(padding):
                raise Refusal(load, f"the padding is {padding}, and the tiles reach beyond the matrices; accepted: 0")
        return m, n, k


def _is_zero(value: ir.Attribute) -> bool:
    """Returns whether a scalar, or each element of a vector, is 0."""
    number = number_in(value)
    return number is not None and not number.value
