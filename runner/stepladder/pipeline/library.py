"""Pipelines and steps as they stand in the transform scripts: finding, parsing and describing them.

A pipeline is a named sequence, named after its file, that includes steps; a step is a named sequence, named after its
file under `steps/`. What the runner needs to know about them beyond the upstream ops stands in the text as discardable
attributes of the sequences (`script_attributes` checks them):

    on a pipeline   derived = {name = "expression", ...}    names that expressions may use beside the knobs
    on a knob       description = "text"                    what it is, for `stepladder list knobs`
    on a step       optimization                            it may be left out
                    requires = [{condition = "expression", message = "text"}, ...]
                                                            what must hold for knobs, payload and target, and the
                                                            message where it does not
                    when = "expression"                     the case in which `requires` applies; always without it
                    needs = ["step", ...]                   steps without which this one cannot run
                    left_out = {knob = value, ...}          knob values that hold when it is left out
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stepladder.extension.lib.dialect import python_dialects_in
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.pipeline import attributes as script_attributes
from stepladder.pipeline import scripts
from stepladder.runtime.errors import StepladderError, suggest
from stepladder.runtime.resources import transforms_dir

_ALTERNATIVES = "transform.tune.alternatives"
_SELECTED = "selected_region_attr"


@dataclass(frozen=True)
class Knob:
    """A tunable of a pipeline: `options` lists what it may be, or names a step width (`{multiple_of = 8}`)."""

    name: str
    default: int | str
    options: tuple[int | str, ...]
    multiple_of: int | None
    location: str
    description: str = ""

    @property
    def is_boolean(self) -> bool:
        """Whether the knob switches something on and off."""
        return isinstance(self.default, bool)

    def accepts(self, value: int | str) -> bool:
        """Tells whether `value` is among the options."""
        if self.multiple_of is not None:
            return isinstance(value, int) and value >= 0 and value % self.multiple_of == 0
        return isinstance(value, bool) == self.is_boolean and value in self.options

    def options_text(self) -> str:
        """Returns the options as a message shows them."""
        if self.multiple_of == 1:
            return "any number from 0 on"
        if self.multiple_of is not None:
            return f"any multiple of {self.multiple_of}"
        return ", ".join(value_text(option) for option in self.options)


def value_text(value: int | str) -> str:
    """Returns a knob's value as a user writes it: booleans as `true` and `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Condition:
    """Where a step stands in a `transform.tune.alternatives`: it runs when `expression` gives `region` of `regions`."""

    expression: str
    region: int
    regions: int
    location: str

    def describe(self) -> str:
        """Returns the condition as a table shows it."""
        return self.expression if self.region == 1 else f"not ({self.expression})"


@dataclass(frozen=True)
class Requirement:
    """What a step requires of knobs, payload and target: `condition` is an expression, `message` says it in words."""

    condition: str
    message: str


@dataclass(frozen=True)
class Step:
    """A step of a pipeline: its name, the file it stands in, what its attributes say, and when it runs.

    `dialects` are those written in Python that ops of it are of: none for a step that runs in a stock mlir-opt.
    """

    name: str
    path: Path
    optimization: bool
    requires: tuple[Requirement, ...]
    needs: tuple[str, ...]
    left_out: dict[str, int | str]
    dialects: tuple[str, ...]
    condition: Condition | None

    def summary(self) -> str:
        """Returns the first sentence of the script's head comment."""
        return _head_comment(self.path)


@dataclass
class Pipeline:
    """A parsed pipeline, its steps merged into one transform module.

    The module belongs to the context it was parsed in; `sequence` is the pipeline's own named sequence in it.
    """

    name: str
    path: Path
    module: object
    sequence: object
    knobs: dict[str, Knob]
    derived: dict[str, str]
    steps: list[Step] = field(default_factory=list)

    def step(self, name: str) -> Step:
        """Returns the step called `name`, or raises an error that lists the steps there are."""
        for step in self.steps:
            if step.name == name:
                return step
        known = [step.name for step in self.steps]
        raise StepladderError(
            f"pipeline '{self.name}' has no step '{name}'{suggest(name, known)}",
            notes=[f"its steps are: {', '.join(known)}"],
        )

    def summary(self) -> str:
        """Returns the first sentence of the pipeline's head comment."""
        return _head_comment(self.path)


