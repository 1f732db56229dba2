"""Ops that no result depends on are left out: products that bodies fold away, and buffers that nothing reads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepladder
from stepladder.mlir.traverse import walk
from stepladder.payload.selection import select
from stepladder.pipeline.context import mlir_context, parse_payload

pytestmark = pytest.mark.usefixtures("needs_ptxas")

A, B, C = "tensor<16x24xi8>", "tensor<24x32xi8>", "tensor<16x32xi32>"
BODIES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "difference": ("%s = arith.subi %x, %x : i32\n %v = arith.addi %s, %y : i32", lambda x, y: 0 * x + y),
    "times 0": ("%s = arith.muli %x, %c0 : i32\n %v = arith.addi %s, %y : i32", lambda x, y: 0 * x + y),
    "and 0": ("%s = arith.andi %x, %c0 : i32\n %v = arith.ori %s, %y : i32", lambda x, y: 0 * x + y),
    "choice of equals": (
        "%s = arith.cmpi sgt, %x, %y : i32\n %v = arith.select %s, %y, %y : i32",
        lambda x, y: 0 * x + y,
    ),
    "number": ("%s = arith.xori %x, %x : i32\n %v = arith.ori %s, %c7 : i32", lambda x, y: 0 * x + 7),
    "unread": ("%v = arith.addi %y, %y : i32", lambda x, y: 0 * x + 2 * y),
    "read": ("%s = arith.muli %y, %c0 : i32\n %v = arith.addi %x, %s : i32", lambda x, y: x),
}


def epilogue(body: str) -> str:
    maps = ", ".join(f"affine_map<(i, j) -> ({axes})>" for axes in ("i, j", "j", "i, j"))
    return f"""func.func @f(%a: {A}, %b: {B}, %r: tensor<32xi32>) -> {C} {{
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %e = tensor.empty() : {C}
  %z = linalg.fill ins(%c0 : i32) outs(%e : {C}) -> {C}
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}
  %q = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %r : {C}, tensor<32xi32>) outs(%e : {C}) {{
  ^bb0(%x: i32, %y: i32, %o: i32):
    {body}
    linalg.yield %v : i32
  }} -> {C}
  return %q : {C}
}}
"""


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (f"%q = linalg.sub ins(%p, %p : {C}, {C}) outs(%e : {C}) -> {C}", lambda p: 0 * p),
        (f"%q = linalg.mul ins(%p, %z : {C}, {C}) outs(%e : {C}) -> {C}", lambda p: 0 * p),
        (f"%q = linalg.max ins(%p, %p : {C}, {C}) outs(%e : {C}) -> {C}", lambda p: p),
        (f"%q = linalg.map {{ arith.xori }} ins(%p, %p : {C}, {C}) outs(%e : {C})", lambda p: 0 * p),
    ],
    ids=["difference", "times 0", "maximum", "bits"],
)
def test_inputs_that_are_one_value(ops: str, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    text = f"""func.func @f(%a: {A}, %b: {B}) -> ({C}, {C}) {{
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : {C}
  %z = linalg.fill ins(%c0 : i32) outs(%e : {C}) -> {C}
  %p = linalg.matmul ins(%a, %b : {A}, {B}) outs(%z : {C}) -> {C}
  %r = linalg.matmul ins(%a, %b : {A}, {B}) outs(%p : {C}) -> {C}
  {ops}
  return %q, %r : {C}, {C}
}}
"""
    generator = np.random.default_rng(8)
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((16, 24), (24, 32)))
    product = a.astype(np.int32) @ b.astype(np.int32)
    result, twice = stepladder.compile(text, target="sm_80", device="emulator")(a, b)
    assert np.array_equal(result, expected(product)) and np.array_equal(twice, 2 * product)


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_fold_the_product_away(name: str) -> None:
    body, expected = BODIES[name]
    generator = np.random.default_rng(5)
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((16, 24), (24, 32)))
    row = generator.integers(-9, 9, 32).astype(np.int32)
    compiled = stepladder.compile(epilogue(body), target="sm_80", device="emulator")
    assert np.array_equal(compiled(a, b, row), expected(a.astype(np.int32) @ b.astype(np.int32), row))


BUFFER = "memref<16x32xf32>"
DEAD = {
    "reduction": """linalg.fill ins(%z : f32) outs(%r : memref<16xf32>)
  linalg.reduce {arith.addf} ins(%C : memref<16x32xf32>) outs(%r : memref<16xf32>) dimensions = [1]""",
    "softmax": f"linalg.softmax dimension(1) ins(%C : {BUFFER}) outs(%t : {BUFFER})",
    "element": f"%l = memref.load %C[%i, %i] : {BUFFER}\n memref.store %l, %t[%i, %i] : {BUFFER}",
    "product": f"""linalg.fill ins(%z : f32) outs(%t : {BUFFER})
  linalg.matmul ins(%A, %B : memref<16x24xf16>, memref<24x32xf16>) outs(%t : {BUFFER})
  linalg.exp ins(%t : {BUFFER}) outs(%t : {BUFFER})
  memref.dealloc %t : {BUFFER}""",
    "part": """%s = memref.subview %t[0, 0] [8, 32] [1, 1] : memref<16x32xf32> to memref<8x32xf32, strided<[32, 1]>>
  linalg.fill ins(%z : f32) outs(%s : memref<8x32xf32, strided<[32, 1]>>)""",
}


def on_buffers(dead: str) -> str:
    return f"""func.func @f(%A: memref<16x24xf16>, %B: memref<24x32xf16>, %C: {BUFFER}) {{
  %z = arith.constant 0.0 : f32
  %i = arith.constant 3 : index
  %t = memref.alloc() : {BUFFER}
  %r = memref.alloc() : memref<16xf32>
  linalg.fill ins(%z : f32) outs(%C : {BUFFER})
  linalg.matmul ins(%A, %B : memref<16x24xf16>, memref<24x32xf16>) outs(%C : {BUFFER})
  {dead}
  return
}}
"""


@pytest.mark.parametrize("name", DEAD)
def test_buffers_that_nothing_reads_are_left_out(name: str) -> None:
    """What is left is one kernel, as without these ops."""
    a, b = (np.random.default_rng(seed).integers(-3, 4, shape) for seed, shape in ((1, (16, 24)), (2, (24, 32))))
    compiled = stepladder.compile(on_buffers(DEAD[name]), target="sm_80", device="emulator")
    assert isinstance(compiled, stepladder.Kernel)
    got = compiled(a.astype(np.float16), b.astype(np.float16))
    assert np.array_equal(got, a @ b)


def test_what_is_written_for_the_caller_stays() -> None:
    """Writes to arguments, also through views, ops with assertions, and buffers that such ops read are kept."""
    text = """func.func @f(%A: memref<4x4xf32>, %C: memref<4x4xf32>, %n: i1) {
  %z = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x4xf32>
  %dead = memref.alloc() : memref<4x4xf32>
  %part = memref.subview %C[0, 0] [2, 4] [1, 1] : memref<4x4xf32> to memref<2x4xf32, strided<[4, 1]>>
  linalg.fill ins(%z : f32) outs(%part : memref<2x4xf32, strided<[4, 1]>>)
  linalg.exp ins(%A : memref<4x4xf32>) outs(%t : memref<4x4xf32>)
  linalg.exp ins(%t : memref<4x4xf32>) outs(%dead : memref<4x4xf32>)
  %flat = memref.collapse_shape %t [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  %back = memref.expand_shape %flat [[0, 1]] output_shape [4, 4] : memref<16xf32> into memref<4x4xf32>
  linalg.map { math.exp } ins(%back : memref<4x4xf32>) outs(%C : memref<4x4xf32>)
  cf.assert %n, "stays"
  return
}
"""
    with mlir_context():
        names = [op.name for op in walk(select(parse_payload(text, "f")).module)]
    found = {name: names.count(name) for name in names if name.partition(".")[0] in ("linalg", "memref", "cf")}
    assert found == {
        "memref.alloc": 1,
        "memref.subview": 1,
        "linalg.fill": 1,
        "linalg.exp": 1,
        "linalg.yield": 3,
        "memref.collapse_shape": 1,
        "memref.expand_shape": 1,
        "linalg.map": 1,
        "cf.assert": 1,
    }


def test_unwritten_inputs_are_zeros() -> None:
    """Elements of a tensor that nothing has written may be any; a kernel has no buffer for them."""
    source = """#rows = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %r = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %y = tensor.expand_shape %e [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#rows, #rows, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>)
      outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %is = arith.cmpf ogt, %a, %c0 : f32
    %p = arith.select %is, %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}
"""
    x = np.arange(-16, 16, dtype=np.float32).reshape(4, 8)
    got = stepladder.compile(source, device="emulator", target="sm_80")(x)
    assert np.array_equal(got, np.maximum(x, 0).sum(1))
