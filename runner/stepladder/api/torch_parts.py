"""Parts of a graph of `torch.compile` that become kernels whole: matmuls with the elementwise ops after them.

A part is a set of connected ops of which at least one is a matmul: matmuls, elementwise ops on what they compute, and
views between these; parts that read the same activations, such as the projections of an attention block, are one. Its
ops are exported by `torch.export` and torch-mlir, and compiled as a payload is: one kernel, or a function of several.
"""

from __future__ import annotations

import graphlib
import logging
import operator
from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.fx.passes.infra.partitioner import (  # pyright: ignore[reportMissingImports]
    CapabilityBasedPartitioner,
    Partition,
)
from torch.fx.passes.operator_support import OperatorSupportBase  # pyright: ignore[reportMissingImports]

from stepladder.api.building import EMULATOR
from stepladder.api.torch_part import (
    TYPES,
    VALUES,
    Kernels,
    Part,
    is_contiguous,
    is_size,
    is_static,
    kernels_of,
    shape_of,
    tensor_of,
)
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError

_functional = torch.nn.functional
LINEAR = _functional.linear
MATMULS = (torch.matmul, torch.mm, torch.bmm, operator.matmul)

_PRODUCTS = {LINEAR, *MATMULS, torch.addmm, torch.baddbmm, "matmul", "mm", "bmm"}
_ELEMENTWISE = {
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg),
    *(torch.add, torch.sub, torch.mul, torch.div, torch.neg, torch.maximum, torch.minimum, torch.clamp),
    *(torch.relu, torch.sigmoid, torch.tanh, torch.exp, torch.square, torch.sqrt, torch.rsqrt, torch.abs),
    *(_functional.relu, _functional.silu, _functional.gelu, _functional.sigmoid, _functional.tanh),
    *(_functional.leaky_relu,),
    *("add", "sub", "mul", "div", "neg", "maximum", "minimum", "clamp", "relu", "sigmoid", "tanh", "exp", "square"),
    *("sqrt", "rsqrt", "abs", "to", "float", "half", "bfloat16"),
}
_VIEWS = {
    *(torch.reshape, torch.transpose, torch.permute, torch.flatten, torch.t),
    *(torch.ops.aten.numpy_T, torch.ops.aten.mT),  # the attributes T and mT
    *("view", "reshape", "transpose", "permute", "flatten", "t", "contiguous"),
}


def untaken(
    tensors: Sequence[Any], device: str, types: dict[Any, str] = TYPES, *, takes_dynamic: bool = False
) -> str | None:
    """Returns why tensors are not taken: their element types, shapes or devices; None where they are.

    Args:
        tensors: without data; None for a value that is no tensor.
        device: `emulator` for tensors in host memory.
        types: element types that are taken.
        takes_dynamic: whether shapes may be dynamic.
    """
    kind = "cpu" if device == EMULATOR else "cuda"
    for item in tensors:
        if item is None:
            return "an operand is not a tensor"
        if item.dtype not in types:
            return f"elements of {item.dtype}; accepted: {', '.join(map(str, types))}"
        if item.device.type != kind:
            return f"a tensor on '{item.device}'; accepted: on '{kind}'"
        if item.device != tensors[0].device:
            return f"tensors on '{tensors[0].device}' and '{item.device}'; accepted: on one device"
        if not (takes_dynamic or is_static(item)):
            return f"a dynamic shape, {tuple(item.shape)}; accepted: static ones (dynamic=False)"
        if 0 in (shape_of(item) or (0,)):
            return f"a shape without elements, {tuple(item.shape)}"
    return None


def foreign_mode(graph_module: torch.fx.GraphModule) -> str | None:
    """Returns why no op of a graph is taken: autocast, which casts operands, or a transformation of `torch.func`, whose
    tensors are batches or record derivatives in ways of their own; None where there is none.

    Args:
        graph_module: of `torch.compile`, in which a mode may begin.
    """
    targets = [node.target for node in graph_module.graph.nodes if node.op == "call_function"]
    is_on = torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")
    if is_on or any("autocast" in getattr(target, "__name__", "") for target in targets):
        return "autocast is on"
    if any("_functorch" in (getattr(target, "__module__", None) or "") for target in targets):
        return "it is in a transformation of torch.func"
    return None


