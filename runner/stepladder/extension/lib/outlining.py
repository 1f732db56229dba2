"""Moves the elementwise op on a product to a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stepladder.extension.lib import memory
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.epilogues.elementwise import MARK
from stepladder.extension.lib.functions import create_private_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, producer


def outline(
    module: ir.Operation,
    generic: ir.Operation,
    arguments: Sequence[ir.Value],
    operands: Callable[..., Sequence[ir.Value]],
    attributes: Mapping[str, ir.Attribute],
) -> None:
    """Moves a `linalg.generic` to a private function, and calls that in its place.

    Args:
        module: to which the function is added.
        generic: the op, on buffers.
        arguments: of the call; the function returns the last, C's tile and those of the results beside it.
        operands: given the arguments inside the function, the operands of the op there, at the insertion point.
        attributes: of the call, beside its mark.

    Raises:
        Refusal: the body of the op takes a value from outside that is no constant.
    """
    _sink_constants(generic)
    name = memory.unique_symbol(module, "consumer")
    types = [argument.type for argument in arguments]
    outputs = len(generic.regions[0].blocks[0].operations[-1].operands)
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), generic.location:
        function = create_private_function(name, types, types[-outputs:], generic.location, MARK)
        block = function.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            inside = operands(*block.arguments)
            # C's tile, as the op would return on tensors: `erase_dead_alloc_and_stores` takes a call without a result
            # for one that does not read its operands.
            end = ir.Operation.create("func.return", operands=list(block.arguments)[-outputs:])
    with ir.InsertionPoint(generic), generic.location:
        ir.Operation.create(
            "func.call",
            results=types[-outputs:],
            operands=list(arguments),
            attributes={"callee": ir.FlatSymbolRefAttr.get(name), MARK: ir.UnitAttr.get(), **attributes},
        )
    generic.move_before(end)
    for position, operand in enumerate(inside):
        generic.operands[position] = operand


def _sink_constants(generic: ir.Operation) -> None:
    """Copies the constants that the body takes from outside into it."""
    body = generic.regions[0].blocks[0]
    for inner in operations_of(body):
        for position, value in enumerate(inner.operands):
            source = producer(value)
            if source.block == body if source is not None else value in list(body.arguments):
                continue
            if source is None or source.name != "arith.constant":
                raise Refusal(generic, "the body captures a value that is not a constant")
            with ir.InsertionPoint(inner), inner.location:
                inner.operands[position] = ir.Operation.create(
                    source.name, results=[value.type], attributes=attributes_of(source)
                ).results[0]
