"""Pipelines and steps as they stand in the transform scripts: finding, parsing and describing them.

A pipeline is a named sequence, named after its file, that includes steps; a step is a named sequence, named after its
file under `steps/`. What the runner needs to know about them beyond the upstream ops stands in the text as discardable
attributes of the sequences (`script_attributes` checks them):

    on a pipeline   derived = {name = "expression", ...}    names that expressions may use beside the knobs
    on a knob       description = "text"                    what it is, for `stepladder list knobs`
    on a step       optimization                            it may be left out
                    requires = [{condition = "expression", message = "text"}, ...]
                                                            what must hold for knobs, payload and target, as an
                                                            expression and as a sentence for whom it refuses
                    needs = ["step", ...]                   steps without which this one cannot run
                    left_out = {knob = value, ...}          knob values that hold when it is left out
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from stepladder.extension import plugins
from stepladder.extension.lib import faults
from stepladder.extension.lib.dialect import python_dialects_in
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import interpreter, ir
from stepladder.mlir.nesting import check_nesting
from stepladder.mlir.traverse import walk
from stepladder.pipeline import attributes as script_attributes
from stepladder.runtime.errors import StepladderError, suggest
from stepladder.runtime.resources import transforms_dir

_SEQUENCE = "transform.named_sequence"
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


def _parse(path: Path):
    try:
        check_nesting(path.read_text(), str(path))
        return ir.Module.parseFile(str(path))
    except ir.MLIRError as error:
        first = diagnostics.from_error(error)[0]
        raise StepladderError(
            first.message,
            location=first.location or str(path),
            traceback=faults.take(),
            notes=[*first.notes, *plugins.unknown_op_notes(first, path.read_text())],
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StepladderError(f"cannot read '{path}': {error}") from None


def _sequences(module) -> dict[str, object]:
    return {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == _SEQUENCE
    }


def _is_declaration(sequence) -> bool:
    return not sequence.regions[0].blocks


def _plain(attribute):
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.StringAttr():
            return attribute.value
        case ir.ArrayAttr():
            return [_plain(element) for element in attribute]
        case ir.DictAttr():
            return {attribute[i].name: _plain(attribute[i].attr) for i in range(len(attribute))}
    raise StepladderError(f"attribute {attribute} is neither a number, a text, a list nor a dictionary")


def _attribute(operation, name: str, default):
    return _plain(operation.attributes[name]) if name in operation.attributes else default


def _read_knob(operation) -> Knob:
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


def _read_requirements(sequence) -> tuple[Requirement, ...]:
    return tuple(Requirement(entry["condition"], entry["message"]) for entry in _attribute(sequence, "requires", []))


def knob_ops(pipeline: Pipeline) -> list:
    """Returns the `transform.tune.knob` ops of a pipeline, in order."""
    return walk(pipeline.sequence, "transform.tune.knob")


def include_ops(sequence) -> list:
    """Returns the `transform.include` ops of a named sequence, in order."""
    return walk(sequence, "transform.include")


def sequences_of(pipeline: Pipeline, steps: list[Step]) -> list:
    """Returns the named sequences of some steps of a pipeline."""
    sequences = _sequences(pipeline.module)
    return [sequences[name] for name in dict.fromkeys(step.name for step in steps)]


def texts_of_steps(pipeline: Pipeline) -> dict[str, str]:
    """Returns the definition of every step of a pipeline as MLIR prints it."""
    sequences = _sequences(pipeline.module)
    return {step.name: str(sequences[step.name]) for step in pipeline.steps}


def text_of_sequence(pipeline: Pipeline) -> str:
    """Returns the pipeline's own sequence as MLIR prints it, under one name for all."""
    return str(pipeline.sequence).replace(f"@{pipeline.name}(", "@pipeline(", 1)


def included_name(include) -> str:
    """Returns the name of the sequence that a `transform.include` op includes."""
    return include.attributes["target"].value


def _step_folders(near: Path) -> list[Path]:
    return [near.parent / "steps", near.parent, transforms_dir() / "steps"]


def _find_step(name: str, near: Path) -> Path | None:
    for folder in _step_folders(near):
        for path in (folder / f"{name}.mlir", folder / "tc" / f"{name}.mlir"):
            if path.is_file() and path != near:
                return path
    return None


def _step_path(name: str, near: Path) -> Path:
    path = _find_step(name, near)
    if path is not None:
        return path
    folders = _step_folders(near)
    raise StepladderError(
        f"'{near}' includes step '{name}', and no file {name}.mlir defines it",
        notes=[f"looked in {', '.join(str(folder) for folder in folders)}"],
    )


def load(name: str) -> Pipeline:
    """Parses a pipeline and its steps into one transform module, in the current MLIR context.

    Args:
        name: the name of a pipeline of the package, or the path of a pipeline file.

    Raises:
        StepladderError: no such pipeline or step, text that does not parse, a sequence that is not where its name says,
            or a pipeline without steps.
    """
    path = _pipeline_path(name)
    module = _parse(path)
    sequences = _sequences(module)
    sequence = sequences.get(path.stem)
    if sequence is None or _is_declaration(sequence):
        raise StepladderError(
            f"pipeline file '{path}' defines no named sequence @{path.stem}",
            notes=[f"it defines: {', '.join(sequences) or 'none'}"],
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
        if name not in names and _find_step(name, pipeline.path) is None:
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
        if isinstance(value, str) != isinstance(knob.default, str):
            raise StepladderError(
                f"step '{step.name}' says that knob '{name}' is {value} when it is left out, and its "
                f"options are: {knob.options_text()}",
                location=location,
            )


def _condition(include) -> Condition | None:
    """Returns when an include runs: None for always, else the region of the alternatives that it stands in."""
    parent = include.parent
    if parent is None or parent.name != _ALTERNATIVES:
        return None
    region = next(number for number, region in enumerate(parent.regions) if region.blocks[0] == include.block)
    knobs = _attribute(parent.operation, "knobs", {})
    expression = knobs.get(_SELECTED) or str(_attribute(parent.operation, _SELECTED, 0))
    return Condition(expression, region, len(parent.regions), diagnostics.location_text(parent.location))


def _load_step(pipeline: Pipeline, name: str, condition: Condition | None) -> Step:
    own = _sequences(pipeline.module).get(name)
    if own is not None and not _is_declaration(own):
        path, sequence = pipeline.path, own
    else:
        if own is not None:
            script_attributes.check_declaration(own, name)
        path = _step_path(name, pipeline.path)
        script = _parse(path)
        sequence = _sequences(script).get(name)
        if sequence is None:
            raise StepladderError(f"step file '{path}' defines no named sequence @{name}")
        with diagnostics.collect(pipeline.module.context) as errors:
            try:
                interpreter.copy_symbols_and_merge_into(pipeline.module, script)
            except ValueError as error:
                first = (
                    errors[0]
                    if errors
                    else diagnostics.from_text(str(error))
                    or diagnostics.Diagnostic(str(path), "the step does not fit the pipeline")
                )
                raise StepladderError(
                    f"step '{name}': {first.message}", location=first.location, notes=first.notes
                ) from None
        sequence = _sequences(pipeline.module)[name]
    script_attributes.check_step(sequence, name)
    for op in walk(sequence):
        script_attributes.check_knobs(op)
    return Step(
        name,
        path,
        "optimization" in sequence.attributes,
        _read_requirements(sequence),
        tuple(_attribute(sequence, "needs", [])),
        _attribute(sequence, "left_out", {}),
        python_dialects_in(walk(sequence)),
        condition,
    )
