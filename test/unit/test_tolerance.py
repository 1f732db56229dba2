"""Bounds of sums: they hold for products with a mean, are exceeded by wrong sums, and stay as they are without one."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from combinations import SEED
from stepladder.runtime.problem import EpilogueOperand, Problem
from stepladder.verify import arrays
from stepladder.verify.inputs import random_inputs
from stepladder.verify.tolerance import Tolerance
from test_epilogues import WARPS, check

K, ELEMENTS, STEP = 1024, 400, 4
PROBLEM = Problem(m=1, n=1, k=K, a_type="f16", b_type="f16", acc_type="f16", c_type="f16", accumulate=False)


def products(mean: float) -> np.ndarray:
    """Returns products of positive numbers, or of both signs, whose sums f16 can hold."""
    generator = np.random.default_rng(SEED)
    numbers = generator.uniform(0, 15, (ELEMENTS, K)) * np.maximum(generator.standard_normal((ELEMENTS, K)), mean - 1)
    if not mean:
        numbers = numbers * generator.choice((-1, 1), numbers.shape)
    return numbers / 64


def sums_in_f16(numbers: np.ndarray) -> np.ndarray:
    """Returns the sums as the first tensor cores have them: four products, and a rounding."""
    total = np.zeros(ELEMENTS, np.float16)
    for step in range(0, K, STEP):
        total = (total + numbers[:, step : step + STEP].sum(1)).astype(np.float16)
    return total.astype(np.float64)


def ratio(numbers: np.ndarray, got: np.ndarray) -> float:
    """Returns the largest error in units of the bound."""
    tolerance = Tolerance.of(PROBLEM)
    expected = numbers.sum(1)
    bound = tolerance.of_sum(np.sqrt((numbers**2).sum(1)), expected, arrays.NumPyArrays())
    return float((np.abs(got - expected) / bound).max())


def test_sums_with_a_mean_are_within_the_bound() -> None:
    numbers = products(1.0)
    tolerance, root = Tolerance.of(PROBLEM), np.sqrt((numbers**2).sum(1))
    got = sums_in_f16(numbers)
    error = np.abs(got - numbers.sum(1))
    assert (error > tolerance.element * root / 3).any(), "errors of a walk without a drift are far smaller"
    assert 0.05 < ratio(numbers, got) < 1


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_wrong_sums_are_beyond_the_bound(mean: float) -> None:
    """Of which a 16th of the products is left out, or partial sums are rounded to three bits less."""
    numbers = products(mean)
    left_out = np.where(np.arange(K) < K // 16, 0, numbers)
    assert ratio(numbers, sums_in_f16(left_out)) > 1
    if mean:
        coarse = np.zeros(ELEMENTS, ml_dtypes.bfloat16)
        for step in range(0, K, STEP):
            coarse = (coarse.astype(float) + numbers[:, step : step + STEP].sum(1)).astype(ml_dtypes.bfloat16)
        assert ratio(numbers, coarse.astype(np.float64)) > 1


def test_sums_without_a_mean_keep_their_bound() -> None:
    numbers = products(0.0)
    tolerance, root, total = Tolerance.of(PROBLEM), np.sqrt((numbers**2).sum(1)), numbers.sum(1)
    usual = np.abs(total) < 4 * root
    assert usual.mean() > 0.99
    np.testing.assert_array_equal(
        tolerance.of_sum(root, total, arrays.NumPyArrays())[usual], (tolerance.element * root)[usual]
    )


def test_a_sum_in_f32_drifts_by_less_than_a_unit_each_product() -> None:
    """Sums of numbers with a mean are off by a part of what cutting off a bit for each product would cost."""
    problem = replace(PROBLEM, acc_type="f32", c_type="f32")
    one, mean = np.ones(1), np.full(1, 1000.0)
    bound = Tolerance.of(problem).of_sum(one, mean, arrays.NumPyArrays())[0]
    assert 0.1 < bound / (K * 2.0**-23 * mean[0]) < 1


MAGNITUDES_IN_BF16 = """func.func @matmul(%A: tensor<24x40xbf16>, %B: tensor<40x32xbf16>, %C: tensor<24x32xbf16>)
    -> tensor<24x32xbf16> {
  %p = linalg.matmul ins(%A, %B : tensor<24x40xbf16>, tensor<40x32xbf16>) outs(%C : tensor<24x32xbf16>)
      -> tensor<24x32xbf16>
  %m = linalg.abs ins(%p : tensor<24x32xbf16>) outs(%C : tensor<24x32xbf16>) -> tensor<24x32xbf16>
  return %m : tensor<24x32xbf16>
}
"""


def test_a_product_in_bf16_is_rounded_before_the_ops_behind_it() -> None:
    """Sums of f32 are rounded to bf16 once, by no op of the reference."""
    check(MAGNITUDES_IN_BF16, "mma_sync", WARPS, levels="last")


@pytest.mark.parametrize("k", [48, 8192])
def test_sums_of_products_of_integers_in_f16_are_finite(k: int) -> None:
    source = EpilogueOperand("i8", (64, 64))
    problem = replace(PROBLEM, k=k, a_source=source, b_source=source, producers=("arith.sitofp",) * 2)
    drawn = [array.astype(np.float64) for array in random_inputs(problem, 0)[:2]]
    deviation = np.sqrt(k * np.prod([np.mean(array**2) for array in drawn]))
    assert 6 * deviation < np.finfo(np.float16).max
