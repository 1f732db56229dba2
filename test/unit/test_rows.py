"""Chains of reductions along rows and elementwise ops: drawn functions compute what the reference computes."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from combinations import sample
from stepladder.emulator.functions import EmulatedFunction
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.request import Request
from stepladder.verify.function_check import check_function

pytestmark = pytest.mark.usefixtures("needs_ptxas")

_REDUCTIONS = {"arith.addf": "0.0", "arith.maximumf": "{low}", "arith.minimumf": "{high}"}
_LOW = {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}
_HIGH = {"f32": "0x7F800000", "f16": "0x7C00", "bf16": "0x7F80"}


class _Program:
    """A function of ops over the same rows, drawn one after the other: each reads values that are there."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.draw = generator
        rows = [int(generator.integers(1, 5)) for _ in range(int(generator.integers(0, 3)))]
        columns = [int(generator.choice([3, 8, 33, 40, 600])), *([2] if generator.random() < 0.2 else [])]
        self.shapes = {True: [*rows, *columns], False: rows}  # by whether a value has columns
        self.has_unit = generator.random() < 0.4
        self.lines: list[str] = []
        self.values: list[tuple[str, str, bool]] = []  # name, element type, whether it has columns
        self.read: set[str] = set()

    def type_of(self, element: str, is_wide: bool) -> str:
        shape = self.shapes[is_wide]
        # A unit axis between rows and columns, as where a front end keeps a dimension.
        middle = [1] if self.has_unit else []
        rank = len(self.shapes[False])
        return f"tensor<{'x'.join(map(str, [*shape[:rank], *middle, *shape[rank:], element]))}>"

    def map_of(self, is_wide: bool) -> str:
        loops = [f"d{number}" for number in range(len(self.shapes[True]) + self.has_unit)]
        rank = len(self.shapes[False])
        kept = loops if is_wide else [*loops[:rank], *(["0"] if self.has_unit else [])]
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(kept)})>"

    def add(self, number: int, is_reduction: bool) -> None:
        """Adds an op that reads one or two values."""
        element = str(self.draw.choice(["f32", "f16", "bf16"]))
        wide = [value for value in self.values if value[2]]
        first = wide[int(self.draw.integers(len(wide)))]
        second = self.values[-1 if number == 1 else int(self.draw.integers(len(self.values)))]
        self.read |= {first[0], second[0]}
        kind = str(self.draw.choice(list(_REDUCTIONS))) if is_reduction else ""
        start = _REDUCTIONS.get(kind, "").format(low=_LOW[element], high=_HIGH[element])
        result = self.type_of(element, not is_reduction)
        maps = [self.map_of(first[2]), self.map_of(second[2]), self.map_of(not is_reduction)]
        rank = len(self.shapes[True]) + self.has_unit
        reduced = len(self.shapes[False]) + self.has_unit if is_reduction else rank
        kinds = ", ".join(['"parallel"'] * reduced + ['"reduction"'] * (rank - reduced))
        self.lines += [f"%e{number} = tensor.empty() : {result}"]
        outs = f"%e{number}"
        if is_reduction:
            self.lines += [
                f"%s{number} = arith.constant {start} : {element}",
                f"%f{number} = linalg.fill ins(%s{number} : {element}) outs(%e{number} : {result}) -> {result}",
            ]
            outs = f"%f{number}"
        inputs = ", ".join(self.type_of(value[1], value[2]) for value in (first, second))
        last = (
            [f"%r = {kind} %t, %out : {element}"]
            if is_reduction
            else [f"%half = arith.constant 0.5 : {element}", f"%r = arith.mulf %t, %half : {element}"]
        )
        body = [
            *_converted("x", first[1]),
            *_converted("y", second[1]),
            f"%w = {self.draw.choice(['arith.addf', 'arith.subf', 'arith.mulf'])} %xw, %yw : f32",
            *(["%v = math.tanh %w : f32"] if self.draw.random() < 0.7 else ["%v = arith.addf %w, %w : f32"]),
            *([f"%t = arith.truncf %v : f32 to {element}"] if element != "f32" else ["%t = arith.addf %v, %v : f32"]),
            *last,
        ]
        self.lines += [
            f"%{number} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
            f"ins({first[0]}, {second[0]} : {inputs}) outs({outs} : {result}) {{",
            f"^bb0(%x: {first[1]}, %y: {second[1]}, %out: {element}):",
            *body,
            f"linalg.yield %r : {element}",
            f"}} -> {result}",
        ]
        self.values.append((f"%{number}", element, not is_reduction))

    def text(self) -> str:
        """Returns the function, with two arguments; it returns what no op reads, and one value that may be read."""
        self.values = [("%a", "f32", True), ("%b", "f16", bool(self.draw.random() < 0.5))]
        arguments = list(self.values)
        for number in range(int(self.draw.integers(3, 8))):
            self.add(number, is_reduction=number == 0 or self.draw.random() < 0.4)
        made = self.values[2:]
        results = [value for value in made if value[0] not in self.read]
        extra = made[int(self.draw.integers(len(made)))]
        results = [*results, *([extra] if extra not in results else [])]
        types = ", ".join(self.type_of(value[1], value[2]) for value in results)
        given = ", ".join(f"{name}: {self.type_of(element, is_wide)}" for name, element, is_wide in arguments)
        returned = f"return {', '.join(value[0] for value in results)} : {types}"
        return f"func.func @drawn({given}) -> ({types}) {{\n" + "\n".join([*self.lines, returned]) + "\n}\n"


