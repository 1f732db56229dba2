"""A backend of `torch.compile`: the matmul-shaped parts of a graph become kernels of this package.

    torch.compile(model, backend="stepladder")

Without gradients, parts of a graph are compiled whole (`torch_parts`). Linear layers and matmuls that are left, and all
of a graph that records gradients, become operators of this package, whose gradients are formulas of their own. Every
other op stays PyTorch's, and runs as in eager mode. The logger `stepladder.api.torch_backend` says at its debug level
why an op is left, also by TORCH_LOGS="+stepladder.api.torch_backend".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api import pytorch  # noqa: F401 - defines the operators
from stepladder.api.building import AUTO
from stepladder.api.compiling import compile as compile_kernel
from stepladder.api.errors import ArgumentError
from stepladder.api.options import check_options
from stepladder.api.spec import MatmulSpec
from stepladder.api.torch_part import TYPES, tensor_of
from stepladder.api.torch_parts import LINEAR, MATMULS, divide, foreign_mode, untaken
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError

# Functions of one argument, by the names that `linear` has for them.
_ACTIVATIONS = {
    torch.relu: "relu",
    torch.nn.functional.relu: "relu",
    torch.nn.functional.silu: "silu",
    torch.nn.functional.gelu: "gelu",
    torch.sigmoid: "sigmoid",
    torch.tanh: "tanh",
}
_log = logging.getLogger(__name__)


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    device: str = AUTO,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Returns a graph in which matmuls, with the elementwise ops after them, are kernels.

    Matmuls of f16 and bf16 on a GPU are taken, those of dynamic shapes in parts alone; what no pipeline compiles stays
    as it is.

    Args:
        graph_module: of `torch.compile`.
        example_inputs: of `torch.compile`; not looked at.
        device: `auto`, or `emulator` for tensors in host memory.
        options: of `torch.compile`: `constant_weights`, the promise that no kernel that may still run at a call writes
            parameters of the model.
        mode: of `torch.compile`; there is none but the default one.

    Raises:
        ArgumentError: another option, another value, or a mode.
    """
    if mode not in (None, "default"):
        raise ArgumentError(f"mode = '{mode}'; accepted: 'default', with options for what this backend has")
    settings = dict(options or {})
    constant_weights = settings.pop("constant_weights", False)
    if settings:
        raise ArgumentError(f"option '{next(iter(settings))}' is unknown; accepted: 'constant_weights'")
    check_options({"constant_weights": constant_weights})
    reason = foreign_mode(graph_module)
    if reason is not None:
        _log.debug("no matmul is taken: %s", reason)
        return graph_module.forward
    left = divide(graph_module, device, _log, constant_weights=constant_weights)
    for module in (graph_module, *left):
        _replace_layers(module, device)
    return graph_module.forward


def _replace_layers(graph_module: torch.fx.GraphModule, device: str) -> None:
    """Replaces linear layers, each with the activation after it, and matmuls by operators."""
    graph = graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is LINEAR and _is_taken(node, _linear_spec(node, device), device):
            _replace_linear(graph, node, device)
        elif node.target in MATMULS and _is_taken(node, _matmul_spec(node, device), device):
            with graph.inserting_before(node):
                call = graph.call_function(torch.ops.stepladder.matmul.default, (*node.args, device))
            _take_place(graph, node, call)
    graph.lint()
    graph_module.recompile()


def _take_place(graph: torch.fx.Graph, node: torch.fx.Node, replacement: torch.fx.Node) -> None:
    replacement.meta = dict(node.meta)
    node.replace_all_uses_with(replacement)
    graph.erase_node(node)


def _is_taken(node: torch.fx.Node, spec: MatmulSpec | str, device: str) -> bool:
    """Returns whether a pipeline compiles a matmul; the kernel is kept in the cache.

    Args:
        node: the layer, for the log.
        spec: its matmul, or why it has none.
        device: of the kernel.
    """
    if isinstance(spec, MatmulSpec):
        try:
            compile_kernel(spec, device=device)
        except StepladderError as error:
            if error.status == NOT_EXECUTED:
                raise
            spec = error.message
    if isinstance(spec, str):
        _log.debug("'%s' runs in eager mode: %s", node.name, spec)
        return False
    return True


def _one_type(tensors: Sequence[Any], device: str) -> str | None:
    """Returns why tensors are not the operands of one matmul; None where they are."""
    reason = untaken(tensors, device)
    if reason is None and len({item.dtype for item in tensors}) > 1:
        return "operands of several element types"
    return reason


def _linear_spec(node: torch.fx.Node, device: str) -> MatmulSpec | str:
    """Returns the matmul of a linear layer, or why it is left."""
    if node.kwargs or not 2 <= len(node.args) <= 3:
        return "arguments by keyword"
    x, weight, *bias = (tensor_of(item) for item in node.args if item is not None)
    reason = _one_type((x, weight, *bias), device)
    if reason is not None:
        return reason
    if not x.is_contiguous() or not weight.is_contiguous():
        return "an operand that is not contiguous"
    n, k = weight.shape
    type_ = TYPES[x.dtype]
    return MatmulSpec(x.numel() // k, n, k, type_, type_, b_layout="column")


def _replace_linear(graph: torch.fx.Graph, node: torch.fx.Node, device: str) -> None:
    """Replaces a linear layer, and the activation after it where nothing else reads the sums."""
    last, activation = node, ""
    users = list(node.users)
    if len(users) == 1 and users[0].op == "call_function" and users[0].target in _ACTIVATIONS:
        keywords = {name: value for name, value in users[0].kwargs.items() if name != "inplace"}
        name = _ACTIVATIONS[users[0].target]
        if name == "gelu" and keywords.get("approximate") == "tanh":
            name, keywords = "gelu_tanh", {}
        if keywords in ({}, {"approximate": "none"}) and users[0].args == (node,):
            last, activation = users[0], name
    arguments = (*node.args, *(None,) * (3 - len(node.args)), activation, device)
    with graph.inserting_before(last):
        call = graph.call_function(torch.ops.stepladder.linear.default, arguments)
    _take_place(graph, last, call)
    if last is not node:
        graph.erase_node(node)


def _matmul_spec(node: torch.fx.Node, device: str) -> MatmulSpec | str:
    """Returns the matmul of two matrices, or why it is left."""
    if node.kwargs or len(node.args) != 2:
        return "arguments by keyword"
    a, b = (tensor_of(item) for item in node.args)
    reason = _one_type((a, b), device)
    if reason is not None:
        return reason
    if a.dim() != 2 or b.dim() != 2:
        return "operands that are no matrices"
    layout = "row" if b.is_contiguous() else "column"
    if not a.is_contiguous() or (layout == "column" and not b.t().is_contiguous()):
        return "an operand that is not dense"
    type_ = TYPES[a.dtype]
    return MatmulSpec(a.shape[0], b.shape[1], a.shape[1], type_, type_, b_layout=layout)
