"""Running a pipeline: its steps one by one over a payload, with the IR kept after each.

The pipeline's text stays as it is in the repository. For a run, the knobs' values are written into the parsed module
(`bind`), and every `transform.include` is then interpreted on its own, in order: the same ops that a stock mlir-opt
interprets in one go, cut where a user wants to look, stop, or leave something out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stepladder import extension
from stepladder.extension import plugins
from stepladder.extension.lib import faults
from stepladder.mlir import diagnostics, ssa_names
from stepladder.mlir.bindings import interpreter, ir, passmanager
from stepladder.mlir.nesting import check_nesting
from stepladder.mlir.traverse import attributes_of, walk
from stepladder.payload.facts import type_facts
from stepladder.payload.problem import Problem, find_problem
from stepladder.pipeline import knob_choice, library, measured_knobs, reproducers
from stepladder.pipeline.dumps import dump_name
from stepladder.pipeline.expressions import ExpressionError, Scope, evaluate
from stepladder.pipeline.requirements import accepted_values, check_requirements
from stepladder.runtime import targets
from stepladder.runtime.errors import FAILED, StepladderError, reason, suggest

_ENTRY = "__stepladder_step"

# What a knob that switches something takes on a command line.
_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True)
class Request:
    """What to run of a pipeline, and with which knobs.

    Args:
        pipeline: name or file.
        settings: knob -> value as text or number; knobs not named keep their defaults.
        through: stop after this step.
        start: begin with this step; the payload is the IR that the step before it left.
        without: optimizations to leave out.
        tuned: choose the knobs that are not set for the payload's problem (`knob_choice`), instead of the script's.
        database: a tuning database to choose from first; None for none.
        gpu: key of the GPU in the cost model to choose for; None for the one that it has for the target.
    """

    pipeline: str
    settings: Mapping[str, int | str] = field(default_factory=dict)
    through: str | None = None
    start: str | None = None
    without: tuple[str, ...] = ()
    tuned: bool = False
    database: Path | None = None
    gpu: str | None = None

    def command_line(self, payload: str) -> str:
        """Returns the `stepladder-opt` command that makes this request of a payload file, with the plug-ins loaded."""
        words = ["stepladder-opt", payload, "--pipeline", self.pipeline]
        for name in ("start", "through"):
            if getattr(self, name):
                words += ["--from" if name == "start" else "--through", getattr(self, name)]
        if self.without:
            words += ["--without", ",".join(self.without)]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={library.value_text(value)}"]
        for path in plugins.files():
            words += ["--plugin", path]
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
    """A finished run: the payload's problem (None where it began from a dump), the knobs, and every step.

    `sources` maps each knob to where its value comes from; `knob_source` says it for those that were chosen;
    `measured` tells which measured knobs apply to the pipeline, where the request asked for them.
    """

    module: object
    pipeline: library.Pipeline
    problem: Problem | None
    knobs: dict[str, int | str]
    scope: Scope
    steps: list[StepResult]
    input_text: str
    sources: dict[str, str]
    knob_source: knob_choice.Source = knob_choice.FROM_SCRIPT
    measured: measured_knobs.Measured | None = None

    def dumps(self) -> dict[str, str]:
        """Returns file name -> IR: `00-input.mlir`, then `NN-step.mlir` for every step that ran."""
        texts = [("input", self.input_text), *((step.name, step.text) for step in self.steps)]
        return {dump_name(number, name): text for number, (name, text) in enumerate(texts)}


@contextlib.contextmanager
def mlir_context():
    """A fresh MLIR context with the `tc` extension and the plug-ins loaded, current while the block runs."""
    plugins.load_installed()
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
        StepladderError: not MLIR; names the file, the line and what the parser said. Text that nests too deeply.
    """
    diagnostics.name_payload(name)
    check_nesting(text, name)
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError as error:
        found = diagnostics.from_error(error)
        first = found[0] if found else diagnostics.Diagnostic("", "not MLIR")
        raise StepladderError(
            first.message,
            location=first.location or name,
            traceback=faults.take(),
            notes=[*first.notes, *plugins.unknown_op_notes(first, text)],
        ) from None
    ssa_names.restore(module, text)
    return module


