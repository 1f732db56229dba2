"""`tc.pack_shared_memory`: all tiles of a block in one array of shared memory, static or dynamic."""

from stepladder.bindings import ext, ir, memref, transform
from stepladder.extension.dialect import Refusal, Tc, is_workgroup_memory, transform_op
from stepladder.traverse import attributes_of, walk

# Tiles start on a 128-byte boundary: the width of one shared-memory wavefront and of the widest swizzle.
_TILE_ALIGNMENT = 128
# The array itself starts on the boundary that TMA's 128-byte swizzle counts from.
_ARRAY_ALIGNMENT = 1024
_SYMBOL = "shared_memory"
# Operand segments of gpu.launch: async dependencies; grid, block and cluster sizes, three each; this one.
_DYNAMIC_SIZE_SEGMENT = 10


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


def _layout(tiles) -> tuple[list[int], int]:
    offsets, end = [], 0
    for tile in tiles:
        type_ = ir.MemRefType(tile.results[0].type)
        if not type_.has_static_shape:
            raise Refusal(tile, "a shared tile of dynamic shape has no place in a packed array")
        start = -(-end // _TILE_ALIGNMENT) * _TILE_ALIGNMENT
        offsets.append(start)
        end = start + _bytes(type_)
    return offsets, end


def _with_dynamic_size(launch, size: int) -> None:
    """Replaces a launch by one that provides `size` bytes of dynamic shared memory."""
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(launch), launch.location:
        amount = ir.Operation.create("arith.constant", results=[i32],
                                     attributes={"value": ir.IntegerAttr.get(i32, size)}).results[0]
        operands = list(launch.operands)
        operands.insert(sum(segments[:_DYNAMIC_SIZE_SEGMENT]), amount)
        segments[_DYNAMIC_SIZE_SEGMENT] = 1
        attributes = attributes_of(launch)
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
        new = ir.Operation.create("gpu.launch", results=[result.type for result in launch.results],
                                  operands=operands, attributes=attributes, regions=1)
    launch.regions[0].blocks[0].append_to(new.regions[0])
    for old, fresh in zip(launch.results, new.results):
        old.replace_all_uses_with(fresh)


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
    offsets, total = _layout(tiles)
    is_dynamic = total > op.static_limit.value
    space = ir.MemRefType(tiles[0].results[0].type).memory_space
    i8, i64 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(64)
    declared = ir.MemRefType.get([0 if is_dynamic else total], i8, memory_space=space)
    whole = ir.MemRefType.get([total], i8, memory_space=space)

    with ir.InsertionPoint.at_block_begin(payload.regions[0].blocks[0]), launch.location:
        attributes = {"sym_name": ir.StringAttr.get(_SYMBOL), "type": ir.TypeAttr.get(declared),
                      "alignment": ir.IntegerAttr.get(i64, _ARRAY_ALIGNMENT if is_dynamic else _TILE_ALIGNMENT)}
        if not is_dynamic:
            attributes["sym_visibility"] = ir.StringAttr.get("private")
            attributes["initial_value"] = ir.UnitAttr.get()
        ir.Operation.create("memref.global", attributes=attributes)
    with ir.InsertionPoint(tiles[0]), launch.location:
        array = memref.get_global(declared, _SYMBOL)
        if is_dynamic:
            array = memref.reinterpret_cast(whole, array, [], [], [], static_offsets=[0], static_sizes=[total],
                                            static_strides=[1])
    for tile, offset in zip(tiles, offsets):
        with ir.InsertionPoint(tile), tile.location:
            start = ir.Operation.create("arith.constant", results=[ir.IndexType.get()], attributes={
                "value": ir.IntegerAttr.get(ir.IndexType.get(), offset)}).results[0]
            view = memref.view(tile.results[0].type, array, start, [])
        rewriter.replace_op(tile, [view])
    if is_dynamic:
        _with_dynamic_size(launch, total)
        rewriter.erase_op(launch)
