"""Reductions that keep the index of the largest or smallest value, as argmax and argmin."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from stepladder.emulator.functions import EmulatedFunction
from stepladder.payload import reference_export
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.function_check import check_function, compare_results
from stepladder.verify.reference_evaluation import Evaluation

# As front ends write argmax: the value and its index, or the index alone.
TEXT = """func.func @f(%x: tensor<{m}x{k}xf16>, %w: tensor<{k}x{n}xf16>) -> {results} {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant {first} : f16
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %s = linalg.matmul ins(%x, %w : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) outs(%z : tensor<{m}x{n}xf32>)
    -> tensor<{m}x{n}xf32>
  %h = tensor.empty() : tensor<{m}x{n}xf16>
  %r = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%s : tensor<{m}x{n}xf32>) outs(%h : tensor<{m}x{n}xf16>) {{
  ^bb0(%a: f32, %o: f16):
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  }} -> tensor<{m}x{n}xf16>
  %f = tensor.empty() : tensor<{m}xf16>
  %g = tensor.empty() : tensor<{m}xi64>
  %v = linalg.fill ins(%low : f16) outs(%f : tensor<{m}xf16>) -> tensor<{m}xf16>
  %i = linalg.fill ins(%none : i64) outs(%g : tensor<{m}xi64>) -> tensor<{m}xi64>
  %best:2 = linalg.generic {{indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]}}
      ins(%r : tensor<{m}x{n}xf16>) outs(%v, %i : tensor<{m}xf16>, tensor<{m}xi64>) {{
  ^bb0(%a: f16, %most: f16, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %more = arith.{fold} %a, %most : f16
    %is = arith.cmpf {predicate}, %a, %most : f16
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f16, i64
  }} -> (tensor<{m}xf16>, tensor<{m}xi64>)
  return {returned}
}}
"""
MAPS = "#all = affine_map<(i, j) -> (i, j)>\n#rows = affine_map<(i, j) -> (i)>\n"
LARGEST = {"fold": "maximumf", "predicate": "ogt", "first": "0xFC00"}
SMALLEST = {"fold": "minimumf", "predicate": "olt", "first": "0x7C00"}


def text_of(m: int, n: int, k: int, body: dict[str, str], *, both: bool = True) -> str:
    types = f"tensor<{m}xf16>, tensor<{m}xi64>" if both else f"tensor<{m}xi64>"
    results, returned = (f"({types})", "%best#0, %best#1") if both else (types, "%best#1")
    returned = f"{returned} : {types}"
    return MAPS + TEXT.format(m=m, n=n, k=k, results=results, returned=returned, **body)


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("body", [LARGEST, SMALLEST])
def test_the_first_of_equal_ones(body: dict[str, str]) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-1, 2, (5, 8)).astype(np.float16), rng.integers(-1, 2, (8, 40)).astype(np.float16)
    x[1, 2] = np.nan
    function = stepladder.compile(text_of(5, 40, 8, body, both=False), device="emulator", target="sm_80")
    # NumPy takes the index of the first NaN; a NaN is neither larger nor smaller here, so that the first index stays.
    choose = np.argmax if body is LARGEST else np.argmin
    wanted = np.where(np.isnan(x @ w).any(-1), 0, choose(x @ w, -1))
    assert np.array_equal(function(x, w), wanted)


@pytest.mark.usefixtures("needs_ptxas")
def test_extrema_that_a_body_selects() -> None:
    """As TOSA's argmax is lowered. From NaN, a selection stays there, and no extremum does."""
    text = text_of(5, 40, 8, LARGEST).replace("    %more = arith.maximumf %a, %most : f16\n", "")
    text = text.replace("%new = ", "%more = arith.select %is, %a, %most : f16\n    %new = ")
    rng = np.random.default_rng(0)
    x, w = rng.integers(-1, 2, (5, 8)).astype(np.float16), rng.integers(-1, 2, (8, 40)).astype(np.float16)
    value, index = stepladder.compile(text, device="emulator", target="sm_80")(x, w)
    assert np.array_equal(value, (x @ w).max(-1)) and np.array_equal(index, (x @ w).argmax(-1))
    with pytest.raises(StepladderError) as error:
        stepladder.compile(text.replace("0xFC00", "0x7E00"), device="emulator", target="sm_80")
    assert "begins with a constant that is no NaN" in "".join(error.value.notes)


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("predicate", ["ogt", "oge"])
def test_an_index_along_several_axes(predicate: str) -> None:
    text = f"""func.func @f(%x: tensor<4x3x17xf32>) -> tensor<3xi64> {{
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %columns = arith.constant 17 : index
  %f = tensor.empty() : tensor<3xf32>
  %g = tensor.empty() : tensor<3xi64>
  %v = linalg.fill ins(%low : f32) outs(%f : tensor<3xf32>) -> tensor<3xf32>
  %i = linalg.fill ins(%none : i64) outs(%g : tensor<3xi64>) -> tensor<3xi64>
  %best:2 = linalg.generic {{iterator_types = ["reduction", "parallel", "reduction"], indexing_maps = [
      affine_map<(i, b, j) -> (i, b, j)>, affine_map<(i, b, j) -> (b)>, affine_map<(i, b, j) -> (b)>]}}
      ins(%x : tensor<4x3x17xf32>) outs(%v, %i : tensor<3xf32>, tensor<3xi64>) {{
  ^bb0(%a: f32, %most: f32, %at: i64):
    %row = linalg.index 0 : index
    %column = linalg.index 2 : index
    %before = arith.muli %row, %columns : index
    %place = arith.addi %before, %column : index
    %here = arith.index_cast %place : index to i64
    %is = arith.cmpf {predicate}, %a, %most : f32
    %more = arith.maximumf %a, %most : f32
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f32, i64
  }} -> (tensor<3xf32>, tensor<3xi64>)
  return %best#1 : tensor<3xi64>
}}
"""
    x = np.random.default_rng(0).integers(-3, 4, (4, 3, 17)).astype(np.float32)
    function = stepladder.compile(text, device="emulator", target="sm_80")
    rows = x.transpose(1, 0, 2).reshape(3, 68)
    wanted = rows.argmax(-1) if predicate == "ogt" else 67 - rows[:, ::-1].argmax(-1)
    assert np.array_equal(function(x), wanted)
    emulated = EmulatedFunction(function.bundle)
    assert all(report.passed for report in check_function(function.bundle, emulated, 0))


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("element", ["f16", "i32"])
def test_comparisons_of_the_extremum_so_far_with_a_value(element: str) -> None:
    low, test = EXCHANGED[element]
    text = PLACES.format(n=40, element=element, place="i32", low=low, test=test)
    x = np.random.default_rng(0).integers(-3, 4, (5, 40)).astype({"f16": np.float16, "i32": np.int32}[element])
    value, index = stepladder.compile(text, device="emulator", target="sm_80")(x)
    assert np.array_equal(value, x.max(-1)) and np.array_equal(index, x.argmax(-1))


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("predicate", ["ogt", "oge"])
@pytest.mark.parametrize("fold", ["maximumf %a, %most", "maxnumf %a, %most", "select %is, %a, %most"])
def test_a_block_finds_the_extremum_of_many_values(predicate: str, fold: str) -> None:
    """The first of equal ones, or the last, wherever they are, and what the body makes of NaN."""
    test = f"%is = arith.cmpf {predicate}, %a, %most : f32"
    text = PLACES.format(n=2309, element="f32", place="i32", low="0xFF800000", test=test)
    text = text.replace("select %is, %a, %most", fold)
    x = np.zeros((5, 2309), np.float32)
    for row, places in enumerate([(0, 2308), (255, 256), (2047, 2048), (7, 263), (2304, 2306)]):
        x[row, places] = 1
    x[3, 20] = np.nan
    value, index = stepladder.compile(text, device="emulator", target="sm_80")(x)
    wanted = np.array([[0, 255, 2047, 7, 2304], [2308, 256, 2048, 263, 2306]][predicate == "oge"])
    most = np.ones(5, np.float32)
    if fold.startswith("maximumf"):  # nothing exceeds a NaN
        most[3], wanted[3] = np.nan, 7
    assert np.array_equal(value, most, equal_nan=True) and np.array_equal(index, wanted)


