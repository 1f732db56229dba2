"""The normal form of a payload's function: memref arguments, linalg ops on tensors, and one write for each result."""

from __future__ import annotations

from stepladder.extension.lib.control_flow import operations_of, terminator_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.mlir.bindings import bufferization, ir
from stepladder.mlir.traverse import attributes_of, defining_op, producer, walk
from stepladder.payload.signature import set_signature


def to_tensor(buffer: ir.Value, *, writable: bool) -> ir.Value:
    """Returns the content of a buffer as a tensor, at the insertion point.

    Args:
        buffer: whose content no other buffer has.
        writable: whether the tensor may be written in place.
    """
    type_ = ir.MemRefType(buffer.type)
    tensor = ir.RankedTensorType.get(type_.shape, type_.element_type)
    return bufferization.to_tensor(tensor, buffer, restrict=True, writable=writable)


def _materialize(value: ir.Value, buffer: ir.Value) -> None:
    bufferization.materialize_in_destination(None, value, buffer, restrict=True, writable=True)


def _is_memref(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _destination_of(op: ir.Operation) -> ir.Value:
    """Returns the last operand of a linalg op: its destination."""
    return op.operands[len(op.operands) - 1]


def _argument_number(op: ir.Operation, buffer: ir.Value) -> int:
    """Returns which argument of the function a buffer that `op` uses is."""
    if producer(buffer) is not None:
        raise Refusal(op, "a linalg op on a buffer that is not an argument of the function")
    return ir.BlockArgument(buffer).arg_number


def _lift_to_tensors(func: ir.Operation, rewriter: Rewriter) -> None:
    """Converts linalg ops on memref arguments to tensors, and writes each result back once, at the end."""
    body = func.regions[0].blocks[0]
    ops = [
        op
        for op in operations_of(body)
        if op.name.startswith("linalg.") and any(_is_memref(operand) for operand in op.operands)
    ]
    if not ops:
        return
    current: dict[int, ir.Value] = {}
    destinations = {
        ir.BlockArgument(_destination_of(op)).arg_number for op in ops if producer(_destination_of(op)) is None
    }

    def tensor_of(operand: ir.Value, op: ir.Operation) -> ir.Value:
        if not _is_memref(operand):
            return operand
        number = _argument_number(op, operand)
        if number not in current:
            with ir.InsertionPoint(op), op.location:
                current[number] = to_tensor(operand, writable=number in destinations)
        return current[number]

    for op in ops:
        operands = [tensor_of(operand, op) for operand in op.operands]
        number = _argument_number(op, _destination_of(op))
        attributes = attributes_of(op)
        with ir.InsertionPoint(op), op.location:
            tensor_op = ir.Operation.create(
                op.name, results=[operands[-1].type], operands=operands, attributes=attributes, regions=1
            )
        op.regions[0].blocks[0].append_to(tensor_op.regions[0])
        current[number] = tensor_op.results[0]
        rewriter.erase_op(op)
    terminator = terminator_of(body)
    with ir.InsertionPoint(terminator), terminator.location:
        for number in sorted(destinations):
            _materialize(current[number], body.arguments[number])


def _initial_value(value: ir.Value) -> ir.Value:
    """Follows the destinations of linalg ops from a result to the value that it is initialized from."""
    source = producer(value)
    while source is not None and source.name.startswith("linalg."):
        value = _destination_of(source)
        source = producer(value)
    return value


def _bufferize_boundary(func: ir.Operation) -> None:
    """Converts tensor arguments and results of a function to buffers."""
    body = func.regions[0].blocks[0]
    terminator = terminator_of(body)
    results = list(terminator.operands)
    if not results and not any(isinstance(a.type, ir.RankedTensorType) for a in body.arguments):
        return
    stores = walk(func, "bufferization.materialize_in_destination")
    are_tensors = all(isinstance(value.type, ir.RankedTensorType) for value in results)
    if len(results) > 1 and any(producer(value) is None for value in results):
        raise Refusal(func, "a function on tensors returns an argument beside another tensor")
    if not are_tensors or bool(results) == bool(stores):
        raise Refusal(func, "a function on tensors returns tensors, which are computed from the product")
    origin = _initial_value(results[0]) if len(results) == 1 else None

    arguments = list(body.arguments)
    destination: ir.Value | None = None
    for argument in arguments:
        if not isinstance(argument.type, ir.RankedTensorType):
            continue
        type_ = ir.RankedTensorType(argument.type)
        is_written = origin is not None and argument == origin
        argument.set_type(ir.MemRefType.get(type_.shape, type_.element_type))
        with ir.InsertionPoint.at_block_begin(body), func.location:
            tensor = to_tensor(argument, writable=is_written)
        argument.replace_all_uses_except(tensor, defining_op(tensor))
        if is_written:
            destination = argument
    destinations = [] if destination is None else [destination]
    for value in results[len(destinations) :]:
        type_ = ir.RankedTensorType(value.type)
        destinations.append(body.add_argument(ir.MemRefType.get(type_.shape, type_.element_type), func.location))
    if results:
        with ir.InsertionPoint(terminator), terminator.location:
            for value, buffer in zip(list(terminator.operands), destinations):
                _materialize(value, buffer)
            ir.Operation.create("func.return")
        terminator.operation.erase()
    set_signature(func, [])


def _initialize_in_destination(func: ir.Operation) -> None:
    """Replaces a `tensor.empty` that an accumulator is initialized from by the buffer that the result is written to."""
    for store in walk(func, "bufferization.materialize_in_destination"):
        empty = producer(_initial_value(store.operands[0]))
        if empty is None or empty.name != "tensor.empty":
            continue
        with ir.InsertionPoint(empty), empty.location:
            tensor = to_tensor(store.operands[1], writable=True)
        empty.results[0].replace_all_uses_with(tensor)
        empty.erase()


def normalize(function: ir.Operation, rewriter: Rewriter) -> None:
    """Converts a function to the normal form (`tc.normalize_payload`).

    Args:
        function: of the payload.
        rewriter: that erases and replaces ops.

    Raises:
        Refusal: linalg ops on buffers that are not arguments; a function on tensors that returns something other than
            tensors computed from the product, or an argument beside another tensor.
    """
    _lift_to_tensors(function, rewriter)
    _bufferize_boundary(function)
    _initialize_in_destination(function)
