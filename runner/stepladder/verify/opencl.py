"""Runs SPIR-V kernels for Intel's GPUs on the CPU, by Intel's OpenCL runtime, independently of the emulator.

The runtime lacks the built-ins for 2D blocks and matrix products, which the kernel imports. They are a library in
OpenCL C (`xe_builtins.cl`), compiled by the runtime and linked with the kernel. The runtime reads its configuration
when a process begins, so that the kernel runs in a child:

    python -m stepladder.verify.opencl JOB
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stepladder.runtime.bundle.spirv import SpirvManifest
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.files import temporary_folder
from stepladder.runtime.problem import epilogue_role
from stepladder.runtime.processes import end_with_starter, environment_of_module

_LIBRARY = "libintelocl.so"
_IMPORT = re.compile(rb"_Z(\d+)(intel_sub_group_\w+)")
_BLOCK = re.compile(
    r"intel_sub_group_2d_block_(read|write|prefetch)(?:_(transform|transpose))?_(\d+)b_(\d+)r(\d+)x(\d+)c"
)
_MAD = re.compile(r"intel_sub_group_(f16|bf16)_\1_matrix_mad_k16")
_TYPES = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
_TRANSPOSED = 32  # least bits of elements that the hardware transposes
_ROWS = (2, 4, 8)  # of products
_SECONDS = 300


def find_runtime() -> Path | None:
    """Returns the path of Intel's OpenCL runtime, of its pip package; None where it or pyopencl is not installed."""
    path = Path(sys.prefix, "lib", _LIBRARY)
    return path if path.is_file() and importlib.util.find_spec("pyopencl") is not None else None


def runtime() -> Path:
    """Returns the path of Intel's OpenCL runtime.

    Raises:
        StepladderError: it is not installed (status NOT_EXECUTED).
    """
    path = find_runtime()
    if path is None:
        raise StepladderError(
            "Intel's OpenCL runtime is not installed; no kernel was launched",
            notes=["install it with: pip install '.[opencl]'"],
            status=NOT_EXECUTED,
        )
    return path


def library(spirv: bytes) -> str:
    """Returns OpenCL C of the built-ins that a module imports.

    Args:
        spirv: the module.

    Raises:
        StepladderError: a built-in that the library has no form of.
    """
    text = Path(__file__).with_name("xe_builtins.cl").read_text()
    names = {match[2][: int(match[1])].decode() for match in _IMPORT.finditer(spirv)}
    return "\n".join([text, *(_instance(name) for name in sorted(names)), ""])


def _instance(name: str) -> str:
    """Returns the line of the library that defines a built-in."""
    mad = _MAD.fullmatch(name)
    if mad is not None:
        return "\n".join(f"MATRIX_MAD({name}, of_{mad[1]}, {rows})" for rows in _ROWS)
    match = _BLOCK.fullmatch(name)
    if match is None or int(match[3]) not in _TYPES or (match[2] == "transpose" and int(match[3]) < _TRANSPOSED):
        raise StepladderError(f"the kernel imports '{name}', which the library of built-ins has no form of")
    kind, order = match[1], match[2]
    bits, rows, columns, blocks = (int(number) for number in match.groups()[2:])
    type_ = _TYPES[bits]
    if kind == "prefetch":
        return f"PREFETCH({name})"
    if order == "transform":
        return f"READ_TRANSFORM({name}, {type_}, {32 // bits}, {rows}, {blocks})"
    if order == "transpose":
        return f"READ_TRANSPOSE({name}, {type_}, {columns})"
    if kind == "write":
        return f"WRITE({name}, {type_}, {rows}, {columns})"
    return f"READ({name}, {type_}, {rows}, {columns}, {blocks})"


