"""Elementwise ops that change nothing: they are left out of a payload, where no value leaves the function twice by
that, and what folds only with others leaves an epilogue that copies."""

import pytest

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites import identities
from stepladder.pipeline.context import mlir_context
from test_epilogues import PIPELINES, check

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


OTHER_ORDER = "affine_map<(i, j) -> (j, i)>"


@pytest.mark.parametrize(
    "changes",
    [{}, {"input": "%A", "used": "%scaled", "left": "%first"}, {"read": OTHER_ORDER, "same": OTHER_ORDER}],
    ids=["last", "first", "loops in another order"],
)
def test_a_scale_of_one_is_left_out(changes: dict[str, str]) -> None:
    assert generics(**changes) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"factor": "2.0"},
        {"read": OTHER_ORDER},
        {"operand": "%out"},
        {"input": "%A"},
        {"used": "%first"},
    ],
    ids=["another factor", "a transpose", "the output", "an argument that leaves", "an input that has other readers"],
)
def test_others_stay(changes: dict[str, str]) -> None:
    assert generics(**changes) == 1


COPIED = """
func.func @f(%A: tensor<8x8xf32>, %to: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = bufferization.materialize_in_destination %A in %to : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
"""


def test_a_copy_into_a_tensor_is_what_it_copies() -> None:
    with mlir_context():
        module = ir.Module.parse(COPIED)
        (function,) = walk(module, "func.func")
        identities.forward(function)
        (end,) = walk(function, "func.return")
        assert end.operands[0] == function.regions[0].blocks[0].arguments[0]


CHAIN = """
func.func @f(%A: tensor<64x64xf16>, %B: tensor<64x64xf16>, %C: tensor<64x64x{sums}>) -> tensor<64x64x{sums}> {{
  %zero = arith.constant 0.0 : {sums}
  %one = arith.constant 1.0 : {sums}
  %e = tensor.empty() : tensor<64x64x{sums}>
  %zeros = linalg.fill ins(%zero : {sums}) outs(%e : tensor<64x64x{sums}>) -> tensor<64x64x{sums}>
  %ones = linalg.fill ins(%one : {sums}) outs(%e : tensor<64x64x{sums}>) -> tensor<64x64x{sums}>
  %p = linalg.matmul ins(%A, %B : tensor<64x64xf16>, tensor<64x64xf16>) outs({start} : tensor<64x64x{sums}>)
      -> tensor<64x64x{sums}>
  {ops}
  return %r : tensor<64x64x{sums}>
}}
"""
F32 = "tensor<64x64xf32>"
NEGATED_TWICE = f"""%x = linalg.negf ins(%p : {F32}) outs(%e : {F32}) -> {F32}
  %r = linalg.negf ins(%x : {F32}) outs(%e : {F32}) -> {F32}"""
TIMES_ONES = f"%r = linalg.mul ins(%p, %ones : {F32}, {F32}) outs(%e : {F32}) -> {F32}"
EXTENDED_AND_ROUNDED = """%w = tensor.empty() : tensor<64x64xf32>
  %x = linalg.map { arith.extf } ins(%p : tensor<64x64xf16>) outs(%w : tensor<64x64xf32>)
  %r = linalg.map { arith.truncf } ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf16>)"""


@pytest.mark.parametrize("where", PIPELINES)
@pytest.mark.parametrize(
    "sums, start, ops",
    [
        ("f32", "%zeros", NEGATED_TWICE),
        ("f32", "%C", NEGATED_TWICE),
        ("f32", "%zeros", TIMES_ONES),
        ("f16", "%zeros", EXTENDED_AND_ROUNDED),
    ],
    ids=["negated twice", "negated twice, from C", "times ones", "extended and rounded"],
)
def test_what_folds_with_others_is_right(sums: str, start: str, ops: str, where: str) -> None:
    check(CHAIN.format(sums=sums, start=start, ops=ops), *PIPELINES[where])
