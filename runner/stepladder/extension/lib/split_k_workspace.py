"""Where the blocks that divide a tile's reduction leave their sums for each other, and how they wait for all of them.

Either place is a class of the same form: made of a launch, whose grid it makes larger, it has the number of a block's
`part`; `keep` writes the block's sums, `meet` waits for those of all, and each thread then takes some of the tile's
`units`, of WIDTH elements of a row: where one is in the tile says `locate`, and `load` has it from all parts.
"""

from __future__ import annotations

from stepladder.extension.lib import building, fragment_order
from stepladder.extension.lib.building import index, integer
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.tile_grid import (
    CLUSTER_LIMIT,
    block_ids,
    grid_of_tiles,
    tile_ids,
)
from stepladder.mlir.bindings import arith, gpu, ir, linalg, llvm, memref, nvvm

WIDTH = fragment_order.UNIT  # elements of a row that a thread sums at once
PAD_BYTES = 32
_MARK, _ARRIVALS = "partial_sums", "arrivals"
_DYNAMIC = -(2**31)  # an index of llvm.getelementptr that is an operand
# Address spaces of pointers into a block's own shared memory, and into that of any block of its cluster.
_SHARED, _SHARED_OF_CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
# Named barriers: 0 is that of the block.
_BARRIER = 1


class InCluster:
    """In shared memory: the blocks are a cluster, and read each other's tiles of sums from where they lie.

    Rows of the tile are longer by `PAD_BYTES`, so that warps, which write eight rows at once, meet no bank conflicts.

    Attributes:
        launch: in clusters of a block a part.
        part: the number of a block's part.
    """

    def __init__(self, launch, parts: int, threads: int, rewriter):
        if parts > CLUSTER_LIMIT:
            raise Refusal(launch, f"a cluster of {parts} blocks: more than {CLUSTER_LIMIT} are not portable")
        if building.launch_sizes(launch, building.CLUSTER)[0] > 1:
            raise Refusal(launch, "its blocks form clusters already, and parts in shared memory need their own")
        self.parts = parts
        width, height, _ = building.launch_sizes(launch, building.GRID)
        x, y = block_ids(launch)
        building.set_launch_sizes(launch, building.GRID, [width * parts, height, 1])
        with ir.InsertionPoint(launch), launch.location:
            sizes = [index(parts), index(1), index(1)]
        self.launch = building.relaunch(launch, building.CLUSTER, sizes, rewriter)
        with ir.InsertionPoint.at_block_begin(self._body), self.launch.location:
            across, down = gpu.cluster_id(gpu.Dimension.x), gpu.cluster_id(gpu.Dimension.y)
            self.part = building.block_in_cluster()
        for id_, number in ((x, across), (y, down)):
            if id_ is not None:
                rewriter.replace_op(id_, [number])

    @property
    def _body(self):
        return self.launch.regions[0].blocks[0]

    def keep(self, sums) -> None:
        """Writes a block's sums to its tile."""
        type_ = ir.MemRefType(sums.type)
        rows, self._columns = type_.shape
        self.units = rows * self._columns // WIDTH
        self._pitch = self._columns + PAD_BYTES * 8 // type_.element_type.width
        # In front of all that roles have copies of: there is one tile.
        with ir.InsertionPoint.at_block_begin(self._body), self.launch.location:
            self._tile = memref.alloc(
                ir.MemRefType.get([rows, self._pitch], type_.element_type, memory_space=type_.memory_space), [], []
            )
            self._tile.owner.attributes[_MARK] = ir.UnitAttr.get()
        linalg.copy(sums, outs=[building.view(self._tile, [0, 0], [rows, self._columns])])

    def meet(self) -> None:
        """Waits until all blocks have written their sums."""
        nvvm.cluster_arrive()
        nvvm.cluster_wait()
        own = memref.extract_aligned_pointer_as_index(self._tile)
        own = llvm.inttoptr(ir.Type.parse(_SHARED), arith.index_cast(ir.IntegerType.get_signless(64), own))
        self._tiles = [
            nvvm.mapa(ir.Type.parse(_SHARED_OF_CLUSTER), own, integer(part, 32)) for part in range(self.parts)
        ]

    def locate(self, unit) -> tuple:
        """Returns the row of a unit, and the columns where runs of its elements begin."""
        per_row = self._columns // WIDTH
        return (
            building.apply(lambda n: ir.AffineExpr.get_floor_div(n, per_row), unit),
            [building.apply(lambda n: ir.AffineExpr.get_mod(n, per_row) * WIDTH, unit)],
        )

    def load(self, unit) -> list:
        """Returns a unit of each part."""
        element = ir.MemRefType(self._tile.type).element_type
        row, (column,) = self.locate(unit)
        place = arith.index_cast(
            ir.IntegerType.get_signless(64), building.apply(lambda r, c: r * self._pitch + c, row, column)
        )
        pointer, type_ = ir.Type.parse(_SHARED_OF_CLUSTER), ir.VectorType.get([WIDTH], element)
        values = []
        for tile in self._tiles:
            there = llvm.getelementptr(pointer, tile, [place], [_DYNAMIC], element, None)
            values.append(
                ir.Operation.create(
                    "llvm.load", results=[type_], operands=[there], attributes=building.aligned(type_)
                ).results[0]
            )
        return values

    def leave(self) -> None:
        """Keeps a block from ending while others read its sums."""
        nvvm.cluster_arrive()
        nvvm.cluster_wait()


