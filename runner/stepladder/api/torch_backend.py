"""A backend of `torch.compile`: linear layers and matmuls of a graph become operators of this package.

    torch.compile(model, backend="stepladder")

Every other op stays PyTorch's, and runs as in eager mode. Gradients go through the operators' own formulas.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api import pytorch  # noqa: F401 - defines the operators
from stepladder.api.building import AUTO, EMULATOR
from stepladder.api.compiling import compile as compile_kernel
from stepladder.api.spec import MatmulSpec
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError

_LINEAR = torch.nn.functional.linear
_MATMULS = (torch.matmul, torch.mm, torch.bmm, operator.matmul)
# Functions of one argument, by the names that `linear` has for them.
_ACTIVATIONS = {
    torch.relu: "relu",
    torch.nn.functional.relu: "relu",
    torch.nn.functional.silu: "silu",
    torch.nn.functional.gelu: "gelu",
    torch.sigmoid: "sigmoid",
    torch.tanh: "tanh",
}
_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}


def backend(
    graph_module: torch.fx.GraphModule, example_inputs: Sequence[object], *, device: str = AUTO
) -> Callable[..., Any]:
    """Returns a graph in which linear layers, each with the activation behind it, and matmuls are kernels.

    Layers of f16 and bf16 of static shapes on a GPU are replaced; one that no pipeline compiles stays as it is.

    Args:
        graph_module: of `torch.compile`.
        example_inputs: of `torch.compile`; not looked at.
        device: `auto`, or `emulator` for tensors in host memory.
    """
    graph = graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is _LINEAR and _is_linear(node, device):
            _replace_linear(graph, node, device)
        elif node.target in _MATMULS and _is_matmul(node, device):
            with graph.inserting_before(node):
                made = graph.call_function(torch.ops.stepladder.matmul.default, (*node.args, device))
            _take_place(graph, node, made)
    graph.lint()
    graph_module.recompile()
    return graph_module.forward


def _take_place(graph: torch.fx.Graph, node: torch.fx.Node, made: torch.fx.Node) -> None:
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _tensor(item: object) -> Any:  # noqa: ANN401
    """Returns the tensor without data that stands for a node; None where there is none."""
    found = getattr(item, "meta", {}).get("example_value")
    return found if isinstance(found, torch.Tensor) else None


def _is_taken(tensors: Sequence[Any], device: str) -> bool:
    """Tells whether tensors are of a type, a shape and a device that kernels are compiled for."""
    where = "cpu" if device == EMULATOR else "cuda"
    return all(
        item is not None
        and item.dtype in _TYPES
        and item.dtype == tensors[0].dtype
        and item.device.type == where
        and all(type(extent) is int and extent > 0 for extent in item.shape)
        for item in tensors
    )


def _compiles(spec: MatmulSpec, device: str) -> bool:
    """Tells whether a pipeline compiles a matmul; the kernel is kept in the cache."""
    try:
        compile_kernel(spec, device=device)
    except StepladderError as error:
        if error.status == NOT_EXECUTED:
            raise
        return False
    return True


def _is_linear(node: torch.fx.Node, device: str) -> bool:
    if node.kwargs or not 2 <= len(node.args) <= 3:
        return False
    x, weight, *bias = (_tensor(item) for item in node.args if item is not None)
    if not _is_taken((x, weight, *bias), device) or not x.is_contiguous() or not weight.is_contiguous():
        return False
    n, k = weight.shape
    type_ = _TYPES[x.dtype]
    return _compiles(MatmulSpec(x.numel() // k, n, k, type_, type_, b_layout="column"), device)


def _replace_linear(graph: torch.fx.Graph, node: torch.fx.Node, device: str) -> None:
    """Replaces a linear layer, and the activation behind it where nothing else reads the sums."""
    last, activation = node, ""
    users = list(node.users)
    if len(users) == 1 and users[0].op == "call_function" and users[0].target in _ACTIVATIONS:
        others = {name: value for name, value in users[0].kwargs.items() if name != "inplace"}
        name = _ACTIVATIONS[users[0].target]
        if name == "gelu" and others.get("approximate") == "tanh":
            name, others = "gelu_tanh", {}
        if others in ({}, {"approximate": "none"}) and users[0].args == (node,):
            last, activation = users[0], name
    arguments = (*node.args, *(None,) * (3 - len(node.args)), activation, device)
    with graph.inserting_before(last):
        made = graph.call_function(torch.ops.stepladder.linear.default, arguments)
    _take_place(graph, last, made)
    if last is not node:
        graph.erase_node(node)


def _is_matmul(node: torch.fx.Node, device: str) -> bool:
    if node.kwargs or len(node.args) != 2:
        return False
    a, b = (_tensor(item) for item in node.args)
    if not _is_taken((a, b), device) or a.dim() != 2 or b.dim() != 2 or not a.is_contiguous():
        return False
    layout = "row" if b.is_contiguous() else "column"
    if layout == "column" and not b.t().is_contiguous():
        return False
    type_ = _TYPES[a.dtype]
    return _compiles(MatmulSpec(a.shape[0], b.shape[1], a.shape[1], type_, type_, b_layout=layout), device)
