"""Numbers that ops put into tensors, and paddings with computed numbers and by less than nothing, beside a matmul."""

import numpy as np
import pytest

import stepladder

pytestmark = pytest.mark.usefixtures("needs_ptxas")

C = "tensor<16x24xf32>"
# More arguments, ops on the product %p, the type of the result, and what NumPy computes of the product.
CASES = {
    "insert": (
        ", %x: f32",
        f"%r = tensor.insert %x into %p[%c1, %c2] : {C}",
        C,
        lambda p: np.where(np.arange(384).reshape(16, 24) == 26, np.float32(2.5), p),
    ),
    "elements": (
        ", %x: f32",
        f"%y = tensor.extract %p[%c1, %c2] : {C}\n  %n = arith.negf %y : f32\n"
        "  %r = tensor.from_elements %y, %n, %y : tensor<3xf32>",
        "tensor<3xf32>",
        lambda p: np.stack([p[1, 2], -p[1, 2], p[1, 2]]),
    ),
    "padding": (
        ", %x: f32",
        f"""%r = tensor.pad %p low[-1, 2] high[3, -4] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %x : f32
  }} : {C} to tensor<18x22xf32>""",
        "tensor<18x22xf32>",
        lambda p: np.pad(p[1:, :-4], ((0, 3), (2, 0)), constant_values=2.5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    more, ops, result, wanted = CASES[name]
    text = f"""func.func @f(%a: tensor<16x32xf16>, %b: tensor<32x24xf16>{more}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : {C}
  %z = linalg.fill ins(%zero : f32) outs(%e : {C}) -> {C}
  %p = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x24xf16>) outs(%z : {C}) -> {C}
  {ops}
  return %r : {result}
}}
"""
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 32), (32, 24)))
    function = stepladder.compile(text, target="sm_80", device="emulator")
    number = np.float32(2.5)
    got = function(a, b, number if isinstance(function, stepladder.Kernel) else np.asarray(number))
    np.testing.assert_array_equal(got, wanted(a.astype(np.float32) @ b.astype(np.float32)))
