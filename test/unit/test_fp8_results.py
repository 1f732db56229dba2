"""Numbers rounded to fp8, bit by bit: in epilogues, in kernels without a matmul, and where they make A."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import stepladder
from emulator_ops import FORMATS
from stepladder.runtime.errors import StepladderError

LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
M, N, K = 32, 64, 32
_IDENTITY = "affine_map<(i, j) -> (i, j)>"


def numbers(count: int) -> np.ndarray:
    """Numbers beside the limits of both types, and all that have five bits or six, from 2^-20 to 2^17."""
    limits = [448, 449, 464, 465, -464, -480, 1e5, 57344, 61439, 61440, -61440, 65504]
    limits += [0.0, -0.0, 2**-9, 2**-10, 3 * 2**-10, 2**-6, 2**-16, 2**-17, 1e-30]
    exponents, mantissas = np.meshgrid(2.0 ** np.arange(-20, 17), np.arange(16, 32))
    drawn = np.concatenate([(exponents * mantissas / 16).ravel(), -(exponents * (mantissas + 0.5) / 16).ravel()])
    return np.resize(np.concatenate([limits, np.random.default_rng(0).permutation(drawn)]), count).astype(np.float32)


def rounding(source: str, stored: str, *, clamps: bool) -> str:
    limit = LARGEST[stored]
    clamp = f"""
    %low = arith.constant {-limit} : {source}
    %high = arith.constant {limit} : {source}
    %above = arith.maximumf %x, %low : {source}
    %y = arith.minimumf %above, %high : {source}"""
    return f"""{clamp if clamps else ""}
    %q = arith.truncf %{"y" if clamps else "x"} : {source} to {stored}
    linalg.yield %q : {stored}"""


def elementwise(operand: str, source: str, stored: str, shape: str, *, clamps: bool) -> str:
    return f"""
  %stored = tensor.empty() : tensor<{shape}x{stored}>
  %r = linalg.generic {{indexing_maps = [{_IDENTITY}, {_IDENTITY}], iterator_types = ["parallel", "parallel"]}}
      ins({operand} : tensor<{shape}x{source}>) outs(%stored : tensor<{shape}x{stored}>) {{
  ^bb0(%x: {source}, %held: {stored}):{rounding(source, stored, clamps=clamps)}
  }} -> tensor<{shape}x{stored}>"""


def quantized_product(operands: str, sums: str, stored: str, *, clamps: bool) -> str:
    c = f"tensor<{M}x{N}x{sums}>"
    ab = f"tensor<{M}x{K}x{operands}>, tensor<{K}x{N}x{operands}>"
    return f"""
func.func @layer(%a: tensor<{M}x{K}x{operands}>, %b: tensor<{K}x{N}x{operands}>) -> tensor<{M}x{N}x{stored}> {{
  %zero = arith.constant 0.0 : {sums}
  %e = tensor.empty() : {c}
  %z = linalg.fill ins(%zero : {sums}) outs(%e : {c}) -> {c}
  %p = linalg.matmul ins(%a, %b : {ab}) outs(%z : {c}) -> {c}{
        elementwise("%p", sums, stored, f"{M}x{N}", clamps=clamps)
    }
  return %r : tensor<{M}x{N}x{stored}>
}}
"""


def expected(values: np.ndarray, stored: str, *, clamps: bool) -> np.ndarray:
    limit = LARGEST[stored]
    with np.errstate(all="ignore"):
        return (np.clip(values, -limit, limit) if clamps else values).astype(FORMATS[stored]).astype(np.float32)


@pytest.mark.parametrize(
    ("pipeline", "target", "operands", "sums", "stored", "clamps"),
    [
        ("wgmma", "sm_90a", "bf16", "f32", "f8E4M3FN", False),
        ("wgmma", "sm_90a", "f16", "f16", "f8E4M3FN", True),
        ("wgmma", "sm_90a", "f32", "f32", "f8E5M2", False),
        ("mma_sync", "sm_89", "bf16", "f32", "f8E5M2", False),
        ("mma_sync", "sm_89", "f16", "f32", "f8E4M3FN", True),
        ("mma_sync", "sm_80", "bf16", "f32", "f8E4M3FN", False),
        ("wmma", "sm_80", "bf16", "f32", "f8E5M2", False),
        ("wmma", "sm_75", "f16", "f16", "f8E4M3FN", False),
    ],
)
def test_epilogues_round_as_the_payload_states(
    pipeline: str, target: str, operands: str, sums: str, stored: str, clamps: bool
) -> None:
    """The product with a matrix that has one number in a row has the numbers of B."""
    text = quantized_product(operands, sums, stored, clamps=clamps)
    kernel = stepladder.compile(text, pipeline=pipeline, target=target, device="emulator")
    with np.errstate(over="ignore"):
        b = numbers(K * N).reshape(K, N).astype(FORMATS[operands])
    b[~np.isfinite(b.astype(np.float32))] = 0
    got = kernel(np.eye(M, K).astype(FORMATS[operands]), b)
    np.testing.assert_array_equal(got.astype(np.float32), expected(b.astype(np.float32), stored, clamps=clamps))
    by_instruction = target in ("sm_89", "sm_90a")
    assert ("satfinite" in kernel.ptx) == by_instruction
    if by_instruction and clamps:
        assert "464" not in kernel.ir("lower_fp8_casts")


@pytest.mark.gpu
@pytest.mark.parametrize("stored", LARGEST)
@pytest.mark.parametrize("pipeline", ["wgmma", "mma_sync", "wmma"])
def test_a_gpu_rounds_epilogues_likewise(pipeline: str, stored: str) -> None:
    b = numbers(K * N).reshape(K, N).astype(ml_dtypes.bfloat16)
    kernel = stepladder.compile(quantized_product("bf16", "f32", stored, clamps=False), pipeline=pipeline)
    got = kernel(np.eye(M, K).astype(ml_dtypes.bfloat16), b)
    np.testing.assert_array_equal(got.astype(np.float32), expected(b.astype(np.float32), stored, clamps=False))


@pytest.mark.parametrize(
    ("source", "stored", "target"),
    [
        ("f32", "f8E4M3FN", "sm_90a"),
        ("bf16", "f8E5M2", "sm_90a"),
        ("f32", "f8E5M2", "sm_80"),
        ("f16", "f8E4M3FN", "sm_80"),
    ],
)
def test_kernels_without_a_matmul_round_any_number(source: str, stored: str, target: str) -> None:
    body = elementwise("%a", source, stored, f"{M}x{N}", clamps=False)
    text = f"func.func @f(%a: tensor<{M}x{N}x{source}>) -> tensor<{M}x{N}x{stored}> {{{body}\n"
    function = stepladder.compile(f"{text}  return %r : tensor<{M}x{N}x{stored}>\n}}", target=target, device="emulator")
    values = numbers(M * N).reshape(M, N)
    values[0, :4] = np.inf, -np.inf, np.nan, 3e38
    with np.errstate(over="ignore"):
        values = values.astype(FORMATS[source])
    wanted = expected(values.astype(np.float32), stored, clamps=False)
    np.testing.assert_array_equal(function(values).astype(np.float32), wanted)


@pytest.mark.parametrize("target", ["sm_89", "sm_90a"])
def test_activations_are_quantized_before_a_product_of_fp8(target: str) -> None:
    a, c = f"tensor<{M}x{K}xbf16>", f"tensor<{M}x{N}xf32>"
    text = f"""
