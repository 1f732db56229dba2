"""Sigmoids and GELU by the hardware's approximations: how far they are from NumPy, and where they are computed."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from combinations import combinations
from epilogue_payloads import payload
from stepladder.extension.lib.epilogues import gelu
from stepladder.extension.ops import approximate_math, balance_reciprocals
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from test_epilogues import DIRECT, PIPELINES, SIZES, check

# A sigmoid that is rounded to f16, and a result of f32 that is made of it.
SIGMOID_BETWEEN = """
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<40x40xf16>, %b: tensor<40x72xf16>) -> tensor<40x72xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<40x72xf32>
  %h = tensor.empty() : tensor<40x72xf16>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<40x72xf32>) -> tensor<40x72xf32>
  %p = linalg.matmul ins(%a, %b : tensor<40x40xf16>, tensor<40x72xf16>) outs(%z : tensor<40x72xf32>)
    -> tensor<40x72xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<40x72xf32>) outs(%h : tensor<40x72xf16>) {
  ^bb0(%x: f32, %o: f16):
    %n = arith.negf %x : f32
    %x1 = math.exp %n : f32
    %x2 = arith.addf %x1, %one : f32
    %y = arith.divf %one, %x2 : f32
    %t = arith.truncf %y : f32 to f16
    linalg.yield %t : f16
  } -> tensor<40x72xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<40x72xf16>) outs(%e : tensor<40x72xf32>) {
  ^bb0(%x: f16, %o: f32):
    %y = arith.extf %x : f16 to f32
    linalg.yield %y : f32
  } -> tensor<40x72xf32>
  return %r : tensor<40x72xf32>
}
"""
F32 = np.float32
UNIT = 2.0**-24
FUSION = (Path(__file__).resolve().parents[2] / "docs" / "fusion.md").read_text()


def rounded(values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Returns what an approximation of f32 may give: values with relative errors, subnormal numbers flushed."""
    with np.errstate(over="ignore"):
        near = (values * (1 + errors)).astype(F32)
    return np.where(np.abs(near) < 2.0**-126, F32(0), near)


