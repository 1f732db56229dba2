"""Products of floating-point types that no kernel multiplies: operands are cast before to a type that one does."""

import numpy as np
import pytest

import stepladder
from combinations import combinations
from emulator_ops import FORMATS
from stepladder.runtime.bundle import Manifest


def payload(a: str, b: str, sums: str) -> str:
    return f"""
func.func @f(%A: tensor<24x48x{a}>, %B: tensor<48x40x{b}>) -> tensor<24x40x{sums}> {{
  %zero = arith.constant 0.0 : {sums}
  %e = tensor.empty() : tensor<24x40x{sums}>
  %z = linalg.fill ins(%zero : {sums}) outs(%e : tensor<24x40x{sums}>) -> tensor<24x40x{sums}>
  %p = linalg.matmul ins(%A, %B : tensor<24x48x{a}>, tensor<48x40x{b}>) outs(%z : tensor<24x40x{sums}>)
    -> tensor<24x40x{sums}>
  return %p : tensor<24x40x{sums}>
}}
"""


# Types of A and B.
PAIRS = (
    *(("f16", "bf16"), ("f32", "f16"), ("bf16", "f64"), ("f16", "f8E4M3FN"), ("f8E5M2", "f32")),
    *(("f8E4M3FN", "f64"), ("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E4M3FN")),
)


@pytest.mark.parametrize("pair, target", combinations(PAIRS, ("sm_80", "sm_90a")))
def test_products_of_two_types(pair: tuple[str, str], target: str) -> None:
    a, b = pair
    sums = "f64" if "f64" in (a, b) else "f32"
    kernel = stepladder.compile(payload(a, b, sums), target=target, device="emulator")
    rng = np.random.default_rng(0)
    # Sums of products of these are exact in f32, and the numbers in each type.
    x, y = ((rng.integers(-6, 7, shape) / 4).astype(FORMATS[type_]) for shape, type_ in (((24, 48), a), ((48, 40), b)))
    np.testing.assert_array_equal(kernel(x, y), x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize(
    ("a", "b", "sums", "target"),
    [
        ("f8E4M3FN", "f8E4M3FN", "f16", "sm_75"),
        ("f8E5M2", "f8E4M3FN", "f16", "sm_90a"),
        ("f8E4M3FN", "f8E4M3FN", "f32", "sm_80"),
        ("f8E4M3FN", "f8E5M2", "bf16", "sm_80"),
        ("f8E4M3FN", "f8E4M3FN", "bf16", "sm_75"),
        ("f8E5M2", "f8E5M2", "f64", "sm_89"),
        ("f16", "f16", "f64", "sm_80"),
        ("f32", "bf16", "f64", "sm_90a"),
    ],
)
def test_products_whose_sums_are_none_of_their_type(a: str, b: str, sums: str, target: str) -> None:
    kernel = stepladder.compile(payload(a, b, sums), target=target, device="emulator")
    rng = np.random.default_rng(0)
    # Their sums are exact in 8 bits.
    x, y = (rng.integers(-1, 2, shape).astype(FORMATS[type_]) for shape, type_ in (((24, 48), a), ((48, 40), b)))
    np.testing.assert_array_equal(kernel(x, y).astype(np.float64), x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize(
    ("a", "b", "sums", "target"),
    [("f32", "f32", "f16", "sm_75"), ("f32", "bf16", "bf16", "sm_90a"), ("f64", "f32", "f32", "sm_80")],
)
def test_operands_of_more_bits_than_the_sums_are_rounded(a: str, b: str, sums: str, target: str) -> None:
    kernel = stepladder.compile(payload(a, b, sums), target=target, device="emulator")
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-1, 2, shape).astype(FORMATS[type_]) for shape, type_ in (((24, 48), a), ((48, 40), b)))
    whole = x.astype(np.float64) @ y.astype(np.float64)
    x = x * FORMATS[a](1 + np.finfo(FORMATS[a]).eps)  # 1 in the type of the sums
    np.testing.assert_array_equal(kernel(x, y).astype(np.float64), whole)


