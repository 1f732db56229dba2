"""Functions that the dialect math does not have, of functions that it has, for arrays of any library.

Arrays have the operators of Python, and elements of f32 or f64; a `Functions` has the functions of their library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

# An array of any library, or a scalar.
Array = Any


class Functions(Protocol):
    """Functions of arrays."""

    def where(self, condition: Array, x: Array, y: Array, /) -> Array:
        """Returns elements of `x` where a condition is true, and of `y` elsewhere.

        Args:
            condition: booleans.
            x: elements; `y`: others.
        """
        ...

    def exp(self, x: Array, /) -> Array:
        """Returns e to the power of each element.

        Args:
            x: elements.
        """
        ...

    def log(self, x: Array, /) -> Array:
        """Returns logarithms.

        Args:
            x: elements.
        """
        ...

    def log1p(self, x: Array, /) -> Array:
        """Returns logarithms of 1 + x.

        Args:
            x: elements.
        """
        ...

    def sqrt(self, x: Array, /) -> Array:
        """Returns square roots.

        Args:
            x: elements.
        """
        ...

    def abs(self, x: Array, /) -> Array:
        """Returns absolute values.

        Args:
            x: elements.
        """
        ...

    def floor(self, x: Array, /) -> Array:
        """Returns the next integers below.

        Args:
            x: elements.
        """
        ...

    def sin(self, x: Array, /) -> Array:
        """Returns sines.

        Args:
            x: elements.
        """
        ...

    def cos(self, x: Array, /) -> Array:
        """Returns cosines.

        Args:
            x: elements.
        """
        ...

    def erf(self, x: Array, /) -> Array:
        """Returns the error function.

        Args:
            x: elements.
        """
        ...


# Lanczos' approximation of the gamma function, of g = 7 and nine terms.
_G = 7.0
_FIRST = 0.99999999999980993227684700473478
_LANCZOS = (
    *(676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894),
    *(-176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707),
    *(9.984369578019570859563e-6, 1.50563273514931155834e-7),
)
# Cephes' erfc(x) exp(x²) of x >= 1: fractions of polynomials, to 8 and beyond.
_NEAR = (
    *(2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1),
    *(1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3),
    5.57535335369399327526e2,
)
_NEAR_BELOW = (
    *(1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2),
    *(1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2),
)
_FAR = (
    *(5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053585195),
    *(7.40974269950448939160, 2.97886665372100240670),
)
_FAR_BELOW = (
    *(1.0, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1, 1.70814450747565897222e1),
    *(9.60896809063285878198, 3.36907645100081516050),
)
# Of an x beyond which erfc is 0 in f64.
_NOTHING = 28.0
# Giles' polynomials of the inverse error function, in w - 2.5 and sqrt(w) - 3 of w = -log(1 - x²).
_CENTRAL = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
    *(-0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613),
    *(0.00943887047, 1.00167406, 2.83297682),
)
# Of the asymptotic series of the digamma function in 1 / x², and from where on it is used.
_DIGAMMA = (-1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)
_LARGE = 8


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Returns a polynomial, whose coefficients begin with that of the highest power."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def lgamma(x: Array, functions: Functions) -> Array:
    """Returns the logarithm of the absolute value of the gamma function.

    Args:
        x: f32 or f64 values.
        functions: of their library.
    """
    is_left, size = x < 0.5, functions.abs(x)
    z = functions.where(is_left, -x, x - 1.0)
    series = 1.0 / (z + 1.0) * _LANCZOS[0] + _FIRST
    for place, coefficient in enumerate(_LANCZOS[1:], 2):
        series = series + 1.0 / (z + float(place)) * coefficient
    log_base = functions.log1p(z / (_G + 0.5)) + math.log(_G + 0.5)
    power = (z + 0.5 - (z + (_G + 0.5)) / log_base) * log_base
    right = power + functions.log(series) + 0.5 * math.log(2 * math.pi)
    # By the reflection, with the sine of what is left of the next integer.
    rest = size - functions.floor(size)
    rest = functions.where(rest > 0.5, 1.0 - rest, rest)
    left = math.log(math.pi) - functions.log(functions.sin(rest * math.pi)) - right
    is_infinite = ((x <= 0.0) & (rest <= 0.0)) | (size >= math.inf)
    return functions.where(is_infinite, math.inf, functions.where(is_left, left, right))


def digamma(x: Array, functions: Functions) -> Array:
    """Returns the derivative of the logarithm of the gamma function; NaN of negative integers.

    Args:
        x: f32 or f64 values.
        functions: of their library.
    """
    is_left = x < 0.0
    z = functions.where(is_left, 1.0 - x, x)
    reciprocals = functions.where(z < 0.0, z, 0.0)
    for _ in range(_LARGE):
        is_small = z < float(_LARGE)
        reciprocals = functions.where(is_small, reciprocals - 1.0 / z, reciprocals)
        z = functions.where(is_small, z + 1.0, z)
    inverse = 1.0 / (z * z)
    series = _polynomial(inverse, _DIGAMMA) * inverse
    right = reciprocals + functions.log(z) - 0.5 / z + series
    # By the reflection, with the cotangent of what is left of the integer below.
    rest = x - functions.floor(x)
    cotangent = functions.cos(rest * math.pi) / functions.sin(rest * math.pi)
    left = functions.where(rest <= 0.0, math.nan, right - cotangent * math.pi)
    result = functions.where(is_left, left, right)
    return functions.where(functions.abs(x) <= 0.0, -1.0 / x, result)


def erfc(x: Array, functions: Functions, split: float) -> Array:
    """Returns 1 - erf(x), exact in relation to its size.

    Args:
        x: f32 or f64 values.
        functions: of their library.
        split: 2^s + 1, of s bits that are half of those of a number of the type.
    """
    size = functions.abs(x)
    is_small, is_far, is_none = size < 1.0, size >= 8.0, size >= _NOTHING
    y = functions.where(is_small | is_none, 1.0, size)
    near = _polynomial(y, _NEAR) / _polynomial(y, _NEAR_BELOW)
    far = _polynomial(y, _FAR) / _polynomial(y, _FAR_BELOW)
    # The square of the high half is exact, and what is left is small.
    product = y * split
    high = product - (product - y)
    power = functions.exp(-(high * high)) * functions.exp(-((y - high) * (y + high)))
    tail = functions.where(is_none, 0.0, power * functions.where(is_far, far, near))
    tail = functions.where(x < 0.0, 2.0 - tail, tail)
    return functions.where(is_small, 1.0 - functions.erf(x), functions.where(size >= 0.0, tail, x))


def erfinv(x: Array, functions: Functions, steps: int) -> Array:
    """Returns the inverse of the error function; beyond -1 and 1, NaN.

    Args:
        x: f32 or f64 values.
        functions: of their library.
        steps: of Newton's method, after an approximation of f32.
    """
    size = functions.abs(x)
    y = functions.where(size < 1.0, x, 0.0)
    w = -functions.log((1.0 - y) * (1.0 + y))
    is_central = w < 5.0
    tail = _polynomial(functions.sqrt(functions.where(is_central, 9.0, w)) - 3.0, _TAIL)
    result = functions.where(is_central, _polynomial(w - 2.5, _CENTRAL), tail) * y
    for _ in range(steps):
        slope = functions.exp(-(result * result)) * (2 / math.sqrt(math.pi))
        result = result - (functions.erf(result) - y) / slope
    return functions.where(size < 1.0, result, x / functions.sqrt(1.0 - size))  # infinite at 1, NaN beyond
