"""Vectors that a XeTile program moves between its subgroups itself, of which only the content matters here."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.xetile.shared_matrices import allocate_attributions
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op, users_of, walk
from stepladder.mlir.xetile.tile_type import read_tile, segments


def forward_tiles(launch: ir.Operation) -> None:
    """Replaces loads from shared local memory by the vector that the program stored there, and converted vectors by
    what they are converted from.

    A cooperative load stores a tile of global memory with one map, and loads it after a barrier with another: the
    vector is the same. Memory with other accesses stays as it is.

    Args:
        launch: with tiles of work-groups, whose maps are not needed any more.
    """
    for convert in walk(launch, "xetile.convert_layout"):
        convert.results[0].replace_all_uses_with(convert.operands[0])
        convert.erase()
    allocate_attributions(launch)
    for alloc in walk(launch, "memref.alloc"):
        inits = users_of(alloc.results[0])
        if all(init.name == "xetile.init_tile" for init in inits):
            _forward(alloc, inits)


def _forward(alloc: ir.Operation, inits: list[ir.Operation]) -> None:
    accesses = [user for init in inits for user in users_of(init.results[0])]
    stores = [access for access in accesses if access.name == "xetile.store_tile"]
    loads = [access for access in accesses if access.name == "xetile.load_tile"]
    if len(stores) != 1 or len(accesses) != len(loads) + 1 or not all(_reads(load, stores[0]) for load in loads):
        return
    for load in loads:
        load.results[0].replace_all_uses_with(stores[0].operands[0])
    for op in (*accesses, *inits, alloc):
        op.erase()


def _reads(load: ir.Operation, store: ir.Operation) -> bool:
    """Returns whether a load gives the vector of a store: at the same offsets, after a barrier in the same block."""
    if load.block != store.block or _place(load.operands[0]) != _place(store.operands[1]):
        return False
    between = operations_of(load.block)
    between = between[: between.index(load)]
    return store in between and any(op.name == "gpu.barrier" for op in between[between.index(store) :])


def _place(tile: ir.Value) -> tuple[object, ...]:
    """Returns shape, order and offsets of a tile that is made of a memref; None for other offsets."""
    type_, offsets = read_tile(tile.type), [constant_value(offset) for offset in segments(defining_op(tile))[1]]
    return (type_.shape, type_.order, *(object() if offset is None else offset for offset in offsets))
