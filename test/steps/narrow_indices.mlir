// Index arithmetic whose range is known to be small is done in 32 bits; addresses keep 64.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step narrow_indices --split-input-file | FileCheck %s

// CHECK-LABEL: gpu.func @kernel(
// CHECK-NOT: affine.apply
// CHECK: [[y:%.+]] = arith.index_castui %block_id_y : index to i32
// CHECK: [[x:%.+]] = arith.index_castui %block_id_x : index to i32
// CHECK: [[place:%.+]] = arith.remsi %{{.*}}, %{{.*}} : i32
// CHECK: [[i:%.+]] = arith.index_cast [[place]] : i32 to index
// CHECK: memref.load %A{{\[}}[[i]], %block_id_x]
// CHECK: scf.for [[k:%.+]] = [[x]] to %{{.*}} : i32
// CHECK: [[rest:%.+]] = arith.remui [[k]], %{{.*}} : i32
// CHECK: arith.cmpi ult, [[rest]], [[y]] : i32
// What an argument may be is not known.
// CHECK: arith.remui %n, %{{.*}} : index
// CHECK-NOT: {{affine.apply|: i32}}
#place = affine_map<()[s0, s1] -> ((s0 + s1 * 5) mod 7)>
gpu.module @kernels {
  gpu.func @kernel(%A: memref<64x64xf16>, %B: memref<?xf16>, %n: index) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 5, 9, 1>} {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %c45 = arith.constant 45 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %place = affine.apply #place()[%x, %y]
    %0 = memref.load %A[%place, %x] : memref<64x64xf16>
    scf.for %i = %x to %c45 step %c7 {
      %rest = arith.remui %i, %c7 : index
      %inside = arith.cmpi ult, %rest, %y : index
      scf.if %inside {
        memref.store %0, %A[%rest, %c0] : memref<64x64xf16>
      }
    }
    %far = arith.remui %n, %c45 : index
    memref.store %0, %B[%n] : memref<?xf16>
    memref.store %0, %B[%far] : memref<?xf16>
    gpu.return
  }
}

// -----

// A product below 2^32 is an unsigned number of 32 bits, not a signed one; a smaller one may be both.
//
// CHECK-LABEL: gpu.func @large(
// CHECK: [[offset:%.+]] = arith.muli %{{[^,]*}}, %{{[^ ]*}} : i32
// CHECK: [[far:%.+]] = arith.index_castui [[offset]] : i32 to index
// CHECK: memref.load %A{{\[}}[[far]]]
// CHECK-NOT: overflow
gpu.module @kernels {
  gpu.func @large(%A: memref<4294967296xf16>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 60, 1, 1>} {
    %pitch = arith.constant 67108864 : index
    %x = gpu.block_id x
    %offset = arith.muli %x, %pitch overflow<nsw> : index
    %0 = memref.load %A[%offset] : memref<4294967296xf16>
    memref.store %0, %A[%x] : memref<4294967296xf16>
    gpu.return
  }
}
