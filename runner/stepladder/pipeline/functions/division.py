"""How a payload is divided: the function that is compiled, its products, and whether it may be several kernels."""

from __future__ import annotations

from collections.abc import Iterable

from stepladder.extension.lib.multi_kernel.products import is_product
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import is_number
from stepladder.payload.matmul import matmul_of
from stepladder.payload.selection import Selection, select
from stepladder.pipeline import library
from stepladder.pipeline.automatic import AUTO, WITHOUT_GPU, pipelines_for
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.request import Request
from stepladder.runtime import targets
from stepladder.runtime.element_types import FP8_TYPES
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem


def is_divisible(text: str, name: str, request: Request) -> bool:
    """Returns whether a payload of one kernel can be compiled as a function of several too.

    The matmuls of a pair may be a kernel each, as may the cast of an operand of a type that kernels do not multiply,
    products of digits, and the transpose of a result whose batch is behind its rows.

    Args:
        text: the payload; `name`: its file.
        request: pipeline, or `auto`, target, and the function to compile, of several.

    Raises:
        StepladderError: text that does not parse, or no such function.
    """
    selection = selected(text, name, request.function)
    if not is_on_tensors(selection):
        return False
    if len(products(text, name, request.function)) == 2:
        return True
    try:
        problem = matmul_of(selection).problem
    except StepladderError:
        return False
    return problem.c_window is not None or _is_of_other_types(problem, request)


def _is_of_other_types(problem: Problem, request: Request) -> bool:
    """Returns whether a matmul has operands of two element types, or of another type than kernels multiply to get its
    sums: integers that have several digits, fp8, narrower than sums of f64, wider than its sums."""
    a, b, sums = problem.a_type, problem.b_type, problem.acc_type
    if a != b or sums == "f64" != a:
        return True
    if a in FP8_TYPES:
        target = target_of(request)
        return sums == "f16" or not multiplies_fp8(pipelines_for(request.pipeline, target), target)
    return (a, sums) != ("i8", "i32") if a.startswith("i") else bits_of_name(a) > bits_of_name(sums)


def multiplies_fp8(pipelines: Iterable[str], target: str) -> bool:
    """Returns whether one of some pipelines multiplies fp8.

    Args:
        pipelines: names or files.
        target: GPU architecture.
    """
    pipelines = tuple(pipelines)
    if has_step(pipelines, "convert_to_wgmma"):
        return True
    return has_step(pipelines, "convert_to_mma_sync") and targets.find(target).compute_capability >= targets.FIRST_FP8


def selected(text: str, name: str, function: str | None) -> Selection:
    """Returns the function of a payload that is compiled; an error without a location is located in its file.

    Args:
        text: the payload; `name`: its file.
        function: the one to compile, of several.

    Raises:
        StepladderError: text that does not parse, or no such function.
    """
    try:
        return select(parse_payload(text, name), function)
    except StepladderError as error:
        error.location = error.location or name
        raise


def products(text: str, name: str, function: str | None) -> list[str]:
    """Returns the locations of the matmuls that the function of a payload has.

    Args:
        text: the payload; `name`: its file.
        function: the one to compile, of several.
    """
    selection = selected(text, name, function)  # what `walk` returns does not keep its module
    return [diagnostics.location_text(op.location) for op in walk(selection.module) if is_product(op)]


def target_of(request: Request) -> str:
    """Returns the target to compile for, where the request may name none.

    Args:
        request: of a pipeline, or `auto`.

    Raises:
        StepladderError: an unknown target, or a pipeline for none.
    """
    if "target" in request.settings:
        return targets.find(str(request.settings["target"])).name
    if request.pipeline == AUTO:
        return WITHOUT_GPU
    knob = library.load(request.pipeline).knobs.get("target")
    if knob is None:
        raise StepladderError(f"pipeline '{request.pipeline}' has no knob 'target', the GPU that its kernels are for")
    return str(knob.default)


def is_on_tensors(selection: Selection) -> bool:
    """Returns whether a function takes and returns static tensors, and has more than one op that computes.

    Args:
        selection: the function.
    """
    functions = [op for op in walk(selection.module, "func.func") if len(op.regions[0].blocks) == 1]
    if len(functions) != 1:
        return False
    type_ = ir.FunctionType(ir.TypeAttr(functions[0].attributes["function_type"]).value)
    types = [*type_.inputs, *type_.results]
    return bool(type_.results) and all(
        isinstance(item, ir.RankedTensorType) and item.has_static_shape and is_number(item.element_type)
        for item in types
    )


def has_step(pipelines: Iterable[str], name: str) -> bool:
    """Returns whether one of some pipelines has a step.

    Args:
        pipelines: names or files.
        name: of the step.
    """
    return any(step.name == name for pipeline in pipelines for step in library.load(pipeline).steps)
