"""Kernels for a range of m: one machine code for every number of rows up to the one that it was compiled for.

TMA reads A and stores C by descriptors, which are encoded at launch. If they have fewer rows, TMA reads rows beyond the
last as zeros and drops their stores, so that memory beyond A and C is neither read nor written. This holds for kernels
that access A, C and every other operand with rows of A by TMA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepladder.api import signature
from stepladder.api.errors import ArgumentError
from stepladder.api.kernel import Device, Kernel
from stepladder.api.spec import MatmulSpec
from stepladder.runtime.bundle import Bundle, Manifest
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    import numpy as np

# The knob, and its value, by which `wgmma` stores C by TMA.
TMA_STORES = {"epilogue": "tma"}
_ACCEPTED = "accepted: a single matmul of the pipeline wgmma with epilogue=tma, A row-major, and operands of (n,)"


def check_buckets(buckets: object) -> tuple[int, ...]:
    """Returns the numbers of rows for which kernels are compiled, in ascending order.

    Args:
        buckets: what the caller passed.

    Raises:
        ArgumentError: no sequence of positive integers.
    """
    sizes: list[int] = list(buckets) if isinstance(buckets, Sequence) and not isinstance(buckets, str) else []
    if not sizes or any(type(item) is not int or item < 1 for item in sizes):
        raise ArgumentError(f"argument 'row_buckets' is {buckets!r}; accepted: numbers of rows, for example (8, 64)")
    return tuple(sorted(set(sizes)))


def bucket_of(m: int, buckets: Sequence[int]) -> int | None:
    """Returns the least bucket that has room for m rows; None where there is none.

    Args:
        m: rows, 1 or more.
        buckets: in ascending order.
    """
    return next((bucket for bucket in buckets if m <= bucket), None)


class RowsKernel(Kernel):
    """A kernel that is launched on fewer rows than it was compiled for.

    Args:
        kernel: compiled for more rows, or as many.
        spec: the matmul that it was compiled for.
        m: rows of A and C.

    Raises:
        StepladderError: the kernel accesses rows otherwise than by TMA; the message says which operand.
    """

    def __init__(self, kernel: Kernel, spec: MatmulSpec, m: int) -> None:
        built = kernel.built
        fewer = replace(spec, m=m)
        super().__init__(
            replace(built, bundle=_with_rows(built.bundle, spec, m)),
            signature.of_spec(fewer),
            kernel.device,
            constant_weights=kernel.constant_weights,
        )

    def _emulate(self, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Executes the PTX: the IR has the number of rows that it was compiled for."""
        from stepladder.api.emulated import run_ptx

        return run_ptx(self.built.bundle, arrays)


def compile_rows(
    spec: MatmulSpec,
    m: int,
    *,
    pipeline: str,
    target: str,
    device: Device,
    constant_weights: bool,
    knobs: dict[str, Any],
) -> Kernel:
    """Returns a kernel for m rows, of the machine code of a matmul with more.

    Args:
        spec: the matmul with the largest number of rows.
        m: rows.
        pipeline, target, device, constant_weights, knobs: as for `stepladder.compile`; `epilogue` is `tma` where it is
            not given.

    Raises:
        StepladderError: no kernel of this matmul takes fewer rows, or as `stepladder.compile`.
    """
    from stepladder.api.compiling import compile as compile_kernel

    _check_spec(spec)
    try:
        kernel = compile_kernel(
            spec,
            pipeline="wgmma" if pipeline == "auto" else pipeline,
            target=target,
            device=device,
            constant_weights=constant_weights,
            **{**TMA_STORES, **knobs},
        )
    except StepladderError as error:
        raise _refusal(error.message) from error
    assert isinstance(kernel, Kernel)  # of one matmul
    return RowsKernel(kernel, spec, m)


def _refusal(reason: str) -> StepladderError:
    return StepladderError(f"no kernel for a range of rows: {reason}", notes=[_ACCEPTED])


def _check_spec(spec: MatmulSpec) -> None:
    """Refuses a matmul whose operands depend on m in other ways than through A and C."""
    if spec.batch is not None:
        raise _refusal("the matmul is a batch")
    if spec.accumulate:
        raise _refusal("the kernel adds the product to what C holds")
    if spec.a_layout != "row":
        raise _refusal("A is column-major, so that the pitch of its rows is m")
    for number, operand in enumerate(spec.epilogue.operands if spec.epilogue is not None else ()):
        if "i" in operand.loops:
            raise _refusal(f"operand {number} of the epilogue has rows of C")


def _with_rows(bundle: Bundle, spec: MatmulSpec, m: int) -> Bundle:
    """Returns a kernel with the descriptors, shapes and sizes of a matmul of fewer rows."""
    manifest = bundle.manifest
    most = manifest.problem.m
    _check_spec(spec)
    if not 1 <= m <= most:
        raise _refusal(f"it is compiled for {most} rows, and the arrays have {m}")
    if manifest.front or manifest.workspaces or manifest.problem.b_is_a or manifest.problem.results:
        raise _refusal("other kernels run before the matmul, A is B, or there are several results")
    arguments, descriptors = list(manifest.arguments), list(manifest.tma_descriptors)
    for place, item in enumerate(manifest.arguments):
        if item.role not in ("a", "c"):
            continue
        descriptor = None if item.descriptor is None else descriptors[item.descriptor]
        if descriptor is None or item.descriptor is None or descriptor.shape != item.shape or item.shape[0] != most:
            raise _refusal(f"{item.role.upper()} is not accessed by TMA row by row")
        descriptors[item.descriptor] = replace(descriptor, shape=(m, *descriptor.shape[1:]))
        arguments[place] = replace(item, shape=(m, *item.shape[1:]))
    fewer: Manifest = replace(
        manifest,
        arguments=tuple(arguments),
        tma_descriptors=tuple(descriptors),
        problem=replace(manifest.problem, m=m),
    )
    return replace(bundle, manifest=fewer)
