"""Vectors that subgroups exchange through shared local memory: `convert_layout`, and `transpose` between subgroups."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import constant_value, index, zero_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.xetile.tiles import SHARED_SPACE, Owned, init_tile, load_tile, store_tile
from stepladder.mlir.bindings import arith, gpu, ir, memref, vector
from stepladder.mlir.xetile.tile_type import TileType


def _at(base: ir.Value, places: tuple[ir.Value, ir.Value], tile: TileType) -> ir.Value:
    return init_tile(tile, base, list(places))


def exchange(
    op: ir.Operation,
    start: ir.InsertionPoint,
    source: Owned,
    target: Owned,
    blocks: Sequence[ir.Value],
    limit: int,
) -> list[ir.Value]:
    """Returns the blocks that a subgroup owns by another map, after all subgroups have stored theirs.

    The vector is exchanged in parts, each a range of the columns of all blocks, that shared local memory has room for.

    Args:
        op: the converting op, for its location and refusals.
        start: where the memory is allocated.
        source, target: what is owned before and after; `target` of the same shape.
        blocks: of `source`.
        limit: bytes of shared local memory.

    Raises:
        Refusal: the vector does not fit, and no parts of it do.
    """
    type_ = ir.VectorType(blocks[0].type)
    element = type_.element_type
    rows, columns = source.shape
    total = rows * columns * _bytes(element)
    parts = -(-total // limit)
    (height, width), (own_height, own_width) = source.wg.sg_data, target.wg.sg_data
    while width % parts and parts < width:
        parts += 1
    if parts > 1 and (width % parts or own_width % width):
        raise Refusal(
            op,
            f"{op.name}: the vector has {total} bytes and shared local memory {limit}: it is exchanged in parts if the "
            f"sg_data[1] of its result is a multiple of the {width} of its source, and it is {own_width}",
        )
    share = width // parts
    with start, op.location:
        buffer = _allocated((rows, columns // parts), element)
    stored_type = TileType((height, share), element, space="shared")
    loaded_type = TileType((own_height, own_width // parts), element, space="shared")
    results = [
        _empty(ir.VectorType.get([own_height, own_width], element)) if parts > 1 else None for _ in target.places
    ]
    for part in range(parts):
        for block, (row, column) in zip(blocks, source.offsets()):
            piece = block if parts == 1 else _slice(block, [0, part * share], [height, share])
            store_tile(piece, _at(buffer, (row, _divided(column, parts)), stored_type))
        gpu.barrier()
        for number, (row, column) in enumerate(target.offsets()):
            piece = load_tile(_at(buffer, (row, _divided(column, parts)), loaded_type), loaded_type.vector)
            into = results[number]
            results[number] = piece if into is None else _spread(piece, into, width, share, part)
        gpu.barrier()
    return [result for result in results if result is not None]


def exchange_transposed(
    op: ir.Operation, start: ir.InsertionPoint, source: Owned, target: Owned, blocks: Sequence[ir.Value], limit: int
) -> list[ir.Value]:
    """Returns the blocks of the transposed vector: stored row-major, and loaded from the column-major view.

    Args as for `exchange`; `target` is of the transposed shape.

    Args:
        op: the transposing op, for its location and refusals.
        start: where the memory is allocated.
        source: what is owned before.
        target: what is owned after, of the transposed shape.
        blocks: of `source`.
        limit: bytes of shared local memory.

    Raises:
        Refusal: the vector does not fit into shared local memory.
    """
    element = ir.VectorType(blocks[0].type).element_type
    rows, columns = source.shape
    total = rows * columns * _bytes(element)
    if total > limit:
        raise Refusal(op, f"{op.name}: the vector has {total} bytes, and shared local memory has {limit}")
    with start, op.location:
        buffer = _allocated((rows, columns), element)
        permutation = ir.AffineMap.get_permutation([1, 0])
        layout = ir.Attribute.parse(f"strided<[1, {columns}]>")
        type_ = ir.MemRefType.get([columns, rows], element, layout=layout, memory_space=_space())
        view = ir.Operation.create(
            "memref.transpose",
            results=[type_],
            operands=[buffer],
            attributes={"permutation": ir.AffineMapAttr.get(permutation)},
        ).results[0]
    stored_type = TileType(source.wg.sg_data, element, space="shared")
    loaded_type = TileType(target.wg.sg_data, element, order=(0, 1), space="shared")
    for block, places in zip(blocks, source.offsets()):
        store_tile(block, _at(buffer, places, stored_type))
    gpu.barrier()
    result = [load_tile(_at(view, places, loaded_type), loaded_type.vector) for places in target.offsets()]
    gpu.barrier()
    return result


def _space() -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), SHARED_SPACE)


def _allocated(shape: Sequence[int], element: ir.Type) -> ir.Value:
    return memref.alloc(ir.MemRefType.get(list(shape), element, memory_space=_space()), [], [])


def _bytes(element: ir.Type) -> int:
    assert isinstance(element, (ir.IntegerType, ir.FloatType))
    return -(-element.width // 8)


def _divided(offset: ir.Value, parts: int) -> ir.Value:
    """Returns an offset in a buffer that holds one of so many parts of the columns of each block."""
    if parts == 1:
        return offset
    constant = constant_value(offset)
    return index(constant // parts) if constant is not None else arith.divui(offset, index(parts))


def _empty(type_: ir.VectorType) -> ir.Value:
    return arith.constant(type_, zero_of(type_))


def _slice(value: ir.Value, offsets: list[int], sizes: list[int]) -> ir.Value:
    type_ = ir.VectorType.get(sizes, ir.VectorType(value.type).element_type)
    return vector.extract_strided_slice(type_, value, offsets, sizes, [1] * len(sizes))


def _spread(piece: ir.Value, into: ir.Value, width: int, share: int, part: int) -> ir.Value:
    """Returns a vector with a part inserted: `share` columns of each `width`."""
    rows, columns = ir.VectorType(piece.type).shape
    for number in range(columns // share):
        columns_of = piece if columns == share else _slice(piece, [0, number * share], [rows, share])
        into = vector.insert_strided_slice(columns_of, into, [0, number * width + part * share], [1, 1])
    return into
