"""What the ops about TMA share: the types of descriptors and barriers, and descriptors made on the host."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib.building import index
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import arith, ir, memref, nvgpu

LOAD = "nvgpu.tma.async.load"
STORE = "nvgpu.tma.async.store"
WAIT = "nvgpu.mbarrier.try_wait.parity"
ARRIVE = "nvgpu.mbarrier.arrive"
EXPECT = "nvgpu.mbarrier.arrive.expect_tx"

WORKGROUP = "#gpu.address_space<workgroup>"
SWIZZLES = (128, 64, 32)  # bytes, the widest first
BOX_LIMIT = 256  # elements a dimension
PITCH_ALIGNMENT = 16  # bytes
# Bytes. No other parameter of a kernel has this alignment.
DESCRIPTOR_ALIGNMENT = 64
# A try_wait gives the thread back after so many ticks, and is repeated.
TICKS = 10000000


def barriers_type(count: int):
    """Returns the type of a group of mbarriers."""
    return ir.Type.parse(f"!nvgpu.mbarrier.group<memorySpace = {WORKGROUP}, num_barriers = {count}>")


def descriptor_type(rows: int, columns: int, element_type, swizzle: int):
    """Returns the type of a TMA descriptor of boxes of `rows` x `columns` elements, swizzled over `swizzle` bytes."""
    return ir.Type.parse(
        f"!nvgpu.tensormap.descriptor<tensor = memref<{rows}x{columns}x{element_type}, 3>, swizzle = "
        f"swizzle_{swizzle}b, l2promo = l2promo_128b, oob = zero, interleave = none>"
    )


def swizzle_of(type_) -> int:
    """Returns the bytes that the boxes of a descriptor's type are swizzled over."""
    text = str(type_)
    return next((swizzle for swizzle in SWIZZLES if f"swizzle_{swizzle}b" in text), 0)


def row_swizzle(row_bytes: int) -> int | None:
    """Returns the widest swizzle that rows of a tile divide into, or None."""
    return next((swizzle for swizzle in SWIZZLES if row_bytes % swizzle == 0), None)


def whole_boxes(row_bytes: int) -> int:
    """Returns the bytes of the boxes that rows of a tile are loaded in, if boxes may reach beyond the tile.

    TMA takes about as long for a row of 32 bytes as for one of 64, so that 32 are for tiles that have no more.
    """
    box = SWIZZLES[-1] if row_bytes <= SWIZZLES[-1] else SWIZZLES[-2]
    return -(-row_bytes // box) * box


def create_descriptor(buffer, type_, rows: int, columns: int):
    """Returns the descriptor of a buffer, made on the host: at the current insertion point, in front of the launch."""
    element_type = ir.MemRefType(buffer.type).element_type
    unranked = memref.cast(ir.UnrankedMemRefType.get(element_type, None), buffer)
    return nvgpu.tma_create_descriptor(type_, unranked, [index(rows), index(columns)])


def check_buffer(copy, buffer, matrix: str) -> None:
    """Checks that TMA can address a matrix in global memory; raises Refusal."""
    type_ = ir.MemRefType(buffer.type)
    pitch = type_.shape[1] * type_.element_type.width // 8
    if pitch % PITCH_ALIGNMENT:
        per_unit = PITCH_ALIGNMENT * 8 // type_.element_type.width
        raise Refusal(
            copy,
            f"rows of {matrix} are {type_.shape[1]} x {type_.element_type}, {pitch} bytes, and "
            f"TMA takes multiples of {PITCH_ALIGNMENT} bytes: make its rows a multiple of {per_unit} "
            "elements",
        )


@dataclass(frozen=True)
class Tile:
    """A view into a matrix in global memory: the matrix, and the row and column where the view begins."""

    buffer: object
    row: object
    column: object


def global_tile(copy, value) -> Tile:
    """Returns what a view of a function's argument shows, with its origin computed at the current insertion point.

    Raises:
        Refusal: it is no view of an argument, or one with strides.
    """
    origins: list = [0, 0]
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    while not isinstance(value.owner, ir.Block):
        view = value.owner.operation
        if view.name != "memref.subview" or any(
            stride != 1 for stride in ir.DenseI64ArrayAttr(view.attributes["static_strides"])
        ):
            raise Refusal(copy, "expected a view of an argument of the function")
        dynamic = list(view.operands)[1:]
        for axis, offset in enumerate(ir.DenseI64ArrayAttr(view.attributes["static_offsets"])):
            own = dynamic.pop(0) if offset == unknown else offset
            origins[axis] = _sum(origins[axis], own)
        value = view.operands[0]
    return Tile(value, *(index(origin) if isinstance(origin, int) else origin for origin in origins))


def _sum(left, right):
    """Returns the sum of two offsets, each a number or an index value."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    values = [term for term in (left, right) if not isinstance(term, int)]
    number = sum(term for term in (left, right) if isinstance(term, int))
    if len(values) == 1 and number == 0:
        return values[0]
    total = arith.addi(*values) if len(values) == 2 else values[0]
    return arith.addi(total, index(number)) if number else total
