"""Products of two floating-point types: operands are extended, exactly, to a type that kernels multiply."""

import numpy as np
import pytest

import stepladder
from emulator_ops import FORMATS


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


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("f16", "bf16"),
        ("f32", "f16"),
        ("bf16", "f64"),
        ("f16", "f8E4M3FN"),
        ("f8E5M2", "f32"),
        ("f8E4M3FN", "f64"),
        ("f8E4M3FN", "f8E5M2"),
        ("f8E5M2", "f8E4M3FN"),
    ],
)
def test_products_of_two_types(a: str, b: str, target: str) -> None:
    sums = "f64" if "f64" in (a, b) else "f32"
    kernel = stepladder.compile(payload(a, b, sums), target=target, device="emulator")
    rng = np.random.default_rng(0)
    # Sums of products of these are exact in f32, and the numbers in each type.
    x, y = ((rng.integers(-6, 7, shape) / 4).astype(FORMATS[type_]) for shape, type_ in (((24, 48), a), ((48, 40), b)))
    np.testing.assert_array_equal(kernel(x, y), x.astype(np.float64) @ y.astype(np.float64))


def test_one_pipeline_takes_what_the_extension_makes() -> None:
    kernel = stepladder.compile(payload("f8E5M2", "bf16", "f32"), target="sm_80", pipeline="wmma", device="emulator")
    assert [launch.stage for launch in kernel.manifest.launches] == ["f_matmul_0"]
    with pytest.raises(stepladder.StepladderError, match="A and B must be of f16, bf16 or i8") as refused:
        stepladder.compile(payload("f16", "bf16", "f32"), target="sm_80", pipeline="wmma", device="emulator")
    assert "as a function with several kernels: " in refused.value.render()
