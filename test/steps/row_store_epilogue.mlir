// Warps store whole rows of C, which begin at any element, in units of 16 bytes that are aligned in C.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --set epilogue=rows --step row_store_epilogue --split-input-file
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s
// RUN: %{opt} %s --verify-diagnostics --set consumer_warpgroups=1 | FileCheck %s --check-prefix=ONE

// A buffer of 64 rows for each of two warpgroups, 32 columns and 8 more. The first row of C in eight begins at a unit,
// the others 1 to 7 elements before one: of their 32 columns, three units and eight single elements.
// CHECK-DAG: #[[to_warp_row:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16)>
// CHECK-DAG: #[[in_four:.+]] = affine_map<()[s0] -> (((s0 mod 32) floordiv 4) * 8)>
// CHECK-DAG: #[[in_three:.+]] = affine_map<()[s0] -> (((s0 mod 32) floordiv 3) * 8)>
// ONE: memref.alloc() {operand_c} : memref<1x64x40xbf16, #gpu.address_space<workgroup>>
// CHECK-LABEL: func.func @rounded(
// CHECK: memref.alloc() {operand_c} : memref<2x64x40xbf16, #gpu.address_space<workgroup>>
// CHECK-NOT: {{memref.alloc|linalg|warpgroup_mma_store|nvvm.barrier}}
// CHECK: [[c:%.+]] = memref.subview %C
// CHECK: [[lane:%.+]] = affine.apply
// CHECK-NEXT: [[warp_row:%.+]] = affine.apply #[[to_warp_row]]()
// CHECK: [[buffer:%.+]] = memref.subview %alloc
// CHECK: [[first_row:%.+]] = arith.addi %{{.*}}, [[warp_row]]
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK-COUNT-2: nvvm.stmatrix
// CHECK-NOT: nvvm.stmatrix
// CHECK: nvvm.bar.warp.sync
// The first and the ninth of the warp's rows, four units each.
// CHECK-NEXT: [[exists:%.+]] = arith.cmpi ult, [[lane]], %c8
// CHECK-NEXT: scf.if [[exists]] {
// CHECK-NEXT: [[row:%.+]] = affine.apply #[[in_four]]()
// CHECK-NEXT: [[column:%.+]] = affine.apply
// CHECK-NEXT: [[held_row:%.+]] = arith.addi [[warp_row]], [[row]]
// CHECK-NEXT: [[held:%.+]] = memref.subview [[buffer]]{{\[}}[[held_row]], [[column]]] [8, 8]
// CHECK-NEXT: [[own_row:%.+]] = arith.addi [[first_row]], [[row]]
// CHECK-NEXT: [[own:%.+]] = memref.subview [[c]]{{\[}}[[own_row]], [[column]]] [8, 8]
// CHECK-NEXT: [[unit:%.+]] = vector.load [[held]][%c0, %c0] {alignment = 16 : i64}
// CHECK-NEXT: vector.store [[unit]], [[own]][%c0, %c0] {alignment = 16 : i64}
// CHECK-NEXT: }
// Seven rows behind each of these, three units each, shifted.
// CHECK-NEXT: [[exists:%.+]] = arith.cmpi ult, [[lane]], %c6
// CHECK-NEXT: scf.if [[exists]] {
// CHECK-NEXT: affine.apply #[[in_three]]()
// CHECK: [[held:%.+]] = memref.subview [[buffer]]
// CHECK: [[own:%.+]] = memref.subview [[c]]
// CHECK-NEXT: [[left:%.+]] = vector.load [[held]][%c1, %c0] {alignment = 16 : i64}
// CHECK-NEXT: [[right:%.+]] = vector.load [[held]][%c1, %c8] {alignment = 16 : i64}
// CHECK-NEXT: [[unit:%.+]] = vector.shuffle [[left]], [[right]] [1, 2, 3, 4, 5, 6, 7, 8]
// CHECK-NEXT: vector.store [[unit]], [[own]][%c1, %c1] {alignment = 16 : i64}
// CHECK-COUNT-6: vector.store %{{.*}}, [[own]][
// The single elements of four rows at a time; the first of eight has none.
// CHECK: arith.select
// CHECK-NEXT: [[has_some:%.+]] = arith.cmpi ugt, %{{.*}}, %c0
// CHECK-NEXT: scf.if [[has_some]] {
// CHECK: [[one:%.+]] = memref.load [[buffer]][
// CHECK: memref.store [[one]], [[c]][
// CHECK-COUNT-3: memref.store %{{.*}}, [[c]][
// CHECK-NOT: {{memref.store|scf.for}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#own_view = strided<[32, 1], offset: ?>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x32xf32>>
func.func @rounded(%C: memref<512x39xbf16>, %own: index) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<128x32xf32, #space>
    %i = affine.apply affine_map<()[s0] -> (s0 * 128)>()[%bx]
    %own_row = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%own]
    %c = memref.subview %C[%i, 0] [128, 32] [1, 1] : memref<512x39xbf16> to memref<128x32xbf16, strided<[39, 1], offset: ?>>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %own_rows = memref.subview %tile[%own_row, 0] [64, 32] [1, 1]
        : memref<128x32xf32, #space> to memref<64x32xf32, #own_view, #space>
    "tc.warpgroup_mma_store"(%sums, %own_rows) : (!sums, memref<64x32xf32, #own_view, #space>) -> ()
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<128x32xf32, #space>) outs(%c : memref<128x32xbf16, strided<[39, 1], offset: ?>>) {
    ^bb0(%sum: f32, %old: bf16):
      %rounded = arith.truncf %sum : f32 to bf16
      linalg.yield %rounded : bf16
    }
    gpu.terminator
  }
  return
}

