"""Loads pipelines and steps from transform scripts.

What the runner needs to know of a sequence beyond its upstream ops, the text holds as discardable attributes
(`pipeline.attributes` checks them):

    on a pipeline   derived = {name = "expression", ...}    names that expressions may use beside the knobs
                    program_step = "step"                   the step that a XeTile program enters at
                    program_knobs = {knob = "expression", ...}
                                                            values of knobs for a XeTile program; its tile is tile_m x
                                                            tile_n x tile_k
    on a knob       description = "text"                    what it is, for `stepladder list knobs`
    on a step       optimization                            it may be left out
                    requires = [{condition = "expression", message = "text"}, ...]
                                                            what must hold for knobs, payload and target, and the
                                                            error message
                    when = "expression"                     the case in which `requires` applies; always without it
                    needs = ["step", ...]                   steps without which this one cannot run
                    left_out = {knob = value, ...}          knob values that hold when it is left out
                    facts = {fact = "expression", ...}      facts of the payload that it changes, such as m, and their
                                                            values in the expressions of all steps
"""

from __future__ import annotations

from pathlib import Path

from stepladder.extension.lib.dialect import python_dialects_in
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.facts import FACTS
from stepladder.pipeline import attributes as script_attributes
from stepladder.pipeline import pipeline_cache, scripts
from stepladder.pipeline.definition import Condition, Knob, KnobValue, Pipeline, Requirement, Step, value_text
from stepladder.pipeline.sequences import (
    include_ops,
    included_name,
    is_declaration,
    sequences_by_name,
    sequences_of,
    with_included,
)
from stepladder.runtime.errors import StepladderError, suggest
from stepladder.runtime.resources import pipeline_names, transforms_dir

_ALTERNATIVES = "transform.tune.alternatives"
_SELECTED = "selected_region_attr"


def _pipeline_path(name: str) -> Path:
    if name.endswith(".mlir") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise StepladderError(
                f"there is no pipeline file '{name}'", notes=[f"pipelines by name: {', '.join(pipeline_names())}"]
            )
        return path
    path = transforms_dir() / f"{name}.mlir"
    if not path.is_file():
        accepted = pipeline_names()
        files = [file for file in (f"./{name}", f"{name}.mlir") if Path(file).is_file()]
        raise StepladderError(
            f"unknown pipeline '{name}'{suggest(name, accepted)}",
            notes=[
                f"pipelines by name: {', '.join(accepted)}",
                f"or give the path of a pipeline file{': ' + files[0] if files else ''}",
            ],
        )
    return path


def _value(attribute: ir.Attribute, what: str, location: str) -> KnobValue:
    """Returns what a knob may be as Python data; `what` it is and its location are for the message."""
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.StringAttr():
            return attribute.value
    raise StepladderError(f"{what} is {attribute}; accepted: an integer, true, false, or a text", location=location)


def _entries(op: ir.Operation, name: str) -> dict[str, ir.Attribute]:
    """Returns the entries of an op's dictionary attribute; none where it has no such attribute."""
    if name not in op.attributes:
        return {}
    dictionary = ir.DictAttr(op.attributes[name])
    return {entry.name: entry.attr for entry in (dictionary[index] for index in range(len(dictionary)))}


def _texts(op: ir.Operation, name: str) -> dict[str, str]:
    """Returns the entries of an op's dictionary attribute of strings; none where it has no such attribute."""
    return {key: ir.StringAttr(value).value for key, value in _entries(op, name).items()}


def _read_knob(op: ir.Operation) -> Knob:
    attributes = op.attributes
    location = diagnostics.location_text(op.location)
    name = ir.StringAttr(attributes["name"]).value
    if "selected" not in attributes:
        raise StepladderError(f"knob '{name}' has no default", location=location)
    options: tuple[KnobValue, ...] = ()
    multiple_of = None
    if isinstance(attributes["options"], ir.DictAttr):
        width = _entries(op, "options").get("multiple_of")
        if not isinstance(width, ir.IntegerAttr):
            raise StepladderError(f"knob '{name}': options are a list, or {{multiple_of = N}}", location=location)
        multiple_of = width.value
    else:
        options = tuple(_value(option, f"an option of knob '{name}'", location) for option in attributes["options"])
    description: KnobValue = ""
    if "description" in attributes:
        description = _value(attributes["description"], f"the description of knob '{name}'", location)
    default = _value(attributes["selected"], f"the default of knob '{name}'", location)
    return Knob(name, default, options, multiple_of, location, str(description))


