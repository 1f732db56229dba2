"""The normal form of a pair of products: both matmuls on tensors in one function, and the ops that combine them."""

from __future__ import annotations

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.normal_form import normalize
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of, walk
from stepladder.payload import pairs
from stepladder.payload.matmul import find_pair, recognize_matmul
from stepladder.payload.pairs import Parts
from stepladder.payload.signature import set_signature

_STORE = "bufferization.materialize_in_destination"
_READ = "bufferization.to_tensor"


def recognize(payload: ir.Operation, rewriter: Rewriter) -> None:
    """Brings the one matmul of a payload, or both of a pair of products, to the form that pipelines start from.

    Args:
        payload: a module with one function.
        rewriter: of the transform op.

    Raises:
        StepladderError: a payload that is neither; Refusal: as `write_pair`.
    """
    divisions = pairs.divisions(payload)
    if divisions:
        _, parts = find_pair(divisions)
        write_pair(walk(payload, "func.func")[0], parts, rewriter)
    else:
        recognize_matmul(payload)


def write_pair(function: ir.Operation, parts: Parts, rewriter: Rewriter) -> None:
    """Replaces the body of a function by those of its two parts, each in the normal form, one after the other.

    What the first part reads from the argument that crosses is the tensor that the second part stores. A result that is
    returned becomes a last argument.

    Args:
        function: that the parts come from, with one block.
        parts: of a pair (`payload.pairs`).
        rewriter: of the transform op.

    Raises:
        Refusal: a part without a normal form, or a value that crosses in two shapes.
    """
    first, second = (_normal_block(part, rewriter) for part in (parts.first, parts.second))
    body = function.regions[0].blocks[0]
    for op in reversed(operations_of(body)):
        op.erase()
    with ir.InsertionPoint(body), function.location:
        end = ir.Operation.create("func.return")

    product = _taken_from_store(second.arguments[parts.crossing])
    _replace_reads(first.arguments[parts.crossing], product)
    of_first = [argument for argument in first.arguments if argument.arg_number != parts.crossing]
    for number, argument in enumerate(of_first):
        if number < len(body.arguments):
            body.arguments[number].set_type(argument.type)
        else:
            body.add_argument(argument.type, function.location)
    for block, arguments in ((second, list(second.arguments)[: parts.crossing]), (first, of_first)):
        for own, argument in zip(arguments, body.arguments):
            own.replace_all_uses_with(argument)
        for op in operations_of(block)[:-1]:
            op.move_before(end)
    set_signature(function, [])


def _normal_block(part: ir.Module, rewriter: Rewriter) -> ir.Block:
    """Returns the body of a part in the normal form."""
    recognize_matmul(part.operation)
    (function,) = walk(part, "func.func")
    normalize(function, rewriter)
    return function.regions[0].blocks[0]


def _buffers_of(argument: ir.Value) -> list[ir.Value]:
    """Returns an argument and the views of it, those that views are made of first."""
    buffers = [argument]
    for buffer in buffers:  # grows in the loop
        buffers += [user.results[0] for user in users_of(buffer) if user.name.startswith("memref.")]
    return buffers


def _taken_from_store(argument: ir.Value) -> ir.Value:
    """Returns the tensor that a part stores to an argument, which nothing uses from then on."""
    buffers = _buffers_of(argument)
    (store,) = [user for buffer in buffers for user in users_of(buffer) if user.name == _STORE]
    tensor = store.operands[0]
    store.erase()
    for buffer in reversed(buffers):
        for reader in users_of(buffer):
            if reader.name == _READ:
                with ir.InsertionPoint(reader), reader.location:
                    empty = ir.Operation.create("tensor.empty", results=[reader.results[0].type])
                reader.results[0].replace_all_uses_with(empty.results[0])
                if reader.results[0] == tensor:
                    tensor = empty.results[0]
                reader.erase()
        if buffer != argument:
            ir.OpResult(buffer).owner.erase()
    return tensor


def _replace_reads(argument: ir.Value, tensor: ir.Value) -> None:
    """Replaces the tensors that are read from an argument by another one."""
    buffers = _buffers_of(argument)
    for buffer in reversed(buffers):
        for user in users_of(buffer):
            if user.name != _READ or user.results[0].type != tensor.type:
                raise Refusal(user, f"a product of {tensor.type} is read as {user.results[0].type}")
            user.results[0].replace_all_uses_with(tensor)
            user.erase()
        if buffer != argument:
            ir.OpResult(buffer).owner.erase()
