"""Buffers of parts that kernels write where they belong in the buffer of a whole tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Rewriter
from stepladder.extension.lib.stages import ASSEMBLED, one_function
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import callee_of, origin, producer, symbol_of, walk
from stepladder.mlir.windows import BYTES
from stepladder.runtime.element_types import element_type


@dataclass(frozen=True)
class Placed:
    """Where a part is: in a buffer that the function allocates, or in a result, from a byte on."""

    whole: ir.Value
    begin: int


def placed_parts(payload: ir.Operation, rewriter: Rewriter) -> dict[ir.Operation, Placed]:
    """Returns where the buffers of parts are placed, by what allocates them, and erases the calls of the stages that
    would copy them there.

    Args:
        payload: a module with one public function on buffers.
        rewriter: of the transform op.
    """
    stages = {symbol_of(item): item for item in walk(payload, "func.func") if ASSEMBLED in item.attributes}
    placed: dict[ir.Operation, Placed] = {}
    for call in operations_of(one_function(payload).regions[0].blocks[0]):
        callee = callee_of(call)
        if callee not in stages:
            continue
        begins = list(ir.DenseI64ArrayAttr(stages[callee].attributes[ASSEMBLED]))
        *roots, whole = [origin(value, BUFFER_VIEWS) for value in call.operands]
        allocs = [
            op for op in map(producer, roots) if op is not None and op.name == "memref.alloc" and op not in placed
        ]
        sizes = [_bytes(value) for value in call.operands]
        is_own = len(set(allocs)) == len(begins) == len(roots) and whole not in roots
        if is_own and [_bytes(root) for root in roots] == sizes[:-1] and _bytes(whole) == sizes[-1]:
            placed |= {alloc: Placed(whole, begin) for alloc, begin in zip(allocs, begins)}
            rewriter.erase_op(call)
    return {alloc: _in_root(part, placed) for alloc, part in placed.items()}


def _in_root(part: Placed, placed: dict[ir.Operation, Placed]) -> Placed:
    """Returns the place of a part in a buffer that is no part of another one."""
    while (source := producer(part.whole)) is not None and source in placed:
        part = Placed(placed[source].whole, placed[source].begin + part.begin)
    return part


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
