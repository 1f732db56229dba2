"""A matmul on the emulator: the executor of the checks, and the IR of a bundle that can be executed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from stepladder.emulator import MAX_STEPS
from stepladder.emulator.core import types
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.fibers import Unsupported
from stepladder.emulator.function_steps import check_function_steps, follow_steps
from stepladder.emulator.hardware.counters import Counters
from stepladder.emulator.memory.findings import Finding
from stepladder.emulator.step_report import StepReport
from stepladder.mlir.text import text_of
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul, matmul_of
from stepladder.payload.selection import select
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library, tile_programs
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.dumps import dump_name
from stepladder.pipeline.knobs import choose_knobs, with_products
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.bundle import Bundle
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from stepladder.runtime.problem import Problem, epilogue_role, operand_of
from stepladder.runtime.reference import Program
from stepladder.verify.check import check_exact


def _zeros(type_: types.Type) -> np.ndarray | int:
    """Returns an argument that nothing uses."""
    return np.zeros(type_.static_shape, type_.element.dtype) if isinstance(type_, types.Shaped) else 0


def _shape(type_: types.Type) -> tuple[int, ...]:
    return type_.static_shape if isinstance(type_, types.Shaped) else ()


def _poison(type_: types.Shaped) -> np.ndarray:
    """Returns the initial contents of a buffer that is only written: a value that no right result has."""
    dtype = type_.element.dtype
    is_integer = np.issubdtype(dtype, np.integer)
    return np.full(type_.static_shape, np.iinfo(dtype).min if is_integer else np.nan, dtype)


class EmulatedExecutor:
    """Runs a matmul on the emulator (`check.Executor`).

    Args:
        emulation: of a module with one matmul, after any step.
        roles: which operand an argument is, as index -> "a", "b", "c", "ab", "d0" and so on; others are not used, and
            hold zeros.
        sanitize: look for races, deadlocks and stray accesses.
        count: count memory traffic and instructions.
        progress: called with the number of blocks that have ended, and of all.
        max_steps: of a launch.

    Attributes:
        findings: of all launches, each once.
        counters: of the last launch; None without `count`.
        seconds, steps: of all launches.
    """

    def __init__(
        self,
        emulation: Emulation,
        roles: Mapping[int, str],
        *,
        sanitize: bool = True,
        count: bool = True,
        progress: Callable[[int, int], None] | None = None,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.emulation = emulation
        self.roles = dict(roles)
        self.sanitize = sanitize
        self.count = count
        self.progress = progress
        self.max_steps = max_steps
        self.findings: list[Finding] = []
        self.counters: Counters | None = None
        self.seconds = 0.0
        self.steps = 0
        self._operands: dict[str, np.ndarray] = {}
        self._results: dict[str, np.ndarray] = {}

    def load(self, a: np.ndarray, b: np.ndarray, *further: np.ndarray) -> None:
        """Sets A, B and the operands of elementwise ops for the launches that follow.

        Args:
            a, b: of the shapes and types of the matmul.
            further: the operands of elementwise ops, in order.
        """
        self._operands = {"a": a, "b": b}
        self._operands |= {epilogue_role(number): array for number, array in enumerate(further)}

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Runs the function.

        Args:
            c: what C holds before.

        Returns:
            What C holds afterwards.
        """
        operands = {**self._operands, "c": c}
        for number, type_ in enumerate(self.emulation.function.argument_types):
            role = self.roles.get(number, "")
            if role.startswith("r") and isinstance(type_, types.Shaped):
                operands[role] = _poison(type_)
        arguments = [
            operands[operand_of(self.roles[number])].reshape(_shape(type_)) if number in self.roles else _zeros(type_)
            for number, type_ in enumerate(self.emulation.function.argument_types)
        ]
        outcome = self.emulation.run(
            arguments, sanitize=self.sanitize, count=self.count, progress=self.progress, max_steps=self.max_steps
        )
        known_findings = {
            (finding.kind, finding.op, finding.location, finding.other_location) for finding in self.findings
        }
        self.findings += [
            finding
            for finding in outcome.findings
            if (finding.kind, finding.op, finding.location, finding.other_location) not in known_findings
        ]
        self.counters = outcome.counters
        self.seconds += outcome.seconds
        self.steps += outcome.steps
        argument_count = len(self.emulation.function.argument_types)
        self._results = {
            role: array
            for number, role in self.roles.items()
            if number < argument_count
            if (array := outcome.arguments[number]) is not None
        }
        if len(outcome.results) == 1:  # a tensor: the product is what the function returns
            return outcome.results[0].reshape(c.shape)
        if outcome.results:
            self._results |= {self.roles[argument_count + place]: array for place, array in enumerate(outcome.results)}
            return self._results["c"].reshape(c.shape)
        output = outcome.arguments[next(number for number, role in self.roles.items() if role == "c")]
        assert output is not None, "C is no memory"
        return output.reshape(c.shape)

    def results(self) -> list[np.ndarray]:
        """Returns the results other than C after the last launch, in the order of their roles."""
        return [self._results[role] for role in sorted(self._results) if role.startswith("r")]


