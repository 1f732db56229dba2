"""cuBLAS through the bindings of nvmath-python: `cublasGemmEx` with its default algorithm, or
`cublasGemmStridedBatchedEx` for batches."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable

import numpy as np

from stepladder.runtime.buffers import Buffer
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.launch import MatmulBuffers

# NVIDIA's recommendation for Hopper; PyTorch sets the same there.
WORKSPACE_BYTES = 32 << 20

# Members of nvmath's CudaDataType, and of its Operation by the layout of an operand.
DATA_TYPES = {"f32": "CUDA_R_32F", "f16": "CUDA_R_16F", "i8": "CUDA_R_8I", "i32": "CUDA_R_32I", "bf16": "CUDA_R_16BF"}
OPERATIONS = {"row": "N", "column": "T"}


def prepare(buffers: MatmulBuffers, compute_type: str, *, fast_accum: bool) -> tuple[str, Callable[[], None]]:
    """Prepares cublasGemmEx on the operands of a problem.

    Args:
        buffers: the operands.
        compute_type: member of `cublasComputeType_t` without its prefix, for example `COMPUTE_32F`.
        fast_accum: of products of fp8, which cublasGemmEx does not have.

    Returns:
        The provider, and a function that enqueues one product; it raises StepladderError with status FAILED where
        cuBLAS refuses the product.

    Raises:
        ImportError: nvmath-python or libcublas is missing, or cublasGemmEx has no such product.
    """
    if buffers.problem.a_type not in DATA_TYPES:
        raise ImportError("products of fp8 are measured through PyTorch, which calls cuBLASLt")
    nvmath = importlib.import_module("nvmath")
    library = importlib.import_module("nvmath.bindings.cublas")
    try:
        handle: int = library.create()
    except RuntimeError as error:  # nvmath's own errors for a library that it does not find
        raise ImportError(f"nvmath-python does not load cuBLAS: {error}") from error
    problem, device = buffers.problem, buffers.device
    workspace = device.allocate(WORKSPACE_BYTES)
    library.set_stream(handle, device.stream)
    library.set_workspace(handle, workspace.address, workspace.size)
    # The scalars have the accumulator's type.
    alpha = np.ones(1, element_type(problem.acc_type).dtype)
    beta = alpha if problem.accumulate else np.zeros_like(alpha)

    def data_type(name: str) -> int:
        return getattr(nvmath.CudaDataType, DATA_TYPES[name])

    # cuBLAS is column-major, where a row-major matrix is its transpose: transposed C = transposed B x A. A
    # column-major operand is itself, and is transposed by the operation.
    def matrix(buffer: Buffer, type_name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns address, type and leading dimension of an operand, and in a batch the stride from one matrix to the
        next, 0 where it has one matrix."""
        stride = math.prod(shape[-2:]) if len(shape) > 2 else 0
        description: tuple[int, ...] = (buffer.address, data_type(type_name), shape[len(shape) - 1])
        return description if problem.batch is None else (*description, stride)

    arguments = (
        getattr(library.Operation, OPERATIONS[problem.b_layout]),
        getattr(library.Operation, OPERATIONS[problem.a_layout]),
        *(problem.n, problem.m, problem.k, alpha.ctypes.data),
        *matrix(buffers.b, problem.b_type, problem.b_shape),
        *matrix(buffers.a, problem.a_type, problem.a_shape),
        *(beta.ctypes.data, *matrix(buffers.c, problem.c_type, problem.c_shape)),
        *(() if problem.batch is None else (problem.batch,)),
        getattr(library.ComputeType, compute_type),
        library.GemmAlgo.DEFAULT,
    )

    multiply = library.gemm_ex if problem.batch is None else library.gemm_strided_batched_ex

    def enqueue(keep_alive: tuple[object, ...] = (workspace, alpha, beta)) -> None:
        try:
            multiply(handle, *arguments)
        except library.cuBLASError as error:
            raise StepladderError(
                f"cuBLAS fails at {problem.describe()}: {error}; use --baseline none", status=FAILED
            ) from error

    version: int = library.get_version(handle)
    text = f"{version // 10000}.{version // 100 % 100}.{version % 100}"
    return f"cuBLAS {text} through nvmath-python {nvmath.__version__}", enqueue
