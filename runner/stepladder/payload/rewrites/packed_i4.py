"""Arguments of i4: buffers of i8 with two elements per byte, as in MLIR's emulation of narrow types.

A byte has two neighbours along the innermost axis, the first one in its low bits. Elementwise ops at the
beginning of the function unpack them.
"""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic, create_loop_index
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import users_of
from stepladder.payload.refusal import refuse
from stepladder.payload.signature import set_signature

NIBBLE = "i4"
_BITS = 4
_READ = "bufferization.to_tensor"


def unpack(function: ir.Operation) -> None:
    """Gives a function buffers of i8 in place of those of i4, and ops that make tensors of i4 of them.

    Args:
        function: a `func.func` with a body; it is changed if it has such arguments.

    Raises:
        StepladderError: an odd number of elements along the innermost axis, no axis, or a buffer that another op than
            `bufferization.to_tensor` takes.
    """
    body = function.regions[0].blocks[0]
    arguments = [argument for argument in body.arguments if _is_of_nibbles(argument.type)]
    for argument in arguments:
        old = argument.type
        shape = list(ir.ShapedType(old).shape) if ir.ShapedType(old).has_static_shape else []
        if not shape or shape[-1] % 2:
            raise refuse(
                argument,
                f"argument {argument.arg_number} is {old}",
                "accepted: i4 in buffers of static shape with an even number of elements along the innermost axis, two "
                "in a byte",
            )
        packed_shape = [*shape[:-1], shape[-1] // 2]
        i8 = ir.IntegerType.get_signless(8)
        tensor = ir.RankedTensorType.get(packed_shape, i8)
        if isinstance(old, ir.RankedTensorType):
            argument.set_type(tensor)
            _replace(argument, old, ir.InsertionPoint.at_block_begin(body))
            continue
        for user in users_of(argument):
            if user.name != _READ:
                raise refuse(user, f"{user.name} takes {old}", "accepted: bufferization.to_tensor of buffers of i4")
        argument.set_type(ir.MemRefType.get(packed_shape, i8, memory_space=ir.MemRefType(old).memory_space))
        for user in users_of(argument):
            result = user.results[0]
            result.set_type(tensor)
            _replace(result, ir.RankedTensorType.get(shape, ir.Type.parse(NIBBLE)), ir.InsertionPoint.after(user))
    if arguments:
        set_signature(function)


def _is_of_nibbles(type_: ir.Type) -> bool:
    is_shaped = isinstance(type_, (ir.RankedTensorType, ir.MemRefType))
    return is_shaped and str(ir.ShapedType(type_).element_type) == NIBBLE


def _replace(value: ir.Value, type_: ir.RankedTensorType, point: ir.InsertionPoint) -> None:
    """Makes the users of a tensor of bytes use the i4 elements in it, a tensor of a type."""
    users = users_of(value)
    if not users:
        return
    shape = list(ir.ShapedType(value.type).shape)
    with point, value.location:
        pairs = ir.RankedTensorType.get([*shape, 2], type_.element_type)
        empty = ir.Operation.create("tensor.empty", results=[pairs]).results[0]
        identity = ir.AffineMap.get_identity(len(shape) + 1)
        generic, block = create_generic([value], [empty], [identity.get_submap(list(range(len(shape)))), identity])
        with ir.InsertionPoint(block):
            byte = block.arguments[0]
            place = create_loop_index(len(shape))
            distance = arith.muli(arith.index_cast(byte.type, place), arith.constant(byte.type, _BITS))
            number = arith.trunci(type_.element_type, arith.shrui(byte, distance))
            ir.Operation.create("linalg.yield", operands=[number])
        groups = [[axis] for axis in range(len(shape) - 1)] + [[len(shape) - 1, len(shape)]]
        flat = reshaped(generic.results[0], type_.shape, groups)
    value.replace_all_uses_except(flat, generic)
