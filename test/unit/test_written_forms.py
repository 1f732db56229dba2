"""Payloads in forms that users write and that become others before anything else: numbers against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from small_integers import small

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<32x48xf16>", "tensor<48x64xf16>", "tensor<32x64xf32>"
START = f"""
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {C}
  %z = linalg.fill ins(%zero : f32) outs(%e : {C}) -> {C}"""
PRODUCT = f"{START}\n  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}"


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def check(text: str, wanted: np.ndarray, *arrays: np.ndarray, target: str = "sm_80", launches: int = 1) -> None:
    """Compiles a payload and compares its result, which has no rounding, and the number of its kernels."""
    compiled = stepladder.compile(text, target=target, device="emulator")
    np.testing.assert_array_equal(compiled(*arrays), wanted)
    is_function = isinstance(compiled, stepladder.Function)
    assert (len(compiled.manifest.launches) if is_function else 1) == launches


def of(rest: str, arguments: str = "", result: str = C) -> str:
    return f"func.func @f(%a: {A}, %b: {B}{arguments}) -> {result} {{{rest}\n  return %r : {result}\n}}\n"


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("sizes", "launches"), [((32, 48, 64), 1), ((30, 45, 60), 3)])
def test_packed_tiles(sizes: tuple[int, int, int], launches: int, target: str) -> None:
    """`linalg.pack`, `linalg.mmt4d` and `linalg.unpack`: one kernel where the tiles divide the matrices."""
    m, k, n = sizes
    a, b, c = f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>", f"tensor<{m}x{n}xf32>"
    packed = ("tensor<4x6x8x8xf16>", "tensor<8x6x8x8xf16>", "tensor<4x8x8x8xf32>")
    inner = "inner_tiles = [8, 8] into"
    text = f"""
func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %ea = tensor.empty() : {packed[0]}
  %eb = tensor.empty() : {packed[1]}
  %ec = tensor.empty() : {packed[2]}
  %e = tensor.empty() : {c}
  %pa = linalg.pack %a padding_value(%none : f16) inner_dims_pos = [0, 1] {inner} %ea : {a} -> {packed[0]}
  %pb = linalg.pack %b padding_value(%none : f16) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] {inner} %eb
    : {b} -> {packed[1]}
  %z = linalg.fill ins(%zero : f32) outs(%ec : {packed[2]}) -> {packed[2]}
  %p = linalg.mmt4d ins(%pa, %pb : {packed[0]}, {packed[1]}) outs(%z : {packed[2]}) -> {packed[2]}
  %r = linalg.unpack %p inner_dims_pos = [0, 1] {inner} %e : {packed[2]} -> {c}
  return %r : {c}
}}
"""
    x, y = small(m, k), small(k, n)
    check(text, product(x, y), x, y, target=target, launches=launches)


def convolved(x: np.ndarray, w: np.ndarray, stride: int = 1) -> np.ndarray:
    """Returns a convolution of (n, h, w, c) by (h, w, c, f)."""
    rows, columns = ((x.shape[axis] - w.shape[axis - 1]) // stride + 1 for axis in (1, 2))
    result = np.zeros((x.shape[0], rows, columns, w.shape[3]), np.float32)
    for i, j in np.ndindex(w.shape[:2]):
        part = x[:, i : i + rows * stride : stride, j : j + columns * stride : stride][:, :rows, :columns]
        result += product(part, w[i, j])
    return result


def convolution(op: str, operands: tuple[str, str, str], stride: int) -> str:
    x, w, y = operands
    steps = f"dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>"
    return f"""
