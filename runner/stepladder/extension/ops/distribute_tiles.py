"""`tc.distribute_tiles`: gives each subgroup of a work-group its own blocks of the tiles."""

from collections.abc import Sequence

from stepladder.extension.lib.control_flow import BOUNDS, body_of, operations_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import BLOCK, launch_sizes
from stepladder.extension.lib.tile_exchange import exchange, exchange_transposed
from stepladder.extension.lib.tiles import Owned, create, init_tile, load_tile, store_tile, tile_type
from stepladder.mlir.bindings import arith, gpu, ir, scf
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.xetile.derive import map_of
from stepladder.mlir.xetile.tile_type import TileType, is_tile, map_attribute, read_tile, segments
from stepladder.mlir.xetile.wg_map import WgMap, Wrong


class DistributeTiles(Tc.Operation, name="distribute_tiles"):
    """Distributes the tiles of each work-group to its subgroups, by their `wg_map`.

    A tile or a vector becomes the blocks that a subgroup owns of it. `convert_layout`, and a `transpose` of blocks that
    another subgroup owns, go through shared local memory, between two barriers.

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
        found = next((wg for wg in maps if wg is not None), None)
        if found is not None:
            try:
                _Distributor(launch, found.subgroups, op.slm_bytes.value).run(rewriter)
            except Wrong as wrong:  # an elementwise op, which no verifier of the dialect sees
                raise Refusal(wrong.op if isinstance(wrong.op, ir.Operation) else launch, str(wrong)) from None


def _check_threads(launch: ir.Operation, subgroups: int) -> None:
    if _SUBGROUP_SIZE not in launch.attributes:
        raise Refusal(launch, f"the launch does not say the threads of a subgroup: {_SUBGROUP_SIZE} = 16 : i32 does")
    size = ir.IntegerAttr(launch.attributes[_SUBGROUP_SIZE]).value
    x, y, z = launch_sizes(launch, BLOCK)
    if x * y * z != subgroups * size:
        raise Refusal(
            launch,
            f"the maps have {subgroups} subgroups of {size} threads, and the launch {x * y * z} threads: "
            f"{subgroups * size} are right",
        )


class _Distributor:
    """Rewrites one launch: its ops are created again behind the old ones, which are erased at the end.

    Attributes:
        blocks: of each tile and vector with a map, the values that stand for it, in the order of `Owned.places`; of
            any other value the one that does.
    """

    def __init__(self, launch: ir.Operation, subgroups: int, limit: int) -> None:
        _check_threads(launch, subgroups)
        self.launch = launch
        self.limit = limit
        self.blocks: dict[ir.Value, list[ir.Value]] = {}
        self.old = operations_of(body_of(launch))[:-1]

    def run(self, rewriter: Rewriter) -> None:
        """Rewrites the launch."""
        end = terminator_of(body_of(self.launch))
        with ir.InsertionPoint(end), self.launch.location:
            self.subgroup = gpu.subgroup_id()
            # Memory is allocated before all that the ops below become.
            self.start = self.subgroup.owner.operation
            for old in self.old:
                self.translate(old)
        for old in reversed(self.old):
            rewriter.erase_op(old)

    # Values.

    def one(self, value: ir.Value) -> ir.Value:
        """Returns what stands for a value that is not distributed."""
        found = self.blocks.get(value, [value])
        assert len(found) == 1, "a distributed value has no single one"
        return found[0]

    def owned(self, wg: WgMap, shape: Sequence[int]) -> Owned:
        """Returns the blocks that the subgroup owns."""
        return Owned(wg, shape, self.subgroup)

    def of_vector(self, op: ir.Operation, value: ir.Value, wg: WgMap) -> list[ir.Value]:
        """Returns the blocks of a vector with a map; those of a constant are constants."""
        type_, splat = ir.VectorType(value.type), _splat(value)
        if splat is None and map_of(value) is not None:
            return self.blocks[value]
        if splat is None:
            raise Refusal(op, f"{op.name}: nothing says how the vector is distributed: wg_map on the op that makes it")
        block = ir.VectorType.get(list(wg.sg_data), type_.element_type)
        constant = arith.constant(block, ir.DenseElementsAttr.get_splat(block, splat))
        return [constant] * self.owned(wg, type_.shape).count

    def expanded(self, op: ir.Operation, like: ir.Value, value: ir.Value) -> list[ir.Value]:
        """Returns what stands for a value where it becomes `like`, a value that a loop or a branch carries."""
        if is_tile(like.type):
            return self.blocks.get(value, [value])
        wg = map_of(like) if isinstance(like.type, ir.VectorType) else None
        return [self.one(value)] if wg is None else self.of_vector(op, value, wg)

    # Ops.

    def translate(self, op: ir.Operation) -> None:
        """Creates what an op becomes."""
        dialect, _, name = op.name.partition(".")
        with op.location:
            if dialect == "xetile":
                getattr(self, f"_{name}")(op)
            elif op.name == "scf.for":
                self._for(op)
            elif op.name == "scf.if":
                self._if(op)
            elif dialect in ("arith", "math") and op.operands and any(map_of(result) for result in op.results):
                self._elementwise(op)
            else:
                self._clone(op)

    def _clone(self, op: ir.Operation) -> None:
        for inner in walk(op):
            for operand in inner.operands:
                if len(self.blocks.get(operand, [operand])) != 1:
                    raise Refusal(op, f"{op.name} of a tile or a vector that is distributed")
        copy = op.clone().operation
        for inner in walk(copy):
            for number, operand in enumerate(inner.operands):
                if operand in self.blocks:
                    inner.operands[number] = self.one(operand)
        for old, new in zip(op.results, copy.results):
            self.blocks[old] = [new]

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
        made = []
        for number in range(count):
            copy = ir.Operation.create(
                op.name,
                results=[ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)],
                operands=[self.one(old) if new is None else new[number] for old, new in zip(op.operands, operands)],
                attributes=self._kept(op),
            )
            made.append(copy.results[0])
        self.blocks[op.results[0]] = made

    def _for(self, op: ir.Operation) -> None:
        old = body_of(op)
        carried = list(old.arguments)[1:]
        initial = [self.expanded(op, like, value) for like, value in zip(carried, list(op.operands)[BOUNDS:])]
        bounds = [self.one(operand) for operand in list(op.operands)[:BOUNDS]]
        loop = scf.ForOp(*bounds, [value for values in initial for value in values])
        for name, attribute in attributes_of(op).items():
            loop.operation.attributes[name] = attribute
        arguments, results = list(loop.body.arguments), list(loop.results)
        self.blocks[old.arguments[0]] = [arguments.pop(0)]
        for argument, result, values in zip(carried, op.results, initial):
            self.blocks[argument], arguments = arguments[: len(values)], arguments[len(values) :]
            self.blocks[result], results = results[: len(values)], results[len(values) :]
        with ir.InsertionPoint(loop.body):
            self._body(old, carried)

    def _body(self, old: ir.Block, likes: Sequence[ir.Value]) -> None:
        for inner in operations_of(old)[:-1]:
            self.translate(inner)
        end = terminator_of(old)
        yielded = [self.expanded(end, like, value) for like, value in zip(likes, end.operands)]
        with end.location:
            scf.yield_([value for values in yielded for value in values])

    def _if(self, op: ir.Operation) -> None:
        likes = list(op.results)
        inner = [self._type_of(op, like, place) for like in likes for place in range(self._count(op, like))]
        has_else = len(op.regions[1].blocks) > 0
        branch = scf.IfOp(self.one(op.operands[0]), inner, has_else=has_else)
        results = list(branch.results)
        for like in likes:
            count = self._count(op, like)
            self.blocks[like], results = results[:count], results[count:]
        blocks = [branch.then_block] + ([branch.else_block] if has_else else [])
        for old, new in zip(op.regions, blocks):
            with ir.InsertionPoint(new):
                self._body(old.blocks[0], likes)

    def _count(self, op: ir.Operation, like: ir.Value) -> int:
        wg = read_tile(like.type).wg if is_tile(like.type) else self._map(like)
        return 1 if wg is None else self.owned(wg, _shape(like)).count

    def _map(self, value: ir.Value) -> WgMap | None:
        return map_of(value) if isinstance(value.type, ir.VectorType) else None

    def _type_of(self, op: ir.Operation, like: ir.Value, place: int) -> ir.Type:
        if is_tile(like.type):
            return tile_type(_block_of(read_tile(like.type)))
        wg = self._map(like)
        return like.type if wg is None else ir.VectorType.get(list(wg.sg_data), ir.VectorType(like.type).element_type)

    # Tiles.

    def _init_tile(self, op: ir.Operation) -> None:
        tile = read_tile(op.results[0].type)
        if tile.wg is None:
            self._clone(op)
            return
        parts = [[self.one(value) for value in part] for part in segments(op)]
        (base,), offsets, shape, strides = parts
        made = []
        for row, column in self.owned(tile.wg, tile.shape).offsets():
            places = [*offsets[:-2], arith.addi(offsets[-2], row), arith.addi(offsets[-1], column)]
            made.append(init_tile(_block_of(tile), base, places, shape, strides))
        self.blocks[op.results[0]] = made

    def _update_tile_offset(self, op: ir.Operation) -> None:
        deltas = [self.one(value) for value in list(op.operands)[1:]]
        self.blocks[op.results[0]] = [
            create("update_tile_offset", [tile, *deltas], [tile.type]).results[0]
            for tile in self.blocks.get(op.operands[0], [op.operands[0]])
        ]

    def _load_tile(self, op: ir.Operation) -> None:
        block = _block_of(read_tile(op.operands[0].type))
        tiles = self.blocks.get(op.operands[0], [op.operands[0]])
        self.blocks[op.results[0]] = [load_tile(tile, block.vector, self._kept(op)) for tile in tiles]

    def _store_tile(self, op: ir.Operation) -> None:
        for value, tile in self._pairs(op):
            store_tile(value, tile)

    def _pairs(self, op: ir.Operation) -> list[tuple[ir.Value, ir.Value]]:
        tile = read_tile(op.operands[1].type)
        if tile.wg is None:
            return [(self.one(op.operands[0]), self.one(op.operands[1]))]
        return list(zip(self.of_vector(op, op.operands[0], tile.wg), self.blocks[op.operands[1]]))

    def _prefetch_tile(self, op: ir.Operation) -> None:
        for tile in self.blocks.get(op.operands[0], [op.operands[0]]):
            create("prefetch_tile", [tile], [], self._kept(op))

    def _atomic_rmw(self, op: ir.Operation) -> None:
        self.blocks[op.results[0]] = [
            create("atomic_rmw", [value, tile], [value.type], self._kept(op)).results[0]
            for value, tile in self._pairs(op)
        ]

    def _load_gather(self, op: ir.Operation) -> None:
        self._clone(op)

    def _store_scatter(self, op: ir.Operation) -> None:
        self._clone(op)

    # Vectors.

    def _tile_mma(self, op: ir.Operation) -> None:
        wg = map_attribute(op)
        if wg is None:
            self._clone(op)
            return
        (m, k), (_, n) = (_shape(value) for value in list(op.operands)[:2])
        a = self.of_vector(op, op.operands[0], WgMap(wg.sg_layout, (wg.sg_data[0], k)))
        b = self.of_vector(op, op.operands[1], WgMap(wg.sg_layout, (k, wg.sg_data[1])))
        c = self.of_vector(op, op.operands[2], wg) if len(op.operands) > 2 else None
        type_ = ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)
        made = []
        for number, (row, column) in enumerate(self.owned(wg, (m, n)).places):
            sums = [] if c is None else [c[number]]
            made.append(create("tile_mma", [a[row], b[column], *sums], [type_], self._kept(op)).results[0])
        self.blocks[op.results[0]] = made

    def _along(self, op: ir.Operation, source_map: WgMap) -> None:
        """A reduction or a broadcast: each block of the result is one of the source's in the same rounds."""
        wg = map_attribute(op)
        assert wg is not None
        source = self.owned(source_map, _shape(op.operands[0]))
        blocks = self.of_vector(op, op.operands[0], source_map)
        type_ = ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)
        made = []
        for row, column in self.owned(wg, _shape(op.results[0])).places:
            # A source with one round along a dimension has the same block for all rounds of the result.
            number = min(row, source.rounds[0] - 1) * source.rounds[1] + min(column, source.rounds[1] - 1)
            made.append(create(op.name.partition(".")[2], [blocks[number]], [type_], self._kept(op)).results[0])
        self.blocks[op.results[0]] = made

    def _source_map(self, op: ir.Operation) -> WgMap:
        found = map_of(op.operands[0]) or map_attribute(op, "wg_map_source")
        if found is None:
            raise Refusal(op, f"{op.name}: nothing says how the source is distributed: wg_map_source does")
        return found

    def _reduction(self, op: ir.Operation) -> None:
        self._clone(op) if "wg_map" not in op.attributes else self._along(op, self._source_map(op))

    def _broadcast(self, op: ir.Operation) -> None:
        self._clone(op) if "wg_map" not in op.attributes else self._along(op, self._source_map(op))

    def _transpose(self, op: ir.Operation) -> None:
        wg = map_attribute(op)
        if wg is None:
            self._clone(op)
            return
        source_map = self._source_map(op)
        source = self.owned(source_map, _shape(op.operands[0]))
        target = self.owned(wg, _shape(op.results[0]))
        blocks = self.of_vector(op, op.operands[0], source_map)
        if not source_map.owns_alike(wg, source.shape, transposed=True) or source_map.sg_data != wg.transposed.sg_data:
            self.blocks[op.results[0]] = exchange_transposed(op, self._begin(), source, target, blocks, self.limit)
            return
        type_ = ir.VectorType.get(list(wg.sg_data), ir.VectorType(op.results[0].type).element_type)
        self.blocks[op.results[0]] = [
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
            self.blocks[op.results[0]] = blocks
            return
        source, target = self.owned(source_map, shape), self.owned(wg, shape)
        self.blocks[op.results[0]] = exchange(op, self._begin(), source, target, blocks, self.limit)

    def _begin(self) -> ir.InsertionPoint:
        return ir.InsertionPoint(self.start)


def _shape(value: ir.Value) -> tuple[int, ...]:
    return read_tile(value.type).shape if is_tile(value.type) else tuple(ir.VectorType(value.type).shape)


def _block_of(tile: TileType) -> TileType:
    """Returns the type of a subgroup's block of a tile."""
    return TileType(
        tile.wg.sg_data if tile.wg else tile.shape, tile.element, None, tile.order, tile.space, tile.scatter
    )


def _splat(value: ir.Value) -> ir.Attribute | None:
    """Returns the number that all elements of a constant vector are; None for another value."""
    op = producer(value)
    if op is None or op.name != "arith.constant" or not isinstance(value.type, ir.VectorType):
        return None
    attribute = op.attributes["value"]
    return attribute.get_splat_value() if attribute.is_splat else None
