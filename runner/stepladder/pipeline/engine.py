"""Running a pipeline: its steps one by one over a payload, with the IR kept after each.

The pipeline's text stays as it is in the repository. For a run, the knobs' values are written into the parsed module
(`bind`), and every `transform.include` is then interpreted on its own, in order: the same ops that a stock mlir-opt
interprets in one go, cut where a user wants to look, stop, or leave something out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stepladder import extension
from stepladder.mlir import diagnostics, ssa_names
from stepladder.mlir.bindings import interpreter, ir, passmanager
from stepladder.mlir.traverse import attributes_of, walk
from stepladder.payload.facts import type_facts
from stepladder.payload.problem import FACTS, Problem, find_problem
from stepladder.pipeline import library, measured_knobs
from stepladder.pipeline.expressions import (
    ExpressionError,
    Scope,
    UnknownName,
    evaluate,
    names,
)
from stepladder.runtime import targets
from stepladder.runtime.errors import FAILED, StepladderError, suggest

_ENTRY = "__stepladder_step"


@dataclass(frozen=True)
class Request:
    """What to run of a pipeline, and with which knobs.

    Args:
        pipeline: name or file.
        settings: knob -> value as text or number; knobs not named keep their defaults.
        through: stop after this step.
        start: begin with this step; the payload is the IR that the step before it left.
        without: optimizations to leave out.
        tuned: where knobs were measured for problems like the payload's, take them for those that are not set.
    """

    pipeline: str
    settings: Mapping[str, int | str] = field(default_factory=dict)
    through: str | None = None
    start: str | None = None
    without: tuple[str, ...] = ()
    tuned: bool = False

    def command_line(self, payload: str) -> str:
        """Returns the `stepladder-opt` command that makes this request of a payload file."""
        words = ["stepladder-opt", payload, "--pipeline", self.pipeline]
        for name in ("start", "through"):
            if getattr(self, name):
                words += ["--from" if name == "start" else "--through", getattr(self, name)]
        if self.without:
            words += ["--without", ",".join(self.without)]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={value}"]
        return shlex.join(words)


@dataclass(frozen=True)
class StepResult:
    """One step as it ran: `seconds` of wall time, and the IR it left."""

    name: str
    seconds: float
    operations: int
    text: str


@dataclass
class Run:
    """A finished run: the payload's problem (None where it began from a dump), the knobs, and every step."""

    module: object
    pipeline: library.Pipeline
    problem: Problem | None
    knobs: dict[str, int | str]
    scope: Scope
    steps: list[StepResult]
    input_text: str

    def dumps(self) -> dict[str, str]:
        """Returns file name -> IR: `00-input.mlir`, then `NN-step.mlir` for every step that ran."""
        texts = [("input", self.input_text), *((step.name, step.text) for step in self.steps)]
        return {dump_name(number, name): text for number, (name, text) in enumerate(texts)}


def dump_name(number: int, name: str) -> str:
    """Returns the file name of a dump: `NN-name.mlir`, the input being number 0."""
    return f"{number:02d}-{name}.mlir"


@contextlib.contextmanager
def mlir_context():
    """A fresh MLIR context with the `tc` extension loaded, current while the block runs."""
    with ir.Context() as context, ir.Location.unknown():
        extension.load()
        yield context


def text_of(module) -> str:
    """Returns the IR as text, with the names that locations carry."""
    return module.operation.get_asm(use_name_loc_as_prefix=True)


def parse_payload(text: str, name: str):
    """Parses a payload.

    Args:
        text: MLIR.
        name: the file it came from, for messages.

    Raises:
        StepladderError: not MLIR; names the file, the line and what the parser said.
    """
    diagnostics.name_payload(name)
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError as error:
        found = diagnostics.from_error(error)
        first = found[0] if found else diagnostics.Diagnostic("", "not MLIR")
        raise StepladderError(first.message, location=first.location or name, notes=first.notes) from None
    ssa_names.restore(module, text)
    return module


