"""Contractions whose bodies compute a factor from several operands, such as a weight from its integer and its scale: an
elementwise op computes the factor, which kernels of matmuls do as they do producers that are ops of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, indexing_maps
from stepladder.mlir.traverse import producer, walk

_EXTENSION = "arith.extf"


@dataclass(frozen=True)
class _Factor:
    """A factor of the products of a contraction.

    Attributes:
        value: of the body, before it is extended to the type of the product.
        ops: of the body, that compute the value.
        leaves: indices of the operands that it is computed from.
        loops: that these are read by.
    """

    value: ir.Value
    ops: list[ir.Operation]
    leaves: list[int]
    loops: list[int]


# The attribute of a function that one kernel without matrix units computes, whatever is in it.
WHOLE = "one_plain_kernel"


def separate(function: ir.Operation) -> None:
    """Replaces contractions in floating point of three operands or more.

    Args:
        function: a function; it is changed where there are such ops on static tensors, unless it has `WHOLE`.
    """
    if WHOLE in function.attributes:
        return
    for op in walk(function, "linalg.generic"):
        factors = _factors(op)
        if factors is not None:
            _replace(op, factors)


def _factors(op: ir.Operation) -> list[_Factor] | None:
    """Returns the two factors of a contraction; None for other ops."""
    types = [operand.type for operand in op.operands]
    is_static = all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types)
    if not is_static or len(op.results) != 1 or len(types) < 4 or walk(op, "linalg.index", "tensor.extract"):
        return None
    maps, body = indexing_maps(op), op.regions[0].blocks[0]
    *arguments, so_far = body.arguments
    *_, end = [item.operation for item in body.operations]
    total = producer(end.operands[0])
    if total is None or total.name != "arith.addf" or len(list(so_far.uses)) != 1 or so_far not in list(total.operands):
        return None
    product = next((source for value in total.operands if (source := producer(value)) is not None), None)
    if product is None or product.name != "arith.mulf" or total.operands[0] == total.operands[1]:
        return None
    factors = [_factor(value, arguments, maps) for value in product.operands]
    loops = set(range(maps[0].n_dims))
    result_loops = {item.position for item in maps[-1].results if isinstance(item, ir.AffineDimExpr)}
    if any(not factor.leaves or set(factor.loops) == loops for factor in factors) or result_loops == loops:
        return None
    is_contraction = {loop for factor in factors for loop in factor.loops} == loops
    sizes = _sizes(op, maps)
    shared = set(factors[0].loops) & set(factors[1].loops)
    if not is_contraction or not loops - result_loops <= shared or len(sizes) < len(loops):
        return None
    # m, n and k; of a batch, also of one, in which one of them is 1, one kernel without matrix units computes all.
    parts = [set(factors[0].loops) - shared, set(factors[1].loops) - shared, shared - result_loops]
    has_vectors = any(math.prod(sizes[loop] for loop in part) == 1 for part in parts)
    return None if shared & result_loops and has_vectors else factors


def _factor(value: ir.Value, arguments: Sequence[ir.Value], maps: Sequence[ir.AffineMap]) -> _Factor:
    source = producer(value)
    if source is not None and source.name == _EXTENSION:
        value = source.operands[0]
    definitions: set[ir.Operation] = set()
    pending, leaves = [value], set[int]()
    while pending:
        pending_value = pending.pop()
        if pending_value in arguments:
            leaves.add(list(arguments).index(pending_value))
        elif (definition := producer(pending_value)) is not None and definition not in definitions:
            definitions.add(definition)
            pending += list(definition.operands)
    block = source.block.operations if source is not None else []
    ops = [item.operation for item in block if item.operation in definitions]
    loops = {loop for leaf in leaves for item in maps[leaf].results for loop in _loops(item)}
    return _Factor(value, ops, sorted(leaves), sorted(loops))


def _loops(item: ir.AffineExpr) -> list[int]:
    if isinstance(item, ir.AffineDimExpr):
        return [item.position]
    return [*_loops(item.lhs), *_loops(item.rhs)] if isinstance(item, ir.AffineBinaryExpr) else []


def _sizes(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> dict[int, int]:
    """Returns the iterations of the loops that an axis of an operand is."""
    return {
        item.position: extent
        for operand, map_ in zip(op.operands, maps)
        for extent, item in zip(ir.RankedTensorType(operand.type).shape, map_.results)
        if isinstance(item, ir.AffineDimExpr)
    }


def _replace(op: ir.Operation, factors: Sequence[_Factor]) -> None:
    maps = indexing_maps(op)
    with ir.InsertionPoint(op), op.location:
        operands = [_computed(op, factor, maps) for factor in factors]
        sums = op.operands[len(op.operands) - 1]
        generic, body = create_generic(
            [value for value, _ in operands], [sums], [*(map_ for _, map_ in operands), maps[-1]]
        )
        with ir.InsertionPoint(body):
            *values, so_far = body.arguments
            terms = [value if value.type == so_far.type else arith.extf(so_far.type, value) for value in values]
            ir.Operation.create("linalg.yield", operands=[arith.addf(so_far, arith.mulf(*terms))])
    op.results[0].replace_all_uses_with(generic.results[0])
    op.erase()


def _computed(op: ir.Operation, factor: _Factor, maps: Sequence[ir.AffineMap]) -> tuple[ir.Value, ir.AffineMap]:
    """Returns a factor as a tensor, and the map that the contraction reads it by; an operand as it is."""
    if not factor.ops and len(factor.leaves) == 1:
        return op.operands[factor.leaves[0]], maps[factor.leaves[0]]
    sizes = _sizes(op, maps)
    count = len(factor.loops)
    dims = {loop: ir.AffineExpr.get_dim(place) for place, loop in enumerate(factor.loops)}
    indices = [dims.get(loop, ir.AffineExpr.get_constant(0)) for loop in range(maps[0].n_dims)]
    inner = ir.AffineMap.get(count, 0, indices)
    read_maps = [
        ir.AffineMap.get(count, 0, [item.compose(inner) for item in maps[leaf].results]) for leaf in factor.leaves
    ]
    type_ = ir.RankedTensorType.get([sizes[loop] for loop in factor.loops], factor.value.type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    inputs = [op.operands[leaf] for leaf in factor.leaves]
    generic, body = create_generic(inputs, [empty], [*read_maps, ir.AffineMap.get_identity(count)])
    old = op.regions[0].blocks[0].arguments
    values: dict[ir.Value, ir.Value] = {old[leaf]: new for leaf, new in zip(factor.leaves, body.arguments)}
    copies = clone_ops(factor.ops, values, ir.InsertionPoint(body))
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[copies[factor.value]])
    return generic.results[0], ir.AffineMap.get(
        maps[0].n_dims, 0, [ir.AffineExpr.get_dim(loop) for loop in factor.loops]
    )
