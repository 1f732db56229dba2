// A matmul becomes a loop over tiles of C with a loop over k inside; nothing depends on what the tiles divide.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step convert_to_tiles --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set block_k=16 --set sg_m=64 | FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: func.func @matmul(
// CHECK: [[b:%.+]] = memref.transpose %B (d0, d1) -> (d1, d0) : memref<280x100xf16> to memref<100x280xf16, strided<[1, 100]>>
// CHECK: scf.forall ([[i:%.+]], [[j:%.+]]) in (2, 2)
// CHECK: [[row:%.+]] = arith.muli [[i]], %c256
// CHECK: [[column:%.+]] = arith.muli [[j]], %c256
// CHECK: xetile.init_tile{{.*}}(%A, [[row]], %c0){{.*}} -> !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_data = [32, 32], sg_layout = [8, 4]}>}>>
// CHECK: xetile.init_tile{{.*}}([[b]], %c0, [[column]]){{.*}} -> !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{order = [0, 1], wg = #xetile.wg_map<{sg_data = [32, 64], sg_layout = [8, 4]}>}>>
// CHECK: xetile.init_tile{{.*}}(%C, [[row]], [[column]])
// CHECK: xetile.load_tile{{.*}} -> vector<256x256xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c32
// CHECK: xetile.tile_mma{{.*}}wg_map = #xetile.wg_map<{sg_data = [32, 64], sg_layout = [8, 4]}>
// CHECK: xetile.store_tile
// CHECK: mapping = [#gpu.block<y>, #gpu.block<x>]
// CHECK-NOT: linalg

// OTHER: vector<256x16xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_data = [64, 16], sg_layout = [4, 4]}>}>
func.func @matmul(%A: memref<300x100xf16>, %B: memref<280x100xf16>, %C: memref<300x280xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<300x100xf16> to tensor<300x100xf16>
  %b = bufferization.to_tensor %B restrict : memref<280x100xf16> to tensor<280x100xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<300x280xf32> to tensor<300x280xf32>
  %d = linalg.matmul indexing_maps = [
        affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<300x100xf16>, tensor<280x100xf16>) outs(%c : tensor<300x280xf32>) -> tensor<300x280xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<300x280xf32>, memref<300x280xf32>) -> ()
  return
}

// -----

// C = AB starts at zero and does not read C.
// CHECK-LABEL: func.func @zero(
// CHECK: arith.constant dense<0.000000e+00> : vector<256x256xf32>
// CHECK-COUNT-2: xetile.load_tile
// CHECK-NOT: xetile.load_tile
func.func @zero(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<32x32xf16> to tensor<32x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<32x32xf16> to tensor<32x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<32x32xf32> to tensor<32x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = linalg.matmul ins(%a, %b : tensor<32x32xf16>, tensor<32x32xf16>) outs(%start : tensor<32x32xf32>) -> tensor<32x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}

// -----

// The sums start at another matrix than C.
func.func @start(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %S: memref<32x32xf32>, %C: memref<32x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<32x32xf16> to tensor<32x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<32x32xf16> to tensor<32x32xf16>
  %s = bufferization.to_tensor %S restrict : memref<32x32xf32> to tensor<32x32xf32>
  // expected-error @+1 {{the sums must start at C or at a linalg.fill of 0}}
  %d = linalg.matmul ins(%a, %b : tensor<32x32xf16>, tensor<32x32xf16>) outs(%s : tensor<32x32xf32>) -> tensor<32x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}

// -----

// A batch has no tiles.
// expected-error@unknown {{the payload must be a single matmul: a batch is not supported, but batched = 1}}
func.func @batch(%A: memref<2x32x32xf16>, %B: memref<2x32x32xf16>, %C: memref<2x32x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<2x32x32xf16> to tensor<2x32x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<2x32x32xf16> to tensor<2x32x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<2x32x32xf32> to tensor<2x32x32xf32>
  %d = linalg.batch_matmul ins(%a, %b : tensor<2x32x32xf16>, tensor<2x32x32xf16>) outs(%c : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<2x32x32xf32>, memref<2x32x32xf32>) -> ()
  return
}

// -----

// An elementwise op stands between the product and C.
// expected-error@unknown {{C must have the accumulator type, and the matmul must have no elementwise consumers}}
func.func @rounded(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<32x32xf16> to tensor<32x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<32x32xf16> to tensor<32x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<32x32xf32> to tensor<32x32xf32>
  %d = linalg.matmul ins(%a, %b : tensor<32x32xf16>, tensor<32x32xf16>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = linalg.exp ins(%d : tensor<32x32xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  bufferization.materialize_in_destination %e in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}

// -----

// A is no buffer.
func.func @tensor(%a: tensor<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  %b = bufferization.to_tensor %B restrict : memref<32x32xf16> to tensor<32x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<32x32xf32> to tensor<32x32xf32>
  // expected-error @+1 {{A and B must be tensors of buffers (bufferization.to_tensor)}}
  %d = linalg.matmul ins(%a, %b : tensor<32x32xf16>, tensor<32x32xf16>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}
