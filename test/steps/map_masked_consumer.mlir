// The op that writes C moves to a function, in which each warp takes what is inside of C of its part; a copy becomes an
// elementwise op.
//
// DEFINE: %{sizes} = --set block_m=64 --set block_n=64 --set warp_m=32 --set warp_n=64
// RUN: %stepladder-opt %s --pipeline mma_sync --step map_masked_consumer %{sizes} --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-DAG: #[[left:.+]] = affine_map<()[s0, s1] -> (-s0 + s1, 32)>
// CHECK-DAG: #[[none:.+]] = affine_map<()[s0] -> (0, s0)>
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> ((s0 floordiv 32) * 32)>
// CHECK: func.func private @consumer([[tile:%.+]]: memref<64x64xf32, #gpu.address_space<workgroup>>, [[i:%.+]]: index, [[j:%.+]]: index, [[bias:%.+]]: memref<64xf32>, [[c:%.+]]: memref<?x64xf16, strided<[64, 1]>>
// CHECK-SAME: attributes {operand_c}
// CHECK: [[dim:%.+]] = memref.dim [[c]], %c0
// CHECK: [[min:%.+]] = affine.min #[[left]](){{\[}}[[i]], [[dim]]]
// CHECK: [[rows:%.+]] = affine.max #[[none]](){{\[}}[[min]]]
// CHECK-NOT: memref.dim
// CHECK: [[part:%.+]] = memref.subview [[tile]]{{\[}}[[i]], [[j]]] {{\[}}[[rows]], 64]
// CHECK: [[bias_part:%.+]] = memref.subview [[bias]]{{\[}}[[j]]] [64]
// CHECK: [[c_part:%.+]] = memref.subview [[c]]{{\[}}[[i]], [[j]]] {{\[}}[[rows]], 64]
// CHECK: linalg.generic {{.*}} ins([[part]], [[bias_part]] : {{.*}}) outs([[c_part]] :
// CHECK: return [[c]]
// CHECK-LABEL: func.func @bias(
// CHECK: [[sums:%.+]] = memref.alloc() {operand_c}
// CHECK: [[first:%.+]] = affine.apply #[[row]]()
// CHECK: func.call @consumer([[sums]], [[first]], %c0, %D, %{{.*}}) {operand_c, warp_tile = array<i64: 32, 64>}
// CHECK-NOT: linalg.generic
#space = #gpu.address_space<workgroup>
#identity = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @bias(%C: memref<?x64xf16, strided<[64, 1]>>, %D: memref<64xf32>, %rows: index)
    attributes {size_m = 50, size_n = 64, size_k = 32, operand_bits = 16, a_layout = "row", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %inside = memref.subview %sums[0, 0] [%rows, 64] [1, 1] : memref<64x64xf32, #space> to memref<?x64xf32, strided<[64, 1]>, #space>
    %c = memref.subview %C[0, 0] [%rows, 64] [1, 1] : memref<?x64xf16, strided<[64, 1]>> to memref<?x64xf16, strided<[64, 1]>>
    linalg.generic {operand_c, indexing_maps = [#identity, #columns, #identity], iterator_types = ["parallel", "parallel"]}
      ins(%inside, %D : memref<?x64xf32, strided<[64, 1]>, #space>, memref<64xf32>)
      outs(%c : memref<?x64xf16, strided<[64, 1]>>) {
    ^bb0(%x: f32, %d: f32, %o: f16):
      %y = arith.addf %x, %d : f32
      %z = arith.truncf %y : f32 to f16
      linalg.yield %z : f16
    }
    gpu.terminator
  }
  return
}

// -----

// CHECK: func.func private @consumer(
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<?x?xf32, {{.*}}>) outs(%{{.*}} : memref<?x?xf32,
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield [[x]]
// CHECK-LABEL: func.func @copy(
// CHECK-NOT: linalg.copy
// CHECK: func.call @consumer
#space = #gpu.address_space<workgroup>
func.func @copy(%C: memref<?x?xf32, strided<[36, 1]>>, %rows: index, %columns: index)
    attributes {size_m = 50, size_n = 36, size_k = 32, operand_bits = 16, a_layout = "row", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %inside = memref.subview %sums[0, 0] [%rows, %columns] [1, 1] : memref<64x64xf32, #space> to memref<?x?xf32, strided<[64, 1]>, #space>
    linalg.copy {operand_c} ins(%inside : memref<?x?xf32, strided<[64, 1]>, #space>) outs(%C : memref<?x?xf32, strided<[36, 1]>>)
    gpu.terminator
  }
  return
}

// -----

// expected-error@below {{tc.outline_masked_consumer: expected one op that writes the product to C, found 0}}
module {
  func.func @none()
      attributes {size_m = 50, size_n = 36, size_k = 32, operand_bits = 16, a_layout = "row", b_layout = "row"} {
    return
  }
}