def one_over_one_plus_exp2(exponent: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Models `rcp.approx.ftz(1 + ex2.approx.ftz(y))`: relative errors of 2^-22 and 2^-23 (PTX ISA), at their worst."""
    with np.errstate(over="ignore"):
        powers = np.exp2(exponent.astype(np.float64))
        powers = rounded(powers, draw.choice([-1.0, 1.0], powers.shape) * 2.0**-22)
        total = (F32(1) + powers).astype(np.float64)
    return rounded(1 / total, draw.choice([-1.0, 1.0], total.shape) * 2.0**-23)


def drawn_operands() -> tuple[np.ndarray, np.random.Generator]:
    """Returns numbers of f32 of all magnitudes, dense where functions bend, and a generator."""
    draw = np.random.default_rng(0)
    small = np.exp2(draw.uniform(-60, 6.4, 1 << 15)) * draw.choice([-1, 1], 1 << 15)
    return np.concatenate([small, draw.uniform(-12, 12, 1 << 16), np.linspace(-87, 87, 1 << 12)]).astype(F32), draw


def test_error_of_the_sigmoid() -> None:
    """(8 + 1.5 |y|) 2^-24 relative, and 2^-126 where the reciprocal is flushed."""
    x, draw = drawn_operands()
    exponent = (x * F32(-1 / np.log(2))).astype(F32)
    got = one_over_one_plus_exp2(exponent, draw).astype(np.float64)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    bound = (8 + 1.5 * np.abs(exponent)) * UNIT * exact + 2.0**-126
    assert (np.abs(got - exact) <= bound).all()
    near_bound = np.abs(got - exact)[exact > 1e-30] / exact[exact > 1e-30]
    assert near_bound.max() > 4 * UNIT  # the model has errors


@pytest.mark.parametrize("name, bits", [("f16", 11), ("bf16", 8)])
def test_gelu_is_right_to_within_its_rounding(name: str, bits: int) -> None:
    """x / (1 + exp2(-2 u log2 e)) is within a 2^-8 part of what rounding to 16 bits may add, down to tiny results."""
    x, draw = drawn_operands()
    square = (x * x).astype(F32)
    inner = (x + x * square * F32(0.044715)).astype(F32)
    exponent = (inner * F32(0.7978845608 * -2 / np.log(2))).astype(F32)
    with np.errstate(under="ignore"):
        got = (x * one_over_one_plus_exp2(exponent, draw)).astype(np.float64)
    wide = x.astype(np.float64)
    argument = 2 * 0.7978845608 * (wide + 0.044715 * wide**3)
    with np.errstate(over="ignore"):
        exact = wide / (1 + np.exp(-argument))
    compared = np.abs(exact) > 2.0**-24  # the smallest number of f16
    error = np.abs(got - exact)[compared] / np.abs(exact)[compared]
    # u and its scaling round a few times: each is (|y| ln 2) units of the result.
    assert (error <= (10 + 4 * np.abs(exponent[compared])) * UNIT).all()
    assert error[np.abs(x[compared]) < 4].max() < 2.0**-bits / 16, name


def test_error_of_a_balanced_reciprocal() -> None:
    """2^-19 relative up to 2^126, beyond which the result is tiny; that of an infinity is 0, and NaN stays NaN."""
    draw = np.random.default_rng(0)
    dense = np.exp2(np.linspace(0, 1, 1 << 16))
    divisors = np.concatenate([dense / 2, dense, dense * 2, np.exp2(draw.uniform(-1, 125, 1 << 15))]).astype(F32)
    extremes = np.array([2.0**126, 2.0**127, np.inf, np.nan], F32)
    limited = np.minimum(np.concatenate([divisors, extremes]), F32(balance_reciprocals._LARGEST))
    estimate = (np.uint32(balance_reciprocals._MAGIC) - limited.view(np.uint32)).view(F32)
    estimate = np.where(np.abs(estimate) < 2.0**-126, F32(0), estimate)
    for two in (balance_reciprocals._FIRST, balance_reciprocals._SECOND):
        rest = (F32(two).astype(np.float64) - limited.astype(np.float64) * estimate).astype(F32)
        estimate = (estimate * rest).astype(F32)
    error = np.abs(divisors.astype(np.float64) * estimate[: divisors.size] - 1)
    assert 2.0**-20.5 < error.max() <= 2.0**-19
    assert (np.abs(estimate[divisors.size : -1]) <= 2.0**-125).all() and np.isnan(estimate[-1])
    assert estimate[-3] == estimate[-2] == 0


def test_error_of_erf() -> None:
    """Half of erfc, from which both sides of GELU by erf follow, has a relative error of 2^-17 up to tiny results."""
    v, draw = drawn_operands()
    v = np.abs(v[np.abs(v) < 9])
    exact = np.array([math.erfc(item) for item in v.tolist()]) / 2
    part = rounded(
        1 / (1 + approximate_math._ERFC_SCALE * v.astype(np.float64)), draw.choice([-1, 1], v.shape) * 2.0**-22
    )
    total = np.full(v.shape, approximate_math._ERFC[-1] / 2, F32)
    for coefficient in reversed(approximate_math._ERFC[:-1]):
        total = (total * part + F32(coefficient / 2)).astype(F32)
    exponent = ((v * v).astype(F32) * F32(-1 / np.log(2))).astype(F32)
    power = rounded(np.exp2(exponent.astype(np.float64)), draw.choice([-1, 1], v.shape) * 2.0**-22)
    got = ((total * part).astype(F32) * power).astype(np.float64)
    error = np.abs(got - exact) / exact
    assert (error <= 2.0**-17 + 3 * np.abs(exponent) * UNIT).all()
    assert error.max() > 2.0**-18


def gelu_by_erf(x: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Models what `gelu.create_gelu` creates, with `ex2.approx` at its worst error."""
    half = x * F32(0.5)
    limited = np.minimum(np.abs(half), F32(gelu.LIMIT))
    exponent = np.full(x.shape, gelu.COEFFICIENTS[-1], F32)
    for coefficient in reversed(gelu.COEFFICIENTS[:-1]):
        exponent = (exponent.astype(np.float64) * limited + F32(coefficient)).astype(F32)
    power = rounded(np.exp2(exponent.astype(np.float64)), draw.choice([-1, 1], x.shape) * 2.0**-22)
    positive = (half + np.abs(half)).astype(np.float64)
    return (positive - limited.astype(np.float64) * power).astype(F32)


def test_error_of_gelu_by_erf() -> None:
    """2^-17 T or 2^-32 of T, and a rounding; beyond the limit less than f16 keeps."""
    x, draw = drawn_operands()
    tail = np.array([math.erfc(abs(item) / math.sqrt(2)) / 2 for item in x.tolist()])
    got, wide = gelu_by_erf(x, draw).astype(np.float64), x.astype(np.float64)
    error = np.abs(got - (np.maximum(wide, 0) - np.abs(wide) * tail))
    inside = np.abs(x) < 2 * gelu.LIMIT
    assert (error <= np.abs(wide) * np.maximum(tail * 2.0**-17, 2.0**-32) + np.abs(got) * UNIT)[inside].all()
    assert error[(x > -3) & (x < -2)].max() > 2.0**-24  # the model has errors
    assert (error <= 2.0**-26 + np.abs(got) * UNIT)[~inside].all()
    with np.errstate(invalid="ignore"):
        extremes = gelu_by_erf(np.array([np.inf, -np.inf, np.nan], F32), draw)
    assert extremes[0] == np.inf and np.isnan(extremes[1:]).all()


GELU_BY_ERF = """
func.func @f(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant {root} : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %h = tensor.empty() : tensor<64x64xf16>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>)
    -> tensor<64x64xf32>
  %s = linalg.map ins(%p : tensor<64x64xf32>) outs(%h : tensor<64x64xf16>) (%x: f32, %o: f16) {{
    %u = {argument} %x, %root : f32
    %t = math.erf %u : f32
    %s = arith.addf %t, %one : f32
    {product}
    %r = arith.truncf %g : f32 to f16
    linalg.yield %r : f16
  }}
  return %s : tensor<64x64xf16>
}}
"""
HALVED_LATER = "%i = arith.mulf %x, %s : f32\n    %g = arith.mulf %half, %i : f32"
HALVED_FIRST = "%i = arith.mulf %s, %half : f32\n    %g = arith.mulf %i, %x : f32"


@pytest.mark.parametrize(
    ("root", "argument", "product", "is_gelu"),
    [
        (1.41421354, "arith.divf", HALVED_LATER, True),
        (0.707106769, "arith.mulf", HALVED_FIRST, True),
        (0.7071, "arith.mulf", HALVED_FIRST, False),
        (0.707106769, "arith.mulf", "%i = arith.mulf %s, %half : f32\n    %g = arith.mulf %i, %u : f32", False),
    ],
    ids=["quotient", "product", "another constant", "another factor"],
)
def test_which_values_are_gelu(root: float, argument: str, product: str, is_gelu: bool) -> None:
    text = GELU_BY_ERF.format(root=root, argument=argument, product=product)
    knobs = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
    with mlir_context():
        steps = run_pipeline(text, "p.mlir", Request("mma_sync", knobs, through="approximate_math")).steps
    assert "math.erf" not in steps[-1].text and ("arith.divf" not in steps[-1].text) == is_gelu
    if root != 0.7071:
        check(text, "mma_sync", knobs, levels="last")


@pytest.mark.parametrize("where, kind", combinations(PIPELINES, ["bias_gelu", "silu", "gelu_erf"]))
def test_right_on_every_pipeline(where: str, kind: str) -> None:
    pipeline, knobs = PIPELINES[where]
    stored = "bf16" if where in ("mma_sync", "wgmma, TMA") else "f16"
    check(payload(kind, *SIZES[pipeline], stored=stored), pipeline, knobs, levels="last")


def ops_of(kind: str, stored: str, **knobs: str) -> str:
    with mlir_context():
        run = run_pipeline(payload(kind, *SIZES["wgmma"], stored=stored), "p.mlir", Request("wgmma", DIRECT | knobs))
    return next(step.text for step in run.steps if step.name == "direct_store_epilogue")


@pytest.mark.parametrize(
    ("text", "is_approximated"),
    [(payload("silu", 40, 72, 40, stored="f16"), True), (SIGMOID_BETWEEN, False)],
    ids=["at the end", "between"],
)
def test_a_dump_is_approximated_as_its_payload(text: str, is_approximated: bool) -> None:
    """What is rounded between the ops does not count, and what the last one rounds to does."""
    knobs = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
    with mlir_context():
        steps = run_pipeline(text, "p.mlir", Request("mma_sync", knobs)).steps
    names = [step.name for step in steps]
    assert ("approximate_math" in names) == is_approximated
    place = names.index("fuse_consumers")
    with mlir_context():
        request = Request("mma_sync", knobs, start="fuse_consumers", through=names[place + 2])
        continued = run_pipeline(steps[place - 1].text, "dump.mlir", request).steps
    assert [step.name for step in continued] == names[place : place + 3]
    assert continued[-1].text == steps[place + 2].text


def test_where_functions_are_approximated() -> None:
    assert "math.tanh" not in ops_of("bias_gelu", "f16") and "math.exp2" in ops_of("bias_gelu", "f16")
    assert "math.exp2" in ops_of("silu", "bf16") and "math.erf" not in ops_of("gelu_erf", "f16")
    for kind, stored, knobs in (
        ("bias_gelu", "f32", {}),
        ("silu", "f32", {}),
        ("bias_gelu", "f16", {"math": "libdevice"}),
        ("tanh", "f16", {}),
    ):
        assert "math.exp2" not in ops_of(kind, stored, **knobs) and "afn" not in ops_of(kind, stored, **knobs)


# Instructions on f32 for each element, as docs/fusion.md has them: by libdevice, and approximated.
COUNTS = {"bias_gelu": (26, 10), "gelu_erf": (28, 12), "silu": (10, 7)}
ROWS = {"bias_gelu": "bias and GELU by `tanh`", "gelu_erf": "GELU by `erf`", "silu": "SiLU"}
_ON_F32 = r"^\s*(?:@%p\d+ )?(?:add|sub|mul|fma|neg|abs|copysign|setp|selp|div|ex2|rcp)\.(?:\w+\.)*f32\b"


@pytest.mark.parametrize("kind", COUNTS)
def test_instructions_of_an_element(kind: str) -> None:
    counts = []
    for math_ in ("libdevice", "fast"):
        with mlir_context():
            made = build(payload(kind, 64, 64, 64, stored="f16"), "p.mlir", Request("wgmma", DIRECT | {"math": math_}))
        elements = made.manifest.knobs["block_m"] * made.manifest.knobs["block_n"] // 128
        counts.append(len(re.findall(_ON_F32, made.code.ptx, re.MULTILINE)) / elements)
    assert tuple(counts) == COUNTS[kind]
    assert re.search(rf"^\| {ROWS[kind]} \| {counts[0]:.0f}(?:,[^|]*)? \| {counts[1]:.0f} \|$", FUSION, re.MULTILINE)
