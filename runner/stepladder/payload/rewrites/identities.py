"""Ops that change nothing, such as a multiplication by 1, or name the tensor to copy to: an operand is their result.

Fusion would fold the last elementwise op on a product away, and leave an epilogue without an op.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import producer, users_of, walk

_GENERIC = "linalg.generic"
_COPY = "bufferization.materialize_in_destination"
_LEAVES = ("func.return", _COPY)


def forward(function: ir.Operation) -> None:
    """Replaces the results of `linalg.generic` ops that fold to their one input, by upstream's folds, by this input,
    and those of `bufferization.materialize_in_destination` to tensors by what it copies.

    Args:
        function: a function; it is changed where there are such ops.
    """
    for op in walk(function, _COPY):
        if len(op.results) and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    for op in walk(function, _GENERIC):
        if _may_change_nothing(op) and _folds(op):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _may_change_nothing(op: ir.Operation) -> bool:
    """Returns whether an op has one input and one result of the same type and order, and can be left out.

    A result that leaves the function stays, unless nothing else reads the input: no value leaves twice, and no argument
    leaves unchanged.
    """
    if len(op.results) != 1 or len(op.operands) != 2 or op.operands[0].type != op.results[0].type:
        return False
    kept, (read, written) = op.operands[0], indexing_maps(op)
    leaves = any(user.name in _LEAVES for user in users_of(op.results[0]))
    if leaves and (producer(kept) is None or len(list(kept.uses)) > 1):
        return False
    return read == written and written.is_permutation


def _folds(op: ir.Operation) -> bool:
    """Returns whether canonicalization replaces an op by its input. A copy is canonicalized, so that no other op
    changes."""
    kept, output = (operand.type for operand in op.operands)
    text = f"func.func @alone(%kept: {kept}, %output: {output}) -> {kept} {{ return %kept : {kept} }}"
    module = ir.Module.parse(text, op.context)
    block = module.body.operations[0].regions[0].blocks[0]
    end = block.operations[0].operation
    with ir.InsertionPoint(end):
        copy = op.clone().operation
    for number, argument in enumerate(block.arguments):
        copy.operands[number] = argument
    end.operands[0] = copy.results[0]
    if not _copy_constants(copy):
        return False
    passmanager.PassManager.parse("builtin.module(canonicalize)", op.context).run(module.operation)
    (end,) = walk(module, "func.return")
    return isinstance(end.operands[0].owner, ir.Block) and ir.BlockArgument(end.operands[0]).arg_number == 0


def _copy_constants(op: ir.Operation) -> bool:
    """Copies the constants that the body of an op takes from outside of it to the block of the op. Returns whether it
    takes nothing else from there."""
    _, *nested = walk(op)
    blocks = [block for each in (op, *nested) for region in each.regions for block in region.blocks]
    inside = {value for owner in nested for value in owner.results}
    inside |= {value for block in blocks for value in block.arguments}
    for inner in nested:
        for number, value in enumerate(inner.operands):
            if value in inside:
                continue
            source = producer(value)
            if source is None or source.name != "arith.constant":
                return False
            with ir.InsertionPoint(op):
                inner.operands[number] = source.clone().operation.results[0]
    return True
