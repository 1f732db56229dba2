"""The MLIR Python bindings, under whichever name they are installed.

The LLVM project's own wheel calls the package `mlir`; the wheel on PyPI with the same modules calls it `torch_mlir`.
Every other module imports MLIR from this one. Neither wheel has type stubs for `ir`, `transform` and `ext`: those in
`stubs/` cover what this package uses.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from stepladder.runtime.errors import StepladderError


def _find_prefix() -> str:
    for prefix in ("mlir", "torch_mlir"):
        try:
            importlib.import_module(f"{prefix}.dialects.transform.interpreter")
            return prefix
        except ImportError:
            continue
    raise StepladderError(
        "the MLIR Python bindings are not installed", notes=["`pip install .` in a checkout of stepladder brings them"]
    )


PREFIX = _find_prefix()


class _Dialect(ModuleType):
    """A dialect's module that is imported when something in it is first asked for.

    Not `importlib.util.LazyLoader`, whose modules are imported as soon as they are looked up in `sys.modules`.
    """

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _dialect(name: str) -> ModuleType:
    return _Dialect(f"{PREFIX}.dialects.{name}")


def _without_opdsl() -> ModuleType:
    """Returns `linalg`, of which only the op classes are imported.

    MLIR imports a dialect's module for the first op of the dialect that it hands to Python. That of `linalg` imports a
    language for defining ops too, for as much time as a small pipeline takes; a module that holds its place until
    something other than an op class is asked for keeps it out.
    """
    dialect = _dialect("linalg")
    if dialect.__name__ in sys.modules:
        return sys.modules[dialect.__name__]
    importlib.import_module(f"{PREFIX}.dialects._linalg_ops_gen")
    return sys.modules.setdefault(dialect.__name__, dialect)


if TYPE_CHECKING:
    from stepladder.mlir.stubs import ext, ir, transform  # pyright: ignore[reportMissingModuleSource]
else:
    ir = importlib.import_module(f"{PREFIX}.ir")
    ext = importlib.import_module(f"{PREFIX}.dialects.ext")
    transform = importlib.import_module(f"{PREFIX}.dialects.transform")
interpreter = importlib.import_module(f"{PREFIX}.dialects.transform.interpreter")
passmanager = importlib.import_module(f"{PREFIX}.passmanager")
# The payload's dialects.
affine = _dialect("affine")
arith = _dialect("arith")
bufferization = _dialect("bufferization")
builtin = _dialect("builtin")
gpu = _dialect("gpu")
irdl = _dialect("irdl")
linalg = _without_opdsl()
llvm = _dialect("llvm")
memref = _dialect("memref")
nvgpu = _dialect("nvgpu")
nvvm = _dialect("nvvm")
scf = _dialect("scf")
vector = _dialect("vector")


def fill_builtin_region(operation: ir.Operation) -> None:
    """Gives an op of `linalg` with a fixed meaning, such as `linalg.add`, the region that says it."""
    importlib.import_module(f"{PREFIX}._mlir_libs._mlirDialectsLinalg").fill_builtin_region(operation)


def set_dialect_module(name: str, module: ModuleType) -> None:
    """Gives the bindings the module of a dialect that is defined in Python.

    They look for one whenever they hand an op of the dialect to Python, each time anew where there is none.
    """
    sys.modules.setdefault(f"{PREFIX}.dialects.{name}", module)


def translate_to_llvm_ir(module_like: ir.Operation) -> str:
    """Returns the LLVM IR text of an op that holds `llvm.func` ops, such as a lowered `gpu.module`."""
    return llvm.translate_module_to_llvmir(module_like)


def version() -> str:
    """Returns the distribution the bindings come from and its version, as "name version"."""
    import importlib.metadata  # slow to import, and only asked for when machine code is made

    for distribution in ("mlir-python-bindings", "torch-mlir"):
        try:
            return f"{distribution} {importlib.metadata.version(distribution)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return PREFIX
