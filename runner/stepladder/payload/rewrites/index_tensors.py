"""Tensors of `index`, which no buffer has: ops read the integers that they are made from, and arguments are of i64."""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.signature import set_signature

# Ops that take indices, and which operand these are.
_PLACES = {"tensor.gather": 1, "tensor.scatter": 2}
_CASTS = ("arith.index_cast",)


def store(function: ir.Operation) -> None:
    """Has arguments that are tensors of `index` be of i64, and gathers, scatters, extractions and bodies of
    `linalg.generic` read tensors of integers in place of tensors of `index`.

    Args:
        function: a function; it is changed where there are such tensors.
    """
    if len(function.regions[0].blocks) == 1:
        _store_arguments(function)
    for op in walk(function, *_PLACES):
        source = _stored(op.operands[_PLACES[op.name]])
        if source is not None:
            op.operands[_PLACES[op.name]] = source
    for op in walk(function, "tensor.extract"):
        source = _stored(op.operands[0])
        if source is not None:
            with ir.InsertionPoint(op), op.location:
                element = ir.RankedTensorType(source.type).element_type
                extract = ir.Operation.create("tensor.extract", results=[element], operands=[source, *op.operands[1:]])
                op.results[0].replace_all_uses_with(arith.index_cast(ir.IndexType.get(), extract.results[0]))
            op.erase()
    for op in walk(function, "linalg.generic"):
        _store_inputs(op)


def _is_of_index(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.IndexType)


def _stored(value: ir.Value) -> ir.Value | None:
    """Returns the tensor of integers that a tensor of `index` is made from; None for another tensor."""
    source = producer(value) if _is_of_index(value.type) else None
    if source is not None and source.name in _CASTS:
        return source.operands[0]
    if source is None or source.name != "arith.constant":
        return None
    shape = ir.RankedTensorType(value.type).shape
    type_ = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(64))
    # The text of the elements is that of integers.
    numbers = str(source.attributes["value"]).rpartition(" : ")[0]
    with ir.InsertionPoint(source), source.location:
        attributes = {"value": ir.Attribute.parse(f"{numbers} : {type_}")}
        return ir.Operation.create("arith.constant", results=[type_], attributes=attributes).results[0]


def _store_arguments(function: ir.Operation) -> None:
    """Gives arguments the type of buffers, and casts what they hold."""
    block = function.regions[0].blocks[0]
    arguments = [argument for argument in block.arguments if _is_of_index(argument.type)]
    for argument in arguments:
        type_ = argument.type
        shape = ir.RankedTensorType(type_).shape
        uses = list(argument.uses)
        argument.set_type(ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(64)))
        with ir.InsertionPoint.at_block_begin(block), function.location:
            cast = ir.Operation.create("arith.index_cast", results=[type_], operands=[argument]).results[0]
        for use in uses:
            use.owner.operation.operands[use.operand_number] = cast
    if arguments:
        set_signature(function)


def _store_inputs(op: ir.Operation) -> None:
    """Has the body of a `linalg.generic` cast the integers that it reads."""
    body = op.regions[0].blocks[0]
    for place, value in enumerate(list(op.operands)[: len(op.operands) - len(op.results)]):
        source = _stored(value)
        if source is None:
            continue
        op.operands[place] = source
        argument = body.arguments[place]
        uses = list(argument.uses)
        argument.set_type(ir.RankedTensorType(source.type).element_type)
        with ir.InsertionPoint.at_block_begin(body), op.location:
            number = arith.index_cast(ir.IndexType.get(), argument)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = number
