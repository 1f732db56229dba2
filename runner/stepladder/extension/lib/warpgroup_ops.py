"""The ops on accumulators of warpgroups: nvgpu's where they accept what is asked for, else ours of the same form.

nvgpu verifies more than `wgmma` demands: matrix descriptors of 128-byte swizzles only, no product of a column-major A
with a column-major B, stores of f32 sums only. `tc` has three payload ops without these limits, with the same operands,
attributes and meaning. Both are lowered by `tc.lower_warpgroup_mma`.
"""

import typing

from stepladder.extension.lib import tma
from stepladder.extension.lib.dialect import Tc
from stepladder.mlir.bindings import ext, ir, nvgpu


class MatrixDescriptor(Tc.Operation, name="warpgroup_generate_descriptor"):
    """As `nvgpu.warpgroup.generate.descriptor`, of tiles with any swizzle."""

    tensor: ext.Operand[typing.Any]
    tensor_map: ext.Operand[typing.Any]
    descriptor: ext.Result[typing.Any]


class Product(Tc.Operation, name="warpgroup_mma"):
    """As `nvgpu.warpgroup.mma`, of operands of any layout."""

    descriptor_a: ext.Operand[typing.Any]
    descriptor_b: ext.Operand[typing.Any]
    matrix_c: ext.Operand[typing.Any]
    matrix_d: ext.Result[typing.Any]


class Store(Tc.Operation, name="warpgroup_mma_store"):
    """As `nvgpu.warpgroup.mma.store`, of sums of any type, to a destination of each warpgroup's own.

    What MLIR makes of nvgpu's op adds the 64 rows of each warpgroup before the thread's to the destination; here a
    warpgroup stores from the destination's first row on.
    """

    matrix_d: ext.Operand[typing.Any]
    destination: ext.Operand[typing.Any]


# Rows of C that one `wgmma` instruction computes.
ROWS = 64

ZERO = "nvgpu.warpgroup.mma.init.accumulator"
DESCRIPTORS = ("nvgpu.warpgroup.generate.descriptor", MatrixDescriptor.OPERATION_NAME)
PRODUCTS = ("nvgpu.warpgroup.mma", Product.OPERATION_NAME)
STORES = ("nvgpu.warpgroup.mma.store", Store.OPERATION_NAME)


def generate_descriptor(type_, tile, tensor_map):
    """Returns the matrix descriptor of a tile in shared memory."""
    if tma.swizzle_of(tensor_map.type) == 128:
        return nvgpu.warpgroup_generate_descriptor(type_, tile, tensor_map)
    return ir.Operation.create(MatrixDescriptor.OPERATION_NAME, results=[type_], operands=[tile, tensor_map]).results[0]


def multiply(a, b, sums, *, transpose_a: bool, transpose_b: bool, in_flight: int):
    """Returns sums plus the product of two tiles, of which so many may still run behind this one."""
    if not transpose_a or transpose_b:
        return nvgpu.warpgroup_mma(
            sums.type,
            a,
            b,
            sums,
            wait_group=in_flight,
            transpose_a=transpose_a or None,
            transpose_b=transpose_b or None,
        )
    i64 = ir.IntegerType.get_signless(64)
    return ir.Operation.create(
        Product.OPERATION_NAME,
        results=[sums.type],
        operands=[a, b, sums],
        attributes={"transposeA": ir.UnitAttr.get(), "waitGroup": ir.IntegerAttr.get(i64, in_flight)},
    ).results[0]


def store(sums, destination, *, one_warpgroup: bool) -> None:
    """Stores an accumulator to a tile, which each warpgroup has its own of unless there is but one."""
    if one_warpgroup and str(ir.MemRefType(destination.type).element_type) == "f32":
        nvgpu.warpgroup_mma_store(sums, destination)
    else:
        ir.Operation.create(Store.OPERATION_NAME, operands=[sums, destination])