def divide(
    graph_module: torch.fx.GraphModule, device: str, log: logging.Logger, *, constant_weights: bool = False
) -> list[torch.fx.GraphModule]:
    """Replaces the parts of a graph that compile, by calls of `Part`.

    Args:
        graph_module: of `torch.compile`; it is changed.
        device: `auto`, or `emulator` for tensors in host memory.
        log: for the reasons why ops are left to PyTorch.
        constant_weights: as for `kernels_of`.

    Returns:
        The submodules of parts that are refused, which are called instead of their ops.
    """
    _drop_dropouts(graph_module.graph)
    _drop_in_place(graph_module.graph)
    reason = _whole_graph_refusal(graph_module)
    if reason is not None:
        log.debug("no parts are compiled whole: %s", reason)
        return []
    chosen = _chosen(graph_module, device, log)

    class Chosen(OperatorSupportBase):
        def is_node_supported(self, submodules: object, node: torch.fx.Node) -> bool:
            return node in chosen

    partitioner = CapabilityBasedPartitioner(graph_module, Chosen(), allows_single_node_partition=True)
    parts = [item for item in partitioner.propose_partitions() if any(node.target in _PRODUCTS for node in item.nodes)]
    result = partitioner.fuse_partitions(_joined(graph_module, parts), prefix="stepladder_part_")
    assert result is graph_module
    left: list[torch.fx.GraphModule] = []
    kernels_by_graph: dict[object, Kernels] = {}
    for node in list(graph_module.graph.nodes):
        if node.op != "call_module" or not str(node.target).startswith("stepladder_part_"):
            continue
        name = str(node.target)
        part: Any = graph_module.get_submodule(name)
        try:
            key = _structure(part.graph)
            kernels = kernels_by_graph.get(key) or kernels_by_graph.setdefault(
                key, kernels_of(part, device, log, constant_weights=constant_weights)
            )
        except StepladderError as error:
            if error.status == NOT_EXECUTED:
                raise
            notes = "".join(f"; {note}" for note in error.notes)
            log.debug("%s (%s) is not compiled whole: %s%s", name, _ops(part.graph), error.message, notes)
            left.append(part)
            continue
        log.debug("%s: %s; computes %s", name, kernels, _ops(part.graph))
        setattr(graph_module, name, Part(name, kernels, part, log))
    return left


def _drop_dropouts(graph: torch.fx.Graph) -> None:
    """Removes dropouts of modules in eval mode, which return what they are given."""
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is _functional.dropout:
            arguments = dict(zip(("input", "p", "training"), node.args)) | node.kwargs
            if arguments.get("training") is False:
                node.replace_all_uses_with(arguments["input"])
                graph.erase_node(node)


def _drop_in_place(graph: torch.fx.Graph) -> None:
    """Makes activations that overwrite the result of a matmul, which nothing else reads, return a new tensor."""
    for node in graph.nodes:
        products = [item for item in node.all_input_nodes if _kind(item) is _PRODUCTS and len(item.users) == 1]
        if node.kwargs.get("inplace") is True and _kind(node) is _ELEMENTWISE and node.args[0] in products:
            node.kwargs = {**node.kwargs, "inplace": False}


def _whole_graph_refusal(graph_module: torch.fx.GraphModule) -> str | None:
    """Returns what of a graph as a whole forbids that ops are moved together."""
    for node in graph_module.graph.nodes:
        tensor = tensor_of(node)
        if node.op == "placeholder" and torch.is_grad_enabled() and tensor is not None and tensor.requires_grad:
            return f"gradients are recorded, and '{node.name}' needs one; layers are taken one by one"
        if _changes_state(node):
            return f"'{node.name}' ({node.target}) changes memory or a mode, and ops do not move across it"
    return None


def _changes_state(node: torch.fx.Node) -> bool:
    """Returns whether an op writes an operand, or changes a mode of PyTorch."""
    if node.op == "call_module":
        return True
    if node.op not in ("call_function", "call_method"):
        return False
    if node.kwargs.get("inplace") or node.kwargs.get("out") is not None:
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return bool(schema.is_mutable)
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    module = getattr(node.target, "__module__", "")
    if module == "_operator":
        return name == "setitem" or (name.startswith("i") and hasattr(operator, f"__{name}__"))
    mutates = name.endswith("_") and not name.endswith("__")
    return mutates or name == "__setitem__" or any(word in name for word in ("set_grad", "autocast", "inference_mode"))


def _kind(node: torch.fx.Node) -> set[Any] | None:
    """Returns which of the three sets of ops a node is of."""
    if node.op not in ("call_function", "call_method"):
        return None
    for ops in (_PRODUCTS, _ELEMENTWISE, _VIEWS):
        if node.target in ops and (node.op == "call_method") == isinstance(node.target, str):
            return ops
    return None


