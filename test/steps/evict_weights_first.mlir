// Loads of the matrix that is read once get the hint, also those of several blocks, and other loads none.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set early_weights=true --step evict_weights_first | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wgmma --set prefetch_steps=4 --step evict_weights_first | FileCheck %s
//
// Where none is marked, those of the largest one get it, for all but the sixteenths of its lines that are kept.
// RUN: sed 's/ {read_once}//' %s > %t.mlir
// RUN: %stepladder-opt %t.mlir --pipeline wgmma --set kept_weights=8 --step evict_weights_first | FileCheck %s --check-prefix=KEPT

// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: [[weights:%[a-z]+]]: !llvm.ptr {llvm.align = 64 : i64}, [[rows:%[a-z]+]]: !llvm.ptr {llvm.align = 64 : i64}
// CHECK: [[hint:%.+]] = llvm.mlir.constant(1364590687093260288 : i64)
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, [[weights]], %{{.+}}, box[{{.+}}] l2_cache_hint = [[hint]] :
// CHECK-NEXT: {{.*}} = llvm.mlir.constant(1364590687093260288 : i64)
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, [[weights]], %{{.+}}, box[{{.+}}] multicast_mask = {{.+}} l2_cache_hint =
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, [[rows]], %{{.+}}, box[{{.+}}] :

// KEPT-LABEL: llvm.func @kernel(
// KEPT-SAME: [[weights:%[a-z]+]]: !llvm.ptr {llvm.align = 64 : i64}, [[rows:%[a-z]+]]: !llvm.ptr {llvm.align = 64 : i64}
// KEPT: [[hint:%.+]] = llvm.mlir.constant(1328561890074296320 : i64)
// KEPT-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, [[weights]], %{{.+}}, box[{{.+}}] l2_cache_hint = [[hint]] :
// KEPT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, [[weights]], %{{.+}}, box[{{.+}}] multicast_mask = {{.+}} l2_cache_hint =
// KEPT-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, [[rows]], %{{.+}}, box[{{.+}}] :
#space = #gpu.address_space<workgroup>
!a = !nvgpu.tensormap.descriptor<tensor = memref<16x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
!b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
module attributes {gpu.container_module} {
  func.func @matmul(%A: memref<16x64xbf16>, %B: memref<64x512xbf16>, %C: memref<64x4096xbf16>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %any_a = memref.cast %A : memref<16x64xbf16> to memref<*xbf16>
    %a_map = nvgpu.tma.create.descriptor %any_a box[%c16, %c64] : memref<*xbf16> -> !a
    %any_b = memref.cast %B : memref<64x512xbf16> to memref<*xbf16>
    %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] {read_once} : memref<*xbf16> -> !b
    %a_pointer = builtin.unrealized_conversion_cast %a_map : !a to !llvm.ptr
    %b_pointer = builtin.unrealized_conversion_cast %b_map : !b to !llvm.ptr
    // The largest one of all is stored to.
    %any_c = memref.cast %C : memref<64x4096xbf16> to memref<*xbf16>
    %c_map = nvgpu.tma.create.descriptor %any_c box[%c64, %c64] : memref<*xbf16> -> !b
    %c_pointer = builtin.unrealized_conversion_cast %c_map : !b to !llvm.ptr
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%b_pointer : !llvm.ptr, %a_pointer : !llvm.ptr, %c_pointer : !llvm.ptr)
    return
  }
  gpu.module @kernels {
    llvm.func @kernel(%weights: !llvm.ptr {llvm.align = 64 : i64}, %rows: !llvm.ptr {llvm.align = 64 : i64},
        %results: !llvm.ptr {llvm.align = 64 : i64}) attributes {gpu.kernel, nvvm.kernel} {
      %x = llvm.mlir.constant(0 : i32) : i32
      %y = llvm.mlir.constant(64 : i32) : i32
      %mask = llvm.mlir.constant(3 : i16) : i16
      %tile = llvm.mlir.zero : !llvm.ptr<7>
      %full = llvm.mlir.zero : !llvm.ptr<3>
      nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %weights, %full, box[%x, %y] : !llvm.ptr<7>, !llvm.ptr
      nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %weights, %full, box[%x, %y] multicast_mask = %mask
        : !llvm.ptr<7>, !llvm.ptr
      nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %rows, %full, box[%x, %y] : !llvm.ptr<7>, !llvm.ptr
      llvm.return
    }
  }
}
