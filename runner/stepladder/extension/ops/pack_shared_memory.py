"""`tc.pack_shared_memory`: all tiles of a block in one array of shared memory, static or dynamic."""

from stepladder.extension.lib import building, tma
from stepladder.extension.lib.dialect import (
    Refusal,
    Tc,
    is_workgroup_memory,
    transform_op,
)
from stepladder.mlir.bindings import ext, ir, memref, transform
from stepladder.mlir.traverse import walk

# Tiles start on a 128-byte boundary: the width of one shared-memory wavefront.
_TILE_ALIGNMENT = 128
# The boundary that TMA's 128-byte swizzle counts from: tiles that TMA moves start there, and a dynamic array.
_SWIZZLE_ALIGNMENT = 1024
_SYMBOL = "shared_memory"


class PackSharedMemory(Tc.Operation, name="pack_shared_memory"):
    """Replaces the workgroup `memref.alloc` ops of each `gpu.launch` by views of one shared array.

    Up to `static_limit` bytes the array is a static `memref.global`. Above, it is dynamic: an external global of no
    size, whose bytes the launch provides (`dynamic_shared_memory_size` of `gpu.launch` says how many). Upstream's
    `gpu.dynamic_shared_memory` cannot stand here: it lowers to an internal global, which LLVM places statically, over
    whatever else lies in shared memory.

    Operands: a handle to the module.
    Attributes: static_limit, in bytes.
    Refuses: an alloc whose shape is not static; more than one launch.
    """

    target: ext.Operand[transform.AnyOpType]
    static_limit: ir.IntegerAttr


def _bytes(type_) -> int:
    bits = type_.element_type.width
    count = 1
    for size in type_.shape:
        count *= size
    return count * bits // 8


def _layout(tiles, alignment: int) -> tuple[list[int], int]:
    offsets, end = [], 0
    for tile in tiles:
        type_ = ir.MemRefType(tile.results[0].type)
        if not type_.has_static_shape:
            raise Refusal(tile, "a shared tile of dynamic shape has no place in a packed array")
        start = -(-end // alignment) * alignment
        offsets.append(start)
        end = start + _bytes(type_)
    return offsets, end


@transform_op(PackSharedMemory)
def pack_shared_memory(payload, op, rewriter) -> None:
    """Packs the shared tiles of the one launch below `payload`; see the op."""
    launches = walk(payload, "gpu.launch")
    if len(launches) != 1:
        raise Refusal(payload, f"expected one gpu.launch, found {len(launches)}")
    launch = launches[0]
    tiles = [alloc for alloc in walk(launch, "memref.alloc") if is_workgroup_memory(alloc.results[0].type)]
    if not tiles:
        return
    alignment = _SWIZZLE_ALIGNMENT if walk(launch, tma.LOAD, tma.STORE) else _TILE_ALIGNMENT
    offsets, total = _layout(tiles, alignment)
    is_dynamic = total > op.static_limit.value
    space = ir.MemRefType(tiles[0].results[0].type).memory_space
    i8, i64 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
    declared = ir.MemRefType.get([0 if is_dynamic else total], i8, memory_space=space)
    whole = ir.MemRefType.get([total], i8, memory_space=space)

    symbol = building.free_symbol(payload, _SYMBOL)
    with ir.InsertionPoint.at_block_begin(payload.regions[0].blocks[0]), launch.location:
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "type": ir.TypeAttr.get(declared),
            "alignment": ir.IntegerAttr.get(i64, _SWIZZLE_ALIGNMENT if is_dynamic else alignment),
        }
        if not is_dynamic:
            attributes["sym_visibility"] = ir.StringAttr.get("private")
            attributes["initial_value"] = ir.UnitAttr.get()
        ir.Operation.create("memref.global", attributes=attributes)
    with ir.InsertionPoint(tiles[0]), launch.location:
        array = memref.get_global(declared, symbol)
        if is_dynamic:
            array = memref.reinterpret_cast(
                whole, array, [], [], [], static_offsets=[0], static_sizes=[total], static_strides=[1]
            )
    for tile, offset in zip(tiles, offsets):
        with ir.InsertionPoint(tile), tile.location:
            start = ir.Operation.create(
                "arith.constant",
                results=[ir.IndexType.get()],
                attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), offset)},
            ).results[0]
            view = memref.view(tile.results[0].type, array, start, [])
        rewriter.replace_op(tile, [view])
    if is_dynamic:
        with ir.InsertionPoint(launch), launch.location:
            amount = building.integer(total, 32)
        building.relaunch(launch, building.DYNAMIC_SIZE, [amount], rewriter)