# A fresh payload (`payload_of`) has its arguments in this order.
ROLES = {0: "a", 1: "b", 2: "c"}


def check_step(
    step: str,
    text: str,
    name: str,
    problem: Problem,
    reference: Program,
    seed: int = 0,
    *,
    count: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> StepReport:
    """Runs the IR after a step on integers for which every sum is exact, with the sanitizer, in the current context.

    Args:
        step: for the report.
        text: the IR.
        name: of its file, for messages.
        problem: types, shapes and layouts of the operands.
        reference: what it must compute, and which operand an argument of the function is.
        seed: of the inputs.
        count: count memory traffic and instructions.
        progress: called with the number of blocks that have ended, and of all.

    Returns:
        The report of the step.
    """
    try:
        emulation = Emulation(parse_payload(text, name), name=name)
    except StepladderError as error:
        return StepReport(step, None, unknown=error.message)
    executor = EmulatedExecutor(emulation, reference.roles, count=count, progress=progress)
    try:
        report = check_exact(problem, reference, executor, seed)
    except Unsupported as error:
        return StepReport(step, None, unknown=error.message)
    return StepReport(
        step,
        report.passed and not executor.findings,
        report,
        executor.findings,
        executor.counters,
        seconds=executor.seconds,
    )


def _expected(text: str, name: str, request: Request) -> tuple[Problem, Program, str]:
    """Returns a payload's problem, what it computes, and the function alone."""
    program = tile_programs.read_text(text, name, request)
    if program is not None:
        module = program.selection.module
        payload, matmul = program.understood()
    else:
        selection = select(parse_payload(text, name), request.function)
        payload = module = selection.module
        matmul = matmul_of(selection)
    problem = with_products(matmul.problem, choose_knobs(library.load(request.pipeline), request))
    return problem, reference_export.export(payload, matmul.roles), text_of(module)


def check_steps(
    text: str,
    name: str,
    request: Request,
    on_report: Callable[[StepReport], None],
    *,
    is_chosen_step: Callable[[int], bool] = lambda _: True,
    finished: Run | None = None,
) -> None:
    """Runs a pipeline, and checks the IR after each step against the payload's results; in the current context.

    Args:
        text: the payload; `name`: its file.
        request: the pipeline and its knobs; the whole pipeline runs.
        on_report: called with the report of the input, then of each step; one that changed nothing has that of the IR
            before it, with 0 seconds.
        is_chosen_step: whether the IR of a step is run, by its index in the dumps; the input is 0 (default: all).
        finished: of the payload by the request, in this context, whose IR is checked; None to run the pipeline.
    """
    if library.load(request.pipeline).whole_function:
        check_function_steps(text, name, request, on_report, finished)
        return
    problem, reference, alone = _expected(text, name, request)
    before: tuple[str, StepReport] | None = None
    number = 0

    def check(step: str, text: Callable[[], str]) -> None:
        nonlocal before, number
        name_of_dump, is_chosen = dump_name(number, step), is_chosen_step(number)
        number += 1
        if not is_chosen:
            return
        dumped_text = text()
        if before is not None and before[0] == dumped_text:
            report = dataclasses.replace(before[1], step=step, seconds=0.0, is_unchanged=True)
        else:
            report = check_step(step, dumped_text, name_of_dump, problem, reference)
            before = dumped_text, report
        on_report(report)

    follow_steps(text, name, request, lambda: alone, check, finished)


# Matmuls of a small batch.
_MATMULS = 3


def small_problem(problem: Problem, knobs: Mapping[str, int | str]) -> Problem:
    """Returns a problem of the same kind that takes a few tiles each way, and a few steps of k for all that divide it:
    it keeps the remainders at the edges, and the multiples that clusters and splits of a reduction need. A problem with
    elementwise ops, or with parts of buffers, stays as it is: its payload cannot be written from it.

    Args:
        problem: the problem of a payload.
        knobs: of the pipeline that is to be run; without positive `block_m`, `block_n` and `block_k` nothing
            changes. With `swap_operands`, tiles of C have block_n rows.
    """
    if problem.has_epilogue or problem.is_prepared or problem.has_windows:
        return problem

    def small(size: int, tile: int, tiles: int) -> int:
        remainder = size % tile
        return min(size, tile * tiles + remainder if remainder == 0 else tile * (tiles - 1) + remainder)

    def number(name: str, default: int = 0) -> int:
        value = knobs.get(name, default)  # a bundle of another version may have any value
        return value if isinstance(value, int) and value > 0 else default

    rows_and_columns = "nm" if knobs.get("swap_operands") else "mn"
    tiles = [tile for axis in f"{rows_and_columns}k" if (tile := number(f"block_{axis}"))]
    if problem.b_is_a or len(tiles) < 3:
        return problem
    rows, columns = (number(f"cluster_{axis}", 1) for axis in rows_and_columns)
    parts = number("split_k", 1)
    deep = number("stages", 2) + 2
    m, n, k = (
        small(size, tile, count)
        for size, tile, count in zip(
            (problem.m, problem.n, problem.k), tiles, (max(2, rows), max(2, columns), -(-deep // parts) * parts)
        )
    )
    batch = None if problem.batch is None else min(problem.batch, _MATMULS)
    return dataclasses.replace(problem, m=m, n=n, k=k, batch=batch)


def check_small(text: str, name: str, request: Request) -> tuple[Problem, StepReport]:
    """Runs a pipeline over a small problem of a payload's kind, and the last of its IR that can be run, with counters.

    Args:
        text: the payload; `name`: its file.
        request: the pipeline, its knobs and the steps to leave out.

    Returns:
        The small problem, and the report of the last step that is not below the emulator.

    Raises:
        StepladderError: the payload is refused, a step fails, or the emulator can run the IR after none of the steps.
    """
    full_problem = matmul_of(select(parse_payload(text, name), request.function)).problem
    small = small_problem(full_problem, choose_knobs(library.load(request.pipeline), request))
    request = dataclasses.replace(request, tuned=False)
    if small != full_problem:
        text, request = payload_of(small), dataclasses.replace(request, function=None)
    problem, reference, _ = _expected(text, name, request)
    run = run_pipeline(text, name, request)
    for step in reversed(run.steps):
        report = check_step(step.name, step.text, f"{step.name}.mlir", problem, reference, count=True)
        if report.passed is not None:
            return problem, report
    raise StepladderError(f"the emulator supports none of the steps: {report.unknown}")


def payload_of(problem: Problem) -> str:
    """Returns a payload with a problem's sizes, types and layouts.

    Args:
        problem: without elementwise ops.
    """
    return matmul_text(
        problem.m,
        problem.n,
        problem.k,
        a_type=problem.a_type,
        b_type=problem.b_type,
        acc_type=problem.acc_type,
        c_type=problem.c_type,
        accumulate=problem.accumulate,
        a_layout=problem.a_layout,
        b_layout=problem.b_layout,
        batch=problem.batch,
        broadcast="a" * problem.a_broadcast + "b" * problem.b_broadcast,
    )


def lowest(bundle: Bundle) -> tuple[str, Emulation, dict[int, str]]:
    """Returns the last IR of a bundle that can be run: its file's name, and the roles of its arguments.

    Args:
        bundle: with its dumps.

    Raises:
        StepladderError: a bundle without IR, or none of it can be run; status NOT_EXECUTED.
    """
    files = sorted((bundle.path / "ir").glob("*.mlir"))
    reason = "the bundle holds no IR"
    for file in reversed(files):
        try:
            emulation = Emulation(parse_payload(file.read_text(), str(file)), name=str(file))
        except StepladderError as error:
            reason = error.message
            continue
        if bundle.reference is not None:
            return file.name, emulation, bundle.reference.roles
        first = find_matmul(parse_payload(files[0].read_text(), str(files[0])))
        return file.name, emulation, first.roles
    raise StepladderError(f"the emulator has nothing to run: {reason}; no kernel was launched", status=NOT_EXECUTED)
