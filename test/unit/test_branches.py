"""Branches that numbers of the caller decide: both are computed, and the results of one are taken."""

import numpy as np
import pytest

import stepladder
from stepladder.runtime.errors import StepladderError

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<16x32xf16>", "tensor<32x24xf16>", "tensor<16x24xf32>"
START = f"""%zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {C}
  %z = linalg.fill ins(%zero : f32) outs(%e : {C}) -> {C}"""
FIRST = f"linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}"
SECOND = f"linalg.matmul ins(%a, %d : {A}, {B}) outs(%z : {C}) -> {C}"
IF = f"""%r = scf.if %on -> ({C}) {{
    %p = {FIRST}
    scf.yield %p : {C}
  }} else {{
    %p = {SECOND}
    scf.yield %p : {C}
  }}"""
# Condition: the argument that decides, what computes `%on`, and numbers of the caller by what is taken.
CONDITIONS = {
    "argument": ("%on: i1", "", {True: True, False: False}),
    "integer": (
        "%n: i32",
        "%two = arith.constant 2 : i32\n  %on = arith.cmpi sgt, %n, %two : i32",
        {True: np.int32(3), False: np.int32(2)},
    ),
    "element": (
        "%x: tensor<4xf32>",
        "%one = arith.constant 1 : index\n  %v = tensor.extract %x[%one] : tensor<4xf32>\n"
        "  %on = arith.cmpf olt, %v, %zero : f32",
        {True: np.float32([1, -1, 1, 1]), False: np.float32([-1, 0, -1, -1])},
    ),
}


def text_of(body: str, more: str) -> str:
    return f"func.func @f(%a: {A}, %b: {B}, %d: {B}, {more}) -> {C} {{\n  {START}\n  {body}\n  return %r : {C}\n}}\n"


def drawn(*shapes: tuple[int, int]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.integers(-4, 5, shape).astype(np.float16) for shape in shapes]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("name", CONDITIONS)
def test_both_branches(name: str) -> None:
    """The branch that is not taken has a NaN: results are chosen, and not multiplied by 0 or 1."""
    argument, computed, numbers = CONDITIONS[name]
    function = stepladder.compile(text_of(f"{computed}\n  {IF}", argument), target="sm_80", device="emulator")
    a, b, d = drawn((16, 32), (32, 24), (32, 24))
    for taken, given in numbers.items():
        other = d if taken else b
        kept, other[0, 0] = other[0, 0], np.nan
        wanted = product(a, b if taken else d)
        got = function(a, b, d, given if isinstance(function, stepladder.Kernel) else np.asarray(given))
        np.testing.assert_array_equal(got, wanted)
        other[0, 0] = kept


def test_branches_in_a_loop() -> None:
    """Each iteration multiplies by the first or the second matrix, or leaves what it has, as elements decide."""
    row, square = "tensor<16x16xf32>", "tensor<2x16x16xf32>"
    text = f"""func.func @f(%x: {row}, %w: {square}, %flags: tensor<3xi1>) -> {row} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {row}
  %z = linalg.fill ins(%zero : f32) outs(%e : {row}) -> {row}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %x) -> ({row}) {{
    %on = tensor.extract %flags[%i] : tensor<3xi1>
    %n = scf.if %on -> ({row}) {{
      %v = tensor.extract_slice %w[1, 0, 0] [1, 16, 16] [1, 1, 1] : {square} to {row}
      %p = linalg.matmul ins(%h, %v : {row}, {row}) outs(%z : {row}) -> {row}
      scf.yield %p : {row}
    }} else {{
      scf.yield %h : {row}
    }}
    scf.yield %n : {row}
  }}
  return %r : {row}
}}"""
    x, *w = (item.astype(np.float32) for item in drawn((16, 16), (16, 16), (16, 16)))
    function = stepladder.compile(text, target="sm_80", device="emulator")
    got = function(x, np.stack(w), np.array([True, False, True]))
    np.testing.assert_array_equal(got, x @ w[1] @ w[1])


@pytest.mark.parametrize("given", [2, 5, 7])
def test_switch(given: int) -> None:
    body = f"""%i = arith.index_cast %n : i32 to index
  %r = scf.index_switch %i -> {C}
  case 2 {{
    %p = {FIRST}
    scf.yield %p : {C}
  }} case 5 {{
    scf.yield %z : {C}
  }} default {{
    %p = {SECOND}
    scf.yield %p : {C}
  }}"""
    function = stepladder.compile(text_of(body, "%n: i32"), target="sm_80", device="emulator")
    a, b, d = drawn((16, 32), (32, 24), (32, 24))
    wanted = {2: product(a, b), 5: np.zeros((16, 24)), 7: product(a, d)}
    np.testing.assert_array_equal(function(a, b, d, np.asarray(given, np.int32)), wanted[given])