def _read_requirements(sequence: ir.Operation) -> tuple[Requirement, ...]:
    """Returns what a step requires, each condition under the step's `when`."""
    if "requires" not in sequence.attributes:
        return ()
    when = ir.StringAttr(sequence.attributes["when"]).value if "when" in sequence.attributes else None
    requirements = [(entry["condition"].value, entry["message"].value) for entry in sequence.attributes["requires"]]
    if when is not None:
        requirements = [(f"not ({when}) or ({condition})", message) for condition, message in requirements]
    return tuple(Requirement(condition, message) for condition, message in requirements)


def load(name: str) -> Pipeline:
    """Parses a pipeline and its steps into one transform module, in the current MLIR context.

    The scripts of a pipeline are parsed once in a process, as long as they do not change (`pipeline_cache`).

    Args:
        name: the name of a pipeline of the package, or the path of a pipeline file.

    Returns:
        The pipeline; its module is the caller's to change.

    Raises:
        StepladderError: no such pipeline or step, text that does not parse, a sequence that is not where its name says,
            or a pipeline without steps.
    """
    path = _pipeline_path(name)
    state = pipeline_cache.state_of(path)
    pipeline = None if state is None else pipeline_cache.find(path, state)
    if pipeline is None:
        parsed: dict[Path, ir.Module] = {}  # scripts are parsed for declarations first, and for their sequences later
        pipeline = _parse(path, parsed)
        if state is not None:
            pipeline_cache.keep(pipeline, state, {path, *parsed})
    return pipeline


def _parse(path: Path, parsed: dict[Path, ir.Module]) -> Pipeline:
    """Parses the pipeline of a file and its steps, which are added to `parsed`; raises StepladderError as `load`."""
    module = scripts.parse(path, parsed=parsed)
    sequences = sequences_by_name(module)
    sequence = sequences.get(path.stem)
    if sequence is None or is_declaration(sequence):
        defined = [name for name, item in sequences.items() if not is_declaration(item)]
        raise StepladderError(
            f"pipeline file '{path}' defines no named sequence @{path.stem}",
            notes=[f"it defines: {', '.join(defined) or 'none'}"],
        )
    knobs = {knob.name: knob for knob in map(_read_knob, walk(sequence, "transform.tune.knob"))}
    script_attributes.check_pipeline(sequence, path.stem)
    pipeline = Pipeline(path.stem, path, lambda: (module, sequence), knobs, _texts(sequence, "derived"))
    pipeline.whole_function = "whole_function" in sequence.attributes
    if "program_step" in sequence.attributes:
        pipeline.program_step = ir.StringAttr(sequence.attributes["program_step"]).value
    pipeline.program_knobs = _texts(sequence, "program_knobs")
    for include in include_ops(sequence):
        pipeline.steps.append(_load_step(pipeline, included_name(include), _condition(include), parsed))
    if not pipeline.steps:
        raise StepladderError(
            f"pipeline '{pipeline.name}' includes no step",
            location=diagnostics.location_text(sequence.location),
            notes=[
                "a step is included by: transform.include @STEP failures(propagate) (%module) : "
                "(!transform.any_op) -> ()"
            ],
        )
    for op in walk(sequence):
        script_attributes.check_knobs(op)
    for step in pipeline.steps:
        _check_names(pipeline, step)
    _check_programs(pipeline)
    return pipeline


def _check_programs(pipeline: Pipeline) -> None:
    """Raises StepladderError where a pipeline's attributes about XeTile programs name no step or no knob of it."""
    if pipeline.program_step is not None:
        pipeline.step(pipeline.program_step)
    for name in pipeline.program_knobs:
        if name not in pipeline.knobs:
            raise StepladderError(
                f"program_knobs gives '{name}', and pipeline '{pipeline.name}' has no such knob"
                f"{suggest(name, list(pipeline.knobs))}",
                location=diagnostics.location_text(pipeline.sequence.location),
            )