def _knob_value(knob: library.Knob, given: int | str, pipeline: library.Pipeline) -> int | str:
    value: int | str = given
    if isinstance(knob.default, int) and isinstance(given, str):
        try:
            value = int(given, 0)
        except ValueError:
            raise StepladderError(
                f"knob '{knob.name}' takes a number, not '{given}'", notes=[f"its options are: {knob.options_text()}"]
            ) from None
    if not knob.accepts(value):
        raise StepladderError(
            f"knob '{knob.name}' of pipeline '{pipeline.name}' cannot be {value}",
            location=knob.location,
            notes=[f"its options are: {knob.options_text()}"],
        )
    return value


def _check_without(pipeline: library.Pipeline, without: tuple[str, ...]) -> None:
    optional = [step.name for step in pipeline.steps if step.optimization]
    for name in without:
        if not pipeline.step(name).optimization:
            raise StepladderError(
                f"step '{name}' is a lowering that pipeline '{pipeline.name}' cannot do without",
                notes=[f"what can be left out: {', '.join(optional)}"],
            )


def choose_knobs(pipeline: library.Pipeline, request: Request) -> dict[str, int | str]:
    """Returns every knob's value: what the request sets, what steps left out imply, else the default.

    Raises:
        StepladderError: an unknown knob or step, a value outside the options, a step that cannot be left out.
    """
    _check_without(pipeline, request.without)
    values = {knob.name: knob.default for knob in pipeline.knobs.values()}
    for name, given in request.settings.items():
        if name not in pipeline.knobs:
            raise StepladderError(
                f"pipeline '{pipeline.name}' has no knob '{name}'{suggest(name, list(pipeline.knobs))}",
                notes=[f"its knobs are: {', '.join(pipeline.knobs)}"],
            )
        values[name] = _knob_value(pipeline.knobs[name], given, pipeline)
    for name in request.without:
        for knob, value in pipeline.step(name).left_out.items():
            if knob in request.settings and values[knob] != value:
                raise StepladderError(f"--without {name} means {knob} = {value}, but --set gives {values[knob]}")
            values[knob] = value
    return values


def _scope(
    pipeline: library.Pipeline,
    knobs: dict[str, int | str],
    problem: Problem | None,
    known_facts: dict[str, int | str | list],
    without: tuple[str, ...],
) -> Scope:
    """Returns what expressions may use: knobs, the payload's facts, the target's limits, and which steps are in."""
    facts: dict[str, int | str | list] = {step.name: step.name not in without for step in pipeline.steps}
    facts |= problem.facts() if problem else known_facts
    if "target" in knobs:
        facts["shared_memory_limit"] = targets.find(str(knobs["target"])).shared_memory
    return Scope({**facts, **knobs}, pipeline.derived)


def _accepted_values(pipeline: library.Pipeline, scope: Scope, requirement: str, roots: list[str]) -> list[str]:
    """Returns which options of single knobs would meet a requirement; which knobs have none, where no knob has."""
    hints, hopeless = [], []
    for name in roots:
        knob = pipeline.knobs.get(name)
        if knob is None or knob.multiple_of is not None:
            continue
        good = []
        for option in knob.options:
            with contextlib.suppress(ExpressionError):
                if evaluate(requirement, scope.replace(**{name: option})):
                    good.append(str(option))
        if good:
            hints.append(f"with {name} = {' or '.join(good)} it would hold")
        else:
            hopeless.append(f"no other option of {name} ({knob.options_text()}) would make it hold")
    return hints or hopeless


def _check_requirement(
    pipeline: library.Pipeline, step: library.Step, requirement: str, scope: Scope, problem: Problem | None
) -> None:
    requirement, _, taken = (part.strip() for part in requirement.partition("#"))
    roots = scope.roots(requirement)
    if any(name in FACTS and name not in scope for name in roots):
        return
    try:
        if evaluate(requirement, scope):
            return
        values = ", ".join(f"{name} = {scope[name]}" for name in dict.fromkeys([*names(requirement), *roots]))
    except UnknownName as error:
        raise StepladderError(
            f"step '{step.name}' requires {requirement}, and pipeline '{pipeline.name}' defines no '{error.name}'",
            location=str(step.path),
        ) from None
    except ExpressionError as error:
        values = ": ".join(filter(None, [str(error), ", ".join(f"{name} = {scope[name]}" for name in roots)]))
    about_payload = problem is not None and any(name in FACTS for name in roots)
    required = f"takes {taken} ({requirement})" if taken else f"requires {requirement}"
    raise StepladderError(
        f"step '{step.name}' {required}, but {values}",
        location=problem.location if about_payload else str(step.path),
        notes=_accepted_values(pipeline, scope, requirement, roots),
    )


