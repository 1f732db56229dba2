"""Which ops of a graph of `torch.export` torch-mlir does not lower: each is lowered by itself.

The diagnostics of a whole graph may name a constant operand of such an op alone. PyTorch is an optional package; this
module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]


def not_lowered(program: Any, lower: Callable[[Any], object]) -> list[str]:  # noqa: ANN401
    """Returns the names of the ops that are not lowered, each once.

    Args:
        program: a `torch.export.ExportedProgram`, of functional ops of tensors of static extents.
        lower: lowers a program; raises an exception for one that it does not lower.
    """
    names: dict[str, bool] = {}
    for node in program.graph.nodes:
        name = str(node.target).removesuffix(".default")  # of a function of Python, `<built-in ...>`
        if node.op == "call_function" and not name.startswith("<") and not names.get(name):
            names[name] = not _is_lowered(node, lower)
    return [name for name, fails in names.items() if fails]


def _is_lowered(node: Any, lower: Callable[[Any], object]) -> bool:  # noqa: ANN401
    """Returns whether an op is lowered by itself; true of one that PyTorch does not export so."""
    graph = torch.fx.Graph()
    inputs = {item: graph.placeholder(item.name) for item in node.all_input_nodes}
    graph.output(graph.node_copy(node, inputs.__getitem__))
    values = [item.meta.get("val") for item in inputs]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return True
    try:
        examples = tuple(torch.zeros(value.shape, dtype=value.dtype) for value in values)
        program = torch.export.export(torch.fx.GraphModule({}, graph), examples, strict=False)
    except Exception:  # of torch.export, of many kinds
        return True
    try:
        lower(program)
    except Exception:  # of torch-mlir
        return False
    return True