def _head_comment(path: Path) -> str:
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        text = line.lstrip("/").strip()
        if not text and lines:
            break
        lines.append(text)
    return re.split(r"(?<=\.)\s", " ".join(lines).strip(), maxsplit=1)[0]


def pipeline_names() -> list[str]:
    """Returns the names of the pipelines that come with the package."""
    return sorted(path.stem for path in transforms_dir().glob("*.mlir"))


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
        known = pipeline_names()
        raise StepladderError(
            f"unknown pipeline '{name}'{suggest(name, known)}",
            notes=[f"pipelines by name: {', '.join(known)}", "or give the path of a pipeline file"],
        )
    return path


def _plain(attribute):
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.StringAttr():
            return attribute.value
        case ir.ArrayAttr():
            return [_plain(element) for element in attribute]
        case ir.DictAttr():
            return {attribute[i].name: _plain(attribute[i].attr) for i in range(len(attribute))}
    raise StepladderError(f"attribute {attribute} is neither a number, a text, a list nor a dictionary")


def _attribute(operation: ir.Operation, name: str, default):
    return _plain(operation.attributes[name]) if name in operation.attributes else default


def _read_knob(operation: ir.Operation) -> Knob:
    attributes = operation.attributes
    location = diagnostics.location_text(operation.location)
    name = _plain(attributes["name"])
    if "selected" not in attributes:
        raise StepladderError(f"knob '{name}' has no default", location=location)
    options = _plain(attributes["options"])
    multiple_of = options.get("multiple_of") if isinstance(options, dict) else None
    if isinstance(options, dict) and multiple_of is None:
        raise StepladderError(f"knob '{name}': options are a list, or {{multiple_of = N}}", location=location)
    return Knob(
        name,
        _plain(attributes["selected"]),
        () if multiple_of else tuple(options),
        multiple_of,
        location,
        str(_attribute(operation, "description", "")),
    )


def _read_requirements(sequence: ir.Operation) -> tuple[Requirement, ...]:
    """Returns what a step requires, each condition under the step's `when`."""
    when = _attribute(sequence, "when", None)
    entries = _attribute(sequence, "requires", [])
    if when is None:
        return tuple(Requirement(entry["condition"], entry["message"]) for entry in entries)
    return tuple(Requirement(f"not ({when}) or ({entry['condition']})", entry["message"]) for entry in entries)


def knob_ops(pipeline: Pipeline) -> list:
    """Returns the `transform.tune.knob` ops of a pipeline, in order."""
    return walk(pipeline.sequence, "transform.tune.knob")


def include_ops(sequence: ir.Operation) -> list[ir.Operation]:
    """Returns the `transform.include` ops of a named sequence, in order."""
    return walk(sequence, "transform.include")


def _with_included(pipeline: Pipeline, names: Iterable[str]) -> dict[str, ir.Operation]:
    """Returns some named sequences and those that they include, directly or not, by name."""
    sequences = scripts.sequences(pipeline.module)
    found: dict[str, ir.Operation] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = sequences[name]
            waiting += [included_name(include) for include in include_ops(sequences[name])]
    return found


def sequences_of(pipeline: Pipeline, steps: list[Step]) -> list[ir.Operation]:
    """Returns the named sequences of some steps of a pipeline, and those that they include."""
    return list(_with_included(pipeline, (step.name for step in steps)).values())


def texts_of_steps(pipeline: Pipeline) -> dict[str, str]:
    """Returns the definition of every step of a pipeline, and of what it includes, as MLIR prints them."""
    return {step.name: "\n".join(map(str, sequences_of(pipeline, [step]))) for step in pipeline.steps}


def text_of_sequence(pipeline: Pipeline) -> str:
    """Returns the pipeline's own sequence as MLIR prints it, under one name for all."""
    return str(pipeline.sequence).replace(f"@{pipeline.name}(", "@pipeline(", 1)


def included_name(include: ir.Operation) -> str:
    """Returns the name of the sequence that a `transform.include` op includes."""
    return include.attributes["target"].value


