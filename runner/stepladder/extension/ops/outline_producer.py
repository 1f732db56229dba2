"""`tc.outline_producer`: moves the elementwise ops that make A or B to a function, which is called in their place."""

from stepladder.extension.lib import memory
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.functions import create_private_function
from stepladder.extension.lib.outlined_producers import PRODUCER
from stepladder.extension.lib.workspaces import is_workspace, the_matmuls
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import producer, users_of, walk

_STORE, _READ = "bufferization.materialize_in_destination", "bufferization.to_tensor"


class OutlineProducer(Tc.Operation, name="outline_producer"):
    """Moves what the workspace of A or B is written from to a private function on buffers, and calls it.

    `tc.prepare_in_registers` finds the ops of the function there and computes them where the operand is multiplied.

    Operands: a handle to the module.
    Attributes: operand, 0 for A and 1 for B.
    Refuses: an operand that is an argument, which no elementwise ops make, and one that is A and B.
    """

    target: Handle
    operand: ir.IntegerAttr


def _home_of(value: ir.Value) -> ir.Value:
    """Returns the buffer that an operand is read from."""
    while (maker := producer(value)) is not None and len(maker.operands) and not is_workspace(value):
        value = maker.operands[0]
    return value


def _store_of(matmul: ir.Operation, number: int) -> ir.Operation:
    """Returns the op that writes the workspace which an operand is read from."""
    value = _home_of(matmul.operands[number])
    stores = [user for user in users_of(value) if user.name == _STORE] if is_workspace(value) else []
    if len(stores) != 1:
        raise Refusal(matmul, f"expected elementwise ops that compute {'AB'[number]}, the register operand")
    if value == _home_of(matmul.operands[1 - number]):
        raise Refusal(matmul, "elementwise ops compute one operand that is A and B; a register operand is one of them")
    return stores[0]


def _makers(store: ir.Operation) -> list[ir.Operation]:
    """Returns the ops that make what is stored, from buffers on, in order."""
    needed_values, makers = {store.operands[0]}, []
    before = [op.operation for op in store.block.operations if op.operation.is_before_in_block(store)]
    for op in reversed(before):
        if needed_values.intersection(op.results) and op.name != _READ:
            makers.append(op)
            needed_values.update(value for inner in walk(op) for value in inner.operands)
    reads = [op for op in before if op.name == _READ and needed_values.intersection(op.results)]
    return [*reads, *reversed(makers)]


@transform_op(OutlineProducer)
def outline_producer(payload: ir.Operation, op: OutlineProducer, rewriter: Rewriter) -> None:
    """Outlines what makes an operand of the matmul below `payload`; see the op."""
    matmul = the_matmuls(payload)[0]
    store = _store_of(matmul, op.operand.value)
    makers = _makers(store)
    buffers = list(dict.fromkeys(maker.operands[0] for maker in makers if maker.name == _READ))
    arguments = [*buffers, store.operands[1]]
    name = memory.unique_symbol(payload, "producer")
    types = [argument.type for argument in arguments]
    with ir.InsertionPoint.at_block_begin(payload.regions[0].blocks[0]), store.location:
        function = create_private_function(name, types, [], store.location, PRODUCER)
    body = function.regions[0].blocks[0]
    with ir.InsertionPoint(body):
        mapping = dict(zip(arguments, body.arguments))
        clone_ops([*makers, store], mapping, ir.InsertionPoint(body))
        ir.Operation.create("func.return")
    with ir.InsertionPoint(store), store.location:
        callee = {"callee": ir.FlatSymbolRefAttr.get(name), PRODUCER: ir.UnitAttr.get()}
        ir.Operation.create("func.call", operands=arguments, attributes=callee)
    for item in (store, *reversed(makers)):
        if not any(list(result.uses) for result in item.results):
            rewriter.erase_op(item)
