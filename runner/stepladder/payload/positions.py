"""Tensors whose elements depend on constants and their positions alone, such as an `arange` and a causal mask."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, walk

_GENERIC = "linalg.generic"
# Ops of bodies that take less time than a load.
_CHEAP = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "addi", "andi", "cmpf", "cmpi", "constant", "extf", "extsi", "extui", "index_cast", "maximumf"),
        *("maxsi", "minimumf", "minsi", "mulf", "muli", "negf", "ori", "select", "sitofp", "subf", "subi", "truncf"),
        *("trunci", "xori"),
    )
) | {"linalg.index", "linalg.yield", "math.absf", "math.absi"}
# Ops that make a tensor without reading one, and those that move or repeat elements.
STARTS = ("arith.constant", "tensor.empty")
MOVES = (*TENSOR_VIEWS, "linalg.broadcast", "linalg.fill", "linalg.transpose")


def found(ops: Iterable[ir.Operation]) -> dict[ir.Operation, bool]:
    """Returns, by op, whether it makes a tensor of constants and positions, by ops that take less time than a load.

    Args:
        ops: each after the makers of its operands.
    """
    known: dict[ir.Operation, bool] = {}
    for op in ops:
        known[op] = _is_of_positions(op, known)
    return known


def _is_of_positions(op: ir.Operation, known: Mapping[ir.Operation, bool]) -> bool:
    if op.name not in (_GENERIC, *MOVES, *STARTS) or len(op.results) != 1:
        return False
    if op.name == _GENERIC and not is_cheap(op):
        return False
    inner = set(walk(op))
    sources = [producer(operand) for item in inner for operand in item.operands if not _is_argument_of(operand, op)]
    return all(source is not None and (source in inner or known.get(source, False)) for source in sources)


def is_cheap(generic: ir.Operation, others: Collection[str] = ()) -> bool:
    """Returns whether a `linalg.generic` has no reduction, and an element of it takes less time than a load.

    Args:
        generic: the op.
        others: names of ops that its body may have beside those of the least time.
    """
    return is_parallel(generic) and all(item.name in _CHEAP or item.name in others for item in walk(generic)[1:])


def is_parallel(generic: ir.Operation) -> bool:
    """Returns whether a `linalg.generic` has no reduction.

    Args:
        generic: the op.
    """
    return all("parallel" in str(kind) for kind in ir.ArrayAttr(generic.attributes["iterator_types"]))


def _is_argument_of(value: ir.Value, op: ir.Operation) -> bool:
    """Returns whether a value is an argument of a block of an op."""
    return any(value.owner == block for region in op.regions for block in region.blocks)


def _maker(value: ir.Value, known: Mapping[ir.Operation, bool]) -> ir.Operation | None:
    """Returns the op that makes a tensor of positions; None for another tensor, and for what needs no copy."""
    source = producer(value)
    return None if source is None or not known.get(source, False) or source.name in STARTS else source


def makers(value: ir.Value, known: Mapping[ir.Operation, bool]) -> list[ir.Operation]:
    """Returns the ops that make a tensor of positions, as often as copies of them are made.

    Args:
        value: a tensor.
        known: as `found` returns it.
    """
    source = _maker(value, known)
    if source is None:
        return []
    return [source, *(item for operand in source.operands for item in makers(operand, known))]


def copied(value: ir.Value, known: Mapping[ir.Operation, bool], point: ir.InsertionPoint) -> ir.Value:
    """Returns a tensor of positions that ops with one reader make, at an insertion point.

    Args:
        value: a tensor.
        known: as `found` returns it.
        point: where the copies are created.
    """
    source = _maker(value, known)
    if source is None:
        return value
    mapping = {operand: copied(operand, known, point) for operand in source.operands}
    return clone_ops([source], mapping, point)[value]
