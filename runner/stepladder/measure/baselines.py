"""The baseline of benchmarks: cuBLAS on the same problem and the same buffers.

nvmath-python calls it where that is installed, otherwise PyTorch does. Results name the library and what calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepladder.runtime.bundle import Bundle, Problem
from stepladder.runtime.element_types import FP8_TYPES
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.launch import MatmulBuffers

# cublasComputeType_t by (type of A and B, of the products, of the accumulator, of C): all products of cublasGemmEx
# that problems can have. Those of fp8 are cuBLASLt's.
COMPUTE_TYPES = {
    ("f16", "f16", "f32", "f32"): "COMPUTE_32F",
    ("f16", "f16", "f32", "f16"): "COMPUTE_32F",
    ("f16", "f16", "f16", "f16"): "COMPUTE_16F",
    ("bf16", "bf16", "f32", "f32"): "COMPUTE_32F",
    ("bf16", "bf16", "f32", "bf16"): "COMPUTE_32F",
    ("f32", "f32", "f32", "f32"): "COMPUTE_32F",
    ("f32", "tf32", "f32", "f32"): "COMPUTE_32F_FAST_TF32",
    ("i8", "i8", "i32", "i32"): "COMPUTE_32I",
}
# Types of A and B, and of C, that cuBLASLt has products of fp8 for; the layouts of A and B are these alone.
FP8_PAIRS = (("f8E4M3FN", "f8E4M3FN"), ("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E4M3FN"))
FP8_RESULTS = ("f32", "f16", "bf16")
FP8_LAYOUTS = ("row", "column")
# Rows of fp8 operands and of C are multiples of so many elements.
FP8_ALIGNMENT = 16
# Leading dimensions of 8-bit operands are multiples of this.
INTEGER_ALIGNMENT = 4


@dataclass(frozen=True)
class Baseline:
    """A library's matmul, ready to run.

    Attributes:
        provider: the library, what calls it, and their versions.
        enqueue: enqueues one product on the buffers' device and stream.
    """

    provider: str
    enqueue: Callable[[], None]


def compute_type(problem: Problem) -> str | None:
    """Returns the member of `cublasComputeType_t` for a problem, without its prefix; None if cuBLAS has none.

    Args:
        problem: of a matmul.
    """
    if problem.a_type in FP8_TYPES:
        has_types = (problem.a_type, problem.b_type) in FP8_PAIRS and problem.c_type in FP8_RESULTS
        return "COMPUTE_32F" if has_types and problem.acc_type == "f32" else None
    if problem.a_type != problem.b_type:
        return None
    key = (problem.a_type, problem.compute_type or problem.a_type, problem.acc_type, problem.c_type)
    return COMPUTE_TYPES.get(key)


def unsupported(problem: Problem) -> str:
    """Returns why neither cublasGemmEx nor, of fp8, cuBLASLt has such a product, or an empty string where it has one.

    Args:
        problem: of a matmul.
    """
    if problem.a_type in FP8_TYPES:
        return _unsupported_fp8(problem)
    if compute_type(problem) is None:
        products = [f"{product} -> {stored} ({sums} accumulation)" for _, product, sums, stored in COMPUTE_TYPES]
        return f"it has {', '.join(products)}"
    extents = {problem.a_shape[-1], problem.b_shape[-1], problem.n}
    if problem.a_type == "i8" and any(extent % INTEGER_ALIGNMENT for extent in extents):
        return f"rows of stored i8 operands and of C must be multiples of {INTEGER_ALIGNMENT} elements"
    return ""


def _unsupported_fp8(problem: Problem) -> str:
    if compute_type(problem) is None:
        pairs = " and ".join(" x ".join(pair) for pair in FP8_PAIRS)
        return f"cuBLASLt has products of {pairs}, with f32 accumulation, to {', '.join(FP8_RESULTS)}"
    if (problem.a_layout, problem.b_layout) != FP8_LAYOUTS:
        return "cuBLASLt multiplies a row-major A by a column-major B of fp8"
    if problem.k % FP8_ALIGNMENT or problem.n % FP8_ALIGNMENT:
        return f"n and k of fp8 must be multiples of {FP8_ALIGNMENT}"
    return ""


def refuse_unsupported(problem: Problem) -> None:
    """Checks that cuBLAS has a product of these element types and extents.

    Args:
        problem: of a matmul.

    Raises:
        StepladderError: it has none; says why.
    """
    if reason := unsupported(problem):
        raise StepladderError(f"there is no cuBLAS baseline for {problem.describe()}: {reason}; use --baseline none")


def sums_in_tensor_core(bundles: Iterable[Bundle]) -> bool:
    """Returns whether all kernels leave sums of products of fp8 in the tensor core, as the library then may too.

    Args:
        bundles: of kernels of one problem.
    """
    return all(bundle.manifest.knobs.get("fast_accum", True) for bundle in bundles)


def cublas(buffers: MatmulBuffers, *, fast_accum: bool = False) -> Baseline:
    """Prepares cuBLAS on the operands of a problem.

    Args:
        buffers: the operands; the product is enqueued on their device's stream.
        fast_accum: whether products of fp8 may be summed in the tensor core alone, as with the knob `fast_accum`.

    Returns:
        The baseline, ready to be enqueued.

    Raises:
        StepladderError: cuBLAS cannot be called on this machine (status NOT_EXECUTED), or has no such product.
    """
    refuse_unsupported(buffers.problem)
    # Imported here: either takes time, and machines have one, both or neither.
    from stepladder.measure import cublas_nvmath, cublas_torch

    reasons = []
    for prepare in (cublas_nvmath.prepare, cublas_torch.prepare):
        try:
            return Baseline(*prepare(buffers, compute_type(buffers.problem) or "", fast_accum=fast_accum))
        except ImportError as error:
            reasons += str(error).splitlines()[:1]
    raise StepladderError(
        "no cuBLAS on this machine: install nvmath-python[cu13] or PyTorch, or use --baseline none",
        notes=reasons,
        status=NOT_EXECUTED,
    )
