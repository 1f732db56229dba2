"""Functions with results in the memory of arguments: caches of which a step writes a part."""

import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.emulator.function_steps import check_function_steps
from stepladder.emulator.functions import EmulatedFunction
from stepladder.emulator.step_report import StepReport
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import build_function
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import FunctionBundle, read_function
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

pytestmark = pytest.mark.usefixtures("needs_ptxas")

B, S, D = 2, 12, 16
CACHE, ROWS, PLACES = f"tensor<{B}x{S}x{D}xf16>", f"tensor<{B}x{D}xf16>", f"tensor<{B}xi64>"
WRITTEN = "affine_map<(b, s, d) -> (b, d)>, affine_map<(b, s, d) -> (b)>"
ALL = "affine_map<(b, s, d) -> (b, s, d)>"
# Elements that a step replaces: those of one row of each sequence, of the rows from a place on, and of the first two.
EQUAL = "%is = arith.cmpi eq, %at, %p : i64"
RANGE = "%c3 = arith.constant 3 : i64\n%t = arith.subi %at, %p : i64\n%is = arith.cmpi ult, %t, %c3 : i64"
FIRST = "%c2 = arith.constant 2 : i64\n%is = arith.cmpi ult, %at, %c2 : i64"


def replaced(condition: str) -> str:
    """Returns ops that replace the rows `%at` of a cache for which `%is` holds, as `%new`.

    Args:
        condition: ops that compute `%is`.
    """
    return f"""  %3 = tensor.empty() : {CACHE}
  %new = linalg.generic {{indexing_maps = [{WRITTEN}, {ALL}, {ALL}],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%row, %places, %cache : {ROWS}, {PLACES}, {CACHE}) outs(%3 : {CACHE}) {{
  ^bb0(%n: f16, %p: i64, %old: f16, %out: f16):
    %s = linalg.index 1 : index
    %at = arith.index_cast %s : index to i64
    {condition}
    %v = arith.select %is, %n, %old : f16
    linalg.yield %v : f16
  }} -> {CACHE}
"""


def step(condition: str, *, reads_old: bool = False) -> str:
    """Returns a step of decoding: a matmul, a row that is written to a cache, and the cache's products with it.

    Args:
        condition: ops that tell whether the row `%at` is written, as `%is`.
        reads_old: whether the products are of the cache before.
    """
    return f"""func.func @step(%x: {ROWS}, %cache: {CACHE} {{tf.aliasing_output = 1 : i32}}, %w: tensor<{D}x{D}xf16>,
    %places: {PLACES}) -> (tensor<{B}x{S}xf16>, {CACHE}) {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<{B}x{D}xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<{B}x{D}xf32>) -> tensor<{B}x{D}xf32>
  %2 = linalg.matmul ins(%x, %w : {ROWS}, tensor<{D}x{D}xf16>) outs(%1 : tensor<{B}x{D}xf32>) -> tensor<{B}x{D}xf32>
  %row = arith.truncf %2 : tensor<{B}x{D}xf32> to {ROWS}
{replaced(condition)}  %4 = tensor.empty() : tensor<{B}x{S}xf16>
  %none = arith.constant 0.0 : f16
  %5 = linalg.fill ins(%none : f16) outs(%4 : tensor<{B}x{S}xf16>) -> tensor<{B}x{S}xf16>
  %y = linalg.batch_matvec ins({"%cache" if reads_old else "%new"}, %row : {CACHE}, {ROWS})
      outs(%5 : tensor<{B}x{S}xf16>) -> tensor<{B}x{S}xf16>
  return %y, %new : tensor<{B}x{S}xf16>, {CACHE}
}}
"""


@functools.cache
def build(text: str) -> FunctionBundle:
    with mlir_context():
        return build_function(text, "step.mlir", Request("auto", {"target": "sm_90a"}, tuned=True)).bundle


def arrays(*places: int) -> tuple[np.ndarray, ...]:
    """Returns arguments: a cache of ones, a unit matrix, and rows of 2 and 3."""
    x = np.repeat(np.array([[2], [3]], np.float16), D, axis=1)
    return x, np.ones((B, S, D), np.float16), np.eye(D, dtype=np.float16), np.array(places)


