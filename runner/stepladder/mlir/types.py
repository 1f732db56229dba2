"""Types that the bindings have no accessors for: those of `gpu`, `nvgpu` and `nvvm`, and GPU address spaces.

The text of such a type is its only interface. This module writes and reads it; all others use the functions here
(those of `printed` for attributes). A text that has another form than MLIR prints raises `ValueError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from stepladder.mlir.bindings import ir

WORKGROUP, GLOBAL = "workgroup", "global"
# Marks a contraction or a product of fragments of f16 whose bits are elements of bf16.
OF_BF16 = "of_bf16"
# Marks a product of f32 whose operands have only tf32 values, whose products are exact.
FITS_TF32 = "fits_tf32"
# The number of the shared address space of a GPU, which some types of nvgpu are written with.
_SHARED_SPACE_NUMBER = 3

_ADDRESS_SPACE = re.compile(r"#gpu\.address_space<(\w+)>")
_DIMENSION = re.compile(r"#gpu<dim ([xyz])>")
_TENSOR_MAP_BOX = re.compile(r"!nvgpu\.tensormap\.descriptor<tensor = memref<(\d+(?:x\d+)*)x\w+\b.*>")
_TENSOR_MAP = re.compile(r"!nvgpu\.tensormap\.descriptor<.*\bswizzle = (?:none|swizzle_(\d+)b)\b.*>")
_ACCUMULATOR = re.compile(r"!nvgpu\.warpgroup\.accumulator<fragmented = (vector<.*>)>")
_MATRIX_DESCRIPTOR = re.compile(r"!nvgpu\.warpgroup\.descriptor<tensor = (memref<.*>)>")
_TILE = re.compile(r"!nvgpu\.warpgroup\.\w+<.*?(?:memref|vector)<(\d+)x(\d+)x(\w+)\W.*")
_MBARRIERS = re.compile(r"num_barriers = (\d+)")
_MMA_MATRIX = re.compile(r'!gpu\.mma_matrix<(\d+)x(\d+)x(\w+), "(\w+)">')


def bit_width(type_: ir.Type) -> int:
    """Returns the bits of an integer or floating-point type.

    Args:
        type_: an element type.

    Raises:
        ValueError: the type is neither.
    """
    match type_:
        case ir.IntegerType() | ir.FloatType():
            return type_.width
    raise ValueError(f"{type_} has no width")


def is_number(type_: ir.Type) -> bool:
    """Returns whether a type is that of a signless integer, an index or a floating-point number.

    Args:
        type_: of a value.
    """
    if isinstance(type_, ir.IntegerType):
        return type_.is_signless
    return isinstance(type_, (ir.IndexType, ir.FloatType))


def element_of(type_: ir.Type) -> ir.Type:
    """Returns the element type of a vector, a tensor or a buffer, and another type as it is.

    Args:
        type_: of a value.
    """
    return type_.element_type if isinstance(type_, ir.ShapedType) else type_


def is_fp8(type_: ir.Type) -> bool:
    """Returns whether a type is a floating-point type of 8 bits.

    Args:
        type_: an element type.
    """
    return isinstance(type_, ir.FloatType) and type_.width == 8


def byte_width(type_: ir.Type) -> int:
    """Returns the bytes of an integer or floating-point type that fills whole bytes.

    Args:
        type_: an element type.
    """
    return bit_width(type_) // 8


def name_of(type_: ir.Type) -> str:
    """Returns the name of an element type as MLIR writes it, such as `bf16` or `f8E4M3FN`.

    Args:
        type_: an element type.
    """
    return str(type_)


def row_major_strides(shape: Sequence[int]) -> list[int]:
    """Returns the strides, in elements, of a contiguous row-major buffer.

    Args:
        shape: extents, the outermost first.
    """
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def address_space(name: str) -> ir.Attribute:
    """Returns the GPU address space `name`: WORKGROUP or GLOBAL.

    Args:
        name: `WORKGROUP` or `GLOBAL`.
    """
    return ir.Attribute.parse(f"#gpu.address_space<{name}>")


def address_space_name(space: ir.Attribute | None) -> str | None:
    """Returns the name of a GPU address space, or None for another memory space or none.

    Args:
        space: the memory space of a memref; None for none.
    """
    match = _ADDRESS_SPACE.fullmatch(str(space)) if space is not None else None
    return match[1] if match else None


def is_workgroup_memory(type_: ir.Type) -> bool:
    """Returns whether a memref type is in the shared memory of a block.

    Args:
        type_: of a value.
    """
    return address_space_name(ir.MemRefType(type_).memory_space) == WORKGROUP


def dimension_of(op: ir.Operation) -> str:
    """Returns the dimension, "x", "y" or "z", of an op such as `gpu.block_id`.

    Args:
        op: with an attribute `dimension`.
    """
    return _match(_DIMENSION, op.attributes["dimension"])[1]


def mbarrier_group(count: int) -> ir.Type:
    """Returns the type of a group of `count` mbarriers in shared memory.

    Args:
        count: of mbarriers, 1 or more.
    """
    return ir.Type.parse(f"!nvgpu.mbarrier.group<memorySpace = {address_space(WORKGROUP)}, num_barriers = {count}>")


def tensor_map(rows: int, columns: int, element_type: ir.Type, swizzle: int, *, rank: int = 2) -> ir.Type:
    """Returns the type of a TMA descriptor with boxes of `rows` x `columns` elements, swizzled over `swizzle` bytes.

    A descriptor of a higher `rank` has boxes of one matrix: their outer dimensions are 1.

    Args:
        rows, columns: extents of a box, in elements.
        element_type: of the buffer.
        swizzle: 0, 32, 64 or 128.
        rank: dimensions of the buffer, 2 or more.
    """
    return tensor_map_of_box([*[1] * (rank - 2), rows, columns], element_type, swizzle)


def tensor_map_of_box(box: Sequence[int], element_type: ir.Type, swizzle: int) -> ir.Type:
    """Returns the type of a TMA descriptor with boxes of these extents, swizzled over `swizzle` bytes.

    Args:
        box: extents in elements, the outermost first.
        element_type: of the buffer.
        swizzle: 0, 32, 64 or 128.
    """
    extents = "x".join(map(str, box))
    return ir.Type.parse(
        f"!nvgpu.tensormap.descriptor<tensor = memref<{extents}x{element_type}, {_SHARED_SPACE_NUMBER}>, "
        f"swizzle = swizzle_{swizzle}b, l2promo = l2promo_128b, oob = zero, interleave = none>"
    )


def is_tensor_map(type_: ir.Type) -> bool:
    """Returns whether a type is that of a TMA descriptor.

    Args:
        type_: of a value.
    """
    return _TENSOR_MAP.fullmatch(str(type_)) is not None


def tensor_map_swizzle(type_: ir.Type | str) -> int:
    """Returns the bytes that the boxes of a TMA descriptor's type are swizzled over, or 0.

    Args:
        type_: of a TMA descriptor, or its text.
    """
    return int(_match(_TENSOR_MAP, type_)[1] or 0)


def tensor_map_fills_nan(type_: ir.Type | str) -> bool:
    """Returns whether the boxes of a TMA descriptor's type are NaN outside of the tensor, and not zero.

    Args:
        type_: of a TMA descriptor, or its text.
    """
    return "oob = nan" in str(type_)


def tensor_map_box(type_: ir.Type | str) -> tuple[int, ...]:
    """Returns the extents of the boxes of a TMA descriptor, in elements, the outermost first.

    Args:
        type_: of a TMA descriptor, or its text.
    """
    return tuple(map(int, _match(_TENSOR_MAP_BOX, type_)[1].split("x")))


def mbarrier_count(type_: ir.Type | str) -> int:
    """Returns the number of mbarriers of a group's type.

    Args:
        type_: of a group of mbarriers, or its text.
    """
    match = _MBARRIERS.search(str(type_))
    return int(match[1]) if match else 1


def mma_matrix(type_: ir.Type | str) -> tuple[int, int, str, str]:
    """Returns rows, columns, the element type's name and the operand ("AOp", "BOp", "COp") of a `!gpu.mma_matrix`.

    Args:
        type_: the matrix type, or its text.

    Raises:
        ValueError: another type.
    """
    match = _match(_MMA_MATRIX, type_)
    return int(match[1]), int(match[2]), match[3], match[4]


def warpgroup_tile(type_: ir.Type | str) -> tuple[int, int, str]:
    """Returns rows, columns and the element type's name of a warpgroup's accumulator or matrix descriptor.

    Args:
        type_: the type, or its text.
    """
    match = _match(_TILE, type_)
    return int(match[1]), int(match[2]), match[3]


def accumulator(rows: int, columns: int, element_type: ir.Type) -> ir.Type:
    """Returns the type of the accumulator of a warpgroup.

    Args:
        rows, columns: extents in elements.
        element_type: of the accumulator.
    """
    return ir.Type.parse(f"!nvgpu.warpgroup.accumulator<fragmented = vector<{rows}x{columns}x{element_type}>>")


def is_accumulator(type_: ir.Type) -> bool:
    """Returns whether a type is that of a warpgroup's accumulator.

    Args:
        type_: of a value.
    """
    return _ACCUMULATOR.fullmatch(str(type_)) is not None


def accumulator_vector(type_: ir.Type) -> ir.VectorType:
    """Returns the shape and element type of a warpgroup's accumulator, as the vector type rows x columns.

    Args:
        type_: of an accumulator.
    """
    return ir.VectorType(ir.Type.parse(_match(_ACCUMULATOR, type_)[1]))


def matrix_descriptor(rows: int, columns: int, element_type: ir.Type) -> ir.Type:
    """Returns the type of the matrix descriptor of a tile in shared memory.

    Args:
        rows, columns: extents of the tile, in elements.
        element_type: of the tile.
    """
    space = address_space(WORKGROUP)
    return ir.Type.parse(f"!nvgpu.warpgroup.descriptor<tensor = memref<{rows}x{columns}x{element_type}, {space}>>")


def matrix_descriptor_tile(type_: ir.Type) -> ir.MemRefType:
    """Returns the type of the tile, rows x columns, that a matrix descriptor describes.

    Args:
        type_: of a matrix descriptor.
    """
    return ir.MemRefType(ir.Type.parse(_match(_MATRIX_DESCRIPTOR, type_)[1]))


def _match(pattern: re.Pattern[str], printed: ir.Type | ir.Attribute | str) -> re.Match[str]:
    match = pattern.fullmatch(str(printed))
    if match is None:
        raise ValueError(f"'{printed}' is not of the form {pattern.pattern}")
    return match


def strides_of(type_: ir.MemRefType) -> list[int | None] | None:
    """Returns a memref's strides in elements, None for a dynamic one; None for a layout that has none.

    A layout that is a permutation of the dimensions, such as `affine_map<(d0, d1) -> (d1, d0)>`, has the strides of a
    contiguous buffer whose dimensions are in the permuted order.

    Args:
        type_: of a buffer.
    """
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    try:
        strides, _ = type_.get_strides_and_offset()
        return [None if stride == unknown else stride for stride in strides]
    except RuntimeError:
        return _permuted_strides(type_)


def _permuted_strides(type_: ir.MemRefType) -> list[int | None] | None:
    results = list(type_.affine_map.results)
    order = [expression.position for expression in results if isinstance(expression, ir.AffineDimExpr)]
    if len(order) != len(results) or sorted(order) != list(range(type_.rank)):
        return None
    strides: list[int | None] = [None] * type_.rank
    for place, axis in enumerate(order):
        inner = order[place + 1 :]
        if not any(type_.is_dynamic_dim(other) for other in inner):
            strides[axis] = math.prod(type_.get_dim_size(other) for other in inner)
    return strides


def offset_of(type_: ir.MemRefType) -> int | None:
    """Returns a memref's offset in elements, None for a dynamic one.

    Args:
        type_: of a buffer.
    """
    try:
        _, offset = type_.get_strides_and_offset()
    except RuntimeError:  # a permutation of the dimensions
        return 0
    return None if offset == ir.ShapedType.get_dynamic_stride_or_offset() else offset


def reassociation(groups: Sequence[Sequence[int]]) -> ir.ArrayAttr:
    """Returns the attribute of `collapse_shape` and `expand_shape` with the groups of dimensions.

    Args:
        groups: for each dimension of the smaller rank, those of the larger one.
    """
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, axis) for axis in group]) for group in groups])
