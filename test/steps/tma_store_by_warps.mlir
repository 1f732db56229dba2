// With store_threads = 32, each warp stores its rows of a box, 16 of each instruction's 64, and waits for no other warp.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step tma_store_epilogue --split-input-file
// RUN: %{opt} %s --set store_threads=32 --verify-diagnostics | FileCheck %s

// Two boxes of 32 columns of f32: a warpgroup has 128 rows, so that a warp stores two parts of each.
// CHECK-DAG: #[[to_warp:.+]] = affine_map<()[s0] -> ((s0 mod 128) floordiv 32)>
// CHECK-DAG: #[[to_lane:.+]] = affine_map<()[s0] -> (s0 mod 32)>
// CHECK-DAG: #[[to_rows:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16)>
// CHECK-DAG: #[[sixteen:.+]] = affine_map<()[s0] -> (s0 * 16)>
// CHECK-LABEL: func.func @two_boxes(
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c16, %c32] :
// CHECK-SAME: -> <tensor = memref<16x32xf32, 3>, swizzle = swizzle_128b,
// CHECK: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x128x32xf32, #gpu.address_space<workgroup>>
// CHECK: [[lane:%.+]] = affine.apply #[[to_lane]]()
// CHECK-NEXT: [[one:%.+]] = arith.cmpi eq, [[lane]], %c0
// CHECK: [[box:%.+]] = memref.subview [[boxes]]{{.*}} [1, 1, 128, 32]
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.bar.warp.sync %c-1_i32
// CHECK-COUNT-16: vector.store %{{.*}}, [[box]][
// CHECK-NOT: vector.store
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.bar.warp.sync %c-1_i32
// CHECK-NEXT: [[warp:%.+]] = affine.apply #[[to_warp]]()
// CHECK-NEXT: [[next:%.+]] = arith.addi [[warp]], %c4
// CHECK-NEXT: [[down:%.+]] = affine.apply #[[to_rows]]()
// CHECK-NEXT: [[row:%.+]] = arith.addi %{{.*}}, [[down]]
// CHECK-NEXT: [[down:%.+]] = affine.apply #[[sixteen]]()[[[next]]]
// CHECK-NEXT: [[row2:%.+]] = arith.addi %{{.*}}, [[down]]
// CHECK-NEXT: scf.if [[one]] {
// CHECK: [[part:%.+]] = memref.subview [[boxes]]{{.*}} [1, 1, 16, 32]
// CHECK-NEXT: nvgpu.tma.async.store [[part]] to %{{.*}}[%j, [[row]]] :
// CHECK: [[part:%.+]] = memref.subview [[boxes]]{{.*}} [1, 1, 16, 32]
// CHECK-NEXT: nvgpu.tma.async.store [[part]] to %{{.*}}[%j, [[row2]]] :
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: }
// CHECK-COUNT-2: nvgpu.tma.async.store
// The first lane of each warp waits for its last stores.
// CHECK: [[lane:%.+]] = affine.apply #[[to_lane]]()
// CHECK-NEXT: [[one:%.+]] = arith.cmpi eq, [[lane]], %c0
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NOT: nvvm.barrier
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[128, 1], offset: ?>
#own_view = strided<[64, 1], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x64xf32>>
func.func @two_boxes(%C: memref<512x128xf32>, %i: index, %j: index, %own: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<256x64xf32, #space>
    %own_rows = memref.subview %tile[%own, 0] [128, 64] [1, 1]
        : memref<256x64xf32, #space> to memref<128x64xf32, #own_view, #space>
    scf.for %number = %c0 to %c4 step %c1 {
      %c = memref.subview %C[%i, %j] [256, 64] [1, 1] : memref<512x128xf32> to memref<256x64xf32, #c_view>
      %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
      "tc.warpgroup_mma_store"(%sums, %own_rows) : (!sums, memref<128x64xf32, #own_view, #space>) -> ()
      linalg.copy ins(%tile : memref<256x64xf32, #space>) outs(%c : memref<256x64xf32, #c_view>)
    }
    gpu.terminator
  }
  return
}

// -----

// Refused: rows of a transposed C have elements of all warps.
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @transposed(%C: memref<128x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x64xf32, #space>
    %rows = memref.subview %C[0, 0] [64, 64] [1, 1] : memref<128x64xf32> to memref<64x64xf32, strided<[64, 1]>>
    %c = memref.transpose %rows (i, j) -> (j, i)
        : memref<64x64xf32, strided<[64, 1]>> to memref<64x64xf32, strided<[1, 64]>>
    // expected-error @+1 {{a transposed C whose rows warps store: rows of several warps are a box}}
    linalg.copy ins(%tile : memref<64x64xf32, #space>) outs(%c : memref<64x64xf32, strided<[1, 64]>>)
    gpu.terminator
  }
  return
}
