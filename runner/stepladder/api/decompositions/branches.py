"""Branches of PyTorch's graphs (`torch.cond`) as selects between the results of both branches.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports]

_COND = torch.ops.higher_order.cond


class _Both(torch.fx.Interpreter):
    """Computes a graph with both branches."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        if target is not _COND:
            return super().call_function(target, args, kwargs)
        condition, first, second, operands = args
        results, other_results = (_Both(branch).run(*operands) for branch in (first, second))
        return tuple(
            torch.where(condition, result, other_result) for result, other_result in zip(results, other_results)
        )


class Selected(torch.nn.Module):
    """A graph without branches.

    Args:
        graph_module: the graph.
    """

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        super().__init__()
        self._graph = graph_module

    def forward(self, *values: torch.Tensor) -> Any:  # noqa: ANN401
        """Returns the results of the graph.

        Args:
            values: its inputs.
        """
        return _Both(self._graph).run(*values)


def has_branches(program: Any) -> bool:  # noqa: ANN401
    """Returns whether a graph has branches.

    Args:
        program: a `torch.export.ExportedProgram`.
    """
    return any(node.target is _COND for node in program.graph.nodes)