func.func @linear(%a: {a}, %w: tensor<{K}x{N}xf8E4M3FN>) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %z = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}{
        elementwise("%a", "bf16", "f8E4M3FN", f"{M}x{K}", clamps=True)
    }
  %p = linalg.matmul ins(%r, %w : tensor<{M}x{K}xf8E4M3FN>, tensor<{K}x{N}xf8E4M3FN>) outs(%z : {c}) -> {c}
  return %p : {c}
}}
"""
    kernel = stepladder.compile(text, target=target, device="emulator")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((M, K)).astype(ml_dtypes.bfloat16)
    w = rng.integers(-4, 5, (K, N)).astype(ml_dtypes.float8_e4m3fn)
    wanted = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_array_equal(kernel(x, w), wanted)


def test_sums_of_fp8_are_refused() -> None:
    text = quantized_product("f16", "f32", "f8E4M3FN", clamps=False)
    text = text.replace("linalg.yield %q", "%s = arith.addf %q, %q : f8E4M3FN\n    linalg.yield %s")
    with pytest.raises(StepladderError, match=r"'arith.addf' on fp8") as refused:
        stepladder.compile(text, pipeline="wgmma", target="sm_90a", device="emulator")
    assert "accepted on fp8: arith.extf of it, arith.truncf to it from f16, bf16 or f32" in refused.value.render()


@pytest.mark.parametrize(("pipeline", "target"), [("wgmma", "sm_90a"), ("wmma", "sm_80")])
def test_constants_of_fp8_are_selected_and_numbers_are_extended_again(pipeline: str, target: str) -> None:
    text = quantized_product("f16", "f32", "f8E4M3FN", clamps=False)
    text = text.replace(
        "linalg.yield %q",
        "%one = arith.constant 1.5 : f8E4M3FN\n    %wide = arith.extf %q : f8E4M3FN to f32\n"
        "    %is = arith.cmpf olt, %wide, %zero : f32\n    %s = arith.select %is, %one, %q : f8E4M3FN\n"
        "    linalg.yield %s",
    )
    kernel = stepladder.compile(text, pipeline=pipeline, target=target, device="emulator")
    b = np.random.default_rng(0).integers(-40, 41, (K, N)).astype(np.float16)
    rounded = b.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    got = kernel(np.eye(M, K).astype(np.float16), b)
    np.testing.assert_array_equal(got.astype(np.float32), np.where(rounded < 0, np.float32(1.5), rounded))


def test_masks_become_numbers_of_fp8() -> None:
    """Upstream's canonicalizer makes one cast of i1 to fp8 of two."""
    text = quantized_product("f16", "f32", "f8E4M3FN", clamps=False)
    mask = "%is = arith.cmpf olt, %x, %zero : f32\n    %number = arith.uitofp %is : i1 to f32"
    text = text.replace("%q = arith.truncf %x", f"{mask}\n    %q = arith.truncf %number")
    kernel = stepladder.compile(text, pipeline="wgmma", target="sm_90a", device="emulator")
    b = np.random.default_rng(0).integers(-40, 41, (K, N)).astype(np.float16)
    got = kernel(np.eye(M, K).astype(np.float16), b)
    np.testing.assert_array_equal(got.astype(np.float32), (b < 0).astype(np.float32))