func.func @f(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %z = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %r = linalg.{op} {{{steps}}} ins(%x, %w : {x}, {w}) outs(%z : {y}) -> {y}
  return %r : {y}
}}
"""


def test_a_convolution_of_one_by_one_is_a_matmul() -> None:
    x, w = small(2, 6, 8, 32), small(1, 1, 32, 16)
    types = ("tensor<2x6x8x32xf16>", "tensor<1x1x32x16xf16>", "tensor<2x6x8x16xf32>")
    check(convolution("conv_2d_nhwc_hwcf", types, 1), convolved(x, w), x, w)


@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_are_a_copy_and_a_matmul(stride: int) -> None:
    x, w = small(2, 9, 11, 16), small(3, 3, 16, 32)
    wanted = convolved(x, w, stride)
    rows, columns = wanted.shape[1:3]
    types = ("tensor<2x9x11x16xf16>", "tensor<3x3x16x32xf16>", f"tensor<2x{rows}x{columns}x32xf32>")
    check(convolution("conv_2d_nhwc_hwcf", types, stride), wanted, x, w, launches=2)
    types = ("tensor<2x16x9x11xf16>", "tensor<32x16x3x3xf16>", f"tensor<2x32x{rows}x{columns}xf32>")
    first = [np.ascontiguousarray(array) for array in (x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1))]
    check(convolution("conv_2d_nchw_fchw", types, stride), wanted.transpose(0, 3, 1, 2), *first, launches=2)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_copy_of_a_padded_convolution_pads(stride: int) -> None:
    x, w = small(2, 9, 11, 16), small(3, 3, 16, 32)
    padded = np.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)))
    wanted = convolved(padded, w, stride)
    rows, columns = wanted.shape[1:3]

    def check_padded(op: str, order: tuple[int, ...], filters: str, result: str) -> None:
        """Compares the convolution of x in an order of its axes."""
        shape, size = ("x".join(str(array.shape[axis]) for axis in order) for array in (x, padded))
        low = [(0, 1, 2, 0)[axis] for axis in order]
        text = convolution(op, (f"tensor<{size}xf16>", f"tensor<{filters}xf16>", f"tensor<{result}xf32>"), stride)
        text = text.replace(f"%x: tensor<{size}", f"%given: tensor<{shape}", 1).replace(
            "  %e = ",
            f"""  %nothing = arith.constant 0.0 : f16
  %x = tensor.pad %given low{low} high{low} {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %nothing : f16
  }} : tensor<{shape}xf16> to tensor<{size}xf16>
  %e = """,
            1,
        )
        places = (3, 2, 0, 1) if order != (0, 1, 2, 3) else (0, 1, 2, 3)
        arrays = [np.ascontiguousarray(item) for item in (x.transpose(order), w.transpose(places))]
        check(text, wanted.transpose(order), *arrays, launches=2)

    check_padded("conv_2d_nhwc_hwcf", (0, 1, 2, 3), "3x3x16x32", f"2x{rows}x{columns}x32")
    check_padded("conv_2d_nchw_fchw", (0, 3, 1, 2), "32x16x3x3", f"2x32x{rows}x{columns}")


def test_a_quantized_convolution() -> None:
    """The zero points are numbers, constants of the payload."""
    text = convolution(
        "conv_2d_nhwc_hwcf_q", ("tensor<1x6x6x16xi8>", "tensor<3x3x16x32xi8>", "tensor<1x4x4x32xi32>"), 1
    )
    text = text.replace("0.0 : f32", "0 : i32\n  %x0 = arith.constant 3 : i32\n  %w0 = arith.constant -2 : i32")
    text = text.replace("ins(%zero : f32)", "ins(%zero : i32)").replace("ins(%x, %w :", "ins(%x, %w, %x0, %w0 :")
    text = text.replace("tensor<3x3x16x32xi8>) outs", "tensor<3x3x16x32xi8>, i32, i32) outs")
    x, w = small(1, 6, 6, 16, dtype=np.int8), small(3, 3, 16, 32, dtype=np.int8)
    check(text, convolved(x - np.int8(3), w + np.int8(2)), x, w, launches=4)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (1, 2), (1, 1)])
def test_a_pooling(rows: int, columns: int) -> None:
    """Of windows of one element along an axis too, as those of one dimension that torch-mlir pools in two."""
    result = f"tensor<1x{8 // rows}x{8 // columns}x16xf32>"
    window = f"tensor<{rows}x{columns}xf32>"
    text = f"""
