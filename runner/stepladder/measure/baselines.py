"""The baseline: cuBLAS on the same problem and the same buffers.

nvmath-python calls it where that is installed. Otherwise the library itself is called: cuda-python's `cuda.pathfinder`
finds the one that comes with PyTorch, with the CUDA toolkit or with the wheel `nvidia-cublas`. (PyTorch's own `addmm`
is no substitute: not every version has C = AB + C with f16 operands and an f32 C.) Either way `cublasGemmEx` is called
with its default algorithm, which is what users of cuBLAS get, and results name the library and its version.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.runtime.bundle import Problem
from stepladder.runtime.element_types import FP8_TYPES, element_type
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.launch import Buffer, MatmulBuffers

# What NVIDIA recommends on Hopper, and what PyTorch gives it.
WORKSPACE_BYTES = 32 << 20

# Values of cudaDataType_t, cublasOperation_t (by layout), cublasGemmAlgo_t and cublasStatus_t.
DATA_TYPES = {"f32": 0, "f16": 2, "i8": 3, "i32": 10, "bf16": 14}
OPERATIONS = {"row": 0, "column": 1}
DEFAULT_ALGORITHM = -1
STATUSES = {
    7: "invalid value",
    8: "no such feature on this GPU",
    13: "execution failed",
    14: "internal error",
    15: "no such product",
}

# cublasComputeType_t by (type of A and B, type of the products, of the sums, of C): all products that are asked for.
COMPUTE_TYPES = {
    ("f16", "f16", "f32", "f32"): 68,
    ("f16", "f16", "f32", "f16"): 68,
    ("f16", "f16", "f16", "f16"): 64,
    ("bf16", "bf16", "f32", "f32"): 68,
    ("bf16", "bf16", "f32", "bf16"): 68,
    ("f32", "f32", "f32", "f32"): 68,
    ("f32", "tf32", "f32", "f32"): 77,
    ("i8", "i8", "i32", "i32"): 72,
}
# Leading dimensions of 8-bit operands are multiples of this.
INTEGER_ALIGNMENT = 4


@dataclass(frozen=True)
class Baseline:
    """A library's matmul, ready to run.

    Attributes:
        provider: which library, through what, and their versions.
        enqueue: enqueues one product on the buffers' device and stream.
    """

    provider: str
    enqueue: Callable[[], None]


def _key(problem: Problem) -> tuple[str, str, str, str]:
    return problem.a_type, problem.compute_type, problem.acc_type, problem.c_type


def unsupported(problem: Problem) -> str:
    """Returns why cuBLAS has no such product, or an empty string where it has one."""
    if problem.a_type in FP8_TYPES or problem.b_type in FP8_TYPES:
        return "cublasGemmEx has no products of fp8"
    if problem.a_type != problem.b_type or _key(problem) not in COMPUTE_TYPES:
        products = [f"{product} -> {stored} ({sums} sums)" for _, product, sums, stored in COMPUTE_TYPES]
        return f"it has {', '.join(products)}"
    extents = {problem.a_shape[1], problem.b_shape[1], problem.n}
    if problem.a_type == "i8" and any(extent % INTEGER_ALIGNMENT for extent in extents):
        return f"rows of stored i8 operands and of C must be multiples of {INTEGER_ALIGNMENT} elements"
    return ""


def refuse_unsupported(problem: Problem) -> None:
    """Raises StepladderError where cuBLAS has no product of these element types and extents."""
    if reason := unsupported(problem):
        raise StepladderError(f"there is no cuBLAS baseline for {problem.describe()}: {reason}; use --baseline none")


def cublas(buffers: MatmulBuffers) -> Baseline:
    """Returns cuBLAS on `buffers`.

    Raises:
        StepladderError: cuBLAS is not there (status NOT_EXECUTED), or has no such product.
    """
    problem, device = buffers.problem, buffers.device
    refuse_unsupported(problem)
    library, through = _find_library()
    handle = library.create()
    workspace = device.allocate(WORKSPACE_BYTES)
    library.set_stream(handle, device.stream)
    library.set_workspace(handle, workspace.address, workspace.size)
    # The scalars are of the type that is summed in.
    alpha = np.ones(1, element_type(problem.acc_type).dtype)
    beta = alpha if problem.accumulate else np.zeros_like(alpha)
    # nvmath-python has an exception of its own.
    refusals = getattr(library, "cuBLASError", ())

    def enqueue(keep_alive: Buffer = workspace) -> None:
        # cuBLAS is column-major, where a row-major matrix reads as its transpose: transposed C = transposed B x A.
        # A column-major operand reads as itself, and is transposed by the operation.
        try:
            library.gemm_ex(
                handle,
                OPERATIONS[problem.b_layout],
                OPERATIONS[problem.a_layout],
                problem.n,
                problem.m,
                problem.k,
                alpha.ctypes.data,
                buffers.b.address,
                DATA_TYPES[problem.b_type],
                problem.b_shape[1],
                buffers.a.address,
                DATA_TYPES[problem.a_type],
                problem.a_shape[1],
                beta.ctypes.data,
                buffers.c.address,
                DATA_TYPES[problem.c_type],
                problem.n,
                COMPUTE_TYPES[_key(problem)],
                DEFAULT_ALGORITHM,
            )
        except refusals as error:
            raise StepladderError(
                f"cuBLAS fails at {problem.describe()}: {error}; use --baseline none", status=FAILED
            ) from error

    version = library.get_version(handle)
    return Baseline(f"cuBLAS {version // 10000}.{version // 100 % 100}.{version % 100} through {through}", enqueue)


def _find_library() -> tuple[Any, str]:
    """Returns an object with the functions of nvmath-python's `bindings.cublas` used here, and how it was found."""
    try:
        import nvmath
        from nvmath.bindings import cublas as bindings

        return bindings, f"nvmath-python {nvmath.__version__}"
    except ImportError:
        pass
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return _Library(load_nvidia_dynamic_lib("cublas").abs_path), "its own library"
    except (ImportError, OSError, RuntimeError) as error:
        raise StepladderError(
            "no cuBLAS on this machine: install nvidia-cublas, nvmath-python or PyTorch, or use --baseline none",
            notes=str(error).splitlines()[:1],
            status=NOT_EXECUTED,
        ) from error


