"""What ops on floating-point numbers compute in the emulator, beside exact arithmetic and NumPy."""

import functools
import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from emulator_ops import COMPARE, FORMATS, bits, everywhere, function, run, same
from stepladder.runtime.errors import StepladderError

# Floating-point numbers.


@functools.lru_cache
def all_finite(name: str) -> np.ndarray:
    """Returns the finite numbers of a format of 8 or 16 bits, in order."""
    dtype = np.dtype(FORMATS[name])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    numbers = np.arange(1 << dtype.itemsize * 8, dtype=np.uint32).astype(unsigned).view(dtype)
    with np.errstate(invalid="ignore"):
        return np.unique(numbers[np.isfinite(numbers)].astype(np.float64))


def nearest(exact: Fraction, name: str) -> float:
    """Returns the number of a format that is nearest, the even one of two; of a number within its range."""
    numbers = all_finite(name)
    place = int(np.searchsorted(numbers, float(exact)))
    near = [float(number) for number in numbers[max(place - 2, 0) : place + 2]]
    dtype = FORMATS[name]
    return min(near, key=lambda number: (abs(Fraction(number) - exact), int(bits(dtype(number))) & 1))


NARROW = [name for name in FORMATS if name not in ("f32", "f64")]


@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
@settings(max_examples=examples(6), deadline=None)
def test_arithmetic_is_rounded_once_to_the_type(name: str, data: st.DataObject) -> None:
    numbers = all_finite(name)
    place = st.integers(0, len(numbers) - 1)
    dtype = FORMATS[name]
    left, right = (
        np.array([numbers[number] for number in data.draw(st.lists(place, min_size=12, max_size=12))]).astype(dtype)
        for _ in range(2)
    )
    most = Fraction(float(numbers[-1]))
    for op, model in (
        ("addf", Fraction.__add__),
        ("subf", Fraction.__sub__),
        ("mulf", Fraction.__mul__),
        ("divf", Fraction.__truediv__),
    ):
        result = everywhere(f"arith.{op} {{}}", name, name, left, right)
        for a, b, got in zip(left.tolist(), right.tolist(), result.tolist()):
            a, b = float(a), float(b)
            if op == "divf" and b == 0:
                continue
            exact = model(Fraction(a), Fraction(b))
            if abs(exact) <= most:
                assert float(got) == nearest(exact, name), (op, a, b)


@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_float64_is_rounded_once_to_narrow_types(name: str, data: st.DataObject) -> None:
    numbers = all_finite(name)
    place = data.draw(st.integers(0, len(numbers) - 2))
    tie = (numbers[place] + numbers[place + 1]) / 2
    exponent = data.draw(st.integers(-52, -20))
    value = tie * (1 + data.draw(st.sampled_from([-1, 0, 1])) * 2.0**exponent)
    result = everywhere("arith.truncf {}", "f64", name, np.array([value]))
    assert float(result[0]) == nearest(Fraction(value), name)


def test_rounding_at_the_ends() -> None:
    assert same(
        everywhere("arith.truncf {}", "f32", "f16", np.array([65519, 65520, 2.0**-25, 1e-8], np.float32)),
        np.array([65504, np.inf, 0, 0], np.float16),
    )
    assert same(
        everywhere("arith.truncf {}", "f32", "f8E4M3FN", np.array([464, 465, -1e9], np.float32)),
        np.array([448, np.nan, np.nan]).astype(FORMATS["f8E4M3FN"]),
    )
    assert same(
        everywhere("arith.truncf {}", "f32", "tf32", np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11], np.float32)),
        np.array([1, 1 + 2.0**-9], np.float32),
    )
    assert same(
        everywhere("arith.extf {}", "bf16", "f32", np.array([1.5, np.nan], FORMATS["bf16"])),
        np.array([1.5, np.nan], np.float32),
    )


def test_other_roundings_than_to_nearest_are_refused() -> None:
    with pytest.raises(StepladderError, match="with a rounding mode other than to nearest"):
        everywhere("arith.truncf {} toward_zero", "f32", "f16", np.array([1.5], np.float32))


SPECIAL = np.array(list(itertools.product([-np.inf, -1.5, -0.0, 0.0, 1.0, np.inf, np.nan], repeat=2)))


@pytest.mark.parametrize("name", FORMATS)
def test_least_and_greatest_of_special_numbers(name: str) -> None:
    left, right = (SPECIAL[:, side].astype(FORMATS[name]) for side in (0, 1))
    for op, of_two, ignores in (
        ("minimumf", min, False),
        ("maximumf", max, False),
        ("minnumf", min, True),
        ("maxnumf", max, True),
    ):
        result = everywhere(f"arith.{op} {{}}", name, name, left, right)
        for a, b, got in zip(left.astype(float), right.astype(float), result.astype(float)):
            if np.isnan(a) or np.isnan(b):
                other = b if np.isnan(a) else a
                assert np.isnan(got) if not ignores or np.isnan(other) else got == other
            else:
                wanted = of_two(a, b, key=lambda number: (number, math.copysign(1, number)))
                assert got == wanted and (ignores or math.copysign(1, got) == math.copysign(1, wanted))


