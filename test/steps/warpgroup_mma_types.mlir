// The op that makes warpgroup MMAs names the types that wgmma multiplies, in pipelines without the requirements of
// `convert_to_wgmma` too.
//
// RUN: %stepladder-opt %s --pipeline %inputs/own/warpgroup_mma.mlir --step step --split-input-file --verify-diagnostics

#space = #gpu.address_space<workgroup>
func.func @two_types(%A: memref<128x64xf16>, %B: memref<64x64xbf16>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xbf16>) outs(%shared_b : memref<64x64xbf16, #space>)
    // expected-error@+1 {{wgmma does not multiply f16 by bf16: expected two operands of one}}
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xbf16, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @f64_sums_of_bf16(%A: memref<128x64xbf16>, %B: memref<64x64xbf16>, %C: memref<128x64xf64>) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf64, #space>
    linalg.fill ins(%zero : f64) outs(%sums : memref<128x64xf64, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xbf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xbf16>) outs(%shared_a : memref<128x64xbf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xbf16>) outs(%shared_b : memref<64x64xbf16, #space>)
    // expected-error@+1 {{wgmma accumulates products of bf16 in f32, not in f64}}
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xbf16, #space>, memref<64x64xbf16, #space>)
        outs(%sums : memref<128x64xf64, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf64, #space>) outs(%C : memref<128x64xf64>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @f64_sums_of_f16(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf64>) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf64, #space>
    linalg.fill ins(%zero : f64) outs(%sums : memref<128x64xf64, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    // expected-error@+1 {{wgmma accumulates products of f16 in f32 or f16, not in f64}}
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<128x64xf64, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf64, #space>) outs(%C : memref<128x64xf64>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @sums_in_bf16(%A: memref<128x64xbf16>, %B: memref<64x64xbf16>, %C: memref<128x64xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xbf16, #space>
    linalg.fill ins(%zero : bf16) outs(%sums : memref<128x64xbf16, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xbf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xbf16>) outs(%shared_a : memref<128x64xbf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xbf16>) outs(%shared_b : memref<64x64xbf16, #space>)
    // expected-error@+1 {{wgmma accumulates products of bf16 in f32, not in bf16}}
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xbf16, #space>, memref<64x64xbf16, #space>)
        outs(%sums : memref<128x64xbf16, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xbf16, #space>) outs(%C : memref<128x64xbf16>)
    gpu.terminator
  }
  return
}
