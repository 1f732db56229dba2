// Lanes read four adjacent elements of the product each, behind a barrier, compute the op and store to C.
//
// RUN: %stepladder-opt %payloads/bias_relu.mlir --pipeline wmma --set block_m=64 --set block_n=64 --set warp_m=32 --set warp_n=32 --through map_consumer_to_lanes | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wmma --step map_consumer_to_lanes --split-input-file --verify-diagnostics -o %t

// CHECK-NOT: @consumer
// CHECK: [[tile:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK: vector.transfer_write {{.*}}, [[tile]]
// CHECK: gpu.barrier
// CHECK: affine.for [[i:%.+]] = 0 to 8 {
// CHECK: [[x:%.+]] = vector.load [[tile]]{{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: [[b:%.+]] = vector.load {{.*}} {alignment = 16 : i64} : memref<32xf32, {{.*}}>, vector<4xf32>
// CHECK: [[s:%.+]] = arith.addf [[x]], [[b]] : vector<4xf32>
// CHECK: [[m:%.+]] = arith.maximumf [[s]], %{{.*}} : vector<4xf32>
// CHECK: [[r:%.+]] = arith.truncf [[m]] : vector<4xf32> to vector<4xf16>
// CHECK: vector.store [[r]], {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xf16>
// CHECK-NOT: linalg.generic

func.func private @consumer(%tile: memref<16x16xf32, #gpu.address_space<workgroup>>, %i: index, %j: index, %c: memref<3x16xf32>) -> memref<3x16xf32> attributes {operand_c} {
  %own = memref.subview %tile[%i, %j] [3, 16] [1, 1] : memref<16x16xf32, #gpu.address_space<workgroup>> to memref<3x16xf32, strided<[16, 1], offset: ?>, #gpu.address_space<workgroup>>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%own : memref<3x16xf32, strided<[16, 1], offset: ?>, #gpu.address_space<workgroup>>) outs(%c : memref<3x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %m = math.absf %x : f32
    linalg.yield %m : f32
  }
  return %c : memref<3x16xf32>
}
func.func @uneven(%c: memref<3x16xf32>) {
  %n = arith.constant 1 : index
  %zero = arith.constant 0 : index
  gpu.launch blocks(%0, %1, %2) in (%3 = %n, %4 = %n, %5 = %n) threads(%6, %7, %8) in (%9 = %n, %10 = %n, %11 = %n) {
    %tile = memref.alloc() {operand_c} : memref<16x16xf32, #gpu.address_space<workgroup>>
    // expected-error@+1 {{tc.map_consumer_to_lanes: a tile of 3 x 16 cannot be divided evenly among lanes in vectors of 4}}
    %r = func.call @consumer(%tile, %zero, %zero, %c) {operand_c} : (memref<16x16xf32, #gpu.address_space<workgroup>>, index, index, memref<3x16xf32>) -> memref<3x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Three vectors a row: lanes of one row are no power of two.
func.func private @consumer(%tile: memref<32x12xf32, #gpu.address_space<workgroup>>, %i: index, %j: index, %c: memref<32x12xf32>, %w: memref<32x12xf32>) -> (memref<32x12xf32>, memref<32x12xf32>) attributes {operand_c} {
  %own = memref.subview %tile[%i, %j] [32, 12] [1, 1] : memref<32x12xf32, #gpu.address_space<workgroup>> to memref<32x12xf32, strided<[12, 1], offset: ?>, #gpu.address_space<workgroup>>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%own : memref<32x12xf32, strided<[12, 1], offset: ?>, #gpu.address_space<workgroup>>) outs(%c, %w : memref<32x12xf32>, memref<32x12xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %m = math.absf %x : f32
    linalg.yield %m, %x : f32, f32
  }
  return %c, %w : memref<32x12xf32>, memref<32x12xf32>
}
func.func private @reduction(%w: memref<32x12xf32>, %r: memref<32xf32>) {
  linalg.map outs(%r : memref<32xf32>) (%i: f32) {
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  }
  linalg.reduce ins(%w : memref<32x12xf32>) outs(%r : memref<32xf32>) dimensions = [1] (%x: f32, %y: f32) {
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  return
}
func.func @three_vectors(%c: memref<32x12xf32>, %r: memref<32xf32>) {
  %n = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %w = memref.alloc() {workspace} : memref<32x12xf32>
  gpu.launch blocks(%0, %1, %2) in (%3 = %n, %4 = %n, %5 = %n) threads(%6, %7, %8) in (%9 = %n, %10 = %n, %11 = %n) {
    %tile = memref.alloc() {operand_c} : memref<32x12xf32, #gpu.address_space<workgroup>>
    // expected-error@+1 {{tc.map_consumer_to_lanes: rows of 12 elements cannot be divided evenly among lanes in vectors of 4}}
    %q:2 = func.call @consumer(%tile, %zero, %zero, %c, %w) {operand_c} : (memref<32x12xf32, #gpu.address_space<workgroup>>, index, index, memref<32x12xf32>, memref<32x12xf32>) -> (memref<32x12xf32>, memref<32x12xf32>)
    gpu.terminator
  }
  func.call @reduction(%w, %r) {reduces} : (memref<32x12xf32>, memref<32xf32>) -> ()
  return
}
