"""Elementwise ops whose loops follow what they write, made to follow what they read.

A transpose that is fused with the ops before it, such as a layer norm, has the loops of its result: its rows are those
of what it reads in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import walk

# The attribute of an op whose loops are in another order than before, which it lists.
_ORDER = "order_of_loops"


def turn(generics: Iterable[ir.Operation]) -> None:
    """Gives the loops of elementwise ops the order of the axes of what they read, where the innermost loop stays.

    Args:
        generics: ops `linalg.generic`; those that read tensors in several orders stay as they are.
    """
    for generic in generics:
        order = _order_of_reads(generic)
        if order is not None:
            _interchange(generic, order)
            generic.attributes[_ORDER] = ir.DenseI64ArrayAttr.get(order)


def turn_back(generics: Iterable[ir.Operation], is_left: Callable[[ir.Operation], bool]) -> None:
    """Gives the loops of ops that `turn` has changed the order of before, where no chain has them.

    Args:
        generics: ops `linalg.generic`.
        is_left: whether no chain has an op.
    """
    for generic in [item for item in generics if _ORDER in item.attributes]:
        order = list(ir.DenseI64ArrayAttr(generic.attributes[_ORDER]))
        del generic.attributes[_ORDER]
        if is_left(generic):
            _interchange(generic, [order.index(loop) for loop in range(len(order))])


def _order_of_reads(generic: ir.Operation) -> list[int] | None:
    """Returns the loops of an op in the order of the axes of what it reads; None where it is theirs, or not known."""
    maps = indexing_maps(generic)
    rank, inputs = maps[0].n_dims, len(maps) - len(generic.results)
    identity = ir.AffineMap.get_identity(rank)
    if not len(generic.results) or any(map_ != identity for map_ in maps[inputs:]):
        return None
    if any(_moved(map_, range(rank)) is None for map_ in maps):
        return None
    loops = [[item.position for item in map_.results if isinstance(item, ir.AffineDimExpr)] for map_ in maps]
    orders = {tuple(own) for own in loops[:inputs] if len(set(own)) == rank}
    order = list(next(iter(orders))) if len(orders) == 1 else list(range(rank))
    return order if order != list(range(rank)) and order[-1] == rank - 1 else None


def _interchange(generic: ir.Operation, order: Sequence[int]) -> None:
    """Gives the loops of an elementwise op another order."""
    maps = [_moved(map_, order) for map_ in indexing_maps(generic)]
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps if map_])
    for item in walk(generic, "linalg.index"):
        attribute = ir.IntegerAttr(item.attributes["dim"])
        item.attributes["dim"] = ir.IntegerAttr.get(attribute.type, list(order).index(attribute.value))


def _moved(map_: ir.AffineMap, order: Sequence[int]) -> ir.AffineMap | None:
    """Returns a map of the loops in another order; None for one with other results than loops and constants."""
    results: list[ir.AffineExpr] = []
    for result in map_.results:
        if isinstance(result, ir.AffineDimExpr):
            results.append(ir.AffineExpr.get_dim(list(order).index(result.position)))
        elif isinstance(result, ir.AffineConstantExpr):
            results.append(result)
        else:
            return None
    return ir.AffineMap.get(map_.n_dims, 0, results)
