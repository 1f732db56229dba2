"""The `wg_map` of a vector: that of the operation that defines it, found through loops and elementwise ops."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer
from stepladder.mlir.xetile.tile_type import is_tile, map_attribute, read_tile
from stepladder.mlir.xetile.wg_map import WgMap, Wrong

_FOR_OPERANDS = 3  # of scf.for before its initial values


def map_of(value: ir.Value, visited: frozenset[tuple[int, int]] = frozenset()) -> WgMap | None:
    """Returns the map that a vector is distributed by; None where none is stated, as for a constant.

    Args:
        value: a vector.
        visited: the loop-carried values on the way to this one, which are not followed again.

    Raises:
        Wrong: an elementwise op of vectors with different maps.
    """
    op = producer(value)
    if op is None:
        return _of_argument(value, visited)
    if op.name.startswith("xetile."):
        if "wg_map" in op.attributes:
            return map_attribute(op)
        tiles = [operand.type for operand in op.operands if is_tile(operand.type)]
        return read_tile(tiles[0]).wg if tiles else None
    if op.name == "scf.for":
        number = ir.OpResult(value).result_number
        return _of_loop(op, number, visited)
    if op.name == "scf.if":
        return _of_branches(op, ir.OpResult(value).result_number, visited)
    if op.name.split(".")[0] in ("arith", "math"):
        return _of_elementwise(op, visited)
    return map_attribute(op)


def _of_argument(value: ir.Value, visited: frozenset) -> WgMap | None:
    argument = ir.BlockArgument(value)
    parent = argument.owner.owner
    if parent is None or parent.name != "scf.for" or argument.arg_number == 0:
        return None
    return _of_loop(parent.operation, argument.arg_number - 1, visited)


def _of_loop(loop: ir.Operation, number: int, visited: frozenset) -> WgMap | None:
    """Returns the map of a value that a loop carries: that of its initial value, or of what the loop yields."""
    key = hash(loop), number
    if key in visited:
        return None
    inner = visited | {key}
    first = map_of(loop.operands[_FOR_OPERANDS + number], inner)
    operations = list(loop.regions[0].blocks[0].operations)
    return first or map_of(operations[-1].operands[number], inner)


def _of_branches(op: ir.Operation, number: int, visited: frozenset) -> WgMap | None:
    for region in op.regions:
        if len(region.blocks):
            wg_map = map_of(list(region.blocks[0].operations)[-1].operands[number], visited)
            if wg_map is not None:
                return wg_map
    return None


def _of_elementwise(op: ir.Operation, visited: frozenset) -> WgMap | None:
    wg_map = None
    try:
        wg_map = map_attribute(op)
    except Wrong as wrong:
        raise Wrong(f"{op.name}: {wrong}", op) from None
    for operand in op.operands:
        if not isinstance(operand.type, ir.VectorType):
            continue
        other = map_of(operand, visited)
        if wg_map is not None and other is not None and other != wg_map:
            raise Wrong(
                f"{op.name}: vectors of an elementwise op have one map, and these have {wg_map} and {other}: "
                "xetile.convert_layout gives one of them the other's",
                op,
            )
        wg_map = wg_map or other
    return wg_map
