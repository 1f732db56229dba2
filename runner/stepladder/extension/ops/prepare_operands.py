"""`tc.prepare_operands`: computes the producers of A and B in kernels before the matmul, which write workspaces."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import launch_kernel
from stepladder.extension.lib.prepared_kernels import number_of, prepared_kernel, shape_of, unshaped
from stepladder.extension.lib.workspaces import PERMUTATION, WORKSPACE, create_workspace, is_workspace
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import defining_op, producer, walk
from stepladder.payload.front.rewrite import reshaped


class PrepareOperands(Tc.Operation, name="prepare_operands"):
    """Converts the `linalg.generic` on tensors that a workspace is written from to a kernel before the matmul.

    A thread computes a vector of adjacent elements, the widest that divides the rows of the result and is of at most 16
    bytes in every type that is loaded or stored; adjacent threads have adjacent vectors. Each scalar op of the body
    becomes the same op on vectors, so that values are rounded where the body rounds them. What operands hold for whole
    rows of the innermost loop is loaded once. Where an op reads the result of another one through a reshape, so that
    they are not fused, the kernel computes that where it is read. A warp or a thread each computes the sums of an
    operand's rows or columns.

    Operands: a handle to the module.
    Attributes: threads, of a block.
    Refuses: a workspace that is written from anything else than such ops, reshapes of their results, and buffers and
        constants, which are copied; reductions of reductions, and results that are written in another order than that
        of the loops.
    """

    target: Handle
    threads: ir.IntegerAttr


def _write(store: ir.Operation, number: int, block_threads: int) -> None:
    """Launches a kernel that computes what a `bufferization.materialize_in_destination` writes, at the insertion point.

    Args:
        store: the op, which writes a workspace.
        number: of the kernel.
        block_threads: threads of a block.
    """
    value, buffer = store.operands
    source = unshaped(value)
    generic = defining_op(source)
    if generic.name == "bufferization.to_tensor" or number_of(generic) is not None:
        generic = _copied(source)
    if generic.name != "linalg.generic":
        raise Refusal(generic, "expected a workspace that is written from a linalg.generic")
    function = generic.parent
    assert function is not None  # the op is at its top level
    output = reshaped(_as_it_is_read(store, buffer), shape_of(source))
    kernel = prepared_kernel(generic, output)
    name = f"{ir.StringAttr(function.attributes['sym_name']).value}_prepare_{number}"
    sizes = kernel.blocks(block_threads), block_threads
    launch = launch_kernel(function, name, sizes, kernel.buffers, kernel.emit, [WORKSPACE])
    order = _permutation(generic)
    if order is not None:
        launch.attributes[PERMUTATION] = ir.DenseI64ArrayAttr.get(order)


def _permutation(generic: ir.Operation) -> list[int] | None:
    """Returns the axis of the input for each axis of the result of an op that copies a buffer; None for another op."""
    source = producer(generic.operands[0])
    is_copy = len(generic.operands) == 2 and len(generic.regions[0].blocks[0].operations) == 1
    if not is_copy or source is None or source.name != "bufferization.to_tensor":
        return None
    source_axes, result_axes = (map_.results for map_ in indexing_maps(generic))
    if generic.regions[0].blocks[0].operations[0].operands[0] != generic.regions[0].blocks[0].arguments[0]:
        return None
    if not all(isinstance(axis, ir.AffineDimExpr) for axis in (*source_axes, *result_axes)) or len(source_axes) != len(
        result_axes
    ):
        return None
    return [[axis.position for axis in source_axes].index(axis.position) for axis in result_axes]


def _copied(value: ir.Value) -> ir.Operation:
    """Returns a `linalg.generic` that copies a tensor: elementwise ops that change nothing have folded to it."""
    type_ = ir.RankedTensorType(value.type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([value], [empty], [ir.AffineMap.get_identity(type_.rank)] * 2)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    return generic


def _as_it_is_read(store: ir.Operation, workspace: ir.Value) -> ir.Value:
    """Returns a workspace in place of another that is only read through a reshape: one of the extents that it has then,
    so that the matmul's kernel computes no indices of others."""
    readers = [use.owner.operation for use in workspace.uses if use.owner.operation != store]
    views = [view for view in readers if view.name in ("memref.collapse_shape", "memref.expand_shape")]
    if len(views) != 1 or len(readers) != 1:
        return workspace
    (view,) = views
    reshaped_workspace = create_workspace(ir.MemRefType(view.results[0].type), is_whole=True)
    view.results[0].replace_all_uses_with(reshaped_workspace)
    return reshaped_workspace


@transform_op(PrepareOperands)
def prepare_operands(payload: ir.Operation, op: PrepareOperands, rewriter: Rewriter) -> None:
    """Rewrites what workspaces below `payload` are written from; see the op."""
    stores = [
        store for store in walk(payload, "bufferization.materialize_in_destination") if is_workspace(store.operands[1])
    ]
    for number, store in enumerate(stores):
        with ir.InsertionPoint(store), store.location:
            _write(store, number, op.threads.value)
        rewriter.erase_op(store)
