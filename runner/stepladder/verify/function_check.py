"""Checks the numbers of a function with several kernels against its reference program.

**Random.** Normal inputs, scaled so that the products of matmuls stay near 1, against the program in float64. A right
kernel rounds where the function's types say so, and its numbers differ from exact ones by about as much as those of a
second evaluation that rounds every value to its type (`RoundedEvaluation`). The errors, squared and averaged over a
result, may be 3 times those of that evaluation, and the largest one 8 times; what orders of summation and units of
matrix products add (`tolerance.Tolerance`) is allowed besides, and what sums of n terms in other kernels add. Integers
must be equal, unless the two evaluations round numbers halfway between two of them differently: then each is that of
either evaluation, and of as many as these differ in, errors may be within the same factors.

**Repeatable.** Two runs on the same inputs give the same bits: a race between kernels, or a buffer that another one
overwrites too early, shows as a difference.

An element may be NaN or infinite only where the reference is, and must be so there, as the logarithm of a negative
number is; where one of the two evaluations has a number and the other one has none, roundings decide, and either is
right. The kernels of matmuls are bundles of their own, with checks of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from stepladder.runtime.bundle import FunctionBundle, Launch
from stepladder.runtime.element_types import BUFFER_TYPES, FP8_TYPES, element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Generic, Operation, Program
from stepladder.runtime.reference_operations import is_float
from stepladder.verify import arrays
from stepladder.verify.arrays import Array, NumPyArrays, on_host
from stepladder.verify.comparison import compare_launches
from stepladder.verify.extremum_comparison import distances
from stepladder.verify.integer_arguments import IntegerArguments
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.report import CheckReport
from stepladder.verify.structured_evaluation import Labelled, Region, StructuredOp
from stepladder.verify.tolerance import Tolerance

# How often the errors of the evaluation that rounds are allowed: their mean square root, and the largest.
_MEAN = 3.0
_LARGEST = 8.0
# Significant bits, the leading one included.
_BITS = {"f64": 53, "f32": 24, "tf32": 11, "f16": 11, "bf16": 8, "f8E4M3FN": 4, "f8E5M2": 3}
# The largest number of types whose larger numbers are rounded to infinity.
_LARGEST_NUMBERS = {name: float(np.finfo(element_type(name).dtype).max) for name in ("f32", "f16")} | {
    "bf16": float.fromhex("0x1.fep127")
}
# The step that makes one kernel of an attention.
_ATTENTION = "distribute_attention"
_UNSIGNED = 256.0
_SMALLEST = 2.0**-24  # below it, numbers of f16 are flushed to zero


class FunctionExecutor(Protocol):
    """Runs a function: on the GPU, or on the emulator."""

    def run(self, inputs: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Runs it once on arrays by argument number; returns its results, in order.

        Args:
            inputs: arrays of the arguments' types and shapes.
        """
        ...


def random_inputs(bundle: FunctionBundle, seed: int) -> dict[int, np.ndarray]:
    """Returns an array for each argument of a function; constants have their own content.

    Normal numbers of a standard deviation of 1, or of less for operands of matmuls, so that sums of products have 1;
    integers as `IntegerArguments` draws them.

    Args:
        bundle: of the function.
        seed: of the numbers.

    Returns:
        Arrays by argument number, of the arguments' shapes and types.
    """
    scales: dict[int, float] = {}
    for launch in bundle.manifest.launches:
        if launch.kernel is None:
            _scale(bundle, launch, scales)
    integers = IntegerArguments(bundle.reference)
    found = {}
    for place, buffer in bundle.manifest.of_kind("argument"):
        generator = np.random.default_rng([seed, buffer.number])
        element = element_type(buffer.element_type)
        if element.is_integer:
            found[buffer.number] = integers.draw(buffer.number, element, buffer.shape, generator)
        else:
            numbers = generator.standard_normal(buffer.shape, np.float32) * np.float32(scales.get(place, 1.0))
            found[buffer.number] = numbers.astype(element.dtype)
    return found | {buffer.number: bundle.constant(buffer) for _, buffer in bundle.manifest.of_kind("constant")}


def _scale(bundle: FunctionBundle, launch: Launch, scales: dict[int, float]) -> None:
    """Notes the factors of a matmul's operands that are arguments: the smaller buffer, a weight, has that of both."""
    buffers, homes = bundle.manifest.buffers, bundle.manifest.homes
    operands = [homes.get(launch.operands[role], launch.operands[role]) for role in "ab"]
    given = [place for place in operands if buffers[place].kind == "argument"]
    integers = [place for place in given if element_type(buffers[place].element_type).is_integer]
    given = [place for place in given if place not in integers]
    if not given:
        return
    # Integers that a kernel makes an operand of may be read without their sign: those of 8 bits up to 255.
    factor = bundle.matmul(launch).manifest.problem.k ** -0.5 / (_UNSIGNED if integers else 1.0)
    weight = max(given)  # front ends have inputs before weights, or weights alone
    scales[weight] = min(scales.get(weight, 1.0), factor)


