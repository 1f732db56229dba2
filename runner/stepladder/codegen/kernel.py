"""From a lowered module to machine code: LLVM IR, PTX, cubin, and what the kernel takes of the machine."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import diskcache

from stepladder.mlir import bindings, diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.runtime import targets
from stepladder.runtime.errors import FAILED, StepladderError

_CACHE_BYTES = 256 * 1024 * 1024
_MAX_LOG_LINES = 3


@dataclass(frozen=True)
class Descriptor:
    """How a kernel sees an argument through TMA: `box` in elements, outermost first; the rest by MLIR's names."""

    box: tuple[int, ...]
    swizzle: str
    l2_promotion: str
    oob_fill: str
    interleave: str


@dataclass(frozen=True)
class Parameter:
    """What a kernel takes: the function argument of this number, as a pointer or through a TMA descriptor."""

    number: int
    descriptor: Descriptor | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel in a lowered module: how it is launched.

    `parameters` are in the kernel's order; `dynamic_shared_memory` is in bytes.
    """

    name: str
    target: str
    grid: list[int]
    block: list[int]
    cluster: list[int]
    parameters: list[Parameter]
    dynamic_shared_memory: int
    module: object


@dataclass(frozen=True)
class MachineCode:
    """PTX and cubin of a kernel, and what ptxas reports: registers a thread; spills and shared memory in bytes."""

    ptx: str
    cubin: bytes
    registers: int
    spill_stores: int
    spill_loads: int
    static_shared_memory: int
    cached: bool


def _constant(value) -> int:
    return ir.IntegerAttr(value.owner.attributes["value"]).value


def _parameter(operand, launch) -> Parameter:
    """Returns what a launch passes: an argument of the function, or a TMA descriptor made of one."""
    if isinstance(operand.owner, ir.Block):
        return Parameter(ir.BlockArgument(operand).arg_number)
    create = operand.owner.operation
    if create.name == "builtin.unrealized_conversion_cast":
        create = create.operands[0].owner.operation
    if create.name == "nvgpu.tma.create.descriptor":
        source = create.operands[0].owner
        buffer = create.operands[0] if isinstance(source, ir.Block) else source.operands[0]
        if isinstance(buffer.owner, ir.Block):
            return Parameter(ir.BlockArgument(buffer).arg_number, _descriptor(create))
    raise StepladderError(
        "the kernel is passed a value that is no argument of the function",
        location=diagnostics.location_text(launch.location),
    )


def _descriptor(create) -> Descriptor:
    """Returns the parameters of a TMA descriptor, as its type says them."""
    text = str(create.results[0].type)
    found = re.search(
        r"memref<([\dx]+)x\w+, 3>, swizzle = (?:swizzle_)?(\w+), l2promo = (?:l2promo_)?(\w+), "
        r"oob = (\w+), interleave = (?:interleave_)?(\w+)>",
        text,
    )
    if found is None:
        raise StepladderError(
            f"cannot read the TMA descriptor {text}", location=diagnostics.location_text(create.location)
        )
    box, swizzle, promotion, fill, interleave = found.groups()
    return Descriptor(tuple(map(int, box.split("x"))), swizzle, promotion, fill, interleave)


def find_kernel(module) -> Kernel:
    """Returns the one kernel of a lowered module.

    Raises:
        StepladderError: no launch in the module, or more than one: the pipeline does not end in a kernel.
    """
    launches = walk(module, "gpu.launch_func")
    if len(launches) != 1:
        raise StepladderError(
            f"expected one gpu.launch_func after the last step, found {len(launches)}",
            notes=["a pipeline that is compiled ends with outlining and lowering a kernel"],
        )
    launch = launches[0]
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]

    # Segments of gpu.launch_func: async tokens, grid x y z, block x y z, cluster x y z, dynamic shared memory,
    # kernel operands, async object.
    def segment(index):
        return list(launch.operands)[starts[index] : starts[index + 1]]

    grid = [_constant(segment(i)[0]) for i in (1, 2, 3)]
    block = [_constant(segment(i)[0]) for i in (4, 5, 6)]
    cluster = [_constant(segment(i)[0]) if segment(i) else 1 for i in (7, 8, 9)]
    dynamic = _constant(segment(10)[0]) if segment(10) else 0
    parameters = [_parameter(operand, launch) for operand in segment(11)]
    kernels = walk(module, "gpu.module")
    if len(kernels) != 1 or "targets" not in kernels[0].attributes:
        raise StepladderError("expected one gpu.module with a target attached after the last step")
    chip = re.search(r'chip = "(\w+)"', str(kernels[0].attributes["targets"]))
    name = str(launch.attributes["kernel"]).split("::")[-1].lstrip("@")
    return Kernel(name, chip.group(1) if chip else "sm_75", grid, block, cluster, parameters, dynamic, kernels[0])


def find_tool(name: str) -> str:
    """Returns the path of one of NVIDIA's command-line tools, "ptxas" or "nvdisasm".

    Looks at the variable STEPLADDER_PTXAS (or ..._NVDISASM), at the pip packages, then at PATH.

    Raises:
        StepladderError: none of them has it.
    """
    variable = f"STEPLADDER_{name.upper()}"
    if variable in os.environ:
        if shutil.which(os.environ[variable]) is None:
            raise StepladderError(f"{variable} is '{os.environ[variable]}', which is no program")
        return os.environ[variable]
    for folder in sys.path:
        for found in sorted(Path(folder or ".").glob(f"nvidia/*/bin/{name}")):
            if os.access(found, os.X_OK):
                return str(found)
    found = shutil.which(name)
    if found is None:
        package = "nvidia-cuda-nvcc" if name == "ptxas" else "nvidia-cuda-nvdisasm"
        raise StepladderError(
            f"{name} is missing",
            notes=[f"install it with: pip install '{package}==13.0.*'", f"or point {variable} at it"],
        )
    return found


def tool_versions() -> dict[str, str]:
    """Returns name -> version of everything between the payload and the cubin."""
    release = subprocess.run([find_tool("ptxas"), "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"V(\d+\.\d+\.\d+)", release)
    from stepladder import __version__

    return {
        "stepladder": __version__,
        "mlir": bindings.version(),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "ptxas": version.group(1) if version else "unknown",
    }


def cache_folder() -> Path:
    """Returns the folder of what can be made anew: STEPLADDER_CACHE_DIR, or one in the user's cache."""
    return Path(
        os.environ.get("STEPLADDER_CACHE_DIR")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepladder"
    )


