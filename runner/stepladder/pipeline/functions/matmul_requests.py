"""Requests of the kernels of a function's matmuls, made from that of the function."""

from __future__ import annotations

import dataclasses

from stepladder.mlir.types import FITS_TF32
from stepladder.pipeline import library
from stepladder.pipeline.functions.stage_texts import problem_of
from stepladder.pipeline.request import Request

# The knob of pipelines that multiply f32 by three products of tf32, or by one.
_TF32 = "allow_tf32"


def of_matmuls(
    request: Request, pipeline: str, target: str, *, loads_early: bool = False, in_function: bool = False
) -> Request:
    """Returns the request of a pipeline for the matmuls of a function.

    Args:
        request: of the function.
        pipeline: of its matmuls, in place of `auto`.
        target: GPU architecture.
        loads_early: whether a matmul may be chosen to load its weights before it waits for the kernel before it.
        in_function: whether other kernels are launched between two launches of the matmul.
    """
    return dataclasses.replace(
        request,
        pipeline=pipeline,
        settings={**request.settings, "target": target},
        function=None,
        constant_weights=loads_early,
        in_function=in_function,
    )


def with_exact_tf32(request: Request, text: str, name: str) -> Request:
    """Returns a request with one product of tf32, where that is exact because the elements of A and B fit in tf32.

    Args:
        request: of the matmul.
        text: the payload of the matmul; `name`: for messages.
    """
    if FITS_TF32 not in text or not problem_of(text, name).fits_tf32:
        return request
    if _TF32 not in library.load(request.pipeline).knobs:
        return request
    return dataclasses.replace(request, settings={_TF32: True, **request.settings})
