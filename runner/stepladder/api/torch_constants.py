"""Constants in graphs of `torch.export`: what PyTorch computes of tensors of one number.

torch-mlir folds such ops itself, some to wrong constants: a comparison or a sum of a constant tensor of f32 with an
integer by the integer's bits. Of others, such as tensors of i64, it ends the process. PyTorch is an optional package;
this module imports it.
"""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]

_FULL = torch.ops.aten.full.default
_CREATING = (_FULL, torch.ops.aten.full_like.default)
_MOST = 2**24  # elements of a tensor that is computed


def fold_constants(program: Any) -> None:  # noqa: ANN401
    """Replaces ops of tensors whose elements are one number by such tensors, where their results are.

    Args:
        program: a `torch.export.ExportedProgram`, of functional ops; its graph is changed.
    """
    graph = program.graph
    constants: dict[Any, torch.Tensor] = {}
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or value.is_complex():
            continue
        is_static = all(type(extent) is int for extent in value.shape)
        if not is_static or not 0 < value.numel() <= _MOST:
            continue
        if node.target in _CREATING and isinstance(node.args[1], bool | int | float):
            constants[node] = torch.full(value.shape, node.args[1], dtype=value.dtype)
            continue
        if not node.all_input_nodes or not all(item in constants for item in node.all_input_nodes):
            continue
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            continue  # another number in each call
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), constants.__getitem__)
        result = node.target(*args, **kwargs)
        if _is_of_one_number(result):
            number = result.flatten()[0].item()
            with graph.inserting_before(node):
                folded = graph.call_function(_FULL, (list(value.shape), number), {"dtype": value.dtype})
            folded.meta = dict(node.meta)
            constants[node] = constants[folded] = result
            node.replace_all_uses_with(folded)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _is_of_one_number(tensor: torch.Tensor) -> bool:
    """Returns whether all elements of a tensor are the same number, zeros of the same sign, or NaN."""
    if torch.isnan(tensor).all():
        return True
    first = tensor.flatten()[0]
    return bool((tensor == first).all() and (torch.signbit(tensor) == torch.signbit(first)).all())