def run(
    spirv: bytes,
    kernel: str,
    arguments: Sequence[np.ndarray],
    grid: Sequence[int],
    work_group: Sequence[int],
) -> list[np.ndarray]:
    """Returns what the buffers of a kernel hold after a launch.

    Args:
        spirv: its module.
        kernel: entry point.
        arguments: what the buffers hold before, in the order of the parameters.
        grid: work-groups along x, y, z.
        work_group: work-items of one along x, y, z.

    Raises:
        StepladderError: the runtime is not installed (status NOT_EXECUTED), or it refuses the module (status FAILED).
    """
    with temporary_folder() as folder:
        driver = runtime()
        (folder / "kernel.spv").write_bytes(spirv)
        (folder / "library.cl").write_text(library(spirv))
        # The wheel's own file of the runtime names a path of another machine.
        (folder / "intel.icd").write_text(f"{driver}\n")
        for number, argument in enumerate(arguments):
            np.ascontiguousarray(argument).view(np.uint8).tofile(folder / f"{number}.bin")
        job = {"kernel": kernel, "buffers": len(arguments), "grid": list(grid), "work_group": list(work_group)}
        (folder / "job.json").write_text(json.dumps(job))
        paths = [str(driver.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        environment = {
            **environment_of_module(),
            "OCL_ICD_VENDORS": str(folder),
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)),
            "PYTHONWARNINGS": "ignore",
        }
        child = subprocess.run(
            [sys.executable, "-m", "stepladder.verify.opencl", str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        if child.returncode:
            raise StepladderError(
                "Intel's OpenCL runtime does not run the kernel",
                notes=child.stderr.strip().splitlines()[-3:],
                status=FAILED,
            )
        return [
            np.fromfile(folder / f"{number}.out", np.uint8).view(argument.dtype).reshape(argument.shape)
            for number, argument in enumerate(arguments)
        ]


class OpenClExecutor:
    """Runs a matmul on the CPU (`check.Executor`).

    Args:
        spirv: module of the kernel.
        manifest: of its bundle.
        constants: buffers that are constants of the payload, by role.
    """

    def __init__(self, spirv: bytes, manifest: SpirvManifest, constants: Mapping[str, np.ndarray]) -> None:
        self.spirv = spirv
        self.manifest = manifest
        self.constants = constants
        self._operands: dict[str, np.ndarray] = {}

    def load(self, a: np.ndarray, b: np.ndarray, *further: np.ndarray) -> None:
        """Takes A, B and the operands of elementwise ops for the launches that follow.

        Args:
            a: of the shape `problem.a_shape`.
            b: of the shape `problem.b_shape`.
            further: of the shapes of `problem.epilogue_operands`.
        """
        self._operands = {"a": a, "b": b}
        self._operands |= {epilogue_role(number): array for number, array in enumerate(further)}

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Runs the kernel with C holding `c` and returns what C holds afterwards.

        Args:
            c: of the shape `problem.c_shape`.

        Raises:
            StepladderError: as `run`.
        """
        manifest = self.manifest
        operands = {**self._operands, **self.constants, "c": c}
        arrays = [operands[argument.role].reshape(argument.shape) for argument in manifest.arguments]
        results = run(self.spirv, manifest.kernel_name, arrays, manifest.grid, manifest.work_group)
        place = next(number for number, argument in enumerate(manifest.arguments) if argument.role == "c")
        return results[place].reshape(c.shape)

    def results(self) -> list[np.ndarray]:
        """Returns the results beside C: the pipeline has none."""
        return []


def _child(folder: Path) -> None:
    """Runs the job in a folder, and writes what its buffers hold afterwards."""
    import pyopencl as cl  # pyright: ignore[reportMissingImports]  # an optional package, of the child alone

    job = json.loads((folder / "job.json").read_text())
    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    programs = [
        cl.Program(context, (folder / "kernel.spv").read_bytes()),
        cl.Program(context, (folder / "library.cl").read_text()),
    ]
    for program in programs:
        program.compile()
    kernel = cl.Kernel(cl.link_program(context, programs), job["kernel"])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays = [np.fromfile(folder / f"{number}.bin", np.uint8) for number in range(job["buffers"])]
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in arrays]
    sizes = tuple(groups * items for groups, items in zip(job["grid"], job["work_group"]))
    kernel(queue, sizes, tuple(job["work_group"]), *buffers)
    for number, (array, buffer) in enumerate(zip(arrays, buffers)):
        cl.enqueue_copy(queue, array, buffer)
        queue.finish()
        array.tofile(folder / f"{number}.out")


if __name__ == "__main__":
    end_with_starter()
    _child(Path(sys.argv[1]))
