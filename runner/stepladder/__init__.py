"""Stepladder: compiles a matmul in `linalg` IR to kernels for GPU matrix units, step by step.

    import stepladder

    kernel = stepladder.compile("matmul.mlir")   # a kernel, which is called on arrays
    c = stepladder.matmul(a, b)                  # compiled when a shape is used first

docs/python.md describes the interface. The names below are imported when they are used first.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.api import functions, pytorch
    from stepladder.api.by_shape import ByShape
    from stepladder.api.compiling import compile, load
    from stepladder.api.errors import ArgumentError, EpilogueError
    from stepladder.api.function import Function
    from stepladder.api.kernel import Kernel
    from stepladder.api.matmul import Matmul, matmul, precompile
    from stepladder.api.spec import MatmulSpec
    from stepladder.runtime.driver import CudaError
    from stepladder.runtime.errors import StepladderError

__version__ = "0.1.0"

__all__ = [
    "compile",
    "load",
    "matmul",
    "Matmul",
    "precompile",
    "functions",
    "pytorch",
    "Kernel",
    "Function",
    "ByShape",
    "MatmulSpec",
    "StepladderError",
    "ArgumentError",
    "EpilogueError",
    "CudaError",
]

# The modules that the names come from; the module itself for a name that is one.
_MODULES = {
    "compile": "api.compiling",
    "load": "api.compiling",
    "matmul": "api.matmul",
    "Matmul": "api.matmul",
    "precompile": "api.matmul",
    "functions": "api.functions",
    "pytorch": "api.pytorch",
    "Kernel": "api.kernel",
    "Function": "api.function",
    "ByShape": "api.by_shape",
    "MatmulSpec": "api.spec",
    "StepladderError": "runtime.errors",
    "ArgumentError": "api.errors",
    "EpilogueError": "api.errors",
    "CudaError": "runtime.driver",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'stepladder' has no attribute '{name}'")
    module = importlib.import_module(f"stepladder.{_MODULES[name]}")
    found = module if name in ("functions", "pytorch") else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