def check_function(
    bundle: FunctionBundle, executor: FunctionExecutor, seed: int, ordinal: int = 0
) -> list[CheckReport]:
    """Runs the checks on every result of a function.

    Args:
        bundle: of the function.
        executor: runs it.
        seed: of the random inputs.
        ordinal: the GPU on which PyTorch may compute the reference of a large function.

    Returns:
        A report for each result.
    """
    inputs = random_inputs(bundle, seed)
    first, second = executor.run(inputs), executor.run(inputs)
    problems = _problems(bundle)
    backend = arrays.choose(sum(problem.flops for problem in problems), ordinal)
    is_tf32 = any(problem.compute_type == "tf32" for problem in problems)
    extra = error_of_matmuls(problems) + error_of_sums(bundle.reference, in_f32=True)
    reports = compare_results(bundle.reference, inputs, first, backend, extra, is_tf32)
    for random, got, again in zip(list(reports), first, second):
        repeatable = compare_launches(got, again)
        repeatable.check = random.check.replace("random", repeatable.check)
        reports.append(repeatable)
    return reports


def _problems(bundle: FunctionBundle) -> list[Problem]:
    """Returns what the matmuls of a function compute, with those of groups."""
    found: list[Problem] = []
    for launch in bundle.manifest.launches:
        found += [bundle.matmul(launch).manifest.problem] if launch.kernel is None else launch.grouped
    return found


def error_of_matmuls(problems: Sequence[Problem]) -> float:
    """Returns the error that the orders of summation and the matrix units of matmuls add, and the rounding of their
    results, as a part of the numbers' mean square root.

    Args:
        problems: of the matmuls; those of integers are exact.
    """
    return sum(Tolerance.of(problem).norm for problem in problems if not element_type(problem.acc_type).is_integer)


def norm_tolerance(bundle: FunctionBundle) -> float:
    """Returns how far the results of a function may be from exact ones: the norm of the error over that of the numbers.

    For functions whose ops keep relative errors as they are: matmuls by weights that do not depend on the errors, which
    turn an error of a part of the norm into one of the same part, products, sums of independent numbers, norms, and
    activations of slope 1. The errors of kernels add (triangle inequality): those of matmuls (`Tolerance.norm`), half a
    unit in the last place for each rounded result of another kernel, and each rounding of scores and weights of an
    attention in one kernel, and those of sums in f32.

    Args:
        bundle: of the function.
    """
    problems = _problems(bundle)
    by_matmuls = {launch.operands["c"] for launch in bundle.manifest.launches if launch.kernel is None}
    for launch in bundle.manifest.launches:
        if launch.kernel is not None and launch.grouped:
            written = [item.role for item in launch.kernel.arguments if item.access != "read"]
            by_matmuls |= {launch.operands[role] for role in written}
    written = {number for launch in bundle.manifest.launches for number in launch.written} - by_matmuls
    rounded = sum(element_type(bundle.manifest.buffers[place].element_type).unit_roundoff for place in written)
    rounded += _error_of_scores(bundle)
    return error_of_matmuls(problems) + rounded + error_of_sums(bundle.reference, in_f32=True)


