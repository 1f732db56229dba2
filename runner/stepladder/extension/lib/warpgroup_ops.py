"""Warpgroup MMA ops: nvgpu's where their verifiers accept the operands, else ops of `tc` with the same form.

nvgpu verifies more than `wgmma` requires: matrix descriptors with 128-byte swizzles only, no product of a column-major
A with a column-major B, no accumulators of i32, stores of f32 accumulators only. `tc` has four payload ops without
these restrictions, with the same operands, attributes and semantics. It has two for operands of f32 that are split into
two of tf32, one for an A in registers, and one that describes tiles that threads have written, without TMA.
`tc.lower_warpgroup_mma` lowers all.
"""

import typing
from collections.abc import Sequence

from stepladder.extension.lib import memory
from stepladder.extension.lib.dialect import Tc
from stepladder.mlir import types
from stepladder.mlir.bindings import ext, ir, nvgpu
from stepladder.mlir.traverse import defining_op


class MatrixDescriptor(Tc.Operation, name="warpgroup_generate_descriptor"):
    """`nvgpu.warpgroup.generate.descriptor` for tiles with any swizzle."""

    tensor: ext.Operand[typing.Any]
    tensor_map: ext.Operand[typing.Any]
    descriptor: ext.Result[typing.Any]


class InitAccumulator(Tc.Operation, name="warpgroup_init_accumulator"):
    """`nvgpu.warpgroup.mma.init.accumulator` for accumulators of any element type."""

    accumulator: ext.Result[typing.Any]


class WarpgroupMma(Tc.Operation, name="warpgroup_mma"):
    """`nvgpu.warpgroup.mma` for operands with any layout, and for integers."""

    descriptor_a: ext.Operand[typing.Any]
    descriptor_b: ext.Operand[typing.Any]
    matrix_c: ext.Operand[typing.Any]
    matrix_d: ext.Result[typing.Any]


class WarpgroupMma3xtf32(Tc.Operation, name="warpgroup_mma_3xtf32"):
    """An accumulator of f32 plus the product of two tiles, each of which is the sum of two tiles of tf32.

    The two products of a large and a small tile, and then that of the large ones, are summed from zero; an addition in
    f32 adds the sum to the accumulator. Nothing is in flight after the op.
    """

    descriptor_a: ext.Operand[typing.Any]
    descriptor_b: ext.Operand[typing.Any]
    matrix_c: ext.Operand[typing.Any]
    small_a: ext.Operand[typing.Any]
    small_b: ext.Operand[typing.Any]
    matrix_d: ext.Result[typing.Any]


class WarpgroupMma3xtf32Registers(Tc.Operation, name="warpgroup_mma_3xtf32_registers"):
    """`tc.warpgroup_mma_3xtf32` with both parts of A in registers.

    A part of A is a vector of 64 rows x steps of 8 of k x 4 elements of f32, as `wgmma` takes them.
    """

    large_a: ext.Operand[typing.Any]
    descriptor_b: ext.Operand[typing.Any]
    matrix_c: ext.Operand[typing.Any]
    small_a: ext.Operand[typing.Any]
    small_b: ext.Operand[typing.Any]
    matrix_d: ext.Result[typing.Any]


class WarpgroupMmaRegisters(Tc.Operation, name="warpgroup_mma_registers"):
    """An accumulator plus the product of 16 columns of A, in registers, and as many rows of B's tile.

    A is a vector of 64 rows x registers x 2 elements of 16 bits, as `wgmma` takes them. The attribute `step` tells
    which 16 rows of B are read, and `transposeB` whether B is read transposed. The product is a group of its own, which
    may be in flight after the op.
    """

    fragment_a: ext.Operand[typing.Any]
    descriptor_b: ext.Operand[typing.Any]
    matrix_c: ext.Operand[typing.Any]
    matrix_d: ext.Result[typing.Any]


class DescribeSharedTile(Tc.Operation, name="warpgroup_describe_tile"):
    """`nvgpu.warpgroup.generate.descriptor` for a tile that no TMA descriptor is of.

    The attribute `swizzle` is the bytes of a row of its boxes, which are swizzled as TMA would.
    """

    tensor: ext.Operand[typing.Any]
    descriptor: ext.Result[typing.Any]


class WarpgroupMmaStore(Tc.Operation, name="warpgroup_mma_store"):
    """`nvgpu.warpgroup.mma.store` for accumulators of any element type, to a destination of each warpgroup's own.

    MLIR's lowering of nvgpu's op adds the rows of all warpgroups before the thread's to the destination. This op stores
    from the first row of the destination.
    """

    matrix_d: ext.Operand[typing.Any]
    destination: ext.Operand[typing.Any]


