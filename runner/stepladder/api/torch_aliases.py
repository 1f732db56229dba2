"""Tensors that a module reads through objects that are no modules, and that are parameters, buffers or inputs too.

`torch.export` takes them for constants, whose values stay those of the trace. PyTorch is an optional package; this
module imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export.graph_signature import InputKind  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

_REAL = (torch.Tensor, torch.nn.Parameter)
_NOTES = ("accepted: a tensor that the module, or a module in it, has as an attribute", "accepted: an input")


def read_inputs(program: Any, values: Sequence[torch.Tensor]) -> None:  # noqa: ANN401
    """Has a graph read its inputs instead of constants that are the same tensors.

    Args:
        program: a `torch.export.ExportedProgram`, with ops that write in place; its graph is changed.
        values: what it was traced with.

    Raises:
        StepladderError: such a constant is written, or is another view of an input.
    """
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    pairs = [(name, value) for name, value in zip(signature.user_inputs, values) if _has_memory(value)]
    memories = {_memory(value) for _, value in pairs}
    names = {(_memory(value), *_form(value)): name for name, value in pairs}
    written = _written_nodes(program)
    for item in signature.input_specs:
        constant = program.constants.get(item.target) if item.kind is InputKind.CONSTANT_TENSOR else None
        if not _has_memory(constant) or _memory(constant) not in memories or not nodes[item.arg.name].users:
            continue
        if nodes[item.arg.name] in written:
            raise StepladderError(
                "the module writes a parameter, a buffer or an input through an object that is no module, such as a "
                "cache",
                notes=_NOTES,
            )
        name = names.get((_memory(constant), *_form(constant)))
        if name is None:
            raise StepladderError(
                "the module reads a part or a view of a parameter, a buffer or an input through an object that is no "
                "module",
                notes=_NOTES,
            )
        nodes[item.arg.name].replace_all_uses_with(nodes[name])
    program.graph_module.recompile()


def _written_nodes(program: Any) -> set[Any]:  # noqa: ANN401
    """Returns the nodes of a graph that ops write in place, also through views of them."""
    found: set[Any] = set()
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        for number, argument in enumerate(schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            written: Any = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
            while isinstance(written, torch.fx.Node):
                found.add(written)
                written = written.args[0] if _is_view(written) else None
    return found


def _is_view(node: Any) -> bool:  # noqa: ANN401
    """Returns whether an op returns its first operand, or a view of it."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(result.alias_info is not None for result in schema.returns) and bool(node.args)


def _has_memory(value: object) -> bool:
    """Returns whether a value is a tensor with elements in memory."""
    return type(value) in _REAL and not value.is_meta and value.layout is torch.strided and value.numel() > 0  # pyright: ignore[reportAttributeAccessIssue]


def _memory(value: Any) -> int:  # noqa: ANN401
    return value.untyped_storage().data_ptr()


def _form(value: Any) -> tuple[object, ...]:  # noqa: ANN401
    return value.dtype, value.shape, value.stride(), value.storage_offset(), value.is_conj(), value.is_neg()
