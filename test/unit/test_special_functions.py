"""Functions of special numbers, on arrays of NumPy."""

import math

import numpy as np
import pytest

from stepladder.payload import special_functions


class Functions:
    where = staticmethod(lambda condition, x, y: np.where(condition, x, y).astype(np.result_type(np.float32, x, y)))
    exp, log, log1p, sqrt = np.exp, np.log, np.log1p, np.sqrt
    abs, floor, sin, cos = np.abs, np.floor, np.sin, np.cos
    erf = staticmethod(lambda x: np.vectorize(math.erf)(x).astype(x.dtype))


FUNCTIONS = Functions()


def _near(got: np.ndarray, wanted: list[float], type_: type) -> None:
    tolerance = 16 * float(np.finfo(type_).eps)
    assert got.dtype == type_
    np.testing.assert_allclose(got, np.array(wanted), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("type_", [np.float32, np.float64])
def test_lgamma(type_: type) -> None:
    x = np.array([0.25, 0.5, 1, 1.5, 2, 7, 33.5, 1e4, -0.5, -3.25, 0, -0.0, -2, np.inf, -np.inf, np.nan], type_)
    with np.errstate(all="ignore"):
        got = special_functions.lgamma(x, FUNCTIONS)
    wanted = [math.inf if each <= 0 and each == math.floor(each) else math.lgamma(each) for each in x[:-3].tolist()]
    _near(got, [*wanted, math.inf, math.inf, math.nan], type_)


@pytest.mark.parametrize("type_", [np.float32, np.float64])
def test_digamma(type_: type) -> None:
    """At whole numbers, the sum of reciprocals without Euler's constant."""
    gamma = 0.57721566490153286
    x = np.array([1, 2, 5, 20, 0.5, -0.5, 0, -0.0, -1, np.inf, -np.inf, np.nan], type_)
    with np.errstate(all="ignore"):
        got = special_functions.digamma(x, FUNCTIONS)
    wanted = [sum(1 / k for k in range(1, n)) - gamma for n in (1, 2, 5, 20)]
    half = -gamma - 2 * math.log(2)
    _near(got, [*wanted, half, half + 2, -math.inf, *(math.inf, math.nan, math.inf, math.nan, math.nan)], type_)


@pytest.mark.parametrize("type_, split", [(np.float32, 4097.0), (np.float64, 134217729.0)])
def test_erfc_is_exact_in_relation_to_its_size(type_: type, split: float) -> None:
    x = np.linspace(-6, 9, 301).astype(type_)
    with np.errstate(all="ignore"):
        got = special_functions.erfc(x, FUNCTIONS, split)
        ends = special_functions.erfc(np.array([40, -40, np.inf, -np.inf, np.nan], type_), FUNCTIONS, split)
    wanted = np.array([math.erfc(each) for each in x.tolist()])
    assert np.abs(got / wanted - 1).max() <= 64 * np.finfo(type_).eps
    assert np.array_equal(ends, [0, 2, 0, 2, np.nan], equal_nan=True)


@pytest.mark.parametrize("type_, steps", [(np.float32, 0), (np.float64, 2)])
def test_erfinv(type_: type, steps: int) -> None:
    y = np.linspace(-2.5, 2.5, 101)
    x = np.array([math.erf(each) for each in y.tolist()])
    with np.errstate(all="ignore"):
        got = special_functions.erfinv(x.astype(type_), FUNCTIONS, steps)
        ends = special_functions.erfinv(np.array([1, -1, 1.5, np.inf, np.nan], type_), FUNCTIONS, steps)
    # What a rounding of x changes, by the slope there.
    slope = np.exp(y * y) * math.sqrt(math.pi) / 2
    assert np.all(np.abs(got - y) <= 8 * np.finfo(type_).eps * (np.abs(y) + slope))
    assert np.array_equal(ends, [np.inf, -np.inf, np.nan, np.nan, np.nan], equal_nan=True)