# Rows of C that one `wgmma` instruction computes.
MMA_ROWS = 64

INIT_ACCUMULATORS = ("nvgpu.warpgroup.mma.init.accumulator", InitAccumulator.OPERATION_NAME)
DESCRIPTORS = (
    "nvgpu.warpgroup.generate.descriptor",
    MatrixDescriptor.OPERATION_NAME,
    DescribeSharedTile.OPERATION_NAME,
)
_SWIZZLE, WAIT_GROUP = "swizzle", "waitGroup"
_CAST = "builtin.unrealized_conversion_cast"
# In all of them operand 2 is the accumulator.
MMAS = (
    "nvgpu.warpgroup.mma",
    WarpgroupMma.OPERATION_NAME,
    WarpgroupMma3xtf32.OPERATION_NAME,
    WarpgroupMma3xtf32Registers.OPERATION_NAME,
    WarpgroupMmaRegisters.OPERATION_NAME,
)
STORES = ("nvgpu.warpgroup.mma.store", WarpgroupMmaStore.OPERATION_NAME)


def generate_descriptor(type_: ir.Type, tile: ir.Value, tensor_map: ir.Value, *, is_part: bool = False) -> ir.Value:
    """Returns the matrix descriptor of a tile in shared memory.

    Args:
        type_: of the descriptor.
        tile: boxes x rows x columns.
        tensor_map: the TMA descriptor that the tile is loaded by.
        is_part: whether the tile is a part of the box, which the verifier of nvgpu's op does not accept.
    """
    if not is_part and types.tensor_map_swizzle(tensor_map.type) == 128:
        return nvgpu.warpgroup_generate_descriptor(type_, tile, tensor_map)
    return ir.Operation.create(MatrixDescriptor.OPERATION_NAME, results=[type_], operands=[tile, tensor_map]).results[0]


def describe_tile(type_: ir.Type, tile: ir.Value, swizzle: int) -> ir.Value:
    """Returns the matrix descriptor of a tile in shared memory that threads have written.

    Args:
        type_: of the descriptor.
        tile: boxes x rows x columns.
        swizzle: bytes of a row of a box.
    """
    attributes = {_SWIZZLE: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), swizzle)}
    return ir.Operation.create(
        DescribeSharedTile.OPERATION_NAME, results=[type_], operands=[tile], attributes=attributes
    ).results[0]


def swizzle_of(generate: ir.Operation) -> int:
    """Returns the bytes that rows of a tile are swizzled over.

    Args:
        generate: the op that makes its matrix descriptor.
    """
    if _SWIZZLE in generate.attributes:
        return ir.IntegerAttr(generate.attributes[_SWIZZLE]).value
    return types.tensor_map_swizzle(generate.operands[1].type)


def as_vector(accumulator: ir.Value) -> ir.Value:
    """Returns a thread's elements of an accumulator of f32: 64 rows x matrices of 8 columns x 2 rows x 2 columns.

    Args:
        accumulator: of the warpgroup.
    """
    return ir.Operation.create(_CAST, results=[_fragment_of(accumulator.type)], operands=[accumulator]).results[0]


