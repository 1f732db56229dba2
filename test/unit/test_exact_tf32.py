"""Products of f16 and bf16, which fit in tf32: one product of tf32 each, exact, on `mma_sync` and `wgmma`."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from conftest import make_problem
from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import Bundle
from stepladder.verify.tolerance import Tolerance

pytestmark = pytest.mark.usefixtures("needs_ptxas")

M, N, K = 32, 24, 40


def _text(a: str, b: str) -> str:
    return f"""func.func @mixed(%a: tensor<{M}x{K}x{a}>, %b: tensor<{K}x{N}x{b}>) -> tensor<{M}x{N}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{M}x{N}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32>
  %c = linalg.matmul ins(%a, %b : tensor<{M}x{K}x{a}>, tensor<{K}x{N}x{b}>)
    outs(%zeros : tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32>
  return %c : tensor<{M}x{N}xf32>
}}
"""


def _built(pipeline: str, a: str, b: str) -> FunctionBuild:
    target = "sm_90a" if pipeline == "wgmma" else "sm_80"
    with mlir_context():
        made = build_any(_text(a, b), "mixed", Request(pipeline, {"target": target}, tuned=True))
    assert isinstance(made, FunctionBuild)
    return made


def _matmul(made: FunctionBuild) -> Bundle:
    return made.bundle.matmul(next(launch for launch in made.bundle.manifest.launches if launch.kernel is None))


@pytest.mark.parametrize("pipeline", ["mma_sync", "wgmma"])
def test_one_product(pipeline: str) -> None:
    made = _built(pipeline, "f16", "bf16")
    matmul = _matmul(made)
    assert matmul.manifest.problem.fits_tf32
    assert matmul.manifest.knobs["allow_tf32"]
    a = np.random.default_rng(0).integers(0, 1 << 16, (M, K), np.uint16).view(np.float16)
    b = np.random.default_rng(1).integers(0, 1 << 16, (K, N), np.uint16).view(ml_dtypes.bfloat16)
    # One product an element: all numbers of both types, subnormal ones, infinities and NaN among them.
    b[np.arange(K)[:, None] != np.arange(N)[None, :]] = 0
    a[~np.isfinite(a)] = 1.0
    a[3, :N], a[4, 5], a[5, 6] = np.arange(1, N + 1, dtype=np.uint16).view(np.float16), np.inf, np.nan
    b[np.arange(8), np.arange(8)] = np.arange(1, 9, dtype=np.uint16).view(ml_dtypes.bfloat16)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = a.astype(np.float32) @ b.astype(np.float32)
        (got,) = EmulatedFunction(made.bundle).run({0: a, 1: b})
    np.testing.assert_array_equal(got, expected)


def test_three_products_where_a_number_may_not_fit() -> None:
    matmul = _matmul(_built("mma_sync", "f16", "f32"))
    assert not matmul.manifest.problem.fits_tf32
    assert not matmul.manifest.knobs["allow_tf32"]


def test_tolerance() -> None:
    problem = make_problem(64, 64, 4096, inputs="f32", fits_tf32=True)
    assert Tolerance.of(problem) == Tolerance.of(make_problem(64, 64, 4096, inputs="f16"))
    assert Tolerance.of(problem).norm < Tolerance.of(dataclasses.replace(problem, compute_type="tf32")).norm
