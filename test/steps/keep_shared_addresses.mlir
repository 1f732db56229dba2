// An address in the block's shared memory is one in the cluster's; other casts stay.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step keep_shared_addresses | FileCheck %s

// CHECK-LABEL: llvm.func @kernel(
// CHECK: [[number:%.+]] = llvm.ptrtoint [[tile:%.+]] : !llvm.ptr<3> to i64
// CHECK-NEXT: [[target:%.+]] = llvm.inttoptr [[number]] : i64 to !llvm.ptr<7>
// CHECK-NOT: llvm.addrspacecast
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global [[target]],
// CHECK: llvm.addrspacecast [[tile]] : !llvm.ptr<3> to !llvm.ptr{{$}}
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @kernel(%map: !llvm.ptr {llvm.align = 64 : i64}, %value: i32) attributes {gpu.kernel, nvvm.kernel} {
      %x = llvm.mlir.constant(0 : i32) : i32
      %tile = llvm.mlir.zero : !llvm.ptr<3>
      %full = llvm.mlir.zero : !llvm.ptr<3>
      %target = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.cp.async.bulk.tensor.shared.cluster.global %target, %map, %full, box[%x, %x] : !llvm.ptr<7>, !llvm.ptr
      %generic = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr
      llvm.store %value, %generic : i32, !llvm.ptr
      llvm.return
    }
  }
}