class InMemory:
    """In global memory, that is in the L2 cache: the blocks of a tile need no cluster, and each may belong to one.

    They are neighbours in the grid, so that they start together. A counter for each tile says how many have arrived,
    that is have written their sums. It runs to twice the parts and begins again, so that a launch finds it at zero or
    half way, and waits until it is in the other half. Launches of one loaded kernel share counters and workspace: they
    follow each other.

    Attributes:
        launch: of a block a part.
        part: the number of a block's part.
    """

    def __init__(self, launch, parts: int, threads: int, rewriter):
        self.launch, self.parts, self.threads = launch, parts, threads
        width, height, size = grid_of_tiles(launch)
        self._tiles = width * height * size
        building.set_launch_sizes(launch, building.GRID, [width * parts * size, height, 1])
        x, y = tile_ids(launch)
        body = launch.regions[0].blocks[0]
        uses = [] if x is None else [(use.owner.operation, use.operand_number) for use in x.results[0].uses]
        for id_ in (y, x):
            if id_ is not None:
                id_.move_before(body.operations[0])
        with ir.InsertionPoint.at_block_begin(body), launch.location:
            if x is None:
                kind = gpu.block_id if size == 1 else gpu.cluster_id
                x = kind(gpu.Dimension.x).owner.operation
        with ir.InsertionPoint(body.operations[2 if y is not None else 1]), launch.location:
            number = x.results[0]
            column = building.apply(lambda n: ir.AffineExpr.get_floor_div(n, parts), number)
            self.part = building.apply(lambda n: ir.AffineExpr.get_mod(n, parts), number)
            place = column if y is None else building.apply(lambda c, r: r * width + c, column, y.results[0])
            if size > 1:
                place = building.apply(lambda p, r: p * size + r, place, building.block_in_cluster())
            self._place = place
        for user, position in uses:
            user.operands[position] = column

    def keep(self, sums) -> None:
        """Writes a block's sums to its tile, as threads hold them."""
        type_ = ir.MemRefType(sums.type)
        rows, self._columns = type_.shape
        self.units = rows * self._columns // WIDTH
        sums_type = ir.MemRefType.get(
            [self._tiles, self.parts, self.units, WIDTH],
            type_.element_type,
            memory_space=ir.Attribute.parse(building.GLOBAL),
        )
        self._sums = memref.get_global(sums_type, building.make_global(self.launch, _MARK, sums_type))
        fragment_order.write(
            sums, building.view(self._sums, [self._place, self.part, 0, 0], [1, 1, self.units, WIDTH], drop=2)
        )

    def meet(self) -> None:
        """Waits until all blocks have written their sums."""
        i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
        arrivals = ir.MemRefType.get([self._tiles], i32, memory_space=ir.Attribute.parse(building.GLOBAL))
        symbol = building.make_global(self.launch, _ARRIVALS, arrivals, 0)
        threads = integer(self.threads, 32)
        nvvm.barrier(barrier_id=integer(_BARRIER, 32), number_of_threads=threads)
        with building.if_(building.equal(building.thread_number(), index(0))):
            start = memref.extract_aligned_pointer_as_index(memref.get_global(arrivals, symbol))
            address = arith.index_cast(i64, arith.addi(start, building.times(self._place, 4)))
            before = nvvm.inline_ptx(
                [i32],
                [address, integer(2 * self.parts - 1, 32)],
                [],
                "atom.release.gpu.global.inc.u32 {$w0}, [{$r0}], {$r1};",
                memory_clobber=True,
            )
            nvvm.inline_ptx(
                [],
                [address, before, integer(self.parts, 32)],
                [],
                "{.reg .pred p, q; .reg .b32 now; setp.ge.u32 q, {$r1}, {$r2}; "
                "WAIT: ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ge.xor.u32 p, now, {$r2}, q; "
                "@!p bra WAIT;}",
                memory_clobber=True,
            )
        nvvm.barrier(barrier_id=integer(_BARRIER, 32), number_of_threads=threads)

    def locate(self, unit) -> tuple:
        """Returns the row of a unit, and the columns where runs of its elements begin."""
        return fragment_order.place_of(unit, self._columns)

    def load(self, unit) -> list:
        """Returns a unit of each part."""
        tile = building.view(self._sums, [self._place, 0, 0, 0], [1, self.parts, self.units, WIDTH], drop=1)
        type_ = ir.VectorType.get([WIDTH], ir.MemRefType(self._sums.type).element_type)
        return [
            ir.Operation.create(
                "vector.load",
                results=[type_],
                operands=[tile, index(part), unit, index(0)],
                attributes=building.aligned(type_),
            ).results[0]
            for part in range(self.parts)
        ]

    def leave(self) -> None:
        """Nothing: what is in global memory outlasts the block, and the next launch begins behind this one."""