@pytest.fixture(scope="module")
def in_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a step that writes a row of each sequence."""
    path = tmp_path_factory.mktemp("in_place") / "step.bundle"
    stepladder.compile(step(EQUAL), target="sm_90a", device="emulator").save(path)
    return path


@pytest.mark.parametrize(
    "condition, places, rows",
    [
        (EQUAL, (3, 11), ([3], [11])),
        (EQUAL, (S, -1), ([], [])),  # no rows of the cache
        (RANGE, (4, 10), ([4, 5, 6], [10, 11])),
        (RANGE, (-2, -S), ([0], [])),
        (FIRST, (7, 7), ([0, 1], [0, 1])),
    ],
)
def test_a_step_writes_its_part(condition: str, places: tuple[int, int], rows: tuple[list[int], list[int]]) -> None:
    bundle = build(step(condition))
    function = EmulatedFunction(bundle)
    given = arrays(*places)
    _, cache = function.run(dict(enumerate(given)))
    assert not function.findings
    wanted = np.ones((B, S, D))
    for number, (own, value) in enumerate(zip(rows, (2, 3))):
        wanted[number, own] = value
    assert np.array_equal(cache, wanted) and (given[1] == 1).all()
    # The kernel that writes has a thread for each element of the part, and does not read the cache.
    writer = next(item for item in bundle.manifest.launches if len(item.operands) <= 3 and item.kernel is not None)
    assert bundle.manifest.aliases[writer.operands[max(writer.operands)]] not in writer.operands.values()


@pytest.mark.parametrize("condition", [EQUAL, FIRST])
def test_each_step_of_a_part(condition: str) -> None:
    """The kernel of the part leaves the rest of the buffer as the argument was."""
    text = f"""func.func @part(%row: {ROWS}, %cache: {CACHE} {{tf.aliasing_output = 0 : i32}}, %places: {PLACES})
    -> {CACHE} {{
{replaced(condition)}  return %new : {CACHE}
}}
"""
    pipeline = Path(__file__).parents[2] / "transforms/functions/elementwise.mlir"
    reports: list[StepReport] = []
    with mlir_context():
        check_function_steps(text, "part.mlir", Request(str(pipeline)), reports.append)
    assert "distribute_elements" in [report.step for report in reports]
    assert all(report.passed for report in reports)


def test_a_call_changes_the_array(in_place: Path) -> None:
    function = stepladder.load(in_place, device="emulator")
    assert isinstance(function, stepladder.Function) and function.in_place == {1: 1}
    assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))
    given = arrays(0, 5)
    y, cache = function(*given)
    assert cache is given[1] and (cache[1, 5] == 3).all() and (cache[1, 4] == 1).all()
    assert y[1, 5] == 9 * D and y[1, 4] == 3 * D
    out = np.empty((B, S), np.float16), given[1]
    assert function(*given, out=out)[1] is given[1]
    with pytest.raises(
        stepladder.ArgumentError, match=r"argument 'out\[1\]' must be 'argument 1', whose memory it takes"
    ):
        function(*given, out=(out[0], np.ones_like(given[1])))


def test_the_memory_of_an_argument_is_for_one_result(in_place: Path) -> None:
    bundle = read_function(in_place)
    assert bundle.manifest.schema_version == 6
    data = json.loads((in_place / "manifest.json").read_text())
    assert [item.get("aliases") for item in data["buffers"] if item["kind"] == "result"].count(1) == 1
    for change, says in (
        ({"aliases": 0}, ".aliases' must be of a result, an argument of its type and shape"),
        ({"aliases": 9}, ".aliases' must be of a result"),
    ):
        buffers = [
            dataclasses.replace(item, **change) if item.aliases is not None else item
            for item in bundle.manifest.buffers
        ]
        wrong = dataclasses.replace(bundle, manifest=dataclasses.replace(bundle.manifest, buffers=tuple(buffers)))
        with pytest.raises(StepladderError, match=says):
            stepladder.runtime.bundle.check_function(wrong)


def test_an_argument_that_another_op_reads_keeps_its_memory() -> None:
    bundle = build(step(EQUAL, reads_old=True))
    assert not bundle.manifest.aliases and bundle.manifest.schema_version == 3
    given = arrays(3, 3)
    y, cache = EmulatedFunction(bundle).run(dict(enumerate(given)))
    assert (y[0] == 2 * D).all() and (cache[0, 3] == 2).all() and (given[1] == 1).all()


JAX = """module @jit_step {
  func.func public @main(%arg0: tensor<2x64xf16>, %arg1: tensor<24x64xf16> {tf.aliasing_output = 1 : i32},
      %arg2: tensor<64x64xf16>, %arg3: tensor<i32>) -> (tensor<2x64xf16>, tensor<24x64xf16>) {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0]
      : (tensor<2x64xf16>, tensor<64x64xf16>) -> tensor<2x64xf16>
    %1 = stablehlo.slice %0 [0:1, 0:64] : (tensor<2x64xf16>) -> tensor<1x64xf16>
    %2 = stablehlo.iota dim = 0 : tensor<24x64xi32>
    %3 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<24x64xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<24x64xi32>, tensor<24x64xi32>) -> tensor<24x64xi1>
    %5 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x64xf16>) -> tensor<24x64xf16>
    %6 = stablehlo.select %4, %5, %arg1 : tensor<24x64xi1>, tensor<24x64xf16>
    return %0, %6 : tensor<2x64xf16>, tensor<24x64xf16>
  }
}
"""


def test_a_donated_argument_of_jax() -> None:
    """What makes the condition is fused into the op that writes one row."""
    function = stepladder.compile(JAX, target="sm_90a", device="emulator")
    assert isinstance(function, stepladder.Function) and function.in_place == {1: 1}
    cache = np.zeros((24, 64), np.float16)
    function(np.ones((2, 64), np.float16), cache, np.eye(64, dtype=np.float16), np.array(5, np.int32))
    assert (cache[5] == 1).all() and cache.sum() == 64
    writer = function.manifest.launches[1].kernel
    assert writer is not None and writer.grid == (1, 1, 1)
