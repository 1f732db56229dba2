// Lanes load the rows of a block as words of 32 bits, of which two 16-bit elements each are one.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step transpose_by_words --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// CHECK-LABEL: gpu.func @turned(
// CHECK: [[at:%.+]] = memref.extract_aligned_pointer_as_index %A
// CHECK: [[address:%.+]] = arith.index_cast [[at]] : index to i64
// CHECK: [[desc:%.+]] = xegpu.create_nd_tdesc [[address]], shape : [48, 20], strides : [20, 1] : i64 -> !xegpu.tensor_desc<16x8xi32>
// CHECK: [[column:%.+]] = arith.shrui %i, %{{.*}} : index
// CHECK: [[words:%.+]] = xegpu.load_nd [[desc]][%k, [[column]]] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xi32> -> vector<8xi32>
// CHECK: vector.bitcast [[words]] : vector<8xi32> to vector<16xf16>
// A block of words stays.
// CHECK: xegpu.load_nd %{{.*}}[%k, %i] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xf32> -> vector<8xf32>
gpu.module @kernels {
  gpu.func @turned(%A: memref<48x40xf16>, %B: memref<48x40xf32>, %k: index, %i: index) -> (vector<16xf16>, vector<8xf32>) {
    %a = xegpu.create_nd_tdesc %A : memref<48x40xf16> -> !xegpu.tensor_desc<16x16xf16>
    %b = xegpu.create_nd_tdesc %B : memref<48x40xf32> -> !xegpu.tensor_desc<16x8xf32>
    %v = xegpu.load_nd %a[%k, %i] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
    %w = xegpu.load_nd %b[%k, %i] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xf32> -> vector<8xf32>
    gpu.return %v, %w : vector<16xf16>, vector<8xf32>
  }
}

// -----

gpu.module @kernels {
  gpu.func @refused(%A: memref<48x64xi8>, %k: index) -> vector<16xi8> {
    %a = xegpu.create_nd_tdesc %A : memref<48x64xi8> -> !xegpu.tensor_desc<16x16xi8>
    // expected-error @+1 {{the load transposes elements of i8: those of 16 and of 32 bits are transposed}}
    %v = xegpu.load_nd %a[%k, %k] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x16xi8> -> vector<16xi8>
    gpu.return %v : vector<16xi8>
  }
}

// -----

gpu.module @kernels {
  gpu.func @refused(%a: !xegpu.tensor_desc<16x16xf16>, %k: index) -> vector<16xf16> {
    // expected-error @+1 {{transposed by words of a descriptor with constant sizes, made in the kernel}}
    %v = xegpu.load_nd %a[%k, %k] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
    gpu.return %v : vector<16xf16>
  }
}
