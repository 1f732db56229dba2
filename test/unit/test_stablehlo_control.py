"""StableHLO: loops, branches, sorts, scatters, slices at computed places, and integers without a sign."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX
from stepladder.payload import stablehlo

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]


def _called(text: str, *arrays: np.ndarray) -> Any:  # noqa: ANN401
    return stepladder.compile(text, device="emulator", target="sm_80")(*arrays)


def _draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_loop_that_counts_is_unrolled() -> None:
    """A step is a branch of its own; rows are read and written at its number."""
    text = """
func.func private @step(%x: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<1x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %row = stablehlo.dynamic_slice %x, %n, %zero, sizes = [1, 4]
    : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  return %row : tensor<1x4xf32>
}
func.func public @main(%x: tensor<3x4xf32>) -> (tensor<1x4xf32>, tensor<3x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %first = stablehlo.constant dense<0.0> : tensor<1x4xf32>
  %rows = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %0:3 = stablehlo.while(%n = %zero, %sum = %first, %all = %rows) : tensor<i32>, tensor<1x4xf32>, tensor<3x4xf32>
    cond {
      %1 = stablehlo.compare LT, %n, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = func.call @step(%x, %n) : (tensor<3x4xf32>, tensor<i32>) -> tensor<1x4xf32>
      %2 = "stablehlo.case"(%n) ({
        %3 = stablehlo.negate %1 : tensor<1x4xf32>
        stablehlo.return %3 : tensor<1x4xf32>
      }, {
        stablehlo.return %1 : tensor<1x4xf32>
      }) : (tensor<i32>) -> tensor<1x4xf32>
      %4 = stablehlo.add %sum, %2 : tensor<1x4xf32>
      %5 = stablehlo.dynamic_update_slice %all, %4, %n, %zero
        : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %n, %one : tensor<i32>
      stablehlo.return %6, %4, %5 : tensor<i32>, tensor<1x4xf32>, tensor<3x4xf32>
    }
  return %0#1, %0#2 : tensor<1x4xf32>, tensor<3x4xf32>
}
"""
    x = _draw(3, 4)
    sums = np.cumsum(np.stack((-x[0], x[1], x[2])), 0)
    last, rows = _called(text, x)
    assert np.abs(last - sums[-1:]).max() < 1e-6 and np.abs(rows - sums).max() < 1e-6
    # The rows of all iterations are one concatenation.
    assert stablehlo.lowered(text, "text").count("tensor.concat") == 1


def test_loops_of_many_iterations_are_refused() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %limit = stablehlo.constant dense<1000> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%n = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %1 = stablehlo.compare LT, %n, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %n, %one : tensor<i32>
      stablehlo.return %1, %y : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
}"""
    with pytest.raises(stepladder.StepladderError, match="has more than 256 iterations"):
        stablehlo.lowered(text, "text")


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_branches(index: int) -> None:
    """An index that no branch has takes the last one."""
    text = """func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%n) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.exponential %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    x = _draw(4)
    wanted = (x, -x, np.exp(x))[index if index in (0, 1) else 2]
    assert np.abs(_called(text, x, np.array(index, np.int32)) - wanted).max() < 1e-6


@pytest.mark.parametrize("condition", [False, True])
def test_a_condition(condition: bool) -> None:
    text = """func.func @main(%x: tensor<4xf32>, %n: tensor<f32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.compare GT, %n, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = "stablehlo.if"(%0) ({
    %2 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
    x = _draw(4)
    got = _called(text, x, np.array(1.0 if condition else -1.0, np.float32))
    assert np.array_equal(got, -x if condition else x)


def test_a_sort_keeps_the_order_of_equal_keys() -> None:
    """Of keys and numbers along the first axis, downwards by the total order."""
    text = """func.func @main(%k: tensor<6x2xf32>, %v: tensor<6x2xi32>) -> (tensor<6x2xf32>, tensor<6x2xi32>) {
  %0:2 = "stablehlo.sort"(%k, %v) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<6x2xf32>, tensor<6x2xi32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  return %0#0, %0#1 : tensor<6x2xf32>, tensor<6x2xi32>
}"""
    keys = np.array([[1, 0], [3, -0.0], [np.nan, 1], [1, -np.inf], [3, 0], [-2, np.inf]], np.float32)
    numbers = np.arange(12, dtype=np.int32).reshape(6, 2)
    sorted_, moved = _called(text, keys, numbers)
    assert np.array_equal(sorted_[:, 0], [np.nan, 3, 3, 1, 1, -2], equal_nan=True)
    assert np.array_equal(sorted_[:, 1], [np.inf, 1, 0, 0, -0.0, -np.inf])
    assert np.array_equal(moved, [[4, 11], [2, 5], [8, 1], [0, 9], [6, 3], [10, 7]])


@pytest.mark.parametrize("direction", ["LE", "GE"])
def test_a_sort_by_a_comparison_that_equal_elements_fulfil(direction: str) -> None:
    text = f"""func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {{
  %0 = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = false}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare {direction}, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}) : (tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}}"""
    sorted_ = _called(text, np.array([2, 7, 2, -1, 7, 3], np.float32))
    assert np.array_equal(sorted_, [-1, 2, 2, 3, 7, 7] if direction == "LE" else [7, 7, 3, 2, 2, -1])


def test_largest_elements() -> None:
    text = """func.func @main(%x: tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %values, %indices = chlo.top_k(%x, k = 2) : tensor<3x5xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return %values, %indices : tensor<3x2xf32>, tensor<3x2xi32>
}"""
    x = np.array([[1, 5, 5, 2, 5], [-np.inf, -1, np.nan, 0, 9], [0, -0.0, 0, 0, 0]], np.float32)
    values, places = _called(text, x)
    assert np.array_equal(values, [[5, 5], [np.nan, 9], [0, 0]], equal_nan=True)
    assert np.array_equal(places, [[1, 2], [2, 4], [0, 2]])


@pytest.mark.parametrize("body, start", [("add", 0.0), ("maximum", -np.inf), ("set", None)])
def test_scatters(body: str, start: float | None) -> None:
    """Windows of two columns at places of two axes; one that is not whole inside is not written."""
    result = "%1" if start is not None else "%b"
    op = f"%1 = stablehlo.{body} %a, %b : tensor<f32>" if start is not None else ""
    text = f"""func.func @main(%x: tensor<4x5xf32>, %i: tensor<3x2xi32>, %u: tensor<3x2xf32>) -> tensor<4x5xf32> {{
  %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    {op}
    stablehlo.return {result} : tensor<f32>
  }}) : (tensor<4x5xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}}"""
    x, updates, places = _draw(4, 5), _draw(3, 2), np.array([[1, 3], [1, 2], [2, 4]], np.int32)
    wanted = x.copy()
    for (row, column), new in zip(places[:2], updates):
        for number, value in enumerate(new):
            old = wanted[row, column + number]
            wanted[row, column + number] = value if body == "set" else old + value if body == "add" else max(old, value)
    assert np.abs(_called(text, x, places, updates) - wanted).max() < 1e-6


def test_scatters_of_batches() -> None:
    """Each row has a place of its own."""
    text = """func.func @main(%x: tensor<3x4xi32>, %i: tensor<3x1xi32>, %u: tensor<3xi32>) -> tensor<3x4xi32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1],
      input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1],
      index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<3x4xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<3x4xi32>
  return %0 : tensor<3x4xi32>
}"""
    x, places = np.zeros((3, 4), np.int32), np.array([[1], [3], [0]], np.int32)
    wanted = x.copy()
    wanted[np.arange(3), places[:, 0]] = (7, 8, 9)
    assert np.array_equal(_called(text, x, places, np.array((7, 8, 9), np.int32)), wanted)


@pytest.mark.parametrize("start", [-3, 2, 9])
def test_slices_at_computed_places(start: int) -> None:
    """A place beyond the tensor is moved into it, for reads and writes."""
    text = """func.func @main(%x: tensor<6x3xf32>, %u: tensor<2x3xf32>, %n: tensor<i32>) ->
    (tensor<2x3xf32>, tensor<6x3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %n, %zero, sizes = [2, 3]
    : (tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %1 = stablehlo.dynamic_update_slice %x, %u, %n, %zero
    : (tensor<6x3xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<6x3xf32>
}"""
    x, part, at = _draw(6, 3), -_draw(2, 3), min(max(start, 0), 4)
    read, written = _called(text, x, part, np.array(start, np.int32))
    wanted = x.copy()
    wanted[at : at + 2] = part
    assert np.array_equal(read, x[at : at + 2]) and np.array_equal(written, wanted)


def test_integers_without_a_sign() -> None:
    """Comparisons, quotients and conversions of ui32; arguments and results keep their bits."""
    text = """func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xi1>) {
  %0 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xui32>
  %two = stablehlo.constant dense<2> : tensor<4xui32>
  %most = stablehlo.constant dense<4000000000> : tensor<4xui32>
  %1 = stablehlo.divide %0, %two : tensor<4xui32>
  %2 = stablehlo.minimum %0, %most : tensor<4xui32>
  %3 = stablehlo.convert %2 : (tensor<4xui32>) -> tensor<4xf32>
  %4 = stablehlo.convert %1 : (tensor<4xui32>) -> tensor<4xi32>
  %5 = stablehlo.compare GE, %0, %most, UNSIGNED : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  return %4, %3, %5 : tensor<4xi32>, tensor<4xf32>, tensor<4xi1>
}"""
    numbers = np.array([5, 2**31 + 4, 4_000_000_000, 2**32 - 1], np.uint32)
    halves, least, is_large = _called(text, numbers.view(np.int32))
    assert np.array_equal(halves, numbers // 2) and np.array_equal(is_large, numbers >= 4_000_000_000)
    assert np.array_equal(least, np.minimum(numbers, 4_000_000_000).astype(np.float32))


def test_places_without_a_sign() -> None:
    """One of 200 is beyond the tensor, and not below it."""
    text = """func.func @main(%x: tensor<6xf32>, %n: tensor<i32>) -> tensor<1xf32> {
  %0 = stablehlo.convert %n : (tensor<i32>) -> tensor<ui8>
  %1 = stablehlo.dynamic_slice %x, %0, sizes = [1] : (tensor<6xf32>, tensor<ui8>) -> tensor<1xf32>
  return %1 : tensor<1xf32>
}"""
    x = _draw(6)
    for place in (2, 200):
        assert _called(text, x, np.array(place, np.int32)) == x[min(place, 5)]


def test_paddings_by_a_computed_number() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %n: tensor<f32>) -> tensor<3x5xf32> {
  %0 = stablehlo.pad %x, %n, low = [1, 0], high = [0, 0], interior = [0, 1]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}"""
    x = _draw(2, 3)
    wanted = np.full((3, 5), 7, np.float32)
    wanted[1:, ::2] = x
    assert np.array_equal(_called(text, x, np.array(7, np.float32)), wanted)


def test_functions_of_chlo() -> None:
    text = """func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = chlo.erf_inv %x : tensor<7xf32> -> tensor<7xf32>
  return %0 : tensor<7xf32>
}"""
    x = np.array([-1.0, -0.25, 0.0, 0.1, 0.75, 1.0, 2.5], np.float32)
    wanted = np.array([-np.inf, -0.2253120532, 0.0, 0.0888559928, 0.8134198189, np.inf, np.nan])
    np.testing.assert_allclose(_called(text, x), wanted, rtol=2e-6, atol=2e-6)


def test_random_numbers_are_refused() -> None:
    text = """func.func private @threefry2x32(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @threefry2x32(%x) : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.negate %0 : tensor<f32>
  return %1 : tensor<f32>
}"""
    with pytest.raises(stepladder.StepladderError, match="'@threefry2x32' draws random numbers"):
        stablehlo.lowered(text, "text")


def test_constants_of_one_number_are_read_by_matmuls() -> None:
    """A kernel writes them: the operands of a matmul are buffers."""
    text = """func.func @main(%x: tensor<4x8xf16>) -> tensor<8x8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4x8xf16>
  %0 = stablehlo.dot_general %one, %x, contracting_dims = [0] x [0]
    : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""
    x = _draw(4, 8).astype(np.float16)
    wanted = np.broadcast_to(x.astype(float).sum(0), (8, 8))
    assert np.abs(_called(text, x) - wanted).max() < 1e-4


ANNOTATED = """module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<8x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = "{replicated}"}
      : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.custom_call @annotate_device_placement(%1) {has_side_effect = true,
      mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}
"""


def test_calls_that_annotate_a_tensor_are_the_tensor() -> None:
    x, w = _draw(8, 16), _draw(16, 8)
    np.testing.assert_allclose(_called(ANNOTATED, x, w), x.astype(np.float64) @ w, rtol=0, atol=1e-5)
    with pytest.raises(stepladder.StepladderError, match=r"'stablehlo\.custom_call' of @other is not") as caught:
        _called(ANNOTATED.replace("@Sharding", "@other"), x, w)
    assert (caught.value.location or "").startswith("payload:3")


def test_complex_numbers_are_refused() -> None:
    text = """func.func @main(%x: tensor<8x16xcomplex<f32>>, %w: tensor<16x8xcomplex<f32>>)
    -> tensor<8x8xcomplex<f32>> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xcomplex<f32>>, tensor<16x8xcomplex<f32>>) -> tensor<8x8xcomplex<f32>>
  return %0 : tensor<8x8xcomplex<f32>>
}
"""
    with pytest.raises(stepladder.StepladderError, match="a value of complex numbers") as caught:
        stepladder.compile(text, device="emulator", target="sm_80")
    assert (caught.value.location or "").startswith("payload:3")
    assert "real and imaginary parts" in caught.value.notes[0]


def test_a_sort_of_too_many_numbers() -> None:
    text = """func.func @main(%k: tensor<5000xf32>) -> tensor<5000xf32> {
  %0 = "stablehlo.sort"(%k) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<5000xf32>) -> tensor<5000xf32>
  return %0 : tensor<5000xf32>
}"""
    with pytest.raises(stepladder.StepladderError, match="a sort of 5000 numbers") as caught:
        _called(text, np.zeros(5000, np.float32))
    assert caught.value.notes == ("accepted: up to 4096, which are compared with each other",)