def _with_tuned_knobs(pipeline: library.Pipeline, request: Request, module, problem: Problem | None) -> Request:
    """Returns a request with the best measured knobs that the problem can have, or the request as it is."""
    if not request.tuned or problem is None:
        return request
    own = {knob for name in request.without for knob in pipeline.step(name).left_out}
    for knobs in measured_knobs.candidates(pipeline.path, problem):
        settings = {name: value for name, value in knobs.items() if name in pipeline.knobs and name not in own}
        attempt = dataclasses.replace(request, settings={**settings, **request.settings})
        with contextlib.suppress(StepladderError):
            scope = _scope(pipeline, choose_knobs(pipeline, attempt), problem, type_facts(module), request.without)
            steps = [pipeline.steps[index] for index in _active(pipeline, scope, attempt)]
            check_requirements(pipeline, steps, scope, problem)
            return attempt
    return request


def _active(pipeline: library.Pipeline, scope: Scope, request: Request) -> list[int]:
    """Returns the numbers of the steps to run: those asked for, not left out, and chosen where there are alternatives.

    Raises:
        StepladderError: a step that needs one that does not run, or that is asked for and not chosen.
    """
    first, last = _span(pipeline, request)
    chosen = []
    for number, step in enumerate(pipeline.steps):
        runs = step.condition is None or int(evaluate(step.condition.expression, scope)) == step.condition.region
        if not runs and step.name in (request.start, request.through):
            raise StepladderError(
                f"step '{step.name}' does not run with these knobs: it is for {step.condition.describe()}"
            )
        if runs and first <= number <= last and step.name not in request.without:
            chosen.append(number)
    for number in chosen:
        step = pipeline.steps[number]
        missing = [name for name in step.needs if name in request.without]
        if missing:
            both = [f"leave out both: --without {','.join([*request.without, step.name])}"]
            raise StepladderError(
                f"step '{step.name}' needs {' and '.join(missing)}, which --without leaves out",
                notes=both if step.optimization else [],
            )
    return chosen


def check_requirements(
    pipeline: library.Pipeline, steps: list[library.Step], scope: Scope, problem: Problem | None
) -> None:
    """Checks what the steps of a run require of knobs, payload and target.

    Without a problem, in a run that begins from a dump, what is about the payload cannot be checked and is not.

    Raises:
        StepladderError: the first requirement that fails, with the values in it and the options that would do.
    """
    for step in steps:
        for requirement in step.requires:
            _check_requirement(pipeline, step, requirement, scope, problem)


def bind(pipeline: library.Pipeline, steps: list[library.Step], knobs: dict[str, int | str], scope: Scope) -> None:
    """Writes the knobs' values into a pipeline's module: into the knob ops, and into attributes that follow knobs.

    Only the steps that run are bound: a run from a dump need not know what earlier steps follow.

    Raises:
        StepladderError: an expression that cannot be evaluated, with the op's place in the script.
    """
    for op in library.knob_ops(pipeline):
        value = knobs[op.attributes["name"].value]
        selected = (
            ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
            if isinstance(value, int)
            else ir.StringAttr.get(value)
        )
        op.attributes["selected"] = selected

    bodies = [pipeline.sequence, *library.sequences_of(pipeline, steps)]
    following = [op for body in bodies for op in walk(body) if "knobs" in op.attributes]
    for op in following:
        entries = ir.DictAttr(op.attributes["knobs"])
        for index in range(len(entries)):
            _follow(op, entries[index].name, entries[index].attr.value, scope)
        del op.attributes["knobs"]