def load(name: str) -> Pipeline:
    """Parses a pipeline and its steps into one transform module, in the current MLIR context.

    Args:
        name: the name of a pipeline of the package, or the path of a pipeline file.

    Raises:
        StepladderError: no such pipeline or step, text that does not parse, a sequence that is not where its name says,
            or a pipeline without steps.
    """
    path = _pipeline_path(name)
    module = scripts.parse(path)
    sequence = scripts.sequences(module).get(path.stem)
    if sequence is None or scripts.is_declaration(sequence):
        raise StepladderError(
            f"pipeline file '{path}' defines no named sequence @{path.stem}",
            notes=[f"it defines: {', '.join(scripts.sequences(module)) or 'none'}"],
        )
    knobs = {}
    for op in walk(sequence, "transform.tune.knob"):
        knob = _read_knob(op)
        knobs[knob.name] = knob
    pipeline = Pipeline(path.stem, path, module, sequence, knobs, _attribute(sequence, "derived", {}))

    script_attributes.check_pipeline(sequence, path.stem)
    for include in include_ops(sequence):
        pipeline.steps.append(_load_step(pipeline, included_name(include), _condition(include)))
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
    return pipeline


def _check_names(pipeline: Pipeline, step: Step) -> None:
    """Raises StepladderError where a step's attributes name steps that no file defines, or give a knob what it cannot
    hold."""
    location = diagnostics.location_text(sequences_of(pipeline, [step])[0].location)
    names = [other.name for other in pipeline.steps]
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
                f"step '{step.name}' says what knob '{name}' is when it is left out, and pipeline "
                f"'{pipeline.name}' has no such knob{suggest(name, list(pipeline.knobs))}",
                location=location,
                notes=[f"its knobs are: {', '.join(pipeline.knobs)}"],
            )
        # A number need not be among the options: with a step left out, a knob may hold what no step could run with.
        if type(value) is not type(knob.default) or (isinstance(value, str) and not knob.accepts(value)):
            raise StepladderError(
                f"step '{step.name}' says that knob '{name}' is {value_text(value)} when it is left out, and its "
                f"options are: {knob.options_text()}",
                location=location,
            )


def _condition(include: ir.Operation) -> Condition | None:
    """Returns when an include runs: None for always, else the region of the alternatives that it stands in."""
    parent = include.parent
    if parent is None or parent.name != _ALTERNATIVES:
        return None
    region = next(number for number, region in enumerate(parent.regions) if region.blocks[0] == include.block)
    knobs = _attribute(parent.operation, "knobs", {})
    expression = knobs.get(_SELECTED) or str(_attribute(parent.operation, _SELECTED, 0))
    return Condition(expression, region, len(parent.regions), diagnostics.location_text(parent.location))


def _define(pipeline: Pipeline, name: str, near: Path) -> ir.Operation:
    """Returns the definition of a sequence that the script `near` includes, in the pipeline's module, into which it is
    merged with all that it includes unless it is there."""
    sequence = scripts.sequences(pipeline.module).get(name)
    if sequence is None or scripts.is_declaration(sequence):
        if sequence is not None:
            script_attributes.check_declaration(sequence, name)
        del sequence  # merging erases the declaration, and no object of it may outlive it
        scripts.merge(pipeline.module, name, scripts.path_of(name, near))
        sequence = scripts.sequences(pipeline.module)[name]
    for include in include_ops(sequence):
        included = included_name(include)
        if scripts.is_declaration(scripts.sequences(pipeline.module)[included]):
            _define(pipeline, included, scripts.file_of(sequence))
    return sequence


def _load_step(pipeline: Pipeline, name: str, condition: Condition | None) -> Step:
    sequence = _define(pipeline, name, pipeline.path)
    script_attributes.check_step(sequence, name)
    bodies = _with_included(pipeline, [name])
    for included, body in list(bodies.items())[1:]:
        script_attributes.check_included(body, included, name)
    ops = [op for body in bodies.values() for op in walk(body)]
    for op in ops:
        script_attributes.check_knobs(op)
    return Step(
        name,
        scripts.file_of(sequence),
        "optimization" in sequence.attributes,
        _read_requirements(sequence),
        tuple(_attribute(sequence, "needs", [])),
        _attribute(sequence, "left_out", {}),
        python_dialects_in(ops),
        condition,
    )
