"""Compiled modules of PyTorch, which are called as the modules are.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api import building, signature
from stepladder.api.building import Built, BuiltFunction, Job
from stepladder.api.by_shape import ByShape, static_text
from stepladder.api.errors import ArgumentError
from stepladder.api.function import Function
from stepladder.api.kernel import Device, Kernel
from stepladder.api.results import empty_like
from stepladder.api.torch_dynamic import DynamicModule, dynamic
from stepladder.api.torch_export import Module, export
from stepladder.api.torch_sources import module_of
from stepladder.api.views import view_of
from stepladder.runtime.errors import StepladderError


class ModuleKernel(Kernel):
    """A compiled `torch.nn.Module`: called as the module is; the parameters are read where they are.

    Args:
        built: the kernel of a function whose first arguments are the parameters and buffers.
        module: how it is called.
        device: as for `Kernel`.
        constant_weights: whether no kernel that may still run at a call writes the parameters.
    """

    def __init__(self, built: Built, module: Module, device: Device, *, constant_weights: bool = False) -> None:
        arguments = signature.of_bundle(built.bundle)
        weights = {arguments.inputs[place].role for place in module.weights(arguments.inputs)}
        super().__init__(
            built,
            dataclasses.replace(arguments, inputs=module.named(arguments.inputs)),
            device,
            constant_weights=constant_weights and weights.issuperset(built.bundle.manifest.read_early),
        )
        self._module = module

    def __call__(self, *arrays: object, out: object = None, stream: object = None, **keywords: object) -> Any:  # noqa: ANN401
        """Returns what the module returns of its inputs; arguments and errors as of `Kernel.__call__`."""
        return self._module.called(super().__call__, arrays, out, stream, keywords)


class ModuleFunction(Function):
    """A compiled `torch.nn.Module` of several kernels: called as the module is; the parameters are read where they are.

    Args:
        built: a function whose first arguments are the parameters and buffers.
        module: how it is called.
        device: as for `Function`.
        constant_weights: as for `ModuleKernel`.
    """

    def __init__(self, built: BuiltFunction, module: Module, device: Device, *, constant_weights: bool = False) -> None:
        arguments = built.bundle.manifest.of_kind("argument")
        super().__init__(built, device, constant_weights=constant_weights, weights=module.weights(arguments))
        self.inputs = module.named(self.inputs)
        self._module = module

    def __call__(self, *arrays: object, out: object = None, stream: object = None, **keywords: object) -> Any:  # noqa: ANN401
        """Returns what the module returns of its inputs; arguments and errors as of `Function.__call__`."""
        return self._module.called(self._run, arrays, out, stream, keywords)

    def _run(self, *arrays: object, out: object, stream: object) -> Any:  # noqa: ANN401
        """Calls the kernels; without arguments, whose library and device the results have, those are as PyTorch's."""
        if out is None and not arrays:
            like = view_of("like", torch.empty(1, device=self._module.device))
            tensors = [empty_like(like, item.type, item.shape, stream).array for item in self.outputs]
            out = tensors[0] if len(tensors) == 1 else tensors
        return super().__call__(*arrays, out=out, stream=stream)


class ModuleByShape(ByShape):
    """A compiled `torch.nn.Module` whose inputs have dynamic dimensions: called as the module is.

    Args:
        module: as it was exported.
        job: how it is compiled.
        device: as for `Kernel`.
    """

    def __init__(self, module: DynamicModule, job: Job, device: Device) -> None:
        super().__init__(module.arguments, lambda shapes: _compiled(*module.of(shapes), job, device))
        self._module = module

    def kernel(self, *inputs: object) -> Kernel | Function:
        """Returns the kernel of the module for the shapes of some inputs; errors as of `ByShape.kernel`.

        Args:
            inputs: what the module is called with.
        """
        return super().kernel(*self._module.tensors(inputs))

    def __call__(self, *inputs: object, out: object = None, stream: object = None) -> Any:  # noqa: ANN401
        """Returns what the module returns of its inputs; arguments and errors as of `Function.__call__`."""
        return self.kernel(*inputs)(*inputs, out=out, stream=stream)


def compiled(
    source: object,
    example_inputs: Sequence[object],
    keywords: Mapping[str, object] | None,
    dynamic_shapes: object,
    job: Job,
    device: Device,
) -> Kernel | Function | ByShape:
    """Compiles a module.

    Args:
        source: computes tensors: a module, an exported program, or a function.
        example_inputs: what it is called with.
        keywords: what it is called with by keyword.
        dynamic_shapes: as of `torch.export`; None where all shapes are those of the examples.
        job: how it is compiled, without a payload.
        device: as for `Kernel`.

    Returns:
        What is called as the module is.

    Raises:
        ArgumentError: a module of TorchScript, or a function that captures tensors.
        StepladderError: as `export` and `dynamic`, and as `building.build_any`.
    """
    module = module_of(source)
    if dynamic_shapes is not None:
        if keywords:
            raise ArgumentError("argument 'example_kwargs' is for modules without dynamic_shapes")
        return ModuleByShape(dynamic(module, example_inputs, dynamic_shapes), job, device)
    return _compiled(*export(module, example_inputs, keywords), job, device)


def _compiled(text: str, module: Module, job: Job, device: Device) -> ModuleKernel | ModuleFunction:
    if "?" in text:  # shapes that ops compute, of a rolled tensor for example
        text = static_text(text, job.name, {}, job.function)
    try:
        built = building.build_any(dataclasses.replace(job, text=text))
    except StepladderError as error:
        from stepladder.pipeline.automatic import reason_of_function

        raise reason_of_function(error, "the module is not compiled") from error
    if isinstance(built, BuiltFunction):
        return ModuleFunction(built, module, device, constant_weights=job.constant_weights)
    return ModuleKernel(built, module, device, constant_weights=job.constant_weights)
