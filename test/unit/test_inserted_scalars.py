"""Numbers and slices that ops put into tensors at computed places, and paddings with computed numbers and by less than
nothing, beside a matmul."""

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
    "element": (
        ", %x: f32",
        "%y = tensor.extract %p[%c1, %c2] : tensor<16x24xf32>\n  %r = tensor.from_elements %y : tensor<f32>",
        "tensor<f32>",
        lambda p: p[1, 2],
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


SLICED = """func.func @f(%a: tensor<4x16x32xf16>, %b: tensor<32x24xf16>, %c: tensor<40x24xf32>, %t: tensor<2xi32>)
    -> tensor<40x24xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.muli %c1, %c2 : index
  %zero = arith.constant 0.0 : f32
  %t0 = tensor.extract %t[%c0] : tensor<2xi32>
  %t1 = tensor.extract %t[%c1] : tensor<2xi32>
  %i = arith.index_cast %t0 : i32 to index
  %j0 = arith.index_cast %t1 : i32 to index
  %j = arith.addi %j0, %c1 : index
  %x = tensor.extract_slice %a[{first}, 0, 0] [1, 16, 32] [1, 1, 1] : tensor<4x16x32xf16> to tensor<16x32xf16>
  %e = tensor.empty() : tensor<16x24xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.matmul ins(%x, %b : tensor<16x32xf16>, tensor<32x24xf16>) outs(%z : tensor<16x24xf32>)
    -> tensor<16x24xf32>
  %r = tensor.insert_slice %p into %c[{row}, 0] [16, 24] [{stride}, 1] : tensor<16x24xf32> into tensor<40x24xf32>
  return %r : tensor<40x24xf32>
}}
"""


@pytest.mark.parametrize(("first", "row", "stride"), [("%i", "%j", 1), ("%c3", "%j", 2), ("%i", "%c3", 2)])
def test_slices_at_computed_places(first: str, row: str, stride: int) -> None:
    """Those that follow from constants are folded, and others read and written by computed indices."""
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, shape).astype(np.float16) for shape in ((4, 16, 32), (32, 24)))
    c = generator.integers(-4, 5, (40, 24)).astype(np.float32)
    function = stepladder.compile(SLICED.format(first=first, row=row, stride=stride), target="sm_80", device="emulator")
    for numbers in ([3, 4], [0, 7]):
        places = {"%i": numbers[0], "%j": numbers[1] + 1, "%c3": 2}
        wanted = c.copy()
        rows = slice(places[row], places[row] + 15 * stride + 1, stride)
        wanted[rows] = a[places[first]].astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_array_equal(function(a, b, c, np.array(numbers, np.int32)), wanted)


def test_tiles_of_a_loop_are_products_from_zeros() -> None:
    """A tile begins from a slice of the result so far, which the iterations before have not written; one group of
    matmuls writes all of them in place."""
    text = """func.func @f(%A: tensor<64x48xf16>, %B: tensor<48x40xf16>) -> tensor<64x40xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x40xf32>) -> tensor<64x40xf32>
  %r = scf.for %i = %c0 to %c64 step %c16 iter_args(%acc = %z) -> tensor<64x40xf32> {
    %a = tensor.extract_slice %A[%i, 0] [16, 48] [1, 1] : tensor<64x48xf16> to tensor<16x48xf16>
    %c = tensor.extract_slice %acc[%i, 0] [16, 40] [1, 1] : tensor<64x40xf32> to tensor<16x40xf32>
    %p = linalg.matmul ins(%a, %B : tensor<16x48xf16>, tensor<48x40xf16>) outs(%c : tensor<16x40xf32>)
      -> tensor<16x40xf32>
    %n = tensor.insert_slice %p into %acc[%i, 0] [16, 40] [1, 1] : tensor<16x40xf32> into tensor<64x40xf32>
    scf.yield %n : tensor<64x40xf32>
  }
  return %r : tensor<64x40xf32>
}
"""
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 48), (48, 40)))
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function) and len(function.manifest.launches) == 1
    assert [buffer.offset for buffer in function.manifest.buffers if buffer.kind == "result_part"] == [
        tile * 16 * 40 * 4 for tile in range(4)
    ]
    np.testing.assert_array_equal(function(a, b), a.astype(np.float32) @ b.astype(np.float32))
