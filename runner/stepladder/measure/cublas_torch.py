"""cuBLAS through PyTorch, for machines without nvmath-python.

`torch.mm` and `torch.addmm` call cublasGemmEx, or cublasSgemm for f32; for batches, `torch.bmm` and `torch.baddbmm`
call cublasGemmStridedBatchedEx, with a stride of 0 for an operand that is broadcast. Products of i8 and fp8 go through
cuBLASLt (`torch._int_mm` and `torch._scaled_mm`), without batches and C = AB + C there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Protocol

from stepladder.runtime.buffers import Buffer
from stepladder.runtime.bundle import Problem
from stepladder.runtime.element_types import ElementType
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError
from stepladder.runtime.launch import MatmulBuffers

FP8 = {"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}
TORCH_TYPES = {"f32": "float32", "f16": "float16", "i8": "int8", "i32": "int32", "bf16": "bfloat16", **FP8}

# Requirements of torch._int_mm: more rows than this, and k and n in multiples.
INTEGER_ROWS = 16
INTEGER_MULTIPLE = 8


class _Tensor(Protocol):
    """The part of `torch.Tensor` in use."""

    @property
    def dtype(self) -> object: ...


def prepare(buffers: MatmulBuffers, compute_type: str, *, fast_accum: bool) -> tuple[str, Callable[[], None]]:
    """Prepares PyTorch's matmul on the operands of a problem.

    Args:
        buffers: the operands.
        compute_type: member of `cublasComputeType_t` without its prefix, for example `COMPUTE_32F`.
        fast_accum: whether products of fp8 are summed in the tensor core alone.

    Returns:
        The provider, and a function that enqueues one product; it raises StepladderError with status FAILED where
        PyTorch refuses the product.

    Raises:
        ImportError: PyTorch is missing, or has no CUDA.
        StepladderError: PyTorch has no such product; status NOT_EXECUTED.
    """
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise ImportError(f"PyTorch {torch.__version__} does not see a GPU")
    problem, device = buffers.problem, buffers.device
    if reason := unsupported(problem):
        raise StepladderError(
            f"PyTorch has no cuBLAS baseline for {problem.describe()}: {reason}; use --baseline none",
            notes=[] if problem.a_type in FP8 else ["nvmath-python[cu13] has it"],
            status=NOT_EXECUTED,
        )
    place = torch.device("cuda", device.ordinal)
    stream = torch.cuda.ExternalStream(device.stream, device=place)

    def tensor(buffer: Buffer, element: ElementType, shape: tuple[int, ...], layout: str) -> _Tensor:
        tensor_ = torch.as_tensor(buffer, device=place).view(getattr(torch, TORCH_TYPES[element.name])).view(shape)
        matrices = tensor_ if layout == "row" else tensor_.transpose(-1, -2)
        is_broadcast = problem.batch is not None and len(shape) == 2
        return matrices.expand(problem.batch, -1, -1) if is_broadcast else matrices

    a = tensor(buffers.a, buffers.a_type, problem.a_shape, problem.a_layout)
    b = tensor(buffers.b, buffers.b_type, problem.b_shape, problem.b_layout)
    c = tensor(buffers.c, buffers.c_type, problem.c_shape, "row")
    # A wider C than the operands is asked for explicitly.
    wider = {} if a.dtype == c.dtype else {"out_dtype": c.dtype}
    is_fp8, is_integer = problem.a_type in FP8, compute_type == "COMPUTE_32I"
    # `enqueue` looks the name up, where a version of PyTorch without it is refused.
    name = _function_name(problem, is_fp8=is_fp8, is_integer=is_integer)
    arguments: tuple[object, ...] = (c, a, b) if name in ("addmm", "baddbmm") else (a, b)
    options: dict[str, object] = {"out": c} if is_integer else {"out": c, **wider}
    if is_fp8:
        scale = torch.ones((), device=place)
        arguments, options = (a, b, scale, scale), {"use_fast_accum": fast_accum, **options}

    def enqueue() -> None:
        try:
            with torch.cuda.stream(stream), _precision(torch, compute_type):
                getattr(torch, name)(*arguments, **options)
        except (AttributeError, RuntimeError, TypeError) as error:  # also for versions without an option
            text = str(error).splitlines()[0]
            raise StepladderError(
                f"PyTorch's matmul fails at {problem.describe()}: {text}; use --baseline none",
                notes=["nvmath-python[cu13] calls cuBLAS without PyTorch"],
                status=FAILED,
            ) from error

    library = "cuBLASLt" if is_fp8 or is_integer else "cuBLAS"
    sums = ", fast accumulation" if is_fp8 and fast_accum else ""
    return f"{library} of CUDA {torch.version.cuda} through PyTorch {torch.__version__}{sums}", enqueue


def _function_name(problem: Problem, *, is_fp8: bool, is_integer: bool) -> str:
    """Returns the name of PyTorch's function that computes a product."""
    if is_fp8 or is_integer:
        return "_scaled_mm" if is_fp8 else "_int_mm"
    if problem.batch is not None:
        return "baddbmm" if problem.accumulate else "bmm"
    return "addmm" if problem.accumulate else "mm"


def unsupported(problem: Problem) -> str:
    """Returns why PyTorch has no such product, though cuBLAS has one; an empty string where it has one.

    Args:
        problem: of a matmul.
    """
    function = "torch._int_mm" if problem.a_type == "i8" else "torch._scaled_mm" if problem.a_type in FP8 else ""
    if not function:
        return ""
    if problem.batch is not None:
        return f"{function} has no batches"
    if problem.accumulate:
        return f"{function} has no C = AB + C"
    if problem.a_type in FP8:
        return ""
    if problem.m <= INTEGER_ROWS or problem.n % INTEGER_MULTIPLE or problem.k % INTEGER_MULTIPLE:
        return f"torch._int_mm needs m above {INTEGER_ROWS}, and n and k that are multiples of {INTEGER_MULTIPLE}"
    return ""


@contextmanager
def _precision(torch: ModuleType, compute_type: str) -> Iterator[None]:
    """Sets PyTorch's options for f32 products and f16 accumulation, and restores them afterwards."""
    options = torch.backends.cuda.matmul
    f16, f32 = options.allow_fp16_accumulation, torch.get_float32_matmul_precision()
    options.allow_fp16_accumulation = compute_type == "COMPUTE_16F"
    torch.set_float32_matmul_precision("high" if compute_type == "COMPUTE_32F_FAST_TF32" else "highest")
    try:
        yield
    finally:
        options.allow_fp16_accumulation = f16
        torch.set_float32_matmul_precision(f32)
