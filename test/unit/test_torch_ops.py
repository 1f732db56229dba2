"""Ops of torch-mlir's dialect `tm_tensor`, as `torch_mlir.fx` writes them: sorts, running sums, writes by indices."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.cli.main import main
from stepladder.mlir.bindings import PREFIX
from stepladder.payload import stablehlo
from stepladder.runtime.errors import StepladderError

pytestmark = [
    pytest.mark.usefixtures("needs_ptxas"),
    pytest.mark.skipif(importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"),
]

# `topk` of the columns, whose sort of all elements two slices read; a running sum of f16 along the first axis; a
# scatter that adds to rows, and one that writes elements.
OPS = """
#all = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<3x5xf16>, %at: tensor<2x1xi64>, %rows: tensor<2x1x5xf16>, %places: tensor<2x2xi64>,
    %new: tensor<2xf16>) -> (tensor<3x2xf16>, tensor<3x2xi64>, tensor<3x5xf16>, tensor<3x5xf16>, tensor<3x5xf16>) {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<3x5xi64>
  %numbers = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]}
      outs(%0 : tensor<3x5xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<3x5xi64>
  %sorted:2 = tm_tensor.sort dimension(1) outs(%x, %numbers : tensor<3x5xf16>, tensor<3x5xi64>) {
  ^bb0(%a: f16, %b: f16, %i: i64, %j: i64):
    %t = arith.cmpf oge, %a, %b : f16
    tm_tensor.yield %t : i1
  } -> tensor<3x5xf16>, tensor<3x5xi64>
  %top = tensor.extract_slice %sorted#0[0, 0] [3, 2] [1, 1] : tensor<3x5xf16> to tensor<3x2xf16>
  %top_at = tensor.extract_slice %sorted#1[0, 0] [3, 2] [1, 1] : tensor<3x5xi64> to tensor<3x2xi64>
  %1 = tensor.empty() : tensor<3x5xf16>
  %2 = linalg.fill ins(%zero : f16) outs(%1 : tensor<3x5xf16>) -> tensor<3x5xf16>
  %3 = tensor.empty() : tensor<5xf16>
  %4 = linalg.fill ins(%zero : f16) outs(%3 : tensor<5xf16>) -> tensor<5xf16>
  %sums:2 = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<3x5xf16>)
      outs(%2, %4 : tensor<3x5xf16>, tensor<5xf16>) {
  ^bb0(%a: f16, %b: f16):
    %s = arith.addf %a, %b : f16
    tm_tensor.yield %s : f16
  } -> tensor<3x5xf16>, tensor<5xf16>
  %added = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false)
      ins(%rows, %at : tensor<2x1x5xf16>, tensor<2x1xi64>) outs(%x : tensor<3x5xf16>) {
  ^bb0(%update: f16, %old: f16):
    %s = arith.addf %old, %update : f16
    tm_tensor.yield %s : f16
  } -> tensor<3x5xf16>
  %written = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(true)
      ins(%new, %places : tensor<2xf16>, tensor<2x2xi64>) outs(%x : tensor<3x5xf16>) {
  ^bb0(%update: f16, %old: f16):
    tm_tensor.yield %update : f16
  } -> tensor<3x5xf16>
  return %top, %top_at, %sums#0, %added, %written
    : tensor<3x2xf16>, tensor<3x2xi64>, tensor<3x5xf16>, tensor<3x5xf16>, tensor<3x5xf16>
}
"""


def test_sorts_running_sums_and_scatters() -> None:
    function = stepladder.compile(OPS, device="emulator", target="sm_90a")
    x = np.array([[1, 3, 3, -2, 0], [0.5, np.nan, 7, 7, -1], [2, 2, 2, 2, 4]], np.float16)
    rows = np.arange(10, dtype=np.float16).reshape(2, 1, 5)
    at, places = np.array([[2], [2]]), np.array([[0, 4], [2, 1]])
    new = np.array([8, 9], np.float16)
    top, top_at, sums, added, written = function(x, at, rows, places, new)
    np.testing.assert_array_equal(top, np.array([[3, 3], [np.nan, 7], [4, 2]]))
    np.testing.assert_array_equal(top_at, [[1, 2], [1, 2], [4, 0]])  # equal elements keep their order
    np.testing.assert_array_equal(sums, np.cumsum(x.astype(np.float64), 0))
    wanted = x.copy()
    wanted[2] += rows[0, 0] + rows[1, 0]
    np.testing.assert_array_equal(added, wanted)
    wanted = x.copy()
    wanted[0, 4], wanted[2, 1] = new
    np.testing.assert_array_equal(written, wanted)


def _scan(extent: int, element: str = "i32", body: str = "arith.addi %a, %b", inclusive: str = "true") -> str:
    """Returns a running reduction, with the zero that its results begin from."""
    zero = "0" if element.startswith("i") else "0.0"
    return f"""func.func @f(%x: tensor<{extent}x{element}>) -> tensor<{extent}x{element}> {{
  %zero = arith.constant {zero} : {element}
  %0 = tensor.empty() : tensor<{extent}x{element}>
  %1 = tensor.empty() : tensor<{element}>
  %2 = linalg.fill ins(%zero : {element}) outs(%1 : tensor<{element}>) -> tensor<{element}>
  %3:2 = tm_tensor.scan dimension(0) inclusive({inclusive}) ins(%x : tensor<{extent}x{element}>)
      outs(%0, %2 : tensor<{extent}x{element}>, tensor<{element}>) {{
  ^bb0(%a: {element}, %b: {element}):
    %s = {body} : {element}
    tm_tensor.yield %s : {element}
  }} -> tensor<{extent}x{element}>, tensor<{element}>
  return %3#0 : tensor<{extent}x{element}>
}}
"""


def test_long_running_sums_are_those_of_blocks() -> None:
    x = np.random.default_rng(0).integers(-9, 9, 1030).astype(np.int32)
    np.testing.assert_array_equal(
        stepladder.compile(_scan(1030), device="emulator", target="sm_90a")(x), np.cumsum(x, dtype=np.int32)
    )


SORT = """func.func @f(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = tm_tensor.sort dimension(0) outs(%x : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.absf %a : f32
    %t = arith.cmpf oge, %c, %b : f32
    tm_tensor.yield %t : i1
  } -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
"""
SCATTER = """func.func @f(%x: tensor<?xi64>, %n: tensor<4xi64>, %at: tensor<4x1xi64>) -> tensor<?xi64> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false)
      ins(%n, %at : tensor<4xi64>, tensor<4x1xi64>) outs(%x : tensor<?xi64>) {
  ^bb0(%update: i64, %old: i64):
    %s = arith.addi %old, %update : i64
    tm_tensor.yield %s : i64
  } -> tensor<?xi64>
  return %0 : tensor<?xi64>
}
"""


@pytest.mark.parametrize(
    ("text", "message", "accepted"),
    [
        (_scan(5, body="arith.subi %a, %b"), "a running reduction by a function of its own", "sums, products"),
        (_scan(5, inclusive="false"), "a running reduction without the element itself", "inclusive ones"),
        (SORT, "a sort by a function of its own", "one comparison of the elements of the first tensor"),
        (SCATTER.replace("?", "9").replace("addi", "subi"), "a scatter by a function of its own", "those that set"),
        (SCATTER, "'tm_tensor.scatter' has dynamic sizes", "static ones"),
        (SCATTER.replace("arith.addi", "arith.nothing"), "custom op 'arith.nothing' is unknown", ""),
    ],
)
def test_refused(text: str, message: str, accepted: str) -> None:
    with pytest.raises(StepladderError) as error:
        stablehlo.lowered(text, "payload.mlir", is_bound=True)
    assert message in error.value.message and "StableHLO" not in error.value.message
    assert str(error.value.location).startswith("payload.mlir:")
    assert accepted in "".join(error.value.notes)


UPDATES = """func.func @f(%x: tensor<9xi64>, %n: tensor<?xi64>, %at: tensor<?xi64>) -> tensor<9xi64> {
  %c0 = arith.constant 0 : index
  %count = tensor.dim %at, %c0 : tensor<?xi64>
  %places = tensor.expand_shape %at [[0, 1]] output_shape [%count, 1] : tensor<?xi64> into tensor<?x1xi64>
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false)
      ins(%n, %places : tensor<?xi64>, tensor<?x1xi64>) outs(%x : tensor<9xi64>) {
  ^bb0(%update: i64, %old: i64):
    %s = arith.addi %old, %update : i64
    tm_tensor.yield %s : i64
  } -> tensor<9xi64>
  return %0 : tensor<9xi64>
}
"""


def test_a_scatter_has_as_many_updates_as_a_call_passes() -> None:
    compiled = stepladder.compile(UPDATES, device="emulator", target="sm_80")
    x = np.arange(9)
    for places in ([2, 5, 2], [0]):
        updates = np.arange(len(places)) + 100
        wanted = x.copy()
        np.add.at(wanted, places, updates)
        np.testing.assert_array_equal(compiled(x, updates, np.array(places)), wanted)


def test_a_scatter_without_the_sizes_of_its_arguments_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scatter.mlir"
    path.write_text(UPDATES)
    command = ["compile", str(path), "--target", "sm_80", "-o", str(tmp_path / "scatter.bundle")]
    assert main([*command, "--bind", "arg1.0=3", "--bind", "arg2.0=3"]) == 0
    assert main(command) != 0