@pytest.mark.usefixtures("needs_ptxas")
def test_places_that_their_type_does_not_have_are_not_separated() -> None:
    """The first NaN or largest one of 127 places; of more, i8 has no number that stands for none."""
    x = np.eye(5, 127, 122, np.float16)
    text = PLACES.format(n=127, element="f16", place="i8", low="-9.0", test=OF_TOSA)
    assert np.array_equal(stepladder.compile(text, device="emulator", target="sm_80")(x)[1], x.argmax(-1))
    with pytest.raises(StepladderError, match="a reduction whose last op does not fold"):
        stepladder.compile(text.replace("127x", "128x"), device="emulator", target="sm_80")


PLACES = (
    MAPS
    + """func.func @f(%x: tensor<5x{n}x{element}>) -> (tensor<5x{element}>, tensor<5x{place}>) {{
  %low = arith.constant {low} : {element}
  %none = arith.constant 0 : {place}
  %f = tensor.empty() : tensor<5x{element}>
  %g = tensor.empty() : tensor<5x{place}>
  %v = linalg.fill ins(%low : {element}) outs(%f : tensor<5x{element}>) -> tensor<5x{element}>
  %i = linalg.fill ins(%none : {place}) outs(%g : tensor<5x{place}>) -> tensor<5x{place}>
  %best:2 = linalg.generic {{indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<5x{n}x{element}>) outs(%v, %i : tensor<5x{element}>, tensor<5x{place}>) {{
  ^bb0(%a: {element}, %most: {element}, %at: {place}):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to {place}
    {test}
    %more = arith.select %is, %a, %most : {element}
    %new = arith.select %is, %here, %at : {place}
    linalg.yield %more, %new : {element}, {place}
  }} -> (tensor<5x{element}>, tensor<5x{place}>)
  return %best#0, %best#1 : tensor<5x{element}>, tensor<5x{place}>
}}
"""
)
EXCHANGED = {
    "f16": ("-9.0", "%is = arith.cmpf olt, %most, %a : f16"),
    "i32": ("-9", "%is = arith.cmpi slt, %most, %a : i32"),
}
OF_TOSA = """%more_or_nan = arith.cmpf ugt, %a, %most : f16
    %is_number = arith.cmpf ord, %most, %most : f16
    %is = arith.andi %more_or_nan, %is_number : i1"""

