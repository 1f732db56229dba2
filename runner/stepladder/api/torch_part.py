"""Kernels in place of a part of a graph of `torch.compile`; of dynamic shapes, for each set of sizes in a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.building import EMULATOR
from stepladder.api.compiling import compile as compile_module
from stepladder.api.errors import ArgumentError
from stepladder.api.function import Function
from stepladder.api.kernel import Kernel
from stepladder.api.kernel_cache import KernelCache
from stepladder.api.signature import ALIGNMENT
from stepladder.runtime.errors import StepladderError

# Operands of matmuls; what elementwise ops compute with.
TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
VALUES = {**TYPES, torch.float32: "f32"}
# Sets of sizes that a part of dynamic shapes has kernels for; calls with others run in eager mode.
_MAX = 64

Kernels = Callable[..., Any]


def tensor_of(item: object) -> Any:  # noqa: ANN401
    """Returns the tensor without data that represents a node; None where there is none.

    Args:
        item: a node of a graph, or a scalar in one.
    """
    example = getattr(item, "meta", {}).get("example_value")
    return example if isinstance(example, torch.Tensor) else None


def is_size(item: object) -> bool:
    """Returns whether a node represents a size.

    Args:
        item: a node of a graph.
    """
    return isinstance(getattr(item, "meta", {}).get("example_value"), (int, torch.SymInt))


def is_static(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor without data has a static shape.

    Args:
        tensor: of a node.
    """
    return all(type(extent) is int for extent in tensor.shape)