def _follow(op, name: str, expression: str, scope: Scope) -> None:
    location = diagnostics.location_text(op.location)
    try:
        value = evaluate(expression, scope)
    except ExpressionError as error:
        raise StepladderError(f"{op.name}: {name} = {expression}: {error}", location=location) from None
    if name != "shape" and name not in op.attributes:
        raise StepladderError(f"{op.name} has no attribute '{name}' to follow '{expression}'", location=location)
    try:
        if name == "shape":
            _reshape_result(op, value)
        else:
            op.attributes[name] = _attribute_like(op.attributes[name], value)
    except (TypeError, ValueError, IndexError, RuntimeError):  # the last is what a bad cast in the bindings raises
        raise StepladderError(
            f"{op.name}: {name} = {expression}: the attribute cannot be {value}", location=location
        ) from None


def _attribute_like(old, value):
    """Returns an attribute of the kind of `old` with another value; raises TypeError where there is none."""
    match old:
        case ir.DenseI64ArrayAttr():
            return ir.DenseI64ArrayAttr.get(value)
        case ir.BoolAttr():
            return ir.BoolAttr.get(bool(value))
        case ir.IntegerAttr():
            return ir.IntegerAttr.get(old.type, value)
        case ir.StringAttr():
            return ir.StringAttr.get(str(value))
        case ir.TypeAttr():
            return ir.TypeAttr.get(ir.Type.parse(str(value)))
        case ir.ArrayAttr():
            return ir.ArrayAttr.get([ir.IntegerAttr.get(old[0].type, element) for element in value])
    raise TypeError(f"attributes like {old} do not follow knobs")


def _reshape_result(op, shape: list[int]) -> None:
    """Gives the one op in the region of a `transform.structured.replace` a memref of another shape."""
    body = op.regions[0].blocks[0]
    old = body.operations[0].operation
    type_ = ir.MemRefType(old.results[0].type)
    reshaped = ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space)
    with ir.InsertionPoint.at_block_begin(body):
        new = ir.Operation.create(
            old.name, results=[reshaped], operands=list(old.operands), attributes=attributes_of(old), loc=old.location
        )
    old.results[0].replace_all_uses_with(new.results[0])
    old.erase()


def _entry_for(pipeline: library.Pipeline, index: int):
    """Returns a copy of the pipeline's sequence in which only the include number `index` is left."""
    entry = pipeline.sequence.clone()
    pipeline.module.body.append(entry)
    entry.attributes["sym_name"] = ir.StringAttr.get(_ENTRY)
    for position, include in enumerate(library.include_ops(entry)):
        if position == index:
            continue
        for result in include.results:
            result.replace_all_uses_with(include.operands[0])
        include.erase()
    return entry


def _interpret(pipeline: library.Pipeline, index: int, module) -> diagnostics.Diagnostic | None:
    """Runs one step; returns what went wrong, or None."""
    with diagnostics.collect(module.context) as errors:
        entry = _entry_for(pipeline, index)
        try:
            interpreter.apply_named_sequence(module.operation, entry, pipeline.module.operation)
            module.operation.verify()
        except (ValueError, ir.MLIRError) as error:
            if errors:
                return errors[0]
            carried = diagnostics.from_error(error) if isinstance(error, ir.MLIRError) else []
            return (
                carried[0]
                if carried
                else diagnostics.from_text(str(error)) or diagnostics.Diagnostic("", diagnostics.shorten(str(error)))
            )
        finally:
            entry.erase()
    return errors[0] if errors else None


def _reproducer(step: library.Step, before: str, request: Request, folder: Path | None) -> str:
    one_step = Request(request.pipeline, request.settings, step.name, step.name, request.without)
    folder = folder or Path(tempfile.mkdtemp(prefix="stepladder-"))
    path = folder / f"reproduce-{step.name}.mlir"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {one_step.command_line(str(path))}\n{before}")
    except OSError as error:
        return f"the reproducer could not be written: {error}"
    return f"to reproduce: {one_step.command_line(str(path))}"


