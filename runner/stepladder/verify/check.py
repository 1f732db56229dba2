"""Are the numbers right? Three checks of a matmul, each over every element of C.

**Exact.** A and B hold random +1 and -1 (C small integers), so that every partial sum, in whatever order a kernel adds,
is an integer that the accumulation type holds exactly. Every element must then equal the reference: one dropped or
doubled product, of whatever K, shows. See `exact_density` for why no partial sum leaves the exact range.

**Random.** Normal inputs, rounded to their storage types, against the float64 product of the inputs as stored.
Tolerances come from the types of the products and the sums and from K, see `Tolerance`. This one sees what small
integers cannot: a type that is too narrow, a low-order bit that is lost. Where A, B and C are integers, they hold
integers of the whole range instead, and every element must equal the reference: see `integer_range` for why none wraps.

**Repeatable.** Two launches on the same inputs give the same bits: a race shows as a difference.

Where the kernel only writes C, C holds NaN before the launch, or the smallest integer of its type, which no right
result is. NaN and infinity in the result never pass.

Operands are handed to the kernel in their layouts. What is right is said by the reference program (`reference`), which
comes from the payload and not from what was compiled.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from stepladder.runtime import host_memory
from stepladder.runtime.bundle import Problem
from stepladder.runtime.element_types import FP8_TYPES, ElementType, element_type
from stepladder.runtime.errors import NOT_EXECUTED
from stepladder.runtime.reference import Program
from stepladder.verify import arrays
from stepladder.verify.reference_evaluation import Evaluation

# Elements drawn from one random stream: fixed, so that a seed gives the same numbers on any number of cores.
CHUNK = 1 << 20

# The magnitude of the integers in C of the exact check.
EXACT_C = 8

# The magnitude of the integers in C of the random check: no sum with them leaves i32, and all bytes but one differ.
INTEGER_C = 1 << 20

# What the exact check's values stay below K plus C's magnitude with, where there is one product.
_SUMS = {"arith.mulf", "arith.muli", "arith.addf", "arith.addi", "arith.extf", "arith.truncf", "arith.extsi"}

# Bits that Hopper's tensor cores keep below the leading one of the largest term when they sum products of fp8.
FP8_BITS = 13


def _verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


class Executor(Protocol):
    """Runs one matmul; the GPU does, and in tests NumPy does."""

    def load(self, a: np.ndarray, b: np.ndarray) -> None:
        """Takes A and B, of their storage types and in their layouts, for the launches that follow.

        Args:
            a: array of the shape `problem.a_shape`: m x k, or k x m where A is column-major.
            b: array of the shape `problem.b_shape`: k x n, or n x k where B is column-major.
        """

    def launch(self, c: np.ndarray) -> np.ndarray:
        """Runs the kernel once with C holding `c` (m x n) and returns what C holds afterwards."""


@dataclass(frozen=True)
class Tolerance:
    """How far from the reference a right kernel can be on normal inputs.

    Let s2 = sum over k of (a_ik b_kj)^2, plus c_ij^2: for independent zero-mean inputs the partial sums of an element
    are a random walk of final variance s2. Bounds relative to |A||B| ignore that and are vacuous here: at K = 16384
    with f16 sums, lambda sqrt(K) u |A||B| (Higham and Mary 2019) is dozens of times a typical result. Sharper bounds
    for zero-mean data exist (Higham and Mary, SIAM J. Sci. Comput. 42(5), 2020); what follows is in their manner.

    f32 sums on tensor cores. Products are aligned to the largest exponent of the step and cut off, not rounded (Fasi,
    Higham, Mikaitis, Pranesh 2021), so errors have a bias and grow linearly. A step of 8 products loses at most 5 units
    of u = 2^-23 of the largest partial sum (9 terms cut, a normalisation), there are K/8 steps, and a partial sum stays
    below 8 sqrt(s2) for every element of a matrix that fits in memory: |error| <= 5 K u sqrt(s2). The mean is far
    lower, as a partial sum is sqrt(s2)/2 on average and a cut half a unit: norm(error) <= K u norm(reference).

    The same holds for wgmma, which cuts terms off like mma.sync: its steps of 16 products of f16 or bf16 are fewer, and
    keep no fewer bits of each term.

    f16 sums. Each step of n = K/4 (4 products on sm_75, 8 and 16 later: the worst is taken) rounds the partial sum to
    nearest, u = 2^-11, with independent errors of zero mean: given the walk W, the error is normal with variance
    u^2/3 sum(W_i^2), of which the mean is u^2/3 n s2/2. Its tail is exponential: exp(-pi t/2) at t times
    u/sqrt(3) sqrt(n s2); t = 25 leaves 1e-17 an element: |error| <= 15 u sqrt(n s2). Over the matrix the expected
    norm(error)/norm(reference) is at most u sqrt(n/6); u sqrt(n/2) is allowed.

    tf32 products. The tensor core reads 10 of the 23 stored bits of an f32 significand, after rounding to nearest
    (cvt.rna) or by cutting the others off. So a product is off by e_k = d_a + d_b of itself, 0 <= d < 2^-10 at worst,
    the sum by sum of (a_ik b_kj) e_k. Signs of the a_ik b_kj are independent, so that this is a random walk again, of
    variance at most (2^-9)^2 s2, which passes 8 deviations in 2.5e-14 of elements (Hoeffding): 2^-6 sqrt(s2) is
    allowed. Over the matrix norm(error)/norm(reference) is the root mean square of e_k: 0.8 x 2^-10 for normal
    operands that are cut off, 0.3 x 2^-10 for rounded ones; 1.5 x 2^-10 is allowed, and operands rounded to bf16 have
    2.4 x 2^-10. A step adds 4 or 8 products: at 4, K/4 steps of 3 units give 6 K u sqrt(s2) in place of 5.

    fp8 products, f32 sums. Hopper's tensor core aligns the 32 products of a step and the partial sum to the largest
    exponent among them, keeps 13 bits below its leading one, cuts the others off (towards zero), and hands on a sum of
    as many bits (DeepSeek-V3 report 2024, 3.5.2, and SageAttention2, 2024, found this by experiment; 13 is the lower of
    the figures given). u = 2^-13, so that errors bounded as above, 33 units a step, would accept anything. But the
    partial sum, once it is larger than a product, has no bits to lose but where it passes a power of two: what is cut
    are products, K times, each by less than u of the walk W, with the sign of the product and thus with zero mean. So
    as for f16 sums, but with a cut for every product, of second moment 1/3 unit^2 as it is not to nearest: given the
    walk, the error has variance u^2/3 sum(W_i^2), and |error| <= 15 u sqrt(K s2), which at K = 32 is also twice the
    bound of 33 cuts and a normalisation. Over the matrix the expected norm(error)/norm(reference) is at most
    u sqrt(K/6); u sqrt(K/2) is allowed. Kernels that move partial sums to f32 registers now and then are closer.

    On top, storing C rounds the result once: u of C's type, times the reference. Sums may so be in f32 and C of f16 or
    bf16; a kernel that rounds partial sums to C's type again and again is off by more.

    Attributes:
        element: factor of sqrt(s2) in the bound of an element's error.
        norm: bound of norm(error)/norm(reference), Frobenius.
        stored: unit roundoff of C's type.
    """

    element: float
    norm: float
    stored: float

    @classmethod
    def of(cls, problem: Problem) -> Tolerance:
        """Returns the tolerance of a problem with floating-point sums."""
        stored = element_type(problem.c_type).unit_roundoff
        if problem.compute_type == "tf32":
            truncation, cut = 2.0**-23, 2.0**-10
            return cls(16 * cut + 6 * problem.k * truncation, 1.5 * cut + problem.k * truncation + stored, stored)
        if problem.compute_type in FP8_TYPES and problem.acc_type == "f32":
            cut = 2.0**-FP8_BITS
            return cls(15 * cut * math.sqrt(problem.k), cut * math.sqrt(problem.k / 2) + stored, stored)
        if problem.acc_type == "f32":
            truncation = 2.0**-23
            return cls(5 * problem.k * truncation, problem.k * truncation + stored, stored)
        rounding = element_type(problem.acc_type).unit_roundoff
        steps = math.ceil(problem.k / 4)
        return cls(15 * rounding * math.sqrt(steps), rounding * math.sqrt(steps / 2) + stored, stored)


@dataclass
class CheckReport:
    """The outcome of one check; errors are over the finite elements of C.

    Attributes:
        check: `exact`, `random` or `repeatable`.
        passed: the answer.
        elements: number of elements compared.
        mismatches: number of elements out of tolerance, NaN and infinity included.
        not_finite: number of elements that are NaN or infinite.
        first_mismatch: (row, column) of the first one, row by row.
        got, expected: there, as text (they may be NaN).
        max_error: largest absolute error.
        max_error_over_tolerance: largest error in units of its element's tolerance; at most 1 in a check that passes.
        norm_error, norm_tolerance: Frobenius norm of the error over that of the reference, and its bound.
        reference: what computed the reference.
    """

    check: str
    passed: bool
    elements: int
    mismatches: int = 0
    not_finite: int = 0
    first_mismatch: tuple[int, int] | None = None
    got: str | None = None
    expected: str | None = None
    max_error: float = 0.0
    max_error_over_tolerance: float | None = None
    norm_error: float | None = None
    norm_tolerance: float | None = None
    reference: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON data."""
        return asdict(self)

    def describe(self) -> str:
        """Returns one line for people: the verdict, and the numbers behind it."""
        parts = []
        if self.mismatches:
            row, column = self.first_mismatch
            parts.append(
                f"{self.mismatches} of {self.elements} elements wrong, first at [{row}, {column}]: "
                f"got {self.got}, expected {self.expected}"
            )
            if self.not_finite:
                parts.append(f"{self.not_finite} NaN or infinite")
        if self.max_error_over_tolerance is not None:
            parts.append(f"largest error {self.max_error:.3g}, {self.max_error_over_tolerance:.3g} of its tolerance")
        elif self.mismatches:
            parts.append(f"largest error {self.max_error:.3g}")
        if self.norm_error is not None:
            parts.append(f"norm of error {self.norm_error:.3g} of norm of C (at most {self.norm_tolerance:.3g})")
        if self.passed and self.max_error_over_tolerance is None:
            parts.append(f"all {self.elements} elements equal")
        return f"{self.check}: {_verdict(self.passed)}: " + "; ".join(parts)


