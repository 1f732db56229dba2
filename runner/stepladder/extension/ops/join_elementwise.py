"""`tc.join_elementwise`: makes elementwise ops and those that read their results at the same elements one op."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import is_in_order, one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, users_of, walk


class JoinElementwise(Tc.Operation, name="join_elementwise"):
    """Replaces an elementwise `linalg.generic` and a later one that reads its results at the elements that it computes
    by one with the results of both, where other ops read the first one's results too.

    Upstream fuses ops whose results have one reader. The new state of a recurrent cell is read by its output, for
    example, and is a result: in one kernel, the output reads it in registers.

    Operands: a handle to a module with one public function. Ops whose results anything between them reads stay.
    Attributes: at_most, results of an op.
    """

    target: Handle
    at_most: ir.IntegerAttr


@transform_op(JoinElementwise)
def join_elementwise(payload: ir.Operation, op: JoinElementwise, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    body = one_function(payload).regions[0].blocks[0]
    while (pair := _next_pair(body, op.at_most.value)) is not None:
        _join(*pair, rewriter)


def _next_pair(body: ir.Block, at_most: int) -> tuple[ir.Operation, ir.Operation] | None:
    """Returns two ops of a block that may be one, the second of which reads results of the first; None for no such."""
    ops = operations_of(body)
    places = {op: place for place, op in enumerate(ops)}
    for reader in filter(is_in_order, ops):
        makers = [producer(operand) for operand in reader.operands]
        for maker in dict.fromkeys(item for item in makers if item is not None and item in places):
            if not is_in_order(maker) or len(maker.results) + len(reader.results) > at_most:
                continue
            users, views = _users_and_views(maker, body)
            of_views = [user for view in views for user in users_of(view.results[0])]
            is_last = all(places[user] >= places[reader] for user in users) and reader not in of_views
            if is_last and _reads_in_place(reader, maker):
                return maker, reader
    return None


def _users_and_views(op: ir.Operation, body: ir.Block) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """Returns the ops of a block that read results of an op, also through views, and these views, in order."""
    users: list[ir.Operation] = []
    views: list[ir.Operation] = []
    values = list(op.results)
    for value in values:  # grows in the loop
        for user in users_of(value):
            if user.name in TENSOR_VIEWS:
                views.append(user)
                values.append(user.results[0])
            else:
                users.append(_in_block(user, body))
    return users, views


def _reads_in_place(reader: ir.Operation, maker: ir.Operation) -> bool:
    """Returns whether an op reads results of another one at the elements that it computes alone."""
    identity = indexing_maps(maker)[-1]
    results = list(maker.results)
    reads = [map_ for operand, map_ in zip(reader.operands, indexing_maps(reader)) if operand in results]
    nested = [operand for item in walk(reader)[1:] for operand in item.operands if operand in results]
    starts = [operand for operand in list(reader.operands)[-len(reader.results) :] if operand in results]
    return all(map_ == identity for map_ in reads) and not nested and not starts


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """Returns the op of a block that another one is, or is nested in."""
    while op.block != block:
        assert op.parent is not None
        op = op.parent.operation
    return op


def _join(maker: ir.Operation, reader: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces two ops by one, in the place of the second; views of the first one's results follow it."""
    for view in reversed(_users_and_views(maker, reader.block)[1]):
        view.move_after(reader)
    results: list[ir.Value] = [*maker.results]
    inputs: dict[tuple[ir.Value, ir.AffineMap], list[ir.Value]] = {}
    outputs: list[tuple[ir.Value, ir.AffineMap, ir.Value]] = []
    for op in (maker, reader):
        operands = list(zip(op.operands, indexing_maps(op), op.regions[0].blocks[0].arguments))
        first = len(operands) - len(op.results)
        for operand, map_, argument in operands[:first]:
            if operand not in results:
                inputs.setdefault((operand, map_), []).append(argument)
        outputs += operands[first:]
    with ir.InsertionPoint(reader), reader.location:
        joined, body = create_generic(
            [operand for operand, _ in inputs],
            [operand for operand, _, _ in outputs],
            [*(map_ for _, map_ in inputs), *(map_ for _, map_, _ in outputs)],
        )
    arguments = [*inputs.values(), *([argument] for _, _, argument in outputs)]
    values: dict[ir.Value, ir.Value] = {old: new for new, olds in zip(body.arguments, arguments) for old in olds}
    yielded: list[ir.Value] = []
    for op in (maker, reader):
        *ops, end = operations_of(op.regions[0].blocks[0])
        if op == reader:
            for operand, argument in zip(op.operands, op.regions[0].blocks[0].arguments):
                if operand in results:
                    values[argument] = yielded[results.index(operand)]
        values = clone_ops(ops, values, ir.InsertionPoint(body))
        yielded += [values.get(operand, operand) for operand in end.operands]
    with ir.InsertionPoint(body), reader.location:
        ir.Operation.create("linalg.yield", operands=yielded)
    rewriter.replace_op(reader, list(joined.results)[len(results) :])
    rewriter.replace_op(maker, list(joined.results)[: len(results)])