def test_a_clamp_whose_bounds_are_exchanged_is_the_lower_one() -> None:
    """As upstream expands it."""
    text = """func.func @f(%x: f32, %low: f32, %high: f32) -> f32 {
      %r = math.clampf %x to [%low, %high] : f32
      return %r : f32
    }"""
    assert [run(text, *map(np.float32, (x, 3, 2)))[0] for x in (1, 2.5, 4)] == [3, 3, 3]
    assert [run(text, *map(np.float32, (x, 2, 3)))[0] for x in (1, 2.5, 4)] == [2, 2.5, 3]


@pytest.mark.parametrize(
    "predicate", ["false", *(kind + name for kind in "ou" for name in COMPARE), "ord", "uno", "true"]
)
def test_floats_compare_where_they_are_numbers(predicate: str) -> None:
    left, right = (SPECIAL[:, side].astype(np.float32) for side in (0, 1))
    result = everywhere(f"arith.cmpf {predicate}, {{}}", "f32", "i1", left, right)
    for a, b, got in zip(left.tolist(), right.tolist(), result.tolist()):
        unordered = math.isnan(a) or math.isnan(b)
        match predicate:
            case "false" | "true":
                wanted = predicate == "true"
            case "ord" | "uno":
                wanted = unordered == (predicate == "uno")
            case _:
                wanted = predicate[0] == "u" if unordered else eval(f"a {COMPARE[predicate[1:]]} b")
        assert got == wanted, (a, b)


def test_floats_beside_numpy() -> None:
    left, right = np.array([5.5, -5.5, 1e30], np.float32), np.array([2, 2, 7], np.float32)
    assert same(everywhere("arith.remf {}", "f32", "f32", left, right), np.fmod(left, right))
    assert same(
        everywhere("arith.negf {}", "f32", "f32", np.array([0.0, np.inf], np.float32)),
        np.array([-0.0, -np.inf], np.float32),
    )
    assert same(
        everywhere("arith.divf {}", "f32", "f32", np.array([1, 0, -1], np.float32), np.zeros(3, np.float32)),
        np.array([np.inf, np.nan, -np.inf], np.float32),
    )


FUNCTIONS = {
    "absf": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "erf": math.erf,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log2": math.log2,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "trunc": math.trunc,
    "roundeven": round,
    "exp2": lambda x: 2.0**x,
    "round": lambda x: math.floor(x + 0.5),
}


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
def test_functions_are_rounded_once(name: str) -> None:
    values = np.array([0.5, 1.5, 2.5, 3.25, 0.1, 7.0]).astype(FORMATS[name])
    for op, model in FUNCTIONS.items():
        result = everywhere(f"math.{op} {{}}", name, name, values)
        assert same(result, np.array([model(float(value)) for value in values]).astype(FORMATS[name])), op


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
@given(data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_fma_is_rounded_once(name: str, data: st.DataObject) -> None:
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[name]
    number = st.floats(-128, 128, width=32 if name == "bf16" else width)
    dtype = FORMATS[name]
    a, b, c = (np.array([data.draw(number)]).astype(dtype) for _ in range(3))
    if data.draw(st.booleans()):
        c = (-(a.astype(np.float64) * b.astype(np.float64))).astype(dtype)  # what is left is small
    exact = Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(c[0]))
    result = float(everywhere("math.fma {}", name, name, a, b, c)[0])
    if name in NARROW:
        assert abs(exact) > float(all_finite(name)[-1]) or result == nearest(exact, name)
    elif name == "f64":
        assert result == float(exact)
    else:
        around = [float(np.nextafter(np.float32(result), np.float32(way))) for way in (-np.inf, np.inf)]
        error = abs(Fraction(result) - exact)
        assert all(error <= abs(Fraction(other) - exact) for other in around if math.isfinite(other))


def test_fma_beyond_the_largest_number() -> None:
    largest = np.array([1e308, -1e308])
    result = everywhere("math.fma {}", "f64", "f64", largest, np.full(2, 1e300), np.zeros(2))
    assert result.tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_normal_numbers(name: str) -> None:
    dtype = np.dtype(FORMATS[name])
    least = (np.finfo if dtype.kind == "f" else ml_dtypes.finfo)(dtype).smallest_normal
    numbers = np.array([0, 1, -2, np.inf, np.nan, least, -least / 2], dtype)
    (found,) = run(
        function({"x": f"vector<7x{name}>"}, f"%r = math.isnormal %x : vector<7x{name}>", "vector<7xi1>"), numbers
    )
    assert list(found) == [False, True, True, False, False, True, False]


def test_a_power_of_one_half_is_no_square_root() -> None:
    """NumPy's `**` takes the square root of all numbers where the exponent is one number, 0.5."""
    body = "%h = arith.constant 0.5 : f32\n%r = math.powf %x, %h : f32"
    (roots,) = run(function({"x": "f32"}, body, "f32"), np.float32([-np.inf, -0.0, 4]), lanes=3)
    assert same(roots, np.float32([np.inf, 0.0, 2]))
