"""`tc.distribute_rows`: maps a chain of linalg ops on buffers to threads, a warp or a block for each row."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.element_bodies import check_types
from stepladder.extension.lib.multi_kernel.row_kernels import RowKernel
from stepladder.extension.lib.multi_kernel.rows import RowOp
from stepladder.extension.lib.threads import WARP
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import origin, producer, walk

_PART = "memref.subview"
_BETWEEN = ("linalg.generic", "linalg.fill", "memref.alloc", "func.return", _PART, *BUFFER_VIEWS)


class DistributeRows(Tc.Operation, name="distribute_rows"):
    """Rewrites the `linalg.generic` ops of a function on buffers, all over the same rows, to loops over blocks and
    threads (`scf.forall`).

    The threads of a warp, or of a block for long rows, compute a row: reductions leave their results in registers, and
    what elementwise ops compute is computed where it is read. Buffers of the function itself are not written, and go.
    Ops may read parts of arguments.

    Operands: a handle to a module with one function. Attributes: `threads`, of a block, a power of two of warps.
    Refuses other ops, parts of other buffers, a buffer that two ops write, a reduction that does not begin from a
    constant, what is no reduction along rows and no elementwise op on them, and arithmetic of fp8.
    """

    target: Handle
    threads: ir.IntegerAttr


@transform_op(DistributeRows)
def distribute_rows(payload: ir.Operation, op: DistributeRows, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    generics = walk(payload, "linalg.generic")
    if not generics:
        raise Refusal(payload, "expected linalg.generic ops, found none")
    if op.threads.value % WARP or op.threads.value & (op.threads.value - 1):
        raise Refusal(payload, f"blocks of {op.threads.value} threads; accepted: a power of two of warps")
    body = operations_of(generics[0].block)
    for item in body:
        if item.name not in _BETWEEN and not item.name.startswith("arith."):
            raise Refusal(item, f"'{item.name}' between ops over rows")
        if item.name == _PART and producer(origin(item.operands[0], (_PART, *BUFFER_VIEWS))) is not None:
            raise Refusal(item, "a part of what an op over rows computes")
    for generic in generics:
        check_types(generic)
    ops = [RowOp(generic) for generic in generics]
    kernel = RowKernel(ops, _starts(body, ops))
    with ir.InsertionPoint(body[-1]), generics[0].location:
        kernel.write(op.threads.value)
    for item in reversed(body[:-1]):
        is_dead = all(not list(result.uses) for result in item.results)
        if is_dead and not item.name.startswith("arith."):
            rewriter.erase_op(item)


def _starts(body: list[ir.Operation], ops: list[RowOp]) -> dict[ir.Value, ir.Value]:
    """Returns the values that reductions begin from, by buffer; checks that one op writes each buffer."""
    fill_values: dict[ir.Value, ir.Value] = {}
    starts: dict[ir.Value, ir.Value] = {}
    written_buffers: set[ir.Value] = set()
    by_op = {op.op: op for op in ops}
    for item in body:
        if item.name == "linalg.fill":
            fill_values[origin(item.operands[1], BUFFER_VIEWS)] = item.operands[0]
        if item not in by_op:
            continue
        op = by_op[item]
        for number in range(op.outputs):
            root = origin(item.operands[op.inputs + number], BUFFER_VIEWS)
            source = producer(root)
            if root in written_buffers or (source is not None and source.name != "memref.alloc"):
                raise Refusal(item, "a result in a buffer that another op writes")
            written_buffers.add(root)
            if op.reduced and root not in fill_values:
                raise Refusal(item, "a reduction that does not begin from a constant")
            is_read = bool(list(op.body.arguments[op.inputs + number].uses))
            if not op.reduced and is_read:
                raise Refusal(item, "an elementwise op that reads its result")
            if op.reduced:
                starts[root] = fill_values[root]
    return starts
