"""`tensor.scatter`, beside assignments of NumPy to unique places."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

pytestmark = pytest.mark.usefixtures("needs_ptxas")

# Destination, indices, scattered axes, and whether the source has these axes, of one element each.
CASES = {
    "rows": ((40, 32), (16, 1), (0,), True),
    "rows, without their axis": ((40, 32), (16, 1), (0,), False),
    "a batch of rows of any number": ((3, 40, 4), (2, 8, 1), (1,), True),
    "elements": ((24, 40), (4, 128, 2), (0, 1), False),
    "one row": ((40, 32), (1,), (0,), False),
    "elements of the outer axes": ((6, 8, 16), (2, 16, 2), (0, 1), True),
}


@pytest.mark.parametrize(("name", "type_"), [*((name, "i32") for name in CASES), ("rows", "i64"), ("one row", "index")])
def test_scatters_of_a_product(name: str, type_: str) -> None:
    """The elements of a product are written to unique places in any order."""
    shape, places, axes, is_whole = CASES[name]
    rest = [1 if axis in axes else size for axis, size in enumerate(shape) if is_whole or axis not in axes]
    source = [*places[:-1], *rest]
    kinds = ((source, "f32"), (shape, "f32"), (places, type_))
    tensors = [f"tensor<{'x'.join(map(str, sizes))}x{kind}>" for sizes, kind in kinds]
    rows = int(np.prod(source)) // 32
    groups = _reshape("%p", (rows, 32), source)
    text = f"""func.func @f(%a: tensor<{rows}x24xf16>, %b: tensor<24x32xf16>, %d: {tensors[1]}, %i: {tensors[2]})
    -> {tensors[1]} {{
  %z = arith.constant dense<0.0> : tensor<{rows}x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<{rows}x24xf16>, tensor<24x32xf16>) outs(%z : tensor<{rows}x32xf32>)
    -> tensor<{rows}x32xf32>
  {groups}
  %r = tensor.scatter %s into %d[%i] scatter_dims([{", ".join(map(str, axes))}]) unique
    : ({", ".join(tensors)}) -> {tensors[1]}
  return %r : {tensors[1]}
}}
"""
    generator = np.random.default_rng(4)
    a, b = (generator.integers(-3, 4, sizes).astype(np.float16) for sizes in ((rows, 24), (24, 32)))
    held = generator.integers(-9, 9, shape).astype(np.float32)
    extents = [shape[axis] for axis in axes]
    chosen = generator.permutation(int(np.prod(extents)))[: int(np.prod(places[:-1]))]
    indices = (
        np.stack(np.unravel_index(chosen, extents), -1).reshape(places).astype("int32" if type_ == "i32" else "int64")
    )
    others = [size for axis, size in enumerate(shape) if axis not in axes]
    updates = (a.astype(np.float32) @ b.astype(np.float32)).reshape(-1, *others)
    wanted = held.copy()
    for place, update in zip(indices.reshape(-1, len(axes)), updates):
        at = dict(zip(axes, place))
        wanted[tuple(at.get(axis, slice(None)) for axis in range(len(shape)))] = update
    got = stepladder.compile(text, target="sm_80", device="emulator")(a, b, held, indices)
    np.testing.assert_array_equal(got, wanted)


def test_constant_places_and_places_that_are_cast() -> None:
    text = """func.func @f(%a: tensor<40x24xf16>, %b: tensor<24x32xf16>, %d: tensor<8x32xf32>, %i: tensor<3x1xi32>)
    -> tensor<8x32xf32> {
  %z = arith.constant dense<0.0> : tensor<3x32xf32>
  %n = arith.constant dense<[[5], [0], [7]]> : tensor<3x1xindex>
  %j = arith.index_cast %i : tensor<3x1xi32> to tensor<3x1xindex>
  %x = tensor.gather %a[%j] gather_dims([0]) : (tensor<40x24xf16>, tensor<3x1xindex>) -> tensor<3x24xf16>
  %p = linalg.matmul ins(%x, %b : tensor<3x24xf16>, tensor<24x32xf16>) outs(%z : tensor<3x32xf32>)
    -> tensor<3x32xf32>
  %r = tensor.scatter %p into %d[%n] scatter_dims([0]) unique
    : (tensor<3x32xf32>, tensor<8x32xf32>, tensor<3x1xindex>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}
"""
    generator = np.random.default_rng(4)
    a, b = (generator.integers(-3, 4, sizes).astype(np.float16) for sizes in ((40, 24), (24, 32)))
    d, places = generator.integers(-9, 9, (8, 32)).astype(np.float32), np.array([[39], [0], [17]], np.int32)
    wanted = d.copy()
    wanted[[5, 0, 7]] = a[places[:, 0]].astype(np.float32) @ b.astype(np.float32)
    got = stepladder.compile(text, target="sm_80", device="emulator")(a, b, d, places)
    np.testing.assert_array_equal(got, wanted)


def _reshape(value: str, before: tuple[int, int], after: list[int]) -> str:
    """Returns ops that give a matrix another shape, through one dimension, as %s."""
    count = before[0] * before[1]
    flat, types = f"tensor<{count}xf32>", [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (before, after)]
    axes = ", ".join(map(str, range(len(after))))
    return (
        f"%flat = tensor.collapse_shape {value} [[0, 1]] : {types[0]} into {flat}\n"
        f"  %s = tensor.expand_shape %flat [[{axes}]] output_shape {after} : {flat} into {types[1]}"
    )
