"""Rules of the `xetile` operations that access memory."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import ATOMIC_KINDS, memory_space
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import strides_of
from stepladder.mlir.xetile.derive import map_of
from stepladder.mlir.xetile.tile_type import (
    TileType,
    is_tile,
    read_tile,
    segments,
)
from stepladder.mlir.xetile.wg_map import Wrong

_LOCALITIES = range(4)
_EITHER = ("assign",)
_OF_FLOATS = ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", *_EITHER)


def init_tile(op: ir.Operation) -> None:
    """A tile of a memref, of a memref of dynamic shape, of an address, or of offsets.

    Args:
        op: `xetile.init_tile`.

    Raises:
        Wrong: operands and result that do not match; the message names what is accepted.
    """
    tile = read_tile(op.results[0].type)
    (base,), offsets, shape, strides = segments(op)
    if tile.scatter or any(isinstance(offset.type, ir.VectorType) for offset in offsets):
        _scatter_tile(tile, base, offsets, shape + strides)
        return
    if isinstance(base.type, ir.MemRefType):
        _check_memref(tile, base.type)
        rank = base.type.rank
        is_static = base.type.has_static_shape
    else:
        rank, is_static = 2, False
        if tile.space != "global":
            raise Wrong("an address is of global memory: a tile of shared local memory needs a memref of it")
    if len(offsets) != rank:
        raise Wrong(f"it has {len(offsets)} offsets, and a base of {rank} dimensions needs {rank}")
    if is_static and (shape or strides):
        raise Wrong(f"{base.type} is static and has the shape and the strides: leave out those operands")
    if not is_static and (len(shape) != rank or len(strides) != rank):
        raise Wrong(
            f"the shape and the strides of {base.type} are not static: give {rank} numbers of each, not {len(shape)} "
            f"and {len(strides)}"
        )
    if strides:
        _check_given_strides(tile, strides)
    _check_subgroups(op, tile)


def _check_memref(tile: TileType, type_: ir.MemRefType) -> None:
    if type_.rank < 2:
        raise Wrong(f"{type_} has one dimension, and a tile needs two: memref.expand_shape gives it a dimension of 1")
    if type_.element_type != tile.element:
        raise Wrong(f"the tile has elements of {tile.element}, and those of the memref are {type_.element_type}")
    space = memory_space(type_.memory_space)
    if space != tile.space:
        right = "memory_space = 3 in its tile_attr" if space == "shared" else "no memory_space"
        raise Wrong(f"the memref is in {space} memory, and the tile in {tile.space} memory: a tile of it has {right}")
    strides = strides_of(type_)
    if strides is None:
        raise Wrong(f"{type_} is neither row-major nor column-major: a tile is of a plain or of a transposed matrix")
    outer, inner = strides[-2], strides[-1]
    fits = {(1, 0): inner == 1, (0, 1): outer == 1}
    if type_.has_static_shape and not any(fits.values()):
        raise Wrong(
            f"the strides of the last two dimensions are {_stride(outer)} and {_stride(inner)}: one of them must be 1, "
            "since rows or columns are contiguous"
        )
    if not fits[tile.order] and any(fits.values()):
        right = [1, 0] if fits[1, 0] else [0, 1]
        layout = "row-major" if fits[1, 0] else "column-major"
        raise Wrong(f"the memref is {layout}, and the tile has order = {list(tile.order)}: expected order = {right}")


def _stride(number: int | None) -> str:
    return "dynamic" if number is None else str(number)


def _check_given_strides(tile: TileType, strides: list[ir.Value]) -> None:
    """Checks a constant stride of the contiguous dimension."""
    place = -2 if tile.is_transposed else -1
    owner = strides[place].owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return
    stride = ir.IntegerAttr(owner.attributes["value"]).value
    if stride != 1:
        raise Wrong(
            f"with order = {list(tile.order)}, stride {len(strides) + place} must be 1, since that dimension is "
            f"contiguous, and it is {stride}"
        )


def _scatter_tile(tile: TileType, base: ir.Value, offsets: list[ir.Value], others: list[ir.Value]) -> None:
    if not tile.scatter:
        raise Wrong(f"a vector of offsets makes a scatter tile: !xetile.tile<{tile.vector}, #xetile.scatter>")
    if not isinstance(base.type, ir.MemRefType) or base.type.rank != 1:
        raise Wrong(f"a scatter tile is of a memref of one dimension, not of {base.type}")
    if base.type.element_type != tile.element:
        raise Wrong(f"the tile has elements of {tile.element}, and those of the memref are {base.type.element_type}")
    expected = f"vector<{'x'.join(map(str, tile.shape))}xindex>"
    if len(offsets) != 1 or str(offsets[0].type) != expected:
        types = ", ".join(str(offset.type) for offset in offsets) or "no offsets"
        raise Wrong(f"a scatter tile has an offset for each element, a {expected}, not {types}")
    if others:
        raise Wrong("a scatter tile has neither shape nor strides: leave out those operands")


def _check_subgroups(op: ir.Operation, tile: TileType) -> None:
    """Checks that all maps of a function are of the same number of subgroups."""
    if tile.wg is None:
        return
    function = op.parent
    while function is not None and function.name not in ("func.func", "gpu.func", "gpu.launch"):
        function = function.operation.parent
    if function is None:
        return
    for other in walk(function, "xetile.init_tile"):
        wg = read_tile(other.results[0].type).wg
        if wg is not None:
            if wg.subgroups != tile.wg.subgroups:
                raise Wrong(
                    f"sg_layout = {list(tile.wg.sg_layout)} has {tile.wg.subgroups} subgroups, and the first tile of "
                    f"the function has {wg.subgroups}: all maps must be of the same work-group"
                )
            return


def _block_tile(op: ir.Operation, value: ir.Value, otherwise: str) -> TileType:
    if not is_tile(value.type):
        raise Wrong(f"{value.type} is not a tile; expected the result of xetile.init_tile")
    tile = read_tile(value.type)
    if tile.scatter:
        raise Wrong(f"the tile is a scatter tile: {otherwise}")
    return tile


def _scatter_operand(op: ir.Operation, value: ir.Value, otherwise: str) -> TileType:
    if not is_tile(value.type) or not read_tile(value.type).scatter:
        raise Wrong(f"{value.type} is not a scatter tile: {otherwise} is for tiles of a block")
    return read_tile(value.type)


def _check_content(tile: TileType, type_: ir.Type, role: str) -> None:
    if type_ != tile.vector:
        raise Wrong(
            f"the {role} is {type_}, and the tile holds {tile.vector}: both have the same dimensions, in any order"
        )


def _check_padding(op: ir.Operation, element: ir.Type) -> None:
    if "padding" not in op.attributes:
        return
    padding = op.attributes["padding"]
    attribute_class = ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr
    if not isinstance(padding, attribute_class):
        kind = "a floating-point number" if attribute_class is ir.FloatAttr else "an integer"
        raise Wrong(f"padding = {padding} is not {kind}, as the elements of {element} are")


def load_tile(op: ir.Operation) -> None:
    """A vector of what a tile shows.

    Args:
        op: `xetile.load_tile`.

    Raises:
        Wrong: a tile, a result or a padding that does not match; the message names what is accepted.
    """
    tile = _block_tile(op, op.operands[0], "xetile.load_gather loads it")
    _check_content(tile, op.results[0].type, "result")
    _check_padding(op, tile.element)


def _check_map(value: ir.Value, tile: TileType) -> None:
    wg_map = map_of(value)
    if wg_map is None or wg_map == tile.wg:
        return
    if tile.wg is None:
        raise Wrong(f"the value is distributed by {wg_map}, and the tile has no wg: a tile of a work-group has one")
    raise Wrong(
        f"the value is distributed by {wg_map}, and the tile by {tile.wg}: xetile.convert_layout gives the value the "
        "tile's map"
    )


def store_tile(op: ir.Operation) -> None:
    """Writes a vector to what a tile shows.

    Args:
        op: `xetile.store_tile`.

    Raises:
        Wrong: a value, a tile or a map that does not match, or a padding; the message names what is accepted.
    """
    tile = _block_tile(op, op.operands[1], "xetile.store_scatter stores to it")
    _check_content(tile, op.operands[0].type, "value")
    if "padding" in op.attributes:
        raise Wrong("a store has no padding: elements beyond the matrix are not written")
    _check_map(op.operands[0], tile)


def prefetch_tile(op: ir.Operation) -> None:
    """Brings what a tile shows to a cache.

    Args:
        op: `xetile.prefetch_tile`.

    Raises:
        Wrong: another tile than a block of global memory, or another locality than 0 to 3.
    """
    tile = _block_tile(op, op.operands[0], "a prefetch is of a block")
    locality = op.attributes.get("locality")
    if not isinstance(locality, ir.IntegerAttr) or locality.value not in _LOCALITIES:
        raise Wrong(f"locality = {locality}; accepted: 0 (no locality) to 3 (keep in the nearest cache)")
    if tile.space != "global":
        raise Wrong("the tile is in shared local memory, which has no cache: a prefetch is of global memory")


def update_tile_offset(op: ir.Operation) -> None:
    """A tile at other offsets in its matrix.

    Args:
        op: `xetile.update_tile_offset`.

    Raises:
        Wrong: another tile than a block, another type of the result, or offsets that are no indices.
    """
    _block_tile(op, op.operands[0], "xetile.init_tile makes another one of other offsets")
    if op.results[0].type != op.operands[0].type:
        raise Wrong(f"the result is {op.results[0].type}, and the tile {op.operands[0].type}: the type stays")
    for number, name in ((1, "offset_x"), (2, "offset_y")):
        if not isinstance(op.operands[number].type, ir.IndexType):
            raise Wrong(f"{name} is {op.operands[number].type}; expected an offset of type index")


def atomic_rmw(op: ir.Operation) -> None:
    """Updates each element of what a tile shows, atomically.

    Args:
        op: `xetile.atomic_rmw`.

    Raises:
        Wrong: a tile, a value or a kind of update that does not match; the message names what is accepted.
    """
    tile = _block_tile(op, op.operands[1], "an atomic update is of a block")
    _check_content(tile, op.operands[0].type, "value")
    _check_content(tile, op.results[0].type, "result")
    attribute = op.attributes.get("kind")
    supported_kinds = [
        kind
        for kind in ATOMIC_KINDS
        if kind in _EITHER or (kind in _OF_FLOATS) == isinstance(tile.element, ir.FloatType)
    ]
    kind = None
    if isinstance(attribute, ir.StringAttr):
        kind = attribute.value
    elif isinstance(attribute, ir.IntegerAttr) and attribute.value in range(len(ATOMIC_KINDS)):
        kind = ATOMIC_KINDS[attribute.value]
    if kind not in supported_kinds:
        raise Wrong(
            f"kind = {attribute} is not supported for elements of {tile.element}; accepted: "
            f"{', '.join(supported_kinds)}"
        )
    _check_map(op.operands[0], tile)
    if tile.wg is not None and tile.wg.shares(tile.shape):
        raise Wrong(
            f"several subgroups own an element of the tile by {tile.wg}, and each would update it: sg_layout * sg_data "
            "must be at most the tile in each dimension"
        )


def _check_mask(tile: TileType, mask: ir.Value) -> None:
    expected = f"vector<{'x'.join(map(str, tile.shape))}xi1>"
    if str(mask.type) != expected:
        raise Wrong(f"the mask is {mask.type}, and the tile needs a {expected}")


def load_gather(op: ir.Operation) -> None:
    """A vector of elements with offsets of their own.

    Args:
        op: `xetile.load_gather`.

    Raises:
        Wrong: a tile, a mask, a result or a padding that does not match; the message names what is accepted.
    """
    tile = _scatter_operand(op, op.operands[0], "xetile.load_tile")
    _check_mask(tile, op.operands[1])
    _check_content(tile, op.results[0].type, "result")
    _check_padding(op, tile.element)


def store_scatter(op: ir.Operation) -> None:
    """Writes elements with offsets of their own.

    Args:
        op: `xetile.store_scatter`.

    Raises:
        Wrong: a tile, a mask or a value that does not match, or a padding; the message names what is accepted.
    """
    tile = _scatter_operand(op, op.operands[2], "xetile.store_tile")
    _check_mask(tile, op.operands[1])
    _check_content(tile, op.operands[0].type, "value")
    if "padding" in op.attributes:
        raise Wrong("a store has no padding: masked elements are not written")
