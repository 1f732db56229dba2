"""Constant scales of extended operands of a matmul in f32 become one of its result, and the product one of f16."""

import pytest

from exported_attention import exported
from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites import scaled_factors
from stepladder.pipeline.context import mlir_context, parse_payload

_TEXT = """#map = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<64x32xELEMENT>, %b: tensor<32x48xELEMENT>) -> (tensor<64x48xf32>, tensor<64x32xf32>) {
  %zero = arith.constant START : f32
  %scale = arith.constant SCALE : f32
  %0 = tensor.empty() : tensor<64x32xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64x32xELEMENT>) outs(%0 : tensor<64x32xf32>) {
  ^bb0(%x: ELEMENT, %out: f32):
    %w = arith.extf %x : ELEMENT to f32
    %y = arith.OPERATION %w, %scale : f32
    linalg.yield %y : f32
  } -> tensor<64x32xf32>
  %2 = tensor.empty() : tensor<32x48xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<32x48xELEMENT>) outs(%2 : tensor<32x48xf32>) {
  ^bb0(%x: ELEMENT, %out: f32):
    %w = arith.extf %x : ELEMENT to f32
    linalg.yield %w : f32
  } -> tensor<32x48xf32>
  %4 = tensor.empty() : tensor<64x48xf32>
  %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<64x48xf32>) -> tensor<64x48xf32>
  %6 = linalg.matmul ins(%1, %3 : tensor<64x32xf32>, tensor<32x48xf32>) outs(%5 : tensor<64x48xf32>)
    -> tensor<64x48xf32>
  return %6, RESULT : tensor<64x48xf32>, tensor<64x32xf32>
}
"""
_PLAIN = {"ELEMENT": "f16", "SCALE": "0.3", "START": "0.0", "OPERATION": "mulf", "RESULT": "%0"}


def scales(text: str, **changes: str) -> tuple[int, int]:
    """Returns how many ops multiply in f32 before the matmul of a function, and after it, when scales are hoisted."""
    for name, value in (_PLAIN | changes).items():
        text = text.replace(name, value)
    with mlir_context():
        module = parse_payload(text, "scaled.mlir")
        (function,) = walk(module, "func.func")
        scaled_factors.hoist(function)
        assert module.operation.verify()
        ops = walk(function)
        matmul = next(number for number, op in enumerate(ops) if op.name in ("linalg.matmul", "linalg.batch_matmul"))
        places = [
            number for number, op in enumerate(ops) if op.name == "arith.mulf" and op.parent.name == "linalg.generic"
        ]
        return sum(place < matmul for place in places), sum(place > matmul for place in places)


@pytest.mark.parametrize("changes", [{}, {"ELEMENT": "bf16"}, {"SCALE": "-4.0"}], ids=["f16", "bf16", "negative"])
def test_hoisted(changes: dict[str, str]) -> None:
    assert scales(_TEXT, **changes) == (0, 1)


def test_both_operands_through_a_transpose_and_views() -> None:
    text = exported(64, 64).split("  %scores =")[0] + "  return %q : tensor<1x2x64x64xf16>\n}\n"
    assert scales(text) == (0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"ELEMENT": "f64"},
        {"SCALE": "1.0e-9"},
        {"SCALE": "1.0e+9"},
        {"START": "1.0"},
        {"OPERATION": "divf"},
        {"RESULT": "%1"},
    ],
    ids=["wide operands", "small", "large", "other sums", "quotient", "scaled operand is read"],
)
def test_not_hoisted(changes: dict[str, str]) -> None:
    text = _TEXT.replace("arith.extf", "arith.truncf") if changes.get("ELEMENT") == "f64" else _TEXT
    before = 0 if "OPERATION" in changes else 1
    assert scales(text, **changes) == (before, 0)
