"""Elementwise ops that change nothing are left out of a payload, where no value leaves the function twice by that."""

import pytest

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import identities
from stepladder.pipeline.context import mlir_context

SAME = "affine_map<(i, j) -> (i, j)>"
PAYLOAD = """
func.func @f(%A: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  %factor = arith.constant {factor} : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %first = linalg.exp ins(%A : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %scaled = linalg.generic {{indexing_maps = [{read}, {same}], iterator_types = ["parallel", "parallel"]}}
      ins({input} : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {{
  ^bb0(%x: f32, %out: f32):
    %y = arith.mulf {operand}, %factor : f32
    linalg.yield %y : f32
  }} -> tensor<8x8xf32>
  %other = linalg.exp ins({used} : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return {left}, %other : tensor<8x8xf32>, tensor<8x8xf32>
}}
"""
FORM = {
    "factor": "1.0",
    "read": SAME,
    "same": SAME,
    "input": "%first",
    "operand": "%x",
    "used": "%A",
    "left": "%scaled",
}


def generics(**changes: str) -> int:
    """Returns how many `linalg.generic` are left of one."""
    with mlir_context():
        module = ir.Module.parse(PAYLOAD.format(**{**FORM, **changes}))
        identities.forward(walk(module, "func.func")[0])
        assert module.operation.verify()
        return len(walk(module, "linalg.generic"))


@pytest.mark.parametrize("changes", [{}, {"input": "%A", "used": "%scaled", "left": "%first"}])
def test_a_scale_of_one_is_left_out(changes: dict[str, str]) -> None:
    assert generics(**changes) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"factor": "2.0"},
        {"read": "affine_map<(i, j) -> (j, i)>"},
        {"operand": "%out"},
        {"input": "%A"},
        {"used": "%first"},
    ],
    ids=["another factor", "a transpose", "the output", "an argument that leaves", "an input that has other readers"],
)
def test_others_stay(changes: dict[str, str]) -> None:
    assert generics(**changes) == 1
