// map_matmul_to_warps puts a barrier behind products of tiles that a block copies, and refuses to leave it out.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wmma --step map_matmul_to_warps --verify-diagnostics
// DEFINE: %{sizes} = --set block_m=64 --set block_n=64 --set warp_n=32 --set warp_m=32
// RUN: %{opt} %{sizes} --without stage_in_shared_memory,prefetch_to_registers
// RUN: sed '/expected-error/d' %s | %stepladder-opt - --pipeline wmma --step map_matmul_to_warps %{sizes} | FileCheck %s

// CHECK: linalg.matmul
// CHECK-NEXT: gpu.barrier
#space = #gpu.address_space<workgroup>
// expected-error@unknown {{tiles that linalg.copy writes must be protected by barriers: stage_in_shared_memory must}}
func.func @copied(%A: memref<64x64xf16>, %B: memref<16x64xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<64x16xf16, #space>
    scf.for %k = %c0 to %c64 step %c16 {
      %a = memref.subview %A[0, %k] [64, 16] [1, 1] : memref<64x64xf16> to memref<64x16xf16, strided<[64, 1], offset: ?>>
      linalg.copy ins(%a : memref<64x16xf16, strided<[64, 1], offset: ?>>) outs(%tile : memref<64x16xf16, #space>)
      gpu.barrier
      linalg.matmul ins(%tile, %B : memref<64x16xf16, #space>, memref<16x64xf16>) outs(%C : memref<64x64xf32>)
    }
    gpu.terminator
  }
  return
}