def check_matmul(
    problem: Problem, reference: Program, executor: Executor, seed: int, ordinal: int = 0
) -> list[CheckReport]:
    """Runs all three checks.

    Args:
        problem: types, shapes and layouts of what the executor computes: inputs and tolerances follow from them.
        reference: what it must compute.
        executor: runs it.
        seed: of the random inputs.
        ordinal: the GPU on which PyTorch may compute the reference of a large problem.

    Raises:
        StepladderError: not enough memory for the operands; status NOT_EXECUTED.
    """
    # A and B, and C before a launch and after two of them: what the references take comes on top.
    operands = (
        (problem.a_shape, problem.a_type),
        (problem.b_shape, problem.b_type),
        ((3, problem.m, problem.n), problem.c_type),
    )
    held = sum(math.prod(shape) * element_type(name).bytes for shape, name in operands)
    host_memory.require(held, problem.describe(), status=NOT_EXECUTED)
    backend = arrays.choose(problem.flops, ordinal)
    a, b, c, outputs = _launch_random(problem, executor, seed)
    if element_type(problem.acc_type).is_integer:
        # float64 has every i32 exactly.
        random = _compare_exact("random", "float64", problem, reference, (a, b, c), outputs[0], backend)
    else:
        random = _compare_random(problem, reference, (a, b, c), outputs[0], backend)
    return [check_exact(problem, reference, executor, seed, ordinal), random, _compare_launches(*outputs)]


