"""LLVM IR to SPIR-V (`spirv_backend`, in a child process), and the check of a module by spirv-val."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from stepladder import __version__
from stepladder.mlir import bindings
from stepladder.mlir.bindings import ir
from stepladder.mlir.diagnostics import shorten
from stepladder.mlir.llvm_layouts import layout
from stepladder.mlir.traverse import walk
from stepladder.pipeline.codegen import cache as code_cache
from stepladder.pipeline.codegen.kernel import Kernel, check_lowered
from stepladder.pipeline.codegen.llvm_text import for_older_llvm
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.files import temporary_folder
from stepladder.runtime.processes import environment_of_module

_MAX_LOG_LINES = 3
_ENVIRONMENT = "opencl2.2"  # of which modules are SPIR-V 1.2
_SHARED = 3  # address space
_SUBGROUP_SIZE = "intel_reqd_sub_group_size"


@dataclass(frozen=True)
class SpirvCode:
    """The SPIR-V module of a kernel.

    Attributes:
        spirv: the content of the file.
        llvm_ir: the text that it is made from, before it is optimized.
        subgroup_size: threads of a sub-group, which the kernel requires.
        shared_memory: bytes of shared local memory a work-group.
        validated: whether spirv-val has checked it; False where the tool is not installed.
    """

    spirv: bytes
    llvm_ir: str
    subgroup_size: int
    shared_memory: int
    validated: bool


def generate(kernel: Kernel, *, use_cache: bool = True) -> SpirvCode:
    """Returns the SPIR-V module of a kernel, checked by spirv-val where that is installed.

    Args:
        kernel: lowered to the LLVM dialect.
        use_cache: reuse a module made before from the same LLVM IR by the same tools.

    Raises:
        StepladderError: LLVM or spirv-val refuse the kernel (status FAILED), or it states no size of sub-groups.
    """
    check_lowered(kernel)
    function = next(op for op in walk(kernel.module, "llvm.func") if "gpu.kernel" in op.attributes)
    if _SUBGROUP_SIZE not in function.attributes:
        raise StepladderError(f"kernel @{kernel.name} has no {_SUBGROUP_SIZE}, which its matrix instructions need")
    llvm_ir = bindings.translate_to_llvm_ir(kernel.module)
    backend = Path(__file__).with_name("spirv_backend.py").read_text()
    validator = find_validator()
    key = hashlib.sha256("\n".join([llvm_ir, backend, str(validator), *tool_versions().values()]).encode()).hexdigest()
    value = code_cache.lookup(key, {"spirv": str}) if use_cache else None
    if value is not None:
        spirv = base64.b64decode(str(value["spirv"]))
    else:
        spirv = to_spirv(llvm_ir)
        if validator is not None:
            validate(spirv, validator)
        if use_cache:
            code_cache.store(key, {"spirv": base64.b64encode(spirv).decode()})
    size = ir.IntegerAttr(function.attributes[_SUBGROUP_SIZE]).value
    return SpirvCode(spirv, llvm_ir, size, _shared_bytes(kernel.module), validator is not None)


def _shared_bytes(module: ir.Operation) -> int:
    """Returns the bytes of the globals in shared local memory."""
    shared = [
        op
        for op in walk(module, "llvm.mlir.global")
        if "addr_space" in op.attributes and ir.IntegerAttr(op.attributes["addr_space"]).value == _SHARED
    ]
    return sum(layout(str(ir.TypeAttr(op.attributes["global_type"]).value)).bytes for op in shared)


def to_spirv(llvm_ir: str) -> bytes:
    """Returns the SPIR-V module of an LLVM IR module.

    Args:
        llvm_ir: its text.

    Raises:
        StepladderError: LLVM refuses the module (status FAILED).
    """
    child = subprocess.run(
        [sys.executable, "-m", "stepladder.pipeline.codegen.spirv_backend"],
        input=for_older_llvm(llvm_ir).encode(),
        capture_output=True,
        env=environment_of_module(),
        check=False,
    )
    if child.returncode:
        log = child.stderr.decode(errors="replace").strip().splitlines()
        last = [shorten(line) for line in log[-_MAX_LOG_LINES:]]
        raise StepladderError("LLVM cannot make SPIR-V of the kernel", notes=last, status=FAILED)
    return child.stdout


def find_validator() -> str | None:
    """Returns the path of spirv-val: that of STEPLADDER_SPIRV_VAL, of a pip package, or on PATH; None without it.

    Raises:
        StepladderError: STEPLADDER_SPIRV_VAL names no program.
    """
    variable = "STEPLADDER_SPIRV_VAL"
    if variable in os.environ:
        if shutil.which(os.environ[variable]) is None:
            raise StepladderError(f"{variable} is '{os.environ[variable]}', which is not a program")
        return os.environ[variable]
    for folder in sys.path:
        path = Path(folder or ".") / "cmeel.prefix" / "bin" / "spirv-val"
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which("spirv-val")


def validate(spirv: bytes, validator: str) -> None:
    """Checks a module with spirv-val.

    Args:
        spirv: the module.
        validator: the path of the tool (`find_validator`).

    Raises:
        StepladderError: the module is not valid (status FAILED).
    """
    with temporary_folder() as folder:
        file = folder / "kernel.spv"
        file.write_bytes(spirv)
        process = subprocess.run(
            [validator, "--target-env", _ENVIRONMENT, str(file)], capture_output=True, text=True, check=False
        )
    if process.returncode:
        lines = [shorten(line) for line in (process.stderr + process.stdout).strip().splitlines()[:_MAX_LOG_LINES]]
        raise StepladderError("spirv-val refuses the kernel", notes=lines, status=FAILED)


def tool_versions() -> dict[str, str]:
    """Returns name -> version of every tool between the payload and the SPIR-V module; spirv-val where it is there."""
    versions = {
        "stepladder": __version__,
        "mlir": bindings.version(),
        "llvmlite": importlib.metadata.version("llvmlite"),
    }
    validator = find_validator()
    if validator is not None:
        text = subprocess.run([validator, "--version"], capture_output=True, text=True, check=False).stdout
        match = re.search(r"v\d+\.\d+", text)
        versions["spirv-val"] = match[0] if match else "unknown"
    return versions
