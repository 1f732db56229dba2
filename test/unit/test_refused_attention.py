"""Functions that are nearly an attention: what keeps them from being one kernel, and at which op."""

import re

import pytest

from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.attention import find_last
from stepladder.mlir.traverse import walk
from stepladder.pipeline.context import mlir_context, parse_payload

_Q, _S, _R = "tensor<2x8x64xf16>", "tensor<2x8x16xf32>", "tensor<2x8xf32>"
_OVER = 'iterator_types = ["parallel", "parallel", "parallel"]'
_FOLD = '{indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}'
TEXT = f"""#all = affine_map<(h, t, s) -> (h, t, s)>
#row = affine_map<(h, t, s) -> (h, t)>
func.func @f(%q: {_Q}, %k: tensor<2x16x64xf16>, %v: tensor<2x16x64xf16>, %m: {_S}) -> tensor<2x8x64xf16> {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %yes = arith.constant true
  %e = tensor.empty() : {_S}
  %z = linalg.fill ins(%zero : f32) outs(%e : {_S}) -> {_S}
  %scores = linalg.contract indexing_maps = [affine_map<(h, t, s, d) -> (h, t, d)>,
    affine_map<(h, t, s, d) -> (h, s, d)>, affine_map<(h, t, s, d) -> (h, t, s)>]
    ins(%q, %k : tensor<2x8x64xf16>, tensor<2x16x64xf16>) outs(%z : {_S}) -> {_S}
  %r = tensor.empty() : {_R}
  %lows = linalg.fill ins(%low : f32) outs(%r : {_R}) -> {_R}
  %maxima = linalg.generic {_FOLD} ins(%scores : {_S}) outs(%lows : {_R}) {{
  ^bb0(%x: f32, %y: f32):
    %n = arith.maximumf %x, %y : f32
    linalg.yield %n : f32
  }} -> {_R}
  %powers = linalg.generic {{indexing_maps = [#all, #row, #all], {_OVER}}} ins(%scores, %maxima : {_S}, {_R})
    outs(%e : {_S}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.subf %x, %y : f32
    %p = math.exp %d : f32
    linalg.yield %p : f32
  }} -> {_S}
  %zeros = linalg.fill ins(%zero : f32) outs(%r : {_R}) -> {_R}
  %sums = linalg.generic {_FOLD} ins(%powers : {_S}) outs(%zeros : {_R}) {{
  ^bb0(%x: f32, %y: f32):
    %n = arith.addf %x, %y : f32
    linalg.yield %n : f32
  }} -> {_R}
  %bits = tensor.empty() : tensor<2x8xi1>
  %begin = linalg.fill ins(%yes : i1) outs(%bits : tensor<2x8xi1>) -> tensor<2x8xi1>
  %hidden = linalg.generic {_FOLD} ins(%scores : {_S}) outs(%begin : tensor<2x8xi1>) {{
  ^bb0(%x: f32, %y: i1):
    %c = arith.cmpf oeq, %x, %low : f32
    %n = arith.andi %c, %y : i1
    linalg.yield %n : i1
  }} -> tensor<2x8xi1>
  %t = tensor.empty() : tensor<2x8x16xf16>
  %weights = linalg.generic {{indexing_maps = [#all, #row, #row, #all], {_OVER}}}
    ins(%powers, %sums, %hidden : {_S}, {_R}, tensor<2x8xi1>) outs(%t : tensor<2x8x16xf16>) {{
  ^bb0(%x: f32, %y: f32, %h: i1, %o: f16):
    %w = arith.divf %x, %y : f32
    %s = arith.select %h, %zero, %w : f32
    %n = arith.truncf %s : f32 to f16
    linalg.yield %n : f16
  }} -> tensor<2x8x16xf16>
  %g = tensor.empty() : tensor<2x8x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%g : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %result = linalg.contract indexing_maps = [affine_map<(h, t, d, s) -> (h, t, s)>,
    affine_map<(h, t, d, s) -> (h, s, d)>, affine_map<(h, t, d, s) -> (h, t, d)>]
    ins(%weights, %v : tensor<2x8x16xf16>, tensor<2x16x64xf16>) outs(%start : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %narrow = tensor.empty() : tensor<2x8x64xf16>
  %rounded = linalg.generic {{indexing_maps = [#all, #all], {_OVER}}} ins(%result : tensor<2x8x64xf32>)
    outs(%narrow : tensor<2x8x64xf16>) {{
  ^bb0(%x: f32, %y: f16):
    %n = arith.truncf %x : f32 to f16
    linalg.yield %n : f16
  }} -> tensor<2x8x64xf16>
  return %rounded : tensor<2x8x64xf16>
}}
"""


def _find(text: str) -> bool:
    with mlir_context():
        module = parse_payload(text, "payload.mlir")
        return find_last(walk(module, "func.func")[0].regions[0].blocks[0]) is not None


def test_an_attention() -> None:
    assert _find(TEXT)


# What replaces which part of the text, and what is said.
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("divf %x, %y", "mulf %x, %y", "'arith.mulf'; accepted: exponentials divided by their sum"),
        ("math.exp %d", "math.exp2 %d", "'math.exp2'; accepted: exponentials in f32"),
        ("subf %x, %y", "addf %x, %y", "exponentials of values that are not differences"),
        ("ins(%low : f32)", "ins(%zero : f32)", "a reduction whose initial value is not its neutral element"),
        ("cmpf oeq", "cmpf ogt", "weights that are zero in other rows than those without keys"),
        ("andi %c, %y", "ori %c, %y", "weights that are zero in other rows than those without keys"),
        ("ins(%result", "ins(%start", "a result that is not rounded by the one op that reads it"),
        ("outs(%start : tensor", "outs(%g : tensor", "sums with an initial value other than zero"),
        ("(%scores, %maxima", "(%m, %maxima", "an argument in place of scores"),
    ],
)
def test_what_is_no_attention(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(Refusal, match=re.escape(message)):
        _find(TEXT.replace(old, new))
