"""TMA stores that add to global memory, and addresses in shared memory."""

from __future__ import annotations

from stepladder.extension.lib import building
from stepladder.mlir.bindings import arith, builtin, ir, memref, nvvm

ADD = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"


def add_by_tma(box, descriptor, column, row) -> None:
    """Writes the store of a box that adds to what is there."""
    # The op for it reads as an intrinsic that LLVM 22 does not have.
    i32 = ir.IntegerType.get_signless(32)
    pointer = builtin.unrealized_conversion_cast([ir.Type.parse("!llvm.ptr")], [descriptor])
    nvvm.inline_ptx(
        [],
        [pointer, *(arith.index_cast(i32, value) for value in (column, row)), shared_address(box)],
        [],
        f"{ADD} [{{$r0}}, {{{{$r1}}, {{$r2}}}}], [{{$r3}}];",
        memory_clobber=True,
    )


def shared_address(view, row=None, column=None):
    """Returns the address in shared memory of an element of a view, or of its first, as an i32."""
    type_ = ir.MemRefType(view.type)
    strides, _ = type_.get_strides_and_offset()
    bytes_ = type_.element_type.width // 8
    metadata = ir.Operation.create(
        "memref.extract_strided_metadata",
        results=[
            ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space),
            *[ir.IndexType.get()] * (1 + 2 * type_.rank),
        ],
        operands=[view],
    )
    start = memref.extract_aligned_pointer_as_index(metadata.results[0])
    elements = metadata.results[1]
    if row is not None:
        elements = building.apply(lambda o, r, c: o + r * strides[0] + c, elements, row, column)
    return arith.index_cast(ir.IntegerType.get_signless(32), arith.addi(start, building.times(elements, bytes_)))
