// Computes elementwise ops on A and B, such as the dequantization of weights, in kernels before the matmul.
//
// Tensor cores read operands from shared memory, to which TMA and cp.async copy them unchanged from global memory. A
// value that the payload computes from A or B first (an activation, or weights of 8 or 4 bits times scales) must
// therefore be in memory before the matmul. A kernel reads the stored operand and writes the prepared one to a
// workspace once; a matmul with many rows reads the workspace many times. Each op of the body is computed in its own
// type, so that values are rounded where the payload rounds them. No factor is moved past the product.
//
// Zero points of i8 become sums of rows of A and columns of B, which the epilogue subtracts. The step computes these
// sums too: a warp computes a sum over elements that are adjacent in memory, and a thread any other sum.
//
// The step generalizes named ops, and upstream's fusion of elementwise ops merges a chain, with broadcasts, constants
// and reshapes, into one `linalg.generic`; `tc.prepare_operands` turns each remaining op into a kernel. Without such
// ops the step changes nothing.
//
// Source: dequantization before a matmul, as in libraries without mixed-input kernels; `tc.repack_operands` writes
// operands for TMA in the same way.
//
// Before:
//   %w = memref.alloc() {workspace} : memref<4096x4096xf16>
//   %weights = linalg.generic {...} ins(%q, %scales : tensor<4096x4096xi8>, tensor<4096xf16>) outs(%0 : ...) {
//     %x = arith.sitofp %in : i8 to f16
//     %y = arith.mulf %x, %scale : f16
//     linalg.yield %y : f16
//   }
//   bufferization.materialize_in_destination %weights in restrict writable %w
//   %b = bufferization.to_tensor %w restrict : ...
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)
// After:
//   %w = memref.alloc() {workspace} : memref<4096x4096xf16>
//   gpu.launch_func @matmul_prepare_0::@matmul_prepare_0 ... args(%Q, %Scales, %w)
//   %b = bufferization.to_tensor %w restrict : ...
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)
//
//   gpu.func @matmul_prepare_0(%Q: memref<4096x4096xi8>, %Scales: memref<4096xf16>, %w: memref<4096x4096xf16>) kernel {
//     %in = vector.load %Q[%row, %column] : memref<4096x4096xi8>, vector<8xi8>
//     %scale = vector.load %Scales[%column] : memref<4096xf16>, vector<8xf16>
//     %x = arith.sitofp %in : vector<8xi8> to vector<8xf16>
//     %y = arith.mulf %x, %scale : vector<8xf16>
//     vector.store %y, %w[%row, %column]
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @generalize_elementwise(!transform.any_op {transform.readonly})
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prepare_operands(%module: !transform.any_op {transform.readonly}) {
    transform.tune.alternatives<"has_producer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_producer"}} {
    }, {
      transform.include @generalize_elementwise failures(propagate) (%module) : (!transform.any_op) -> ()
      %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      %fused = transform.apply_registered_pass "linalg-fuse-elementwise-ops" to %func
        : (!transform.any_op) -> !transform.any_op
      transform.apply_cse to %fused : !transform.any_op
      "tc.prepare_operands"(%module) {threads = 256 : i64} : (!transform.any_op) -> ()

      %host = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%host) : (!transform.any_op) -> ()
      %kernels = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
