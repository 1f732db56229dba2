"""The pipeline `auto`: the first one that compiles a payload."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from stepladder.pipeline.definition import KnobError, RequirementError, UnknownKnobError
from stepladder.runtime import targets
from stepladder.runtime.errors import BAD_INPUT, FAILED, StepladderError
from stepladder.runtime.targets import XE_TARGETS

if TYPE_CHECKING:
    from stepladder.pipeline.request import Request

AUTO = "auto"
# The target where nothing names one, and no GPU does.
WITHOUT_GPU = "sm_90a"

# In order, for targets with wgmma, with copies and matrix units that `mma_sync` needs, and others.
_HOPPER = ("wgmma", "mma_sync", "wmma")
_EARLIER = ("mma_sync", "wmma")
_FIRST = ("wmma",)
# Of Intel's GPUs.
_XE = "xetile"
# Before the refusal of a function in the notes of that of its one matmul.
AS_FUNCTION = "as a function with several kernels: "
# And before that of the form of one kernel in the notes of that of a function.
AS_ONE_KERNEL = "as one kernel: "
_QUOTED_OP = re.compile(r"'\w+\.[\w.]+'")

_T = TypeVar("_T")


def for_vendor(request: Request) -> Request:
    """Returns a request whose pipeline is for the vendor of its target, where the pipeline is `auto`.

    Args:
        request: of a payload.
    """
    if request.pipeline == AUTO and request.settings.get("target") in XE_TARGETS:
        return dataclasses.replace(request, pipeline=_XE)
    return request


def pipelines_for(pipeline: str, target: str, *, is_divisible: Callable[[], bool] = lambda: False) -> tuple[str, ...]:
    """Returns the pipelines to try, in order.

    Args:
        pipeline: name or file of one, or `auto`.
        target: GPU architecture.
        is_divisible: tells whether the payload may be several kernels, as a pair of products may be two. On a target
            with wgmma several kernels of it come before one of an earlier matrix unit.
    """
    if pipeline != AUTO:
        return (pipeline,)
    if target != "sm_90a":
        return _EARLIER if targets.find(target).compute_capability >= targets.FIRST_MMA_SYNC else _FIRST
    return _HOPPER[:1] if is_divisible() else _HOPPER


def first_of(pipelines: tuple[str, ...], compile_by: Callable[[str], _T]) -> _T:
    """Returns what the first pipeline that accepts a payload makes of it.

    An exception in the code of an op is no refusal: where a later pipeline compiles the payload, stderr says which one
    failed, since its kernel would have been the faster one.

    Args:
        pipelines: to try, in order.
        compile_by: compiles by one of them.

    Raises:
        StepladderError: none accepts the payload: the one reason, or that of each in a note, but for those without a
            knob that is set; a knob that all refuse alike is said once.
    """
    refusals: list[tuple[str, StepladderError]] = []
    for pipeline in pipelines:
        try:
            compiled = compile_by(pipeline)
        except StepladderError as error:
            if error.status not in (BAD_INPUT, FAILED):
                raise
            refusals.append((pipeline, error))
            continue
        for name, error in refusals:
            if error.traceback:
                print(f"warning: the pipeline '{name}' failed, {pipeline} is taken: {error.message}", file=sys.stderr)
        return compiled
    # A knob that others of the pipelines have is set for these.
    refusals = [item for item in refusals if not isinstance(item[1], UnknownKnobError)] or refusals
    first = refusals[0][1]
    if len({(error.message, error.location) for _, error in refusals}) == 1:
        raise first
    errors = [error for _, error in refusals]
    if isinstance(first, KnobError) and all(isinstance(item, KnobError) and item.knob == first.knob for item in errors):
        shared = [note for note in first.notes if all(note in item.notes for item in errors)]
        raise KnobError(first.common, first.common, first.knob, notes=shared)
    is_required = all(isinstance(error, RequirementError) for _, error in refusals)
    raise (RequirementError if is_required else StepladderError)(
        "no pipeline compiles this payload",
        location=first.location,
        notes=[f"{pipeline}: {error.message}" for pipeline, error in refusals],
    )


def with_reason(refusal: StepladderError, error: StepladderError) -> StepladderError:
    """Returns the refusal of a payload that is refused on tensors too, with the other reason as a note.

    Args:
        refusal: of the payload as it is.
        error: of the payload on tensors.

    Returns:
        `refusal`, as it is where a knob is set that no pipeline takes; `error` where it alone is a requirement of a
        kernel's steps, or where it names another op: the payload was divided, and the form that one kernel takes says
        little about that.
    """
    if is_reason(refusal, error):
        if not any(note.startswith(AS_ONE_KERNEL) for note in error.notes):
            error.notes = (*error.notes, f"{AS_ONE_KERNEL}{refusal.message}")
        return error
    add_reason(refusal, error)
    return refusal


def add_reason(refusal: StepladderError, error: StepladderError) -> None:
    """Adds the reason why a payload on tensors is refused too to its refusal, except to that of a knob.

    Args:
        refusal: of the payload as it is.
        error: of the payload on tensors.
    """
    if error.message != refusal.message and not isinstance(refusal, KnobError):
        refusal.notes = (*refusal.notes, f"as a function on tensors: {error.message}")


def is_reason(refusal: StepladderError, error: StepladderError) -> bool:
    """Returns whether the refusal of a payload as several kernels is what keeps it from being compiled, not that of the
    form that one kernel takes: it alone is of a knob, or a requirement of a kernel's steps, or it names another op.
    Several kernels compute more than one does; of one op, the refusal of the payload as it was written says more than
    that of a step.

    Args:
        refusal: of the payload as one kernel.
        error: of it as several.
    """
    if isinstance(refusal, RequirementError):
        return False
    if isinstance(error, KnobError) and not isinstance(refusal, KnobError):
        return True
    names_op = error.location is not None and ":" in error.location and error.location != refusal.location
    is_same_op = any(op in error.message for op in _QUOTED_OP.findall(refusal.message))
    is_form = not isinstance(refusal, KnobError) and refusal.message not in error.message
    return isinstance(error, RequirementError) or (names_op and is_form and not is_same_op)


def reason_of_function(error: StepladderError, text: str) -> StepladderError:
    """Returns the refusal of what a front end wrote with the reason why it is no function of several kernels first, if
    there is one: the form that one kernel takes says little about it.

    Args:
        error: of the payload that it became.
        text: before the reason.
    """
    for note in error.notes:
        if note.startswith(AS_FUNCTION):
            other_notes = [item for item in error.notes if item is not note]
            return StepladderError(
                f"{text}: {note.removeprefix(AS_FUNCTION)}",
                notes=[f"{AS_ONE_KERNEL}{error.message}", *other_notes],
                status=error.status,
            )
    return error