def as_accumulator(elements: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """Returns the accumulator of which a thread has elements of f32.

    Args:
        elements: in the order of `as_vector`.
        type_: of the accumulator.
    """
    vector = ir.Operation.create("vector.from_elements", results=[_fragment_of(type_)], operands=list(elements))
    return of_vector(vector.results[0], type_)


def of_vector(vector: ir.Value, type_: ir.Type) -> ir.Value:
    """Returns the accumulator of which a thread has the elements of a vector; the reverse of `as_vector`.

    Args:
        vector: 64 rows x matrices of 8 columns x 2 rows x 2 columns.
        type_: of the accumulator.
    """
    return ir.Operation.create(_CAST, results=[type_], operands=[vector]).results[0]


def _fragment_of(accumulator: ir.Type) -> ir.Type:
    type_ = types.accumulator_vector(accumulator)
    rows, columns = type_.shape
    return ir.VectorType.get([rows // MMA_ROWS, columns // 8, 2, 2], type_.element_type)


def init_accumulator(type_: ir.Type) -> ir.Value:
    """Returns an accumulator of zeros.

    Args:
        type_: of the accumulator of a warpgroup.
    """
    if not _is_integer(type_):
        return nvgpu.warpgroup_mma_init_accumulator(type_)
    return ir.Operation.create(InitAccumulator.OPERATION_NAME, results=[type_]).results[0]


def _is_integer(accumulator: ir.Type) -> bool:
    return isinstance(types.accumulator_vector(accumulator).element_type, ir.IntegerType)


def multiply_accumulate(
    a: ir.Value, b: ir.Value, accumulator: ir.Value, *, transpose_a: bool, transpose_b: bool, in_flight: int
) -> ir.Value:
    """Returns an accumulator plus the product of two tiles.

    Args:
        a, b: matrix descriptors of the tiles.
        accumulator: of the warpgroup.
        transpose_a, transpose_b: whether a tile is read transposed.
        in_flight: how many MMAs, the latest ones, may still run after this op.
    """
    if not _is_integer(accumulator.type) and (not transpose_a or transpose_b):
        return nvgpu.warpgroup_mma(
            accumulator.type,
            a,
            b,
            accumulator,
            wait_group=in_flight,
            transpose_a=transpose_a or None,
            transpose_b=transpose_b or None,
        )
    transposes = {"transposeA": transpose_a, "transposeB": transpose_b}
    attributes: dict[str, ir.Attribute] = {name: ir.UnitAttr.get() for name, is_set in transposes.items() if is_set}
    attributes[WAIT_GROUP] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), in_flight)
    return ir.Operation.create(
        WarpgroupMma.OPERATION_NAME, results=[accumulator.type], operands=[a, b, accumulator], attributes=attributes
    ).results[0]


def add_columns(mma: ir.Operation, first: int, accumulator: ir.Value) -> ir.Value:
    """Returns an accumulator plus the product of A's tile and columns of B's tile, at the current insertion point.

    Args:
        mma: the op whose operands are multiplied; B's tile is K-major.
        first: of the columns, as many as the accumulator has.
        accumulator: of the warpgroup.
    """
    b = mma.operands[1]
    _, columns = types.accumulator_vector(accumulator.type).shape
    if accumulator.type != mma.operands[2].type:
        generate, tile = defining_op(b), types.matrix_descriptor_tile(b.type)
        boxes, _, width = ir.MemRefType(generate.operands[0].type).shape
        view = memory.subview(generate.operands[0], [0, first, 0], [boxes, columns, width])
        type_ = types.matrix_descriptor(tile.shape[0], columns, tile.element_type)
        b = generate_descriptor(type_, view, generate.operands[1], is_part=True)
    return multiply_accumulate(mma.operands[0], b, accumulator, transpose_a=False, transpose_b=False, in_flight=0)


def in_flight(mma: ir.Operation) -> int:
    """Returns how many MMAs may still run after one; 1 is the attribute's default.

    Args:
        mma: the op.
    """
    return ir.IntegerAttr(mma.attributes[WAIT_GROUP]).value if WAIT_GROUP in mma.attributes else 1


def multiply_split(large: Sequence[ir.Value], small: Sequence[ir.Value], accumulator: ir.Value) -> ir.Value:
    """Returns an accumulator plus the product of two tiles of f32, each the sum of two of tf32.

    Args:
        large: matrix descriptors of A's and B's large parts; A may be a vector of registers.
        small: of their small parts.
        accumulator: of the warpgroup.
    """
    in_registers = isinstance(large[0].type, ir.VectorType)
    op = WarpgroupMma3xtf32Registers if in_registers else WarpgroupMma3xtf32
    return ir.Operation.create(
        op.OPERATION_NAME, results=[accumulator.type], operands=[*large, accumulator, *small]
    ).results[0]


def multiply_registers(
    fragment: ir.Value, b: ir.Value, accumulator: ir.Value, *, step: int, transpose_b: bool
) -> ir.Value:
    """Returns an accumulator plus the product of A in registers and rows of a tile.

    Args:
        fragment: of A.
        b: matrix descriptor of B's tile.
        accumulator: of the warpgroup.
        step: which 16 rows of the tile.
        transpose_b: whether the tile is read transposed.
    """
    attributes: dict[str, ir.Attribute] = {"step": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), step)}
    if transpose_b:
        attributes["transposeB"] = ir.UnitAttr.get()
    return ir.Operation.create(
        WarpgroupMmaRegisters.OPERATION_NAME,
        results=[accumulator.type],
        operands=[fragment, b, accumulator],
        attributes=attributes,
    ).results[0]


def store_accumulator(accumulator: ir.Value, destination: ir.Value, *, one_warpgroup: bool) -> None:
    """Stores an accumulator to a tile; with several warpgroups, each warpgroup has a destination of its own.

    Args:
        accumulator: of the warpgroup.
        destination: a buffer of the accumulator's shape.
        one_warpgroup: whether the block has no other warpgroup that multiplies.
    """
    if one_warpgroup and types.name_of(ir.MemRefType(destination.type).element_type) == "f32":
        nvgpu.warpgroup_mma_store(accumulator, destination)
    else:
        ir.Operation.create(WarpgroupMmaStore.OPERATION_NAME, operands=[accumulator, destination])
