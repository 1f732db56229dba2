"""Tensors without elements in graphs of `torch.export`: whatever computes them, they are constants.

torch-mlir ends the process for some ops of such tensors, such as views. PyTorch is an optional package; this module
imports it.
"""

from __future__ import annotations

import math
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

_ATEN = torch.ops.aten
# Products, which are zeros where they have no terms.
_PRODUCTS = (_ATEN.mm.default, _ATEN.bmm.default)
# NaN of no elements, which torch-mlir's decomposition is not.
_VARIANCE = _ATEN.var.correction
# Ops of tensors without elements, some of whose results have elements, that torch-mlir lowers.
_LOWERED = (
    *("addmm", "addbmm", "baddbmm", "sum", "mean", "prod", "any", "all", "cat", "constant_pad_nd", "amax", "amin"),
    *("index_put", "scatter_src", "_assert_tensor_metadata"),
)


def fold_empty(program: Any) -> None:  # noqa: ANN401
    """Replaces results without elements by constants, products of no terms by zeros, variances of none by NaN.

    Args:
        program: a `torch.export.ExportedProgram`, of functional ops; its graph is changed.

    Raises:
        StepladderError: an op of tensors without elements that is not known to be lowered.
    """
    graph = program.graph
    is_changed = False
    for node in list(graph.nodes):
        if node.op != "call_function" or not (_is_empty(node) or any(map(_is_empty, node.all_input_nodes))):
            continue
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and (_is_empty(node) or node.target in (*_PRODUCTS, _VARIANCE)):
            number = math.nan if node.target is _VARIANCE and not _is_empty(node) else 0
            with graph.inserting_before(node):
                constant = graph.call_function(_ATEN.full.default, (list(value.shape), number), {"dtype": value.dtype})
            constant.meta = dict(node.meta)
            node.replace_all_uses_with(constant)
            is_changed = True
    if is_changed:
        graph.eliminate_dead_code()
        program.graph_module.recompile()
    for node in graph.nodes:
        if node.op != "call_function" or not any(map(_is_empty, node.all_input_nodes)):
            continue
        parts = str(node.target).split(".")
        if len(parts) < 2 or parts[1] not in _LOWERED:
            raise StepladderError(
                f"the module has '{node.target}' of a tensor without elements",
                notes=["accepted: matmuls, sums, concatenations and paddings of them"],
            )


def _is_empty(node: Any) -> bool:  # noqa: ANN401
    """Returns whether a node of a graph is a tensor of static extents, one of which is 0."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and any(type(extent) is int and not extent for extent in value.shape)
