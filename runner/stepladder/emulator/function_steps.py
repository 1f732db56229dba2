"""Runs the IR after each step of a pipeline for whole functions, and compares it with the payload's results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from stepladder.emulator.core import types
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.fibers import Unsupported
from stepladder.emulator.step_report import StepReport
from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import walk
from stepladder.payload import reference_export
from stepladder.payload.arguments import donated
from stepladder.payload.selection import select
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.dumps import dump_name
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import Program
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.function_check import compare_results
from stepladder.verify.function_tolerance import error_of_sums
from stepladder.verify.integer_arguments import IntegerArguments

# Error that f32 sums in any order add, as a part of the root mean square of the values.
_SUMS = 2.0**-18


def step_inputs(program: Program, seed: int) -> dict[int, np.ndarray]:
    """Returns a random array for each argument.

    Floating-point values are normally distributed, those of matrices divided by the root of the rows' length; integers
    are as `IntegerArguments` draws them.

    Args:
        program: whose arguments are generated.
        seed: of the generator of random numbers.
    """
    integers = IntegerArguments(program)
    inputs = {}
    for number, item in enumerate(program.arguments):
        generator = np.random.default_rng([seed, number])
        element = element_type(item.type)
        if element.is_integer:
            inputs[number] = integers.draw(number, element, item.shape, generator)
        else:
            scale = item.shape[-1] ** -0.5 if len(item.shape) > 1 else 1.0
            numbers = generator.standard_normal(item.shape, np.float32) * np.float32(scale)
            inputs[number] = numbers.astype(element.dtype)
    return inputs


def run_ir(
    emulation: Emulation, program: Program, inputs: dict[int, np.ndarray], aliases: Mapping[int, int]
) -> tuple[list[np.ndarray], list]:
    """Runs a function on tensors, or on buffers of which the last are its results.

    Args:
        emulation: of a module with the function.
        program: what the function computes.
        inputs: arrays by argument number.
        aliases: the results that take the memory of arguments, by the indices of those.

    Returns:
        The results, and what the sanitizer found.
    """
    arrays = [inputs[number] for number in range(len(program.arguments))]
    # A step may write only a part of a buffer that holds the argument before.
    before = {result: inputs[number] for number, result in aliases.items()}
    for result, type_ in enumerate(emulation.function.argument_types[len(arrays) :]):
        assert isinstance(type_, types.Shaped)  # the buffer of a result
        dtype, shape = type_.element.dtype, type_.static_shape
        poison = np.full((*shape, dtype.itemsize), 0xFF, np.uint8).view(dtype)[..., 0]
        arrays.append(before.get(result, poison))
    outcome = emulation.run(arrays, count=False)
    results: Sequence = outcome.results or outcome.arguments[len(program.arguments) :]
    return [np.asarray(array) for array in results], outcome.findings


class FunctionChecks:
    """Runs the IR of a function after any step on the same random numbers, in the current context.

    Args:
        module: the payload, with the function alone (`select`).
    """

    def __init__(self, module: ir.Module) -> None:
        self._program = reference_export.export(module, {})
        self._inputs = step_inputs(self._program, 0)
        functions = walk(module, "func.func")
        self._aliases = donated(next(function for function in functions if len(function.regions[0].blocks)))

    def check(self, step: str, text: str, file: str) -> StepReport:
        """Returns the report of a step.

        Args:
            step: its name.
            text: the IR after it.
            file: what messages call the IR.
        """
        program = self._program
        try:
            emulation = Emulation(parse_payload(text, file), name=file)
            results, findings = run_ir(emulation, program, self._inputs, self._aliases)
        except (StepladderError, Unsupported) as error:
            return StepReport(step, None, unknown=error.message)
        reports = compare_results(
            program, self._inputs, results, NumPyArrays(), _SUMS + error_of_sums(program, in_f32=False)
        )
        # An assertion that does not hold ends the program without results.
        worst = next((report for report in reports if not report.passed), reports[0] if reports else None)
        return StepReport(step, worst is not None and worst.passed and not findings, worst, findings)


def check_function_steps(
    text: str, name: str, request: Request, on_report: Callable[[StepReport], None], finished: Run | None = None
) -> None:
    """Runs a pipeline, and the IR after each of its steps, on random numbers; in the current context.

    Args:
        text: the payload; `name`: its file.
        request: the pipeline.
        on_report: called with the report of the input, then of each step; one that changed nothing has that of the IR
            before it.
        finished: as for `follow_steps`.
    """
    module = select(parse_payload(text, name), request.function).module
    checks = FunctionChecks(module)
    before: tuple[str, StepReport] | None = None
    number = 0

    def check(step: str, text: Callable[[], str]) -> None:
        nonlocal before, number
        dumped_text = text()
        if before is not None and before[0] == dumped_text:
            report = dataclasses.replace(before[1], step=step, seconds=0.0, is_unchanged=True)
        else:
            report = checks.check(step, dumped_text, dump_name(number, step))
            before = dumped_text, report
        number += 1
        on_report(report)

    follow_steps(text, name, request, lambda: text_of(module), check, finished)


def follow_steps(
    text: str,
    name: str,
    request: Request,
    payload: Callable[[], str],
    check: Callable[[str, Callable[[], str]], None],
    finished: Run | None = None,
) -> None:
    """Runs a pipeline, in the current context, and checks the IR after each step before the next one runs.

    Args:
        text: the payload; `name`: its file.
        request: the pipeline and its knobs; the whole pipeline runs.
        payload: returns the IR before the first step.
        check: called with `input`, then with the name of each step that ran, and with what returns its IR.
        finished: of the payload by the request, in this context, whose IR is checked; None to run the pipeline.
    """
    if finished is None:
        run_pipeline(
            text,
            name,
            request,
            begun=lambda _: check("input", payload),
            progress=lambda step: check(step.name, lambda: step.text),
        )
        return
    check("input", payload)
    for step in finished.steps:
        check(step.name, lambda: step.text)
