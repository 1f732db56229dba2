"""Checks the results of a matmul kernel: three checks, each over every element of C.

**Exact.** A and B hold random +1 and -1 (C small integers), so that every partial sum, in whatever order a kernel adds,
is an integer that the accumulation type holds exactly. Every element must then equal the reference: one dropped or
doubled product shows, whatever K is. `exact_density` says why no partial sum leaves the exact range.

**Random.** Normal inputs, rounded to their storage types, against the float64 product of the inputs as stored.
Tolerances follow from the types of the products and the accumulators and from K, see `Tolerance`. This check finds what
small integers cannot show: a type that is too narrow, a low-order bit that is lost. Where A, B and C are integers, they
hold integers of the whole range instead, and every element must equal the reference: `integer_range` says why none
wraps.

**Repeatable.** Two launches on the same inputs give the same bits: a race shows as a difference. The emulator executes
in a fixed order and has a sanitizer for races; it needs no second launch.

Where elementwise ops follow the product, exact sums become values that are not: the first two checks then compare
within bounds that `error_propagation` carries through these ops, from exact sums and from those of the random check.

Where the kernel only writes C, C holds NaN before the launch, or the smallest integer of its type, which no right
result is. NaN and infinity in the result never pass.

The kernel takes operands in their layouts. The reference program (`runtime.reference`) comes from the payload and not
from what was compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from stepladder.runtime import host_memory
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import NOT_EXECUTED
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Program
from stepladder.verify import arrays
from stepladder.verify.comparison import compare_exact, compare_launches, compare_random
from stepladder.verify.epilogue_comparison import compare_results, follows_program
from stepladder.verify.inputs import EXACT_C, Further, Operands, exact_inputs, further_inputs, initial_c, random_inputs
from stepladder.verify.report import CheckReport

# Ops under which the values of the exact check stay below K plus C's magnitude, where there is one product.
_SUMS = {"arith.mulf", "arith.muli", "arith.addf", "arith.addi", "arith.extf", "arith.truncf", "arith.extsi"}


class Executor(Protocol):
    """Runs one matmul: on the GPU, on the emulator, or in NumPy in tests."""

    def load(self, a: np.ndarray, b: np.ndarray, *further: np.ndarray) -> None:
        """Takes A and B, of their storage types and in their layouts, for the launches that follow.

        Args:
            a: array of the shape `problem.a_shape`: m x k, or k x m where A is column-major; of several matrices in a
                batch.
            b: array of the shape `problem.b_shape`: k x n, or n x k where B is column-major; as A in a batch.
            further: what elementwise ops read, `problem.epilogue_operands`.
        """

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Runs the kernel once with C holding `c` (`problem.c_shape`) and returns what C holds afterwards.

        Args:
            c: of C's storage type and the shape `problem.c_shape`.
        """
        ...

    def results(self) -> list[np.ndarray]:
        """Returns what the results beside C, `problem.results`, hold after the last launch.Before it, they hold
        a value that no right result has."""
        ...


def check_matmul(
    problem: Problem,
    reference: Program,
    executor: Executor,
    seed: int,
    ordinal: int = 0,
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    repeats: bool = True,
) -> list[CheckReport]:
    """Runs all three checks, or the first two.

    Args:
        problem: types, shapes and layouts of what the executor computes: inputs and tolerances follow from them.
        reference: what it must compute.
        executor: runs it.
        seed: of the random inputs.
        ordinal: the GPU on which PyTorch may compute the reference of a large problem.
        constants: content of A or B, by role, where it is a constant of the payload: the random check takes it.
        repeats: whether two launches on the same inputs may differ, so that they are compared.

    Returns:
        A report for each check.

    Raises:
        StepladderError: not enough memory for the operands; status NOT_EXECUTED.
    """
    # A and B, and C before a launch and after two of them: what the references take comes on top.
    buffers = (
        *((operand.shape, operand.element_type) for operand in map(problem.operand, "ab")),
        ((3, *problem.c_shape), problem.c_type),
        *((operand.shape, operand.element_type) for operand in problem.epilogue_operands),
        *(((3, *result.shape), result.element_type) for result in problem.results),
    )
    size = sum(math.prod(shape) * element_type(name).bytes for shape, name in buffers)
    host_memory.require(size, problem.describe(), status=NOT_EXECUTED)
    backend = arrays.choose(problem.flops, ordinal)
    operands, further, outputs = _launch_random(problem, executor, seed, constants or {}, 1 + repeats)
    if follows_program(problem):
        random = compare_results("random", problem, reference, operands, further, outputs[0], backend)
    elif element_type(problem.acc_type).is_integer:
        # float64 has every i32 exactly.
        random = compare_exact("random", "float64", problem, reference, operands, outputs[0][0], backend)
    else:
        random = compare_random(problem, reference, operands, outputs[0][0], backend)
    exact = check_exact(problem, reference, executor, seed, ordinal)
    return [exact, random, *([_compare_launches(*outputs)] if repeats else ())]


def check_exact(problem: Problem, reference: Program, executor: Executor, seed: int, ordinal: int = 0) -> CheckReport:
    """Runs the exact check alone; arguments as for `check_matmul`.

    Args:
        problem, reference, executor, seed, ordinal: as for `check_matmul`.

    Returns:
        The report of the one check.

    Raises:
        StepladderError: the executor fails.
    """
    a, b, c = exact_inputs(problem, seed)
    further = further_inputs(problem, seed)
    executor.load(a, b, *further)
    if follows_program(problem):
        backend = arrays.choose(problem.flops, ordinal)
        results = _launch(problem, executor, c)
        return compare_results("exact", problem, reference, (a, b, c), further, results, backend)
    # Below 2^24 in magnitude, float32 has the sums of one product exactly, at twice the speed.
    names = reference.operations()
    is_one_product = _SUMS.issuperset(names) and sum(map(names.count, ("arith.mulf", "arith.muli"))) == 1
    wide = "float32" if is_one_product and problem.k + EXACT_C < 2**24 else "float64"
    return compare_exact(
        "exact",
        wide,
        problem,
        reference,
        (a, b, c),
        executor.launch(initial_c(problem, c)),
        arrays.choose(problem.flops, ordinal),
    )


def _launch_random(
    problem: Problem, executor: Executor, seed: int, constants: Mapping[str, np.ndarray], launches: int
) -> tuple[Operands, Further, list[list[np.ndarray]]]:
    """Returns random operands, or constant ones, those of elementwise ops, and the results of launches, C first."""
    a, b, c = random_inputs(problem, seed)
    a, b = constants.get("a", a), constants.get("a" if problem.b_is_a else "b", b)
    further = further_inputs(problem, seed)
    executor.load(a, b, *further)
    return (a, b, c), further, [_launch(problem, executor, c) for _ in range(launches)]


def _launch(problem: Problem, executor: Executor, c: np.ndarray) -> list[np.ndarray]:
    """Returns what C and the results beside it hold after a launch."""
    result = executor.launch(initial_c(problem, c))
    return [result, *(executor.results() if problem.results else ())]


def _compare_launches(first: list[np.ndarray], second: list[np.ndarray]) -> CheckReport:
    """Compares the bits of all results of two launches; the report is of the first that differs, or of C."""
    reports = [compare_launches(*pair) for pair in zip(first, second, strict=True)]
    return next((report for report in reports if not report.passed), reports[0])