OF_SUMS = """func.func @f(%x: tensor<6x16xf16>, %w: tensor<16x97xf16>, %d: tensor<6x97xf32>)
    -> (tensor<6xf32>, tensor<6xi64>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant FIRST : f32
  %none = arith.constant -5 : i64
  %e = tensor.empty() : tensor<6x97xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x97xf32>) -> tensor<6x97xf32>
  %p = linalg.matmul ins(%x, %w : tensor<6x16xf16>, tensor<16x97xf16>) outs(%z : tensor<6x97xf32>) -> tensor<6x97xf32>
  %s = linalg.add ins(%p, %d : tensor<6x97xf32>, tensor<6x97xf32>) outs(%e : tensor<6x97xf32>) -> tensor<6x97xf32>
  %f = tensor.empty() : tensor<6xf32>
  %g = tensor.empty() : tensor<6xi64>
  %v = linalg.fill ins(%low : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %i = linalg.fill ins(%none : i64) outs(%g : tensor<6xi64>) -> tensor<6xi64>
  %best:2 = linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<6x97xf32>) outs(%v, %i : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%a: f32, %most: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %is = arith.cmpf PREDICATE, %a, %most : f32
    %new = arith.select %is, %here, %at : i64
    %more = arith.FOLD %most, %a : f32
    linalg.yield %more, %new : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  return %best#0, %best#1 : tensor<6xf32>, tensor<6xi64>
}
"""


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(("fold", "predicate", "first"), [("maximumf", "ogt", -np.inf), ("minnumf", "olt", 100.0)])
def test_lanes_of_a_warp_find_what_one_thread_would(fold: str, predicate: str, first: float) -> None:
    """Numbers that are equal, NaN, infinite, or do not exceed what the results begin with."""
    begin = "0xFF800000" if np.isinf(first) else "100.0"
    text = MAPS + OF_SUMS.replace("FIRST", begin).replace("FOLD", fold).replace("PREDICATE", predicate)
    function = stepladder.compile(text, device="emulator", target="sm_80")
    rng = np.random.default_rng(3)
    x, w = rng.integers(-1, 2, (6, 16)).astype(np.float16), rng.integers(-1, 2, (16, 97)).astype(np.float16)
    d = np.zeros((6, 97), np.float32)
    d[1, [5, 60]] = np.nan, 90
    d[2, 40] = d[4, 2] = np.nan
    d[3] = -np.inf if np.isinf(first) else np.inf
    d[4, 1], d[4, 96], d[5, 95] = 50, -50, -np.inf
    values, places = function(x, w, d)
    for row, (place, value) in enumerate(zip(places, values)):
        most, at = np.float32(first), -5
        for number, each in enumerate((x @ w).astype(np.float32)[row] + d[row]):
            at = number if (each > most if predicate == "ogt" else each < most) else at
            most = np.maximum(most, each) if fold == "maximumf" else np.fmin(most, each)
        assert place == at
        np.testing.assert_array_equal(value, most)