// -----

// Rows of 34 x f32 are 8 bytes more than units: every other one begins in the middle of one. C is read in units as well.
// CHECK-LABEL: func.func @added(
// CHECK: memref.alloc() {operand_c} : memref<2x64x40xf32, #gpu.address_space<workgroup>>
// CHECK: vector.store %{{.*}} {alignment = 8 : i64} : memref<64x40xf32, {{.*}}>, vector<2xf32>
// CHECK: [[sums:%.+]] = vector.load %{{.*}} {alignment = 16 : i64}
// CHECK-NEXT: [[old:%.+]] = vector.load [[own:%.+]][%c0, %c0] {alignment = 16 : i64} : memref<2x4xf32, {{.*}}>, vector<4xf32>
// CHECK-NEXT: [[new:%.+]] = arith.addf [[old]], [[sums]] : vector<4xf32>
// CHECK-NEXT: vector.store [[new]], [[own]][%c0, %c0] {alignment = 16 : i64}
// CHECK: vector.shuffle %{{.*}} [2, 3, 4, 5] : vector<4xf32>, vector<4xf32>
// CHECK: [[old:%.+]] = memref.load [[c:%.+]][{{.*}} : memref<64x32xf32, strided<[34, 1]>>
// CHECK-NEXT: [[new:%.+]] = arith.addf [[old]], %{{.*}} : f32
// CHECK-NEXT: memref.store [[new]], [[c]][
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#pitched = strided<[34, 1]>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x32xf32>>
func.func @added(%C: memref<64x34xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    %c = memref.subview %C[0, 0] [64, 32] [1, 1] : memref<64x34xf32> to memref<64x32xf32, #pitched>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x32xf32, #space>
    linalg.add ins(%tile, %c : memref<64x32xf32, #space>, memref<64x32xf32, #pitched>)
        outs(%c : memref<64x32xf32, #pitched>)
    gpu.terminator
  }
  return
}

// -----

// A tile that reaches beyond C: rows are stored element by element, side by side.
// CHECK-LABEL: func.func @beyond(
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: scf.for [[row:%.+]] = %c0 to %c16 step %c1 {
// CHECK-NEXT: [[inside:%.+]] = arith.cmpi ult, [[lane:%.+]], %c30
// CHECK-NEXT: scf.if [[inside]] {
// CHECK: [[one:%.+]] = memref.load %{{.*}}[%{{.*}}, [[lane]]]
// CHECK: memref.store [[one]], %C[%{{.*}}, [[lane]]] : memref<64x30xf32>
// CHECK-NOT: {{vector.load|memref.store}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x32xf32>>
func.func @beyond(%C: memref<64x30xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x32xf32, #space>
    %inside = memref.subview %tile[0, 0] [64, 30] [1, 1]
        : memref<64x32xf32, #space> to memref<64x30xf32, strided<[32, 1]>, #space>
    linalg.copy ins(%inside : memref<64x30xf32, strided<[32, 1]>, #space>) outs(%C : memref<64x30xf32>)
    gpu.terminator
  }
  return
}

// -----

// Refused.

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @anywhere(%C: memref<512x9xf32>, %i: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %c = memref.subview %C[%i, 0] [64, 8] [1, 1] : memref<512x9xf32> to memref<64x8xf32, strided<[9, 1], offset: ?>>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    // expected-error@+1 {{tc.row_store_epilogue: tiles of C must begin at multiples of 4 rows and columns}}
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%c : memref<64x8xf32, strided<[9, 1], offset: ?>>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @batch(%C: memref<2x63x9xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %c = memref.subview %C[%bz, 0, 0] [1, 63, 8] [1, 1, 1]
        : memref<2x63x9xf32> to memref<63x8xf32, strided<[9, 1], offset: ?>>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %inside = memref.subview %tile[0, 0] [63, 8] [1, 1] : memref<64x8xf32, #space> to memref<63x8xf32, strided<[8, 1]>, #space>
    // expected-error@+1 {{tc.row_store_epilogue: matrices of a batch are 567 elements apart; rows are stored in units of 4}}
    linalg.copy ins(%inside : memref<63x8xf32, strided<[8, 1]>, #space>) outs(%c : memref<63x8xf32, strided<[9, 1], offset: ?>>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @transposed(%C: memref<8x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %c = memref.transpose %C (i, j) -> (j, i) : memref<8x64xf32> to memref<64x8xf32, strided<[1, 64]>>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    // expected-error@+1 {{tc.row_store_epilogue: rows are stored to a C that is not transposed}}
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%c : memref<64x8xf32, strided<[1, 64]>>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @own_rows_anywhere(%C: memref<128x8xf32>, %own: index) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<128x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %own_rows = memref.subview %tile[%own, 0] [64, 8] [1, 1]
        : memref<128x8xf32, #space> to memref<64x8xf32, strided<[8, 1], offset: ?>, #space>
    "tc.warpgroup_mma_store"(%sums, %own_rows) : (!sums, memref<64x8xf32, strided<[8, 1], offset: ?>, #space>) -> ()
    // expected-error@+1 {{tc.row_store_epilogue: rows of a warpgroup must begin at multiples of 64}}
    linalg.copy ins(%tile : memref<128x8xf32, #space>) outs(%C : memref<128x8xf32>)
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.row_store_epilogue: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
