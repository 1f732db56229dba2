"""The MLIR Python bindings, under whichever name they are installed.

The LLVM project's own wheel calls the package `mlir`; the wheel on PyPI with the same modules calls it `torch_mlir`.
Every other module imports MLIR from this one. Neither wheel has type stubs for `ir`, `transform` and `ext`: those in
`stubs/` cover what this package uses.
"""

from __future__ import annotations

import importlib
import importlib.metadata
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
        "the MLIR Python bindings are not installed",
        notes=["install this package with pip, which brings them: pip install stepladder"],
    )


PREFIX = _find_prefix()

if TYPE_CHECKING:
    from stepladder.mlir.stubs import ext, ir, transform  # pyright: ignore[reportMissingModuleSource]
else:
    ir = importlib.import_module(f"{PREFIX}.ir")
    ext = importlib.import_module(f"{PREFIX}.dialects.ext")
    transform = importlib.import_module(f"{PREFIX}.dialects.transform")
interpreter = importlib.import_module(f"{PREFIX}.dialects.transform.interpreter")
affine = importlib.import_module(f"{PREFIX}.dialects.affine")
arith = importlib.import_module(f"{PREFIX}.dialects.arith")
builtin = importlib.import_module(f"{PREFIX}.dialects.builtin")
gpu = importlib.import_module(f"{PREFIX}.dialects.gpu")
llvm = importlib.import_module(f"{PREFIX}.dialects.llvm")
linalg = importlib.import_module(f"{PREFIX}.dialects.linalg")
memref = importlib.import_module(f"{PREFIX}.dialects.memref")
nvgpu = importlib.import_module(f"{PREFIX}.dialects.nvgpu")
nvvm = importlib.import_module(f"{PREFIX}.dialects.nvvm")
scf = importlib.import_module(f"{PREFIX}.dialects.scf")
vector = importlib.import_module(f"{PREFIX}.dialects.vector")
bufferization = importlib.import_module(f"{PREFIX}.dialects.bufferization")
passmanager = importlib.import_module(f"{PREFIX}.passmanager")


def translate_to_llvm_ir(module_like: ir.Operation) -> str:
    """Returns the LLVM IR text of an op that holds `llvm.func` ops, such as a lowered `gpu.module`."""
    return llvm.translate_module_to_llvmir(module_like)


def version() -> str:
    """Returns the distribution that the bindings are installed from and its version, as "name version"."""
    for distribution in ("mlir-python-bindings", "torch-mlir"):
        try:
            return f"{distribution} {importlib.metadata.version(distribution)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return PREFIX