def shape_of(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Returns a shape in the call that a graph is traced for; None for one that depends on data.

    Args:
        tensor: without data.
    """
    return _hints(tensor.shape)


def is_contiguous(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor without data is row-major in the call that a graph is traced for.

    Args:
        tensor: of a node.
    """
    shape, strides = shape_of(tensor), _hints(tensor.stride())
    if shape is None or strides is None:
        return False
    return torch.empty_strided(shape, strides, device="meta").is_contiguous()


def _hints(numbers: Sequence[Any]) -> tuple[int, ...] | None:
    hints = [number if type(number) is int else number.node.hint for number in numbers]
    return None if None in hints else tuple(map(int, hints))


class Part(torch.nn.Module):
    """Kernels in place of a part of a graph.

    Args:
        name: of the part, for messages.
        kernels: what computes it.
        eager: the ops themselves, for calls while gradients are recorded.
        log: for what a call is not taken for.
    """

    def __init__(self, name: str, kernels: Kernels, eager: torch.nn.Module, log: logging.Logger) -> None:
        super().__init__()
        self._name = name
        self._kernels = kernels
        self._log = log
        self.eager = eager

    def forward(self, *inputs: Any) -> Any:  # noqa: ANN401
        """Returns the results of the ops.

        Args:
            inputs: the tensors and sizes that the graph gives the part.
        """
        if torch.is_grad_enabled() and any(isinstance(item, torch.Tensor) and item.requires_grad for item in inputs):
            return self.eager(*inputs)
        try:
            return self._kernels(*inputs)
        except ArgumentError as error:  # an address that kernels do not take; a guard covers all else
            self._log.debug("%s runs in eager mode: %s", self._name, error)
            return self.eager(*inputs)


class DynamicKernels:
    """Kernels of a part for each set of sizes that it is called with.

    Args:
        compile_for: compiles the part for some inputs.
        log: for what is compiled, and what is not.
    """

    def __init__(self, compile_for: Callable[[Sequence[Any]], Kernel | Function], log: logging.Logger) -> None:
        self._compiled = compile_for
        self._log = log
        self._kernels = KernelCache[Kernel | Function | str](_MAX)

    def __repr__(self) -> str:
        return f"<kernels for each set of sizes, {len(self._kernels.kernels)} compiled>"

    def find(self, inputs: Sequence[Any]) -> Kernel | Function | str:
        """Returns the kernels for some inputs, or why there are none.

        Args:
            inputs: tensors and sizes.
        """
        key = tuple(tuple(item.shape) if isinstance(item, torch.Tensor) else item for item in inputs)
        kernel = self._kernels.find(key)
        if kernel is None and len(self._kernels.kernels) >= _MAX:
            return f"kernels of {_MAX} sets of sizes are compiled"
        with self._kernels.only_one(key):
            kernel = self._kernels.find(key)
            if kernel is None:
                try:
                    kernel = self._compiled(inputs)
                except StepladderError as error:
                    kernel = error.message
                self._log.debug("compiled for %s: %s", key, kernel)
                self._kernels.keep(key, kernel)
        return kernel

    def __call__(self, *inputs: Any) -> Any:  # noqa: ANN401
        """Returns what the part computes of its inputs.

        Raises:
            ArgumentError: there are no kernels for these sizes.
        """
        kernel = self.find(inputs)
        if isinstance(kernel, str):
            raise ArgumentError(kernel)
        return kernel(*inputs)


def kernels_of(
    part: torch.fx.GraphModule, device: str, log: logging.Logger, *, constant_weights: bool = False
) -> Kernels:
    """Returns the kernels of a part.

    Args:
        part: its ops.
        device: `auto`, or `emulator` for tensors in host memory.
        log: for the sizes that a part of dynamic shapes is compiled for.
        constant_weights: whether no kernel that may still run at a call writes parameters of the model.

    Raises:
        StepladderError: it is not lowered, not compiled, or has inputs or results that kernels do not have.
    """
    placeholders = [node for node in part.graph.nodes if node.op == "placeholder"]
    tensors = [tensor_of(node) for node in placeholders if not is_size(node)]
    for node, tensor in zip((node for node in placeholders if not is_size(node)), tensors):
        if tensor.dim() == 0 or not is_contiguous(tensor) or tensor.storage_offset() * tensor.itemsize % ALIGNMENT:
            raise ArgumentError(
                f"'{node.name}' has the shape {tuple(tensor.shape)} and strides {tensor.stride()}; accepted: "
                "contiguous tensors of one dimension and more"
            )
    (output,) = [node for node in part.graph.nodes if node.op == "output"]
    results = [tensor_of(item) for item in output.all_input_nodes]
    if any(item.dim() == 0 or not is_contiguous(item) for item in results):
        raise ArgumentError("a result is not a contiguous tensor of one dimension and more")
    place: Any = device if device == EMULATOR else tensors[0].device.index

    def compiled(inputs: Sequence[Any]) -> Kernel | Function:
        # `torch.export` would find the state that `torch.compile` has in this thread.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_compiled, part, inputs, place, constant_weights).result()

    kernels = compiled([_example(node) for node in placeholders])
    outputs = kernels.outputs if isinstance(kernels, Function) else kernels.signature.results
    kernel_results = [(item.type, item.shape) for item in outputs]
    part_results = [(VALUES[item.dtype], shape_of(item)) for item in results]
    if kernel_results != part_results:
        raise ArgumentError(f"the compiled part returns {kernel_results}, and PyTorch {part_results}")
    is_dynamic = len(tensors) < len(placeholders) or not all(map(is_static, (*tensors, *results)))
    return DynamicKernels(compiled, log) if is_dynamic else kernels


def _example(node: torch.fx.Node) -> Any:  # noqa: ANN401
    """Returns what an input of a part is in the call that a graph is traced for."""
    if is_size(node):
        hints = _hints([node.meta["example_value"]])
        if hints is None:
            raise ArgumentError(f"'{node.name}' is a size that depends on data")
        return hints[0]
    tensor = tensor_of(node)
    return _like(tensor, _hints(tensor.shape) or ())


def _like(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Returns a tensor of a type and a shape; for a parameter, a parameter."""
    empty = torch.empty(shape, dtype=tensor.dtype)
    return torch.nn.Parameter(empty, requires_grad=False) if isinstance(tensor, torch.nn.Parameter) else empty


def _compiled(
    part: torch.fx.GraphModule,
    inputs: Sequence[Any],
    device: Any,  # noqa: ANN401
    constant_weights: bool,
) -> Kernel | Function:
    with torch.no_grad():
        examples = [_like(item, item.shape) if isinstance(item, torch.Tensor) else item for item in inputs]
        kernel = compile_module(part, examples, device=device, constant_weights=constant_weights)
    assert isinstance(kernel, (Kernel, Function))
    return kernel
