"""TMA reductions to global memory, and addresses and matrices of 16-bit elements in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import apply, times
from stepladder.extension.lib.memory import strided_metadata
from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, builtin, ir, llvm, memref, nvvm, vector

_REDUCE, _ADD = "cp.reduce.async.bulk.tensor.", "d.global.shared::cta.add.tile.bulk_group"


def is_reduce_add(op: ir.Operation) -> bool:
    """Returns whether an op is a TMA reduction that `reduce_add` creates.

    Args:
        op: any op.
    """
    return op.name == "nvvm.inline_ptx" and _REDUCE in ir.StringAttr(op.attributes["ptxCode"]).value


def reduce_add(box: ir.Value, descriptor: ir.Value, coordinates: Sequence[ir.Value]) -> None:
    """Creates the TMA reduction that adds a box in shared memory to a matrix in global memory.

    Args:
        box: the source.
        descriptor: of the matrix.
        coordinates: at which the box begins, the innermost first: column and row, then the matrix of a batch.
    """
    # The intrinsic that nvvm's own op is translated to does not exist in LLVM 22.
    i32 = ir.IntegerType.get_signless(32)
    pointer = builtin.unrealized_conversion_cast([ir.Type.parse("!llvm.ptr")], [descriptor])
    rank = len(coordinates)
    place = ", ".join(f"{{$r{1 + number}}}" for number in range(rank))
    nvvm.inline_ptx(
        [],
        [pointer, *(arith.index_cast(i32, value) for value in coordinates), shared_address(box)],
        [],
        f"{_REDUCE}{rank}{_ADD} [{{$r0}}, {{{place}}}], [{{$r{1 + rank}}}];",
        memory_clobber=True,
    )


def shared_address(view: ir.Value, row: ir.Value | None = None, column: ir.Value | None = None) -> ir.Value:
    """Returns the address in shared memory of an element of a view, or of its first element, as an i32.

    Args:
        view: a memref of two dimensions in shared memory, with static strides.
        row, column: of the element, as indices; without both, the first element.
    """
    type_ = ir.MemRefType(view.type)
    strides, _ = type_.get_strides_and_offset()
    base, elements = strided_metadata(view)
    start = memref.extract_aligned_pointer_as_index(base)
    if row is not None and column is not None:
        elements = apply(lambda o, r, c: o + r * strides[0] + c, elements, row, column)
    bytes_ = types.byte_width(type_.element_type)
    return arith.index_cast(ir.IntegerType.get_signless(32), arith.addi(start, times(elements, bytes_)))


def store_matrices(
    box: ir.Value, row: ir.Value, column: ir.Value, pairs: list[ir.Value], *, transposed: bool = False
) -> None:
    """Stores two or four 8 x 8 matrices of 16-bit elements by `stmatrix`.

    Args:
        box: the buffer.
        row, column: of the matrix row whose address the lane provides.
        pairs: the lane's pair of each matrix.
        transposed: whether rows of the buffer are columns of the matrices.
    """
    i32 = ir.IntegerType.get_signless(32)
    registers = [extract(vector.bitcast(ir.VectorType.get([1], i32), pair), [0], i32) for pair in pairs]
    pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), shared_address(box, row, column))
    nvvm.stmatrix(
        pointer,
        registers,
        ir.Attribute.parse(f"#nvvm.mma_layout<{'col' if transposed else 'row'}>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
    )


def load_matrices(
    box: ir.Value, row: ir.Value, column: ir.Value, count: int, *, transposed: bool = False
) -> list[ir.Value]:
    """Returns the lane's pairs of two or four 8 x 8 matrices of 16-bit elements, by `ldmatrix`: see `store_matrices`.

    Args:
        box: the buffer.
        row, column: of the matrix row whose address the lane provides.
        count: of the matrices.
        transposed: whether rows of the buffer are columns of the matrices.
    """
    pair = ir.VectorType.get([2], ir.MemRefType(box.type).element_type)
    loaded = ir.Operation.create(
        "nvgpu.ldmatrix",
        results=[ir.VectorType.get([count, 2], pair.element_type)],
        operands=[box, row, column],
        attributes={
            "transpose": ir.BoolAttr.get(transposed),
            "numTiles": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count),
        },
    ).results[0]
    return [extract(loaded, [number], pair) for number in range(count)]
