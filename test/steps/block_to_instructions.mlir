// Products are divided into those of the instruction, 8 x 16 x 16 of f16, and loads and stores likewise.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step block_to_instructions
// RUN: %{opt} | FileCheck %s

// CHECK: gpu.func @kernel(
// CHECK-COUNT-4: xegpu.load_nd {{.*}} -> vector<8x16xf16>
// CHECK-COUNT-4: xegpu.load_nd {{.*}} -> vector<16x16xf16>
// CHECK-COUNT-8: xegpu.dpas {{.*}} : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> -> vector<8x16xf32>
// CHECK-NOT: xegpu.dpas
// CHECK-COUNT-4: xegpu.store_nd {{.*}} : vector<8x16xf32>
module attributes {gpu.container_module} {
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @kernel(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %da = xegpu.create_nd_tdesc %A : memref<64x64xf16> -> !xegpu.tensor_desc<16x32xf16>
      %db = xegpu.create_nd_tdesc %B : memref<64x64xf16> -> !xegpu.tensor_desc<32x32xf16>
      %dc = xegpu.create_nd_tdesc %C : memref<64x64xf32> -> !xegpu.tensor_desc<16x32xf32>
      %a = xegpu.load_nd %da[%c0, %c0] : !xegpu.tensor_desc<16x32xf16> -> vector<16x32xf16>
      %b = xegpu.load_nd %db[%c0, %c0] : !xegpu.tensor_desc<32x32xf16> -> vector<32x32xf16>
      %zero = arith.constant dense<0.0> : vector<16x32xf32>
      %d = xegpu.dpas %a, %b, %zero : vector<16x32xf16>, vector<32x32xf16>, vector<16x32xf32> -> vector<16x32xf32>
      xegpu.store_nd %d, %dc[%c0, %c0] : vector<16x32xf32>, !xegpu.tensor_desc<16x32xf32>
      gpu.return
    }
  }
}
