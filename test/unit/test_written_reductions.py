"""Reductions that fold a value where a condition holds, or several, and those to logarithms of sums of exponentials."""

import numpy as np
import pytest

import stepladder

pytestmark = pytest.mark.usefixtures("needs_ptxas")

ROWS, LENGTH = 4, 9
# Ops of a body from the element x and the result so far s to %y, with the condition %c of the indices i and j.
FOLDS = {
    "f32": {
        "sum": ("-0.0", "%t = arith.addf %x, %s : f32 \n %y = arith.select %c, %t, %s : f32"),
        "otherwise": ("1.5", "%t = arith.addf %s, %x : f32 \n %y = arith.select %c, %s, %t : f32"),
        "difference": ("0.0", "%t = arith.subf %s, %x : f32 \n %y = arith.select %c, %t, %s : f32"),
        "fused": ("0.0", "%t = math.fma %x, %x, %s : f32 \n %y = arith.select %c, %t, %s : f32"),
        "twice": (
            "0.0",
            "%t = arith.addf %s, %x : f32 \n %u = arith.select %c, %t, %s : f32 \n %y = arith.select %d, %s, %u : f32",
        ),
        "several": (
            "0.0",
            "%p = arith.subf %s, %x : f32 \n %q = math.fma %x, %x, %p : f32 \n %y = arith.subf %q, %x : f32",
        ),
        "branch": (
            "0xFF800000",
            "%y = scf.if %c -> f32 { \n %t = arith.maxnumf %x, %s : f32 \n scf.yield %t : f32 \n } else { \n"
            " scf.yield %s : f32 \n }",
        ),
    },
    "i32": {"least": ("7", "%t = arith.minsi %x, %s : i32 \n %y = arith.select %c, %t, %s : i32")},
}


def _reduction(number: int, type_: str, start: str, ops: str) -> str:
    return f"""
  %z{number} = arith.constant {start} : {type_}
  %e{number} = tensor.empty() : tensor<{ROWS}x{type_}>
  %f{number} = linalg.fill ins(%z{number} : {type_}) outs(%e{number} : tensor<{ROWS}x{type_}>) -> tensor<{ROWS}x{type_}>
  %r{number} = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%{type_} : tensor<{ROWS}x{LENGTH}x{type_}>) outs(%f{number} : tensor<{ROWS}x{type_}>) {{
  ^bb0(%x: {type_}, %s: {type_}):
    {ops}
    linalg.yield %y : {type_}
  }} -> tensor<{ROWS}x{type_}>"""


def _function(bodies: list[tuple[str, str, str]]) -> str:
    """Returns a function of reductions of an argument of f32 or of i32: types, starts and ops of the bodies."""
    types = ", ".join(f"tensor<{ROWS}x{type_}>" for type_, *_ in bodies)
    names = ", ".join(f"%r{number}" for number in range(len(bodies)))
    text = "\n".join(_reduction(number, *body) for number, body in enumerate(bodies))
    return f"""#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%f32: tensor<{ROWS}x{LENGTH}xf32>, %i32: tensor<{ROWS}x{LENGTH}xi32>) -> ({types}) {{{text}
  return {names} : {types}
}}"""


def test_folds() -> None:
    conditions = """%i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi ule, %j, %i : index
    %d = arith.cmpi eq, %i, %j : index
    """
    bodies = [(type_, start, conditions + ops) for type_, folds in FOLDS.items() for start, ops in folds.values()]
    rng = np.random.default_rng(61)
    x = rng.standard_normal((ROWS, LENGTH)).astype(np.float32)
    x[2, 5:] = np.nan, np.inf, -np.inf, 3
    n = rng.integers(-50, 50, (ROWS, LENGTH), np.int32)
    got = stepladder.compile(_function(bodies), target="sm_80", device="emulator")(x, n)
    wide, kept = x.astype(float), np.tri(ROWS, LENGTH, dtype=bool)
    with np.errstate(invalid="ignore"):
        wanted = {
            "sum": np.where(kept, wide, 0).sum(1),
            "otherwise": 1.5 + np.where(kept, 0, wide).sum(1),
            "difference": -np.where(kept, wide, 0).sum(1),
            "fused": np.where(kept, wide * wide, 0).sum(1),
            "twice": np.where(kept & ~np.eye(ROWS, LENGTH, dtype=bool), wide, 0).sum(1),
            "several": (wide * wide - 2 * wide).sum(1),
            "branch": np.where(kept, wide, -np.inf).max(1),
            "least": np.minimum(np.where(kept, n, 50).min(1), 7),
        }
    for (name, value), result in zip(wanted.items(), got, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6, err_msg=name)