def _cache() -> diskcache.Cache:
    return diskcache.Cache(str(cache_folder()), disk=diskcache.JSONDisk, size_limit=_CACHE_BYTES)


def _to_ptx(llvm_ir: str, chip: str) -> str:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    child = subprocess.run(
        [sys.executable, "-m", "stepladder.codegen.llvm_backend", chip],
        input=llvm_ir,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if child.returncode:
        last = [diagnostics.shorten(line) for line in child.stderr.strip().splitlines()[-_MAX_LOG_LINES:]]
        raise StepladderError(f"LLVM cannot make PTX for {chip}", notes=last, status=FAILED)
    foreign = re.search(r"llvm\.nvvm\.[\w.]+", child.stdout)
    if foreign:
        raise StepladderError(f"this LLVM does not know the intrinsic {foreign.group(0)}", status=FAILED)
    return child.stdout


def _assemble(ptx: str, chip: str) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory(prefix="stepladder-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        result = subprocess.run(
            [find_tool("ptxas"), "-v", f"-arch={chip}", str(source), "-o", str(target)],
            capture_output=True,
            text=True,
            check=False,
        )
        log = result.stderr + result.stdout
        if result.returncode:
            lines = [diagnostics.shorten(line) for line in log.splitlines() if "error" in line or "fatal" in line]
            raise StepladderError(f"ptxas refuses the kernel for {chip}", notes=lines[:_MAX_LOG_LINES], status=FAILED)
        return target.read_bytes(), log


def _figure(log: str, pattern: str) -> int:
    found = re.search(pattern, log)
    return int(found.group(1)) if found else 0


def _check_lowered(kernel: Kernel) -> None:
    """Checks that nothing is left that LLVM IR has no word for: the translation would end the process."""
    for op in walk(kernel.module):
        if not op.name.startswith(("llvm.", "nvvm.", "gpu.module")):
            raise StepladderError(
                f"{op.name} is left in the kernel after the last step",
                location=diagnostics.location_text(op.location) or None,
                status=FAILED,
                notes=["a pipeline that is compiled lowers its kernel to the NVVM and LLVM dialects"],
            )


def generate(kernel: Kernel, *, use_cache: bool = True) -> MachineCode:
    """Makes PTX and a cubin of a kernel.

    Raises:
        StepladderError: ptxas is missing, or LLVM or ptxas refuse the kernel (status FAILED).
    """
    ptxas = find_tool("ptxas")
    _check_lowered(kernel)
    llvm_ir = bindings.translate_to_llvm_ir(kernel.module)
    backend = Path(__file__).with_name("llvm_backend.py").read_text()  # how LLVM is told to optimize is part of it
    key = hashlib.sha256(
        "\n".join([llvm_ir, backend, kernel.target, ptxas, *map(str, tool_versions().values())]).encode()
    ).hexdigest()
    if use_cache:
        with _cache() as cache:
            if (stored := cache.get(key)) is not None:
                return MachineCode(**{**stored, "cubin": base64.b64decode(stored["cubin"]), "cached": True})
    ptx = _to_ptx(llvm_ir, kernel.target)
    cubin, log = _assemble(ptx, kernel.target)
    code = MachineCode(
        ptx,
        cubin,
        _figure(log, r"Used (\d+) registers"),
        _figure(log, r"(\d+) bytes spill stores"),
        _figure(log, r"(\d+) bytes spill loads"),
        _figure(log, r"(\d+) bytes smem"),
        False,
    )
    if use_cache:
        with _cache() as cache:
            cache.set(key, {**asdict(code), "cubin": base64.b64encode(cubin).decode()})
    return code


def check_resources(kernel: Kernel, code: MachineCode) -> None:
    """Checks that a block of the kernel fits the target.

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
