"""Stepladder: compiles a matmul in `linalg` IR to kernels for GPU matrix units, step by step.

    import stepladder

    kernel = stepladder.compile("matmul.mlir")   # a kernel, which is called on arrays
    c = stepladder.matmul(a, b)                  # compiled when a shape is used first

docs/python.md describes the interface. The names below are imported when they are used first.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader
    from types import ModuleType

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


_NAMED_MODULES = ("functions", "pytorch")


class _NamedModules:
    """Finds `stepladder.functions` and `stepladder.pytorch` where an import statement has these names."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        if package != __name__ or last not in _NAMED_MODULES:
            return None
        return ModuleSpec(name, cast("Loader", self))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"{__name__}.{_MODULES[spec.name.rpartition('.')[2]]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import has given the module the spec of its other name.
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_NamedModules())  # after those that find files


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'stepladder' has no attribute '{name}'")
    module = importlib.import_module(f"stepladder.{_MODULES[name]}")
    found = module if name in _NAMED_MODULES else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
