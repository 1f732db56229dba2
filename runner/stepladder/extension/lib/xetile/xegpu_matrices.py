"""The matrix that contains a tile of global memory, as 2D block operations and lanes access it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value, index
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.xetile.xegpu_layouts import COLUMNS, ROWS
from stepladder.mlir.bindings import arith, ir, memref
from stepladder.mlir.traverse import attributes_of, producer
from stepladder.mlir.types import byte_width, strides_of
from stepladder.mlir.xetile.tile_type import TileType

_PITCH, _WIDTH, _MIN_PITCH, _ALIGNMENT = 16, 4, 64, 64  # bytes
_ELEMENTS = (1, 2, 4)  # bytes
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_OFFSET = ir.ShapedType.get_dynamic_stride_or_offset()
# Ops that compute an address of a buffer, or another view of it.
_OF_BUFFERS = (
    "memref.extract_aligned_pointer_as_index",
    "memref.subview",
    "memref.cast",
    "memref.transpose",
    "arith.index_cast",
    "arith.addi",
    "arith.muli",
    "arith.constant",
)


@dataclass(frozen=True)
class Matrix:
    """A matrix in global memory.

    Attributes:
        source: a static memref of two dimensions, or an address.
        sizes: rows and columns, as the program indexes them.
        strides: in elements.
    """

    source: ir.Value
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_address(self) -> bool:
        """Whether the source is an address."""
        return not isinstance(self.source.type, ir.MemRefType)


def matrix_of(
    op: ir.Operation,
    base: ir.Value,
    outer: Sequence[ir.Value],
    sizes: Sequence[ir.Value],
    strides: Sequence[ir.Value],
) -> Matrix:
    """Returns the matrix of a tile.

    Args:
        op: the `xetile.init_tile`, for refusals.
        base: its base, in the new code.
        outer: offsets of the dimensions before the last two.
        sizes: the shape, where the base does not have it.
        strides: where the base does not have them.

    Raises:
        Refusal: a shape or strides that are not constants, or matrices of a base that are not aligned.
    """
    numbers = [_constants(op, part, base.type) for part in (sizes, strides)]
    if not isinstance(base.type, ir.MemRefType):
        return Matrix(_in_launch(base), tuple(numbers[0]), tuple(numbers[1]))
    if not base.type.has_static_shape or ir.MemRefType(base.type).get_strides_and_offset()[1]:
        base = _in_launch(base)
    if not base.type.has_static_shape:
        base = _made_static(op, base, *numbers)
    type_ = ir.MemRefType(base.type)
    strides_of_base = strides_of(type_)
    if strides_of_base is None or None in strides_of_base:
        raise Refusal(op, f"the strides of {type_} are not static")
    steps = [step or 0 for step in strides_of_base]
    if outer:
        base = _inner_matrix(op, base, outer, steps)
    return Matrix(base, tuple(type_.shape)[-2:], tuple(steps[-2:]))


def _constants(op: ir.Operation, values: Sequence[ir.Value], type_: ir.Type) -> list[int]:
    """Returns the shape or the strides of a base."""
    constants = [number for value in values if (number := constant_value(value)) is not None]
    if len(constants) != len(values):
        description = f"is {type_}" if isinstance(type_, ir.MemRefType) else "is an address"
        raise Refusal(op, f"the base {description}: its shape and its strides must be constants")
    return constants


def _in_launch(value: ir.Value) -> ir.Value:
    """Returns a base that the launch computes from a buffer again, so that the kernel takes the buffer as argument."""
    op = producer(value)
    if op is None or op.name not in _OF_BUFFERS:
        return value
    operands = [_in_launch(operand) for operand in op.operands]
    return ir.Operation.create(op.name, results=[value.type], operands=operands, attributes=attributes_of(op)).results[
        0
    ]


def _made_static(op: ir.Operation, base: ir.Value, sizes: list[int], strides: list[int]) -> ir.Value:
    """Returns a memref of dynamic shape with the shape and the strides that the tile states."""
    type_ = ir.MemRefType(base.type)
    _, offset = type_.get_strides_and_offset()
    if offset:
        raise Refusal(op, f"the base is {type_}: a memref of dynamic shape begins at the first element of its buffer")
    layout = ir.StridedLayoutAttr.get(0, strides)
    result = ir.MemRefType.get(sizes, type_.element_type, layout=layout, memory_space=type_.memory_space)
    return ir.Operation.create(
        "memref.reinterpret_cast",
        results=[result],
        operands=[base],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([0]),
            "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
            "static_strides": ir.DenseI64ArrayAttr.get(strides),
        },
    ).results[0]


def _inner_matrix(op: ir.Operation, base: ir.Value, outer: Sequence[ir.Value], strides: list[int]) -> ir.Value:
    """Returns one of the matrices that a base of more than two dimensions has."""
    type_ = ir.MemRefType(base.type)
    for axis, step in enumerate(strides[:-2]):
        if step * byte_width(type_.element_type) % _ALIGNMENT:
            raise Refusal(
                op,
                f"the matrices of {type_} are {step * byte_width(type_.element_type)} bytes apart along dimension "
                f"{axis}, and 2D block operations need a multiple of {_ALIGNMENT}",
            )
    rank = len(outer)
    layout = ir.StridedLayoutAttr.get(_DYNAMIC_OFFSET, strides[-2:])
    result = ir.MemRefType.get(list(type_.shape)[-2:], type_.element_type, layout, type_.memory_space)
    return ir.Operation.create(
        "memref.subview",
        results=[result],
        operands=[base, *outer],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, rank, 0, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] * rank + [0, 0]),
            "static_sizes": ir.DenseI64ArrayAttr.get([1] * rank + list(type_.shape)[-2:]),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(strides)),
        },
    ).results[0]


def described(op: ir.Operation, tile: TileType, matrix: Matrix) -> ir.Value:
    """Returns the descriptor of a block of a matrix; that of a column-major one is of its row-major transpose.

    Args:
        op: the `xetile.init_tile`, for refusals.
        tile: its type.
        matrix: of which the tile is a block.

    Raises:
        Refusal: rows that no 2D block operation can access.
    """
    turn = -1 if tile.is_transposed else 1
    sizes, strides, shape = matrix.sizes[::turn], matrix.strides[::turn], tile.shape[::turn]
    if (shape[1] % COLUMNS and shape[1] != ROWS) or byte_width(tile.element) not in _ELEMENTS:
        raise Refusal(
            op,
            f"a tile of {shape[1]} contiguous elements of {tile.element} has no 2D block operations; accepted: a "
            f"multiple of {COLUMNS}, or {ROWS} that are transposed, of 8, 16 or 32 bits",
        )
    label = "the matrix" if matrix.is_address else str(matrix.source.type)
    _check_bytes(op, label, *(number * byte_width(tile.element) for number in (strides[0], sizes[1])))
    type_ = ir.Type.parse(f"!xegpu.tensor_desc<{'x'.join(map(str, shape))}x{tile.element}>")
    attributes: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
    source = matrix.source if matrix.is_address else _address_of_inner(op, matrix.source, tile)
    if not isinstance(source.type, ir.MemRefType):
        for name, part in (("const_shape", sizes), ("const_strides", strides)):
            attributes[name] = ir.DenseI64ArrayAttr.get(list(part))
    elif tile.is_transposed:
        source = _row_major(source, matrix)
    return ir.Operation.create(
        "xegpu.create_nd_tdesc", results=[type_], operands=[source], attributes=attributes
    ).results[0]


def _address_of_inner(op: ir.Operation, source: ir.Value, tile: TileType) -> ir.Value:
    """Returns the address of a matrix that begins elsewhere than its buffer; another matrix as it is.

    MLIR's pass that loads 16-bit elements as words, to transpose them, takes the address of the buffer for it.
    """
    _, offset = ir.MemRefType(source.type).get_strides_and_offset()
    size = byte_width(tile.element)
    if offset == 0:
        return source
    if offset != _DYNAMIC_OFFSET and offset * size % _ALIGNMENT:
        raise Refusal(
            op,
            f"{source.type} begins {offset * size} bytes after the start of its buffer, and 2D block operations need "
            f"a multiple of {_ALIGNMENT}",
        )
    elements = memref.extract_strided_metadata(source)[1]
    start = memref.extract_aligned_pointer_as_index(source)
    at = arith.addi(start, arith.muli(elements, index(size)))
    return arith.index_cast(ir.IntegerType.get_signless(64), at)


def _row_major(view: ir.Value, matrix: Matrix) -> ir.Value:
    """Returns the row-major matrix of a column-major view."""
    source = producer(view)
    if source is not None and source.name == "memref.transpose":
        return source.operands[0]
    type_ = ir.MemRefType(view.type)
    _, offset = type_.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, list(matrix.strides[::-1]))
    transposed_type = ir.MemRefType.get(list(matrix.sizes[::-1]), type_.element_type, layout, type_.memory_space)
    permutation = ir.AffineMapAttr.get(ir.AffineMap.get_permutation([1, 0]))
    return ir.Operation.create(
        "memref.transpose", results=[transposed_type], operands=[view], attributes={"permutation": permutation}
    ).results[0]


def _check_bytes(op: ir.Operation, label: str, pitch: int, width: int) -> None:
    """Refuses rows that no 2D block operation can access: their distance and their length, in bytes."""
    if pitch % _PITCH or pitch < _MIN_PITCH:
        raise Refusal(
            op,
            f"the rows of {label} are {pitch} bytes apart, and 2D block operations need at least {_MIN_PITCH}, a "
            f"multiple of {_PITCH}",
        )
    if width % _WIDTH or width < _MIN_PITCH:
        raise Refusal(
            op,
            f"the rows of {label} have {width} bytes, and 2D block operations need at least {_MIN_PITCH}, a multiple "
            f"of {_WIDTH}",
        )