def _check_names(pipeline: Pipeline, step: Step) -> None:
    """Raises StepladderError where a step's attributes name steps that no file defines, or give a knob what it cannot
    hold."""
    location = diagnostics.location_text(sequences_of(pipeline, [step])[0].location)
    names = [other_step.name for other_step in pipeline.steps]
    for name in step.needs:
        if name not in names and scripts.find(name, pipeline.path) is None:
            raise StepladderError(
                f"step '{step.name}' needs '{name}', and there is no such step{suggest(name, names)}", location=location
            )
    for name, value in step.left_out.items():
        if name in pipeline.derived:
            continue
        knob = pipeline.knobs.get(name)
        if knob is None:
            raise StepladderError(
                f"step '{step.name}' has the knob '{name}' in `left_out`, and pipeline "
                f"'{pipeline.name}' has no such knob{suggest(name, list(pipeline.knobs))}",
                location=location,
                notes=[f"its knobs are: {', '.join(pipeline.knobs) or 'none'}"],
            )
        # A number need not be among the options: with a step left out, a knob may hold what no step could run with.
        if type(value) is not type(knob.default) or (isinstance(value, str) and not knob.accepts(value)):
            raise StepladderError(
                f"step '{step.name}' says that knob '{name}' is {value_text(value)} when it is left out, and its "
                f"options are: {knob.options_text()}",
                location=location,
            )


def _condition(include: ir.Operation) -> Condition | None:
    """Returns when an include runs: None for always, else the region of `transform.alternatives` that it is in."""
    parent = include.parent
    if parent is None or parent.name != _ALTERNATIVES:
        return None
    region = next(number for number, region in enumerate(parent.regions) if region.blocks[0] == include.block)
    script_attributes.check_knobs(parent.operation)
    branch = parent.attributes[_SELECTED].value if _SELECTED in parent.attributes else 0
    expression = _texts(parent.operation, "knobs").get(_SELECTED) or str(branch)
    return Condition(expression, region, len(parent.regions), diagnostics.location_text(parent.location))


def _define(pipeline: Pipeline, name: str, near: Path, parsed: dict[Path, ir.Module]) -> ir.Operation:
    """Returns the definition of a sequence that the script `near` includes, in the pipeline's module, into which it is
    merged with all that it includes unless it is there."""
    sequence = sequences_by_name(pipeline.module).get(name)
    if sequence is None or is_declaration(sequence):
        if sequence is not None:
            script_attributes.check_declaration(sequence, name)
        del sequence  # merging erases the declaration, and no object of it may outlive it
        scripts.merge(pipeline.module, name, scripts.path_of(name, near), parsed)
        sequence = sequences_by_name(pipeline.module)[name]
    for include in include_ops(sequence):
        included = included_name(include)
        if is_declaration(sequences_by_name(pipeline.module)[included]):
            _define(pipeline, included, scripts.file_of(sequence), parsed)
    return sequence


def _facts(sequence: ir.Operation, name: str) -> dict[str, str]:
    """Returns the facts of the payload that a step changes, each with its expression.

    Raises:
        StepladderError: there is no such fact.
    """
    facts = _texts(sequence, "facts")
    for fact in facts:
        if fact not in FACTS:
            raise StepladderError(
                f"step '{name}' changes '{fact}', which is not a fact of a payload{suggest(fact, list(FACTS))}",
                location=diagnostics.location_text(sequence.location),
                notes=[f"facts are: {', '.join(FACTS)}"],
            )
    return facts


def _load_step(pipeline: Pipeline, name: str, condition: Condition | None, parsed: dict[Path, ir.Module]) -> Step:
    sequence = _define(pipeline, name, pipeline.path, parsed)
    script_attributes.check_step(sequence, name)
    bodies = with_included(pipeline, [name])
    for included, body in list(bodies.items())[1:]:
        script_attributes.check_included(body, included, name)
    ops = [op for body in bodies.values() for op in walk(body)]
    for op in ops:
        script_attributes.check_knobs(op)
        script_attributes.check_matched_ops(op)
    return Step(
        name,
        scripts.file_of(sequence),
        "optimization" in sequence.attributes,
        _read_requirements(sequence),
        tuple(step_name.value for step_name in sequence.attributes["needs"]) if "needs" in sequence.attributes else (),
        {
            knob: _value(value, f"step '{name}': 'left_out' of '{knob}'", diagnostics.location_text(sequence.location))
            for knob, value in _entries(sequence, "left_out").items()
        },
        _facts(sequence, name),
        python_dialects_in(ops),
        condition,
    )


def pipeline_file(name: str) -> str:
    """Returns the path of a pipeline of functions: `functions`, `elementwise` or `group`.

    Args:
        name: `functions`, `elementwise` or `group`.
    """
    return str(transforms_dir() / "functions" / f"{name}.mlir")