func.func @f(%x: tensor<1x8x8x16xf32>) -> {result} {{
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : {result}
  %window = tensor.empty() : {window}
  %z = linalg.fill ins(%least : f32) outs(%e : {result}) -> {result}
  %r = linalg.pooling_nhwc_max {{dilations = dense<1> : tensor<2xi64>,
      strides = dense<[{rows}, {columns}]> : tensor<2xi64>}}
    ins(%x, %window : tensor<1x8x8x16xf32>, {window}) outs(%z : {result}) -> {result}
  return %r : {result}
}}
"""
    x = small(1, 8, 8, 16, dtype=np.float32)
    check(text, x.reshape(1, 8 // rows, rows, 8 // columns, columns, 16).max((2, 4)), x, launches=1)


def test_parallel_tiles() -> None:
    """Iterations read the shared result as it was before: here they add to a matrix."""
    a, b, c = "tensor<64x48xf16>", "tensor<48x64xf16>", "tensor<64x64xf32>"
    text = f"""
func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %r = scf.forall (%i, %j) = (0, 0) to (64, 64) step (32, 64) shared_outs(%o = %c) -> ({c}) {{
    %x = tensor.extract_slice %a[%i, 0] [32, 48] [1, 1] : {a} to tensor<32x48xf16>
    %y = tensor.extract_slice %b[0, %j] [48, 64] [1, 1] : {b} to {B}
    %s = tensor.extract_slice %o[%i, %j] [32, 64] [1, 1] : {c} to {C}
    %p = linalg.matmul ins(%x, %y : {A}, {B}) outs(%s : {C}) -> {C}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %p into %o[%i, %j] [32, 64] [1, 1] : {C} into {c}
    }}
  }}
  return %r : {c}
}}
"""
    x, y, held = small(64, 48), small(48, 64), small(64, 64, dtype=np.float32)
    compiled = stepladder.compile(text, target="sm_80", device="emulator")
    np.testing.assert_array_equal(compiled(x, y, held), product(x, y) + held)


def test_a_condition_on_extents_and_a_constant_one() -> None:
    text = of(f"""{PRODUCT}
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %rows = tensor.dim %a, %c0 : {A}
  %is_large = arith.cmpi sgt, %rows, %c16 : index
  %r = scf.if %is_large -> ({C}) {{
    %n = linalg.negf ins(%p : {C}) outs(%e : {C}) -> {C}
    scf.yield %n : {C}
  }} else {{
    scf.yield %p : {C}
  }}""")
    a, b = small(32, 48), small(48, 64)
    check(text, -product(a, b), a, b)


SUNK = {
    "a product of two numbers": (
        ", %s: tensor<4xf32>, %t: tensor<f32>",
        f"""
  %c2 = arith.constant 2 : index
  %first = tensor.extract %s[%c2] : tensor<4xf32>
  %second = tensor.extract %t[] : tensor<f32>
  %factor = arith.mulf %first, %second : f32
  %r = linalg.map ins(%p : {C}) outs(%e : {C}) (%x: f32, %init: f32) {{
    %y = arith.mulf %x, %factor : f32
    linalg.yield %y : f32
  }}""",
        (np.array([5, 7, 3, 9], np.float32), np.array(2, np.float32)),
        lambda p: p * 6,
        2,
    ),
    "a tensor of a number": (
        ", %s: tensor<f32>",
        f"""
  %number = tensor.extract %s[] : tensor<f32>
  %filled = linalg.fill ins(%number : f32) outs(%e : {C}) -> {C}
  %r = linalg.add ins(%p, %filled : {C}, {C}) outs(%e : {C}) -> {C}""",
        (np.array(4, np.float32),),
        lambda p: p + 4,
        1,
    ),
    "a choice of a tensor": (
        f", %is: i1, %d: {C}",
        f"\n  %r = arith.select %is, %p, %d : {C}",
        (np.array(False), np.ones((32, 64), np.float32)),
        np.ones_like,
        2,
    ),
    "computed elements": (
        "",
        f"""
  %g = tensor.generate {{
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %n = arith.index_cast %s : index to i32
    %x = arith.sitofp %n : i32 to f32
    tensor.yield %x : f32
  }} : {C}
  %r = linalg.add ins(%p, %g : {C}, {C}) outs(%e : {C}) -> {C}""",
        (),
        lambda p: p + np.add.outer(np.arange(32), np.arange(64)),
        2,
    ),
}


@pytest.mark.parametrize("name", SUNK)
def test_numbers_between_ops(name: str) -> None:
    arguments, rest, arrays, wanted, launches = SUNK[name]
    a, b = small(32, 48), small(48, 64)
    check(of(PRODUCT + rest, arguments), wanted(product(a, b)), a, b, *arrays, launches=launches)


def test_a_slice_with_strides_is_inserted() -> None:
    wide = "tensor<64x128xf32>"
    rest = f"{PRODUCT}\n  %r = tensor.insert_slice %p into %d[1, 3] [32, 42] [2, 3] : tensor<32x42xf32> into {wide}"
    rest = rest.replace(
        "%r =", f"%s = tensor.extract_slice %p[0, 0] [32, 42] [1, 1] : {C} to tensor<32x42xf32>\n  %r ="
    )
    text = of(rest.replace("slice %p into", "slice %s into"), f", %d: {wide}", wide)
    a, b, d = small(32, 48), small(48, 64), small(64, 128, dtype=np.float32)
    wanted = d.copy()
    wanted[1::2, 3:127:3] = product(a, b)[:, :42]
    check(text, wanted, a, b, d, launches=2)


def test_buffers_that_are_returned() -> None:
    c = "memref<32x64xf32>"
    text = f"""
