"""Comparisons with constants in f64, as comparisons of numbers of 16 and 32 bits."""

import operator

import numpy as np
import pytest

from stepladder.extension.lib.narrow_constants import exact_comparison
from stepladder.mlir.bindings import arith
from stepladder.runtime.element_types import element_type

ORDERED = {"G": operator.gt, "L": operator.lt}


def compared(predicate: arith.CmpFPredicate, numbers: np.ndarray, limit: float) -> np.ndarray:
    """Returns a comparison of arith.cmpf, such as `uge`: whether NaN is accepted, above or below, and equal ones."""
    is_unordered, kind, or_equal = predicate.name
    found = ORDERED[kind](numbers, limit) | ((numbers == limit) & (or_equal == "E"))
    return np.where(np.isnan(numbers), is_unordered == "U", found)


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("limit", [0.5, 0.1, -0.3, 1e-12, 1e39, -1e39, float("inf"), 65519.0])
def test_same_as_in_f64(name: str, limit: float) -> None:
    with np.errstate(invalid="ignore"):  # of signaling NaN
        every = np.arange(1 << 16, dtype=np.uint16).view(element_type(name).dtype).astype(np.float64)
    for predicate in arith.CmpFPredicate:
        if predicate.name[1] not in ORDERED:
            continue
        found = exact_comparison(int(predicate), limit, name)
        assert found is not None
        narrow, number = found
        assert float(np.asarray(number).astype(element_type(name).dtype)) == number
        np.testing.assert_array_equal(
            compared(arith.CmpFPredicate(narrow), every, number), compared(predicate, every, limit)
        )


def test_equality_with_what_is_no_number_of_the_type_stays() -> None:
    assert exact_comparison(int(arith.CmpFPredicate.OEQ), 0.1, "f16") is None
    assert exact_comparison(int(arith.CmpFPredicate.OEQ), 0.5, "f16") == (int(arith.CmpFPredicate.OEQ), 0.5)
