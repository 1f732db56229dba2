"""Maxima and minima of two values that are NaN if either is, as in PyTorch but not in torch-mlir's lowering."""

from __future__ import annotations

import importlib
from typing import Any

# Predicates of arith.cmpf.
_OGT, _OLT, _UGT, _ULT = 2, 4, 9, 11


def keep_nan(module: Any) -> None:  # noqa: ANN401
    """Replaces the selections that torch-mlir writes for `maximum`, `minimum` and `clamp` by `arith.maximumf` and
    `arith.minimumf`.

    A selection of a NaN that is compared takes the other value. What a caller selects by a comparison of his own is in
    two ops of linalg, and stays.

    Args:
        module: of torch-mlir, with linalg on tensors.
    """
    ir = importlib.import_module("torch_mlir.ir")
    selections: list[Any] = []

    def visit(op: Any) -> Any:  # noqa: ANN401
        if op.name == "arith.select" and op.parent.name == "linalg.generic":
            selections.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for selection in selections:
        name = _extremum(selection, ir)
        if name is None:
            continue
        condition, first, second = selection.operands
        compare = condition.owner
        with ir.InsertionPoint(selection), selection.location:
            extremum = ir.Operation.create(name, results=[selection.results[0].type], operands=[first, second])
        selection.results[0].replace_all_uses_with(extremum.results[0])
        selection.erase()
        if not list(compare.results[0].uses):
            compare.erase()


def _extremum(selection: Any, ir: Any) -> str | None:  # noqa: ANN401
    """Returns the op that a selection in a body represents; None for another one, such as that of a reduction."""
    condition, first, second = selection.operands
    compare = None if isinstance(condition.owner, ir.Block) else condition.owner
    is_reduction = any("reduction" in str(item) for item in selection.parent.attributes["iterator_types"])
    if compare is None or compare.name != "arith.cmpf" or is_reduction:
        return None
    operands, predicate = list(compare.operands), ir.IntegerAttr(compare.attributes["predicate"]).value
    if operands == [first, second] and predicate in (_OGT, _OLT):
        return "arith.maximumf" if predicate == _OGT else "arith.minimumf"
    if operands == [second, first] and predicate in (_ULT, _UGT):
        return "arith.maximumf" if predicate == _ULT else "arith.minimumf"
    return None
