// Tiles of f32 are loaded in two parts, which kernels in front write to workspaces, and one op multiplies them.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step split_into_tf32 --set block_n=64 --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// A is split as it is; B, whose transpose is copied to a workspace, is split where it is, and the copy goes.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %A: memref<64x32xf32>, %B: memref<32x64xf32>
// CHECK: [[TURNED:%.+]] = memref.transpose %B
// CHECK-NOT: memref.copy
// CHECK: [[WB1:%.+]] = memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NEXT: [[B1:%.+]] = memref.subview [[WB1]][0, 0] [64, 32] [1, 1]
// CHECK-NEXT: [[WB2:%.+]] = memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NEXT: [[B2:%.+]] = memref.subview [[WB2]][0, 0] [64, 32] [1, 1]
// CHECK-NEXT: linalg.generic
// CHECK-SAME: ins([[TURNED]] : memref<64x32xf32, strided<[1, 64]>>) outs([[B1]], [[B2]] :
// CHECK-SAME: attrs = {workspace}
// CHECK: [[SIZE:%.+]] = math.absf [[X:%.+]] : f32
// CHECK: [[UP:%.+]] = arith.select %{{.*}}, %c4096_i32, %c8191_i32 : i32
// CHECK: [[HALF:%.+]] = arith.select %{{.*}}, %c0_i32, [[UP]] : i32
// CHECK: [[KEPT:%.+]] = arith.select %{{.*}}, %c-1082130432_i32, %c-8192_i32 : i32
// CHECK-NEXT: [[BITS:%.+]] = arith.bitcast [[X]] : f32 to i32
// CHECK-NEXT: [[NEAR:%.+]] = arith.addi [[BITS]], [[HALF]] : i32
// CHECK-NEXT: [[CUT:%.+]] = arith.andi [[NEAR]], [[KEPT]] : i32
// CHECK-NEXT: [[LARGE:%.+]] = arith.bitcast [[CUT]] : i32 to f32
// CHECK-NEXT: [[SMALL:%.+]] = arith.subf [[X]], [[LARGE]] : f32
// CHECK-NEXT: linalg.yield [[LARGE]], [[SMALL]] : f32, f32
// CHECK: [[WA1:%.+]] = memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NEXT: [[A1:%.+]] = memref.subview [[WA1]][0, 0] [64, 32] [1, 1]
// CHECK-NEXT: [[WA2:%.+]] = memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NEXT: [[A2:%.+]] = memref.subview [[WA2]][0, 0] [64, 32] [1, 1]
// CHECK-NEXT: linalg.generic
// CHECK-SAME: ins(%A : memref<64x32xf32>) outs([[A1]], [[A2]] :
// CHECK: [[CA1:%.+]] = memref.cast [[A1]] :
// CHECK-NEXT: [[CA2:%.+]] = memref.cast [[A2]] :
// CHECK-NEXT: [[M1:%.+]] = nvgpu.tma.create.descriptor [[CA1]] box[%c64, %c32]
// CHECK-NEXT: [[M2:%.+]] = nvgpu.tma.create.descriptor [[CA2]] box[%c64, %c32]
// CHECK-NEXT: [[CB1:%.+]] = memref.cast [[B1]] :
// CHECK-NEXT: [[CB2:%.+]] = memref.cast [[B2]] :
// CHECK-NEXT: [[M3:%.+]] = nvgpu.tma.create.descriptor [[CB1]]
// CHECK-NEXT: [[M4:%.+]] = nvgpu.tma.create.descriptor [[CB2]]
// CHECK: gpu.launch
// CHECK: [[SA1:%.+]] = memref.alloc() {operand_a}
// CHECK: [[SA2:%.+]] = memref.alloc() {operand_a}
// CHECK: [[SB1:%.+]] = memref.alloc() {operand_b}
// CHECK: [[SB2:%.+]] = memref.alloc() {operand_b}
// CHECK: nvgpu.tma.prefetch.descriptor [[M1]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[M2]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[M3]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[M4]]
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c32768
// CHECK-NEXT: [[BA1:%.+]] = memref.subview [[SA1]]
// CHECK-NEXT: [[BA2:%.+]] = memref.subview [[SA2]]
// CHECK-NEXT: nvgpu.tma.async.load [[M1]][%c0, %c0], {{.*}} to [[BA1]] :
// CHECK-NEXT: nvgpu.tma.async.load [[M2]][%c0, %c0], {{.*}} to [[BA2]] :
// CHECK-NEXT: [[BB1:%.+]] = memref.subview [[SB1]]
// CHECK-NEXT: [[BB2:%.+]] = memref.subview [[SB2]]
// CHECK-NEXT: nvgpu.tma.async.load [[M3]][%c0, %c0], {{.*}} to [[BB1]] :
// CHECK-NEXT: nvgpu.tma.async.load [[M4]][%c0, %c0], {{.*}} to [[BB2]] :
// CHECK: [[TA1:%.+]] = memref.subview [[SA1]]
// CHECK-NEXT: [[TA2:%.+]] = memref.subview [[SA2]]
// CHECK-NEXT: [[TB1:%.+]] = memref.subview [[SB1]]
// CHECK-NEXT: [[TB2:%.+]] = memref.subview [[SB2]]
// CHECK-NEXT: [[SUMS:%.+]] = nvgpu.warpgroup.mma.init.accumulator
// CHECK-NEXT: [[DA1:%.+]] = nvgpu.warpgroup.generate.descriptor [[TA1]], [[M1]]
// CHECK-NEXT: [[DA2:%.+]] = nvgpu.warpgroup.generate.descriptor [[TA2]], [[M2]]
// CHECK-NEXT: [[DB1:%.+]] = nvgpu.warpgroup.generate.descriptor [[TB1]], [[M3]]
// CHECK-NEXT: [[DB2:%.+]] = nvgpu.warpgroup.generate.descriptor [[TB2]], [[M4]]
// CHECK: "tc.warpgroup_mma_3xtf32"([[DA1]], [[DB1]], [[SUMS]], [[DA2]], [[DB2]])
// CHECK-NOT: nvgpu.warpgroup.mma %
// CHECK: // -----
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!stages = memref<1x1x64x32xf32, #gpu.address_space<workgroup>>
!box = memref<64x32xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
!tile = memref<1x64x32xf32, strided<[2048, 32, 1]>, #gpu.address_space<workgroup>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
!desc_a = !nvgpu.warpgroup.descriptor<tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
!desc_b = !nvgpu.warpgroup.descriptor<tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
func.func @both(%A: memref<64x32xf32>, %B: memref<32x64xf32>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c16384 = arith.constant 16384 : index
  %turned = memref.transpose %B (i, j) -> (j, i) : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
  %w = memref.alloc() {workspace} : memref<64x64xf32>
  %v = memref.subview %w[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1]>>
  memref.copy %turned, %v {workspace} : memref<64x32xf32, strided<[1, 64]>> to memref<64x32xf32, strided<[64, 1]>>
  %a_any = memref.cast %A : memref<64x32xf32> to memref<*xf32>
  %a_map = nvgpu.tma.create.descriptor %a_any box[%c64, %c32] : memref<*xf32> -> !map
  %b_any = memref.cast %v : memref<64x32xf32, strided<[64, 1]>> to memref<*xf32>
  %b_map = nvgpu.tma.create.descriptor %b_any box[%c64, %c32] : memref<*xf32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %a = memref.alloc() {operand_a} : !stages
    %b = memref.alloc() {operand_b} : !stages
    %tid = gpu.thread_id x
    %leads = arith.cmpi eq, %tid, %c0 : index
    %full = nvgpu.mbarrier.create -> !group
    scf.if %leads {
      nvgpu.tma.prefetch.descriptor %a_map : !map
      nvgpu.tma.prefetch.descriptor %b_map : !map
    }
    gpu.barrier
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c16384 : !group
      %a_box = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a_box : !map, !group -> !box
      %b_box = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b_box : !map, !group -> !box
    }
    %a_tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile
    %b_tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    %da = nvgpu.warpgroup.generate.descriptor %a_tile, %a_map : !tile, !map -> <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
    %db = nvgpu.warpgroup.generate.descriptor %b_tile, %b_map : !tile, !map -> <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
    %d = nvgpu.warpgroup.mma %da, %db, %zero {waitGroup = 0 : i64} : <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>, <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    %c_tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    nvgpu.warpgroup.mma.store %d, %c_tile : <fragmented = vector<64x64xf32>> to memref<64x64xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

func.func @of_f32(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>)
  return
}
func.func @other_type(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x16xf16, #gpu.address_space<workgroup>>>, %b: !nvgpu.warpgroup.descriptor<tensor = memref<16x64xf16, #gpu.address_space<workgroup>>>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    // expected-error@+1 {{tc.split_into_tf32: expected operands of tf32, not of f16}}
    %d = nvgpu.warpgroup.mma %a, %b, %zero : <tensor = memref<64x16xf16, #gpu.address_space<workgroup>>>, <tensor = memref<16x64xf16, #gpu.address_space<workgroup>>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    gpu.terminator
  }
  return
}

// -----

// A matmul that `convert_to_wgmma` has not converted.
func.func @no_product(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.split_into_tf32: expected one warpgroup MMA, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>)
    gpu.terminator
  }
  return
}