@pytest.mark.usefixtures("needs_ptxas")
def test_either_of_nearly_equal_ones_is_right() -> None:
    """The check accepts an index whose value is as large up to rounding, and no other."""
    with mlir_context():
        made = build_any(text_of(16, 300, 32, LARGEST), "argmax", Request("auto", {"target": "sm_80"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    assert [
        item.describe() for item in check_function(made.bundle, EmulatedFunction(made.bundle), 0) if not item.passed
    ] == []
    inputs = {0: np.ones((16, 32), np.float16), 1: np.ones((32, 300), np.float16)}
    inputs[1][:, 200:] = np.float16(-1)
    inputs[1][3, 7] = np.float16(1 + 2**-10)  # 32.0009765625, which f16 does not have

    def verdicts(index: int) -> bool:
        results = [np.full(16, 32, np.float16), np.full(16, index, np.int64)]
        reports = compare_results(made.bundle.reference, inputs, results, NumPyArrays(), 1e-7)
        return all(report.passed for report in reports)

    assert [verdicts(index) for index in (7, 0, 199, 200, 300)] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("cmpf ogt", "cmpf ugt"), "a reduction that selects a result by 'arith.cmpf ugt'"),
        (("cmpf ogt", "cmpf olt"), "a reduction that selects a result by 'arith.cmpf olt'"),
        (("select %is, %here, %at", "select %is, %at, %here"), "a reduction that selects a result by 'arith.cmpf ule'"),
    ],
)
def test_other_bodies_have_no_reference(change: tuple[str, str], message: str) -> None:
    text = text_of(4, 8, 8, LARGEST).replace(*change)
    with mlir_context():
        with pytest.raises(StepladderError, match=message):
            reference_export.export(parse_payload(text, "payload.mlir"), {})
        if "selects" in message:
            with pytest.raises(StepladderError, match=message) as refused:
                build_any(text, "payload.mlir", Request("auto", {"target": "sm_80"}, tuned=True))
            assert refused.value.location.startswith("payload.mlir:22") and "oge" in refused.value.notes[0]


