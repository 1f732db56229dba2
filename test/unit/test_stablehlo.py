"""StableHLO: selects and clamps by single elements, windows, places of extrema, and what is refused."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from stepladder.cli.main import main
from stepladder.cli.opt import main as opt_main
from stepladder.mlir.bindings import PREFIX

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]

# A variance of JAX is a select by a comparison of single elements.
CHOSEN = """
func.func public @main(%x: tensor<8x16xf16>, %w: tensor<16x8xf16>, %n: tensor<f32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf16>, tensor<16x8xf16>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<2.0> : tensor<f32>
  %1 = stablehlo.compare GT, %n, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %2 = stablehlo.broadcast_in_dim %limit, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %3 = stablehlo.clamp %zero, %0, %limit : (tensor<f32>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %4 = stablehlo.select %1, %3, %2 : tensor<i1>, tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
"""


def test_selects_and_clamps_by_single_elements() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((8, 16), (16, 8)))
    made = stepladder.compile(CHOSEN, device="emulator", target="sm_80")
    for number, wanted in ((1, np.clip(x.astype(float) @ w.astype(float), 0, 2)), (-1, np.full((8, 8), 2.0))):
        assert np.abs(made(x, w, np.array(number, np.float32)) - wanted).max() < 1e-4


def test_commands_for_payloads_take_stablehlo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dot.mlir"
    path.write_text(
        """func.func public @main(%x: tensor<64x64xf16>, %w: tensor<64x64xf16>) -> tensor<64x64xf32> {
          %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf32>
          return %0 : tensor<64x64xf32>
        }"""
    )
    assert main(["explain", str(path), "--target", "sm_80", "--top", "1"]) == 0
    assert "64 x 64 x 64, f16 -> f32, mma_sync on" in capsys.readouterr().out
    plan = str(tmp_path / "plan")
    assert main(["tune", "build", str(path), "--pipeline", "mma_sync", "--top", "1", "--folder", plan]) == 0
    assert opt_main([str(path), "--pipeline", "wmma", "--through", "tile_k"]) == 0
    assert "linalg.matmul" in capsys.readouterr().out


def test_parts_without_elements_are_left_out() -> None:
    """`lax.associative_scan` joins slices of no elements, from the end of a tensor, to others; its gradients pad."""
    joined = """!e = tensor<0x4xf32>
    func.func public @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %0 = stablehlo.slice %x [2:2:2, 0:4] : (tensor<2x4xf32>) -> !e
      %1 = stablehlo.add %0, %0 : !e
      %2 = stablehlo.concatenate %x, %1, dim = 0 : (tensor<2x4xf32>, !e) -> tensor<2x4xf32>
      %c = stablehlo.constant dense<3.0> : tensor<f32>
      %4 = stablehlo.pad %1, %c, low = [1, 0], high = [1, 0], interior = [0, 0] : (!e, tensor<f32>) -> tensor<2x4xf32>
      %5 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0]
        : (!e, tensor<f32>) -> tensor<4xf32>
      %6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
      %7 = stablehlo.dot_general %1, %1, contracting_dims = [0] x [0] : (!e, !e) -> tensor<4x4xf32>
      %8 = stablehlo.slice %7 [0:2, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
      %9 = stablehlo.multiply %4, %6 : tensor<2x4xf32>
      %10 = stablehlo.add %2, %9 : tensor<2x4xf32>
      %11 = stablehlo.add %10, %8 : tensor<2x4xf32>
      return %11 : tensor<2x4xf32>
    }"""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert (stepladder.compile(joined, device="emulator", target="sm_80")(x) == x + 9).all()


def test_loops_that_depend_on_data_are_refused() -> None:
    loop = """  %5 = stablehlo.while(%each = %4) : tensor<8x8xf32>
    cond {
      stablehlo.return %1 : tensor<i1>
    } do {
      stablehlo.return %each : tensor<8x8xf32>
    }
  return %5"""
    with pytest.raises(stepladder.StepladderError, match=r"'stablehlo\.while' is a loop whose number of iterations"):
        stepladder.compile(CHOSEN.replace("  return %4", loop), device="emulator", target="sm_80")


LOWEST, HIGHEST = "0xFF800000", "0x7F800000"
OF_JAX = """
      %2 = stablehlo.compare {direction}, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %a, %b : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %i, %j : tensor<i1>, tensor<i32>
"""
OF_TORCH_MLIR = """
      %2 = stablehlo.compare {direction}, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.minimum %i, %j : tensor<i32>
      %6 = stablehlo.select %2, %i, %j : tensor<i1>, tensor<i32>
      %10 = stablehlo.select %4, %5, %6 : tensor<i1>, tensor<i32>
"""


def _places(direction: str, start: str, first: int = 0) -> str:
    """Returns `argmax` or `argmin` of rows, which starts from a number: JAX's (GT, LT) or torch-mlir's (GE, LE)."""
    body = (OF_TORCH_MLIR if "E" in direction else OF_JAX).format(direction=direction)
    return f"""func.func public @main(%x: tensor<5x6xf32>) -> (tensor<5xf32>, tensor<5xi32>) {{
  %0 = stablehlo.iota dim = 1 : tensor<5x6xi32>
  %start = stablehlo.constant dense<{start}> : tensor<f32>
  %c = stablehlo.constant dense<{first}> : tensor<i32>
  %1:2 = stablehlo.reduce(%x init: %start), (%0 init: %c) across dimensions = [1]
    : (tensor<5x6xf32>, tensor<5x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {{{body}
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }}
  return %1#0, %1#1 : tensor<5xf32>, tensor<5xi32>
}}
"""


@pytest.mark.parametrize("direction, start", [("GT", LOWEST), ("LT", HIGHEST), ("GE", LOWEST), ("LE", HIGHEST)])
def test_places_of_extrema(direction: str, start: str) -> None:
    """The first of equal numbers, and the first NaN."""
    inf, nan = np.inf, np.nan
    rows = [[1, 3, 3, 2, 1, 1], [2] * 6, [1, nan, 5, nan, 0, 7], [-inf] * 6, [inf, 0, -inf, inf, -inf, 0]]
    x = np.array(rows, np.float32)
    numbers, places = stepladder.compile(_places(direction, start), device="emulator", target="sm_80")(x)
    number, place = (np.max, np.argmax) if "G" in direction else (np.min, np.argmin)
    assert np.array_equal(numbers, number(x, 1), equal_nan=True) and np.array_equal(places, place(x, 1))


def test_places_from_another_number_are_refused() -> None:
    """Where all numbers are below the start, the place is that of the start."""
    with pytest.raises(stepladder.StepladderError, match="a reduction whose last op does not fold") as refused:
        stepladder.compile(_places("GT", "5.0"), device="emulator", target="sm_80")
    assert "is not a contraction" in refused.value.notes[0]
    with pytest.raises(stepladder.StepladderError, match="a reduction whose last op does not fold"):
        stepladder.compile(_places("GT", LOWEST, first=-1), device="emulator", target="sm_80")


def test_places_of_few_bits() -> None:
    """The last of 128 places is the largest number of i8; of more, places wrap."""
    text = _places("GE", LOWEST).replace("i32", "i8").replace("5x6x", "5x128x")
    x = np.eye(5, 128, 123, np.float32)
    assert np.array_equal(stepladder.compile(text, device="emulator", target="sm_80")(x)[1], x.argmax(1))
    with pytest.raises(stepladder.StepladderError, match="a reduction"):
        stepladder.compile(text.replace("128x", "129x"), device="emulator", target="sm_80")


@pytest.mark.parametrize(
    "fold, start, window, stride, padding, computed",
    [
        ("add", "0.0", 6, 1, (5, 0), lambda x: np.cumsum(x, 1)),
        ("add", "0.0", 6, 1, (0, 5), lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1]),
        ("maximum", "0xFF800000", 6, 1, (5, 0), lambda x: np.maximum.accumulate(x, 1)),
        ("add", "0.0", 2, 2, (0, 0), lambda x: x[:, ::2] + x[:, 1::2]),
        (
            "maximum",
            "0xFF800000",
            3,
            2,
            (1, 0),
            lambda x: np.stack([x[:, :2].max(1), x[:, 1:4].max(1), x[:, 3:].max(1)], 1),
        ),
    ],
)
def test_windows(fold: str, start: str, window: int, stride: int, padding: tuple, computed: Callable) -> None:
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    wanted = computed(x)
    text = f"""func.func public @main(%x: tensor<4x6xf32>) -> tensor<4x{wanted.shape[1]}xf32> {{
  %start = stablehlo.constant dense<{start}> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %start) <{{padding = dense<[[0, 0], {list(padding)}]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, {window}>, window_strides = array<i64: 1, {stride}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.{fold} %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x{wanted.shape[1]}xf32>
  return %0 : tensor<4x{wanted.shape[1]}xf32>
}}
"""
    assert np.abs(stepladder.compile(text, device="emulator", target="sm_80")(x) - wanted).max() < 1e-5


def test_refused_numbers_and_functions() -> None:
    text = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = chlo.bessel_i1e %x : tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""
    with pytest.raises(stepladder.StepladderError, match=r"'chlo\.bessel_i1e' is an op of CHLO"):
        stepladder.compile(text, device="emulator", target="sm_80")
    text = """func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %i = stablehlo.constant dense<[(0.0, 1.0), (1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]> : tensor<4xcomplex<f32>>
  %0 = stablehlo.multiply %x, %i : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}"""
    with pytest.raises(stepladder.StepladderError, match="a value of complex numbers, tensor<4xcomplex<f32>>"):
        stepladder.compile(text, device="emulator", target="sm_80")


def test_a_refusal_begins_with_that_of_a_function() -> None:
    text = """func.func public @main(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.convert %0 : (tensor<8x8xf32>) -> tensor<8x8xi32>
  %2 = linalg.map ins(%1 : tensor<8x8xi32>) outs(%1 : tensor<8x8xi32>) (%x: i32, %out: i32) {
    %low, %high = arith.mulsi_extended %x, %x : i32
    linalg.yield %high : i32
  }
  %3 = stablehlo.convert %2 : (tensor<8x8xi32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
"""
    with pytest.raises(
        stepladder.StepladderError, match=r"is not compiled: .* has no reference computation"
    ) as refused:
        stepladder.compile(text, target="sm_80", device="emulator")
    assert refused.value.notes[0].startswith("as one kernel: 'arith.mulsi_extended' in linalg.")


OUTER = """func.func public @main(%x: tensor<9xf32>, %y: tensor<17xf32>) -> tensor<9x17xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<9xf32>, tensor<17xf32>) -> tensor<9x17xf32>
  return %0 : tensor<9x17xf32>
}
"""


def test_an_outer_product_is_elementwise(tmp_path: Path) -> None:
    """Without a loop that sums, no kernel of a matmul has a reference."""
    function = stepladder.compile(OUTER, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    x, y = np.arange(9, dtype=np.float32), np.arange(17, dtype=np.float32)
    assert np.array_equal(function(x, y), np.outer(x, y))
    function.save(tmp_path / "outer.bundle")
    assert main(["run", str(tmp_path / "outer.bundle"), "--backend", "emulator"]) == 0


@pytest.mark.parametrize(
    ("places", "extent", "is_computed"), [("ui8", 200, True), ("ui32", 6, True), ("ui8", 257, False)]
)
def test_places_without_a_sign(places: str, extent: int, is_computed: bool) -> None:
    text = _places("LT", HIGHEST).replace("i32", places).replace("5x6x", f"5x{extent}x")
    x = np.random.default_rng(0).permuted(np.tile(np.arange(extent, dtype=np.float32) // 2, (5, 1)), axis=1)
    if not is_computed:  # places wrap
        with pytest.raises(stepladder.StepladderError, match="a reduction"):
            stepladder.compile(text, device="emulator", target="sm_80")
        return
    got = stepladder.compile(text, device="emulator", target="sm_80")(x)[1]
    assert np.array_equal(got.view(f"u{got.itemsize}"), x.argmin(1))


@pytest.mark.parametrize(
    ("operand", "factors", "count", "result"),
    [
        ("bf16", "bf16", 1, "f32"),  # of jax.nn.dot_product_attention
        ("f16", "f16", 1, "f16"),
        ("f32", "bf16", 1, "f32"),  # rounds its factors
        ("f32", "bf16", 3, "f32"),  # of three products, which are as exact as f32
        ("f32", "tf32", 1, "f32"),
    ],
)
def test_products_by_an_algorithm(operand: str, factors: str, count: int, result: str) -> None:
    """Sums are of f32: those of f16 would be infinite here. Factors are rounded where the algorithm does."""
    text = f"""func.func @main(%x: tensor<8x64x{operand}>, %w: tensor<64x16x{operand}>) -> tensor<8x16x{result}> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT],
    algorithm = <lhs_precision_type = {factors}, rhs_precision_type = {factors}, accumulation_type = f32,
      lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {count},
      allow_imprecise_accumulation = false>
    : (tensor<8x64x{operand}>, tensor<64x16x{operand}>) -> tensor<8x16x{result}>
  return %0 : tensor<8x16x{result}>
}}"""
    rng = np.random.default_rng(0)
    dtypes = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
    x = rng.standard_normal((8, 64)).astype(dtypes[operand])
    w = rng.standard_normal((64, 16)).astype(dtypes[operand])
    x[:, 0] = w[0] = x[:, 1] = 300
    w[1] = -300  # the partial sum is 90000
    is_rounded = (operand, factors, count) == ("f32", "bf16", 1)
    left, right = (each.astype(ml_dtypes.bfloat16 if is_rounded else each.dtype).astype(float) for each in (x, w))
    found = stepladder.compile(text, device="emulator", target="sm_80")(x, w).astype(float)
    largest = np.abs(left @ right).max()
    assert np.abs(found - left @ right).max() < largest * (1e-3 if result == "f16" else 1e-6)


@pytest.mark.parametrize(
    ("types", "result"), [(("ui8", "ui8"), "i32"), (("ui8", "i8"), "i32"), (("ui16", "ui8"), "ui32")]
)
def test_products_of_integers_without_a_sign(types: tuple[str, str], result: str) -> None:
    a, b = (f"tensor<{shape}x{type_}>" for shape, type_ in zip(("8x16", "16x24"), types))
    text = f"""func.func @main(%a: {a}, %b: {b}) -> tensor<8x24x{result}> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> tensor<8x24x{result}>
  return %0 : tensor<8x24x{result}>
}}"""
    rng = np.random.default_rng(0)
    numpy = [type_.replace("i", "int") for type_ in types]
    drawn = [rng.integers(*limits(type_), shape, endpoint=True) for type_, shape in zip(numpy, ((8, 16), (16, 24)))]
    arrays = [array.astype(type_).view(type_.removeprefix("u")) for array, type_ in zip(drawn, numpy)]
    found = stepladder.compile(text, device="emulator", target="sm_80")(*arrays)
    np.testing.assert_array_equal(found, (drawn[0] @ drawn[1]).astype(np.int32))


def limits(type_: str) -> tuple[int, int]:
    return int(np.iinfo(type_).min), int(np.iinfo(type_).max)


def test_a_refusal_names_the_line_of_the_op() -> None:
    product = """func.func @main(%a: tensor<8x16xui64>, %b: tensor<16x8xui64>) -> tensor<8x8xui64> {

  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x16xui64>, tensor<16x8xui64>) -> tensor<8x8xui64>
  return %0 : tensor<8x8xui64>
}"""
    with pytest.raises(stepladder.StepladderError, match="general' of integers without a sign") as refused:
        stepladder.compile(product, device="emulator", target="sm_80")
    assert refused.value.location and refused.value.location.endswith(":3:8")


# The layers of JAX's `gelu(x @ w + b) @ v`: the activation reads its sums four times.
GELU = """
func.func public @main(%x: tensor<24x32xf16>, %w: tensor<32x64xf16>, %b: tensor<64xf16>, %v: tensor<64x32xf16>)
    -> tensor<24x32xf32> {
  %cubes = stablehlo.constant dense<0.044715> : tensor<24x64xf32>
  %scale = stablehlo.constant dense<0.797884583> : tensor<24x64xf32>
  %one = stablehlo.constant dense<1.0> : tensor<24x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<24x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x32xf16>, tensor<32x64xf16>) -> tensor<24x64xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xf16>) -> tensor<24x64xf16>
  %2 = stablehlo.convert %1 : (tensor<24x64xf16>) -> tensor<24x64xf32>
  %3 = stablehlo.add %0, %2 : tensor<24x64xf32>
  %4 = stablehlo.multiply %3, %3 : tensor<24x64xf32>
  %5 = stablehlo.multiply %4, %3 : tensor<24x64xf32>
  %6 = stablehlo.multiply %5, %cubes : tensor<24x64xf32>
  %7 = stablehlo.add %3, %6 : tensor<24x64xf32>
  %8 = stablehlo.multiply %7, %scale : tensor<24x64xf32>
  %9 = stablehlo.tanh %8 : tensor<24x64xf32>
  %10 = stablehlo.add %9, %one : tensor<24x64xf32>
  %11 = stablehlo.multiply %10, %half : tensor<24x64xf32>
  %12 = stablehlo.multiply %3, %11 : tensor<24x64xf32>
  %13 = stablehlo.convert %12 : (tensor<24x64xf32>) -> tensor<24x64xf16>
  %14 = stablehlo.dot_general %13, %v, contracting_dims = [1] x [0]
    : (tensor<24x64xf16>, tensor<64x32xf16>) -> tensor<24x32xf32>
  return %14 : tensor<24x32xf32>
}
"""


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_an_activation_of_many_ops_is_fused(target: str) -> None:
    rng = np.random.default_rng(0)
    made = stepladder.compile(GELU, device="emulator", target=target)
    assert isinstance(made, stepladder.Function)
    assert [launch.stage for launch in made.manifest.launches] == ["main_matmul_0", "main_matmul_1"]
    x, w, b, v = (rng.uniform(-1, 1, item.shape).astype(np.float16) for item in made.inputs)
    sums = x.astype(np.float64) @ w.astype(np.float64) + b
    hidden = 0.5 * sums * (1 + np.tanh(0.797884583 * (sums + 0.044715 * sums**3)))
    assert np.abs(made(x, w, b, v) - hidden @ v.astype(np.float64)).max() < 0.02


MASKED = """func.func @main(%q: tensor<2x3x16x32xf16>, %k: tensor<2x3x24x32xf16>, %mask: tensor<2x24xf32>)
    -> tensor<2x3x16x24xf32> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
    : (tensor<2x3x16x32xf16>, tensor<2x3x24x32xf16>) -> tensor<2x3x16x24xf32>
  %all = stablehlo.broadcast_in_dim %mask, dims = [0, 3] : (tensor<2x24xf32>) -> tensor<2x3x16x24xf32>
  %a = stablehlo.add %s, %all : tensor<2x3x16x24xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [3]
    : (tensor<2x3x16x24xf32>, tensor<f32>) -> tensor<2x3x16xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<2x3x16xf32>) -> tensor<2x3x16x24xf32>
  %d = stablehlo.subtract %a, %b : tensor<2x3x16x24xf32>
  return %d : tensor<2x3x16x24xf32>
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_no_kernel_repeats_a_mask_for_all_heads(target: str) -> None:
    """The kernel of the rows reads it, not that of the matmul, which reads matrices, rows and columns."""
    made = stepladder.compile(MASKED, device="emulator", target=target)
    assert isinstance(made, stepladder.Function)
    assert [launch.stage for launch in made.manifest.launches] == ["main_matmul_0", "main_rows_0"]
    rng = np.random.default_rng(0)
    shapes = [item.shape for item in made.inputs]
    q, k, mask = (rng.integers(-2, 3, shape).astype(dtype) for shape, dtype in zip(shapes, ("f2", "f2", "f4")))
    sums = np.einsum("bhmk,bhnk->bhmn", q.astype(np.float64), k.astype(np.float64)) + mask[:, None, None]
    np.testing.assert_array_equal(made(q, k, mask), sums - sums.max(-1, keepdims=True))
