"""`tc.distribute_tiles`: gives each subgroup of a work-group its own blocks of the tiles."""

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import splat_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import BLOCK, launch_sizes
from stepladder.extension.lib.translation import Translation
from stepladder.extension.lib.xetile.tile_exchange import exchange, exchange_transposed
from stepladder.extension.lib.xetile.tiles import Owned, create, init_tile, load_tile, store_tile, tile_type
from stepladder.extension.lib.xetile.xegpu_layouts import turns
from stepladder.mlir.bindings import arith, gpu, ir
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.xetile.derive import map_of
from stepladder.mlir.xetile.tile_type import TileType, is_tile, map_attribute, read_tile, segments
from stepladder.mlir.xetile.wg_map import WgMap, Wrong


class DistributeTiles(Tc.Operation, name="distribute_tiles"):
    """Distributes the tiles of each work-group to its subgroups, by their `wg_map`.

    A tile or a vector becomes the blocks that a subgroup owns of it. `convert_layout`, and a `transpose` of blocks that
    another subgroup owns, or of vectors that lanes cannot turn, go through shared local memory, between two barriers.

    Operands: a handle to any op; the launches below with tiles of work-groups are rewritten.
    Attributes: the bytes of shared local memory that one exchange may take.
    Refuses: a launch of another number of threads than the maps have subgroups; vectors without a map that are not
        constants; exchanges that shared local memory has no room for.
    """

    target: Handle
    slm_bytes: ir.IntegerAttr


_SUBGROUP_SIZE = "intel_reqd_sub_group_size"
_MAPS = ("wg_map", "wg_map_a", "wg_map_b", "wg_map_source")


@transform_op(DistributeTiles)
def distribute_tiles(payload: ir.Operation, op: DistributeTiles, rewriter: Rewriter) -> None:
    """Distributes the tiles of the launches below `payload`; see the op."""
    for launch in walk(payload, "gpu.launch"):
        maps = [read_tile(init.results[0].type).wg for init in walk(launch, "xetile.init_tile")]
        wg_map = next((wg for wg in maps if wg is not None), None)
        if wg_map is not None:
            try:
                _Distributor(launch, wg_map.subgroups, op.slm_bytes.value).run(rewriter)
            except Wrong as wrong:  # an elementwise op, which no verifier of the dialect sees
                raise Refusal(wrong.op if isinstance(wrong.op, ir.Operation) else launch, str(wrong)) from None


def _check_threads(launch: ir.Operation, subgroups: int) -> None:
    if _SUBGROUP_SIZE not in launch.attributes:
        raise Refusal(launch, f"the launch does not state the threads of a subgroup: {_SUBGROUP_SIZE} = 16 : i32 does")
    size = ir.IntegerAttr(launch.attributes[_SUBGROUP_SIZE]).value
    x, y, z = launch_sizes(launch, BLOCK)
    if x * y * z != subgroups * size:
        raise Refusal(
            launch,
            f"the maps have {subgroups} subgroups of {size} threads, and the launch {x * y * z} threads; expected "
            f"{subgroups * size}",
        )


