"""Attention as front ends write it, in the form that `attention` recognizes.

torch-mlir extends queries, keys and values to f32, transposes keys, and computes the index of each maximum too. As JAX
writes it, copies between the products repeat rows, transpose scores or add axes; the second product is in bf16, as
other matmuls in bf16 are before they accumulate in f32; and the result is transposed. Products read the tensors as they
are, in the order of axes in which their results are read, and elementwise ops are fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.attention import Attention
from stepladder.extension.lib.multi_kernel.attention_softmax import is_constant
from stepladder.extension.lib.multi_kernel.products import axes_read, is_contraction
from stepladder.extension.lib.multi_kernel.stages import in_order, inner_ops, is_elementwise, is_extension
from stepladder.extension.lib.multi_kernel.transposed_operands import absorbed
from stepladder.mlir.bindings import arith, ir, passmanager
from stepladder.mlir.linalg_ops import axis_loops, create_generic, create_named_op, indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import attributes_of, origin, producer, users_of, walk
from stepladder.mlir.types import element_of

_GENERIC, _TRANSPOSE = "linalg.generic", "linalg.transpose"
_WITHOUT_UNITS = "func.func(linalg-fold-unit-extent-dims,canonicalize)"
_FUSED = "func.func(linalg-fuse-elementwise-ops,canonicalize,cse)"
# An op of several operands that passes leave as it is.
_OPAQUE = "builtin.unrealized_conversion_cast"
_PRODUCTS = 2  # of an attention
# Ops of the bodies of those that move or round the result.
_ROUNDING = {"arith.truncf", "linalg.yield"}


def ops_around(second: ir.Operation) -> list[ir.Operation]:
    """Returns what may be an attention: a product, the one that its operand is computed from, the ops between them,
    and those that round and transpose the result, in order; none where there is no such product, or where another op
    reads scores, weights, or what is computed from them.

    Args:
        second: a contraction on tensors.
    """
    ops: dict[ir.Operation, None] = {}
    for operand in list(second.operands)[:2]:
        before = _made_of(operand)
        has_powers = any("math.exp" in inner_ops(op) for op in before if op.name == _GENERIC)
        if has_powers and sum(is_contraction(op) for op in before) == 1:
            ops |= before
    if not ops:
        return []
    for product in [second, *filter(is_contraction, ops)]:
        ops |= dict.fromkeys(prepared for value in list(product.operands)[:2] for prepared in _preparing(value))
    after = [second]
    while len(users := users_of(after[-1].results[0])) == 1 and _follows(users[0]):
        after.append(users[0])
    while after[-1].name in TENSOR_VIEWS:
        after.pop()
    around = in_order([*ops, *after])
    computed: set[ir.Operation] = set()  # from the product of queries and keys
    for op in around[:-1]:
        if is_contraction(op) or any(producer(operand) in computed for operand in op.operands):
            computed.add(op)
            if any(user not in around for user in users_of(op.results[0])):
                return []
    return around


def _made_of(value: ir.Value) -> dict[ir.Operation, None]:
    """Returns the ops that make a tensor, from the products that they read on."""
    found: dict[ir.Operation, None] = {}
    pending = [value]
    while pending:
        op = producer(pending.pop())
        if op is None or op in found or not op.name.startswith(("linalg.", *TENSOR_VIEWS)):
            continue
        found[op] = None
        if not is_contraction(op):
            pending += op.operands
    return found


def reads_copies(attention: Attention) -> bool:
    """Returns whether an operand of an attention is the transposed, repeated or extended copy of a tensor.

    Args:
        attention: in the form that `attention` recognizes.
    """
    operands = (attention.queries, attention.keys, attention.values)
    return any(op.name not in TENSOR_VIEWS for operand in operands for op in _preparing(operand.value))


def _preparing(value: ir.Value) -> list[ir.Operation]:
    """Returns the ops that make an operand of a product, and only extend, transpose, repeat or reshape a tensor."""
    found: list[ir.Operation] = []
    op = producer(value)
    while op is not None and (op.name in TENSOR_VIEWS or axes_read(op) is not None or is_extension(op)):
        found.append(op)
        op = producer(op.operands[0])
    return found


def _follows(op: ir.Operation) -> bool:
    """Returns whether an op rounds, transposes or reshapes a result."""
    if op.name in (*TENSOR_VIEWS, _TRANSPOSE):
        return True
    return op.name == _GENERIC and is_elementwise(op) and len(op.operands) == 2 and set(inner_ops(op)) <= _ROUNDING


def normalize(function: ir.Operation) -> None:
    """Rewrites a function of such ops.

    Args:
        function: on tensors.

    Raises:
        Refusal: products with other starts or types.
    """
    body = function.regions[0].blocks[0]
    for op in filter(is_contraction, operations_of(body)):
        _accumulate(op)
    for op in walk(function, _TRANSPOSE, "linalg.broadcast"):
        _generalize(op)
    _simplify(function)
    for op in filter(is_contraction, operations_of(body)):
        result = absorbed(op, (), with_views=True)
        if result is not None:
            _replace(op, result)
    _simplify(function)
    products = [op for op in operations_of(body) if is_contraction(op)]
    if len(products) == _PRODUCTS:
        _order_scores(*products)
    for op in operations_of(body):
        if op.name == _GENERIC and is_elementwise(op):
            _read_in_order(op)
    _simplify(function)
    for op in filter(is_contraction, operations_of(body)):
        attributes = {"indexing_maps": op.attributes["indexing_maps"]}
        with ir.InsertionPoint(op), op.location:
            contraction = create_named_op("linalg.contract", list(op.operands)[:2], op.operands[2], attributes)
        _replace(op, contraction.results[0])


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _generalize(copy: ir.Operation) -> None:
    """Replaces a transpose or a broadcast by a `linalg.generic`, which is fused with elementwise ops."""
    with ir.InsertionPoint(copy), copy.location:
        value = _copied(copy.operands[0], copy.operands[1], indexing_maps(copy))
    _replace(copy, value)


def _simplify(function: ir.Operation) -> None:
    """Drops loops of one iteration, and fuses elementwise ops with each other, but not with products."""
    without_units = passmanager.PassManager.parse(_WITHOUT_UNITS, function.context)
    without_units.run(function)
    for op in filter(is_contraction, operations_of(function.regions[0].blocks[0])):
        with ir.InsertionPoint(op), op.location:
            maps = {"indexing_maps": op.attributes["indexing_maps"]}
            opaque = ir.Operation.create(_OPAQUE, [op.results[0].type], list(op.operands)[:2], maps)
        _replace(op, opaque.results[0])
    passmanager.PassManager.parse(_FUSED, function.context).run(function)
    for op in walk(function, _OPAQUE):
        with ir.InsertionPoint(op), op.location:
            maps = [ir.AffineMapAttr(map_).value for map_ in ir.ArrayAttr(op.attributes["indexing_maps"])]
            value = _product(list(op.operands), maps, ir.RankedTensorType(op.results[0].type).shape)
        _replace(op, value)
    without_units.run(function)  # fusion moves reshapes that add them


def _accumulate(product: ir.Operation) -> None:
    """Replaces a product by one of operands before they are extended, in f32 where it is in bf16."""
    fill = producer(origin(product.operands[2], TENSOR_VIEWS))
    type_ = ir.RankedTensorType(product.results[0].type)
    is_zero = fill is not None and fill.name == "linalg.fill" and is_constant(fill.operands[0], 0.0)
    is_narrow = isinstance(type_.element_type, ir.BF16Type)
    if not is_zero or not (is_narrow or isinstance(type_.element_type, ir.F32Type)):
        raise Refusal(product, "products that are not added to zeros in f32 or bf16")
    with ir.InsertionPoint(product), product.location:
        operands = [_narrowed(operand) for operand in list(product.operands)[:2]]
        value = _product(operands, indexing_maps(product), type_.shape)
        if is_narrow:
            identity = ir.AffineMap.get_identity(type_.rank)
            empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
            rounding, body = create_generic([value], [empty], [identity, identity])
            with ir.InsertionPoint(body):
                rounded = arith.truncf(type_.element_type, body.arguments[0])
                ir.Operation.create("linalg.yield", operands=[rounded])
            value = rounding.results[0]
    _replace(product, value)


def _narrowed(value: ir.Value) -> ir.Value:
    """Returns an operand without the op that extends it, which others that only move elements may follow, at the
    insertion point; the operand if there is none."""
    moves: list[ir.Operation] = []
    op = producer(value)
    while op is not None and not is_extension(op):
        if op.name not in TENSOR_VIEWS and axes_read(op) is None:
            return value
        moves.insert(0, op)
        op = producer(op.operands[0])
    if op is None:
        return value
    result = op.operands[0]
    for move in moves:
        type_ = ir.RankedTensorType.get(ir.RankedTensorType(move.results[0].type).shape, element_of(result.type))
        if move.name in TENSOR_VIEWS:
            result = ir.Operation.create(move.name, [type_], [result], attributes_of(move)).results[0]
        else:
            empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
            result = _copied(result, empty, indexing_maps(move))
    return result


def _copied(source: ir.Value, output: ir.Value, maps: list[ir.AffineMap]) -> ir.Value:
    """Creates a copy of a tensor, at the insertion point."""
    generic, body = create_generic([source], [output], maps)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    return generic.results[0]


def _product(factors: Sequence[ir.Value], maps: list[ir.AffineMap], shape: list[int]) -> ir.Value:
    """Creates the product of two tensors in f32, at the insertion point."""
    f32 = ir.F32Type.get()
    empty = ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get(shape, f32)]).results[0]
    zeros = create_named_op("linalg.fill", [arith.constant(f32, 0.0)], empty).results[0]
    generic, body = create_generic(factors, [zeros], maps)
    with ir.InsertionPoint(body):
        *elements, so_far = body.arguments
        left, right = (item if item.type == f32 else arith.extf(f32, item) for item in elements)
        ir.Operation.create("linalg.yield", operands=[arith.addf(so_far, arith.mulf(left, right))])
    return generic.results[0]


def _read_in_order(reader: ir.Operation) -> None:
    """Has an elementwise op read a product in the order of its loops, which the product then has."""
    maps = indexing_maps(reader)
    identity = ir.AffineMap.get_identity(maps[-1].n_dims)
    for place, map_ in enumerate(maps[:-1]):
        product = producer(reader.operands[place])
        is_transposed = map_.is_permutation and map_ != identity == maps[-1]
        if product is None or not is_contraction(product) or not is_transposed or len(users_of(product.results[0])) > 1:
            continue
        *read, made = indexing_maps(product)
        axes = [ir.AffineDimExpr(item).position for item in map_.results]
        order = [axes.index(loop) for loop in range(len(axes))]
        shape = ir.RankedTensorType(product.results[0].type).shape
        new = ir.AffineMap.get(made.n_dims, 0, [made.results[axis] for axis in order])
        with ir.InsertionPoint(product), product.location:
            reader.operands[place] = _product(list(product.operands)[:2], [*read, new], [shape[axis] for axis in order])
        product.erase()
        maps[place] = identity
        reader.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(item) for item in maps])


def _order_scores(first: ir.Operation, second: ir.Operation) -> None:
    """Gives scores, and what is computed from them, the axes of heads first, and then those of queries and keys.

    Maxima are along the keys. Of the other axes, which the keys have not, the longest one is that of the queries.
    """
    *read, made = indexing_maps(first)
    shape = ir.RankedTensorType(first.results[0].type).shape
    readers = _readers(first, second)
    if not all(_is_of_loops(op, {first, *readers}) for op in readers):
        return
    ops = in_order(readers)
    key = _reduced_axis(first, ops)
    if key is None:
        return
    loops = axis_loops(made)
    of_keys = next((axis_loops(map_) for map_ in read if loops[key] in axis_loops(map_)), None)
    others = [axis for axis in range(len(loops)) if axis != key]
    rows = [axis for axis in others if of_keys is not None and loops[axis] not in of_keys]
    if not rows:
        return
    row = max(rows, key=lambda axis: shape[axis])
    order = [*(axis for axis in others if axis != row), row, key]
    orders: dict[ir.Value, list[int]] = {first.results[0]: order}
    _permute(first, order, [*read, _permuted(made, order)])
    for op in ops:
        maps = [
            _permuted(map_, orders[value]) if value in orders else map_
            for value, map_ in zip(op.operands, indexing_maps(op))
        ]
        scores = next(map_ for value, map_ in zip(op.operands, maps) if value in orders)
        loops = [ir.AffineDimExpr(item).position for item in scores.results]
        loops += [loop for loop in range(scores.n_dims) if loop not in loops]
        maps = [_renumbered(map_, loops) for map_ in maps]
        kept = [ir.AffineDimExpr(item).position for item in maps[-1].results]
        orders[op.results[0]] = order = sorted(range(len(kept)), key=kept.__getitem__)
        kinds = list(ir.ArrayAttr(op.attributes["iterator_types"]))
        op.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[loop] for loop in loops])
        for item in walk(op, "linalg.index"):
            dimension = loops.index(ir.IntegerAttr(item.attributes["dim"]).value)
            item.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
        _permute(op, order, [*maps[:-1], _permuted(maps[-1], order)])
    maps = [
        _permuted(map_, orders[value]) if value in orders else map_
        for value, map_ in zip(second.operands, indexing_maps(second))
    ]
    second.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])


def _reduced_axis(first: ir.Operation, ops: list[ir.Operation]) -> int | None:
    """Returns the axis of a product along which the first reduction of it, or of what ops compute from it, is; None
    where that reduces several axes, or where there is no reduction."""
    axes: dict[ir.Value, list[int | None]] = {first.results[0]: list(range(len(indexing_maps(first)[-1].results)))}
    for op in ops:
        *read, made = map(axis_loops, indexing_maps(op))
        by_loop = {}
        for value, loops in zip(op.operands, read):
            by_loop.update(zip(loops, axes.get(value, [])))
        reduced = [axis for loop, axis in by_loop.items() if loop not in made]
        if reduced:
            return reduced[0] if len(reduced) == 1 else None
        axes[op.results[0]] = [by_loop.get(loop) for loop in made]
    return None


def _is_of_loops(op: ir.Operation, makers: set[ir.Operation]) -> bool:
    """Returns whether an op has one result, and loops alone index it and the operands that `makers` make."""
    if op.name != _GENERIC or len(op.results) != 1:
        return False
    *read, made = indexing_maps(op)
    maps = [made, *(map_ for value, map_ in zip(op.operands, read) if producer(value) in makers)]
    return all(isinstance(item, ir.AffineDimExpr) for map_ in maps for item in map_.results)


def _readers(first: ir.Operation, second: ir.Operation) -> list[ir.Operation]:
    """Returns the ops that read a product, or what others compute from it, up to the second product: those in
    bodies too, and those without results."""
    found: dict[ir.Operation, None] = {}
    pending = list(first.results)
    while pending:
        for user in users_of(pending.pop()):
            if user not in found and user != second:
                found[user] = None
                pending += user.results
    return list(found)


def _permuted(map_: ir.AffineMap, order: list[int]) -> ir.AffineMap:
    """Returns the map of a tensor whose axes have another order."""
    return ir.AffineMap.get(map_.n_dims, 0, [map_.results[axis] for axis in order])


def _renumbered(map_: ir.AffineMap, loops: list[int]) -> ir.AffineMap:
    """Returns a map of loops in another order."""
    dimensions = [ir.AffineExpr.get_dim(loops.index(loop)) for loop in range(map_.n_dims)]
    return ir.AffineMap.get(
        map_.n_dims,
        0,
        [
            dimensions[ir.AffineDimExpr(item).position] if isinstance(item, ir.AffineDimExpr) else item
            for item in map_.results
        ],
    )


def _permute(op: ir.Operation, order: list[int], maps: list[ir.AffineMap]) -> None:
    """Gives the result of an op another order of axes, and the op other maps."""
    old = ir.RankedTensorType(op.results[0].type)
    type_ = ir.RankedTensorType.get([old.shape[axis] for axis in order], old.element_type)
    output = len(op.operands) - 1
    start = producer(op.operands[output])
    with ir.InsertionPoint(op), op.location:
        value = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        if start is not None and start.name == "linalg.fill":
            value = create_named_op("linalg.fill", [start.operands[0]], value).results[0]
    op.operands[output] = value
    op.results[0].set_type(type_)
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])
