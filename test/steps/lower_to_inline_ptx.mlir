// What LLVM has no intrinsic for is PTX, in kernels only, and TMA descriptors are parameters by value, constant for the
// grid. They are the parameters that are aligned to 64 bytes.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step lower_to_inline_ptx --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @host(
// CHECK: arith.addi
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: %map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant},
// CHECK-SAME: %C: !llvm.ptr {llvm.align = 16 : i64}, %barrier: !llvm.ptr<3>, %n: i32
// CHECK-SAME: nvvm.kernel
// CHECK-NOT: nvvm.{{wgmma|mbarrier|cp|inline_ptx}}
// CHECK: llvm.inline_asm has_side_effects {{.*}}"{{.*}}mbarrier.try_wait.parity.shared{{.*}}.b64
// CHECK: llvm.inline_asm has_side_effects {{.*}}"fence.proxy.async;"
// CHECK: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
// What LLVM has an intrinsic for stays, and what is computed twice or not needed goes.
// CHECK: nvvm.barrier
// CHECK: [[sum:%.+]] = llvm.add %n, %n
// CHECK-NEXT: llvm.store [[sum]], %C
// CHECK-NEXT: llvm.store [[sum]], %C
// CHECK-NEXT: llvm.return

// Functions that are no kernels keep their parameters.
// CHECK-LABEL: llvm.func @device(
// CHECK-SAME: %x: !llvm.ptr {llvm.align = 64 : i64})
// CHECK-NOT: byval
module attributes {gpu.container_module} {
  func.func @host(%x: index) -> index {
    %c0 = arith.constant 0 : index
    %y = arith.addi %x, %c0 : index
    return %y : index
  }
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr {llvm.align = 64 : i64}, %C: !llvm.ptr {llvm.align = 16 : i64},
                      %barrier: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
      %ticks = llvm.mlir.constant(1000 : i32) : i32
      %a = llvm.mlir.constant(4611686293313683456 : i64) : i64
      %zero = llvm.mlir.zero : !llvm.struct<(f32, f32, f32, f32)>
      nvvm.mbarrier.try_wait.parity %barrier, %n, %ticks : !llvm.ptr<3>, i32, i32
      nvvm.inline_ptx "fence.proxy.async;"
      %d = nvvm.wgmma.mma_async %a, %a, %zero, <m = 64, n = 8, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>],
          B[<f16>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
      nvvm.barrier
      %unused = llvm.mul %n, %n : i32
      %first = llvm.add %n, %n : i32
      llvm.store %first, %C : i32, !llvm.ptr
      %second = llvm.add %n, %n : i32
      llvm.store %second, %C : i32, !llvm.ptr
      llvm.return
    }
    llvm.func @no_parameters() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
    llvm.func @device(%x: !llvm.ptr {llvm.align = 64 : i64}) {
      llvm.return
    }
  }
}