def check_exact(problem: Problem, reference: Program, executor: Executor, seed: int, ordinal: int = 0) -> CheckReport:
    """Runs the exact check alone; arguments as for `check_matmul`."""
    a, b, c = exact_inputs(problem, seed)
    executor.load(a, b)
    # Below 2^24 in magnitude, float32 has the sums of one product exactly, at twice the speed.
    names = reference.operations()
    is_one_product = _SUMS.issuperset(names) and sum(map(names.count, ("arith.mulf", "arith.muli"))) == 1
    wide = "float32" if is_one_product and problem.k + EXACT_C < 2**24 else "float64"
    return _compare_exact(
        "exact",
        wide,
        problem,
        reference,
        (a, b, c),
        executor.launch(_initial(problem, c)),
        arrays.choose(problem.flops, ordinal),
    )


def exact_density(problem: Problem) -> float:
    """Returns the share of elements of A that are not zero in the exact check.

    The sum of n independent +1 and -1 exceeds t with probability at most 2 exp(-t^2 / 2n) (Hoeffding), and so does any
    part of it, as a kernel's order of adding does not depend on the data. With t^2 / 2n >= 64, that is 3e-28 for one
    partial sum, and so nothing over all partial sums of a matrix. Up to 0.9 of that n (0.9 of 32,000 for f16, any for
    f32) no element need be zero; above it, A is thinned so that its rows have about 0.9 n elements that are not zero.
    Products of fp8 are summed exactly below 2^13, whatever the type of the sums: 0.9 of 523,000. C of f16 or bf16 must
    hold the result exactly: of 480 for bf16, where six deviations of a row's number below the limit are less.
    """
    limit = _exact_limit(problem)
    return min(1.0, min(0.9 * limit, limit - 6 * math.sqrt(limit)) / problem.k)