class _Distributor(Translation):
    """Distributes one launch: `values` has the blocks of tiles and of vectors with a map, in the order of `Owned`."""

    def __init__(self, launch: ir.Operation, subgroups: int, limit: int) -> None:
        super().__init__(launch)
        _check_threads(launch, subgroups)
        self.limit = limit

    def begin(self) -> None:
        """Asks for the number of the subgroup. Memory is allocated before it."""
        self.subgroup = gpu.subgroup_id()
        self.start = self.subgroup.owner.operation

    def owned(self, wg: WgMap, shape: Sequence[int]) -> Owned:
        """Returns the blocks that the subgroup owns."""
        return Owned(wg, shape, self.subgroup)

    def of_vector(self, op: ir.Operation, value: ir.Value, wg: WgMap) -> list[ir.Value]:
        """Returns the blocks of a vector with a map; those of a constant are constants."""
        type_, splat = ir.VectorType(value.type), splat_of(value)
        if splat is None and map_of(value) is not None:
            return self.values[value]
        if splat is None:
            raise Refusal(op, f"{op.name}: nothing says how the vector is distributed: wg_map on the op that makes it")
        block = ir.VectorType.get(list(wg.sg_data), type_.element_type)
        constant = arith.constant(block, ir.DenseElementsAttr.get_splat(block, splat))
        return [constant] * self.owned(wg, type_.shape).count

    def expanded(self, op: ir.Operation, like: ir.Value, value: ir.Value) -> list[ir.Value]:
        """Returns the blocks of a value where it becomes `like`, a value that a loop or a branch carries."""
        if is_tile(like.type):
            blocks = self.values.get(value, [value])
            if read_tile(like.type).scatter and blocks[0].type != value.type:
                raise Refusal(
                    op, f"{op.name} carries a scatter tile of a work-group: xetile.init_tile makes one inside"
                )
            return blocks
        wg = _map(like)
        return [self.one(value)] if wg is None else self.of_vector(op, value, wg)

    def types_of(self, like: ir.Value) -> list[ir.Type]:
        """Returns the types of the blocks of a carried value."""
        if is_tile(like.type):
            tile = read_tile(like.type)
            return [tile_type(_block_of(tile))] * (self.owned(tile.wg, tile.shape).count if tile.wg else 1)
        wg = _map(like)
        if wg is None:
            return [like.type]
        block = ir.VectorType.get(list(wg.sg_data), ir.VectorType(like.type).element_type)
        return [block] * self.owned(wg, _shape(like)).count

    def operation(self, op: ir.Operation) -> bool:
        """Creates what an op of tiles or of vectors with a map becomes."""
        dialect, _, name = op.name.partition(".")
        if dialect == "xetile":
            getattr(self, f"_{name}")(op)
        elif dialect in ("arith", "math") and op.operands and any(map_of(result) for result in op.results):
            self._elementwise(op)
        elif op.name == "arith.constant" and map_of(op.results[0]):
            if splat_of(op.results[0]) is None:
                raise Refusal(op, "arith.constant that is no splat has a wg_map: only a splat is distributed")
        else:
            return False
        return True

    def _kept(self, op: ir.Operation) -> dict[str, ir.Attribute]:
        return {name: attribute for name, attribute in attributes_of(op).items() if name not in _MAPS}

    def _elementwise(self, op: ir.Operation) -> None:
        wg = map_of(op.results[0])
        assert wg is not None
        operands = [
            self.of_vector(op, operand, wg) if isinstance(operand.type, ir.VectorType) else None
            for operand in op.operands
        ]
        count = self.owned(wg, ir.VectorType(op.results[0].type).shape).count
        blocks = []
        for number in range(count):
            copy = ir.Operation.create(
                op.name,
                results=[ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)],
                operands=[self.one(old) if new is None else new[number] for old, new in zip(op.operands, operands)],
                attributes=self._kept(op),
            )
            blocks.append(copy.results[0])
        self.values[op.results[0]] = blocks

    # Tiles.

    def _init_tile(self, op: ir.Operation) -> None:
        tile = read_tile(op.results[0].type)
        if tile.wg is None:
            self._init_scatter_tile(op, tile) if tile.scatter else self.clone(op)
            return
        parts = [[self.one(value) for value in part] for part in segments(op)]
        (base,), offsets, shape, strides = parts
        tiles = []
        for row, column in self.owned(tile.wg, tile.shape).offsets():
            places = [*offsets[:-2], arith.addi(offsets[-2], row), arith.addi(offsets[-1], column)]
            tiles.append(init_tile(_block_of(tile), base, places, shape, strides))
        self.values[op.results[0]] = tiles

    def _update_tile_offset(self, op: ir.Operation) -> None:
        deltas = [self.one(value) for value in list(op.operands)[1:]]
        self.values[op.results[0]] = [
            create("update_tile_offset", [tile, *deltas], [tile.type]).results[0]
            for tile in self.values.get(op.operands[0], [op.operands[0]])
        ]

    def _load_tile(self, op: ir.Operation) -> None:
        block = _block_of(read_tile(op.operands[0].type))
        tiles = self.values.get(op.operands[0], [op.operands[0]])
        self.values[op.results[0]] = [load_tile(tile, block.vector, self._kept(op)) for tile in tiles]

    def _store_tile(self, op: ir.Operation) -> None:
        for value, tile in self._pairs(op):
            store_tile(value, tile)

    def _pairs(self, op: ir.Operation) -> list[tuple[ir.Value, ir.Value]]:
        tile = read_tile(op.operands[1].type)
        if tile.wg is None:
            return [(self.one(op.operands[0]), self.one(op.operands[1]))]
        return list(zip(self.of_vector(op, op.operands[0], tile.wg), self.values[op.operands[1]]))

    def _prefetch_tile(self, op: ir.Operation) -> None:
        for tile in self.values.get(op.operands[0], [op.operands[0]]):
            create("prefetch_tile", [tile], [], self._kept(op))

    def _atomic_rmw(self, op: ir.Operation) -> None:
        self.values[op.results[0]] = [
            create("atomic_rmw", [value, tile], [value.type], self._kept(op)).results[0]
            for value, tile in self._pairs(op)
        ]

    def _init_scatter_tile(self, op: ir.Operation, tile: TileType) -> None:
        """The blocks of a scatter tile are those of its offsets."""
        base, offsets = op.operands
        wg = map_of(offsets)
        if wg is None:
            self.clone(op)
            return
        block = tile_type(TileType(wg.sg_data, tile.element, scatter=True))
        self.values[op.results[0]] = [
            create("init_tile", [self.one(base), part], [block], attributes_of(op)).results[0]
            for part in self.values[offsets]
        ]

    def _scattered(self, op: ir.Operation, tile: ir.Value, mask: ir.Value) -> list[tuple[ir.Value, ir.Value]] | None:
        """Returns the blocks of a scatter tile with those of a mask; None for a tile without a map."""
        init = producer(tile)
        wg = None if init is None else map_of(init.operands[1])
        if wg is None:
            return None
        mask_map = map_attribute(op) if op.results else map_of(op.operands[0])
        if mask_map != wg:
            raise Refusal(op, f"{op.name}: the offsets are distributed by {wg}, and the vector must be as well")
        return list(zip(self.values[tile], self.of_vector(op, mask, wg)))

    def _load_gather(self, op: ir.Operation) -> None:
        pairs = self._scattered(op, *op.operands)
        if pairs is None:
            self.clone(op)
            return
        element = ir.VectorType(op.results[0].type).element_type
        self.values[op.results[0]] = [
            create("load_gather", [tile, mask], [_like(mask, element)], self._kept(op)).results[0]
            for tile, mask in pairs
        ]

    def _store_scatter(self, op: ir.Operation) -> None:
        value, mask, tile = op.operands
        pairs = self._scattered(op, tile, mask)
        if pairs is None:
            self.clone(op)
            return
        for part, (block, inside) in zip(self.values[value], pairs):
            create("store_scatter", [part, inside, block], [], self._kept(op))

    # Vectors.

    def _tile_mma(self, op: ir.Operation) -> None:
        wg = map_attribute(op)
        if wg is None:
            self.clone(op)
            return
        (m, k), (_, n) = (_shape(value) for value in list(op.operands)[:2])
        a = self.of_vector(op, op.operands[0], WgMap(wg.sg_layout, (wg.sg_data[0], k)))
        b = self.of_vector(op, op.operands[1], WgMap(wg.sg_layout, (k, wg.sg_data[1])))
        c = self.of_vector(op, op.operands[2], wg) if len(op.operands) > 2 else None
        type_ = ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)
        products = []
        for number, (row, column) in enumerate(self.owned(wg, (m, n)).places):
            sums = [] if c is None else [c[number]]
            products.append(create("tile_mma", [a[row], b[column], *sums], [type_], self._kept(op)).results[0])
        self.values[op.results[0]] = products

    def _along(self, op: ir.Operation, source_map: WgMap) -> None:
        """A reduction or a broadcast: each block of the result is one of the source's in the same rounds."""
        wg = map_attribute(op)
        assert wg is not None
        source = self.owned(source_map, _shape(op.operands[0]))
        blocks = self.of_vector(op, op.operands[0], source_map)
        type_ = ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)
        blocks_of_result = []
        for row, column in self.owned(wg, _shape(op.results[0])).places:
            # A source with one round along a dimension has the same block for all rounds of the result.
            number = min(row, source.rounds[0] - 1) * source.rounds[1] + min(column, source.rounds[1] - 1)
            blocks_of_result.append(
                create(op.name.partition(".")[2], [blocks[number]], [type_], self._kept(op)).results[0]
            )
        self.values[op.results[0]] = blocks_of_result

    def _source_map(self, op: ir.Operation) -> WgMap:
        source_map = map_of(op.operands[0]) or map_attribute(op, "wg_map_source")
        if source_map is None:
            raise Refusal(op, f"{op.name}: nothing says how the source is distributed: wg_map_source does")
        return source_map

    def _reduction(self, op: ir.Operation) -> None:
        self.clone(op) if "wg_map" not in op.attributes else self._along(op, self._source_map(op))

    def _broadcast(self, op: ir.Operation) -> None:
        self.clone(op) if "wg_map" not in op.attributes else self._along(op, self._source_map(op))

    def _transpose(self, op: ir.Operation) -> None:
        wg = map_attribute(op)
        if wg is None:
            self.clone(op)
            return
        source_map = self._source_map(op)
        source = self.owned(source_map, _shape(op.operands[0]))
        target = self.owned(wg, _shape(op.results[0]))
        blocks = self.of_vector(op, op.operands[0], source_map)
        owns_alike = source_map.owns_alike(wg, source.shape, transposed=True)
        if not (owns_alike and source_map.sg_data == wg.transposed.sg_data and turns(op.operands[0])):
            self.values[op.results[0]] = exchange_transposed(op, self._begin(), source, target, blocks, self.limit)
            return
        type_ = ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)
        self.values[op.results[0]] = [
            create("transpose", [blocks[column * source.rounds[1] + row]], [type_], self._kept(op)).results[0]
            for row, column in target.places
        ]

    def _convert_layout(self, op: ir.Operation) -> None:
        wg = map_attribute(op)
        assert wg is not None
        source_map = self._source_map(op)
        shape = _shape(op.results[0])
        blocks = self.of_vector(op, op.operands[0], source_map)
        if source_map.sg_data == wg.sg_data and source_map.owns_alike(wg, shape):
            self.values[op.results[0]] = blocks
            return
        source, target = self.owned(source_map, shape), self.owned(wg, shape)
        self.values[op.results[0]] = exchange(op, self._begin(), source, target, blocks, self.limit)

    def _begin(self) -> ir.InsertionPoint:
        return ir.InsertionPoint(self.start)


def _map(value: ir.Value) -> WgMap | None:
    return map_of(value) if isinstance(value.type, ir.VectorType) else None


def _shape(value: ir.Value) -> tuple[int, ...]:
    return read_tile(value.type).shape if is_tile(value.type) else tuple(ir.VectorType(value.type).shape)


def _like(value: ir.Value, element: ir.Type) -> ir.VectorType:
    return ir.VectorType.get(list(ir.VectorType(value.type).shape), element)


def _block_of(tile: TileType) -> TileType:
    """Returns the type of a subgroup's block of a tile."""
    return TileType(
        tile.wg.sg_data if tile.wg else tile.shape, tile.element, None, tile.order, tile.space, tile.scatter
    )