def _error_of_scores(bundle: FunctionBundle) -> float:
    """Returns the error of what attentions in one kernel round in registers: weights, and scores where the program
    rounds them."""
    kernels = [
        launch.kernel
        for launch in bundle.manifest.launches
        if launch.kernel is not None and _ATTENTION in launch.kernel.steps
    ]
    # Two products, of a multiplication and an addition each, for every score and element of a head.
    scores = {kernel.flops // (4 * kernel.arguments[0].shape[-1]) for kernel in kernels}
    return sum(
        element_type(operation.type).unit_roundoff
        for item in bundle.reference.instructions
        if isinstance(item, Generic) and math.prod(item.sizes) in scores
        for operation in item.body
        if operation.name == "arith.truncf"
    )


def error_of_sums(program: Program, *, in_f32: bool) -> float:
    """Returns the error of sums that are rounded term by term, as a part of the numbers' mean square root.

    Additions to nearest have independent errors of at most u of the partial sum. Of n terms of zero mean the expected
    error is at most u sqrt(n/6) of the sums' mean square root, as `Tolerance` derives for f16 accumulators; of positive
    terms, whose partial sums grow evenly, u sqrt(n)/3. As there, u sqrt(n/2) is allowed.

    Args:
        program: the reference.
        in_f32: whether sums of 16 bits are f32, as those of kernels without matrix units, and not in the type that the
            program says.
    """
    error = 0.0
    for item in program.instructions:
        if not isinstance(item, Generic) or not is_float(item.types[0]):
            continue
        terms = math.prod(size for loop, size in enumerate(item.sizes) if loop not in item.maps[-1])
        if terms > 1:
            type_ = "f32" if in_f32 and item.types[0] != "f64" else item.types[0]
            error += element_type(type_).unit_roundoff * math.sqrt(terms / 2)
    return error


@np.errstate(all="ignore")  # of infinite numbers and NaN, which results may have
def compare_results(
    program: Program,
    inputs: dict[int, np.ndarray],
    results: Sequence[np.ndarray],
    backend: NumPyArrays,
    extra: float,
    is_tf32: bool = False,
) -> list[CheckReport]:
    """Compares the results of a function with its reference program; a report each.

    Args:
        program: the reference.
        inputs: arrays by argument number.
        results: in order.
        backend: computes the reference.
        extra: error that matmuls add, as a part of the numbers' mean square root.
        is_tf32: whether matmuls of f32 multiply in TF32.

    Returns:
        The reports, in the order of the results.
    """
    exact = Evaluation(program, inputs, backend)
    rounded = RoundedEvaluation(program, inputs, backend, is_tf32)
    return [
        _compare("random" if len(results) == 1 else f"random, result {number}", exact, rounded, item.value, got, extra)
        for number, (item, got) in enumerate(zip(program.results, results))
    ]


def _limits(typical: np.ndarray, size: float, extra: float, roundoff: float) -> tuple[float, float]:
    """Returns what is allowed beside the errors of an evaluation that rounds, and the largest error.

    Args:
        typical: the errors of that evaluation.
        size: the mean square root of the numbers.
        extra: error that matmuls add, as a part of it.
        roundoff: of the result's type.
    """
    # The result itself is rounded, and may be rounded once more where a kernel keeps its sums.
    allowed = (extra + roundoff) * size + _SMALLEST
    return allowed, _LARGEST * (float(typical.max(initial=0.0)) + allowed)


def largest_errors(program: Program, inputs: dict[int, np.ndarray], extra: float) -> list[float]:
    """Returns the largest errors that results may have beside another exact evaluation than that of the program, such
    as one of the module that the program is of: as `compare_results` allows; 0 for integers.

    Args:
        program, inputs, extra: as for `compare_results`.
    """
    exact = Evaluation(program, inputs, NumPyArrays())
    rounded = RoundedEvaluation(program, inputs, NumPyArrays(), is_tf32=False)
    found = []
    for item in program.results:
        wanted = on_host(exact.whole(item.value))
        typical = np.abs(on_host(rounded.whole(item.value)) - wanted)
        # Infinite numbers, such as those of masks, are the same or wrong.
        typical, size = np.where(np.isfinite(typical), typical, 0.0), _mean(np.where(np.isfinite(wanted), wanted, 0.0))
        element = element_type(item.type)
        found.append(0.0 if element.is_integer else _limits(typical, size, extra, element.unit_roundoff)[1])
    return found


def _compare(
    check: str, exact: Evaluation, rounded: RoundedEvaluation, value: int, got: np.ndarray, extra: float
) -> CheckReport:
    """Compares a result with the reference."""
    name = exact.arrays.name
    wanted = on_host(exact.whole(value))
    numbers = got.reshape(wanted.shape).astype(np.float64)
    report = CheckReport(check, True, got.size, reference=name)
    limit: float | np.ndarray = 0.0
    element = next(item for item in BUFFER_TYPES.values() if item.dtype == got.dtype)
    is_fp8 = element.name in FP8_TYPES
    near = on_host(rounded.whole(value)) if not element.is_integer or rounded.has_floats else wanted
    is_same = (numbers == wanted) | (np.isnan(numbers) & np.isnan(wanted)) | (np.isfinite(near) != np.isfinite(wanted))
    is_number = np.isfinite(numbers) & np.isfinite(wanted)
    known, made = (np.where(is_number, values, 0) for values in (wanted, numbers))
    errors = np.where(is_same, 0.0, np.where(is_number, np.abs(made - known), np.inf))
    choice = distances(exact, rounded, value, got) if element.is_integer else None
    if choice is not None:  # of nearly equal values, either may be the extremum
        distance, terms, typical = choice
        errors = np.where(numbers == known, 0.0, distance)  # also the index that it began with, where no value exceeds
        limit = _LARGEST * (float(typical.max(initial=0.0)) + extra * _mean(terms) + _SMALLEST)
    elif element.is_integer and np.any(near != wanted):  # numbers halfway between integers were rounded
        errors = np.where(numbers == near, 0.0, errors)
        typical, size = np.abs(near - wanted), _mean(known)
        is_few = np.count_nonzero(errors) <= np.count_nonzero(typical)
        limit = _LARGEST * float(typical.max()) if is_few else 0.0
        report.norm_error, report.norm_tolerance = (
            part / max(size, 1e-300) for part in (_mean(errors), _MEAN * _mean(typical))
        )
    elif not element.is_integer:
        typical = np.abs(np.where(is_number & np.isfinite(near), near, known) - known)
        size = _mean(known)
        allowed, limit = _limits(typical, size, extra, element.unit_roundoff)
        if is_fp8:  # a large number may be rounded to its neighbour
            limit = limit + 2 * element.unit_roundoff * np.abs(known)
        report.norm_error = _mean(errors) / max(size, 1e-300)
        report.norm_tolerance = (_MEAN * _mean(typical) + allowed) / max(size, 1e-300)
        report.max_error_over_tolerance = float((errors / limit).max(initial=0.0))
    wrong = errors > limit
    report.mismatches = int(wrong.sum())
    report.not_finite = int((~(is_number | is_same)).sum())
    report.max_error = float(errors[np.isfinite(errors)].max(initial=0.0))
    if report.mismatches:
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        report.first_mismatch = place
        report.got, report.expected = str(numbers[place]), str(wanted[place])
    is_far = report.norm_error is not None and not report.norm_error <= (report.norm_tolerance or 0.0)
    report.passed = not report.mismatches and not is_far
    return report


def _mean(numbers: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(numbers)))) if numbers.size else 0.0


