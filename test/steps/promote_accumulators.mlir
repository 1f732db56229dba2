// A product of fp8 starts from zero, and f32 additions add it to the accumulator.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step promote_accumulators --set fast_accum=false --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @two_sets(
// CHECK: scf.for %{{.*}} iter_args([[sum:%\w+]] = %{{\w+}})
// CHECK-NEXT: [[zero:%.+]] = nvgpu.warpgroup.mma.init.accumulator
// CHECK-NEXT: [[before:%.+]] = builtin.unrealized_conversion_cast [[sum]]
// CHECK-SAME: to vector<1x16x2x2xf32>
// CHECK-NEXT: [[step:%.+]] = nvgpu.warpgroup.mma %a, %b, [[zero]] {waitGroup = 0 : i64}
// CHECK-NEXT: [[product:%.+]] = builtin.unrealized_conversion_cast [[step]]
// CHECK-NEXT: [[total:%.+]] = arith.addf [[before]], [[product]] : vector<1x16x2x2xf32>
// CHECK-NEXT: [[next:%.+]] = builtin.unrealized_conversion_cast [[total]]
// CHECK-NEXT: scf.yield [[next]]
// CHECK: nvgpu.warpgroup.mma.store
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf8E4M3FN, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<128x128xf8E4M3FN, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
func.func @two_sets(%a: !a, %b: !b, %C: memref<64x128xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
  %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
    %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
    scf.yield %next : !sums
  }
  nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x128xf32, #space>
  return
}

// -----

// A thread has 128 sums of 64 x 256: with 232 registers it holds those of a product of 128 columns beside them.
// CHECK-LABEL: func.func @in_parts(
// CHECK: scf.for %{{.*}} iter_args([[sum:%\w+]] = %{{\w+}})
// CHECK-NEXT: [[zero:%.+]] = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x128xf32>>
// CHECK-NEXT: [[before:%.+]] = builtin.unrealized_conversion_cast [[sum]]
// CHECK-SAME: to vector<1x32x2x2xf32>
// CHECK: [[left:%.+]] = memref.subview %tile[0, 0, 0] [1, 128, 128] [1, 1, 1]
// CHECK: [[left_b:%.+]] = "tc.warpgroup_generate_descriptor"([[left]], %map)
// CHECK: [[left_step:%.+]] = nvgpu.warpgroup.mma %a, [[left_b]], [[zero]] {waitGroup = 0 : i64}
// CHECK: [[left_sums:%.+]] = vector.extract_strided_slice [[before]] {offsets = [0, 0, 0, 0], sizes = [1, 16, 2, 2]
// CHECK: [[left_total:%.+]] = arith.addf [[left_sums]], %{{.*}} : vector<1x16x2x2xf32>
// CHECK: [[half:%.+]] = vector.insert_strided_slice [[left_total]], [[before]] {offsets = [0, 0, 0, 0]
// CHECK: [[right:%.+]] = memref.subview %tile[0, 128, 0] [1, 128, 128] [1, 1, 1]
// CHECK: nvgpu.warpgroup.mma %a, %{{.*}}, [[zero]] {waitGroup = 0 : i64}
// CHECK: vector.extract_strided_slice [[half]] {offsets = [0, 16, 0, 0], sizes = [1, 16, 2, 2]
// CHECK: [[whole:%.+]] = vector.insert_strided_slice %{{.*}}, [[half]] {offsets = [0, 16, 0, 0]
// CHECK-NEXT: [[next:%.+]] = builtin.unrealized_conversion_cast [[whole]]
// CHECK-NEXT: scf.yield [[next]]
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<256x128xf8E4M3FN, 3>, swizzle = swizzle_128b, l2promo = none,
                                   oob = zero, interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf8E4M3FN, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<128x256xf8E4M3FN, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x256xf32>>
func.func @in_parts(%a: !a, %tile: memref<1x256x128xf8E4M3FN, #space>, %map: !map, %C: memref<64x256xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
  %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
    %b = nvgpu.warpgroup.generate.descriptor %tile, %map : memref<1x256x128xf8E4M3FN, #space>, !map -> !b
    %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
    scf.yield %next : !sums
  }
  nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x256xf32, #space>
  return
}

// -----

// The product of a single k step starts from zero as it is; so does that of f16, which has sums of f32.
// CHECK-LABEL: func.func @unchanged(
// CHECK-NOT: arith.addf
// CHECK: nvgpu.warpgroup.mma %a, %b, %{{.*}} {waitGroup = 0 : i64}
// CHECK-NOT: arith.addf
// CHECK: nvgpu.warpgroup.mma %h, %h, %sums :
// CHECK-NOT: arith.addf
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf8E4M3FN, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf8E4M3FN, #space>>
!h = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @unchanged(%a: !a, %b: !b, %h: !h, %sums: !sums, %C: memref<64x64xf32, #space>) {
  %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
  %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
  nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
  %e = nvgpu.warpgroup.mma %h, %h, %sums {waitGroup = 1 : i64} : !h, !h, !sums -> !sums
  nvgpu.warpgroup.mma.store %e, %C : !sums to memref<64x64xf32, #space>
  return
}

// -----

// On sm_89, the sums of each instruction are added.
// CHECK-LABEL: func.func @fragments(
// CHECK: [[zero:%.+]] = arith.constant dense<0.000000e+00> : vector<2x2xf32>
// CHECK: scf.for %{{.*}} iter_args([[sum:%\w+]] = %c)
// CHECK-NEXT: [[step:%.+]] = nvgpu.mma.sync(%a, %b, [[zero]]) {mmaShape = [16, 8, 32]}
// CHECK-NEXT: [[next:%.+]] = arith.addf [[sum]], [[step]] : vector<2x2xf32>
// CHECK-NEXT: scf.yield [[next]]
// CHECK: // -----
func.func @fragments(%a: vector<4x4xf8E4M3FN>, %b: vector<2x4xf8E4M3FN>, %c: vector<2x2xf32>) -> vector<2x2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %c) -> (vector<2x2xf32>) {
    %next = nvgpu.mma.sync(%a, %b, %sum) {mmaShape = [16, 8, 32]}
      : (vector<4x4xf8E4M3FN>, vector<2x4xf8E4M3FN>, vector<2x2xf32>) -> vector<2x2xf32>
    scf.yield %next : vector<2x2xf32>
  }
  return %d : vector<2x2xf32>
}

// -----

#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf8E4M3FN, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf8E4M3FN, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @in_flight(%a: !a, %b: !b, %sums: !sums, %C: memref<64x64xf32, #space>) {
  // expected-error@+1 {{tc.promote_accumulators: expected a product that is complete (waitGroup = 0) before it is added}}
  %d = nvgpu.warpgroup.mma %a, %b, %sums {waitGroup = 1 : i64} : !a, !b, !sums -> !sums
  nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
  return
}

// -----

#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf8E4M3FN, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<128x232xf8E4M3FN, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x232xf32>>
func.func @no_equal_parts(%a: !a, %b: !b, %sums: !sums, %C: memref<64x232xf32, #space>) {
  // expected-error@+1 {{and 232 columns have no equal parts of 32 to 144: take a tile of other sizes, or fast_accum = true}}
  %d = nvgpu.warpgroup.mma %a, %b, %sums {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
  nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x232xf32, #space>
  return
}
