"""Divides a function with several matmuls into kernels, which are not compiled yet: the run of the pipeline
`functions`, with the knobs that the pipelines of the matmuls and the cost model choose."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import reference_export
from stepladder.payload.arguments import updated
from stepladder.payload.selection import Selection
from stepladder.pipeline import library
from stepladder.pipeline.automatic import first_of, pipelines_for
from stepladder.pipeline.definition import KnobValue
from stepladder.pipeline.functions import attention_choice
from stepladder.pipeline.functions.division import has_step, is_on_tensors, multiplies_fp8, selected, target_of
from stepladder.pipeline.functions.group_choice import has_faster_group
from stepladder.pipeline.functions.group_knobs import has_few_rows
from stepladder.pipeline.functions.matmul_requests import of_matmuls
from stepladder.pipeline.functions.pair_choice import is_slower
from stepladder.pipeline.functions.stage_texts import is_matmul, problem_of, stage_texts, with_pitches
from stepladder.pipeline.functions.stages import type_of
from stepladder.pipeline.knobs import OF_FUNCTIONS
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_again, run_pipeline
from stepladder.runtime import targets
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import Program

# The knob of the pipeline `functions` for matmuls that write columns of a buffer.
COLUMNS = "columns"


def takes_pairs(pipelines: tuple[str, ...]) -> bool:
    """Returns whether one of some pipelines compiles a pair of products.

    Args:
        pipelines: names or files.
    """
    return any("takes_pairs" in library.load(pipeline).derived for pipeline in pipelines)


@dataclass(frozen=True)
class Divided:
    """A function that is divided into kernels, which are not compiled yet.

    Attributes:
        run: of the pipeline `functions`.
        texts: payloads of the kernels, by name.
        selection: the function.
        arguments: how many the function has.
        reference: what the function computes.
        request: of its matmuls.
        target: GPU architecture.
        groups_faster: whether groups are compiled only where one launch is predicted to be faster.
    """

    run: Run
    texts: Mapping[str, str]
    selection: Selection
    arguments: int
    reference: Program
    request: Request
    target: str
    groups_faster: bool

    @property
    def has_columns(self) -> bool:
        """Whether a matmul reads or writes rows with a pitch: columns of a buffer, or matrices behind rows."""
        return any(problem_of(text, name).has_windows for name, text in self.texts.items() if is_matmul(name))


def divide(text: str, name: str, request: Request, *, pairs: bool) -> Divided:
    """Divides a function into kernels, in the current MLIR context.

    Args:
        text: the payload; `name`: its file, for messages.
        request: of its matmuls, as for `build_function`.
        pairs: whether a pair of matmuls becomes one kernel, where the cost model has no objection, or as the request
            sets it.

    Returns:
        The function with its kernels outlined, and the payload of each.

    Raises:
        StepladderError: as `build_function`, but for what the pipelines of the kernels refuse.
    """
    target, selection = target_of(request), selected(text, name, request.function)
    if not is_on_tensors(selection):
        raise StepladderError(
            "a function with several matmuls has another signature than tensors of static shapes",
            location=_location(selection) or name,
            notes=["accepted: arguments and results that are ranked tensors of scalars"],
        )
    arguments = len(walk(selection.module, "func.func")[0].regions[0].blocks[0].arguments)
    results = len(ir.FunctionType(type_of(walk(selection.module, "func.func")[0])).results)
    roles = {number: f"argument{number}" for number in range(arguments)}
    roles |= {arguments + number: f"result{number}" for number in range(results)}
    reference = _with_updates(reference_export.export(selection.module, roles), selection)
    pipelines = pipelines_for(request.pipeline, target)
    # `wgmma` alone multiplies one kind of fp8 by the other, and is what an attention is multiplied by.
    settings = {"pairs": pairs, **dict.fromkeys(("mixed_fp8", "attention"), has_step(pipelines, "convert_to_wgmma"))}
    settings["multiplies_fp8"] = multiplies_fp8(pipelines, target)
    settings["multiplies_bf16"] = targets.find(target).compute_capability >= targets.FIRST_BF16
    original, settings = request, settings | {"in_place": has_step(pipelines, "load_in_place")}
    settings["dequantizing"] = all(has_step((pipeline,), "prepare_operands") for pipeline in pipelines)
    settings[COLUMNS] = all("takes_windows" in library.load(item).derived for item in pipelines)
    settings |= {name: value for name, value in original.settings.items() if name in OF_FUNCTIONS}
    strided = settings[COLUMNS] and all("reads_strided_batches" in library.load(item).derived for item in pipelines)
    settings["strided"] = bool(strided)
    own_settings = {name: value for name, value in original.settings.items() if name not in OF_FUNCTIONS}
    request = dataclasses.replace(original, settings=own_settings)
    run = run_pipeline(text, name, _division(request, settings))
    texts = stage_texts(run)
    if "attention" not in original.settings and attention_choice.is_slower(texts, original, target):
        run = run_again(run, _division(request, settings := {**settings, "attention": False}))
        texts = stage_texts(run)
    if pairs:
        by = next(item for item in pipelines_for(request.pipeline, target) if takes_pairs((item,)))

        apart = functools.cache(lambda: run_again(run, _division(request, {**settings, "pairs": False})))
        if is_slower(_matmuls(texts), lambda: _matmuls(stage_texts(apart())), of_matmuls(request, by, target)):
            run, settings = apart(), {**settings, "pairs": False}
            texts = stage_texts(run)
    is_chosen = request.tuned and "groups" not in settings
    kinds = Counter(_matmuls(texts))  # equal kernels have equal texts
    if is_chosen and sum(count for kind, count in kinds.items() if has_few_rows(kind)) > 1:
        grouped_run = run_again(run, _division(request, {**settings, "groups": True}))
        if first_of(pipelines, lambda by: has_faster_group(grouped_run, texts, of_matmuls(request, by, target))):
            run = grouped_run
    diagnostics.name_payload(name)  # what was parsed since has other names
    return Divided(run, with_pitches(texts, run), selection, arguments, reference, request, target, is_chosen)


def _with_updates(program: Program, selection: Selection) -> Program:
    """Returns the reference of a function with what the buffers hold afterwards that it reads and writes."""
    arguments = list(program.arguments)
    for number, result in updated(walk(selection.module, "func.func")[0]).items():
        arguments[number] = dataclasses.replace(arguments[number], after=program.results[result].value)
    return dataclasses.replace(program, arguments=tuple(arguments))


def _division(request: Request, settings: Mapping[str, KnobValue]) -> Request:
    """Returns the request of the pipeline that divides a function, with its own knobs."""
    return Request(pipeline_file("functions"), settings, function=request.function)


def _matmuls(texts: Mapping[str, str]) -> list[str]:
    """Returns the payloads of the stages that are matmuls."""
    return [text for name, text in texts.items() if is_matmul(name)]


def _location(selection: Selection) -> str:
    return next((diagnostics.location_text(op.location) for op in walk(selection.module, "func.func")), "")
