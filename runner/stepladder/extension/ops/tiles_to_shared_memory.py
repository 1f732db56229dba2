"""`tc.tiles_to_shared_memory`: writes a XeTile product of a work-group as copies to shared memory, and a matmul."""

from dataclasses import dataclass
from typing import NoReturn

from stepladder.extension.lib.arithmetic import apply, constant_value, index
from stepladder.extension.lib.control_flow import BOUNDS, body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import BLOCK, GRID, launch_sizes, set_launch_sizes
from stepladder.extension.lib.memory import subview
from stepladder.mlir.bindings import arith, ir, memref, scf
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.mlir.types import address_space, row_major_strides, strides_of
from stepladder.mlir.xetile.tile_type import read_tile, segments


class TilesToSharedMemory(Tc.Operation, name="tiles_to_shared_memory"):
    """Writes the product that a launch of XeTile computes in the form that the steps of `mma_sync` take.

    Tiles of A and B that the work-group loads become copies to shared memory, `tile_mma` a `linalg.matmul` of them,
    which adds to C in memory. Several blocks share a tile of C that is larger than theirs: its parts do not depend on
    each other. Prefetches are left out: the stages of shared memory take their place. The maps are left out: warps take
    tiles of `warp_m` x `warp_n`.

    Operands: a handle to any op; the launches below with tiles are rewritten.
    Attributes: extents of what a block computes, and of a step along k.
    Refuses: all but one loop along k, or one step of k without a loop, with a load of A, a load of B and one
        `tile_mma`, whose sums start at zero or at C and are stored to C; tiles that are column-major, or not within
        their matrices; other extents.
    """

    target: Handle
    block_m: ir.IntegerAttr
    block_n: ir.IntegerAttr
    block_k: ir.IntegerAttr


_AROUND = ("gpu.block_id", "arith.constant", "arith.muli", "affine.apply", "gpu.terminator", "scf.for")
_TILES = ("xetile.init_tile", "xetile.update_tile_offset", "xetile.load_tile", "xetile.prefetch_tile")
_INSIDE = (*_TILES[1:], "xetile.tile_mma", "arith.constant", "scf.yield")


@transform_op(TilesToSharedMemory)
def tiles_to_shared_memory(payload: ir.Operation, op: TilesToSharedMemory, rewriter: Rewriter) -> None:
    """Rewrites the launches below `payload`; see the op."""
    for launch in walk(payload, "gpu.launch"):
        if any(op.name.startswith("xetile.") for op in walk(launch)):
            _Product(launch, (op.block_m.value, op.block_n.value, op.block_k.value)).write(rewriter)


@dataclass(frozen=True)
class _Start:
    """Where a tile begins along a dimension: at 0 for `axis` None, else at `factor` times the number of the block."""

    axis: int | None = None
    factor: int = 0


def _block_id(axis: int) -> ir.Value:
    dimension = ir.Attribute.parse(f"#gpu<dim {'xyz'[axis]}>")
    types = [ir.IndexType.get()]
    return ir.Operation.create("gpu.block_id", results=types, attributes={"dimension": dimension}).results[0]


