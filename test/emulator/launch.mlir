// A launch that no GPU takes, or that the kernel is not compiled for, is a finding.
//
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function threads | FileCheck %s --check-prefix=THREADS
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function depth | FileCheck %s --check-prefix=DEPTH
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function shared | FileCheck %s --check-prefix=SHARED
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function known | FileCheck %s --check-prefix=KNOWN
// RUN: %stepladder emulate %s --function unplaced | FileCheck %s --check-prefix=UNPLACED
// RUN: %stepladder emulate %s --function fits | FileCheck %s --check-prefix=FITS

module attributes {gpu.container_module} {
// THREADS: launch.mlir:{{[0-9]+:[0-9]+}}: launch: gpu.launch: a block of 2048 threads; at most 1024
// THREADS: findings: 1
func.func @threads() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c1024 = arith.constant 1024 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1024, %sy = %c2, %sz = %c1) {
    gpu.terminator
  }
  return
}

// DEPTH: launch: gpu.launch: a block of 1 x 1 x 65; accepted: 1 to 64 threads along z
// DEPTH: findings: 1
func.func @depth() {
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c65) {
    gpu.terminator
  }
  return
}

// SHARED: launch: gpu.launch: 233472 bytes of shared memory per block; at most 232448
func.func @shared() {
  %c1 = arith.constant 1 : index
  %bytes = arith.constant 233472 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) dynamic_shared_memory_size %bytes {
    %all = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// Memory that no step has placed yet may be that of others when it is.
// UNPLACED: findings: none
func.func @unplaced() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %stage = memref.alloc() : memref<233472xi8, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

gpu.module @kernels {
  gpu.func @kernel() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// KNOWN: launch: gpu.launch_func: a block of 64 x 1 x 1, and the kernel's known_block_size is 128 x 1 x 1
// KNOWN: findings: 1
func.func @known() {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  return
}

// FITS: findings: none
func.func @fits() {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
  return
}
}
