"""What `tc.matmul_to_tiles` refuses where it stands alone: the requirements of the step refuse it before."""

from __future__ import annotations

import pytest

from stepladder.mlir.bindings import interpreter, ir
from stepladder.pipeline.context import mlir_context, parse_payload

SCRIPT = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    "tc.matmul_to_tiles"(%module) {block_m = 32 : i64, block_n = 32 : i64, block_k = 32 : i64, sg_m = 32 : i64,
                                   sg_n = 32 : i64} : (!transform.any_op) -> ()
    transform.yield
  }
}"""
PAYLOAD = """func.func @matmul(%A: memref<LEFT>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<LEFT> to tensor<LEFT>
  %b = bufferization.to_tensor %B restrict : memref<32x32xf16> to tensor<32x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<32x32xf32> to tensor<32x32xf32>
  %d = PRODUCT ins(%a, %b : tensor<LEFT>, tensor<32x32xf16>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = linalg.exp ins(%d : tensor<32x32xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  bufferization.materialize_in_destination %e in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}"""
MAPS = "affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"
CASES = {
    "linalg.contract has no tile form: a linalg.matmul has": (
        f"linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, {MAPS}",
        "32x32xf16",
    ),
    "the product must be written to C as it is: no other op": ("linalg.matmul", "32x32xf16"),
    "operands must be row- or column-major matrices": (
        f"linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k)>, {MAPS}",
        "32xf16",
    ),
}


@pytest.mark.parametrize("message", CASES)
def test_refused_by_the_op(message: str) -> None:
    product, left = CASES[message]
    text = PAYLOAD.replace("PRODUCT", product).replace("LEFT", left)
    if message.startswith("operands"):  # the sums themselves are C
        text = text.replace("destination %e", "destination %d")
        text = "\n".join(line for line in text.splitlines() if "linalg.exp" not in line)
    with mlir_context():
        script = ir.Module.parse(SCRIPT)
        module = parse_payload(text, "matmul")
        with pytest.raises(Exception, match=message):
            interpreter.apply_named_sequence(module.operation, script.body.operations[0].operation, script.operation)