class _Library:
    """The functions of libcublas used here, by the names and with the arguments of nvmath-python's bindings."""

    def __init__(self, path: str):
        library = ctypes.CDLL(path)
        pointer, integer = ctypes.c_void_p, ctypes.c_int
        signatures = {
            "cublasCreate_v2": (ctypes.POINTER(pointer),),
            "cublasGetVersion_v2": (pointer, ctypes.POINTER(integer)),
            "cublasSetStream_v2": (pointer, pointer),
            "cublasSetWorkspace_v2": (pointer, pointer, ctypes.c_size_t),
            "cublasGemmEx": (
                pointer,
                integer,
                integer,
                integer,
                integer,
                integer,
                pointer,
                pointer,
                integer,
                integer,
                pointer,
                integer,
                integer,
                pointer,
                pointer,
                integer,
                integer,
                integer,
                integer,
            ),
        }
        self._functions = {}
        for name, arguments in signatures.items():
            function = getattr(library, name)
            function.argtypes = arguments
            function.restype = integer
            self._functions[name] = function

    def create(self) -> int:
        handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(handle))
        return handle.value

    def get_version(self, handle: int) -> int:
        version = ctypes.c_int()
        self._call("cublasGetVersion_v2", handle, ctypes.byref(version))
        return version.value

    def set_stream(self, handle: int, stream: int) -> None:
        self._call("cublasSetStream_v2", handle, stream)

    def set_workspace(self, handle: int, address: int, size: int) -> None:
        self._call("cublasSetWorkspace_v2", handle, address, size)

    def gemm_ex(self, *arguments: int) -> None:
        self._call("cublasGemmEx", *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        status = self._functions[name](*arguments)
        if status != 0:
            meaning = f" ({STATUSES[status]})" if status in STATUSES else ""
            raise StepladderError(f"{name} failed with cublasStatus_t {status}{meaning}", status=FAILED)
