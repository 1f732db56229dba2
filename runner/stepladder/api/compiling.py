"""`stepladder.compile` and `stepladder.load`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import overload

from stepladder.api import building, signature
from stepladder.api.building import AUTO, Built, BuiltFunction, Job
from stepladder.api.by_shape import ByShape, dynamic_arguments, sizes_in, sizes_of, static_text
from stepladder.api.errors import ArgumentError
from stepladder.api.function import Function
from stepladder.api.kernel import Device, Kernel
from stepladder.api.options import check_options, plain
from stepladder.api.spec import MatmulSpec
from stepladder.api.views import torch_module
from stepladder.runtime.bundle import FunctionBundle, read_any
from stepladder.runtime.errors import StepladderError

# Ops that are lowered to linalg first, by passes that need the bindings of MLIR.
_LOWERED_DIALECTS = ("stablehlo.", "chlo.", "tm_tensor.")


@overload
def compile(
    source: MatmulSpec,
    example_inputs: None = None,
    *,
    example_kwargs: None = None,
    dynamic_shapes: None = None,
    bind: None = None,
    pipeline: str | os.PathLike[str] = AUTO,
    target: str = AUTO,
    device: Device = "auto",
    function: str | None = None,
    without: Sequence[str] = (),
    plugins: Sequence[str | os.PathLike[str]] = (),
    constant_weights: bool = False,
    **knobs: str | int,
) -> Kernel: ...


@overload
def compile(
    source: object,
    example_inputs: Sequence[object] | None = None,
    *,
    example_kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    bind: Mapping[str, int] | None = None,
    pipeline: str | os.PathLike[str] = AUTO,
    target: str = AUTO,
    device: Device = "auto",
    function: str | None = None,
    without: Sequence[str] = (),
    plugins: Sequence[str | os.PathLike[str]] = (),
    constant_weights: bool = False,
    **knobs: str | int,
) -> Kernel | Function | ByShape: ...


def compile(
    source: object,
    example_inputs: Sequence[object] | None = None,
    *,
    example_kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    bind: Mapping[str, int] | None = None,
    pipeline: str | os.PathLike[str] = AUTO,
    target: str = AUTO,
    device: Device = "auto",
    function: str | None = None,
    without: Sequence[str] = (),
    plugins: Sequence[str | os.PathLike[str]] = (),
    constant_weights: bool = False,
    **knobs: str | int,
) -> Kernel | Function | ByShape:
    """Compiles a matmul to a kernel that is called on arrays, or a function with several to one kernel each.

    Args:
        source: the path of a payload, MLIR as text, a module of MLIR's Python bindings, a `MatmulSpec`, a
            `torch.nn.Module`, a `torch.export.ExportedProgram`, or a function of tensors of PyTorch, whose modules are
            read where they are.
        example_inputs: of a `torch.nn.Module`: tensors of the shapes, element types and device that it is called with,
            also in lists, tuples and dictionaries; what is no tensor is a constant.
        example_kwargs: of a `torch.nn.Module`: what it is called with by keyword.
        dynamic_shapes: of a `torch.nn.Module`: the dimensions of its inputs that differ from call to call, as
            `torch.export` takes them.
        bind: sizes of dynamic dimensions of a payload by name, as of `--bind`: `arg0.1`, or M, N, K, BATCH.
        pipeline: name or file of a pipeline; `auto` for the first of wgmma (on sm_90a), mma_sync and wmma that accepts
            the payload.
        target: GPU architecture, such as `sm_90a`; `auto` for that of the GPU, or sm_90a where there is none.
        device: where the kernel runs on NumPy arrays: `auto` for a GPU, its ordinal, or `emulator`, which needs none.
        function: the function to compile, of a payload with several.
        without: optimizations to leave out.
        plugins: files of transform ops.
        constant_weights: promises that no kernel that may still run at a call writes the weights: the larger of A and
            B; of a function, of each of its matmuls; of a `torch.nn.Module`, its parameters. A kernel for few rows then
            loads them while the kernel before it ends.
        knobs: values of knobs of the pipeline; the others are chosen as by `stepladder compile`.

    Returns:
        The kernel, or the function of several kernels; of a `torch.nn.Module` it is called on the module's inputs. The
        package's pipelines are compiled once: the kernel is kept in memory, and on disk in the cache. Of a function on
        tensors with dynamic dimensions, and of a module with `dynamic_shapes`, the first call with a set of shapes
        compiles its kernels.

    Raises:
        StepladderError: the payload, the pipeline, a knob or the target is not acceptable, or a step fails; `render()`
            is the message of the command line.
    """
    check_options(
        {
            "pipeline": pipeline,
            "target": target,
            "device": device,
            "function": function,
            "without": without,
            "plugins": plugins,
            "constant_weights": constant_weights,
        }
    )
    job = Job(
        "",
        "matmul",
        os.fspath(pipeline),
        building.target_of(target, device),
        knob_items(knobs),
        tuple(without),
        function,
        tuple(os.fspath(path) for path in plugins),
        constant_weights,
    )
    if _is_of_torch(source, example_inputs is not None):
        if bind:
            raise ArgumentError("argument 'bind' is for payloads; dynamic_shapes is that of a torch.nn.Module")
        return _of_torch(source, example_inputs, example_kwargs, dynamic_shapes, job, device)
    for_modules = {
        "example_inputs": example_inputs,
        "example_kwargs": example_kwargs,
        "dynamic_shapes": dynamic_shapes,
    }
    for name, argument in for_modules.items():
        if argument is not None:
            raise ArgumentError(f"argument '{name}' is for a torch.nn.Module; the source is a {type(source).__name__}")
    if isinstance(source, MatmulSpec):
        if bind:
            raise ArgumentError("argument 'bind' is for payloads; a MatmulSpec has sizes")
        built = building.build(replace(job, text=source.text()))
        return Kernel(built, signature.of_spec(source), device, constant_weights=constant_weights)
    text, name = building.source_text(source)
    return _of_text(replace(job, text=text, name=name), sizes_in(bind), device)


def _of_torch(
    source: object,
    example_inputs: Sequence[object] | None,
    example_kwargs: Mapping[str, object] | None,
    dynamic_shapes: object,
    job: Job,
    device: Device,
) -> Kernel | Function | ByShape:
    """Returns the kernels of a module of PyTorch, or of a function of its tensors."""
    if example_inputs is None:
        raise ArgumentError("argument 'example_inputs' is missing: the tensors that the module is called with")
    importlib.import_module("stepladder.api.pytorch")  # before `modules`, and with PyTorch
    modules = importlib.import_module("stepladder.api.torch_modules")
    job = replace(job, name=type(source).__name__)
    return modules.compiled(source, example_inputs, example_kwargs, dynamic_shapes, job, device)


def _of_text(job: Job, sizes: Mapping[str, int], device: Device) -> Kernel | Function | ByShape:
    """Returns the kernels of a payload."""
    if any(dialect in job.text for dialect in _LOWERED_DIALECTS):
        from stepladder.pipeline.automatic import reason_of_function
        from stepladder.pipeline.context import linalg_text

        with building.exclusive:
            job = replace(job, text=linalg_text(job.text, job.name))
        try:
            return _of_linalg(job, sizes, device)
        except StepladderError as error:
            raise reason_of_function(error, f"{job.name} is not compiled") from error
    return _of_linalg(job, sizes, device)


def _of_linalg(job: Job, sizes: Mapping[str, int], device: Device) -> Kernel | Function | ByShape:
    """Returns the kernels of a payload that is no StableHLO."""
    if not sizes and "?" not in job.text:  # without MLIR
        return _built(job, device)
    arguments = None if sizes else dynamic_arguments(job.text, job.name, job.function)

    def of(extents: Mapping[str, int]) -> Kernel | Function:
        return _built(replace(job, text=static_text(job.text, job.name, extents, job.function)), device)

    if arguments is None:
        return of(sizes)
    return ByShape(arguments, lambda shapes: of(sizes_of(arguments, shapes)))


def _built(job: Job, device: Device) -> Kernel | Function:
    built = building.build_any(job)
    if isinstance(built, BuiltFunction):
        return Function(built, device, constant_weights=job.constant_weights)
    return Kernel(built, None, device, constant_weights=job.constant_weights)


def knob_items(knobs: Mapping[str, object]) -> tuple[tuple[str, str | int], ...]:
    """Returns the names and values of knobs, sorted.

    Args:
        knobs: keyword arguments of a call.

    Raises:
        ArgumentError: a value that no knob has.
    """
    items: list[tuple[str, str | int]] = []
    for name, setting in sorted(knobs.items()):
        value = plain(setting)
        if not isinstance(value, (str, int)):
            raise ArgumentError(
                f"argument '{name}' is {setting!r}; accepted as a knob: integers, True and False, and names"
            )
        items.append((name, value))
    return tuple(items)


def _is_of_torch(source: object, is_called: bool) -> bool:
    """Returns whether a source is a module of PyTorch, or, with example inputs, a function of its tensors."""
    if torch_module() is None or isinstance(source, (str, os.PathLike, MatmulSpec)):
        return False
    return importlib.import_module("stepladder.api.torch_sources").is_source(source, is_called)


def load(path: str | os.PathLike[str], *, device: Device = "auto", constant_weights: bool = False) -> Kernel | Function:
    """Returns the kernel or the function of a bundle, which `stepladder compile` or `save` wrote.

    On a GPU it needs no MLIR.

    Args:
        path: the folder.
        device, constant_weights: as for `compile`.

    Raises:
        StepladderError: no bundle, or a damaged one.
    """
    check_options({"device": device, "constant_weights": constant_weights})
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"argument 'path' is a {type(path).__name__}; accepted: the path of a bundle's folder")
    bundle = read_any(path)
    if isinstance(bundle, FunctionBundle):
        return Function(BuiltFunction(bundle, None), device, constant_weights=constant_weights)
    return Kernel(Built(bundle, None, None), None, device, constant_weights=constant_weights)
