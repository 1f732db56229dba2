"""The MLIR Python bindings, under whichever name they are installed.

The LLVM project's own wheel calls the package `mlir`; the wheel on PyPI that holds the same modules calls it
`torch_mlir`. This is the one module that knows: everything else imports MLIR from here.
"""

from __future__ import annotations

import importlib
import importlib.metadata

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

ir = importlib.import_module(f"{PREFIX}.ir")
interpreter = importlib.import_module(f"{PREFIX}.dialects.transform.interpreter")
transform = importlib.import_module(f"{PREFIX}.dialects.transform")
ext = importlib.import_module(f"{PREFIX}.dialects.ext")
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


def translate_to_llvm_ir(module_like) -> str:
    """Returns the LLVM IR text of an op that holds `llvm.func` ops, such as a lowered `gpu.module`."""
    return llvm.translate_module_to_llvmir(module_like)


def version() -> str:
    """Returns the distribution the bindings come from and its version, as "name version"."""
    for distribution in ("mlir-python-bindings", "torch-mlir"):
        try:
            return f"{distribution} {importlib.metadata.version(distribution)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return PREFIX
