"""`tc.pack_shared_memory`: packs all shared tiles of a block in one array, static or dynamic."""

import math

from stepladder.extension.lib import launches, memory, tma
from stepladder.extension.lib.arithmetic import integer
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.warpgroup_ops import DESCRIPTORS
from stepladder.mlir import types
from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.traverse import walk

# Bytes. A wavefront of shared memory is 128 bytes wide.
_TILE_ALIGNMENT = 128
# Bytes. The pattern of the 128-byte swizzle repeats every 1024 bytes: tiles that TMA or `wgmma` accesses, and a dynamic
# array, are aligned to it.
_SWIZZLE_ALIGNMENT = 1024
_SYMBOL = "shared_memory"


class PackSharedMemory(Tc.Operation, name="pack_shared_memory"):
    """Replaces the workgroup `memref.alloc` ops of each `gpu.launch` by views of one shared array.

    Up to `static_limit` bytes the array is a static `memref.global`. Above that, it is dynamic: an external global of
    zero size, for which the launch allocates memory (`dynamic_shared_memory_size` of `gpu.launch`). Upstream's
    `gpu.dynamic_shared_memory` lowers to an internal global, which LLVM places statically, where it overlaps with other
    shared memory.

    Operands: a handle to the module.
    Attributes: static_limit, in bytes.
    Refuses: an alloc whose shape is not static; more than one launch.
    """

    target: Handle
    static_limit: ir.IntegerAttr


def _layout(tiles: list[ir.Operation], alignment: int) -> tuple[list[int], int]:
    """Returns the offset of each tile in the array, and the size of the array, in bytes."""
    offsets: list[int] = []
    end = 0
    for tile in tiles:
        type_ = ir.MemRefType(tile.results[0].type)
        if not type_.has_static_shape:
            raise Refusal(tile, "a shared tile of dynamic shape has no offset in a packed array")
        start = -(-end // alignment) * alignment
        offsets.append(start)
        end = start + math.prod(type_.shape) * types.bit_width(type_.element_type) // 8
    return offsets, end


@transform_op(PackSharedMemory)
def pack_shared_memory(payload: ir.Operation, op: PackSharedMemory, rewriter: Rewriter) -> None:
    """Packs the shared tiles of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    tiles = [alloc for alloc in walk(launch, "memref.alloc") if types.is_workgroup_memory(alloc.results[0].type)]
    if not tiles:
        return
    alignment = _SWIZZLE_ALIGNMENT if walk(launch, tma.LOAD, tma.STORE, *DESCRIPTORS) else _TILE_ALIGNMENT
    offsets, total = _layout(tiles, alignment)
    is_dynamic = total > op.static_limit.value
    space = ir.MemRefType(tiles[0].results[0].type).memory_space
    i8, i64 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
    declared_type = ir.MemRefType.get([0 if is_dynamic else total], i8, memory_space=space)
    array_type = ir.MemRefType.get([total], i8, memory_space=space)

    symbol = memory.unique_symbol(payload, _SYMBOL)
    with ir.InsertionPoint.at_block_begin(payload.regions[0].blocks[0]), launch.location:
        attributes: dict[str, ir.Attribute] = {
            "sym_name": ir.StringAttr.get(symbol),
            "type": ir.TypeAttr.get(declared_type),
            "alignment": ir.IntegerAttr.get(i64, _SWIZZLE_ALIGNMENT if is_dynamic else alignment),
        }
        if not is_dynamic:
            attributes["sym_visibility"] = ir.StringAttr.get("private")
            attributes["initial_value"] = ir.UnitAttr.get()
        ir.Operation.create("memref.global", attributes=attributes)
    with ir.InsertionPoint(tiles[0]), launch.location:
        array = memref.get_global(declared_type, symbol)
        if is_dynamic:
            array = memref.reinterpret_cast(
                array_type, array, [], [], [], static_offsets=[0], static_sizes=[total], static_strides=[1]
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
            size = integer(total, 32)
        launches.add_launch_operands(launch, launches.DYNAMIC_SIZE, [size], rewriter)
