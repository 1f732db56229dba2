"""Buffers of parts that kernels write where they belong in the buffer of a whole tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.multi_kernel.columns import pitches
from stepladder.extension.lib.multi_kernel.donation import kept_operands
from stepladder.extension.lib.multi_kernel.stages import ASSEMBLED, EXTENTS, one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import callee_of, origin, producer, symbol_of, users_of, walk
from stepladder.mlir.windows import BYTES
from stepladder.runtime.element_types import element_type


@dataclass(frozen=True)
class Placed:
    """Where a part is: in a buffer that the function allocates, or in a result, from a byte on; with the strides of
    columns, in elements."""

    buffer: ir.Value
    begin: int
    strides: list[int] | None = None


def placed_parts(payload: ir.Operation, rewriter: Rewriter) -> dict[ir.Operation, Placed]:
    """Returns where the buffers of parts are placed, by what allocates them, and erases the calls of the stages that
    would copy them there.

    Args:
        payload: a module with one public function on buffers.
        rewriter: of the transform op.
    """
    stages = {symbol_of(item): item for item in walk(payload, "func.func") if ASSEMBLED in item.attributes}
    places: dict[ir.Operation, Placed] = {}
    for call in operations_of(one_function(payload).regions[0].blocks[0]):
        callee = callee_of(call)
        if callee not in stages:
            continue
        begins = list(ir.DenseI64ArrayAttr(stages[callee].attributes[ASSEMBLED]))
        operands = kept_operands(call, stages[callee])
        *roots, root_of_all = [origin(value, BUFFER_VIEWS) for value in operands]
        allocs = [
            op for op in map(producer, roots) if op is not None and op.name == "memref.alloc" and op not in places
        ]
        sizes = [_bytes(value) for value in operands]
        is_own = len(set(allocs)) == len(begins) == len(roots) and root_of_all not in roots
        if len(operands) < len(call.operands):  # the rest is in the memory of an argument, which the result takes
            is_own = is_own and producer(root_of_all) is None
        if is_own and [_bytes(root) for root in roots] == sizes[:-1] and _bytes(root_of_all) == sizes[-1]:
            strides = _pitches(call, stages[callee], roots)
            places |= {alloc: Placed(root_of_all, begin, item) for alloc, begin, item in zip(allocs, begins, strides)}
            rewriter.erase_op(call)
            erase_views(allocs, rewriter)
    return {alloc: _in_root(part, places) for alloc, part in places.items()}


def _in_root(part: Placed, places: dict[ir.Operation, Placed]) -> Placed:
    """Returns the position of a part in a buffer that is no part of another one."""
    while (source := producer(part.buffer)) is not None and source in places:
        part = Placed(places[source].buffer, places[source].begin + part.begin, part.strides)
    return part


def _pitches(call: ir.Operation, stage: ir.Operation, roots: Sequence[ir.Value]) -> list[list[int] | None]:
    """Returns the strides of the parts that a stage assembles; None for elements that follow each other."""
    if EXTENTS not in stage.attributes:
        return [None] * len(roots)
    shape = ir.MemRefType(list(call.operands)[-1].type).shape
    return pitches(stage, shape, [ir.MemRefType(root.type).shape for root in roots])


def erase_views(allocs: Sequence[ir.Operation], rewriter: Rewriter) -> None:
    """Erases the views of buffers that nothing uses.

    Args:
        allocs: what makes the buffers.
        rewriter: of the transform op.
    """
    for alloc in allocs:
        for user in users_of(alloc.results[0]):
            if user.name in BUFFER_VIEWS:
                erase_views([user], rewriter)
                if not list(user.results[0].uses):
                    rewriter.erase_op(user)


def set_layout(call: ir.Operation, place: int, callee: ir.Operation) -> None:
    """Gives an argument of a stage the type of what it is called with, columns of a buffer.

    Args:
        call: of the stage.
        place: index of the argument.
        callee: the stage.
    """
    type_ = call.operands[place].type
    if callee.regions[0].blocks:
        callee.regions[0].blocks[0].arguments[place].set_type(type_)
    function = ir.FunctionType(ir.TypeAttr(callee.attributes["function_type"]).value)
    inputs = [type_ if number == place else item for number, item in enumerate(function.inputs)]
    callee.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, list(function.results)))


def _bytes(value: ir.Value) -> int:
    type_ = ir.MemRefType(value.type)
    return math.prod(type_.shape) * element_type(str(type_.element_type)).bytes


def bytes_of(result: ir.Value, body: ir.Block) -> ir.Value:
    """Returns the bytes of a result's buffer, at the beginning of the function.

    Args:
        result: an argument of the function that it writes.
        body: of the function.
    """
    for use in result.uses:
        if use.owner.operation.name == BYTES:
            return use.owner.operation.results[0]
    byte = ir.MemRefType.get([_bytes(result)], ir.IntegerType.get_signless(8))
    with ir.InsertionPoint.at_block_begin(body), result.location:
        return ir.Operation.create(BYTES, results=[byte], operands=[result]).results[0]
