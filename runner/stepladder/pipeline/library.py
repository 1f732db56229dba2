"""Pipelines and steps as they stand in the transform scripts: finding, parsing and describing them.

A pipeline is a named sequence, named after its file, that includes steps; a step is a named sequence, named after its
file under `steps/`. What the runner needs to know about them beyond the upstream ops stands in the text as discardable
attributes of the sequences:

    on a pipeline   derived = {name = "expression", ...}    names that expressions may use beside the knobs
    on a step       optimization                            it may be left out
                    requires = ["expression", ...]          what must hold for knobs, payload and target
                    needs = ["step", ...]                   steps without which this one cannot run
                    left_out = {knob = value, ...}          knob values that hold when it is left out
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import interpreter, ir
from stepladder.mlir.traverse import walk
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

    def accepts(self, value: int | str) -> bool:
        """Tells whether `value` is among the options."""
        if self.multiple_of is not None:
            return isinstance(value, int) and value >= 0 and value % self.multiple_of == 0
        return value in self.options

    def options_text(self) -> str:
        """Returns the options as a message shows them."""
        if self.multiple_of == 1:
            return "any number from 0 on"
        if self.multiple_of is not None:
            return f"any multiple of {self.multiple_of}"
        return ", ".join(str(option) for option in self.options)


@dataclass(frozen=True)
class Condition:
    """Where a step stands in a `transform.tune.alternatives`: it runs when `expression` gives `region`."""

    expression: str
    region: int

    def describe(self) -> str:
        """Returns the condition as a table shows it."""
        return self.expression if self.region == 1 else f"not ({self.expression})"


@dataclass(frozen=True)
class Step:
    """A step of a pipeline: its name, the file it stands in, what its attributes say, and when it runs."""

    name: str
    path: Path
    optimization: bool
    requires: tuple[str, ...]
    needs: tuple[str, ...]
    left_out: dict[str, int | str]
    extended: bool
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
        names = [step.name for step in self.steps]
        raise StepladderError(
            f"pipeline '{self.name}' has no step '{name}'{suggest(name, names)}",
            notes=[f"its steps are: {', '.join(names)}"],
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
        return ir.Module.parseFile(str(path))
    except ir.MLIRError as error:
        first = diagnostics.from_error(error)[0]
        raise StepladderError(first.message, location=first.location or str(path), notes=first.notes) from None
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
        case ir.IntegerAttr() | ir.StringAttr():
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
    return Knob(name, _plain(attributes["selected"]), () if multiple_of else tuple(options), multiple_of, location)


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


def included_name(include) -> str:
    """Returns the name of the sequence that a `transform.include` op includes."""
    return include.attributes["target"].value


def _step_path(name: str, near: Path) -> Path:
    folders = [near.parent / "steps", near.parent, transforms_dir() / "steps"]
    for folder in folders:
        for path in (folder / f"{name}.mlir", folder / "tc" / f"{name}.mlir"):
            if path.is_file() and path != near:
                return path
    raise StepladderError(
        f"'{near}' includes step '{name}', and no file {name}.mlir defines it",
        notes=[f"looked in {', '.join(str(folder) for folder in folders)}"],
    )


def load(name: str) -> Pipeline:
    """Parses a pipeline and its steps into one transform module, in the current MLIR context.

    Args:
        name: the name of a pipeline of the package, or the path of a pipeline file.

    Raises:
        StepladderError: no such pipeline or step, text that does not parse, or a sequence that is not where its name
            says.
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

    for include in include_ops(sequence):
        pipeline.steps.append(_load_step(pipeline, included_name(include), _condition(include)))
    return pipeline


def _condition(include) -> Condition | None:
    """Returns when an include runs: None for always, else the region of the alternatives that it stands in."""
    parent = include.parent
    if parent is None or parent.name != _ALTERNATIVES:
        return None
    region = next(number for number, region in enumerate(parent.regions) if region.blocks[0] == include.block)
    knobs = _attribute(parent.operation, "knobs", {})
    expression = knobs.get(_SELECTED) or str(_attribute(parent.operation, _SELECTED, 0))
    return Condition(expression, region)


def _load_step(pipeline: Pipeline, name: str, condition: Condition | None) -> Step:
    own = _sequences(pipeline.module).get(name)
    if own is not None and not _is_declaration(own):
        path, sequence = pipeline.path, own
    else:
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
    return Step(
        name,
        path,
        "optimization" in sequence.attributes,
        tuple(_attribute(sequence, "requires", [])),
        tuple(_attribute(sequence, "needs", [])),
        _attribute(sequence, "left_out", {}),
        path.parent.name == "tc",
        condition,
    )
