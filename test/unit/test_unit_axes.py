"""Axes of one element that JAX adds to what it inserts into a stack are views."""

from stepladder.mlir.traverse import walk
from stepladder.payload.selection import select
from stepladder.pipeline.context import mlir_context, parse_payload

TEXT = """
#in = affine_map<(l, i, j) -> (i, j)>
#out = affine_map<(l, i, j) -> (l, i, j)>
func.func @f(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %all: tensor<2x4x3xf32>, %b: tensor<3x2xf32>)
    -> (tensor<2x4x3xf32>, tensor<1x4x3xf32>, tensor<2x4x3xf32>) {
  %0 = tensor.empty() : tensor<1x4x3xf32>
  %1 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x3xf32>) outs(%0 : tensor<1x4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<1x4x3xf32>
  %2 = tensor.insert_slice %1 into %all[1, 0, 0] [1, 4, 3] [1, 1, 1] : tensor<1x4x3xf32> into tensor<2x4x3xf32>
  %3 = linalg.broadcast ins(%y : tensor<4x3xf32>) outs(%0 : tensor<1x4x3xf32>) dimensions = [0]
  %4 = linalg.exp ins(%3 : tensor<1x4x3xf32>) outs(%0 : tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %5 = tensor.empty() : tensor<2x4x3xf32>
  %6 = linalg.broadcast ins(%y : tensor<4x3xf32>) outs(%5 : tensor<2x4x3xf32>) dimensions = [0]
  return %2, %4, %6 : tensor<2x4x3xf32>, tensor<1x4x3xf32>, tensor<2x4x3xf32>
}
"""


def test_added_axes_of_parts() -> None:
    """Those that another op reads, and is fused with, stay, and so do repeated elements."""
    with mlir_context():
        module = select(parse_payload(TEXT, "payload.mlir")).module
        (part,) = walk(module, "tensor.insert_slice")
        assert part.operands[0].owner.name == "tensor.expand_shape"
        assert walk(module, "linalg.generic") == [] and len(walk(module, "linalg.broadcast")) == 2
