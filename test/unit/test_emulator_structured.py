"""What structured ops compute in the emulator, beside NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator_ops import FEW, FORMATS, INTEGERS, function, run, same

# Structured ops.


@st.composite
def generics(draw: st.DrawFn) -> tuple[list[str], str, dict[str, int]]:
    """Draws a `linalg.generic` with two inputs: letters of the operands, sizes, and which loops reduce."""
    count = draw(st.integers(1, 4))
    loops = "abcd"[:count]
    output = "".join(draw(st.permutations(loops))[: draw(st.integers(0, count))])
    inputs = ["".join(draw(st.permutations(loops))[: draw(st.integers(0, count))]) for _ in range(2)]
    known = set(output).union(*inputs)
    loops = [loop for loop in loops if loop in known]
    return inputs, output, {loop: draw(st.integers(1, 4)) for loop in loops}


def shaped(kind: str, letters: str, sizes: dict[str, int], element: str) -> str:
    return f"{kind}<{''.join(f'{sizes[letter]}x' for letter in letters)}{element}>"


@FEW
@given(generics(), st.sampled_from(["tensor", "memref"]), st.sampled_from(["i32", "f32"]))
def test_generics_beside_einsum(drawn: tuple[list[str], str, dict[str, int]], kind: str, element: str) -> None:
    inputs, output, sizes = drawn
    if not sizes:
        return
    dims = {loop: f"d{number}" for number, loop in enumerate(sizes)}
    maps = ", ".join(
        f"affine_map<({', '.join(dims.values())}) -> ({', '.join(dims[loop] for loop in letters)})>"
        for letters in (*inputs, output)
    )
    iterators = ", ".join('"parallel"' if loop in output else '"reduction"' for loop in sizes)
    a, b, c = (shaped(kind, letters, sizes, element) for letters in (*inputs, output))
    suffix = element[0]
    body = (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} ins(%a, %b : {a}, {b}) "
        f"outs(%c : {c}) {{ ^bb0(%x: {element}, %y: {element}, %z: {element}):\n"
        f"%p = arith.mul{suffix} %x, %y : {element}\n%s = arith.sub{suffix} %z, %p : {element}\n"
        f"linalg.yield %s : {element} }}"
    )
    if kind == "tensor":
        code = function({"a": a, "b": b, "c": c}, f"%r = {body} -> {c}", c)
    else:
        code = f"func.func @f(%a: {a}, %b: {b}, %c: {c}) {{ {body}\nreturn }}"
    generator = np.random.default_rng(2)
    operands = [
        generator.integers(-4, 5, [sizes[loop] for loop in letters]).astype({**FORMATS, **INTEGERS}[element])
        for letters in (*inputs, output)
    ]
    # A loop that no input goes over subtracts the same again.
    ones = "".join(loop for loop in sizes if loop not in inputs[0] + inputs[1])
    wanted = operands[2] - np.einsum(
        f"{inputs[0]},{inputs[1]},{ones}->{output}",
        *operands[:2],
        np.ones([sizes[loop] for loop in ones], operands[0].dtype),
    )
    assert same(run(code, *operands)[-1], wanted.astype(operands[2].dtype))


NAMED = [
    ("matmul", ["5x3", "3x4"], "5x4", lambda a, b, c: c + a @ b),
    ("batch_matmul", ["2x5x3", "2x3x4"], "2x5x4", lambda a, b, c: c + a @ b),
    ("matvec", ["5x3", "3"], "5", lambda a, b, c: c + a @ b),
    ("vecmat", ["3", "3x4"], "4", lambda a, b, c: c + a @ b),
    ("batch_matvec", ["2x5x3", "2x3"], "2x5", lambda a, b, c: c + np.einsum("zij,zj->zi", a, b)),
    ("dot", ["7", "7"], "", lambda a, b, c: c + a @ b),
    ("copy", ["5x3"], "5x3", lambda a, c: a),
    ("add", ["5x3", "5x3"], "5x3", lambda a, b, c: a + b),
    ("sub", ["5x3", "5x3"], "5x3", lambda a, b, c: a - b),
    ("mul", ["5x3", "5x3"], "5x3", lambda a, b, c: a * b),
    ("max", ["5x3", "5x3"], "5x3", lambda a, b, c: np.maximum(a, b)),
    ("min", ["5x3", "5x3"], "5x3", lambda a, b, c: np.minimum(a, b)),
    ("negf", ["5x3"], "5x3", lambda a, c: -a),
    ("square", ["5x3"], "5x3", lambda a, c: a * a),
    ("conv_1d", ["9", "3"], "7", lambda a, b, c: c + np.correlate(a, b)),
    ("transpose", ["5x3"], "3x5", lambda a, c: a.T),
    ("broadcast", ["3"], "5x3", lambda a, c: np.broadcast_to(a, (5, 3))),
    ("reduce", ["5x3"], "3", lambda a, c: c + a.sum(axis=0)),
]
CLAUSES = {"transpose": " permutation = [1, 0]", "broadcast": " dimensions = [0]", "reduce": " dimensions = [0]"}


@pytest.mark.parametrize("kind", ["tensor", "memref"])
@pytest.mark.parametrize(("name", "inputs", "output", "model"), NAMED, ids=[case[0] for case in NAMED])
def test_named_ops_beside_numpy(
    name: str, inputs: list[str], output: str, model: Callable[..., object], kind: str
) -> None:
    shapes = [*inputs, output]
    types_ = [f"{kind}<{shape + 'x' if shape else ''}f32>" for shape in shapes]
    ins = f"ins({', '.join('%' + letter for letter in 'ab'[: len(inputs)])} : {', '.join(types_[:-1])})"
    body = f"linalg.{name} {'{ arith.addf } ' if name == 'reduce' else ''}{ins} outs(%c : {types_[-1]})"
    body += CLAUSES.get(name, f" -> {types_[-1]}" if kind == "tensor" else "")
    arguments = dict(zip([*"ab"[: len(inputs)], "c"], types_))
    code = (
        function(arguments, f"%r = {body}", types_[-1])
        if kind == "tensor"
        else f"func.func @f({', '.join(f'%{key}: {type_}' for key, type_ in arguments.items())}) {{ {body}\nreturn }}"
    )
    generator = np.random.default_rng(3)
    operands = [
        generator.integers(-4, 5, [int(size) for size in shape.split("x") if size]).astype(np.float32)
        for shape in shapes
    ]
    assert same(run(code, *operands)[-1], np.asarray(model(*operands), np.float32))


def test_sums_are_rounded_in_order() -> None:
    code = function(
        {"a": "tensor<1x4xf16>", "b": "tensor<4x1xf16>", "c": "tensor<1x1xf16>"},
        "%r = linalg.matmul ins(%a, %b : tensor<1x4xf16>, tensor<4x1xf16>) outs(%c : tensor<1x1xf16>) "
        "-> tensor<1x1xf16>",
        "tensor<1x1xf16>",
    )
    ones = np.ones((4, 1), np.float16)
    assert run(code, np.array([[2048, 1, 1, 1]], np.float16), ones, np.zeros((1, 1), np.float16))[0] == 2048
    assert run(code, np.array([[1, 1, 1, 2048]], np.float16), ones, np.zeros((1, 1), np.float16))[0] == 2052


def test_matmul_is_wide_enough_for_its_sums_and_knows_its_layout() -> None:
    transposed = (
        "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
        "affine_map<(m, n, k) -> (m, n)>]"
    )
    types_ = ["tensor<3x8xf16>", "tensor<5x8xf16>", "tensor<3x5xf32>"]
    code = function(
        dict(zip("abc", types_)),
        f"%r = linalg.matmul {transposed} ins(%a, %b : {types_[0]}, {types_[1]}) outs(%c : {types_[2]}) -> {types_[2]}",
        types_[2],
    )
    generator = np.random.default_rng(4)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((3, 8), (5, 8)))
    wanted = np.zeros((3, 5), np.float32)
    for k in range(8):
        wanted += a[:, k, None].astype(np.float32) * b[:, k].astype(np.float32)
    assert same(run(code, a, b, np.zeros((3, 5), np.float32))[0], wanted)


def test_fill_index_and_several_outputs() -> None:
    code = function(
        {"c": "tensor<2x3xf16>", "x": "f16"},
        "%r = linalg.fill ins(%x : f16) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>",
        "tensor<2x3xf16>",
    )
    assert same(run(code, np.zeros((2, 3), np.float16), np.float16(3))[0], np.full((2, 3), 3, np.float16))
    code = (
        "func.func @f(%a: tensor<2x3xindex>, %b: tensor<2x3xindex>) -> (tensor<2x3xindex>, tensor<2x3xindex>) {\n"
        "%r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], "
        'iterator_types = ["parallel", "parallel"]} outs(%a, %b : tensor<2x3xindex>, tensor<2x3xindex>) {\n'
        "^bb0(%x: index, %y: index):\n%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n"
        "%s = arith.subi %i, %j : index\nlinalg.yield %s, %i : index, index } "
        "-> (tensor<2x3xindex>, tensor<2x3xindex>)\nreturn %r#0, %r#1 : tensor<2x3xindex>, tensor<2x3xindex> }"
    )
    nothing = np.zeros((2, 3), np.int64)
    differences, rows = run(code, nothing, nothing)
    i, j = np.indices((2, 3))
    assert same(differences, i - j) and same(rows, i)


TILES = """
func.func @f(%a: memref<8x4xf32>, %b: memref<4x8xf32>, %c: memref<8x8xf32>, %i: index, %j: index) {
  %x = memref.subview %a[%i, 0] [4, 4] [1, 1] : memref<8x4xf32> to memref<4x4xf32, strided<[4, 1], offset: ?>>
  %y = memref.subview %b[0, %j] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1], offset: ?>>
  %z = memref.subview %c[%i, %j] [4, 4] [1, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1], offset: ?>>
  linalg.matmul ins(%x, %y : memref<4x4xf32, strided<[4, 1], offset: ?>>, memref<4x4xf32, strided<[8, 1], offset: ?>>)
    outs(%z : memref<4x4xf32, strided<[8, 1], offset: ?>>)
  return
}
"""


def test_a_warp_adds_its_product_once() -> None:
    generator = np.random.default_rng(5)
    a, b, c = (generator.integers(-4, 5, shape).astype(np.float32) for shape in ((8, 4), (4, 8), (8, 8)))
    warp = np.arange(128) // 32
    assert same(run(TILES, a, b, c, warp // 2 * 4, warp % 2 * 4, lanes=128)[-1], c + a @ b)


def test_what_no_thread_has_to_itself_a_block_does_once() -> None:
    code = """
    func.func @f(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
      linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
      linalg.add ins(%a, %c : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
      return
    }"""
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert same(run(code, a, a, lanes=96)[-1], a + a + a @ a)


def test_threads_may_have_tiles_of_different_sizes() -> None:
    code = """
    func.func @f(%a: memref<5xi32>, %c: memref<5xi32>, %i: index, %n: index) {
      %x = memref.subview %a[%i] [%n] [1] : memref<5xi32> to memref<?xi32, strided<[1], offset: ?>>
      %z = memref.subview %c[%i] [%n] [1] : memref<5xi32> to memref<?xi32, strided<[1], offset: ?>>
      linalg.copy ins(%x : memref<?xi32, strided<[1], offset: ?>>) outs(%z : memref<?xi32, strided<[1], offset: ?>>)
      return
    }"""
    a = np.arange(1, 6, dtype=np.int32)
    copied = run(code, a, np.zeros(5, np.int32), np.array([0, 2, 4]), np.array([2, 2, 1]), lanes=3)[-1]
    assert same(copied, a)
