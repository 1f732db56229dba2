"""Slices of filled tensors, which front ends join with others, are fills."""

from stepladder.mlir.traverse import walk
from stepladder.payload.selection import select
from stepladder.pipeline.context import mlir_context, parse_payload

TEXT = """func.func @f(%n: tensor<3xf32>, %i: index) -> (tensor<4x3xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4x3xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = tensor.extract_slice %1[%i, 0] [1, 3] [1, 1] : tensor<4x3xf32> to tensor<3xf32>
  %3 = tensor.empty() : tensor<3xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%n : tensor<3xf32>) outs(%3 : tensor<3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %j = linalg.index 0 : index
    %b = tensor.extract %2[%j] : tensor<3xf32>
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  return %1, %4 : tensor<4x3xf32>, tensor<3xf32>
}
"""


def test_slices_and_elements_of_fills() -> None:
    with mlir_context():
        module = select(parse_payload(TEXT, "payload.mlir")).module
        assert walk(module, "tensor.extract_slice", "tensor.extract") == []


def test_broadcasts_of_constants_are_fills() -> None:
    """The gradient of a sum is read in slices, by the iterations of a scan."""
    text = """func.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = tensor.empty() : tensor<3x4xf32>
  %1 = linalg.broadcast ins(%one : tensor<f32>) outs(%0 : tensor<3x4xf32>) dimensions = [0, 1]
  %2 = tensor.extract_slice %1[1, 0] [2, 4] [1, 1] : tensor<3x4xf32> to tensor<2x4xf32>
  %3 = tensor.empty() : tensor<2x4xf32>
  %4 = linalg.add ins(%x, %2 : tensor<2x4xf32>, tensor<2x4xf32>) outs(%3 : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}
"""
    with mlir_context():
        module = select(parse_payload(text, "payload.mlir")).module
        assert walk(module, "tensor.extract_slice", "linalg.broadcast") == []
        assert len(walk(module, "linalg.fill")) > 0
