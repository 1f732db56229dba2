"""Machine code of a kernel: PTX, cubin, and the resources that a block of it takes."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from stepladder.mlir import bindings
from stepladder.pipeline.codegen import cache as code_cache
from stepladder.pipeline.codegen import ptx
from stepladder.pipeline.codegen.kernel import Kernel, check_lowered
from stepladder.pipeline.codegen.toolchain import find_tool, tool_versions
from stepladder.runtime import targets
from stepladder.runtime.errors import StepladderError

# What these messages have in common.
_SERIALIZED = "wgmma.mma_async instructions are serialized"
# Bytes of spills a thread from which on another setting is tried: half of its registers.
_MANY_SPILLS = 512


@dataclass(frozen=True)
class MachineCode:
    """PTX and cubin of a kernel, and what ptxas reports.

    Attributes:
        ptx: text.
        cubin: the content of the file.
        registers: a thread.
        spill_stores, spill_loads: bytes a thread.
        static_shared_memory: bytes a block.
        is_serialized: whether ptxas lets no two `wgmma` be in flight (its messages C7510 to C7520).
        cached: whether it comes from the cache.
    """

    ptx: str
    cubin: bytes
    registers: int
    spill_stores: int
    spill_loads: int
    static_shared_memory: int
    is_serialized: bool
    cached: bool

    @property
    def is_slow(self) -> bool:
        """Whether the main loop waits for each `wgmma`, or a thread spills many registers."""
        return self.is_serialized or self.spill_stores >= _MANY_SPILLS

    @property
    def spills(self) -> dict[str, int]:
        """The bytes of spills a thread, as manifests have them."""
        return {"stores": self.spill_stores, "loads": self.spill_loads}


# The fields in the cache, with the cubin in base64.
_STORED = {
    "ptx": str,
    "cubin": str,
    "registers": int,
    "spill_stores": int,
    "spill_loads": int,
    "static_shared_memory": int,
    "is_serialized": bool,
    "cached": bool,
}


def generate(kernel: Kernel, *, use_cache: bool = True) -> MachineCode:
    """Returns the machine code of a kernel.

    Args:
        kernel: lowered to the NVVM and LLVM dialects.
        use_cache: reuse machine code made before from the same LLVM IR by the same tools.

    Raises:
        StepladderError: ptxas is missing, or LLVM or ptxas refuse the kernel (status FAILED).
    """
    ptxas = find_tool("ptxas")
    check_lowered(kernel)
    llvm_ir = bindings.translate_to_llvm_ir(kernel.module)
    backend = Path(__file__).with_name("llvm_backend.py").read_text()  # its optimization options belong to the key
    key = hashlib.sha256(
        "\n".join([llvm_ir, backend, kernel.target, ptxas, *map(str, tool_versions().values())]).encode()
    ).hexdigest()
    if use_cache:
        value = code_cache.lookup(key, _STORED)
        if value is not None:
            return _from_cache(value)
    text = ptx.to_ptx(llvm_ir, kernel.target)
    cubin, log = ptx.assemble(text, kernel.target)
    code = MachineCode(
        text,
        cubin,
        _figure(log, r"Used (\d+) registers"),
        _figure(log, r"(\d+) bytes spill stores"),
        _figure(log, r"(\d+) bytes spill loads"),
        _figure(log, r"(\d+) bytes smem"),
        _SERIALIZED in log,
        False,
    )
    if use_cache:
        code_cache.store(key, {**asdict(code), "cubin": base64.b64encode(cubin).decode()})
    return code


def _from_cache(value: code_cache.Value) -> MachineCode:
    return MachineCode(
        str(value["ptx"]),
        base64.b64decode(str(value["cubin"])),
        int(value["registers"]),
        int(value["spill_stores"]),
        int(value["spill_loads"]),
        int(value["static_shared_memory"]),
        bool(value["is_serialized"]),
        True,
    )


def check_resources(kernel: Kernel, code: MachineCode) -> None:
    """Checks that a block of the kernel fits the target.

    Args:
        kernel: its block size, dynamic shared memory and target.
        code: its registers and static shared memory.

    Raises:
        StepladderError: more shared memory, registers or threads than a block of the target may have.
    """
    target = targets.find(kernel.target)
    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    shared = code.static_shared_memory + kernel.dynamic_shared_memory
    if shared > target.shared_memory:
        raise StepladderError(
            f"a block needs {shared} bytes of shared memory, and {target.name} has {target.shared_memory}"
        )
    if code.registers * threads > targets.REGISTER_FILE:
        raise StepladderError(
            f"a block needs {code.registers} x {threads} registers, and {target.name} has {targets.REGISTER_FILE}"
        )


def describe_code(code: MachineCode, block: Sequence[int]) -> list[str]:
    """Returns the messages about a kernel whose `wgmma` ptxas serializes, or whose registers spill.

    Args:
        code: the kernel.
        block: extents of a block, in threads.
    """
    serialized = ["warning: ptxas serializes the wgmma instructions of the kernel; other tiles may avoid that"]
    spills = _describe_spills(code, block)
    return [*(serialized if code.is_serialized else []), *([spills] if spills else [])]


def _describe_spills(code: MachineCode, block: Sequence[int]) -> str:
    """Returns the message about a kernel whose registers spill, or an empty string where none do.

    Where a thread has all the registers that it can have, the tiles are too large. Where it has fewer, ptxas spills to
    fit more blocks on a multiprocessor, and smaller tiles need not help.

    Args:
        code: the kernel.
        block: extents of a block, in threads.
    """
    if not code.spill_stores and not code.spill_loads:
        return ""
    threads = math.prod(block)
    most = targets.registers_of_thread(threads)
    spills = f"a thread spills {code.spill_stores} bytes and reads {code.spill_loads} back"
    if "setmaxnreg" in code.ptx:
        return f"warning: {spills}; the warpgroups of a block divide its registers among them (setmaxnreg)"
    if code.registers < most:
        return (
            f"note: {spills}: ptxas gives it {code.registers} of the {most} registers that it can have, to fit more "
            "blocks on a multiprocessor"
        )
    if most < targets.REGISTERS:
        return (
            f"warning: {spills}: with {threads} threads per block, each can have {most} registers; a smaller block "
            "leaves more to each"
        )
    return f"warning: {spills}: it has all {most} registers that a thread can have; a smaller warp tile needs fewer"


def _figure(log: str, pattern: str) -> int:
    """Returns the number that a pattern finds in the log of ptxas, or 0."""
    match = re.search(pattern, log)
    return int(match.group(1)) if match else 0