def _knob_value(knob: library.Knob, given: int | str, pipeline: library.Pipeline) -> int | str:
    value: int | str = given
    if knob.is_boolean:
        value = _BOOLEANS.get(str(given).lower(), given)
    elif isinstance(knob.default, int) and isinstance(given, str):
        try:
            value = int(given, 0)
        except ValueError:
            raise StepladderError(
                f"knob '{knob.name}' takes a number, not '{given}'", notes=[f"its options are: {knob.options_text()}"]
            ) from None
    if not knob.accepts(value):
        raise StepladderError(
            f"knob '{knob.name}' of pipeline '{pipeline.name}' cannot be {library.value_text(value)}",
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


def asked(pipeline: library.Pipeline, request: Request, module, problem: Problem) -> knob_choice.Asked:
    """Returns what knobs are chosen for, from a request and the payload that it is made of."""
    knobs = choose_knobs(pipeline, request)
    own = {knob for name in request.without for knob in pipeline.step(name).left_out}
    own |= {"target", *request.settings}
    fixed = {name: value for name, value in knobs.items() if name in own}
    scope = _scope(pipeline, knobs, problem, type_facts(module), request.without)
    facts = {name: scope[name] for name in scope if name not in pipeline.knobs and name not in pipeline.derived}
    target = str(knobs.get("target", ""))
    measured = measured_knobs.find_measured(pipeline)
    return knob_choice.Asked(pipeline, request.without, fixed, problem, facts, target, measured, request.gpu)


def read_asked(pipeline: library.Pipeline, request: Request, text: str, name: str) -> knob_choice.Asked:
    """Returns what knobs are chosen for, of a payload that is not run.

    Args:
        pipeline: loaded in the current MLIR context.
        request: pipeline and the knobs whose values are given.
        text: the payload.
        name: the file it came from, for messages.

    Raises:
        StepladderError: bad input of any kind.
    """
    choose_knobs(pipeline, request)
    if "target" not in pipeline.knobs:
        raise StepladderError(
            f"pipeline '{pipeline.name}' has no knob 'target', the GPU that its kernels are for",
            location=str(pipeline.path),
        )
    module = parse_payload(text, name)
    return asked(pipeline, request, module, _problem(module, name))


def _with_chosen_knobs(
    pipeline: library.Pipeline, request: Request, module, problem: Problem | None
) -> tuple[Request, knob_choice.Source, measured_knobs.Measured | None]:
    """Returns a request with the best knobs that the problem can have, where they come from, and which measured knobs
    apply to the pipeline (None where none are asked for)."""
    if not request.tuned or problem is None or "target" not in pipeline.knobs:
        return request, knob_choice.FROM_SCRIPT, None
    wanted = asked(pipeline, request, module, problem)
    for choice in knob_choice.choices(wanted, request.database):
        settings = {
            name: value for name, value in choice.knobs.items() if name in pipeline.knobs and name not in wanted.fixed
        }
        attempt = dataclasses.replace(request, settings={**settings, **request.settings})
        with contextlib.suppress(StepladderError):
            scope = _scope(pipeline, choose_knobs(pipeline, attempt), problem, type_facts(module), request.without)
            steps = [pipeline.steps[index] for index in _active(pipeline, scope, attempt)]
            check_requirements(pipeline, steps, scope, problem)
            return attempt, choice.source, wanted.measured
    return request, knob_choice.FROM_SCRIPT, wanted.measured


def _sources(pipeline: library.Pipeline, asked: Request, taken: Request, chosen: knob_choice.Source) -> dict[str, str]:
    """Returns where each knob's value comes from: `asked` is the user's request, `taken` has the chosen knobs too."""
    implied = {knob: f"--without {name}" for name in asked.without for knob in pipeline.step(name).left_out}
    return {
        name: "--set"
        if name in asked.settings
        else implied.get(name) or (chosen.text if name in taken.settings else knob_choice.FROM_SCRIPT.text)
        for name in pipeline.knobs
    }


def _chosen_region(pipeline: library.Pipeline, condition: library.Condition, scope: Scope) -> int:
    """Returns the number of the region that a `transform.tune.alternatives` runs.

    Raises:
        StepladderError: its expression cannot be evaluated, or gives no number of a region.
    """
    try:
        value = evaluate(condition.expression, scope)
    except ExpressionError as error:
        raise StepladderError(
            f"pipeline '{pipeline.name}' chooses among alternatives by {condition.expression}: {error}",
            location=condition.location,
        ) from None
    if not isinstance(value, int) or not 0 <= value < condition.regions:
        raise StepladderError(
            f"pipeline '{pipeline.name}' chooses among alternatives by {condition.expression}, which "
            f"is {value}, and must be from 0 to {condition.regions - 1}",
            location=condition.location,
        )
    return int(value)


def _active(pipeline: library.Pipeline, scope: Scope, request: Request) -> list[int]:
    """Returns the numbers of the steps to run: those asked for, not left out, and chosen where there are alternatives.

    Raises:
        StepladderError: a step that needs one that does not run, or that is asked for and not chosen.
    """
    first, last = _span(pipeline, request)
    chosen = []
    for number, step in enumerate(pipeline.steps):
        runs = step.condition is None or _chosen_region(pipeline, step.condition, scope) == step.condition.region
        if not runs and step.name in (request.start, request.through):
            raise StepladderError(
                f"step '{step.name}' does not run with these knobs",
                notes=[
                    *accepted_values(pipeline, scope, step.condition.describe()),
                    f"it runs where {step.condition.describe()}",
                ],
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


def bind(pipeline: library.Pipeline, steps: list[library.Step], knobs: dict[str, int | str], scope: Scope) -> None:
    """Writes the knobs' values into a pipeline's module: into the knob ops, and into attributes that follow knobs.

    Only the steps that run are bound: a run from a dump need not know what earlier steps follow.

    Raises:
        StepladderError: an expression that cannot be evaluated, with the op's place in the script.
    """
    for op in library.knob_ops(pipeline):
        value = knobs[op.attributes["name"].value]
        op.attributes["selected"] = _knob_attribute(value)

    bodies = [pipeline.sequence, *library.sequences_of(pipeline, steps)]
    following = [op for body in bodies for op in walk(body) if "knobs" in op.attributes]
    for op in following:
        entries = ir.DictAttr(op.attributes["knobs"])
        for index in range(len(entries)):
            _follow(op, entries[index].name, entries[index].attr.value, scope)
        del op.attributes["knobs"]


def _knob_attribute(value: int | str):
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.StringAttr.get(value)


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
            f"{op.name}: {name} = {expression}: the attribute cannot be {library.value_text(value)}", location=location
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
    faults.take()  # of what failed before
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


def _reproducer(step: library.Step, before: str, request: Request, folder: Path | None) -> list[str]:
    """Leaves a reproducer of a failing step; returns notes that say how to use it."""
    one_step = Request(request.pipeline, request.settings, step.name, step.name, request.without)
    try:
        path = reproducers.make_place(step.name, folder)
        path.write_text(f"// {one_step.command_line(str(path))}\n{before}")
    except OSError as error:
        return [f"the reproducer could not be written: {reason(error)}"]
    used = f"to reproduce: {one_step.command_line(str(path))}"
    return [used] if folder else [used, reproducers.describe_kept()]


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
    asked_for = request
    request, source, measured = _with_chosen_knobs(pipeline, request, module, problem)
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
                traceback=faults.take(),
                notes=[
                    f"the step stands in {step.path}",
                    *failure.notes,
                    *_reproducer(step, before, request, reproducer_dir),
                ],
            )
        ssa_names.hand_on_to_kernels(module)
        before = text_of(module)
        results.append(StepResult(step.name, seconds, count_operations(module), before))
        if progress:
            progress(results[-1])
    sources = _sources(pipeline, asked_for, request, source)
    return Run(module, pipeline, problem, knobs, scope, results, input_text, sources, source, measured)


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
    check_nesting(pass_pipeline, "--pass-pipeline")
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
