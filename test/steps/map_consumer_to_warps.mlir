// Each warp computes the elementwise op on its own part of the product, in a function that takes the tile and the part's
// position in it.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step map_consumer_to_warps --set block_m=64 --set block_n=64 \
// RUN:   --set warp_m=32 --set warp_n=64 --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: [[rows:#.+]] = affine_map<()[s0] -> ((s0 floordiv 32) * 32)>
// CHECK: func.func private @consumer([[tile:%.+]]: memref<64x64xf32, #gpu.address_space<workgroup>>, [[i:%.+]]: index, [[j:%.+]]: index, [[bias:%.+]]: memref<64xf32, {{.*}}>, [[c:%.+]]: memref<32x64xf16, {{.*}}>)
// CHECK-SAME: attributes {operand_c}
// CHECK: [[own:%.+]] = memref.subview [[tile]]{{\[}}[[i]], [[j]]] [32, 64] [1, 1]
// CHECK: linalg.generic {{.*}} ins([[own]], [[bias]] : {{.*}}) outs([[c]] :
// CHECK: arith.addf
// CHECK: arith.truncf
// CHECK-LABEL: func.func @bias(
// CHECK-SAME: [[D:%.+]]: memref<64xf32>, [[C:%.+]]: memref<64x64xf16>
// CHECK-DAG: [[sums:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// CHECK-DAG: [[t:%.+]] = gpu.thread_id x
// CHECK: [[row:%.+]] = affine.apply [[rows]](){{\[}}[[t]]]
// CHECK: [[warp:%.+]] = memref.subview [[C]]{{\[}}[[row]], 0] [32, 64] [1, 1]
// CHECK: func.call @consumer([[sums]], [[row]], %c0, %{{.*}}, [[warp]]) {operand_c}
// CHECK-NOT: linalg.generic
// CHECK: // -----
#same = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @bias(%D: memref<64xf32>, %C: memref<64x64xf16>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    linalg.generic {indexing_maps = [#same, #column, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile, %D : memref<64x64xf32, #gpu.address_space<workgroup>>, memref<64xf32>)
        outs(%C : memref<64x64xf16>) attrs = {operand_c} {
    ^bb0(%x: f32, %d: f32, %c: f16):
      %y = arith.addf %x, %d : f32
      %z = arith.truncf %y : f32 to f16
      linalg.yield %z : f16
    }
    gpu.terminator
  }
  return
}

// -----

// Without an elementwise op nothing changes.
// CHECK-NOT: @consumer
// CHECK-LABEL: func.func @product(
// CHECK-NOT: gpu.thread_id
// CHECK: linalg.matmul
// CHECK: // -----
func.func @product(%A: memref<64x16xf16>, %B: memref<16x64xf16>, %C: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    linalg.matmul ins(%A, %B : memref<64x16xf16>, memref<16x64xf16>) outs(%C : memref<64x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// Two ops on one product are fused before.
#same = affine_map<(i, j) -> (i, j)>
func.func @two(%C: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x64xf32, #gpu.address_space<workgroup>>) outs(%C : memref<64x64xf32>) attrs = {operand_c} {
    ^bb0(%x: f32, %c: f32):
      %y = arith.negf %x : f32
      linalg.yield %y : f32
    }
    // expected-error@+1 {{tc.outline_consumer: expected one elementwise op on the product}}
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x64xf32, #gpu.address_space<workgroup>>) outs(%C : memref<64x64xf32>) attrs = {operand_c} {
    ^bb0(%x: f32, %c: f32):
      %y = arith.addf %x, %c : f32
      linalg.yield %y : f32
    }
    gpu.terminator
  }
  return
}

// -----

// The op reads the product in global memory.
#same = affine_map<(i, j) -> (i, j)>
func.func @global(%D: memref<64x64xf32>, %C: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error@+1 {{tc.outline_consumer: expected an operand that views a tile in shared memory}}
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%D : memref<64x64xf32>) outs(%C : memref<64x64xf32>) attrs = {operand_c} {
    ^bb0(%x: f32, %c: f32):
      %y = arith.negf %x : f32
      linalg.yield %y : f32
    }
    gpu.terminator
  }
  return
}

// -----

// The body takes a number from outside.
#same = affine_map<(i, j) -> (i, j)>
func.func @outside(%n: f32, %C: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    // expected-error@+1 {{tc.outline_consumer: the body captures a value that is not a constant}}
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x64xf32, #gpu.address_space<workgroup>>) outs(%C : memref<64x64xf32>) attrs = {operand_c} {
    ^bb0(%x: f32, %c: f32):
      %y = arith.addf %x, %n : f32
      linalg.yield %y : f32
    }
    gpu.terminator
  }
  return
}