def _exact_limit(problem: Problem) -> int:
    """The most non-zero products of an element for which all partial sums are exact."""
    largest = min(element_type(name).exact_integers for name in (problem.acc_type, problem.c_type))
    if problem.compute_type in FP8_TYPES:
        largest = min(largest, 2**FP8_BITS)
    return (largest - EXACT_C) ** 2 // 128


def exact_inputs(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns A, B and the C to add to, of their storage types and in their layouts, for the exact check."""
    density = exact_density(problem)

    def signs(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.integers(0, 2, count, np.int8) * np.int8(2) - np.int8(1)

    def thinned(generator: np.random.Generator, count: int) -> np.ndarray:
        return signs(generator, count) * (generator.random(count, np.float32) < density)

    def small(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.integers(-EXACT_C, EXACT_C + 1, count, np.int8)

    a, b, c = _operands(problem, seed, signs if density == 1 else thinned, signs, small)
    if density < 1:
        products = int(np.count_nonzero(_logical(problem, a, b)[0], axis=1).max())
        assert products <= _exact_limit(problem), f"{products} products do not sum exactly in {problem.acc_type}"
    return a, b, c


def integer_range(problem: Problem) -> int:
    """Returns r, such that A and B of the random check hold integers from -r to r - 1.

    All of the type's range (128 for i8) where no partial sum can leave the sums' type whatever the data, that is where
    K r^2 plus C's magnitude is in its range: K up to 131,007 for i8 in i32. Beyond, the largest r for which that holds.
    """
    largest = min(element_type(name).exact_integers for name in (problem.acc_type, problem.c_type)) - INTEGER_C
    return min(element_type(problem.a_type).exact_integers + 1, math.isqrt(largest // problem.k))


def random_inputs(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns A, B and the C to add to, of their storage types and in their layouts, for the random check.

    Standard normal, rounded to the storage types; integers are uniform, those of A and B over `integer_range`, those of
    C up to INTEGER_C.
    """
    if element_type(problem.acc_type).is_integer:
        bound = integer_range(problem)

        def uniform(generator: np.random.Generator, count: int) -> np.ndarray:
            return generator.integers(-bound, bound, count, np.int8)

        def summand(generator: np.random.Generator, count: int) -> np.ndarray:
            return generator.integers(-INTEGER_C, INTEGER_C, count, np.int32, endpoint=True)

        return _operands(problem, seed, uniform, uniform, summand)

    def normal(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.standard_normal(count, np.float32)

    return _operands(problem, seed, normal, normal, normal)


def _operands(problem: Problem, seed: int, *draws: Callable[[np.random.Generator, int], np.ndarray]) -> tuple:
    shapes = (problem.a_shape, problem.b_shape, (problem.m, problem.n))
    types = (problem.a_type, problem.b_type, problem.c_type)
    return tuple(
        _draw(shape, element_type(name), np.random.SeedSequence([seed, operand]), draw)
        for operand, (shape, name, draw) in enumerate(zip(shapes, types, draws))
    )


def _draw(
    shape: tuple[int, int],
    element: ElementType,
    seed: np.random.SeedSequence,
    draw: Callable[[np.random.Generator, int], np.ndarray],
) -> np.ndarray:
    """Fills an array chunk by chunk on all cores: NumPy's generators release the interpreter's lock."""
    flat = np.empty(math.prod(shape), element.dtype)
    starts = range(0, flat.size, CHUNK)

    def fill(start: int, stream: np.random.SeedSequence) -> None:
        chunk = flat[start : start + CHUNK]
        chunk[:] = draw(np.random.default_rng(stream), chunk.size)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(fill, starts, seed.spawn(len(starts))):
            pass
    return flat.reshape(shape)


def _initial(problem: Problem, c: np.ndarray) -> np.ndarray:
    """What C holds before a launch: the summand, or poison where the kernel must not read it."""
    if problem.accumulate:
        return c
    return np.full_like(c, np.iinfo(c.dtype).min if element_type(problem.c_type).is_integer else np.nan)


def _logical(problem: Problem, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns A (m x k) and B (k x n) as views of what is stored."""
    return a if problem.a_layout == "row" else a.T, b if problem.b_layout == "row" else b.T


def _launch_random(problem: Problem, executor: Executor, seed: int) -> tuple:
    a, b, c = random_inputs(problem, seed)
    executor.load(a, b)
    return a, b, c, [executor.launch(_initial(problem, c)) for _ in range(2)]


Operands = tuple[np.ndarray, np.ndarray, np.ndarray]


def _evaluation(
    problem: Problem, reference: Program, operands: Operands, backend: arrays.NumPyArrays, wide: str
) -> Evaluation:
    """Returns the reference on A, B and what C holds before a launch."""
    a, b, c = operands
    stored = {"a": a, "b": b, "c": _initial(problem, c)}
    return Evaluation(reference, {number: stored[role] for number, role in reference.roles.items()}, backend, wide)


def _compare_random(
    problem: Problem, reference: Program, operands: Operands, got: np.ndarray, backend: arrays.NumPyArrays
) -> CheckReport:
    xp = backend.xp
    tolerance = Tolerance.of(problem)
    evaluation = _evaluation(problem, reference, operands, backend, "float64")
    a, b = _logical(problem, *operands[:2])
    b_squared = backend.load(b, "float32") ** 2
    report = CheckReport("random", True, got.size, max_error_over_tolerance=0.0, reference=backend.name)
    error_squared = reference_squared = 0.0
    for rows in _row_blocks(problem):
        expected = evaluation.rows(reference.output("c"), rows)
        scale = backend.load(a[rows], "float32") ** 2 @ b_squared
        if problem.accumulate:
            scale = scale + backend.load(operands[2][rows], "float64") ** 2
        values = backend.load(got[rows], "float64")
        error = xp.abs(values - expected)
        bound = tolerance.element * xp.sqrt(scale) + tolerance.stored * xp.abs(expected)
        # Written so that NaN, which compares as false, is a mismatch.
        _count(report, ~(error <= bound), values, expected, error, rows, backend)
        finite = xp.where(xp.isfinite(error), error, xp.zeros_like(error))
        report.max_error_over_tolerance = max(report.max_error_over_tolerance, float((finite / bound).max()))
        error_squared += float((finite**2).sum())
        reference_squared += float((expected**2).sum())
    report.norm_error = math.sqrt(error_squared / reference_squared)
    report.norm_tolerance = tolerance.norm
    report.passed = report.mismatches == 0 and report.norm_error <= tolerance.norm
    return report


def _compare_exact(
    check: str,
    wide: str,
    problem: Problem,
    reference: Program,
    operands: Operands,
    got: np.ndarray,
    backend: arrays.NumPyArrays,
) -> CheckReport:
    """Compares for equality; `wide` is the type of the reference, which has all sums exactly."""
    xp = backend.xp
    evaluation = _evaluation(problem, reference, operands, backend, wide)
    report = CheckReport(check, True, got.size, reference=backend.name)
    for rows in _row_blocks(problem):
        # Integers of i32 are exact in float64.
        expected = backend.cast(evaluation.rows(reference.output("c"), rows), "float64")
        # Not in float32, which would round a wrong i32, perhaps to the right one.
        values = backend.load(got[rows], "float64")
        _count(report, ~(values == expected), values, expected, xp.abs(values - expected), rows, backend)
    report.passed = report.mismatches == 0
    return report


def _count(
    report: CheckReport, wrong: Any, values: Any, expected: Any, error: Any, rows: slice, backend: arrays.NumPyArrays
) -> None:
    """Adds a block of rows to a report: its mismatches, and its largest error."""
    xp = backend.xp
    finite = xp.isfinite(error)
    report.max_error = max(report.max_error, float(xp.where(finite, error, xp.zeros_like(error)).max()))
    count = int(wrong.sum())
    if count and report.first_mismatch is None:
        row, column = backend.first(wrong)
        report.first_mismatch = (rows.start + row, column)
        report.got, report.expected = (_text(block[row, column]) for block in (values, expected))
    report.mismatches += count
    report.not_finite += int((~finite).sum())


def _text(value: Any) -> str:
    """Returns an element as text: 9 digits, which tell all f32 apart, or all of a large integer's."""
    value = float(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) >= 1e9 else f"{value:.9g}"


def _compare_launches(first: np.ndarray, second: np.ndarray) -> CheckReport:
    bits = np.dtype(f"u{first.itemsize}")
    # Bits are compared: NaN is like itself.
    differ = first.view(bits) != second.view(bits)
    report = CheckReport("repeatable", True, first.size)
    if differ.any():
        row, column = arrays.NumPyArrays().first(differ)
        error = np.abs(first.astype(np.float64) - second.astype(np.float64))
        report.passed = False
        report.mismatches = int(differ.sum())
        report.not_finite = int((~np.isfinite(error)).sum())
        report.first_mismatch = (row, column)
        report.got = _text(second[row, column])
        report.expected = f"{_text(first[row, column])} as in the launch before"
        report.max_error = float(np.where(np.isfinite(error), error, 0).max())
    return report


def _row_blocks(problem: Problem) -> Iterator[slice]:
    """Cuts C into blocks of rows of about 2^25 elements: memory for temporaries stays bounded, products stay large."""
    rows = max(1, (1 << 25) // problem.n)
    for start in range(0, problem.m, rows):
        yield slice(start, min(start + rows, problem.m))
