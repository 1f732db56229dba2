"""Scalars that a function computes outside of its linalg ops: each op that reads one computes it.

Kernels take tensors, and scalars of the caller. What is computed from these between the ops, such as a product of two
factors or an element of a tensor, is part of the bodies that read it.
"""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import producer, walk

_COMPUTED = ("arith.", "math.")
_ELEMENT = "tensor.extract"


def sink(function: ir.Operation) -> None:
    """Moves scalars that ops of a function compute into the bodies of its linalg ops, named ones too, and its fills.

    Args:
        function: a function of one block; it is changed if there are such scalars.
    """
    if len(function.regions[0].blocks) != 1:
        return
    block = function.regions[0].blocks[0]
    for op in [item.operation for item in block.operations]:
        if op.name == "linalg.fill" and len(op.results) == 1 and _chain(op.operands[0], block):
            _replace_fill(op)
        elif op.name == "arith.select" and _chooses_a_tensor(op):
            _replace_choice(op)
        elif op.name in ("linalg.generic", "linalg.map") and len(op.results):
            _sink_into(op, block)
        elif len(op.results) == 1 and op.name.startswith("linalg.") and _takes_computed(op):
            _replace_named(op)


def _chain(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """Returns the ops of a block that compute a scalar, in order; none for a constant."""
    op = producer(value)
    is_number = not isinstance(value.type, ir.ShapedType)
    if op is None or op.block != block or not is_number or op.name == "arith.constant":
        return []
    if op.name != _ELEMENT and not op.name.startswith(_COMPUTED):
        return []
    ops: list[ir.Operation] = []
    for operand in op.operands:
        ops += [item for item in _chain(operand, block) if item not in ops]
    return [*ops, op]


def _sink_into(op: ir.Operation, block: ir.Block) -> None:
    body = op.regions[0].blocks[0]
    chain: list[ir.Operation] = []
    for inner in walk(op):
        if inner != op:
            for operand in inner.operands:
                chain += [item for item in _chain(operand, block) if item not in chain]
    if not chain:
        return
    users = [inner for inner in walk(op) if inner != op]
    clones = clone_ops(chain, {}, ir.InsertionPoint.at_block_begin(body))
    for inner in users:
        for place, operand in enumerate(inner.operands):
            if operand in clones:
                inner.operands[place] = clones[operand]
    _drop(chain)


def _replace_fill(op: ir.Operation) -> None:
    """Replaces a fill with a scalar by an op that computes the scalar."""
    number, output = op.operands
    block = op.block
    rank = ir.RankedTensorType(output.type).rank
    with ir.InsertionPoint(op), op.location:
        generic, body = create_generic([], [output], [ir.AffineMap.get_identity(rank)])
        with ir.InsertionPoint(body):
            ir.Operation.create("linalg.yield", operands=[number])
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()
    _sink_into(generic, block)


def _takes_computed(op: ir.Operation) -> bool:
    """Returns whether an op takes a computed scalar."""
    return any(_chain(value, op.block) for value in op.operands)


def _replace_named(op: ir.Operation) -> None:
    """Replaces a named op that takes computed scalars, such as zero points, by an op whose body computes them."""
    *inputs, output = op.operands
    *maps, result_map = indexing_maps(op)
    block, old_body = op.block, op.regions[0].blocks[0]
    is_computed = [bool(_chain(value, block)) for value in inputs]
    kept = [place for place, item in enumerate(is_computed) if not item]
    with ir.InsertionPoint(op), op.location:
        generic, body = create_generic(
            [inputs[place] for place in kept], [output], [*(maps[place] for place in kept), result_map]
        )
    *old_arguments, old_last = old_body.arguments
    *arguments, last = body.arguments
    values: dict[ir.Value, ir.Value] = dict(zip((old_arguments[place] for place in kept), arguments))
    values |= {argument: inputs[place] for place, argument in enumerate(old_arguments) if is_computed[place]}
    clone_ops([item.operation for item in old_body.operations], {**values, old_last: last}, ir.InsertionPoint(body))
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()
    _sink_into(generic, block)


def _chooses_a_tensor(op: ir.Operation) -> bool:
    """Returns whether an op chooses one of two tensors by one scalar."""
    return isinstance(op.results[0].type, ir.RankedTensorType) and not isinstance(op.operands[0].type, ir.ShapedType)


def _replace_choice(op: ir.Operation) -> None:
    """Replaces a choice of a whole tensor by one of each element."""
    condition, *values = op.operands
    block, type_ = op.block, ir.RankedTensorType(op.results[0].type)
    if not type_.has_static_shape:
        return
    with ir.InsertionPoint(op), op.location:
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        generic, body = create_generic(values, [empty], [ir.AffineMap.get_identity(type_.rank)] * 3)
        with ir.InsertionPoint(body):
            value = arith.select(condition, *list(body.arguments)[:2])
            ir.Operation.create("linalg.yield", operands=[value])
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()
    _sink_into(generic, block)


def _drop(chain: list[ir.Operation]) -> None:
    """Erases ops that nothing reads any more."""
    for op in reversed(chain):
        if not any(list(result.uses) for result in op.results):
            op.erase()
