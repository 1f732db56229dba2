"""The tools that make machine code: their paths and versions."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from stepladder import __version__
from stepladder.mlir import bindings
from stepladder.runtime.errors import StepladderError


def find_tool(name: str) -> str:
    """Returns the path of one of NVIDIA's command-line tools.

    The environment variable STEPLADDER_PTXAS (or STEPLADDER_NVDISASM) comes first, then pip packages, then PATH.

    Args:
        name: "ptxas" or "nvdisasm".

    Raises:
        StepladderError: the tool is at none of these paths.
    """
    variable = f"STEPLADDER_{name.upper()}"
    if variable in os.environ:
        if shutil.which(os.environ[variable]) is None:
            raise StepladderError(f"{variable} is '{os.environ[variable]}', which is not a program")
        return os.environ[variable]
    for folder in sys.path:
        for path in sorted(Path(folder or ".").glob(f"nvidia/*/bin/{name}")):
            if os.access(path, os.X_OK):
                return str(path)
    path = shutil.which(name)
    if path is None:
        package = "nvidia-cuda-nvcc" if name == "ptxas" else "nvidia-cuda-nvdisasm"
        raise StepladderError(
            f"{name} is missing",
            notes=[f"install it with: pip install '{package}==13.0.*'", f"or point {variable} at it"],
        )
    return path


def find_libdevice() -> str:
    """Returns the path of NVIDIA's library of elementary functions, as LLVM bitcode: beside ptxas, or in a pip package.

    Raises:
        StepladderError: it is at none of these paths.
    """
    name = "nvvm/libdevice/libdevice.10.bc"
    folders = [*(Path(folder or ".") / "nvidia" for folder in sys.path), Path(find_tool("ptxas")).resolve().parents[1]]
    for folder in folders:
        for path in [folder / name, *sorted(folder.glob(f"*/{name}"))]:
            if path.is_file():
                return str(path)
    raise StepladderError(
        "libdevice is missing, whose elementary functions the kernel calls",
        notes=["install it with: pip install 'nvidia-cuda-nvcc==13.0.*'"],
    )


def tool_versions() -> dict[str, str]:
    """Returns name -> version of every tool between the payload and the cubin.

    Raises:
        StepladderError: ptxas is missing.
    """
    tool = find_tool("ptxas")
    status = os.stat(shutil.which(tool) or tool)
    return {
        "stepladder": __version__,
        "mlir": bindings.version(),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "ptxas": _version_of(tool, (status.st_ino, status.st_mtime_ns, status.st_size)),
    }


@functools.cache
def _version_of(ptxas: str, file: tuple[int, ...]) -> str:
    """Returns the version of a ptxas, which is asked once for each `file` that is found at its path."""
    release = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"V(\d+\.\d+\.\d+)", release)
    return version.group(1) if version else "unknown"
