// A kernel repeats its products of f32, from the first copy to the last product, where a sum of a thread of the block
// is NaN; what follows takes the sums of either. The repeated ops take ids that differ in the sign of a count, those of
// the loop in a number that the loop changes too: their addresses are calculated again.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step recompute_nan_tiles --split-input-file | FileCheck %s

// CHECK-LABEL: gpu.func @two_sums(
// CHECK: [[lane:%.+]] = gpu.lane_id
// CHECK: [[index:%.+]] = arith.addi %{{.+}}, [[lane]]
// CHECK: nvgpu.device_async_copy %A[[[index]]
// CHECK: [[sums:%.+]]:2 = scf.for
// CHECK: memref.load %{{.+}}[[[index]]
// CHECK-COUNT-2: nvgpu.mma.sync({{.*}} {mmaShape = [16, 8, 8]}
// CHECK: [[either:%.+]] = arith.cmpf uno, [[sums]]#0, [[sums]]#1 : vector<2x2xf32>
// CHECK: [[first:%.+]] = vector.extract [[either]][0]
// CHECK: [[second:%.+]] = vector.extract [[either]][1]
// CHECK: [[row:%.+]] = arith.ori [[first]], [[second]] : vector<2xi1>
// CHECK: [[columns:%.+]]:2 = vector.to_elements [[row]]
// CHECK: [[own:%.+]] = arith.ori [[columns]]#0, [[columns]]#1 : i1
// CHECK: [[word:%.+]] = arith.extui [[own]]
// CHECK: [[threads:%.+]] = nvvm.barrier.reduction #nvvm.reduction<popc> [[word]]
// CHECK: [[repeats:%.+]] = arith.cmpi ne, [[threads]],
// CHECK: [[right:%.+]]:2 = scf.if [[repeats]]
// CHECK: [[sign:%.+]] = arith.shrsi [[threads]],
// CHECK: [[zero:%.+]] = arith.index_cast [[sign]] : i32 to index
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: [[lane_again:%.+]] = gpu.lane_id
// CHECK: [[hidden:%.+]] = arith.xori [[lane_again]], [[zero]]
// CHECK: [[index_again:%.+]] = arith.addi %{{.+}}, [[hidden]]
// CHECK: nvgpu.device_async_copy %A[[[index_again]]
// CHECK: [[again:%.+]]:2 = scf.for [[k:%[a-z0-9]+]] = %from
// CHECK: [[changing:%.+]] = arith.andi [[zero]], [[k]]
// CHECK: [[lane_inside:%.+]] = gpu.lane_id
// CHECK: [[hidden_inside:%.+]] = arith.xori [[lane_inside]], [[changing]]
// CHECK: [[index_inside:%.+]] = arith.addi %{{.+}}, [[hidden_inside]]
// CHECK: memref.load %{{.+}}[[[index_inside]]
// CHECK-COUNT-2: nvgpu.mma.sync({{.*}} {keeps_infinities, mmaShape = [16, 8, 8]}
// CHECK: scf.yield [[again]]#0, [[again]]#1
// CHECK: else
// CHECK-NEXT: scf.yield [[sums]]#0, [[sums]]#1
// CHECK: vector.extract [[right]]#0
// CHECK: vector.extract [[right]]#1
// CHECK: // -----
!c = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @two_sums(%A: memref<64xf32>, %C: memref<64xf32>, %from: index, %to: index,
      %s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %lane = gpu.lane_id
    %i = arith.addi %from, %lane : index
    %t = nvgpu.device_async_copy %A[%i], %s[%i], 4 : memref<64xf32> to memref<64xf32, #gpu.address_space<workgroup>>
    %zero = arith.constant dense<0.0> : !c
    %sums:2 = scf.for %k = %from to %to step %to iter_args(%x = %zero, %y = %zero) -> (!c, !c) {
      %e = memref.load %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
      %a = vector.broadcast %e : f32 to vector<4x1xf32>
      %b = vector.broadcast %e : f32 to vector<2x1xf32>
      %0 = nvgpu.mma.sync(%a, %b, %x) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, !c) -> !c
      %1 = nvgpu.mma.sync(%a, %b, %y) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, !c) -> !c
      scf.yield %0, %1 : !c, !c
    }
    %2 = vector.extract %sums#0[0] : vector<2xf32> from !c
    vector.store %2, %C[%from] : memref<64xf32>, vector<2xf32>
    %3 = vector.extract %sums#1[0] : vector<2xf32> from !c
    vector.store %3, %C[%to] : memref<64xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Products of tf32 stay.
// CHECK-LABEL: gpu.func @others(
// CHECK-NOT: scf.if
// CHECK: gpu.return
!c = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @others(%a: vector<4x1xf32>, %b: vector<2x1xf32>, %c: !c, %C: memref<64xf32>, %i: index) kernel {
    %0 = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, !c) -> !c
    %1 = vector.extract %0[0] : vector<2xf32> from !c
    vector.store %1, %C[%i] : memref<64xf32>, vector<2xf32>
    gpu.return
  }
}