def _converted(name: str, element: str) -> list[str]:
    """Returns the conversion of a value to f32."""
    op = "arith.negf" if element == "f32" else "arith.extf"
    return [f"%{name}w = {op} %{name} : {element}{'' if element == 'f32' else ' to f32'}"]


@pytest.mark.parametrize("seed", sample(range(200), 50))
def test_drawn_chains(seed: int) -> None:
    text = _Program(np.random.default_rng(seed)).text()
    with mlir_context():
        made = build_any(text, f"chain {seed}", Request("auto", {"target": "sm_90a"}))
    assert isinstance(made, FunctionBuild)
    stages = [launch.stage for launch in made.bundle.manifest.launches]
    assert any("_rows_" in stage for stage in stages), stages
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, seed) if not report.passed] == []
    assert function.findings == []


# The variance is in f64, as torch-mlir writes that of a layer norm.
NORM = """func.func @norm(%x: tensor<5x40xf16>) -> tensor<5x40xf16> {
  %zero = arith.constant 0.0 : f64
  %count = arith.constant 40.0 : f64
  %0 = tensor.empty() : tensor<5x40xf64>
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x40xf16>) outs(%0 : tensor<5x40xf64>) {
  ^bb0(%a: f16, %out: f64):
    %y = arith.extf %a : f16 to f64
    linalg.yield %y : f64
  } -> tensor<5x40xf64>
  %1 = tensor.empty() : tensor<5x1xf64>
  %2 = linalg.fill ins(%zero : f64) outs(%1 : tensor<5x1xf64>) -> tensor<5x1xf64>
  %sum = linalg.generic {indexing_maps = [#all, #one], iterator_types = ["parallel", "reduction"]}
      ins(%wide : tensor<5x40xf64>) outs(%2 : tensor<5x1xf64>) {
  ^bb0(%a: f64, %out: f64):
    %y = arith.addf %a, %out : f64
    linalg.yield %y : f64
  } -> tensor<5x1xf64>
  %squares = linalg.generic {indexing_maps = [#all, #one, #one], iterator_types = ["parallel", "reduction"]}
      ins(%wide, %sum : tensor<5x40xf64>, tensor<5x1xf64>) outs(%2 : tensor<5x1xf64>) {
  ^bb0(%a: f64, %s: f64, %out: f64):
    %mean = arith.divf %s, %count : f64
    %d = arith.subf %a, %mean : f64
    %q = arith.mulf %d, %d : f64
    %y = arith.addf %q, %out : f64
    linalg.yield %y : f64
  } -> tensor<5x1xf64>
  %3 = tensor.empty() : tensor<5x40xf16>
  %y = linalg.generic {indexing_maps = [#all, #one, #one, #all], iterator_types = ["parallel", "parallel"]}
      ins(%wide, %sum, %squares : tensor<5x40xf64>, tensor<5x1xf64>, tensor<5x1xf64>) outs(%3 : tensor<5x40xf16>) {
  ^bb0(%a: f64, %s: f64, %q: f64, %out: f16):
    %mean = arith.divf %s, %count : f64
    %d = arith.subf %a, %mean : f64
    %variance = arith.divf %q, %count : f64
    %narrow = arith.truncf %variance : f64 to f32
    %r = math.rsqrt %narrow : f32
    %difference = arith.truncf %d : f64 to f32
    %n = arith.mulf %difference, %r : f32
    %h = arith.truncf %n : f32 to f16
    linalg.yield %h : f16
  } -> tensor<5x40xf16>
  return %y : tensor<5x40xf16>
}
"""


