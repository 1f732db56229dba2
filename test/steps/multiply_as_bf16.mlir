// Marked products and the loads of their operands become intrinsics, also where a loop carries the fragments.
//
// RUN: %stepladder-opt %s --pipeline wmma --step multiply_as_bf16 --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @carried(
// CHECK: llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
// CHECK: llvm.getelementptr %{{.*}} : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, bf16
// CHECK: [[first:%.+]] = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.load.a.row.stride.bf16.p3"(%{{.*}}, %c40_i32)
// CHECK-SAME: -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK: scf.for {{.*}} iter_args([[a:%.+]] = [[first]], [[c:%.+]] = %{{.*}}) -> (!llvm.struct<(i32, i32, i32, i32)>, !gpu.mma_matrix<16x16xf32, "COp">)
// CHECK: [[b:%.+]] = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.load.b.col.stride.bf16.p0"(%{{.*}}, %c24_i32)
// CHECK: [[a0:%.+]] = llvm.extractvalue [[a]][0]
// CHECK: [[b3:%.+]] = llvm.extractvalue [[b]][3]
// CHECK: [[sums:%.+]] = builtin.unrealized_conversion_cast [[c]] : !gpu.mma_matrix<16x16xf32, "COp"> to !llvm.struct<
// CHECK: [[d:%.+]] = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.mma.row.col.bf16"([[a0]], {{.*}}, [[b3]], %
// The cast of a sum between two products is gone.
// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.extractvalue [[d]][0]
// CHECK: [[e:%.+]] = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.mma.row.col.bf16"(
// CHECK: [[f:%.+]] = builtin.unrealized_conversion_cast [[e]]
// CHECK: [[next:%.+]] = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.load.a.row.stride.bf16.p3"
// CHECK: scf.yield [[next]], [[f]]
// CHECK: gpu.subgroup_mma_store_matrix
// CHECK-NOT: xf16
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  gpu.func @carried(%A: memref<2x16x40xbf16, #space>, %B: memref<16x24xbf16>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %halves = builtin.unrealized_conversion_cast %A : memref<2x16x40xbf16, #space> to memref<2x16x40xf16, #space>
    %columns = builtin.unrealized_conversion_cast %B : memref<16x24xbf16> to memref<16x24xf16>
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf32> -> !c
    %first = gpu.subgroup_mma_load_matrix %halves[%c0, %c0, %c0] {leadDimension = 40 : index}
        : memref<2x16x40xf16, #space> -> !a
    %last:2 = scf.for %k = %c0 to %c64 step %c16 iter_args(%a = %first, %sum = %c) -> (!a, !c) {
      %b = gpu.subgroup_mma_load_matrix %columns[%c0, %c0] {leadDimension = 24 : index, transpose}
          : memref<16x24xf16> -> !b
      %d = gpu.subgroup_mma_compute %a, %b, %sum {b_transpose, of_bf16} : !a, !b -> !c
      %e = gpu.subgroup_mma_compute %a, %b, %d {b_transpose, of_bf16} : !a, !b -> !c
      %next = gpu.subgroup_mma_load_matrix %halves[%c0, %c0, %k] {leadDimension = 40 : index}
          : memref<2x16x40xf16, #space> -> !a
      scf.yield %next, %e : !a, !c
    }
    gpu.subgroup_mma_store_matrix %last#1, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

// The offset of a part of a buffer is in the address.
// CHECK: [[place:#.+]] = affine_map<()[s0, s1] -> (s0 * 48 + s1 + 8)>
// CHECK-LABEL: gpu.func @part(
// CHECK: affine.apply [[place]]()
// CHECK: llvm.getelementptr
// CHECK: // -----
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
!part = memref<16x16xf16, strided<[48, 1], offset: 8>>
gpu.module @kernels {
  gpu.func @part(%A: memref<16x16xbf16, strided<[48, 1], offset: 8>>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %halves = builtin.unrealized_conversion_cast %A : memref<16x16xbf16, strided<[48, 1], offset: 8>> to !part
    %a = gpu.subgroup_mma_load_matrix %halves[%c0, %c0] {leadDimension = 48 : index} : !part -> !a
    %b = gpu.subgroup_mma_load_matrix %halves[%c0, %c0] {leadDimension = 48 : index} : !part -> !b
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf32> -> !c
    %d = gpu.subgroup_mma_compute %a, %b, %c {of_bf16} : !a, !b -> !c
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @halves(
// CHECK: gpu.subgroup_mma_load_matrix %A
// CHECK: gpu.subgroup_mma_compute
// CHECK-NOT: llvm
// CHECK: // -----
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  gpu.func @halves(%A: memref<16x16xf16>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !a
    %b = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !b
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf32> -> !c
    %d = gpu.subgroup_mma_compute %a, %b, %c : !a, !b -> !c
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  gpu.func @no_cast(%A: memref<16x16xf16>, %c: !c) {
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{tc.multiply_as_bf16: expected a fragment of 16 x 16 elements in a buffer of bf16 that is cast}}
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !a
    %b = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !b
    %d = gpu.subgroup_mma_compute %a, %b, %c {of_bf16} : !a, !b -> !c
    gpu.return
  }
}

// -----

!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  // expected-error@+1 {{tc.multiply_as_bf16: expected fragments of bf16 that are loaded, or that an scf.for carries}}
  gpu.func @argument(%a: !a, %b: !b, %c: !c) {
    %d = gpu.subgroup_mma_compute %a, %b, %c {of_bf16} : !a, !b -> !c
    gpu.return
  }
}