def test_branches_in_bodies() -> None:
    """An epilogue chooses for each element."""
    body = f"""%p = {FIRST}
  %r = linalg.map ins(%p : {C}) outs(%e : {C}) (%x: f32, %o: f32) {{
    %above = arith.cmpf ogt, %x, %zero : f32
    %y = scf.if %above -> (f32) {{
      %limit = arith.constant 9.0 : f32
      %far = arith.cmpf ogt, %x, %limit : f32
      %s = scf.if %far -> (f32) {{
        scf.yield %limit : f32
      }} else {{
        %t = arith.mulf %x, %x : f32
        scf.yield %t : f32
      }}
      scf.yield %s : f32
    }} else {{
      %n = arith.negf %x : f32
      scf.yield %n : f32
    }}
    linalg.yield %y : f32
  }}"""
    a, b, d = drawn((16, 32), (32, 24), (32, 24))
    wanted = product(a, b)
    kernel = stepladder.compile(text_of(body, "%unused: i1"), target="sm_80", device="emulator")
    wanted = np.where(wanted > 9, 9, np.where(wanted > 0, wanted * wanted, -wanted))
    assert np.array_equal(kernel(a, b, d, np.asarray(False)), wanted)


@pytest.mark.parametrize("taken", [False, True])
def test_buffers(taken: bool) -> None:
    """The buffer keeps what it holds where nothing writes it."""
    matrices = [kind.replace("tensor", "memref") for kind in (A, B, C)]
    text = f"""func.func @f(%a: {matrices[0]}, %b: {matrices[1]}, %c: {matrices[2]}, %n: i32, %x: f32) {{
  %two = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %large = arith.cmpi sgt, %n, %two : i32
  %positive = arith.cmpf ogt, %x, %zero : f32
  %on = arith.andi %large, %positive : i1
  scf.if %on {{
    linalg.matmul ins(%a, %b : {matrices[0]}, {matrices[1]}) outs(%c : {matrices[2]})
  }}
  return
}}
"""
    function = stepladder.compile(text, target="sm_80", device="emulator")
    a, b, c = drawn((16, 32), (32, 24), (16, 24))
    c = c.astype(np.float32)
    given = c.copy()
    got = function(a, b, given, *map(np.asarray, (np.int32(3), np.float32(1 if taken else -1))))
    np.testing.assert_array_equal(got, product(a, b) + c if taken else c)
    np.testing.assert_array_equal(given, got)


FILLED = f"%w = linalg.fill ins(%f : f32) outs(%e : {C}) -> {C}"
# Ops of the first branch, and what is refused of them.
REFUSED = {
    "assertion": ('cf.assert %off, "never"\n    %f = arith.negf %zero : f32', "'cf.assert' inside 'scf.if'"),
    "division": (
        "%q = arith.divsi %two, %n : i32\n    %f = arith.sitofp %q : i32 to f32",
        "arith.divsi by a non-constant inside 'scf.if'",
    ),
    "element": (
        f"%i = arith.index_cast %n : i32 to index\n    %q = tensor.extract %a[%i, %i] : {A}\n"
        "    %f = arith.extf %q : f16 to f32",
        "tensor.extract at computed indices inside 'scf.if'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_fault_is_refused(name: str) -> None:
    ops, message = REFUSED[name]
    branch = IF.replace("%p = ", f"{ops}\n    {FILLED}\n    %p = ", 1).replace("outs(%z", "outs(%w", 1)
    with pytest.raises(StepladderError) as refused:
        text = text_of(f"{CONDITIONS['integer'][1]}\n  {branch}", "%n: i32, %off: i1")
        stepladder.compile(text, target="sm_80", device="emulator")
    assert refused.value.message == f"{message} with a non-constant condition"
    assert "both branches are executed" in refused.value.render()


def test_what_may_fault_in_a_branch_of_a_body_is_refused() -> None:
    text = """func.func @f(%x: tensor<16x24xi32>, %y: tensor<16x24xi32>) -> tensor<16x24xi32> {
  %0 = tensor.empty() : tensor<16x24xi32>
  %zero = arith.constant 0 : i32
  %r = linalg.map ins(%x, %y : tensor<16x24xi32>, tensor<16x24xi32>) outs(%0 : tensor<16x24xi32>)
      (%a: i32, %b: i32, %o: i32) {
    %c = arith.cmpi ne, %b, %zero : i32
    %q = scf.if %c -> (i32) {
      %d = arith.divsi %a, %b : i32
      scf.yield %d : i32
    } else {
      scf.yield %zero : i32
    }
    linalg.yield %q : i32
  }
  return %r : tensor<16x24xi32>
}
"""
    with pytest.raises(StepladderError) as refused:
        stepladder.compile(text, target="sm_80", device="emulator")
    assert refused.value.message.startswith("arith.divsi by a non-constant inside 'scf.if'")
    assert "each thread executes both branches" in refused.value.render()
