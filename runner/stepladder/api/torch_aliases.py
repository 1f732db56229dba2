"""Tensors that a module reads and writes through objects that are no modules, such as caches.

`torch.export` takes them for constants, whose values stay those of the trace. PyTorch is an optional package; this
module imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export.graph_signature import InputKind  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportMissingImports]

from stepladder.runtime.errors import StepladderError

_REAL = (torch.Tensor, torch.nn.Parameter)
_NOTES = ("accepted: a tensor that the module, or a module in it, has as an attribute", "accepted: an input")


class Traced(TorchFunctionMode):
    """Has ops read and write traced tensors in place of those that they stand for, wherever the module has these from.

    Args:
        tensors: in memory.
        traced: those that stand for them.

    Attributes:
        others: the other tensors in memory that ops took.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], traced: Sequence[torch.Tensor]) -> None:
        super().__init__()
        pairs = [(tensor, value) for tensor, value in zip(tensors, traced, strict=True) if _has_memory(tensor)]
        self._traced = {_place(tensor): value for tensor, value in reversed(pairs)}
        self._tensors = {id(value): tensor for tensor, value in pairs}
        self.others: list[torch.Tensor] = []
        self._numbers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        if torch.compiler.is_dynamo_compiling():  # the branches of torch.cond
            return func(*args, **(kwargs or {}))
        replaced: set[int] = set()

        def of(tensor: Any) -> Any:  # noqa: ANN401
            value = self.of(tensor)
            if value is not tensor:
                replaced.add(id(value))
            return value

        args, named = pytree.tree_map_only(torch.Tensor, of, (args, kwargs or {}))
        result = func(*args, **named)
        # `cache.keys += x` assigns the result to the object, which keeps its tensor.
        return self._tensors[id(result)] if id(result) in replaced else result

    def of(self, tensor: Any) -> Any:  # noqa: ANN401
        """Returns what stands for a tensor, or the tensor.

        Args:
            tensor: that an op takes, or that the module returns.
        """
        if not _has_memory(tensor):
            return tensor
        value = self._traced.get(_place(tensor))
        if value is not None:
            return value
        self.others.append(tensor)
        if tensor.numel() == 1 and id(tensor) not in self._numbers:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                self._numbers[id(tensor)] = (tensor, tensor.detach().clone())
        return tensor

    def restore(self) -> None:
        """Undoes what PyTorch writes while it traces: tensors of one element, which it folds."""
        for tensor, value in self._numbers.values():
            tensor.detach().copy_(value)


def written_constants(program: Any, values: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> list[Any]:  # noqa: ANN401
    """Returns the tensors in memory that a graph writes and that are none of its inputs, and has it read inputs instead
    of constants that are the same tensors, as branches of `torch.cond` have.

    Args:
        program: a `torch.export.ExportedProgram`, with ops that write in place; its graph is changed.
        values: the tensors that its inputs stand for.
        others: tensors that its ops took.

    Raises:
        StepladderError: a constant of the graph is a part or a view of an input; it writes a tensor that is not known.
    """
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs = list(zip(program.graph_signature.user_inputs, values, strict=True))
    memories = {_memory(value) for value in values if _has_memory(value)}
    names = {_place(value): name for name, value in inputs if _has_memory(value)}
    places = {_place(tensor): tensor for tensor in others}
    written_nodes = _written_nodes(program)
    found: list[Any] = []
    for item in program.graph_signature.input_specs:
        constant = program.constants.get(item.target) if item.kind is InputKind.CONSTANT_TENSOR else None
        node = nodes.get(item.arg.name)
        if node is None or not _has_memory(constant) or not node.users:
            continue
        place = _place(constant)
        if node in written_nodes:
            if place not in places or _memory(constant) in memories:
                raise StepladderError(
                    "the module writes a tensor that is no parameter, buffer or input, or a part of one", notes=_NOTES
                )
            found.append(places[place])
        elif place in names:
            node.replace_all_uses_with(nodes[names[place]])
        elif _memory(constant) in memories:
            raise StepladderError(
                "the module reads a part or a view of a parameter, a buffer or an input through an object that is no "
                "module",
                notes=_NOTES,
            )
    program.graph_module.recompile()
    return found


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


def _place(value: Any) -> tuple[object, ...]:  # noqa: ANN401
    """Returns what equals that of another tensor where both are the same elements in memory."""
    form = value.dtype, value.shape, value.stride(), value.storage_offset(), value.is_conj(), value.is_neg()
    return _memory(value), *form