def test_sums_of_f64_are_those_of_lanes() -> None:
    maps = {"#all": "affine_map<(i, j) -> (i, j)>", "#one": "affine_map<(i, j) -> (i, 0)>"}
    function = stepladder.compile(
        NORM.replace("#all", maps["#all"]).replace("#one", maps["#one"]), device="emulator", target="sm_90a"
    )
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["norm_rows_0"]
    x = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float16)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    assert np.abs(function(x) - expected).max() < 2e-3


def test_rows_that_are_written_in_another_order() -> None:
    """A norm whose result is transposed, in vectors; a reduction of booleans."""
    text = """
#all = affine_map<(i, j, k) -> (i, j, k)>
#turned = affine_map<(i, j, k) -> (j, i, k)>
#turned_row = affine_map<(i, j, k) -> (j, i)>
func.func @f(%x: tensor<2x3x64xf16>) -> tensor<3x2x64xf16> {
  %zeros = arith.constant dense<0.0> : tensor<2x3xf32>
  %sums = linalg.generic {indexing_maps = [#all, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x3x64xf16>) outs(%zeros : tensor<2x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %wide = arith.extf %in : f16 to f32
    %square = arith.mulf %wide, %wide : f32
    %v = arith.addf %square, %out : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  %no = arith.constant dense<false> : tensor<2x3xi1>
  %any = linalg.generic {indexing_maps = [#all, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x3x64xf16>) outs(%no : tensor<2x3xi1>) {
  ^bb0(%in: f16, %out: i1):
    %limit = arith.constant 2.5 : f16
    %large = arith.cmpf ogt, %in, %limit : f16
    %v = arith.ori %large, %out : i1
    linalg.yield %v : i1
  } -> tensor<2x3xi1>
  %0 = tensor.empty() : tensor<3x2x64xf16>
  %y = linalg.generic {indexing_maps = [#turned, #turned_row, #turned_row, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sums, %any : tensor<2x3x64xf16>, tensor<2x3xf32>, tensor<2x3xi1>) outs(%0 : tensor<3x2x64xf16>) {
  ^bb0(%in: f16, %sum: f32, %is_large: i1, %out: f16):
    %wide = arith.extf %in : f16 to f32
    %root = math.rsqrt %sum : f32
    %negative = arith.negf %root : f32
    %scale = arith.select %is_large, %negative, %root : f32
    %v = arith.mulf %wide, %scale : f32
    %h = arith.truncf %v : f32 to f16
    linalg.yield %h : f16
  } -> tensor<3x2x64xf16>
  return %y : tensor<3x2x64xf16>
}
"""
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert len(function.manifest.launches) == 1
    x = np.random.default_rng(0).standard_normal((2, 3, 64)).astype(np.float16)
    wide = x.astype(np.float64)
    signs = np.where((x > 2.5).any(-1, keepdims=True), -1, 1)
    assert {*signs.flat} == {-1, 1}
    expected = (signs * wide / np.sqrt((wide**2).sum(-1, keepdims=True))).transpose(1, 0, 2)
    np.testing.assert_allclose(function(x), expected, atol=1e-3)


def test_axes_of_one_element_do_not_make_rows() -> None:
    """A sum of the columns of a matrix is not one along rows, although another operand, with an axis of one element,
    has as many axes and is read along them."""
    text = """
func.func @f(%w: tensor<2x1x2048xf32>, %b: tensor<2x1xf32>, %x: tensor<2x2048x32xf32>) -> tensor<2x1x32xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2x1x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, u, j, k) -> (i, u, k)>, affine_map<(i, u, j, k) -> (i, u)>,
      affine_map<(i, u, j, k) -> (i, k, j)>, affine_map<(i, u, j, k) -> (i, u, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %b, %x : tensor<2x1x2048xf32>, tensor<2x1xf32>, tensor<2x2048x32xf32>) outs(%zeros : tensor<2x1x32xf32>) {
  ^bb0(%a: f32, %s: f32, %c: f32, %out: f32):
    %q = arith.divf %a, %s : f32
    %m = arith.mulf %q, %c : f32
    %v = arith.addf %m, %out : f32
    linalg.yield %v : f32
  } -> tensor<2x1x32xf32>
  return %y : tensor<2x1x32xf32>
}
"""
    function = stepladder.compile(text, target="sm_80", device="emulator")
    generator = np.random.default_rng(0)
    w, b, x = (generator.uniform(1, 2, shape).astype(np.float32) for shape in ((2, 1, 2048), (2, 1), (2, 2048, 32)))
    np.testing.assert_allclose(function(w, b, x), (w / b[..., None]) @ x, rtol=1e-5)