def extended(a: str, b: str, wide: str, sums: str) -> str:
    """A payload that extends fp8 in ops of its own, B through a transpose."""
    return f"""
func.func @f(%A: tensor<24x48x{a}>, %B: tensor<40x48x{b}>) -> tensor<24x40x{sums}> {{
  %zero = arith.constant 0.0 : {sums}
  %e = tensor.empty() : tensor<24x40x{sums}>
  %ea = tensor.empty() : tensor<24x48x{wide}>
  %eb = tensor.empty() : tensor<40x48x{wide}>
  %et = tensor.empty() : tensor<48x40x{wide}>
  %z = linalg.fill ins(%zero : {sums}) outs(%e : tensor<24x40x{sums}>) -> tensor<24x40x{sums}>
  %a = linalg.copy ins(%A : tensor<24x48x{a}>) outs(%ea : tensor<24x48x{wide}>) -> tensor<24x48x{wide}>
  %b = linalg.copy ins(%B : tensor<40x48x{b}>) outs(%eb : tensor<40x48x{wide}>) -> tensor<40x48x{wide}>
  %t = linalg.transpose ins(%b : tensor<40x48x{wide}>) outs(%et : tensor<48x40x{wide}>) permutation = [1, 0]
  %p = linalg.matmul ins(%a, %t : tensor<24x48x{wide}>, tensor<48x40x{wide}>) outs(%z : tensor<24x40x{sums}>)
    -> tensor<24x40x{sums}>
  return %p : tensor<24x40x{sums}>
}}
"""


@pytest.mark.parametrize(
    ("b", "wide", "sums", "target", "launches"),
    [
        ("f8E4M3FN", "f16", "f16", "sm_80", None),
        ("f8E4M3FN", "f16", "f32", "sm_80", ["f_matmul_0"]),
        ("f8E4M3FN", "bf16", "f32", "sm_80", ["f_matmul_0"]),
        ("f8E4M3FN", "bf16", "f32", "sm_75", ["f_matmul_0"]),
        ("f8E5M2", "bf16", "f32", "sm_75", ["f_matmul_0"]),
        ("f8E4M3FN", "bf16", "bf16", "sm_75", ["f_matmul_0"]),
        ("f8E4M3FN", "f32", "f32", "sm_89", None),
        ("f8E4M3FN", "f32", "f32", "sm_75", ["f_matmul_0"]),
        ("f8E4M3FN", "f64", "f64", "sm_80", ["f_elementwise_group_0", "f_matmul_0"]),
        ("f8E5M2", "f32", "f32", "sm_90a", None),
        ("f8E5M2", "f32", "f32", "sm_75", ["f_matmul_0"]),
        ("f8E5M2", "f16", "f16", "sm_89", None),
    ],
)
def test_fp8_that_the_payload_extends(b: str, wide: str, sums: str, target: str, launches: list[str] | None) -> None:
    """One kernel, or a function whose matmul makes its operands of f16; those of f64 are made by another launch."""
    kernel = stepladder.compile(extended("f8E4M3FN", b, wide, sums), target=target, device="emulator")
    manifest = kernel.manifest
    if b == "f8E5M2" and isinstance(manifest, Manifest):
        assert (manifest.problem.a_type, manifest.problem.b_type) == (
            ("f16", "f16") if sums == "f16" else ("f8E4M3FN", "f8E5M2")
        )
    assert (None if isinstance(manifest, Manifest) else [launch.stage for launch in manifest.launches]) == launches
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-1, 2, shape).astype(FORMATS[e]) for e, shape in (("f8E4M3FN", (24, 48)), (b, (40, 48))))
    np.testing.assert_array_equal(kernel(x, y).astype(np.float64), x.astype(np.float64) @ y.astype(np.float64).T)


def test_one_pipeline_takes_what_the_extension_makes() -> None:
    kernel = stepladder.compile(payload("f8E5M2", "bf16", "f32"), target="sm_80", pipeline="wmma", device="emulator")
    assert [launch.stage for launch in kernel.manifest.launches] == ["f_matmul_0"]
    with pytest.raises(
        stepladder.StepladderError, match="A and B must have the same element type: f16, bf16 or i8"
    ) as refused:
        stepladder.compile(payload("f16", "bf16", "f32"), target="sm_80", pipeline="wmma", device="emulator")
    assert "as a function with several kernels: " in refused.value.render()


@pytest.mark.parametrize(("element", "wide"), [("bf16", "f16"), ("f16", "bf16"), ("f8E4M3FN", "f8E5M2")])
def test_operands_of_as_many_bits_as_the_result_are_refused_at_the_op(element: str, wide: str) -> None:
    with pytest.raises(
        stepladder.StepladderError, match=f"a linalg op of {element} with a result of {wide}"
    ) as refused:
        stepladder.compile(payload(element, element, wide), target="sm_90a", device="emulator")
    assert refused.value.location == "payload:6:8"
