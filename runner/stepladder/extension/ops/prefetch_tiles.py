"""`tc.prefetch_tiles`: prefetches the tiles that a loop loads into the cache, some steps ahead."""

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import BOUNDS, add_iter_args, body_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.xetile.tiles import create, tile_type
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.types import byte_width
from stepladder.mlir.xetile.tile_type import TileType, read_tile
from stepladder.mlir.xetile.wg_map import WgMap


class PrefetchTiles(Tc.Operation, name="prefetch_tiles"):
    """Prefetches each tile that a loop loads and moves on, `distance` steps before it is loaded.

    The prefetch tile has a map of its own, by which each subgroup prefetches another part of it: rows of a cache line,
    as many subgroups side by side as there are lines in a row. A tile that cannot be divided so keeps its map.

    Operands: a handle to any op; the `scf.for` loops below that carry tiles are rewritten.
    Attributes: the distance in steps; the bytes of a cache line.
    Refuses: a loop that loads no tile that it moves on.
    """

    target: Handle
    distance: ir.IntegerAttr
    line_bytes: ir.IntegerAttr


@transform_op(PrefetchTiles)
def prefetch_tiles(payload: ir.Operation, op: PrefetchTiles, rewriter: Rewriter) -> None:
    """Prefetches the tiles of the loops below `payload`; see the op."""
    for loop in walk(payload, "scf.for"):
        loads = [inner for inner in walk(loop, "xetile.load_tile") if inner.parent == loop]
        if loads:
            _prefetch(loop, op, rewriter)


def _moved(loop: ir.Operation) -> list[tuple[int, ir.Operation]]:
    """Returns the indices of the carried tiles that are loaded and moved on, and the ops that move them."""
    moves = []
    carried_tiles = list(body_of(loop).arguments)[1:]
    for number, (argument, next_tile) in enumerate(zip(carried_tiles, terminator_of(body_of(loop)).operands)):
        move = producer(next_tile)
        if move is None or move.name != "xetile.update_tile_offset" or move.operands[0] != argument:
            continue
        if any(use.owner.name == "xetile.load_tile" for use in argument.uses):
            moves.append((number, move))
    return moves


def _outside(loop: ir.Operation, value: ir.Value) -> bool:
    source = producer(value)
    return source is not None and source.block != body_of(loop)


def _prefetch(loop: ir.Operation, op: PrefetchTiles, rewriter: Rewriter) -> None:
    moves = _moved(loop)
    if not moves:
        raise Refusal(
            loop,
            "the loop does not advance a tile that it loads; expected an xetile.update_tile_offset of a carried tile",
        )
    distance = op.distance.value
    first = []
    for number, move in moves:
        init = producer(loop.operands[BOUNDS + number])
        deltas = list(move.operands)[1:]
        if init is None or init.name != "xetile.init_tile" or not all(_outside(loop, delta) for delta in deltas):
            raise Refusal(move, "a prefetch needs a tile of xetile.init_tile before the loop, and constant steps")
        with ir.InsertionPoint(loop), loop.location:
            tile = _for_prefetch(read_tile(init.results[0].type), op.line_bytes.value)
            start = ir.Operation.create(
                "xetile.init_tile",
                results=[tile_type(tile)],
                operands=list(init.operands),
                attributes=attributes_of(init),
            ).results[0]
            ahead = [arith.muli(delta, index(distance)) for delta in deltas]
            first.append(create("update_tile_offset", [start, *ahead], [start.type]).results[0])
    all_deltas = [list(move.operands)[1:] for _, move in moves]
    new_loop, arguments = add_iter_args(loop, first, rewriter)
    end = terminator_of(body_of(new_loop))
    with ir.InsertionPoint(end), new_loop.location:
        i32 = ir.IntegerType.get_signless(32)
        further = []
        for tile, deltas in zip(arguments, all_deltas):
            create("prefetch_tile", [tile], [], {"locality": ir.IntegerAttr.get(i32, 3)})
            further.append(create("update_tile_offset", [tile, *deltas], [tile.type]).results[0])
        ir.Operation.create("scf.yield", operands=[*end.operands, *further])
    rewriter.erase_op(end)


def _for_prefetch(tile: TileType, line_bytes: int) -> TileType:
    """Returns a tile with a map by which all subgroups prefetch parts of their own, lines of a cache."""
    if tile.wg is None:
        return tile
    subgroups, contiguous = tile.wg.subgroups, 0 if tile.is_transposed else 1
    line = min(tile.shape[contiguous], line_bytes // byte_width(tile.element))
    beside = tile.shape[contiguous] // line
    if tile.shape[contiguous] % line or subgroups % beside or tile.shape[1 - contiguous] % (subgroups // beside):
        return tile
    layout, data = [0, 0], [0, 0]
    layout[contiguous], data[contiguous] = beside, line
    layout[1 - contiguous] = subgroups // beside
    data[1 - contiguous] = tile.shape[1 - contiguous] // layout[1 - contiguous]
    wg = WgMap((layout[0], layout[1]), (data[0], data[1]))
    return TileType(tile.shape, tile.element, wg, tile.order, tile.space)
