"""Extreme integers, NaN, infinities and subnormal numbers: kernels give what NumPy computes, on all pipelines."""

from __future__ import annotations

import random

import numpy as np
import pytest

import stepladder
from combinations import SEED, sample
from emulator_ops import FORMATS
from stepladder.payload.writing import matmul_text
from test_types import LAYOUTS

TARGETS = {"wmma": "sm_80", "mma_sync": "sm_89", "wgmma": "sm_90a"}
# Types of A, B and the sums, with the pipelines that multiply them.
TYPES = {
    ("i8", "i8", "i32"): TARGETS,
    ("f16", "f16", "f32"): TARGETS,
    ("bf16", "bf16", "f32"): TARGETS,
    ("f64", "f64", "f64"): ("mma_sync",),
    ("f8E5M2", "f8E5M2", "f32"): ("mma_sync", "wgmma"),
    ("f8E4M3FN", "f8E5M2", "f32"): ("wgmma",),
}
CASES = [(pipeline, types) for types, pipelines in TYPES.items() for pipeline in pipelines]
_SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f64": 2.0**-1074, "f8E5M2": 2.0**-16, "f8E4M3FN": 2.0**-9}


def values(rng: np.random.Generator, type_: str, shape: tuple[int, int]) -> np.ndarray:
    """Returns small numbers, among them those that tests forget."""
    if type_ == "i8":
        return rng.choice([-128, 127, -1, 0, 93], shape).astype(np.int8)
    array = rng.integers(-8, 9, shape) / 4
    special = [np.nan, -0.0, 3 * _SMALLEST[type_], *([] if type_ == "f8E4M3FN" else [np.inf, -np.inf])]
    return np.where(rng.random(shape) < 0.06, rng.choice(special, shape), array).astype(FORMATS[type_])


@pytest.mark.parametrize("pipeline, types", sample(CASES, 4))
def test_special_values(pipeline: str, types: tuple[str, str, str]) -> None:
    drawn, rng = random.Random(f"{SEED} {pipeline} {types}"), np.random.default_rng(SEED)
    m, n, k = (drawn.choice((1, 7, 16, 33)) for _ in "mnk")
    a_layout, b_layout = drawn.choice(LAYOUTS)
    a_type, b_type, sums = types
    text = matmul_text(
        m, n, k, a_type=a_type, b_type=b_type, acc_type=sums, c_type=sums, a_layout=a_layout, b_layout=b_layout
    )
    print(text)
    a, b = values(rng, a_type, (m, k)), values(rng, b_type, (k, n))
    c = rng.choice([2**31 - 1, -(2**31), 5], (m, n)) if sums == "i32" else rng.integers(-9, 9, (m, n))
    c = c.astype({"i32": np.int32, "f32": np.float32, "f64": np.float64}[sums])
    kernel = stepladder.compile(text, pipeline=pipeline, target=TARGETS[pipeline], device="emulator")
    given = (a if a_layout == "row" else a.T.copy(), b if b_layout == "row" else b.T.copy())
    got = kernel(*given, c.copy())
    wide = np.int64 if sums == "i32" else np.float64
    with np.errstate(invalid="ignore"):
        exact = (a.astype(wide)[:, :, None] * b.astype(wide)[None]).sum(1) + c
        wanted = exact.astype(np.int32) if sums == "i32" else exact
    # All other sums are exact but for the subnormal numbers.
    np.testing.assert_allclose(got.astype(wide), wanted, rtol=0, atol=0 if sums == "i32" else 1e-6)
