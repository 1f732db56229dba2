"""`tc.transpose_operands`: reads operands that wgmma cannot read as they are from transposed copies in workspaces."""

from stepladder.extension.lib import memory
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.workspaces import (
    create_copy,
    create_workspace,
    padded_columns,
    read_from_workspaces,
    the_matmuls,
)
from stepladder.mlir import types
from stepladder.mlir.bindings import ir, memref
from stepladder.mlir.linalg_ops import indexing_maps, product_name
from stepladder.mlir.traverse import attributes_of, defining_op, producer
from stepladder.mlir.windows import has_gaps


class TransposeOperands(Tc.Operation, name="transpose_operands"):
    """Copies A or B, where it is not contiguous along k, to a transposed workspace; elements of 16 bits stay.

    The indexing map of the operand changes with it. Rows of the workspace are multiples of 128 bytes, and the matmul
    reads the view without the padding. One buffer that is A and B is copied once.

    Operands: a handle to the module, whose one function is in the normal form (`tc.normalize_payload`).
    Refuses: a function without one matmul, or a pair, on tensors.
    """

    target: Handle


_AS_THEY_ARE = 2  # bytes of elements that wgmma reads along m and n too


def _swapped(map_: ir.AffineMap) -> ir.AffineMap:
    *batch, row, column = map_.results
    return ir.AffineMap.get(map_.n_dims, 0, [*batch, column, row])


def _transposed(buffer: ir.Value) -> ir.Value:
    """Returns the view of a new workspace that a buffer is copied to transposed, at the current insertion point."""
    type_ = ir.MemRefType(buffer.type)
    if producer(buffer) is not None and has_gaps(type_):
        raise Refusal(
            defining_op(buffer),
            "an operand that is a part of a buffer must be contiguous along k: only whole buffers are "
            "transposed before the matmul",
        )
    *batch, rows, columns = type_.shape
    (*outer, stride, _), offset = type_.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, [*outer, 1, stride])
    transposed_type = ir.MemRefType.get([*batch, columns, rows], type_.element_type, layout, type_.memory_space)
    dims = [ir.AffineExpr.get_dim(number) for number in range(type_.rank)]
    permutation = ir.AffineMap.get(type_.rank, 0, [*dims[:-2], dims[-1], dims[-2]])
    source = memref.transpose(transposed_type, buffer, ir.AffineMapAttr.get(permutation))
    pitch = padded_columns(rows, types.byte_width(type_.element_type))
    workspace = create_workspace(ir.MemRefType.get([*batch, columns, pitch], type_.element_type))
    view = memory.subview(workspace, [0] * type_.rank, [*batch, columns, rows])
    create_copy(source, view)
    return view


def _set_maps(matmul: ir.Operation, maps: list[ir.AffineMap], rewriter: Rewriter) -> None:
    """Gives a matmul other indexing maps; a batch whose op has no such maps becomes another op."""
    attribute = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])
    name = product_name(matmul, maps)
    if name == matmul.name:
        matmul.attributes["indexing_maps"] = attribute
        return
    with ir.InsertionPoint(matmul), matmul.location:
        contract = ir.Operation.create(
            name,
            results=[result.type for result in matmul.results],
            operands=list(matmul.operands),
            attributes=attributes_of(matmul) | {"indexing_maps": attribute},
            regions=1,
        )
    matmul.regions[0].blocks[0].append_to(contract.regions[0])
    rewriter.replace_op(matmul, list(contract.results))


@transform_op(TransposeOperands)
def transpose_operands(payload: ir.Operation, op: TransposeOperands, rewriter: Rewriter) -> None:
    """Rewrites the operands of the one matmul, or of a pair, below `payload`; see the op."""
    copies: dict[ir.Value, ir.Value] = {}
    for matmul in the_matmuls(payload):
        _transpose(matmul, copies, rewriter)


def _transpose(matmul: ir.Operation, copies: dict[ir.Value, ir.Value], rewriter: Rewriter) -> None:
    """Rewrites the operands of a matmul; `copies` has the transposed view by buffer, and grows."""
    maps = indexing_maps(matmul)
    k = ir.AffineExpr.get_dim(maps[0].n_dims - 1)

    def needs_transpose(number: int, buffer: ir.Value) -> bool:
        width = types.byte_width(ir.MemRefType(buffer.type).element_type)
        return maps[number].results[-1] != k and width != _AS_THEY_ARE

    numbers = read_from_workspaces(matmul, needs_transpose, _transposed, rewriter, copies)
    if numbers:
        maps = [_swapped(map_) if number in numbers else map_ for number, map_ in enumerate(maps)]
        _set_maps(matmul, maps, rewriter)
