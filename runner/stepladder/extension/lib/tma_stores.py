"""TMA reductions to global memory, and addresses in shared memory."""

from __future__ import annotations

from stepladder.extension.lib.arithmetic import apply, times
from stepladder.extension.lib.memory import strided_metadata
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, builtin, ir, memref, nvvm

REDUCE_ADD = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"


def is_reduce_add(op: ir.Operation) -> bool:
    """Tells whether an op is a TMA reduction that `reduce_add` creates."""
    return op.name == "nvvm.inline_ptx" and REDUCE_ADD in ir.StringAttr(op.attributes["ptxCode"]).value


def reduce_add(box: ir.Value, descriptor: ir.Value, column: ir.Value, row: ir.Value) -> None:
    """Creates the TMA reduction that adds a box in shared memory to a matrix in global memory.

    Args:
        box: the source.
        descriptor: of the matrix.
        column, row: of the matrix, at which the box begins.
    """
    # The intrinsic that nvvm's own op is translated to does not exist in LLVM 22.
    i32 = ir.IntegerType.get_signless(32)
    pointer = builtin.unrealized_conversion_cast([ir.Type.parse("!llvm.ptr")], [descriptor])
    nvvm.inline_ptx(
        [],
        [pointer, *(arith.index_cast(i32, value) for value in (column, row)), shared_address(box)],
        [],
        f"{REDUCE_ADD} [{{$r0}}, {{{{$r1}}, {{$r2}}}}], [{{$r3}}];",
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
