// A kernel is compared with a reference function of the same file, or with files; a wrong number is a finding.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %stepladder emulate %s --function scale --reference golden --output out --json right.json | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --input-file right.json --check-prefix=WRITTEN
// RUN: %stepladder emulate %s --function scale --expect 1=out/argument1.npy | FileCheck %s --check-prefix=RIGHT
// RIGHT: @scale: {{.*}} findings: none
// WRITTEN: "written_arguments": [
// WRITTEN-NEXT: 1
//
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function forgets --reference golden --sarif wrong.sarif | FileCheck %s --check-prefix=WRONG
// RUN: FileCheck %s --input-file wrong.sarif --check-prefix=SARIF
// WRONG: wrong-result: argument1: 1 of 64 elements are not what is expected within 0.00035; the first is [63]: {{.*}}, expected
// WRONG: @forgets: {{.*}} findings: 1
// SARIF: "version": "2.1.0"
// SARIF: "ruleId": "wrong-result"
// SARIF: "level": "error"
// SARIF: "text": "argument1: 1 of 64
// SARIF: "uri": "{{.*}}reference.mlir"
//
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function forgets --expect 1=out/argument1.npy | FileCheck %s --check-prefix=WRONG
// RUN: %stepladder emulate %s --function scale --inputs out/argument0.npy,out/argument1.npy --expect 1=out/argument1.npy --tolerance 0 | FileCheck %s --check-prefix=RIGHT
//
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %s --function idle --reference golden | FileCheck %s --check-prefix=IDLE
// IDLE: unwritten-output: nothing is written or returned where the reference has result0
// IDLE: note: no argument has changed, and nothing is returned or printed
//
// RUN: %python %inputs/expect_status.py 2 %stepladder emulate %s --function scale --reference other 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: the reference must take the arguments of @scale: @other takes 1 inputs, and 2 were given
// RUN: %python %inputs/expect_status.py 2 %stepladder emulate %s --function scale --reference idle 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: the reference @idle returns nothing and writes none of its arguments
// RUN: %python %inputs/expect_status.py 2 %stepladder emulate %s --function scale --expect out/argument1.npy 2>&1 | FileCheck %s --check-prefix=PAIRS
// PAIRS: error: --expect takes NUMBER=FILE.npy, separated by commas, got 'out/argument1.npy'
// RUN: %python %inputs/expect_status.py 2 %stepladder emulate %s --function scale --expect 7=out/argument1.npy 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: there is no result5 to compare; the function has 2 arguments
// NUMBER-NEXT: note: outputs are numbered from 0: 2 arguments first, then {{[0-9]}} results
// RUN: %python %inputs/expect_status.py 2 %stepladder emulate %s --function scale --tolerance 1 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: --tolerance requires --expect or --reference

func.func @scale(%a: memref<64xf32>, %b: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %two = arith.constant 2.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<64xf32>
    %y = arith.mulf %x, %two : f32
    memref.store %y, %b[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

// One thread is missing.
func.func @forgets(%a: memref<64xf32>, %b: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %two = arith.constant 2.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c63, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<64xf32>
    %y = arith.mulf %x, %two : f32
    memref.store %y, %b[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

func.func @idle(%a: memref<64xf32>, %b: memref<64xf32>) {
  return
}

func.func @golden(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %sum = linalg.add ins(%a, %a : tensor<64xf32>, tensor<64xf32>) outs(%b : tensor<64xf32>) -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

func.func @other(%a: tensor<64xf32>) -> tensor<64xf32> {
  return %a : tensor<64xf32>
}
