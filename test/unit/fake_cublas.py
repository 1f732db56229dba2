"""nvmath-python's cuBLAS on host memory, and operands in host memory."""

import ctypes
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
import pytest

from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem

pytest.importorskip("ml_dtypes", reason="ml_dtypes, which has bf16, is not installed")

DTYPES = {0: np.float32, 2: np.float16, 3: np.int8, 10: np.int32, 14: element_type("bf16").dtype}


class CudaDataType(IntEnum):
    CUDA_R_32F = 0
    CUDA_R_16F = 2
    CUDA_R_8I = 3
    CUDA_R_32I = 10
    CUDA_R_16BF = 14


class ColumnMajorLibrary:
    """nvmath.bindings.cublas on host memory, written from cuBLAS' documentation."""

    Operation = IntEnum("Operation", {"N": 0, "T": 1})
    ComputeType = IntEnum(
        "ComputeType", {"COMPUTE_16F": 64, "COMPUTE_32F": 68, "COMPUTE_32I": 72, "COMPUTE_32F_FAST_TF32": 77}
    )
    GemmAlgo = SimpleNamespace(DEFAULT=-1)

    class cuBLASError(Exception):
        pass

    def create(self) -> int:
        return 1

    def get_version(self, handle: int) -> int:
        return 130101

    def set_stream(self, handle: int, stream: int) -> None:
        self.stream = stream

    def set_workspace(self, handle: int, address: int, size: int) -> None:
        self.workspace = size

    def gemm_ex(
        self,
        handle: int,
        transa: int,
        transb: int,
        m: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        a_type: int,
        lda: int,
        b: int,
        b_type: int,
        ldb: int,
        beta: int,
        c: int,
        c_type: int,
        ldc: int,
        compute: int,
        algorithm: int,
    ) -> None:
        assert {transa, transb} <= {0, 1} and algorithm == -1
        self.compute = compute
        scalar = {64: np.float16, 68: np.float32, 72: np.int32, 77: np.float32}[compute]
        a = self.matrix(a, a_type, k, m, lda).T if transa else self.matrix(a, a_type, m, k, lda)
        b = self.matrix(b, b_type, n, k, ldb).T if transb else self.matrix(b, b_type, k, n, ldb)
        c = self.matrix(c, c_type, m, n, ldc)
        alpha, beta = (self.matrix(address, scalar, 1, 1, 1)[0, 0] for address in (alpha, beta))
        product = alpha * (a.astype(np.float64) @ b.astype(np.float64))
        c[:] = product + beta * c.astype(np.float64) if beta else product

    def gemm_strided_batched_ex(
        self,
        handle: int,
        transa: int,
        transb: int,
        m: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        a_type: int,
        lda: int,
        stride_a: int,
        b: int,
        b_type: int,
        ldb: int,
        stride_b: int,
        beta: int,
        c: int,
        c_type: int,
        ldc: int,
        stride_c: int,
        count: int,
        compute: int,
        algorithm: int,
    ) -> None:
        def matrix(address: int, kind: int, leading: int, stride: int, number: int) -> tuple[int, int, int]:
            return address + number * stride * np.dtype(DTYPES[kind]).itemsize, kind, leading

        for number in range(count):
            self.gemm_ex(
                *(handle, transa, transb, m, n, k, alpha),
                *matrix(a, a_type, lda, stride_a, number),
                *matrix(b, b_type, ldb, stride_b, number),
                *(beta, *matrix(c, c_type, ldc, stride_c, number)),
                *(compute, algorithm),
            )

    @staticmethod
    def matrix(address: int, kind: int | type[np.generic], rows: int, columns: int, leading: int) -> np.ndarray:
        dtype = np.dtype(DTYPES.get(kind, kind))
        memory = (ctypes.c_byte * (dtype.itemsize * leading * columns)).from_address(address)
        return np.frombuffer(memory, dtype).reshape(columns, leading).T[:rows]


def host_buffers(problem: Problem, *arrays: np.ndarray) -> SimpleNamespace:
    buffers = [SimpleNamespace(address=array.ctypes.data, size=array.nbytes) for array in arrays]
    device = SimpleNamespace(stream=7, ordinal=3, allocate=lambda size: SimpleNamespace(address=0, size=size))
    types = {f"{role}_type": element_type(getattr(problem, f"{role}_type")) for role in "abc"}
    return SimpleNamespace(problem=problem, device=device, a=buffers[0], b=buffers[1], c=buffers[2], **types)
