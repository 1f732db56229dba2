"""The MLIR Python bindings, under whichever name they are installed.

The LLVM project's own wheel calls the package `mlir`; the wheel on PyPI with the same modules calls it `torch_mlir`.
Every other module imports MLIR from this one. Neither wheel has type stubs for `ir`, `transform` and `ext`: those in
`stubs/` cover what this package uses.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from stepladder.runtime.errors import StepladderError


class _Deferred(ModuleType):
    """A module that is imported when something in it is first asked for.

    Not `importlib.util.LazyLoader`, whose modules are imported as soon as they are looked up in `sys.modules`.
    """

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        value = getattr(importlib.import_module(self.__name__), name)
        if not name.startswith("__"):
            setattr(self, name, value)  # found at once from here on
        return value


@contextlib.contextmanager
def _deferred(name: str) -> Iterator[None]:
    """Defers the imports of a module in the block until something in the module is first asked for."""
    module = sys.modules.setdefault(name, _Deferred(name))
    try:
        yield
    finally:
        if isinstance(module, _Deferred) and sys.modules.get(name) is module:
            del sys.modules[name]


def _find_prefix() -> str:
    for prefix in ("mlir", "torch_mlir"):
        try:
            # `ir` imports NumPy for attributes of arrays alone, for a third of the time of its import.
            with _deferred("numpy"):
                importlib.import_module(f"{prefix}.dialects.transform.interpreter")
            return prefix
        except ImportError:
            continue
    raise StepladderError(
        "the MLIR Python bindings are not installed",
        notes=["`pip install .` in a checkout of stepladder installs them"],
    )


PREFIX = _find_prefix()


def _dialect(name: str) -> ModuleType:
    """Returns the module of a dialect, which is imported when something in it is first asked for.

    MLIR imports the module of a dialect for the first op of the dialect that it hands to Python, and has a class for
    each op then. This package handles ops by name: placeholder modules for the dialects keep the imports out,
    which take half as long as a small pipeline. `import_dialects` undoes that.
    """
    module = f"{PREFIX}.dialects.{name}"
    return sys.modules.setdefault(module, _Deferred(module))


def _linalg() -> ModuleType:
    """Returns `linalg`, of which only the op classes are imported: its module has a language for defining ops too."""
    if f"{PREFIX}.dialects.linalg" not in sys.modules:
        importlib.import_module(f"{PREFIX}.dialects._linalg_ops_gen")
    return _dialect("linalg")


if TYPE_CHECKING:
    from stepladder.mlir.stubs import ext, ir, transform  # pyright: ignore[reportMissingModuleSource]
else:
    ir = importlib.import_module(f"{PREFIX}.ir")
    ext = importlib.import_module(f"{PREFIX}.dialects.ext")
    transform = importlib.import_module(f"{PREFIX}.dialects.transform")
interpreter = importlib.import_module(f"{PREFIX}.dialects.transform.interpreter")
passmanager = importlib.import_module(f"{PREFIX}.passmanager")
builtin = importlib.import_module(f"{PREFIX}.dialects.builtin")
# The payload's other dialects.
affine = _dialect("affine")
arith = _dialect("arith")
bufferization = _dialect("bufferization")
gpu = _dialect("gpu")
irdl = _dialect("irdl")
linalg = _linalg()
llvm = _dialect("llvm")
memref = _dialect("memref")
nvgpu = _dialect("nvgpu")
nvvm = _dialect("nvvm")
scf = _dialect("scf")
vector = _dialect("vector")


def import_dialects() -> None:
    """Imports the modules of the payload's dialects: from here on, ops that MLIR hands to Python have their classes.

    `linalg` is left out, whose op classes are always there.
    """
    for dialect in (affine, arith, bufferization, gpu, llvm, memref, nvgpu, nvvm, scf, vector):
        if isinstance(sys.modules.get(dialect.__name__), _Deferred):
            del sys.modules[dialect.__name__]
        importlib.import_module(dialect.__name__)


def fill_builtin_region(operation: ir.Operation) -> None:
    """Gives an op of `linalg` with a fixed meaning, such as `linalg.add`, the region that computes it.

    Args:
        operation: with empty regions; it is changed.
    """
    _native_linalg().fill_builtin_region(operation)


def indexing_maps_of(operation: ir.Operation) -> list[ir.Attribute]:
    """Returns the indexing maps of an op of `linalg`, one for each operand, as attributes.

    Args:
        operation: named, or `linalg.generic`.
    """
    return list(_native_linalg().get_indexing_maps(operation))


def atomic_kinds() -> tuple[str, ...]:
    """Returns the names of `arith::AtomicRMWKind`, such as "addf", in the order of their encoding."""
    kinds = importlib.import_module(f"{PREFIX}.dialects._arith_enum_gen").AtomicRMWKind
    return tuple(kind.name for kind in sorted(kinds, key=int))


@functools.cache
def _native_linalg() -> ModuleType:
    return importlib.import_module(f"{PREFIX}._mlir_libs._mlirDialectsLinalg")


def set_dialect_module(name: str, module: ModuleType) -> None:
    """Gives the bindings the module of a dialect that is defined in Python.

    They look for one whenever they hand an op of the dialect to Python, each time anew where there is none.

    Args:
        name: of the dialect.
        module: placeholder of `dialects.NAME`.
    """
    sys.modules.setdefault(f"{PREFIX}.dialects.{name}", module)


def translate_to_llvm_ir(module_like: ir.Operation) -> str:
    """Returns the LLVM IR text of an op that holds `llvm.func` ops, such as a lowered `gpu.module`.

    Args:
        module_like: the op, whose ops are all of the LLVM dialect or translated by it.
    """
    return llvm.translate_module_to_llvmir(module_like)


@functools.cache
def version() -> str:
    """Returns the distribution the bindings come from and its version, as "name version"."""
    import importlib.metadata  # slow to import, and only asked for when machine code is made

    for distribution in ("mlir-python-bindings", "torch-mlir"):
        try:
            return f"{distribution} {importlib.metadata.version(distribution)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return PREFIX