class RoundedEvaluation(Evaluation):
    """A program on given inputs that rounds every value to its type, to nearest, and sums of products once.

    Args:
        program, inputs, arrays: as for `Evaluation`.
        is_tf32: whether matmuls of f32 multiply in TF32.

    Attributes:
        has_floats: whether a body computes floating-point numbers.
    """

    def __init__(self, program: Program, inputs: dict[int, np.ndarray], backend: NumPyArrays, is_tf32: bool) -> None:
        super().__init__(program, inputs, backend)
        self.is_tf32 = is_tf32
        types = {op.type for item in program.instructions if isinstance(item, Generic) for op in item.body}
        self.has_floats = any(map(is_float, types))

    def _computed(self, value: int, region: Region) -> Array:
        maker = self.makers.get(value)
        if maker is not None and isinstance(maker[0], Generic):
            return _RoundedOp(self, maker[0], maker[1], region).computed()
        return super()._computed(value, region)


class _RoundedOp(StructuredOp):
    """One output of a structured op, with rounded values; arguments as for `StructuredOp`."""

    def _typed(self, op: Operation, array: Array) -> Array:
        array = super()._typed(op, array)
        return _rounded(self.arrays.xp, array, op.type) if is_float(op.type) else array

    def _operand(self, number: int) -> Labelled:
        value = super()._operand(number)
        assert isinstance(self.program, RoundedEvaluation)
        is_factor = number in self.op.arguments[: len(self.op.inputs)] and len(self.op.inputs) == 2
        reduces = len(self.order) < len(self.op.sizes)
        if self.program.is_tf32 and is_factor and reduces and "int" not in str(value.array.dtype):
            return Labelled(_rounded(self.arrays.xp, value.array, "tf32"), value.loops)
        return value


def _rounded(xp: Any, array: Array, type_: str) -> Array:  # noqa: ANN401
    """Returns numbers rounded to the significant bits of a type, by Veltkamp's splitting, and to its range."""
    bits = _BITS[type_]
    if bits == 53:
        return array
    scaled = array * (2.0 ** (53 - bits) + 1.0)
    # Numbers that overflow stay as they are: 0 - (0 - x).
    scaled = xp.where(abs(scaled) < math.inf, scaled, 0.0)
    rounded = scaled - (scaled - array)
    too_large = abs(rounded) > _LARGEST_NUMBERS.get(type_, math.inf)
    # Zeros take no part in the product, which would be NaN and warn.
    return xp.where(too_large, xp.where(too_large, rounded, 1.0) * math.inf, rounded)
