"""Tiles of shared local memory as matrix descriptors of XeGPU (`xegpu.mem_desc`)."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.index_ranges import range_of
from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.traverse import producer
from stepladder.mlir.types import row_major_strides, strides_of
from stepladder.mlir.xetile.tile_type import TileType

_ATTRIBUTIONS = "workgroup_attributions"


def allocate_attributions(launch: ir.Operation) -> None:
    """Replaces the shared local memory that a launch has as arguments by allocations at its begin.

    Args:
        launch: a `gpu.launch`; nothing changes where it has none.
    """
    if _ATTRIBUTIONS not in launch.attributes:
        return
    count = ir.IntegerAttr(launch.attributes[_ATTRIBUTIONS]).value
    body = body_of(launch)
    first = len(body.arguments) - count
    with ir.InsertionPoint.at_block_begin(body), launch.location:
        for argument in list(body.arguments)[first:]:
            argument.replace_all_uses_with(memref.alloc(ir.MemRefType(argument.type), [], []))
    for number in reversed(range(first, first + count)):
        body.erase_argument(number)
    launch.attributes[_ATTRIBUTIONS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)


def describe(op: ir.Operation, base: ir.Value, tile: TileType) -> ir.Value:
    """Returns the descriptor of the matrix of a tile in shared local memory.

    Args:
        op: the `xetile.init_tile`, for refusals.
        base: a memref of two dimensions, without gaps between rows, or its column-major view.
        tile: type of the tile.

    Raises:
        Refusal: another base.
    """
    type_ = ir.MemRefType(base.type)
    rows, columns = type_.shape if type_.rank == 2 and type_.has_static_shape else (0, 0)
    element, stride = tile.element, ""
    source = producer(base)
    if tile.is_transposed and source is not None and source.name == "memref.transpose":
        base, stride = source.operands[0], f", #xegpu.mem_layout<stride = [1, {rows}]>"
    base_type = ir.MemRefType(base.type)
    is_whole = (
        rows
        and strides_of(base_type) == row_major_strides(list(base_type.shape))
        and bool(stride) == tile.is_transposed
    )
    base_op = producer(base)
    if not is_whole or base_op is None or base_op.name != "memref.alloc":
        raise Refusal(
            op,
            f"the base is {op.operands[0].type}: shared local memory of two static dimensions, as memref.alloc or the "
            "launch makes it, or a memref.transpose of it, has a descriptor",
        )
    descriptor_type = ir.Type.parse(f"!xegpu.mem_desc<{rows}x{columns}x{element}{stride}>")
    return ir.Operation.create("xegpu.create_mem_desc", results=[descriptor_type], operands=[base]).results[0]


def check_within(
    op: ir.Operation, tile: TileType, sizes: Sequence[int], places: Sequence[ir.Value], launch: ir.Operation
) -> None:
    """Refuses a tile that may not be within shared local memory: its accesses have no bounds.

    Args:
        op: the access, for refusals.
        tile: type of the tile.
        sizes: of the matrix.
        places: first row and column of the tile.
        launch: which the op is in.

    Raises:
        Refusal: an offset that is not known to be within the matrix.
    """
    for axis, (extent, size, place) in enumerate(zip(tile.shape, sizes, places)):
        bounds = range_of(place, launch)
        if bounds is None:
            raise Refusal(
                op,
                f"nothing says that dimension {axis} of the tile stays within shared local memory, which has no "
                "bounds: offsets of constants, numbers of subgroups, loops with constant bounds, and remainders do",
            )
        if bounds.low < 0 or bounds.high + extent > size:
            raise Refusal(
                op,
                f"dimension {axis} of the tile reaches elements {bounds.low} to {bounds.high + extent - 1} of shared "
                f"local memory with {size}, which has no bounds",
            )
