"""Elementwise ops of transposed operands or parts of buffers: threads load vectors, and every element is right."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from combinations import sample

pytestmark = pytest.mark.usefixtures("needs_ptxas")

_EXTENTS = (1, 2, 3, 5, 8, 12, 16, 20, 24, 40)
_ELEMENTS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32}
_SUM = {"f16": "arith.addf", "f32": "arith.addf", "f64": "arith.addf", "i8": "arith.addi", "i32": "arith.addi"}


def _type(shape: list[int], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _source(shapes: list[list[int]], axes: list[list[int]], element: str, margin: int) -> str:
    """Returns a function of one op that adds its operands, or copies the only one.

    Args:
        shapes: of the operands and the result.
        axes: the loops along the axes of each; those of the result are all, in their order.
        element: type of the elements.
        margin: columns of the arguments before those that are operands.
    """
    loops = ", ".join(f"d{loop}" for loop in range(len(axes[-1])))
    maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(f'd{loop}' for loop in own)})>" for own in axes)
    types = [_type(shape, element) for shape in shapes]
    *arguments, result = types
    names = [f"%x{number}" for number in range(len(arguments))]
    wide = [_type([*shape[:-1], shape[-1] + margin], element) for shape in shapes[:-1]]
    slices = "\n".join(
        f"  %s{name[1:]} = tensor.extract_slice {name}"
        f"[{', '.join([*['0'] * (len(shape) - 1), str(margin)])}] {shape} {[1] * len(shape)} : {from_} to {to}"
        for name, shape, from_, to in zip(names, shapes, wide, arguments)
    )
    operands = [f"%s{name[1:]}" for name in names] if margin else names
    values = [f"%v{number}" for number in range(len(arguments))]
    total = f"{_SUM[element]} %v0, %v1 : {element}" if len(values) > 1 else ""
    return f"""func.func @move({", ".join(f"{name}: {type_}" for name, type_ in zip(names, wide))}) -> {result} {{
{slices if margin else ""}
  %empty = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{", ".join(['"parallel"'] * len(axes[-1]))}]}}
      ins({", ".join(operands)} : {", ".join(arguments)}) outs(%empty : {result}) {{
  ^bb0({", ".join(f"{value}: {element}" for value in values)}, %out: {element}):
    {f"%s = {total}" if total else ""}
    linalg.yield {"%s" if total else "%v0"} : {element}
  }} -> {result}
  return %r : {result}
}}
"""


def _check(
    sizes: list[int], axes: list[list[int]], element: str, generator: np.random.Generator, margin: int = 0
) -> None:
    """Compares a function with NumPy."""
    shapes = [[sizes[loop] for loop in own] for own in axes]
    function = stepladder.compile(_source(shapes, axes, element, margin), target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    wide = [[*shape[:-1], shape[-1] + margin] for shape in shapes[:-1]]
    arrays = [generator.integers(-9, 10, shape).astype(_ELEMENTS[element]) for shape in wide]
    terms = []
    for array, own in zip(arrays, axes):
        order = sorted(own)
        term = array[..., margin:].transpose([own.index(loop) for loop in order])
        terms.append(term.reshape([size if loop in own else 1 for loop, size in enumerate(sizes)]))
    expected = np.broadcast_to(sum(terms[1:], terms[0]), sizes)
    np.testing.assert_array_equal(function(*arrays), expected)


@pytest.mark.parametrize("seed", sample(range(200), 12))
def test_drawn_transposes(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rank = int(generator.integers(2, 5))
    sizes = [int(size) for size in generator.choice(_EXTENTS, rank)]
    axes = [[int(loop) for loop in generator.permutation(rank)], list(range(rank))]
    element, margin = str(generator.choice(list(_ELEMENTS))), int(generator.choice([0, 0, 1, 2, 4, 8]))
    _check(sizes, axes, element, generator, margin)


@pytest.mark.parametrize(
    ("sizes", "axes"),
    [
        ([104, 52], [[1, 0], [0, 1]]),
        ([8, 12, 40], [[0, 2, 1], [2]]),
        ([102, 51], [[1, 0], [0]]),
    ],
)
def test_sums_with_a_transposed_operand(sizes: list[int], axes: list[list[int]]) -> None:
    _check(sizes, [*axes, list(range(len(sizes)))], "f16", np.random.default_rng(0))


_FOLDS = {
    "arith.addf": ("f32", "0.0", np.sum),
    "arith.maximumf": ("f16", "0xFC00", np.max),
    "arith.mulf": ("f32", "1.0", np.prod),
    "arith.addi": ("i32", "0", np.sum),
    "arith.maxsi": ("i32", "-2147483648", np.max),
}


@pytest.mark.parametrize("seed", sample(range(60), 5))
def test_drawn_reductions_of_columns(seed: int) -> None:
    """Along one or two axes outside of the innermost, which lanes of warps share, or a thread reduces."""
    generator = np.random.default_rng(seed)
    fold = str(generator.choice(list(_FOLDS)))
    element, start, reduce = _FOLDS[fold]
    outer = [int(size) for size in generator.choice([1, 3, 20, 33, 64, 100], int(generator.integers(1, 3)))]
    shape = [*outer, int(generator.choice([1, 2, 5, 8, 12, 20]))]
    kept = [axis for axis in range(len(shape)) if axis and generator.random() < 0.5] or [len(shape) - 1]
    kept = sorted({*kept, len(shape) - 1})
    loops = [f"d{axis}" for axis in range(len(shape))]
    result = _type([shape[axis] for axis in kept], element)
    kinds = ", ".join('"parallel"' if axis in kept else '"reduction"' for axis in range(len(shape)))
    text = f"""func.func @reduce(%x: {_type(shape, element)}) -> {result} {{
  %start = arith.constant {start} : {element}
  %empty = tensor.empty() : {result}
  %begin = linalg.fill ins(%start : {element}) outs(%empty : {result}) -> {result}
  %r = linalg.generic {{indexing_maps = [affine_map<({", ".join(loops)}) -> ({", ".join(loops)})>,
      affine_map<({", ".join(loops)}) -> ({", ".join(loops[axis] for axis in kept)})>], iterator_types = [{kinds}]}}
      ins(%x : {_type(shape, element)}) outs(%begin : {result}) {{
  ^bb0(%v: {element}, %so_far: {element}):
    %n = {fold} %so_far, %v : {element}
    linalg.yield %n : {element}
  }} -> {result}
  return %r : {result}
}}
"""
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    low, high = (1, 2) if fold == "arith.mulf" else (-9, 10)
    array = generator.integers(low, high, shape).astype(_ELEMENTS[element])
    if fold == "arith.mulf":
        array[generator.random(shape) < 0.1] = -1
    axes = tuple(axis for axis in range(len(shape)) if axis not in kept)
    np.testing.assert_array_equal(function(array), reduce(array, axis=axes))


def test_a_softmax_along_columns_of_f16() -> None:
    """LLVM's loop vectorizer fails an assertion for the loop over its maximum."""
    text = """func.func @columns(%x: tensor<64x40xf16>) -> tensor<64x40xf16> {
  %empty = tensor.empty() : tensor<64x40xf16>
  %r = linalg.softmax dimension(0) ins(%x : tensor<64x40xf16>) outs(%empty : tensor<64x40xf16>) -> tensor<64x40xf16>
  return %r : tensor<64x40xf16>
}
"""
    function = stepladder.compile(text, target="sm_90a", device="emulator")
    assert isinstance(function, stepladder.Function)
    array = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float16)
    powers = np.exp(array.astype(np.float64) - array.max(axis=0))
    # The difference to the maximum, up to 8, is rounded by 2^-9; the power, the sum and the quotient by 2^-11 of each.
    tolerance = 2**-9 + 4 * 2**-11
    np.testing.assert_allclose(function(array), powers / powers.sum(axis=0), rtol=tolerance, atol=0)