func.func @f(%a: memref<32x48xf16>, %b: memref<48x64xf16>) -> ({c}, {c}) {{
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : {c}
  linalg.fill ins(%zero : f32) outs(%p : {c})
  linalg.matmul ins(%a, %b : memref<32x48xf16>, memref<48x64xf16>) outs(%p : {c})
  %t = bufferization.to_tensor %p restrict : {c} to {C}
  %e = tensor.empty() : {C}
  %n = linalg.negf ins(%t : {C}) outs(%e : {C}) -> {C}
  %q = bufferization.to_buffer %n : {C} to {c}
  return %p, %q : {c}, {c}
}}
"""
    a, b = small(32, 48), small(48, 64)
    first, second = stepladder.compile(text, target="sm_80", device="emulator")(a, b)
    np.testing.assert_array_equal(first, product(a, b))
    np.testing.assert_array_equal(second, -product(a, b))


def test_tiles_that_a_loop_fills() -> None:
    """A tile begins from zeros that overwrite a slice of the result so far; no kernel reads the slice."""
    text = """func.func @f(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 8 : index
  %end = arith.constant 16 : index
  %r = scf.for %i = %first to %end step %first iter_args(%o = %c) -> (tensor<16x32xf32>) {
    %x = tensor.extract_slice %a[%i, 0] [8, 16] [1, 1] : tensor<16x16xf16> to tensor<8x16xf16>
    %y = tensor.extract_slice %o[%i, 0] [8, 32] [1, 1] : tensor<16x32xf32> to tensor<8x32xf32>
    %z = linalg.fill ins(%zero : f32) outs(%y : tensor<8x32xf32>) -> tensor<8x32xf32>
    %p = linalg.matmul ins(%x, %b : tensor<8x16xf16>, tensor<16x32xf16>) outs(%z : tensor<8x32xf32>)
      -> tensor<8x32xf32>
    %q = tensor.insert_slice %p into %o[%i, 0] [8, 32] [1, 1] : tensor<8x32xf32> into tensor<16x32xf32>
    scf.yield %q : tensor<16x32xf32>
  }
  return %r : tensor<16x32xf32>
}
"""
    a, b, c = (np.random.default_rng(0).integers(-2, 3, shape) for shape in ((16, 16), (16, 32), (16, 32)))
    kernel = stepladder.compile(text, target="sm_80", device="emulator")
    assert [launch.stage for launch in kernel.manifest.launches] == ["f_matmul_0", "f_elementwise_0"]
    wanted = c.copy()
    wanted[8:] = a[8:] @ b
    np.testing.assert_array_equal(kernel(a.astype(np.float16), b.astype(np.float16), c.astype(np.float32)), wanted)


def test_a_slice_that_an_epilogue_overwrites() -> None:
    text = """func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %y = tensor.extract_slice %c[8, 0] [8, 32] [1, 1] : tensor<16x32xf32> to tensor<8x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%y : tensor<8x32xf32>) -> tensor<8x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf16>) outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>
  %r = linalg.negf ins(%p : tensor<8x32xf32>) outs(%y : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}
"""
    x, y, held = small(8, 16), small(16, 32), small(16, 32, dtype=np.float32)
    np.testing.assert_array_equal(
        stepladder.compile(text, target="sm_80", device="emulator")(x, y, held), -product(x, y)
    )
