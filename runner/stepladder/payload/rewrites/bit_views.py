"""Arguments that the payload bitcasts to another type: they become arguments of this type.

Front ends store elements of types that a framework lacks in integers of as many bits, such as fp8 in i8, and cast the
bits where they compute. What is in memory is the same, and a caller passes arrays of the type that is computed with.
Results keep their types, which a caller would not notice.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.arguments import ALIAS
from stepladder.payload.signature import set_signature

_CAST = "arith.bitcast"
_CASTS = (_CAST, "tensor.bitcast")
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice")
_GENERIC = "linalg.generic"


def retype(function: ir.Operation) -> None:
    """Has arguments that are read as floating-point values of another type alone be of this type.

    Casts of bits in bodies of `linalg.generic` move to the tensors, and those of tensors through views to arguments.
    Others stay.

    Args:
        function: a function on tensors, of one block; it is changed where there are such casts.
    """
    if len(function.regions[0].blocks) != 1 or not walk(function, *_CASTS):
        return
    for op in walk(function, _GENERIC):
        if len(op.results):
            _move_out_of_inputs(op)
    # Each change erases casts, others of the same argument among them.
    while any(_retype_argument(function, cast) or _move_up(cast) for cast in _of_tensors(function)):
        pass


def _of_tensors(function: ir.Operation) -> list[ir.Operation]:
    casts = [op for op in walk(function, *_CASTS) if _is_static(op.results[0].type)]
    return [op for op in casts if isinstance(ir.RankedTensorType(op.results[0].type).element_type, ir.FloatType)]


def _is_static(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape


def _with_element(type_: ir.Type, element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(ir.RankedTensorType(type_).shape, element)


def _cast(value: ir.Value, element: ir.Type) -> ir.Value:
    """Creates the cast of a tensor's bits, at the insertion point."""
    return ir.Operation.create(_CAST, results=[_with_element(value.type, element)], operands=[value]).results[0]


def _readers(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def _move_out_of_inputs(op: ir.Operation) -> None:
    """Has a body read an operand in another type, where it casts the bits of each element and reads nothing else."""
    body = op.regions[0].blocks[0]
    for place, operand in enumerate(list(op.operands)[: len(op.operands) - len(op.results)]):
        casts = _readers(body.arguments[place])
        types = {str(cast.results[0].type) for cast in casts if cast.name == _CAST}
        if len(types) != 1 or any(cast.name != _CAST for cast in casts) or not _is_static(operand.type):
            continue
        element = casts[0].results[0].type
        if not isinstance(element, ir.FloatType):
            continue
        with ir.InsertionPoint(op), op.location:
            op.operands[place] = _cast(operand, element)
        body.arguments[place].set_type(element)
        for cast in casts:
            cast.results[0].replace_all_uses_with(body.arguments[place])
            cast.erase()


def _retype_argument(function: ir.Operation, cast: ir.Operation) -> bool:
    """Gives an argument the type that all that reads it casts its bits to; tells whether it did."""
    value = cast.operands[0]
    casts = _readers(value)
    type_ = cast.results[0].type
    if not isinstance(value.owner, ir.Block) or value.owner.owner != function:
        return False
    if any(old_cast.name not in _CASTS or old_cast.results[0].type != type_ for old_cast in casts):
        return False
    number = ir.BlockArgument(value).arg_number
    # A result that takes the memory of an argument has its type.
    if "arg_attrs" in function.attributes and ALIAS in ir.ArrayAttr(function.attributes["arg_attrs"])[number]:
        return False
    argument = function.regions[0].blocks[0].arguments[number]
    argument.set_type(type_)
    for old_cast in casts:
        old_cast.results[0].replace_all_uses_with(argument)
        old_cast.erase()
    set_signature(function)
    return True


def _move_up(cast: ir.Operation) -> bool:
    """Casts what a view or a transpose is of in its place, where the cast alone reads it; tells whether it did."""
    view = producer(cast.operands[0])
    if view is None or len(_readers(view.results[0])) > 1:
        return False
    element = ir.RankedTensorType(cast.results[0].type).element_type
    if view.name in _CASTS:
        if view.operands[0].type == cast.results[0].type:
            cast.results[0].replace_all_uses_with(view.operands[0])
        else:
            return False
    elif view.name in _RESHAPES or view.name == "linalg.transpose":
        with ir.InsertionPoint(view), view.location:
            view.operands[0] = _cast(view.operands[0], element)
            if view.name == "linalg.transpose":
                empty = ir.Operation.create("tensor.empty", results=[cast.results[0].type]).results[0]
                view.operands[1] = empty
                for argument in view.regions[0].blocks[0].arguments:
                    argument.set_type(element)
        view.results[0].set_type(cast.results[0].type)
        cast.results[0].replace_all_uses_with(view.results[0])
    else:
        return False
    cast.erase()
    return True