# By which a value takes the place of the one so far: the last of equal ones, and integers without a sign.
CHOICES = {
    "oge": ("f32", "-9.0", "cmpf oge", np.greater_equal),
    "ole": ("f32", "9.0", "cmpf ole", np.less_equal),
    "oge from the largest": ("f32", "3.0", "cmpf oge", np.greater_equal),
    "ole from more": ("f16", "-4.0", "cmpf ole", np.less_equal),
    "sge": ("i32", "-9", "cmpi sge", np.greater_equal),
    "sle": ("i8", "9", "cmpi sle", np.less_equal),
    "ugt": ("i32", "1", "cmpi ugt", np.greater),
    "ule": ("i8", "-1", "cmpi ule", np.less_equal),
    # What is kept where a comparison holds, as reducers of StableHLO have it.
    "kept by ule": ("f32", "-9.0", "cmpf ule", np.greater),
    "kept by sgt": ("i32", "9", "cmpi sgt", np.less_equal),
}


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("choice", CHOICES)
def test_the_last_of_equal_ones_and_numbers_without_a_sign(choice: str) -> None:
    element, low, test, takes = CHOICES[choice]
    text = PLACES.format(n=97, element=element, place="i64", low=low, test=f"%is = arith.{test}, %a, %most : {element}")
    if "kept" in choice:
        text = text.replace("select %is, %a, %most", "select %is, %most, %a")
        text = text.replace("select %is, %here, %at", "select %is, %at, %here")
    dtype = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "i8": np.int8}[element]
    x = np.random.default_rng(0).integers(-3, 4, (5, 97)).astype(dtype)
    if element[0] == "f":
        x[1, [2, 96]], x[2], x[3, 0] = np.nan, np.nan, -np.inf
    function = stepladder.compile(text, device="emulator", target="sm_80")
    value, index = function(x)
    seen = x.view(f"u{x.itemsize}") if choice[0] == "u" else x
    for row, numbers in enumerate(seen):
        most, at = np.array(float(low), dtype).astype(dtype), 0
        most = most.view(seen.dtype)
        for place, number in enumerate(numbers):
            most, at = (number, place) if takes(number, most) else (most, at)
        assert index[row] == at and value.view(seen.dtype)[row] == most
    assert isinstance(function, stepladder.Function)
    assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))


@pytest.mark.parametrize("fold", ["minimumf", "minnumf"])
def test_the_reference_is_that_of_a_loop(fold: str) -> None:
    """`minnumf` skips a NaN; behind one, nothing is smaller for `minimumf`."""
    with mlir_context():
        module = parse_payload(text_of(6, 9, 3, SMALLEST | {"fold": fold}), "payload.mlir")
        program = reference_export.export(module, {0: "argument0", 1: "argument1", 2: "result0", 3: "result1"})
    rng = np.random.default_rng(1)
    x, w = rng.integers(-1, 2, (6, 3)).astype(np.float16), rng.integers(-1, 2, (3, 9)).astype(np.float16)
    x[0, 0], w[0, 5] = np.inf, -np.inf
    choose = np.minimum if fold == "minimumf" else np.fmin
    with np.errstate(all="ignore"):
        product = x.astype(np.float64) @ w.astype(np.float64)
        exact = Evaluation(program, {0: x, 1: w}, NumPyArrays())
        smallest, places = (np.asarray(exact.whole(result.value)) for result in program.results)
    assert np.isnan(product).any()
    for row, values in enumerate(product):
        best, index = np.inf, 0
        for column, value in enumerate(values):
            index = column if value < best else index
            best = choose(best, value)
        assert places[row] == index
        np.testing.assert_array_equal(smallest[row], best)
