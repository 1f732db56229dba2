"""LLVM IR to PTX (`llvm_backend`, in another process), and PTX to a cubin (ptxas)."""

from __future__ import annotations

import re
import subprocess

from stepladder.mlir.diagnostics import shorten
from stepladder.pipeline.codegen.llvm_processes import run_back_end
from stepladder.pipeline.codegen.llvm_text import for_older_llvm
from stepladder.pipeline.codegen.toolchain import find_libdevice, find_tool
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.files import temporary_folder

_MAX_LOG_LINES = 3


def to_ptx(llvm_ir: str, chip: str) -> str:
    """Returns the PTX of an LLVM IR module.

    Args:
        llvm_ir: its text.
        chip: the target, such as "sm_80".

    Raises:
        StepladderError: LLVM refuses the module (status FAILED), or libdevice, whose functions it calls, is missing.
    """
    child = run_back_end([chip, *_libraries(llvm_ir)], for_older_llvm(llvm_ir))
    if child.returncode:
        last = [shorten(line) for line in child.stderr.strip().splitlines()[-_MAX_LOG_LINES:]]
        raise StepladderError(f"LLVM cannot make PTX for {chip}", notes=last, status=FAILED)
    foreign = re.search(r"llvm\.nvvm\.[\w.]+", child.stdout)
    if foreign:
        raise StepladderError(f"this LLVM does not know the intrinsic {foreign.group(0)}", status=FAILED)
    return child.stdout


def _libraries(llvm_ir: str) -> list[str]:
    """Returns the path of libdevice, for a module that calls its elementary functions; else nothing."""
    return [find_libdevice()] if re.search(r"^declare [^@]*@__nv_", llvm_ir, re.M) else []


def assemble(ptx: str, chip: str) -> tuple[bytes, str]:
    """Returns the cubin of PTX, and what ptxas logs.

    Args:
        ptx: its text.
        chip: the target, such as "sm_80".

    Raises:
        StepladderError: ptxas is missing, or refuses the PTX (status FAILED).
    """
    with temporary_folder() as folder:
        source, target = folder / "kernel.ptx", folder / "kernel.cubin"
        source.write_text(ptx)
        tool = find_tool("ptxas")
        result = subprocess.run(
            [tool, "-v", f"-arch={chip}", str(source), "-o", str(target)],
            capture_output=True,
            text=True,
            check=False,
        )
        log = result.stderr + result.stdout
        if result.returncode or not target.is_file():
            lines = [shorten(line) for line in log.splitlines() if "error" in line or "fatal" in line]
            lines = lines or [f"'{tool}' ended with status {result.returncode}, without machine code or an error"]
            raise StepladderError(f"ptxas refuses the kernel for {chip}", notes=lines[:_MAX_LOG_LINES], status=FAILED)
        return target.read_bytes(), log
