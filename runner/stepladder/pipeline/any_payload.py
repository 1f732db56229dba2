"""Compiles a payload as one kernel or as a function of several, and rewrites one on buffers to tensors where needed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TypeVar

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import symbol_of, walk
from stepladder.payload import raising, windows
from stepladder.payload.arguments import UpdatedArgument
from stepladder.payload.inlining import inlined
from stepladder.payload.matmul import ACCEPTED_BATCHES, matmul_of
from stepladder.payload.reference_export import UnknownChoice
from stepladder.payload.rewrites import expansions
from stepladder.pipeline import build as builds
from stepladder.pipeline.automatic import (
    AS_FUNCTION,
    AS_ONE_KERNEL,
    AUTO,
    WITHOUT_GPU,
    add_reason,
    first_of,
    is_reason,
    pipelines_for,
    with_reason,
)
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.definition import RequirementError
from stepladder.pipeline.functions.build import FunctionBuild, build_function
from stepladder.pipeline.functions.divided_function import takes_pairs
from stepladder.pipeline.functions.division import (
    is_divisible,
    is_on_tensors,
    products,
    selected,
)
from stepladder.pipeline.request import Request
from stepladder.pipeline.tile_programs import read_text
from stepladder.runtime.errors import BAD_INPUT, FAILED, StepladderError

_T = TypeVar("_T")


def build_any(text: str, name: str, request: Request, *, use_cache: bool = True) -> builds.Build | FunctionBuild:
    """Compiles a payload in the current MLIR context: one matmul, or a XeTile program, to a kernel, another function to
    several. One on buffers that is no single kernel is compiled as one on tensors.

    Args:
        text: the payload; `name`: its file, for messages.
        request: pipeline, or `auto` for the first that accepts each matmul; its knobs; the function of several.
        use_cache: reuse machine code made before from the same LLVM IR.

    Returns:
        The result of a build: one kernel, or a function with several.

    Raises:
        StepladderError: as `build.build` and `build_function`. Of a function with one matmul that is refused both ways,
            the refusal of the matmul.
    """
    return on_tensors_too(text, name, request, functools.partial(_build_any, use_cache=use_cache))


def on_tensors_too(text: str, name: str, request: Request, by: Callable[[str, str, Request], _T]) -> _T:
    """Returns what `by` makes of a payload; if it refuses one on buffers, what it makes of the same on tensors.

    Args:
        text: the payload; `name`: its file.
        request: what to make.
        by: makes it of a payload, its file and a request.

    Raises:
        StepladderError: as `by` does of the payload as it is.
    """
    try:
        return by(text, name, request)
    except StepladderError as refusal:
        if refusal.status not in (BAD_INPUT, FAILED) or (on_tensors := _raised(text, name, request, refusal)) is None:
            raise
        try:
            return by(on_tensors, name, dataclasses.replace(request, function=None))
        except StepladderError as error:
            raise with_reason(refusal, error) from None


def _raised(text: str, name: str, request: Request, refusal: StepladderError) -> str | None:
    """Returns a refused payload on tensors; a reason why it is not raised is a note of the refusal."""
    try:
        return raised_text(text, name, request.function)
    except StepladderError as error:
        add_reason(refusal, error)
        return None


def _build_any(text: str, name: str, request: Request, *, use_cache: bool) -> builds.Build | FunctionBuild:
    """Compiles a payload as it is; arguments, result and errors as of `build_any`."""
    if request.pipeline != AUTO and read_text(text, name, request) is not None:
        return builds.build(text, name, request, use_cache=use_cache)
    refusal = refusal_of_matmul(text, name, request.function)
    if refusal is None:
        pipelines = pipelines_for(
            request.pipeline,
            str(request.settings.get("target", WITHOUT_GPU)),
            is_divisible=lambda: is_divisible(text, name, request),
        )
        try:
            return first_of(
                pipelines,
                lambda pipeline: builds.build(
                    text, name, dataclasses.replace(request, pipeline=pipeline), use_cache=use_cache
                ),
            )
        except StepladderError as error:
            # A pair that no pipeline compiles is two matmuls, unless the one for pairs refuses its knobs; of two
            # element types, one is cast by a kernel of its own.
            is_chosen = request.pipeline != AUTO and takes_pairs(pipelines) and "pairs" not in request.settings
            is_pair = len(products(text, name, request.function)) > 1
            if (is_pair and is_chosen) or not is_divisible(text, name, request):
                raise
            refusal = error
    try:
        return build_function(text, name, request, use_cache=use_cache)
    except StepladderError as error:
        places = products(text, name, request.function)
        if len(places) > 1 or isinstance(refusal, UpdatedArgument):
            raise
        is_divided = isinstance(error, RequirementError) and not isinstance(refusal, RequirementError)
        is_op = bool(error.location) and not places
        if is_reason(refusal, error) or is_op or isinstance(error, UnknownChoice):
            # It was divided, and nothing compiles a part, or an op is refused by what is accepted of it, or there is no
            # matmul: the form that one kernel takes says little about that.
            error.location = places[0] if places and is_divided else error.location
            error.notes = (*error.notes, f"{AS_ONE_KERNEL}{refusal.message}")
            raise
        refusal.location = refusal.location or name
        refusal.notes = (*refusal.notes, f"{AS_FUNCTION}{error.message}")
        raise refusal from None


def refusal_of_matmul(text: str, name: str, function: str | None = None) -> StepladderError | None:
    """Returns why a payload is not that of one matmul, where `build_function` may compile it; else None.

    Args:
        text: the payload; `name`: its file.
        function: the one to compile, of several.

    Raises:
        StepladderError: text that does not parse, or no such function.
    """
    selection = selected(text, name, function)
    try:
        matmul = matmul_of(selection)
    except StepladderError as refusal:
        return refusal if is_on_tensors(selection) else None
    problem = matmul.problem
    if problem.batch is not None and 1 in (problem.m, problem.n, problem.k) and is_on_tensors(selection):
        return StepladderError(
            f"m, n or k is 1 in each product of a batch: {problem.m} x {problem.n} x {problem.k}",
            location=matmul.location,
            notes=[ACCEPTED_BATCHES],
        )
    if problem.has_windows and not matmul.facts()["windows_aligned"] and is_on_tensors(selection):
        return StepladderError(
            "A, B or C is a part of a tensor whose rows do not begin, and those of C end, at multiples of 16 bytes",
            location=matmul.location,
            notes=["accepted: parts whose offset and pitch are multiples of 16 bytes, or whole tensors"],
        )
    return None


def raised_text(text: str, name: str, function: str | None = None) -> str | None:
    """Returns a payload on buffers and scalars as one on tensors (`payload.raising`); None for one that is on tensors.

    Args:
        text: the payload; `name`: its file.
        function: the one to compile, of several.

    Raises:
        StepladderError: text that does not parse, no such function, an argument with gaps that is no part of
            whole rows, or as `raising.raised`.
    """
    function_name = selected(text, name, function).function
    module = parse_payload(text, name)
    functions = [op for op in walk(module, "func.func") if symbol_of(op) == function_name]
    copy = inlined(module, functions)
    if copy is not None:
        functions = [op for op in walk(copy, "func.func") if symbol_of(op) == function_name]
    if len(functions) != 1:
        return None
    expansions.expand(functions[0])
    windows.settle(functions[0])
    windows.spread(functions[0], with_gaps=False)
    argument = windows.slice_rows(functions[0])
    if argument is not None:
        number, type_ = ir.BlockArgument(argument).arg_number, ir.MemRefType(argument.type)
        raise StepladderError(
            f"argument {number} is {type_}, a buffer with gaps that is no part of whole rows; accepted: strides that "
            f"are multiples of each other, or dense buffers, such as {windows.enclosing(type_)}, of which "
            "memref.subview in the function takes a part"
        )
    if not raising.is_raisable(functions[0]):
        return None
    # With the locations of ops in the file, for messages.
    return raising.raised(functions[0]).operation.get_asm(enable_debug_info=True)