class _Product:
    """The product that a launch computes.

    Raises:
        Refusal: the launch is not of this form.
    """

    def __init__(self, launch: ir.Operation, extents: tuple[int, int, int]) -> None:
        self.launch = launch
        self.body = body_of(launch)
        self.grid = launch_sizes(launch, GRID)
        loops = [op for op in operations_of(self.body) if op.name == "scf.for"]
        if len(loops) > 1:
            raise Refusal(launch, f"the launch has {len(loops)} loops: one along k is accepted")
        self.has_loop = bool(loops)
        # A loop of one iteration is none any more: its ops are in the launch.
        self.loop = loops[0] if loops else launch
        self._check_ops()
        self.mma = walk(self.loop, "xetile.tile_mma")[0]
        self.tile_m, self.tile_k = ir.VectorType(self.mma.operands[0].type).shape
        self.tile_n = ir.VectorType(self.mma.operands[1].type).shape[1]
        self.block_m, self.block_n, self.block_k = extents
        if self.tile_m % self.block_m or self.tile_n % self.block_n:
            raise Refusal(
                self.mma,
                f"the tile of C is {self.tile_m} x {self.tile_n}, which block_m = {self.block_m} and block_n = "
                f"{self.block_n} do not divide",
            )
        self._read_loop()
        self._read_c()
        self._check_bounds()

    @property
    def _place(self) -> str:
        return "the loop" if self.has_loop else "the launch"

    def _check_ops(self) -> None:
        around, inside = (*_AROUND, *_TILES, "xetile.store_tile"), _INSIDE
        blocks = [(self.body, around), (body_of(self.loop), inside)]
        if not self.has_loop:
            blocks = [(self.body, (*around, "xetile.tile_mma"))]
        for block, accepted in blocks:
            for op in operations_of(block):
                if op.name not in accepted:
                    raise Refusal(op, f"{op.name} has no form here: {', '.join(accepted)} have one")
        if len(walk(self.loop, "xetile.tile_mma")) != 1:
            products = len(walk(self.loop, "xetile.tile_mma"))
            raise Refusal(self.loop, f"{self._place} has {products} xetile.tile_mma: one is accepted")

    def _init_of(self, op: ir.Operation, tile: ir.Value) -> tuple[ir.Value, tuple[_Start, _Start]]:
        """Returns the matrix of a tile and where the tile begins."""
        init = producer(tile)
        if init is None or init.name != "xetile.init_tile":
            raise Refusal(op, "the tile must be one of an xetile.init_tile of the launch")
        (base,), offsets, _, _ = segments(init)
        type_, made = base.type, read_tile(tile.type)
        is_matrix = isinstance(type_, ir.MemRefType) and type_.rank == 2 and type_.has_static_shape
        if made.is_transposed or made.scatter or made.space != "global" or not is_matrix:
            raise Refusal(init, "a row-major block tile of a static memref of two dimensions is accepted")
        if strides_of(ir.MemRefType(type_)) != row_major_strides(list(ir.MemRefType(type_).shape)):
            raise Refusal(init, f"the base is {type_}: rows without gaps are accepted")
        return base, (self._start(init, offsets[0]), self._start(init, offsets[1]))

    def _start(self, op: ir.Operation, offset: ir.Value) -> _Start:
        """Returns where a tile begins."""
        if constant_value(offset) == 0:
            return _Start()
        source = producer(offset)
        if source is not None and source.name == "arith.muli":
            for number, factor in (source.operands, list(source.operands)[::-1]):
                axis, size = self._axis(number), constant_value(factor)
                if axis is not None and size is not None:
                    return _Start(axis, size)
        raise Refusal(op, "a tile begins at 0, or at the number of the block times a constant")

    def _axis(self, number: ir.Value) -> int | None:
        if isinstance(number.owner, ir.Block):
            place = ir.BlockArgument(number).arg_number
            return place if number.owner == self.body and place < 3 else None
        source = producer(number)
        if source is None or source.name != "gpu.block_id":
            return None
        return "xyz".index(str(source.attributes["dimension"]).rpartition(" ")[2].rstrip(">"))

    def _read_loop(self) -> None:
        """Reads the loop: A and B, each with a tile that moves along k."""
        if not self.has_loop:
            self._read_step()
            return
        bounds = [constant_value(operand) for operand in list(self.loop.operands)[:BOUNDS]]
        self.depth = bounds[1] or 0
        if bounds != [0, self.depth, self.tile_k] or self.depth % self.tile_k or self.depth % self.block_k:
            raise Refusal(
                self.loop,
                f"the loop must go from 0 by {self.tile_k}, the k of a tile, to a multiple of it and of block_k = "
                f"{self.block_k}",
            )
        arguments: list[ir.Value] = [*list(body_of(self.loop).arguments)[1:]]
        end = terminator_of(body_of(self.loop))
        self.place = arguments.index(self.mma.operands[2]) if len(self.mma.operands) == 3 else -1
        if self.place < 0 or end.operands[self.place] != self.mma.results[0]:
            self._refuse_sums()
        self.a, self.b = (self._moving(number, arguments, end) for number in (0, 1))

    def _read_step(self) -> None:
        """Reads the only step of k: A and B, and where sums start."""
        self.depth = self.tile_k
        if self.depth % self.block_k:
            raise Refusal(self.mma, f"the depth is {self.depth}, which is no multiple of block_k = {self.block_k}")
        loads = [producer(operand) for operand in list(self.mma.operands)[:2]]
        found = []
        for number, load in enumerate(loads):
            if load is None or load.name != "xetile.load_tile":
                raise Refusal(self.mma, f"operand {number} must be an xetile.load_tile")
            found.append(self._init_of(load, load.operands[0]))
        self.a, self.b = found

    def _refuse_sums(self) -> NoReturn:
        raise Refusal(self.mma, "the sums must be carried by the loop: C of the xetile.tile_mma, and its result")

    def _moving(
        self, number: int, arguments: list[ir.Value], end: ir.Operation
    ) -> tuple[ir.Value, tuple[_Start, _Start]]:
        """Returns matrix and begin of A or B, by number."""
        load = producer(self.mma.operands[number])
        if load is None or load.name != "xetile.load_tile" or load.operands[0] not in arguments:
            raise Refusal(self.mma, f"operand {number} must be an xetile.load_tile of a tile that the loop carries")
        place = arguments.index(load.operands[0])
        moved = producer(end.operands[place])
        wanted = [0, self.tile_k] if number == 0 else [self.tile_k, 0]
        if (
            moved is None
            or moved.name != "xetile.update_tile_offset"
            or moved.operands[0] != arguments[place]
            or [constant_value(delta) for delta in list(moved.operands)[1:]] != wanted
        ):
            raise Refusal(end, f"the tile of operand {number} must move by {wanted} an iteration")
        return self._init_of(load, self.loop.operands[BOUNDS + place])

    def _read_c(self) -> None:
        """Reads where sums start, and C, which they are stored to."""
        users = users_of(self.loop.results[self.place] if self.has_loop else self.mma.results[0])
        if len(users) != 1 or users[0].name != "xetile.store_tile":
            raise Refusal(self.loop, "the sums must be stored by one xetile.store_tile, and have no other use")
        self.c = self._init_of(users[0], users[0].operands[1])
        if not self.has_loop and len(self.mma.operands) < 3:
            self.from_zero = True
            return
        source = producer(self.loop.operands[BOUNDS + self.place] if self.has_loop else self.mma.operands[2])
        self.from_zero = source is not None and source.name == "arith.constant"
        if source is not None and self.from_zero:
            value = source.attributes["value"]
            if not (
                isinstance(value, ir.DenseElementsAttr) and value.is_splat and not float(value.get_splat_value().value)
            ):
                raise Refusal(self.loop, "the sums must start at zero or at C")
        elif source is None or source.name != "xetile.load_tile" or self._init_of(source, source.operands[0]) != self.c:
            raise Refusal(self.loop, "the sums must start at zero or at C")

    def _check_bounds(self) -> None:
        """Refuses tiles that are not where those of a product are, or not within their matrices."""
        starts, sizes = self.c[1], (self.tile_m, self.tile_n)
        if self.a[1] != (starts[0], _Start()) or self.b[1] != (_Start(), starts[1]):
            raise Refusal(self.loop, "A must begin at the rows of C and B at its columns")
        # The number of the only block along a dimension is 0: a dimension with one block is taken.
        free = [axis for axis in (1, 0, 2) if self.grid[axis] == 1 and axis not in {start.axis for start in starts}]
        axes = []
        for start, size in zip(starts, sizes):
            if (start.axis is not None and start.factor != size) or (start.axis is None and not free):
                raise Refusal(
                    self.launch, f"blocks must compute tiles of C of {self.tile_m} x {self.tile_n}, side by side"
                )
            axes.append(free.pop(0) if start.axis is None else start.axis)
        if axes[0] == axes[1]:
            raise Refusal(self.launch, "the rows and the columns of C must follow different numbers of a block")
        self.axes = (axes[0], axes[1])
        row, column = self.axes
        (other,) = {0, 1, 2} - set(axes)
        if self.grid[other] != 1:
            raise Refusal(
                self.launch, f"{self.grid[other]} blocks along {'xyz'[other]} would compute the same tile of C"
            )
        needed = (self.grid[row] * self.tile_m, self.depth, self.grid[column] * self.tile_n)
        for (base, _), sizes in ((self.a, needed[:2]), (self.b, needed[1:]), (self.c, needed[::2])):
            shape = list(ir.MemRefType(base.type).shape)
            if any(size > extent for size, extent in zip(sizes, shape)):
                raise Refusal(
                    self.launch,
                    f"the tiles reach {sizes[0]} x {sizes[1]} elements of {base.type}: copies to shared memory have no "
                    "bounds, so that tiles must divide the matrices",
                )

    def write(self, rewriter: Rewriter) -> None:
        """Writes the product in place of the ops of the launch."""
        old = operations_of(self.body)[:-1]
        axes = self.axes
        shared = address_space("workgroup")
        with ir.InsertionPoint(terminator_of(self.body)), self.loop.location:
            row, column = (
                apply(lambda number, size=size: number * size, _block_id(axis))
                for axis, size in zip(axes, (self.block_m, self.block_n))
            )
            a = subview(self.a[0], [row, 0], [self.block_m, self.depth])
            b = subview(self.b[0], [0, column], [self.depth, self.block_n])
            c = subview(self.c[0], [row, column], [self.block_m, self.block_n])
            if self.from_zero:
                type_ = ir.MemRefType(self.c[0].type).element_type
                zero = ir.FloatAttr.get(type_, 0.0) if isinstance(type_, ir.FloatType) else ir.IntegerAttr.get(type_, 0)
                create_named_op("linalg.fill", [arith.constant(type_, zero)], c)
            tiles = []
            for source, shape in ((a, [self.block_m, self.block_k]), (b, [self.block_k, self.block_n])):
                element = ir.MemRefType(source.type).element_type
                tiles.append(memref.alloc(ir.MemRefType.get(shape, element, memory_space=shared), [], []))
            loop = scf.ForOp(index(0), index(self.depth), index(self.block_k))
            with ir.InsertionPoint(loop.body):
                step = loop.induction_variable
                parts = (
                    subview(a, [0, step], [self.block_m, self.block_k]),
                    subview(b, [step, 0], [self.block_k, self.block_n]),
                )
                for name, part, tile in zip("ab", parts, tiles):
                    mark = {f"operand_{name}": ir.UnitAttr.get()}
                    tile.owner.attributes[f"operand_{name}"] = ir.UnitAttr.get()
                    create_named_op("linalg.copy", [part], tile, mark)
                create_named_op("linalg.matmul", tiles, c)
                scf.yield_([])
        for op in reversed(old):
            rewriter.erase_op(op)
        parts = {axes[0]: self.tile_m // self.block_m, axes[1]: self.tile_n // self.block_n}
        set_launch_sizes(self.launch, GRID, [size * parts.get(axis, 1) for axis, size in enumerate(self.grid)])
        set_launch_sizes(self.launch, BLOCK, [1, 1, 1])
        for name in ("intel_reqd_sub_group_size",):
            if name in self.launch.attributes:
                del self.launch.attributes[name]