def _span(pipeline: library.Pipeline, request: Request) -> tuple[int, int]:
    order = [step.name for step in pipeline.steps]
    first = order.index(pipeline.step(request.start).name) if request.start else 0
    last = order.index(pipeline.step(request.through).name) if request.through else len(order) - 1
    if first > last:
        raise StepladderError(
            f"--from {request.start} comes after --through {request.through} in pipeline '{pipeline.name}'",
            notes=[f"its steps are: {', '.join(order)}"],
        )
    return first, last


def run(
    text: str,
    name: str,
    request: Request,
    *,
    reproducer_dir: Path | None = None,
    begun: Callable[[str], None] | None = None,
    progress: Callable[[StepResult], None] | None = None,
) -> Run:
    """Runs a pipeline over a payload, in the current MLIR context (`mlir_context`).

    Args:
        text: the payload.
        name: the file it came from, for messages.
        request: what to run.
        reproducer_dir: where a failing step leaves its reproducer; a fresh temporary folder unless told.
        begun: called with the payload's text as MLIR prints it, when all that can be checked beforehand is.
        progress: called after each step that ran.

    Raises:
        StepladderError: bad input of any kind, or a step that fails (status FAILED, with a reproducer).
    """
    pipeline = library.load(request.pipeline)
    first, _ = _span(pipeline, request)
    knobs = choose_knobs(pipeline, request)  # wrong options are refused before the payload is looked at
    module = parse_payload(text, name)
    problem = _problem(module, name) if first == 0 else None
    request = _with_tuned_knobs(pipeline, request, module, problem)
    knobs = choose_knobs(pipeline, request)
    scope = _scope(pipeline, knobs, problem, type_facts(module), request.without)
    chosen = _active(pipeline, scope, request)
    steps = [pipeline.steps[index] for index in chosen]
    check_requirements(pipeline, steps, scope, problem)
    bind(pipeline, steps, knobs, scope)

    results: list[StepResult] = []
    before = text_of(module)
    input_text = before
    if begun:
        begun(input_text)
    for index in chosen:
        step = pipeline.steps[index]
        began = time.perf_counter()
        failure = _interpret(pipeline, index, module)
        seconds = time.perf_counter() - began
        if failure is not None:
            raise StepladderError(
                f"step '{step.name}': {failure.message}",
                location=failure.location or str(step.path),
                status=FAILED,
                notes=[
                    f"the step stands in {step.path}",
                    *failure.notes,
                    _reproducer(step, before, request, reproducer_dir),
                ],
            )
        ssa_names.hand_on_to_kernels(module)
        before = text_of(module)
        results.append(StepResult(step.name, seconds, count_operations(module), before))
        if progress:
            progress(results[-1])
    return Run(module, pipeline, problem, knobs, scope, results, input_text)


def _problem(module, name: str) -> Problem:
    """Returns the payload's problem; what is wrong with a payload as a whole is said of its file."""
    try:
        return find_problem(module)
    except StepladderError as error:
        error.location = error.location or name
        raise


def count_operations(module) -> int:
    """Returns the number of ops below `module`."""
    return len(walk(module)) - 1


def run_pass_pipeline(text: str, name: str, pass_pipeline: str) -> str:
    """Runs mlir-opt's `--pass-pipeline` text over a module and returns the IR.

    Raises:
        StepladderError: text that does not parse, or a pass that fails.
    """
    module = parse_payload(text, name)
    try:
        passes = passmanager.PassManager.parse(pass_pipeline)
    except ValueError as error:
        raise StepladderError(
            f"--pass-pipeline: {diagnostics.shorten(str(error))}",
            notes=["for example: --pass-pipeline='builtin.module(canonicalize,cse)'"],
        ) from None
    try:
        passes.run(module.operation)
    except ir.MLIRError as error:
        found = diagnostics.from_error(error)
        first = found[0] if found else diagnostics.Diagnostic("", "a pass failed")
        raise StepladderError(
            first.message, location=first.location or name, notes=first.notes, status=FAILED
        ) from None
    return text_of(module)
