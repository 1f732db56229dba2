"""Elements of i8 with an offset, found in bodies of any size."""

from __future__ import annotations

import pytest

from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites.shifted_numbers import ShiftedNumber, number_of
from stepladder.pipeline.context import mlir_context, parse_payload

OPS = {
    "doubled": ("i8", "i32", ["arith.extsi %x : i8 to i32", *(f"arith.addi %{i}, %{i} : i32" for i in range(64))]),
    "long": ("f32", "f32", ["arith.negf %x : f32", *(f"arith.mulf %{i}, %{i} : f32" for i in range(2000))]),
    "shifted": ("i8", "i32", ["arith.extsi %x : i8 to i32", "arith.addi %0, %c5 : i32", "arith.addi %1, %c5 : i32"]),
}


@pytest.mark.parametrize(("name", "offset"), [("doubled", None), ("long", None), ("shifted", 10)])
def test_a_value_is_visited_once(name: str, offset: int | None) -> None:
    """Values that several ops read, and chains of many ops, take neither time nor depth of their number of paths."""
    source, result, ops = OPS[name]
    body = "\n".join(f"    %{number} = {op}" for number, op in enumerate(ops))
    text = f"""func.func @f(%a: tensor<4x{source}>, %e: tensor<4x{result}>) -> tensor<4x{result}> {{
  %c5 = arith.constant 5 : i32
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}}
      ins(%a : tensor<4x{source}>) outs(%e : tensor<4x{result}>) {{
  ^bb0(%x: {source}, %o: {result}):
{body}
    linalg.yield %{len(ops) - 1} : {result}
  }} -> tensor<4x{result}>
  return %r : tensor<4x{result}>
}}
"""
    with mlir_context():
        module = parse_payload(text, "payload")
        (generic,) = walk(module.operation, "linalg.generic")
        number = number_of(generic.results[0])
        assert (number.offset if isinstance(number, ShiftedNumber) else None) == offset
