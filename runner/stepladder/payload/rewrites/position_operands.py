"""Row and column numbers that the last elementwise ops on a product compare, as operands.

An epilogue knows no indices. A causal mask, a padding mask or a triangle of a product that is returned would be a
kernel of its own; with a vector of row numbers and one of column numbers it is part of the epilogue, like a bias. Masks
before a reduction, such as a softmax, stay: its kernel computes them.
"""

from __future__ import annotations

import math

from stepladder.mlir.bindings import arith, ir, passmanager
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload import positions
from stepladder.payload.arguments import donated
from stepladder.payload.pairs import is_contraction
from stepladder.payload.rewrites.computed_factors import WHOLE
from stepladder.payload.rewrites.index_arithmetic import Unknown, with_integers

_GENERIC, _INDEX = "linalg.generic", "linalg.index"
_LEAVES = ("func.return", "bufferization.materialize_in_destination")
_FUSES = "builtin.module(func.func(linalg-generalize-named-ops,linalg-fuse-elementwise-ops,canonicalize,cse))"
# Ops of a mask at most, counting those that are read twice twice.
_MOST = 32


def replace(function: ir.Operation) -> None:
    """Has elementwise ops on products take the indices of their loops as vectors of i32, constants of the function.

    Args:
        function: on tensors inside; it is changed where such an op reads a product, at the position of each element,
            and the function returns what it makes, maybe after other elementwise ops. A private one, such as a stage of
            another, stays, as the other has its constants, and so does one with `WHOLE`, whose kernel computes indices.
            So do ops that read an argument whose memory a result takes: they write only the elements in ranges of
            indices.
    """
    is_private = str(function.attributes.get("sym_visibility")) == '"private"'
    if len(function.regions[0].blocks) != 1 or is_private or WHOLE in function.attributes:
        return
    arguments = function.regions[0].blocks[0].arguments
    replaced: set[ir.Value] = {arguments[number] for number in donated(function)}
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    products: set[ir.Value] = {value for op in ops if is_contraction(op) for value in op.results}
    if not products:
        return
    known = _found(ops)
    made = [op for op in ops if known[op] and op.name not in positions.STARTS]
    vectors: dict[int, ir.Value] = {}
    for op in ops:
        if op.name in TENSOR_VIEWS and op.operands[0] in products:
            products.add(op.results[0])
        if not _is_elementwise(op) or not any(_is_read_in_place(op, value, products) for value in op.operands):
            continue
        result = op.results[0]
        if _leaves(result) and replaced.isdisjoint(op.operands):
            result = _replaced(op, known, vectors, function)
        products.add(result)
    for op in reversed(made):
        if not users_of(op.results[0]):
            op.erase()


def _found(ops: list[ir.Operation]) -> dict[ir.Operation, bool]:
    """Returns, by op, whether an epilogue may compute it instead of reading its result: tensors of positions, and what
    is made of tensors that are no larger for one reader, such as a comparison of positions with lengths."""
    known = positions.found(ops)
    behind: set[ir.Value] = set()
    for op in ops:
        if is_contraction(op) or not behind.isdisjoint(op.operands):
            behind.update(op.results)
        elif _is_elementwise(op) and positions.is_cheap(op) and len(list(op.results[0].uses)) == 1:
            known[op] = known[op] or all(_size(value) <= _size(op.results[0]) for value in op.operands)
    return known


