"""The matmuls of a payload, each as a separate payload, for which `explain` and `tune` choose knobs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from stepladder.pipeline import library
from stepladder.pipeline.any_payload import raised_text, refusal_of_matmul
from stepladder.pipeline.automatic import AS_FUNCTION, AS_ONE_KERNEL, is_reason
from stepladder.pipeline.definition import KnobError, RequirementError
from stepladder.pipeline.functions.divided_function import divide, takes_pairs
from stepladder.pipeline.functions.division import is_on_tensors, selected
from stepladder.pipeline.functions.matmul_requests import of_matmuls, with_exact_tf32
from stepladder.pipeline.functions.stage_texts import is_matmul
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError


@dataclass(frozen=True)
class Part:
    """A matmul that is compiled to a kernel of its own.

    Attributes:
        text: the matmul as a payload.
        name: the file of the payload; of one of several matmuls, followed by the name of its function.
        request: pipeline and knobs of the kernel.
    """

    text: str
    name: str
    request: Request


def matmul_parts(text: str, name: str, request: Request) -> list[Part]:
    """Returns the matmuls of a payload, equal ones once, in the current MLIR context.

    Args:
        text: the payload; `name`: its file.
        request: pipeline and knobs of its matmuls, and the function to compile, of several.

    Returns:
        The payload as it is, if it is that of one matmul; else the matmuls that `compile` divides its function into.

    Raises:
        StepladderError: neither a payload of one matmul nor a function that has matmuls and is divided into kernels, or
            knobs that the pipeline does not have.
    """
    pipeline = library.load(request.pipeline)
    try:
        read_query(pipeline, request, text, name)
    except StepladderError as refusal:
        has_tensors = is_on_tensors(selected(text, name, request.function))
        is_refused_by_steps = isinstance(refusal, KnobError | RequirementError)
        is_of_pipeline = refusal.location == str(pipeline.path)
        if (
            is_refused_by_steps
            or is_of_pipeline
            or (has_tensors and refusal_of_matmul(text, name, request.function) is None)
        ):
            raise
        try:
            parts = _of_function(text, name, request) if has_tensors else _of_buffers(text, name, request)
        except StepladderError as error:
            if is_reason(refusal, error):
                error.notes = (*error.notes, f"{AS_ONE_KERNEL}{refusal.message}")
                raise
            refusal.notes = (*refusal.notes, f"{AS_FUNCTION}{error.message}")
            raise refusal from None
        if not parts:
            raise
        return parts
    return [Part(text, name, request)]


def _of_buffers(text: str, name: str, request: Request) -> list[Part]:
    """Returns the matmuls of a function on buffers, which is raised to one on tensors; none of one that is not."""
    on_tensors = raised_text(text, name, request.function)
    return [] if on_tensors is None else _of_function(on_tensors, name, dataclasses.replace(request, function=None))


def _of_function(text: str, name: str, request: Request) -> list[Part]:
    """Returns the matmuls of a function of several kernels."""
    pairs = "pairs" not in request.settings and takes_pairs((request.pipeline,))
    divided = divide(text, name, request, pairs=pairs)
    matmul_request = of_matmuls(
        divided.request, request.pipeline, divided.target, loads_early=request.constant_weights, in_function=True
    )
    firsts = {}
    for stage, of_stage in divided.texts.items():
        if is_matmul(stage):
            firsts.setdefault(of_stage, stage)
    return [
        Part(of_stage, f"{name}:{stage}", with_exact_tf32(matmul_request, of_stage, stage))
        for of_stage, stage in firsts.items()
    ]
