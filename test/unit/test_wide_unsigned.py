"""Reference programs of integers of 64 bits without a sign, at the values where a sign would matter, and comparisons
that are always true or false."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.cli.main import main
from stepladder.payload import reference_export
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.bundle import parse_reference
from stepladder.runtime.reference import REFERENCE, Program
from stepladder.verify import arrays
from stepladder.verify.reference_evaluation import Evaluation
from test_epilogues import PIPELINES, check
from test_scalar_ops import text_of

EDGES = [0, 1, 2, 3, 63, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**63 + 3, 2**64 - 2, 2**64 - 1]
MAP = "affine_map<(i) -> (i)>"


def program_of(given: str, result: str, line: str) -> Program:
    """Returns the reference of an elementwise op that makes %r of %x and %y, as a bundle holds it."""
    text = f"""func.func @f(%X: tensor<{len(EDGES) ** 2}x{given}>, %Y: tensor<{len(EDGES) ** 2}x{given}>,
        %O: tensor<{len(EDGES) ** 2}x{result}>) -> tensor<{len(EDGES) ** 2}x{result}> {{
  %p = linalg.generic {{indexing_maps = [{MAP}, {MAP}, {MAP}], iterator_types = ["parallel"]}}
      ins(%X, %Y : tensor<{len(EDGES) ** 2}x{given}>, tensor<{len(EDGES) ** 2}x{given}>)
      outs(%O : tensor<{len(EDGES) ** 2}x{result}>) {{
  ^bb0(%x: {given}, %y: {given}, %o: {result}):
    {line}
    linalg.yield %r : {result} }} -> tensor<{len(EDGES) ** 2}x{result}>
  return %p : tensor<{len(EDGES) ** 2}x{result}> }}"""
    with mlir_context():
        program = reference_export.export(parse_payload(text, "payload.mlir"), {})
    return parse_reference(program.to_text().encode(), REFERENCE)


def evaluated(program: Program, *inputs: np.ndarray) -> np.ndarray:
    evaluation = Evaluation(program, dict(enumerate(inputs)), arrays.NumPyArrays())
    return np.asarray(evaluation.whole(program.results[0].value))


@pytest.mark.parametrize(
    "name, relation, least",
    [
        ("divui", lambda x, y: x // y, 1),
        ("remui", lambda x, y: x % y, 1),
        ("ceildivui", lambda x, y: -(-x // y), 1),
        ("maxui", max, 0),
        ("minui", min, 0),
    ],
)
def test_quotients_and_extrema(name: str, relation: Callable[[int, int], int], least: int) -> None:
    pairs = [(x, y) for x, y in itertools.product(EDGES, EDGES) if y >= least]
    pairs += [(0, 1)] * (len(EDGES) ** 2 - len(pairs))
    x, y = np.array(pairs, np.uint64).T.view(np.int64)
    got = evaluated(program_of("i64", "i64", f"%r = arith.{name} %x, %y : i64"), x, y).view(np.uint64)
    assert got.tolist() == [relation(*pair) for pair in pairs]


@pytest.mark.parametrize("predicate", ["ult", "ule", "ugt", "uge"])
def test_comparisons(predicate: str) -> None:
    pairs = list(itertools.product(EDGES, EDGES))
    x, y = np.array(pairs, np.uint64).T.view(np.int64)
    got = evaluated(program_of("i64", "i1", f"%r = arith.cmpi {predicate}, %x, %y : i64"), x, y)
    relation = {"ult": int.__lt__, "ule": int.__le__, "ugt": int.__gt__, "uge": int.__ge__}[predicate]
    assert got.tolist() == [relation(*pair) for pair in pairs]


def test_shifts() -> None:
    pairs = list(itertools.product(EDGES, [0, 1, 2, 31, 32, 33, 52, 60, 61, 62, 63, 5, 7, 9]))
    x, y = np.array(pairs, np.uint64).T.view(np.int64)
    got = evaluated(program_of("i64", "i64", "%r = arith.shrui %x, %y : i64"), x, y).view(np.uint64)
    assert got.tolist() == [number >> distance for number, distance in pairs]


def test_conversions() -> None:
    """Of integers, rounded once; of floating-point numbers below 2^64, exactly."""
    x = np.array(EDGES * len(EDGES), np.uint64)
    got = evaluated(program_of("i64", "f64", "%r = arith.uitofp %x : i64 to f64"), x.view(np.int64), x.view(np.int64))
    assert got.tolist() == [float(number) for number in x.tolist()]
    whole = np.array([0.0, 1.75, 2.0**53, 2.0**62, 2.0**63, 2.0**63 + 2048, 2.0**64 - 2048] * 28)
    got = evaluated(program_of("f64", "i64", "%r = arith.fptoui %x : f64 to i64"), whole, whole)
    assert got.view(np.uint64).tolist() == [int(number) for number in whole]


@pytest.mark.parametrize("predicate, wanted", [("false", False), ("true", True)])
def test_comparisons_of_no_values(predicate: str, wanted: bool) -> None:
    x = np.resize(np.array([0.0, 1.0, np.nan, np.inf], np.float32), len(EDGES) ** 2)
    got = evaluated(program_of("f32", "i1", f"%r = arith.cmpf {predicate}, %x, %y : f32"), x, x[::-1].copy())
    assert got.tolist() == [wanted] * len(x)


BODY = """
%many = arith.constant -9000000000000000005 : i64
%five = arith.constant 5 : i64
%w = arith.extsi %x : i32 to i64
%a = arith.muli %w, %many : i64
%b = arith.divui %a, %five : i64
%c0 = arith.remui %a, %five : i64
%d = arith.ceildivui %a, %many : i64
%e0 = arith.shrui %a, %five : i64
%f = arith.xori %b, %c0 : i64
%g = arith.xori %d, %e0 : i64
%h = arith.xori %f, %g : i64
%i = arith.trunci %h : i64 to i32
%j = arith.uitofp %a : i64 to f32
%k = arith.cmpf true, %j, %j : f32
%l = arith.cmpf false, %j, %j : f32
%m = arith.select %l, %x, %i : i32
%r = arith.select %k, %m, %x : i32
"""


@pytest.mark.parametrize("where", ["wgmma, TMA", "mma_sync"])
def test_epilogues(where: str) -> None:
    check(text_of(BODY, "i8", "i32"), *PIPELINES[where], levels="last")


def compiled_stablehlo(line: str, result: str, *arguments: str) -> stepladder.Function:
    """Returns the kernels of one op of StableHLO that makes %r of %0, %1."""
    size = len(EDGES) ** 2
    names = ", ".join(f"%{number}: tensor<{size}x{type_}>" for number, type_ in enumerate(arguments))
    text = f"""func.func @main({names}) -> tensor<{size}x{result}> {{
  %r = stablehlo.{line.replace("tensor<", f"tensor<{size}x")}
  return %r : tensor<{size}x{result}>
}}"""
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    return function


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("divide", lambda x, y: x // y if y else 2**64 - 1),
        ("remainder", lambda x, y: x % y if y else x),
    ],
)
def test_quotients_of_stablehlo(name: str, relation: Callable[[int, int], int], tmp_path: Path) -> None:
    """By 0 too, as of those of fewer bits."""
    pairs = list(itertools.product(EDGES, EDGES))
    x, y = (np.array(numbers, np.uint64) for numbers in zip(*pairs))
    function = compiled_stablehlo(f"{name} %0, %1 : tensor<ui64>", "ui64", "ui64", "ui64")
    got = np.asarray(function(x.view(np.int64), y.view(np.int64))).view(np.uint64)
    assert got.tolist() == [relation(*pair) for pair in pairs]
    function.save(tmp_path / "function.bundle")
    assert main(["run", str(tmp_path / "function.bundle"), "--backend", "emulator"]) == 0


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("result", ["f64", "f32", "i64", "i32", "i8", "i1"])
def test_conversions_of_stablehlo(result: str) -> None:
    x = np.array(EDGES * len(EDGES), np.uint64)
    function = compiled_stablehlo(f"convert %0 : (tensor<ui64>) -> tensor<{result}>", result, "ui64")
    types = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i8": np.int8, "i1": np.bool_}
    assert np.array_equal(np.asarray(function(x.view(np.int64))).astype(types[result]), x.astype(types[result]))


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("type_", ["f64", "f32", "f16"])
def test_conversions_to_ui64_of_stablehlo(type_: str) -> None:
    numbers = [0.0, 0.5, 1.75, 300.5, 65504.0]
    numbers += [] if type_ == "f16" else [2.0**31, 2.0**53, 2.0**62, 2.0**63, 2.0**63 + 2.0**40, 2.0**64 - 2.0**40]
    x = np.resize(np.array(numbers, {"f64": np.float64, "f32": np.float32, "f16": np.float16}[type_]), len(EDGES) ** 2)
    function = compiled_stablehlo(f"convert %0 : (tensor<{type_}>) -> tensor<ui64>", "ui64", type_)
    got = np.asarray(function(x)).view(np.uint64)
    assert got.tolist() == [int(number) for number in x]


@pytest.mark.usefixtures("needs_ptxas")
def test_indices_without_a_sign_of_stablehlo() -> None:
    """Indices beyond the table are those of its last element, also such as an integer with a sign would not hold."""
    text = """func.func @main(%x: tensor<8xf32>, %i: tensor<3xui64>) -> tensor<3xf32> {
  %r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 1>, dimension_numbers = #stablehlo.gather<
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
    : (tensor<8xf32>, tensor<3xui64>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}"""
    function = stepladder.compile(text, target="sm_80", device="emulator")
    got = function(np.arange(8, dtype=np.float32), np.array([5, 2**63 + 1, 9], np.uint64).view(np.int64))
    assert np.asarray(got).tolist() == [5.0, 7.0, 7.0]
