"""`tc.normalize_payload`: every way to write a matmul function becomes the one that pipelines start from."""

from stepladder.extension.lib.dialect import Refusal, Tc, transform_op
from stepladder.mlir.bindings import bufferization, ext, ir, transform
from stepladder.mlir.traverse import attributes_of, walk


class NormalizePayload(Tc.Operation, name="normalize_payload"):
    """Gives a matmul function buffers at its boundary and tensors inside.

    Accepts a function on memrefs (`linalg.matmul` writes C in place), on tensors with a result (the result goes where
    the accumulator came from, or to a new last argument where it started from nothing), and the normal form itself:
    `bufferization.to_tensor` of memref arguments, ops on tensors, `bufferization.materialize_in_destination`. Arguments
    of the last may be tensors too, which become buffers.

    Operands: a handle to the module, which holds one function.
    Refuses: several functions; linalg ops on buffers that are no arguments; a tensor function that returns something
        other than one tensor.
    """

    target: ext.Operand[transform.AnyOpType]


def _to_tensor(buffer, *, writable: bool):
    type_ = ir.MemRefType(buffer.type)
    tensor = ir.RankedTensorType.get(type_.shape, type_.element_type)
    return bufferization.to_tensor(tensor, buffer, restrict=True, writable=writable)


def _materialize(value, buffer) -> None:
    bufferization.materialize_in_destination(None, value, buffer, restrict=True, writable=True)


def _is_memref(value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _lift_buffer_ops(func, rewriter) -> None:
    """Rewrites linalg ops on memref arguments to tensors, and writes each result back once, at the end."""
    body = func.regions[0].blocks[0]
    ops = [
        op.operation
        for op in body.operations
        if op.operation.name.startswith("linalg.") and any(_is_memref(operand) for operand in op.operands)
    ]
    if not ops:
        return
    current: dict[int, object] = {}
    destinations = {
        ir.BlockArgument(op.operands[len(op.operands) - 1]).arg_number
        for op in ops
        if isinstance(op.operands[len(op.operands) - 1].owner, ir.Block)
    }

    def tensor_of(operand, op):
        if not _is_memref(operand):
            return operand
        if not isinstance(operand.owner, ir.Block):
            raise Refusal(op, "a linalg op on a buffer that is no argument of the function")
        number = ir.BlockArgument(operand).arg_number
        if number not in current:
            with ir.InsertionPoint(op), op.location:
                current[number] = _to_tensor(operand, writable=number in destinations)
        return current[number]

    for op in ops:
        last = len(op.operands) - 1
        operands = [tensor_of(operand, op) for operand in op.operands]
        if not isinstance(op.operands[last].owner, ir.Block):
            raise Refusal(op, "a linalg op on a buffer that is no argument of the function")
        attributes = attributes_of(op)
        with ir.InsertionPoint(op), op.location:
            lifted = ir.Operation.create(
                op.name, results=[operands[last].type], operands=operands, attributes=attributes, regions=1
            )
        op.regions[0].blocks[0].append_to(lifted.regions[0])
        current[ir.BlockArgument(op.operands[last]).arg_number] = lifted.results[0]
        rewriter.erase_op(op)
    terminator = body.operations[len(body.operations) - 1]
    with ir.InsertionPoint(terminator), terminator.location:
        for number in sorted(destinations):
            _materialize(current[number], body.arguments[number])


def _accumulator_origin(value):
    """Follows a result back through linalg ops to the value that the first of them started from."""
    while not isinstance(value.owner, ir.Block) and value.owner.name.startswith("linalg."):
        value = value.owner.operands[len(value.owner.operands) - 1]
    return value


def _lower_boundary(func) -> None:
    """Turns tensor arguments and results of a function into buffers."""
    body = func.regions[0].blocks[0]
    terminator = body.operations[len(body.operations) - 1]
    returned = list(terminator.operands)
    if not returned and not any(isinstance(a.type, ir.RankedTensorType) for a in body.arguments):
        return
    stores = walk(func, "bufferization.materialize_in_destination")
    if [isinstance(value.type, ir.RankedTensorType) for value in returned] != ([] if stores else [True]):
        raise Refusal(func, "a function on tensors returns one tensor, the product")
    origin = _accumulator_origin(returned[0]) if returned else None

    arguments = list(body.arguments)
    destination = None
    for argument in arguments:
        if not isinstance(argument.type, ir.RankedTensorType):
            continue
        type_ = ir.RankedTensorType(argument.type)
        written = origin is not None and argument == origin
        argument.set_type(ir.MemRefType.get(type_.shape, type_.element_type))
        with ir.InsertionPoint.at_block_begin(body), func.location:
            tensor = _to_tensor(argument, writable=written)
        argument.replace_all_uses_except(tensor, tensor.owner.operation)
        if written:
            destination = argument
    if destination is None and returned:
        type_ = ir.RankedTensorType(returned[0].type)
        destination = body.add_argument(ir.MemRefType.get(type_.shape, type_.element_type), func.location)
    if returned:
        with ir.InsertionPoint(terminator), terminator.location:
            _materialize(terminator.operands[0], destination)
            ir.Operation.create("func.return")
        terminator.operation.erase()
    for name, count in (("arg_attrs", len(body.arguments)), ("res_attrs", 0)):
        if name in func.attributes:
            known = list(func.attributes[name])[:count]
            func.attributes[name] = ir.ArrayAttr.get(known + [ir.DictAttr.get({})] * (count - len(known)))
    func.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([argument.type for argument in body.arguments], [])
    )


def _start_in_destination(func) -> None:
    """Lets an accumulator that starts from `tensor.empty` start in the buffer that it ends up in."""
    for store in walk(func, "bufferization.materialize_in_destination"):
        origin = _accumulator_origin(store.operands[0])
        if isinstance(origin.owner, ir.Block) or origin.owner.name != "tensor.empty":
            continue
        empty = origin.owner
        with ir.InsertionPoint(empty), empty.location:
            tensor = _to_tensor(store.operands[1], writable=True)
        empty.results[0].replace_all_uses_with(tensor)
        empty.erase()


@transform_op(NormalizePayload)
def normalize_payload(payload, op, rewriter) -> None:
    """Normalizes the one function below `payload`; see the op."""
    functions = walk(payload, "func.func")
    if len(functions) != 1 or not functions[0].regions[0].blocks:
        raise Refusal(payload, f"expected one function with a body, found {len(functions)}")
    _lift_buffer_ops(functions[0], rewriter)
    _lower_boundary(functions[0])
    _start_in_destination(functions[0])
