"""Arguments of a payload's function: checks of their types, and results that take their memory."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.refusal import refuse
from stepladder.runtime.errors import StepladderError

# The attribute of an argument that names the result which takes its memory, as JAX writes it for `donate_argnums`.
ALIAS = "tf.aliasing_output"
# The attribute of an argument that was a buffer, with the number of the result that it holds afterwards.
UPDATED = "stepladder.updated_to"
_CALL = ".call"  # refused where calls are
_RANKED = "accepted: buffers with all their sizes, such as memref<64x32xf16>"


class UpdatedArgument(StepladderError):
    """An argument was a buffer that is written, and is read in a way that one kernel does not support. A function of
    several kernels may; where it does not, its own refusal says why."""


def donated(function: ir.Operation) -> dict[int, int]:
    """Returns the indices of the results that take the memory of arguments, by the indices of those.

    Args:
        function: a `func.func`.
    """
    return _marked(function, ALIAS)


def updated(function: ir.Operation) -> dict[int, int]:
    """Returns the numbers of the results that buffers hold afterwards, by the numbers of the arguments that have what
    they hold before.

    Args:
        function: a `func.func` on tensors.
    """
    return _marked(function, UPDATED)


def _marked(function: ir.Operation, name: str) -> dict[int, int]:
    """Returns the values of an attribute, by the numbers of the arguments that have it."""
    if "arg_attrs" not in function.attributes:
        return {}
    marks = [ir.DictAttr(item) for item in ir.ArrayAttr(function.attributes["arg_attrs"])]
    for mark in marks:
        if name in mark and not isinstance(mark[name], ir.IntegerAttr):
            raise refuse(function, f"{name} = {mark[name]}", "accepted: the number of a result, an integer")
    return {number: ir.IntegerAttr(mark[name]).value for number, mark in enumerate(marks) if name in mark}


def is_shaped(value: ir.Value) -> bool:
    """Returns whether a value is a tensor or a buffer.

    Args:
        value: of any type.
    """
    return isinstance(value.type, (ir.RankedTensorType, ir.MemRefType))


def is_memref(value: ir.Value) -> bool:
    """Returns whether a value is a memref.

    Args:
        value: of any type.
    """
    return isinstance(value.type, ir.MemRefType)


def check_ranks(function: ir.Operation) -> None:
    """Checks that the buffers that a function takes and computes with have a rank.

    Args:
        function: a `func.func` with a body.

    Raises:
        StepladderError: an argument, or an operand of an op, of type memref<*x...>; names it.
    """
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        if isinstance(argument.type, ir.UnrankedMemRefType):
            raise refuse(argument, f"argument {number} is {argument.type}, a buffer of unknown rank", _RANKED)
    for op in walk(function):
        for value in op.operands:
            if isinstance(value.type, ir.UnrankedMemRefType) and not op.name.endswith(_CALL):
                raise refuse(op, f"{op.name} takes {value.type}, a buffer of unknown rank", _RANKED)


def check_operand(argument: ir.BlockArgument, number: int) -> None:
    """Checks that pipelines take the type of an argument that is A, B, C, or an operand of elementwise ops.

    Args:
        argument: a buffer, a ranked tensor, or a scalar.
        number: of the argument, for the message.

    Raises:
        StepladderError: a buffer that is not row-major without gaps or has a memory space, or a tensor with an
            encoding.
    """
    type_ = argument.type
    if isinstance(type_, ir.MemRefType):
        if type_.affine_map != ir.AffineMap.get_identity(type_.rank):
            raise refuse(
                argument,
                f"argument {number} is {type_}; buffers must be row-major with static row pitches",
                f"accepted: {_plain(type_)}, or with a layout strided<[pitch, 1]>",
            )
        if type_.memory_space is not None:
            raise refuse(
                argument,
                f"argument {number} is {type_}; buffers must be in the default memory space, global memory",
                f"accepted: {_plain(type_)}",
            )
    elif isinstance(type_, ir.RankedTensorType) and type_.encoding is not None:
        raise refuse(argument, f"argument {number} is {type_}; tensors must be dense", f"accepted: {_plain(type_)}")


def _plain(type_: ir.Type) -> str:
    """Returns the text of the accepted type with a type's shape and elements."""
    shaped_type = ir.ShapedType(type_)
    kind = "memref" if isinstance(type_, ir.MemRefType) else "tensor"
    return f"{kind}<{'x'.join(map(str, shaped_type.shape))}x{shaped_type.element_type}>"


def check_unused(argument: ir.BlockArgument, number: int) -> None:
    """Checks that `stepladder run` can create an argument that no op uses, without which it cannot run the function.

    Args:
        argument: of the function; a scalar, or a buffer or tensor of static shape, is accepted.
        number: of the argument, for the message.

    Raises:
        StepladderError: an argument of another type, or of dynamic shape.
    """
    type_ = argument.type
    is_number = isinstance(type_, (ir.IntegerType, ir.IndexType, ir.FloatType))
    is_shaped = isinstance(type_, (ir.MemRefType, ir.RankedTensorType)) and ir.ShapedType(type_).has_static_shape
    if not is_number and not is_shaped:
        raise refuse(
            argument,
            f"unused argument {number} is {type_}",
            "accepted as an unused argument: a scalar, a buffer or tensor of static shape",
        )


def check_attributes(function: ir.Operation) -> None:
    """Checks that no argument of a function has an attribute about bufferization, and none was a buffer that a call
    changes: a kernel has C beside what its elementwise ops read.

    Args:
        function: a `func.func` with a body.

    Raises:
        UpdatedArgument: an argument that was one; names it.
        StepladderError: an argument that has one; names it.
    """
    arguments = list(function.regions[0].blocks[0].arguments)
    for number in updated(function):
        refusal = refuse(
            arguments[number],
            f"argument {number} is written, and read at other elements or more than once",
            "accepted: C, which is read once, at the elements that are written",
        )
        raise UpdatedArgument(refusal.message, location=refusal.location, notes=refusal.notes)
    for number, entry in enumerate(function.attributes.get("arg_attrs", ())):
        for attribute in (ir.DictAttr(entry)[index].name for index in range(len(ir.DictAttr(entry)))):
            if attribute.startswith("bufferization."):
                raise refuse(
                    arguments[number],
                    f"argument {number} has the attribute {attribute}",
                    "accepted: no bufferization attributes, which the pipelines set",
                )
