// Each of 16 lanes holds a column of a block; B is packed, two rows in a register.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step distribute_to_lanes
// RUN: %{opt} | FileCheck %s

// CHECK: gpu.func @kernel(
// CHECK: [[a:%.+]] = xegpu.load_nd {{.*}} : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
// CHECK: [[b:%.+]] = xegpu.load_nd {{.*}}packed{{.*}} : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
// CHECK: xegpu.dpas [[a]], [[b]], %{{.*}} : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
// CHECK: xegpu.store_nd {{.*}} : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
module attributes {gpu.container_module} {
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @kernel(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %da = xegpu.create_nd_tdesc %A : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
      %db = xegpu.create_nd_tdesc %B : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
      %dc = xegpu.create_nd_tdesc %C : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
      %a = xegpu.load_nd %da[%c0, %c0] : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
      %b = xegpu.load_nd %db[%c0, %c0] : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
      %zero = arith.constant dense<0.0> : vector<8x16xf32>
      %d = xegpu.dpas %a, %b, %zero : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> -> vector<8x16xf32>
      xegpu.store_nd %d, %dc[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
      gpu.return
    }
  }
}
