"""Sources of PyTorch that `stepladder.compile` accepts: modules, exported programs and functions of tensors.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.errors import ArgumentError

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
# What a module, or a function, may call.
CALLABLES = (functools.partial, *_FUNCTIONS)


def is_source(source: object, is_called: bool) -> bool:
    """Returns whether `module_of` accepts a source.

    Args:
        source: of `stepladder.compile`.
        is_called: whether there are example inputs, with which a function is called.
    """
    if isinstance(source, (torch.nn.Module, torch.export.ExportedProgram)):
        return True
    return is_called and isinstance(source, CALLABLES)


class _Called(torch.nn.Module):
    """A function of tensors as a module, whose parameters are those of modules that it refers to.

    Args:
        function: the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function
        values = dict(captured(function))
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                raise ArgumentError(
                    f"the function captures the tensor '{name}', of which a kernel would keep the numbers; accepted: "
                    "tensors as arguments, or a torch.nn.Module with parameters and buffers"
                )
        # A module that appears twice is one to `named_parameters`.
        self.captured = torch.nn.ModuleList(item for item in values.values() if isinstance(item, torch.nn.Module))

    def forward(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401
        """Returns the results of the function.

        Args:
            given, named: its arguments.
        """
        return self._function(*arguments, **keywords)


def captured(function: Any) -> Iterator[tuple[str, object]]:  # noqa: ANN401
    """Yields names and values that a function reads beside its arguments.

    Args:
        function: a function, a method, a `functools.partial` or a module.
    """
    if isinstance(function, functools.partial):
        yield from captured(function.func)
        yield from zip(map(str, range(len(function.args))), function.args)
        yield from function.keywords.items()
    elif isinstance(function, types.MethodType):
        yield "self", function.__self__
        yield from captured(function.__func__)
    elif isinstance(function, torch.nn.Module):
        yield "self", function
    elif isinstance(function, types.FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # a cell that is not filled
                yield name, cell.cell_contents
        for name in function.__code__.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]


def module_of(source: Any) -> torch.nn.Module:  # noqa: ANN401
    """Returns a source as a module.

    Args:
        source: a module, an exported program or a function.

    Raises:
        ArgumentError: a module of TorchScript, or a function that captures tensors.
    """
    if isinstance(source, torch.jit.ScriptModule):
        raise ArgumentError("the source is a module of TorchScript; accepted: the torch.nn.Module that it is made from")
    if isinstance(source, torch.export.ExportedProgram):
        return source.module()
    return source if isinstance(source, torch.nn.Module) else _Called(source)
