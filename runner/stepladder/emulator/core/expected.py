"""Compares the outputs of a program with expected arrays, or with a reference function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.emulator.core.launched import UNWRITTEN, BoundKernel
from stepladder.emulator.memory.findings import Finding
from stepladder.runtime.errors import StepladderError

WRONG = "wrong-result"


@dataclass(frozen=True)
class Output:
    """An output array of a program.

    Attributes:
        name: `argument2` or `result0`, as `--output` names files.
        array: its elements.
    """

    name: str
    array: np.ndarray


def written_arguments(inputs: Sequence[np.ndarray], outcome: Outcome) -> list[int]:
    """Returns the indices of the arguments that hold other bits after a run than before it.

    Args:
        inputs: arrays by argument number.
        outcome: of the run on them.
    """
    return [
        number
        for number, (before, after) in enumerate(zip(inputs, outcome.arguments))
        if after is not None and before.tobytes() != after.tobytes()
    ]


def outputs_of(inputs: Sequence[np.ndarray], outcome: Outcome) -> list[Output]:
    """Returns the results of a run, followed by the arguments that it has written.

    Args:
        inputs: what each argument held before the run.
        outcome: of the run.
    """
    results = [Output(f"result{number}", np.asarray(array)) for number, array in enumerate(outcome.results)]
    return results + [
        Output(f"argument{number}", np.asarray(outcome.arguments[number]))
        for number in written_arguments(inputs, outcome)
    ]


def reference_outputs(
    emulation: Emulation | BoundKernel, reference: Emulation, inputs: Sequence[np.ndarray]
) -> list[Output]:
    """Runs a reference function on the same inputs.

    Args:
        emulation: the function or the kernel that is checked.
        reference: the reference, whose arguments have the same shapes and element types; each may be a tensor where
            the checked function's is a memref.
        inputs: of the run that is checked; they are not changed.

    Returns:
        The outputs of the reference: its results, and the arguments that it wrote.

    Raises:
        StepladderError: other arguments than those of the checked function, or a reference without any output or with
            findings of the sanitizer.
    """
    try:
        arrays = reference.check_inputs(inputs)
    except StepladderError as error:
        raise StepladderError(
            f"the reference must take the arguments of @{emulation.function.name}: {error.message}",
            location=error.location,
        ) from None
    outcome = reference.run(arrays, count=False)
    if outcome.findings:
        first = outcome.findings[0]
        raise StepladderError(
            f"the reference @{reference.function.name} is invalid: {first.kind}: {first.op}: {first.message}",
            location=first.location or reference.function.location,
            notes=first.notes,
        )
    outputs = outputs_of(arrays, outcome)
    if not outputs:
        raise StepladderError(
            f"the reference @{reference.function.name} returns nothing and writes none of its arguments",
            location=reference.function.location,
        )
    return outputs


def compare_with_reference(
    outcome: Outcome, inputs: Sequence[np.ndarray], expected: Sequence[Output], tolerance: float | None = None
) -> list[Finding]:
    """Compares a run's outputs with those of the reference.

    An argument that the reference writes is compared with the same argument. The reference's results are compared with
    the results, in order, or with the written arguments where the checked function returns nothing.

    Args:
        outcome: of the run that is checked.
        inputs: what its arguments held before it.
        expected: of the reference.
        tolerance: as `compare`.

    Returns:
        A finding for each output that is wrong or that nothing writes.
    """
    outputs = outputs_of(inputs, outcome)
    results = [output for output in outputs if output.name.startswith("result")]
    in_order = iter(results if results else outputs)
    findings: list[Finding] = []
    for output in expected:
        if output.name.startswith("argument"):
            number = int(output.name.removeprefix("argument"))
            array = outcome.arguments[number] if number < len(outcome.arguments) else None
            match = Output(output.name, array) if array is not None else next(in_order, None)
        else:
            match = next(in_order, None)
        if match is None:
            findings.append(Finding(UNWRITTEN, f"nothing is written or returned where the reference has {output.name}"))
        else:
            findings += compare(match.name, match.array, output.array, tolerance)
    return findings


def compare_with_files(outcome: Outcome, expected: Mapping[int, np.ndarray], tolerance: float | None) -> list[Finding]:
    """Compares arguments and results with arrays.

    Args:
        outcome: of the run that is checked.
        expected: argument number, or number of arguments plus index of the result -> array.
        tolerance: as `compare`.

    Returns:
        A finding for each array that differs.

    Raises:
        StepladderError: an array for something that is neither an argument in memory nor a result.
    """
    count = len(outcome.arguments)
    findings: list[Finding] = []
    for number, want in expected.items():
        name = f"argument{number}" if number < count else f"result{number - count}"
        arrays = [*outcome.arguments, *outcome.results]
        if number >= len(arrays) or arrays[number] is None:
            raise StepladderError(
                f"there is no {name} to compare; the function has {count} arguments",
                notes=[f"outputs are numbered from 0: {count} arguments first, then {len(outcome.results)} results"],
            )
        findings += compare(name, np.asarray(arrays[number]), want, tolerance)
    return findings


def compare(name: str, actual: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> list[Finding]:
    """Compares two arrays element by element; integers must be equal.

    Args:
        name: of the output, for the message.
        actual, expected: of the same shape; `expected` may be of a wider type.
        tolerance: largest error relative to the larger of the element and the root mean square of `expected`. None
            for the square root of the machine epsilon of the narrower type: 3.5e-4 for f32, 3.1e-2 for f16, 8.8e-2 for
            bf16. Sums of a kernel have another order than those of its reference, and the root leaves room for that.

    Returns:
        No finding, or one that counts the wrong elements and names the first.
    """
    if actual.dtype.kind == "V" or expected.dtype.kind == "V":
        expected = expected.view(actual.dtype) if expected.dtype.itemsize == actual.dtype.itemsize else expected
    if actual.shape != expected.shape:
        return [Finding(WRONG, f"{name} is {_shape(actual)}, and {_shape(expected)} is expected")]
    is_exact = _is_exact(expected.dtype)
    limit = 0.0 if is_exact else _tolerance(actual, expected) if tolerance is None else tolerance
    with np.errstate(all="ignore"):
        actual_values, expected_values = (
            array if is_exact else array.astype(np.float64) for array in (actual, expected)
        )
        if is_exact:
            wrong = actual_values != expected_values
        else:
            mean = (
                math.sqrt(float(np.mean(np.square(expected_values[np.isfinite(expected_values)]))))
                if np.isfinite(expected_values).any()
                else 0.0
            )
            close = np.isfinite(expected_values) & (
                np.abs(actual_values - expected_values) <= limit * np.maximum(np.abs(expected_values), mean)
            )
            wrong = ~(
                close | (actual_values == expected_values) | (np.isnan(actual_values) & np.isnan(expected_values))
            )
    count = int(np.count_nonzero(wrong))
    if not count:
        return []
    first = tuple(int(index) for index in np.argwhere(wrong)[0])
    within = "" if is_exact else f" within {limit:.2g}"
    return [
        Finding(
            WRONG,
            f"{name}: {count} of {actual.size} elements are not what is expected{within}; the first is "
            f"[{', '.join(map(str, first))}]: {actual[first]}, expected {expected[first]}",
        )
    ]


def _tolerance(actual: np.ndarray, expected: np.ndarray) -> float:
    return math.sqrt(max(_epsilon(array.dtype) for array in (actual, expected)))


def _epsilon(dtype: np.dtype) -> float:
    return 0.0 if _is_exact(dtype) else float(ml_dtypes.finfo(dtype).eps)


def _is_exact(dtype: np.dtype) -> bool:
    return dtype.kind in "biu"


def _shape(array: np.ndarray) -> str:
    return "x".join(map(str, array.shape)) or "a scalar"