def _size(value: ir.Value) -> int:
    return math.prod(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 1


def _is_elementwise(op: ir.Operation) -> bool:
    """Returns whether an op is a `linalg.generic` that computes each element of one static tensor once."""
    if op.name != _GENERIC or len(op.results) != 1 or not ir.ShapedType(op.results[0].type).has_static_shape:
        return False
    map_ = indexing_maps(op)[-1]
    return map_ == ir.AffineMap.get_identity(map_.n_dims)


def _is_read_in_place(op: ir.Operation, value: ir.Value, products: set[ir.Value]) -> bool:
    """Returns whether an operand, which the op may write over, is a product of which each element is read once."""
    return value in products and _size(value) == _size(op.results[0])


def _leaves(value: ir.Value) -> bool:
    """Returns whether a function returns a tensor, or what elementwise ops make of it, and nothing else reads it."""
    users = users_of(value)
    return bool(users) and all(
        user.name in _LEAVES or ((_is_elementwise(user) or user.name in TENSOR_VIEWS) and _leaves(user.results[0]))
        for user in users
    )


def _replaced(
    op: ir.Operation, known: dict[ir.Operation, bool], vectors: dict[int, ir.Value], function: ir.Operation
) -> ir.Value:
    """Replaces an op by one with operands for its indices, where it or a tensor that it reads depends on them; returns
    its result."""
    made = [item for operand in op.operands for item in positions.makers(operand, known)]
    if len(made) > _MOST or not any(walk(item, _INDEX) for item in (op, *made)):
        return op.results[0]
    fused = _fused(op, known)
    if fused is None or not walk(fused, _INDEX):
        return op.results[0]
    try:
        new = _with_operands(fused, vectors, function)
    except Unknown:
        fused.erase()
        return op.results[0]
    op.results[0].replace_all_uses_with(new)
    for item in (fused, op):
        item.erase()
    return new


def _fused(op: ir.Operation, known: dict[ir.Operation, bool]) -> ir.Operation | None:
    """Returns one op that computes an elementwise op and the tensors of positions that it reads, before the op; None
    where fusion leaves others."""
    kept = _kept(op, known)
    with op.location:
        module = ir.Module.create()
        type_ = ir.FunctionType.get([value.type for value in kept], [op.results[0].type])
        with ir.InsertionPoint(module.body):
            alone = ir.Operation.create(
                "func.func",
                attributes={"sym_name": ir.StringAttr.get("alone"), "function_type": ir.TypeAttr.get(type_)},
                regions=1,
            )
        block = alone.regions[0].blocks.append(*type_.inputs, arg_locs=[op.location] * len(kept))
        mapping: dict[ir.Value, ir.Value] = dict(zip(kept, block.arguments))
        point = ir.InsertionPoint(block)
        for value in (*op.operands, *_captured(op)):
            mapping[value] = _copied(value, mapping, point)
        copies = clone_ops([op], mapping, point)
        with point:
            ir.Operation.create("func.return", operands=[copies[op.results[0]]])
    passmanager.PassManager.parse(_FUSES).run(module.operation)
    ops = [item.operation for item in block.operations][:-1]
    structured = [item for item in ops if item.name.startswith("linalg.") and item.name != "linalg.fill"]
    others = [item for item in ops if item not in structured and item.name not in positions.STARTS]
    if len(structured) != 1 or others or not _is_elementwise(structured[0]):
        return None
    new = clone_ops(ops, dict(zip(block.arguments, kept)), ir.InsertionPoint(op))
    return producer(new[structured[0].results[0]])


def _kept(op: ir.Operation, known: dict[ir.Operation, bool]) -> list[ir.Value]:
    """Returns what an elementwise op, and the makers of what it reads, take from outside, each once."""
    kept: dict[ir.Value, None] = {}
    for value in (*op.operands, *_captured(op)):
        source = producer(value)
        if source is None or not known.get(source, False):
            kept[value] = None
        else:
            kept.update(dict.fromkeys(_kept(source, known)))
    return list(kept)


def _copied(value: ir.Value, mapping: dict[ir.Value, ir.Value], point: ir.InsertionPoint) -> ir.Value:
    """Returns a copy of a value at an insertion point, with all that makes it but for what a mapping has."""
    if value in mapping:
        return mapping[value]
    source = producer(value)
    assert source is not None  # of positions
    copies = {operand: _copied(operand, mapping, point) for operand in (*source.operands, *_captured(source))}
    return clone_ops([source], copies, point)[value]


def _captured(op: ir.Operation) -> list[ir.Value]:
    """Returns the values from outside that the body of an op uses."""
    inner = walk(op)[1:]
    operands = dict.fromkeys(operand for item in inner for operand in item.operands)
    block = op.regions[0].blocks[0] if len(op.regions) else None
    made = {result for item in inner for result in item.results}
    return [value for value in operands if value.owner != block and value not in made]


def _with_operands(op: ir.Operation, vectors: dict[int, ir.Value], function: ir.Operation) -> ir.Value:
    """Returns the result of an op with a vector of numbers in place of each index, after the op."""
    *maps, identity = indexing_maps(op)
    sizes = list(ir.RankedTensorType(op.results[0].type).shape)
    loops = sorted({ir.IntegerAttr(item.attributes["dim"]).value for item in walk(op, _INDEX)})
    numbers = [_numbers(sizes[loop], vectors, function) for loop in loops]
    vector_maps = [ir.AffineMap.get(len(sizes), 0, [ir.AffineExpr.get_dim(loop)]) for loop in loops]
    *inputs, output = op.operands
    with ir.InsertionPoint.after(op), op.location:
        new, block = create_generic([*inputs, *numbers], [output], [*maps, *vector_maps, identity])
    *arguments, last = block.arguments
    try:
        with ir.InsertionPoint(block):
            with_integers(op, dict(zip(loops, arguments[len(inputs) :])), [*arguments[: len(inputs)], last], sizes)
    except Unknown:
        new.erase()
        raise
    return new.results[0]


def _numbers(size: int, vectors: dict[int, ir.Value], function: ir.Operation) -> ir.Value:
    """Returns the numbers from 0 on, as a constant of i32 at the begin of a function."""
    if size not in vectors:
        type_ = ir.RankedTensorType.get([size], ir.IntegerType.get_signless(32))
        value = ir.Attribute.parse(f"dense<{list(range(size))}> : {type_}")
        with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
            vectors[size] = arith.constant(type_, value)
    return vectors[size]
