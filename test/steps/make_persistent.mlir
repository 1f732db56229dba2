// Blocks that stay: as many as asked for, or as many as tiles if those are fewer, each with a loop over the tiles.
// Shared tiles are allocated once, in front of the loop.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step make_persistent --split-input-file
// RUN: %{opt} %s --set persistent_blocks=6 --verify-diagnostics | FileCheck %s
// RUN: sed '/^\/\/ Refused/Q' %s | %{opt} - --set persistent_blocks=0 | FileCheck %s --check-prefix=ZERO

// Eight tiles in rows of four, on six blocks.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// CHECK-LABEL: func.func @tiles(
// CHECK: gpu.launch blocks({{[^)]*}}) in (%{{[^)]*}} = %c6, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-SAME: threads({{[^)]*}}) in (%{{[^)]*}} = %c128,
// CHECK-NEXT: [[shared:%.+]] = memref.alloc()
// CHECK-NEXT: [[block:%.+]] = gpu.block_id x
// CHECK-NEXT: scf.for [[tile:%.+]] = [[block]] to %c8 step %c6 {
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[tile]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[tile]]]
// CHECK: [[value:%.+]] = memref.load %A{{\[}}[[i]], [[j]]]
// CHECK-NEXT: memref.store [[value]], [[shared]][%c0]
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK-NEXT: memref.load [[shared]]
// CHECK-NEXT: memref.store %{{.*}}, %B{{\[}}[[i]], [[j]]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: gpu.terminator
// CHECK: // -----

// ZERO-LABEL: func.func @tiles(
// ZERO: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c2, %{{.*}} = %c1)
// ZERO-NEXT: [[x:%.+]] = gpu.block_id x
// ZERO-NEXT: [[y:%.+]] = gpu.block_id y
// ZERO-NEXT: memref.alloc()
// ZERO-NEXT: memref.load %A{{\[}}[[y]], [[x]]]
// ZERO: // -----
#space = #gpu.address_space<workgroup>
func.func @tiles(%A: memref<2x4xf16>, %B: memref<2x4xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %shared = memref.alloc() {operand_a} : memref<1xf16, #space>
    %value = memref.load %A[%y, %x] : memref<2x4xf16>
    memref.store %value, %shared[%c0] : memref<1xf16, #space>
    scf.for %k = %c0 to %c4 step %c1 {
      %staged = memref.load %shared[%c0] : memref<1xf16, #space>
      memref.store %staged, %B[%y, %x] : memref<2x4xf16>
    }
    gpu.terminator
  }
  return
}

// -----

// Fewer tiles than blocks, in one row: a block for each, which takes one.
// CHECK-LABEL: func.func @few_tiles(
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: scf.for {{.*}} to %c4 step %c4
// CHECK: // -----
func.func @few_tiles(%x: f16, %A: memref<4xf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %j = gpu.block_id x
    memref.store %x, %A[%j] : memref<4xf16>
    gpu.terminator
  }
  return
}

// -----

// A batch of three matmuls of 2 x 4 tiles: all tiles of a matmul come before those of the next.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) mod 2)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// CHECK-DAG: #[[matmul:.+]] = affine_map<()[s0] -> (s0 floordiv 8)>
// CHECK-LABEL: func.func @batch(
// CHECK: scf.for [[tile:%.+]] = %{{.*}} to %c24 step %c6
// CHECK-DAG: [[b:%.+]] = affine.apply #[[matmul]]()[[[tile]]]
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[tile]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[tile]]]
// CHECK: memref.store %x, %A{{\[}}[[b]], [[i]], [[j]]]
func.func @batch(%x: f16, %A: memref<3x2x4xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c2, %gz = %c3)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %column = gpu.block_id x
    %row = gpu.block_id y
    %matmul = gpu.block_id z
    memref.store %x, %A[%matmul, %row, %column] : memref<3x2x4xf16>
    gpu.terminator
  }
  return
}

// -----

// Six blocks are one cluster of four, which takes one of the four groups of tiles after the other; a block keeps its
// place in the cluster.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (s0 floordiv 2)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 mod 2)>
// CHECK-LABEL: func.func @clusters(
// CHECK: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK: [[cluster:%.+]] = gpu.cluster_id x
// CHECK-NEXT: scf.for [[group:%.+]] = [[cluster]] to %c4 step %c1
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[group]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[group]]]
// CHECK: [[rank:%.+]] = gpu.cluster_block_id x
// CHECK: memref.store %x, %A{{\[}}[[i]], [[j]], [[rank]]]
func.func @clusters(%x: f16, %A: memref<2x2x4xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c4, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %column = gpu.cluster_id x
    %row = gpu.cluster_id y
    %rank = gpu.cluster_block_id x
    memref.store %x, %A[%row, %column, %rank] : memref<2x2x4xf16>
    gpu.terminator
  }
  return
}

// Refused below.
// -----

func.func @large_cluster() {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{blocks = 6, and a cluster has 8: take 8 or more, or 0 for one block per tile}}
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c8, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// As many blocks as a cluster has are accepted.
func.func @one_cluster() {
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c6, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c6, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

func.func @grid_from_argument(%n: index) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.make_persistent: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.make_persistent: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
