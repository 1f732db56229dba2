"""Random operands of the checks, of a problem's storage types and in its layouts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stepladder.runtime.element_types import FP8_TYPES, ElementType, element_type
from stepladder.runtime.problem import Problem
from stepladder.verify.tolerance import FP8_BITS

Operands = tuple[np.ndarray, np.ndarray, np.ndarray]
# Operands of elementwise ops, in the order of their roles.
Further = tuple[np.ndarray, ...]
Draw = Callable[[np.random.Generator, int], np.ndarray]

# Elements drawn from one random stream: fixed, so that a seed gives the same numbers on any number of cores.
CHUNK = 1 << 20

# The magnitude of the integers in C of the exact check.
EXACT_C = 8

# Operands of elementwise ops are these integers, or where they are floating-point numbers a quarter of them, which is
# neither large nor exact in functions.
FURTHER = 8

# Ops that take values of a few bits out of others.
_SHIFTS = {"arith.shrsi", "arith.shrui"}

_LARGEST_F16 = 65504

# The magnitude of the integers in C of the random check: no sum with them leaves i32, and all bytes but one differ.
INTEGER_C = 1 << 20


def exact_density(problem: Problem) -> float:
    """Returns the share of elements of A that are not zero in the exact check.

    The sum of n independent +1 and -1 exceeds t with probability at most 2 exp(-t^2 / 2n) (Hoeffding), and so does any
    part of it, as a kernel's order of adding does not depend on the data. With t^2 / 2n >= 64, that is 3e-28 for one
    partial sum, and so nothing over all partial sums of a matrix. Up to 0.9 of that n (0.9 of 32,000 for f16, any for
    f32) no element need be zero; above it, A is thinned so that its rows have about 0.9 n elements that are not zero.
    Products of fp8 are summed exactly below 2^13, whatever the accumulator type: 0.9 of 523,000. C of f16 or bf16 must
    hold the result exactly: of 480 for bf16, where the count of such elements in a row stays six deviations below
    the limit.

    Args:
        problem: with the extent k, and the types that partial sums and C must hold exactly.
    """
    limit = _exact_limit(problem)
    return min(1.0, min(0.9 * limit, limit - 6 * math.sqrt(limit)) / problem.k)


def _exact_limit(problem: Problem) -> int:
    """The most non-zero products of an element for which all partial sums are exact."""
    largest = min(element_type(name).exact_integers for name in _sum_types(problem))
    if problem.compute_type in FP8_TYPES:
        largest = min(largest, 2**FP8_BITS)
    if problem.b_is_a:  # sums of squares do not cancel
        return largest - EXACT_C
    return (largest - EXACT_C) ** 2 // 128


def _sum_types(problem: Problem) -> tuple[str, ...]:
    """Returns the types that sums must fit: the accumulators', and C's but where elementwise ops make integers of them
    that are narrower, or fp8."""
    is_narrower = element_type(problem.c_type).is_integer and problem.c_type != problem.acc_type
    is_quantized = is_narrower or problem.c_type in FP8_TYPES
    return (problem.acc_type,) if is_quantized else (problem.acc_type, problem.c_type)


def exact_inputs(problem: Problem, seed: int) -> Operands:
    """Returns A, B and the C to add to, of their storage types and in their layouts, for the exact check.

    Args:
        problem: types, shapes and layouts.
        seed: of the random numbers.

    Returns:
        A of `problem.a_shape`, B of `problem.b_shape`, C of m x n.
    """
    density = exact_density(problem)

    def thinned(generator: np.random.Generator, count: int) -> np.ndarray:
        return _signs(generator, count) * (generator.random(count, np.float32) < density)

    def small(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.integers(-EXACT_C, EXACT_C + 1, count, np.int8)

    a, b, c = _operands(problem, seed, _signs if density == 1 else thinned, _signs, small)
    a, b = _scaled(problem, a, b)
    if density < 1 and not problem.is_prepared and not problem.has_windows:
        products = int(np.count_nonzero(logical_operands(problem, a, b)[0], axis=-1).max())
        assert products <= _exact_limit(problem), f"{products} products do not sum exactly in {problem.acc_type}"
    return a, b, c


def integer_range(problem: Problem) -> int:
    """Returns r, such that A and B of the random check hold integers from -r to r - 1.

    All of the type's range (128 for i8) where no partial sum can exceed the accumulator type whatever the data, that is
    where K r^2 plus C's magnitude is in its range: K up to 131,007 for i8 in i32. Beyond, the largest r for which that
    holds.

    Args:
        problem: of integers.
    """
    types = [element_type(name) for name in _sum_types(problem)]
    # Elementwise ops may make floating-point numbers of the sums.
    largest = min(type_.exact_integers for type_ in types if type_.is_integer) - INTEGER_C
    return min(element_type(problem.a_type).exact_integers + 1, math.isqrt(largest // problem.k))


def random_inputs(problem: Problem, seed: int) -> Operands:
    """Returns A, B and the C to add to, of their storage types and in their layouts, for the random check.

    Standard normal, rounded to the storage types; integers are uniform, those of A and B over `integer_range`, those of
    C up to INTEGER_C.

    Args:
        problem: types, shapes and layouts.
        seed: of the random numbers.

    Returns:
        A of `problem.a_shape`, B of `problem.b_shape`, C of m x n.
    """
    if element_type(problem.acc_type).is_integer:
        bound = integer_range(problem)

        def uniform(generator: np.random.Generator, count: int) -> np.ndarray:
            return generator.integers(-bound, bound, count, np.int8)

        def summand(generator: np.random.Generator, count: int) -> np.ndarray:
            return generator.integers(-INTEGER_C, INTEGER_C, count, np.int32, endpoint=True)

        return _operands(
            problem, seed, uniform, uniform, summand if element_type(problem.c_type).is_integer else _normal
        )

    dtype = np.float64 if problem.a_type == "f64" else np.float32

    def normal(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.standard_normal(count, dtype)

    # The sources of A and B may be integers: all of i8, which may hold two values of 4 bits, and where shifts
    # take several values out of one of i32, all of i32.
    is_packed = not _SHIFTS.isdisjoint(problem.producers)
    are_integers = [element_type(problem.operand(role).element_type).is_integer for role in "ab"]
    bound = 128
    if all(are_integers) and problem.acc_type == "f16" and not is_packed:
        # Sums of products of values up to r are normal, of deviation r^2 / 3 sqrt(k): 8 of these fit in f16.
        bound = max(1, min(bound, math.isqrt(int(3 * _LARGEST_F16 / 8 / math.sqrt(problem.k)))))

    def every(generator: np.random.Generator, count: int) -> np.ndarray:
        words = generator.integers(-bound, bound, 4 * count if is_packed else count, np.int8)
        return words.view(np.int32) if is_packed else words

    draws = [every if is_integer else normal for is_integer in are_integers]
    a, b, c = _operands(problem, seed, *draws, normal)
    return *_scaled(problem, a, b), c


def _signs(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.integers(0, 2, count, np.int8) * np.int8(2) - np.int8(1)


def _normal(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.standard_normal(count, np.float32)


def further_inputs(problem: Problem, seed: int) -> Further:
    """Returns what elementwise ops read beside the product and C, for either check: random numbers up to 2 in
    magnitude, integers up to FURTHER; of the B of a second product, those of B in the exact check. One value that a
    launch passes is above 0, so that what it scales is computed, and what it bounds is not empty.

    Args:
        problem: with elementwise ops or without.
        seed: of the numbers.
    """
    arrays = []
    for number, operand in enumerate(problem.epilogue_operands):
        element = element_type(operand.element_type)

        def small(
            generator: np.random.Generator,
            count: int,
            divisor: int = 1 if element.is_integer else 4,
            is_scale: bool = operand.by_value,
        ) -> np.ndarray:
            values = generator.integers(1 if is_scale else -FURTHER, FURTHER + 1, count, np.int8)
            return values if divisor == 1 else values.astype(np.float32) / divisor

        draw = _signs if number == problem.second_b else small
        array = _draw(operand.shape, element, np.random.SeedSequence([seed, 3 + number]), draw)
        arrays.append(_scaled(problem, array, array)[1] if number == problem.second_b else array)
    return tuple(arrays)


def _scaled(problem: Problem, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns A and B such that products have a standard deviation of about 1, where elementwise ops follow, and none
    prepare A or B.

    There activations bend, and exponentials stay in range. The factors are powers of two: sums that are exact stay so.
    """
    if not problem.has_epilogue or problem.is_prepared or element_type(problem.a_type).is_integer:
        return a, b
    exponent = round(math.log2(problem.k) / 2)
    return a * np.asarray(2.0 ** -(exponent // 2), a.dtype), b * np.asarray(2.0 ** -(exponent - exponent // 2), b.dtype)


def _operands(problem: Problem, seed: int, *draws: Draw) -> Operands:
    """Returns A, B and C, each drawn by a function of a generator and a number of elements."""
    a, b, c = (
        _draw(
            problem.operand(role).shape,
            element_type(problem.operand(role).element_type),
            np.random.SeedSequence([seed, operand]),
            draw,
        )
        for operand, (role, draw) in enumerate(zip("abc", draws))
    )
    return a, a if problem.b_is_a else b, c


def _draw(
    shape: tuple[int, ...],
    element: ElementType,
    seed: np.random.SeedSequence,
    draw: Draw,
) -> np.ndarray:
    """Fills an array chunk by chunk on all cores: NumPy's generators release the interpreter's lock."""
    flat = np.empty(math.prod(shape), element.dtype)
    starts = range(0, flat.size, CHUNK)

    def fill(start: int, stream: np.random.SeedSequence) -> None:
        chunk = flat[start : start + CHUNK]
        chunk[:] = draw(np.random.default_rng(stream), chunk.size)

    streams = seed.spawn(len(starts))
    if len(starts) == 1:
        fill(0, streams[0])
        return flat.reshape(shape)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(fill, starts, streams):
            pass
    return flat.reshape(shape)


def initial_c(problem: Problem, c: np.ndarray) -> np.ndarray:
    """The content of C before a launch: the summand, or poison where the kernel must not read it.

    Args:
        problem: what the kernel computes.
        c: the summand, m x n, or the buffer that C is a part of.

    Returns:
        An array of the shape and type of `c`.
    """
    if problem.accumulate:
        return c
    poison = np.iinfo(c.dtype).min if element_type(problem.c_type).is_integer else np.nan
    if problem.c_window is None:
        return np.full_like(c, poison)
    buffer = c.copy()  # what is beside the window stays
    places = np.full((), problem.c_window.offset)
    for size, stride in zip(problem.c_window.extents(problem.c_shape), problem.c_window.strides):
        places = places[..., None] + np.arange(size) * stride
    buffer.reshape(-1)[places] = poison
    return buffer


def logical_operands(problem: Problem, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns A (m x k) and B (k x n) as views of what is stored; batches of such matrices in a batch.

    Args:
        problem: which has the layouts.
        a: A as stored: m x k, or k x m where it is column-major; of several matrices in a batch.
        b: B as stored: k x n, or n x k where it is column-major; as A in a batch.
    """
    return (
        a if problem.a_layout == "row" else a.swapaxes(-1, -2),
        b if problem.b_layout == "row" else b.swapaxes(-1, -2),
    )
