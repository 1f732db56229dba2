// All threads arrive at the mbarrier of the next iteration's stage behind the products in registers, and wait for that of
// their own at the begin, in place of a barrier. Copies begin behind the product of tiles, and are waited for behind the
// softmax. A loop without products of tiles is refused.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/attention.mlir --step decouple_warpgroups \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-DAG: [[phase:#.+]] = affine_map<()[s0] -> (((s0 floordiv 16) floordiv 4) mod 2)>
// CHECK-DAG: [[own:#.+]] = affine_map<()[s0] -> ((s0 floordiv 16) mod 4)>
// CHECK-DAG: [[following:#.+]] = affine_map<()[s0] -> (s0 floordiv 16 - ((s0 floordiv 16 + 1) floordiv 4) * 4 + 1)>
// CHECK-LABEL: func.func @half_an_iteration(
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create -> <memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
// CHECK: scf.if
// CHECK-COUNT-4: nvgpu.mbarrier.init [[full]][{{.*}}], %c256
// CHECK: gpu.barrier
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.fence.proxy
// CHECK-NEXT: nvgpu.mbarrier.arrive [[full]][%c0]
// CHECK: scf.for [[i:%.+]] = %c0
// CHECK: [[number:%.+]] = affine.apply [[phase]]()[[[i]]]
// CHECK: [[parity:%.+]] = arith.cmpi eq, [[number]], %c1
// CHECK: [[stage:%.+]] = affine.apply [[own]]()[[[i]]]
// CHECK: nvgpu.mbarrier.try_wait.parity [[full]][[[stage]]], [[parity]],
// CHECK-NEXT: nvgpu.warpgroup.mma %q, %k, %zeros : 
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: "tc.warpgroup_mma_registers"
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.fence.proxy
// CHECK-NEXT: [[next:%.+]] = affine.apply [[following]]()[[[i]]]
// CHECK-NEXT: nvgpu.mbarrier.arrive [[full]][[[next]]]
// CHECK-NEXT: scf.yield
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!q = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!k = !nvgpu.warpgroup.descriptor<tensor = memref<64x16xf16, #space>>
!v = !nvgpu.warpgroup.descriptor<tensor = memref<16x64xf16, #space>>
!scores = !nvgpu.warpgroup.accumulator<fragmented = vector<64x16xf32>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @half_an_iteration(%x: memref<64x8xf16>, %q: !q, %k: !k, %v: !v, %p: vector<1x4x2xf16>, %zeros: !scores,
    %o: !sums) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<16x8xf16, #space>
    %end = scf.for %i = %c0 to %c64 step %c16 iter_args(%sum = %o) -> (!sums) {
      nvvm.cp.async.wait.group 0
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      gpu.barrier
      %0 = nvgpu.device_async_copy %x[%i, %c0], %tile[%c0, %c0], 8 : memref<64x8xf16> to memref<16x8xf16, #space>
      nvvm.cp.async.commit.group
      %s = nvgpu.warpgroup.mma %q, %k, %zeros {waitGroup = 0 : i64} : !q, !k, !scores -> !scores
      %new = "tc.warpgroup_mma_registers"(%p, %v, %sum) {step = 0 : i64} : (vector<1x4x2xf16>, !v, !sums) -> !sums
      scf.yield %new : !sums
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @no_products(%x: memref<64x8xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<16x8xf16, #space>
    // expected-error@+1 {{tc.decouple_warpgroups: 0 barriers and 0 products of tiles; accepted: one each}}
    scf.for %i = %c0 to %c64 step %c16 {
      %0 = nvgpu.device_async_copy %x[%i, %c0], %tile[%c0, %c0], 8 : memref<64x8xf16> to memref<16x8xf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

func.func @no_copies() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.decouple_warpgroups: expected one loop that copies tiles, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}
