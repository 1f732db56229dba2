// Each warp computes the elementwise op on its own part of the product, in a function that takes the tile and the part's
// place in it.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline mma_sync --set block_m=64 --set block_n=64 --set warp_m=32 --set warp_n=64
// RUN: %{opt} %payloads/bias_relu.mlir --through map_consumer_to_warps | FileCheck %s
// RUN: %{opt} %payloads/accumulate.mlir --through map_consumer_to_warps | FileCheck %s --check-prefix=PRODUCT

// CHECK: func.func private @consumer([[tile:%.+]]: memref<64x64xf32, #gpu.address_space<workgroup>>, [[i:%.+]]: index, [[j:%.+]]: index,
// CHECK-SAME: attributes {operand_c}
// CHECK: [[own:%.+]] = memref.subview [[tile]]{{\[}}[[i]], [[j]]] [32, 64] [1, 1]
// CHECK: linalg.generic {{.*}} ins([[own]], %{{.*}} : {{.*}}) outs(
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: arith.truncf
// CHECK: func.func @matmul(
// CHECK: [[sums:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// CHECK: func.call @consumer([[sums]], %{{.*}}) {operand_c}

// PRODUCT-NOT: {{consumer|operand_c}}
