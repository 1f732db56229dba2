"""`tc.repack_operands`: reads operands whose rows TMA cannot address from padded copies in workspaces."""

from functools import partial

from stepladder.extension.lib import memory, tma
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.workspaces import (
    create_copy,
    create_workspace,
    is_matrix_of_workspace,
    padded_columns,
    read_from_workspaces,
    the_matmuls,
)
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer


class RepackOperands(Tc.Operation, name="repack_operands"):
    """Copies A or B, where its rows are no multiple of 16 bytes, to a workspace whose rows are multiples of 128 bytes.

    The matmul reads the view of the workspace that leaves out the padding. No element of the padding is read or
    written: TMA descriptors of the view have the extents of the matrix and the row pitch of the workspace. One buffer
    that is A and B is copied once. Operands that are read from a workspace stay.

    Operands: a handle to the module, whose one function is in the normal form (`tc.normalize_payload`).
    Refuses: a function without one matmul, or a pair, on tensors; elements narrower than a byte.
    """

    target: Handle


def _repacked(matmul: ir.Operation, buffer: ir.Value) -> ir.Value:
    """Returns the view of a new workspace that a buffer is copied to, at the current insertion point."""
    type_ = ir.MemRefType(buffer.type)
    *outer, columns = type_.shape
    width = types.byte_width(type_.element_type)
    if width < 1:
        raise Refusal(matmul, f"elements of {type_.element_type} are no whole bytes")
    workspace = create_workspace(ir.MemRefType.get([*outer, padded_columns(columns, width)], type_.element_type))
    view = memory.subview(workspace, [0] * type_.rank, [*outer, columns])
    create_copy(buffer, view)
    return view


@transform_op(RepackOperands)
def repack_operands(payload: ir.Operation, op: RepackOperands, rewriter: Rewriter) -> None:
    """Rewrites the operands of the one matmul, or of a pair, below `payload`; see the op."""

    def is_odd(_: int, buffer: ir.Value) -> bool:
        type_ = ir.MemRefType(buffer.type)
        (*pitches, _), offset = type_.get_strides_and_offset()
        width = types.byte_width(type_.element_type)
        is_odd = any(place * width % tma.PITCH_ALIGNMENT for place in (offset, *pitches))
        return is_odd and not is_matrix_of_workspace(producer(buffer))

    copies: dict[ir.Value, ir.Value] = {}
    for matmul in the_matmuls(payload):
        read_from_workspaces(matmul, is_odd, partial(_repacked, matmul), rewriter, copies)