def _chosen(graph_module: torch.fx.GraphModule, device: str, log: logging.Logger) -> set[torch.fx.Node]:
    """Returns the ops that parts are made of."""
    chosen: set[torch.fx.Node] = set()
    for node in graph_module.graph.nodes:
        kind = _kind(node)
        if kind is None:
            continue
        operands = [tensor_of(item) for item in node.all_input_nodes if not (kind is _VIEWS and is_size(item))]
        types = TYPES if kind is _PRODUCTS else VALUES
        reason = untaken([tensor_of(node), *operands], device, types, takes_dynamic=True)
        if reason is None and kind is _PRODUCTS and len({item.dtype for item in operands}) > 1:
            reason = "operands of several element types"
        if reason is None:
            chosen.add(node)
        elif kind is _PRODUCTS and node.target not in (LINEAR, *MATMULS):  # those are looked at again
            log.debug("'%s' runs in eager mode: %s", node.name, reason)
    while True:
        computed: set[torch.fx.Node] = set()  # what depends on a matmul, through ops that are chosen
        for node in graph_module.graph.nodes:
            if node in chosen and (_kind(node) is _PRODUCTS or any(item in computed for item in node.all_input_nodes)):
                computed.add(node)
        out = {
            node
            for node in chosen
            if (_kind(node) is _VIEWS and not _is_inside(node, chosen, computed))
            or (_kind(node) is _ELEMENTWISE and node not in computed)
        }
        if not out:
            return chosen
        chosen -= out


def _is_inside(view: torch.fx.Node, chosen: set[torch.fx.Node], computed: set[torch.fx.Node]) -> bool:
    """Returns whether a view belongs into a part.

    One that is read outside of it would see memory that the part does not have; one of an input needs a contiguous one.
    """
    if any(user not in chosen for user in view.users):
        return False
    return view in computed or all(is_contiguous(tensor_of(item)) for item in view.all_input_nodes if not is_size(item))


def _joined(graph_module: torch.fx.GraphModule, parts: Sequence[Partition]) -> list[Partition]:
    """Returns parts, of which those that multiply the same activations are one, where no op is between them."""
    merged: list[Partition] = []
    for part in parts:
        activations = _activations(part)
        for earlier in merged:
            if activations & _activations(earlier):
                union = Partition(earlier.id, [*earlier.nodes, *part.nodes])
                rest = [item for item in (*merged, *parts) if item is not earlier and item is not part]
                if _is_acyclic(graph_module, [union, *rest]):
                    merged[merged.index(earlier)] = union
                    break
        else:
            merged.append(part)
    return merged


def _activations(part: Partition) -> set[torch.fx.Node]:
    """Returns the values outside of a part that its matmuls have as their first operand."""
    first = [node.args[0] for node in part.nodes if node.target in _PRODUCTS and node.args]
    return {item for item in first if isinstance(item, torch.fx.Node) and item not in part.nodes}


def _is_acyclic(graph_module: torch.fx.GraphModule, parts: Sequence[Partition]) -> bool:
    """Returns whether the ops of each part can be one op."""
    owner: dict[torch.fx.Node, object] = {}
    for part in parts:
        for node in part.nodes:
            owner.setdefault(node, part.id)
    sorter: graphlib.TopologicalSorter[object] = graphlib.TopologicalSorter()
    for node in graph_module.graph.nodes:
        part_of_node = owner.get(node, node)
        sorter.add(part_of_node, *{owner.get(item, item) for item in node.all_input_nodes} - {part_of_node})
    try:
        sorter.prepare()
    except graphlib.CycleError:
        return False
    return True


def _structure(graph: torch.fx.Graph) -> object:
    """Returns what the kernels of a part depend on: its ops, the types and shapes of its inputs, and which of these are
    parameters."""
    numbers = {node: number for number, node in enumerate(graph.nodes)}

    def numbered(item: Any) -> object:  # noqa: ANN401
        return torch.fx.map_arg(item, lambda node: f"%{numbers[node]}")

    entries = []
    for node in graph.nodes:
        value = tensor_of(node) if node.op == "placeholder" else None
        description = value is not None and (value.dtype, str(value.shape), isinstance(value, torch.nn.Parameter))
        target = str(node.target) if node.op != "placeholder" else description
        entries.append((node.op, target, repr(numbered(node.args)), repr(numbered(node.kwargs))))
    return tuple(entries)


def _ops(graph: torch.fx.Graph) -> str:
    return ", ".join(node.name for node in graph.nodes if node.op in ("call_function", "call_method"))
