// Blocks and products become XeVM operations; B is loaded with packed rows, and the edge is that of the matrix.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step lower_to_xevm
// RUN: %{opt} | FileCheck %s

// CHECK: gpu.func @kernel(
// CHECK-DAG: [[a:%.+]] = xevm.blockload2d {{.*}}elem_size_in_bits = 16 : i32, pack_register = false, tile_height = 8 : i32, tile_width = 16 : i32
// CHECK-DAG: [[b:%.+]] = xevm.blockload2d {{.*}}elem_size_in_bits = 16 : i32, pack_register = true, tile_height = 16 : i32, tile_width = 16 : i32
// CHECK-NOT: xegpu.
// CHECK: xevm.mma {{.*}} {shape = <m = 8, n = 16, k = 16>, types = <d = f32, a = f16, b = f16, c = f32>}
// CHECK: xevm.blockstore2d {{.*}}elem_size_in_bits = 32 : i32, tile_height = 8 : i32, tile_width = 16 : i32
// CHECK: xevm.blockprefetch2d {{.*}}cache_control = #xevm.load_cache_control<L1c_L2uc_L3c>
// CHECK-NOT: xegpu.
module attributes {gpu.container_module} {
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @kernel(%A: memref<60x64xf16>, %B: memref<64x64xf16>, %C: memref<60x64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %da = xegpu.create_nd_tdesc %A : memref<60x64xf16> -> !xegpu.tensor_desc<8x16xf16>
      %db = xegpu.create_nd_tdesc %B : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
      %dc = xegpu.create_nd_tdesc %C : memref<60x64xf32> -> !xegpu.tensor_desc<8x16xf32>
      %a = xegpu.load_nd %da[%c0, %c0] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
      %b = xegpu.load_nd %db[%c0, %c0] <{packed}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
      %zero = arith.constant dense<0.0> : vector<8xf32>
      %d = xegpu.dpas %a, %b, %zero : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
      xegpu.store_nd %d, %dc[%c0, %c0] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
      xegpu.prefetch_nd %da[%c0, %c0] <{l1_hint = #xegpu.cache_hint<cached>, l2_hint = #xegpu.cache_hint<cached>, l3_hint = #xegpu.cache_hint<cached>}>
        : !xegpu.tensor_desc<8x16xf16>
      gpu.return
    }
  }
}
