// A pair of products on mma.sync and WMMA: a warp computes the same part of both, between two barriers, and the op that
// combines them takes two vectors of one place: of accumulators, or of both products in shared memory.
//
// DEFINE: %{sizes} = --set block_m=64 --set block_n=64 --set warp_m=32 --set warp_n=32
// DEFINE: %{opt} = %stepladder-opt %payloads/gated.mlir
// DEFINE: %{mma} = %{opt} --pipeline mma_sync %{sizes}
// DEFINE: %{wmma} = %{opt} --pipeline wmma %{sizes}
// RUN: %{mma} --through map_matmul_to_warps | FileCheck %s --check-prefix=WARPS
// RUN: %{mma} --without map_copies_cyclically --through map_matmul_to_warps | FileCheck %s --check-prefix=WARPS
// RUN: %{opt} --pipeline mma_sync --set block_m=256 --set block_n=64 --set warp_m=64 --set warp_n=32 --through map_matmul_to_warps | FileCheck %s --check-prefix=WARPS
// RUN: %{mma} --through convert_to_mma_sync | FileCheck %s --check-prefix=FRAGMENTS
// RUN: %{wmma} --through map_consumer_to_lanes | FileCheck %s --check-prefix=LANES
// RUN: %refused 2 %stepladder-opt %payloads/gated.mlir --pipeline mma_sync | FileCheck %s --check-prefix=REGISTERS
// RUN: %refused 2 %{opt} --pipeline wmma --set block_m=128 --set block_n=128 --set warp_m=32 --set warp_n=32 | FileCheck %s --check-prefix=MEMORY
// RUN: %stepladder-opt %s --pipeline mma_sync --step convert_to_mma_sync --split-input-file --verify-diagnostics -o %t

// WARPS-COUNT-3: memref.alloc() {operand_{{[ab]}}}
// WARPS-NOT: memref.alloc
// WARPS: scf.for
// WARPS-NOT: gpu.barrier
// WARPS: {{linalg.copy|vector.transfer_write}}
// WARPS: gpu.barrier
// WARPS-NOT: {{gpu.barrier|linalg.copy|vector.transfer_write}}
// WARPS: linalg.matmul ins([[a:%.+]], %{{.*}} : {{.*}}) outs(%
// WARPS-NOT: {{gpu.barrier|linalg.copy|vector.transfer_write}}
// WARPS: linalg.matmul ins([[a]], %{{.*}} : {{.*}}) outs(%
// WARPS-NEXT: gpu.barrier
// WARPS-NOT: {{gpu.barrier|linalg.matmul}}
// WARPS: linalg.generic

// FRAGMENTS-NOT: {{operand_c|consumer}}
// FRAGMENTS: [[sums:%.+]]:16 = scf.for
// FRAGMENTS: [[x:%.+]] = vector.extract [[sums]]#15[0] : vector<2xf32> from vector<2x2xf32>
// FRAGMENTS: [[y:%.+]] = vector.extract [[sums]]#7[0] : vector<2xf32> from vector<2x2xf32>
// FRAGMENTS: [[m:%.+]] = arith.maximumf [[x]], %
// FRAGMENTS-NEXT: [[t:%.+]] = arith.mulf [[m]], [[y]] : vector<2xf32>
// FRAGMENTS-NEXT: [[c:%.+]] = arith.truncf [[t]]
// FRAGMENTS: vector.store [[c]]

// LANES: [[p:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// LANES: [[q:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// LANES: affine.for
// LANES: [[g:%.+]] = vector.load [[p]]{{\[}}[[row:%.+]], [[column:%.+]]]
// LANES: [[x:%.+]] = vector.load [[q]]{{\[}}[[row]], [[column]]]
// LANES: [[m:%.+]] = arith.maximumf [[x]], %
// LANES-NEXT: [[t:%.+]] = arith.mulf [[m]], [[g]] : vector<4xf32>

// REGISTERS: error: step 'convert_to_mma_sync': accumulators must use fewer than 255 registers per thread (accumulator_registers), but accumulator_registers = 256, products = 2
// MEMORY: error: step 'pack_shared_memory': the shared memory of a block (shared_bytes) must be at most shared_memory_limit

// Accumulators at other places of one tile than of the other.
#space = #gpu.address_space<workgroup>
#map = affine_map<(i, j) -> (i, j)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func private @consumer(%p: memref<16x16xf32, #space>, %q: memref<16x16xf32, #space>, %i: index, %j: index, %c: memref<16x16xf32>)
    -> memref<16x16xf32> attributes {operand_c} {
  %x = memref.subview %p[%i, %j] [16, 16] [1, 1] : memref<16x16xf32, #space> to memref<16x16xf32, strided<[16, 1], offset: ?>, #space>
  %y = memref.subview %q[%i, %j] [16, 16] [1, 1] : memref<16x16xf32, #space> to memref<16x16xf32, strided<[16, 1], offset: ?>, #space>
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<16x16xf32, strided<[16, 1], offset: ?>, #space>, memref<16x16xf32, strided<[16, 1], offset: ?>, #space>)
      outs(%c : memref<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return %c : memref<16x16xf32>
}
func.func @places(%A: memref<16x16xf16, #space>, %B: memref<16x8xf16, #space>, %c: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %n = arith.constant 1 : index
  gpu.launch blocks(%0, %1, %2) in (%3 = %n, %4 = %n, %5 = %n) threads(%6, %7, %8) in (%9 = %n, %10 = %n, %11 = %n) {
    %p = memref.alloc() {operand_c} : memref<16x16xf32, #space>
    %q = memref.alloc() {operand_c} : memref<16x16xf32, #space>
    %a = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16, #space>, vector<16x16xf16>
    %b = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x8xf16, #space>, vector<16x8xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %a, %b, %zeros : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
    vector.transfer_write %s, %p[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32, #space>
    vector.transfer_write %s, %q[%c0, %c8] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32, #space>
    // expected-error@+1 {{tc.compute_on_fragments: expected that a lane holds the same positions of both products}}
    %r = func.call @consumer(%p, %q, %c0, %c0, %c) {operand_c}
        : (memref<16x16xf32, #space>, memref<16x16xf32, #space>, index, index, memref<16x16xf32>) -> memref<16x16xf32>
    gpu.terminator
  }
  return
}