# Bodies that fold x into the logarithm s of a sum of exponentials, and what they start from.
LOGARITHMS = {
    "guarded": (
        "0xFF800000",
        """%m = arith.maximumf %s, %x : f32
    %d = arith.subf %s, %x : f32
    %n = arith.cmpf une, %d, %d : f32
    %t = arith.addf %s, %x : f32
    %a = math.absf %d : f32
    %b = arith.negf %a : f32
    %e = math.exp %b : f32
    %l = math.log1p %e : f32
    %u = arith.addf %m, %l : f32
    %y = arith.select %n, %t, %u : f32""",
    ),
    "two_powers": (
        "0.5",
        """%m = arith.maximumf %x, %s : f32
    %d = arith.subf %x, %m : f32
    %a = arith.subf %s, %m : f32
    %b = math.exp2 %d : f32
    %e = math.exp2 %a : f32
    %t = arith.addf %b, %e : f32
    %l = math.log2 %t : f32
    %y = arith.addf %l, %m : f32""",
    ),
    "of_squares": (
        "-1.0e30",
        """%q = arith.mulf %x, %x : f32
    %m = arith.maximumf %q, %s : f32
    %n = arith.minimumf %q, %s : f32
    %d = arith.subf %n, %m : f32
    %e = math.exp %d : f32
    %c = arith.constant 1.0 : f32
    %t = arith.addf %e, %c : f32
    %l = math.log %t : f32
    %y = arith.addf %m, %l : f32""",
    ),
}


def test_logarithms_of_sums() -> None:
    text = _function([("f32", start, ops) for start, ops in LOGARITHMS.values()])
    rng = np.random.default_rng(62)
    x = 9 * rng.standard_normal((ROWS, LENGTH)).astype(np.float32)
    got = stepladder.compile(text, target="sm_80", device="emulator")(x, np.zeros((ROWS, LENGTH), np.int32))
    wide = x.astype(float)
    start = np.full((ROWS, 1), 0.5)
    wanted = [
        np.logaddexp.reduce(wide, 1),
        np.logaddexp2.reduce(np.concatenate([start, wide], 1), 1),
        np.logaddexp.reduce(wide * wide, 1),
    ]
    for result, value in zip(got, wanted, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6)


def test_logarithms_of_sums_of_infinities() -> None:
    x = np.random.default_rng(63).standard_normal((ROWS, LENGTH)).astype(np.float32)
    x[0], x[1, 3], x[2, :4], x[3, 2] = -np.inf, np.inf, -np.inf, np.nan
    kernel = stepladder.compile(_function([("f32", *LOGARITHMS["guarded"])]), target="sm_80", device="emulator")
    got = kernel(x, np.zeros((ROWS, LENGTH), np.int32))
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp.reduce(x.astype(float), 1)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("is_fused", [False, True])
def test_a_maximum_and_a_sum_in_one_pass(is_fused: bool) -> None:
    """The statistics of an online softmax, beginning from those of other elements."""
    last = (
        "%u = math.fma %s, %e, %b : f32" if is_fused else "%t = arith.mulf %e, %s : f32 \n %u = arith.addf %b, %t : f32"
    )
    row = f"tensor<{ROWS}xf32>"
    text = f"""#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<{ROWS}x{LENGTH}xf32>, %most: {row}, %sums: {row}) -> ({row}, {row}) {{
  %r:2 = linalg.generic {{indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{ROWS}x{LENGTH}xf32>) outs(%sums, %most : {row}, {row}) {{
  ^bb0(%y: f32, %s: f32, %m: f32):
    %n = arith.maximumf %y, %m : f32
    %d = arith.subf %y, %n : f32
    %a = arith.subf %m, %n : f32
    %b = math.exp %d : f32
    %e = math.exp %a : f32
    {last}
    linalg.yield %u, %n : f32, f32
  }} -> ({row}, {row})
  return %r#0, %r#1 : {row}, {row}
}}"""
    rng = np.random.default_rng(64)
    x, m = (3 * rng.standard_normal(shape).astype(np.float32) for shape in ((ROWS, LENGTH), (ROWS,)))
    s = rng.random(ROWS, np.float32)
    sums, largest = stepladder.compile(text, target="sm_80", device="emulator")(x, m, s)
    most = np.maximum(x.max(1), m)
    np.testing.assert_array_equal(largest, most)
    wanted = np.exp(x - most[:, None].astype(float)).sum(1) + s * np.exp(m - most.astype(float))
    np.testing.assert_allclose(sums, wanted, rtol=1e-5)
