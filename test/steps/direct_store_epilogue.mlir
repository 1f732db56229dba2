// Each thread writes the sums that it holds, pair by pair: no shared memory and no barrier. Only where tiles reach
// beyond C are rows and columns compared with its edges.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set epilogue=registers --step direct_store_epilogue --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// Row of a thread: 16 a warp, and lane / 4; column: twice lane mod 4. Rows 8 below and the next 8 columns follow.
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0] -> (s0 * 2 - (s0 floordiv 4) * 8)>
// CHECK-LABEL: func.func @copied(
// CHECK-NOT: {{memref.alloc|linalg|warpgroup.mma.store|barrier|cmpi}}
// CHECK: [[C:%.+]] = memref.subview %C[%i, %j] [128, 16] [1, 1]
// CHECK: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} to vector<1x2x2x2xf32>
// CHECK: [[in_own:%.+]] = affine.apply #[[to_row]]()[[[thread:%.+]]]
// CHECK-NEXT: [[row:%.+]] = arith.addi %own, [[in_own]]
// CHECK-NEXT: [[column:%.+]] = affine.apply #[[to_column]]()[[[thread]]]
// CHECK-NEXT: [[next:%.+]] = arith.addi [[column]], %c8
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 0, 0] : vector<2xf32>
// CHECK-NEXT: vector.store [[pair]], [[C]]{{\[}}[[row]], [[column]]] {alignment = 8 : i64}
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 1, 0]
// CHECK-NEXT: vector.store [[pair]], [[C]]{{\[}}[[row]], [[next]]] {alignment = 8 : i64}
// CHECK-NEXT: [[below:%.+]] = arith.addi [[row]], %c8
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 0, 1]
// CHECK-NEXT: vector.store [[pair]], [[C]]{{\[}}[[below]], [[column]]] {alignment = 8 : i64}
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 1, 1]
// CHECK-NEXT: vector.store [[pair]], [[C]]{{\[}}[[below]], [[next]]] {alignment = 8 : i64}
// CHECK-NEXT: gpu.terminator
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[64, 1], offset: ?>
#own_view = strided<[16, 1], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x16xf32>>
func.func @copied(%C: memref<512x64xf32>, %i: index, %j: index, %own: index) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<128x16xf32, #space>
    %c = memref.subview %C[%i, %j] [128, 16] [1, 1] : memref<512x64xf32> to memref<128x16xf32, #c_view>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %own_rows = memref.subview %tile[%own, 0] [64, 16] [1, 1]
        : memref<128x16xf32, #space> to memref<64x16xf32, #own_view, #space>
    "tc.warpgroup_mma_store"(%sums, %own_rows) : (!sums, memref<64x16xf32, #own_view, #space>) -> ()
    linalg.copy ins(%tile : memref<128x16xf32, #space>) outs(%c : memref<128x16xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

// CHECK-LABEL: func.func @added(
// CHECK: [[pair:%.+]] = vector.extract
// CHECK-NEXT: [[old:%.+]] = vector.load %C{{\[}}[[i:%.+]], [[j:%.+]]] {alignment = 8 : i64}
// CHECK-NEXT: [[new:%.+]] = arith.addf [[old]], [[pair]] : vector<2xf32>
// CHECK-NEXT: vector.store [[new]], %C{{\[}}[[i]], [[j]]] {alignment = 8 : i64}
// CHECK: vector.store
// CHECK-NOT: {{vector.store|linalg}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @added(%C: memref<64x8xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.add ins(%tile, %C : memref<64x8xf32, #space>, memref<64x8xf32>) outs(%C : memref<64x8xf32>)
    gpu.terminator
  }
  return
}

// -----

// CHECK-LABEL: func.func @rounded(
// CHECK: [[pair:%.+]] = vector.extract %{{.*}}[0, 0, 0] : vector<2xf32> from vector<1x1x2x2xf32>
// CHECK-NEXT: [[rounded:%.+]] = arith.truncf [[pair]] : vector<2xf32> to vector<2xbf16>
// CHECK-NEXT: vector.store [[rounded]], %C[{{.*}} {alignment = 4 : i64} : memref<64x8xbf16>, vector<2xbf16>
// CHECK: vector.store
// CHECK-NOT: {{vector.store|linalg}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @rounded(%C: memref<64x8xbf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xbf16>) {
    ^bb0(%sum: f32, %old: bf16):
      %rounded = arith.truncf %sum : f32 to bf16
      linalg.yield %rounded : bf16
    }
    gpu.terminator
  }
  return
}

// -----

// Sums of f16 stay what they are. 128 rows of a warpgroup are two times 64.
// CHECK-LABEL: func.func @tall_f16(
// CHECK: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} to vector<2x1x2x2xf16>
// CHECK: vector.extract [[held]][0, 0, 0]
// CHECK-NEXT: vector.store {{.*}} {alignment = 4 : i64}
// CHECK: vector.extract [[held]][0, 0, 1]
// CHECK: arith.addi %{{.*}}, %c64
// CHECK-NEXT: vector.extract [[held]][1, 0, 0]
// CHECK: arith.addi %{{.*}}, %c72
// CHECK-NEXT: vector.extract [[held]][1, 0, 1]
// CHECK-NOT: {{vector.extract|arith.truncf|linalg}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x8xf16>>
func.func @tall_f16(%C: memref<128x8xf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<128x8xf16, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    "tc.warpgroup_mma_store"(%sums, %tile) : (!sums, memref<128x8xf16, #space>) -> ()
    linalg.copy ins(%tile : memref<128x8xf16, #space>) outs(%C : memref<128x8xf16>)
    gpu.terminator
  }
  return
}

// -----

// At the edges, each row and each pair is compared with what there is of C.
// CHECK-LABEL: func.func @edges(
// CHECK: [[inside:%.+]] = arith.cmpi ult, [[row:%.+]], %rows
// CHECK-NEXT: scf.if [[inside]] {
// CHECK-NEXT: [[in_row:%.+]] = arith.cmpi ult, [[column:%.+]], %columns
// CHECK-NEXT: scf.if [[in_row]] {
// CHECK-NEXT: [[pair:%.+]] = vector.extract
// CHECK-NEXT: vector.store [[pair]], %{{.*}}{{\[}}[[row]], [[column]]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: [[below:%.+]] = arith.addi [[row]], %c8
// CHECK-NEXT: [[inside:%.+]] = arith.cmpi ult, [[below]], %rows
// CHECK-NEXT: scf.if [[inside]] {
// CHECK: vector.store
// CHECK-NOT: {{vector.store|linalg}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[100, 1], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @edges(%C: memref<100x100xf32>, %i: index, %j: index, %rows: index, %columns: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %c = memref.subview %C[%i, %j] [%rows, %columns] [1, 1] : memref<100x100xf32> to memref<?x?xf32, #c_view>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %inside = memref.subview %tile[0, 0] [%rows, %columns] [1, 1]
        : memref<64x8xf32, #space> to memref<?x?xf32, strided<[8, 1]>, #space>
    linalg.copy ins(%inside : memref<?x?xf32, strided<[8, 1]>, #space>) outs(%c : memref<?x?xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

// Whole in columns, and a number of rows that is known: 60 of 64.
// CHECK-LABEL: func.func @sixty_rows(
// CHECK-COUNT-2: arith.cmpi ult, %{{.*}}, %c60
// CHECK-NOT: arith.cmpi
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @sixty_rows(%C: memref<60x8xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %inside = memref.subview %tile[0, 0] [60, 8] [1, 1]
        : memref<64x8xf32, #space> to memref<60x8xf32, strided<[8, 1]>, #space>
    linalg.copy ins(%inside : memref<60x8xf32, strided<[8, 1]>, #space>) outs(%C : memref<60x8xf32>)
    gpu.terminator
  }
  return
}

// -----

// Odd rows of C: a pair is not aligned in every second row, and the last one reaches into the next row. One by one.
// CHECK-LABEL: func.func @odd_rows(
// CHECK-NOT: vector.store
// CHECK: [[inside:%.+]] = arith.cmpi ult, [[column:%.+]], %columns : index
// CHECK-NEXT: scf.if [[inside]] {
// CHECK-NEXT: [[sum:%.+]] = vector.extract %{{.*}}[0, 0, 0, 0] : f32 from vector<1x1x2x2xf32>
// CHECK-NEXT: [[old:%.+]] = memref.load %{{.*}}[[[row:%.+]], [[column]]]
// CHECK-NEXT: [[new:%.+]] = arith.addf [[old]], [[sum]] : f32
// CHECK-NEXT: memref.store [[new]], %{{.*}}{{\[}}[[row]], [[column]]]
// CHECK-NEXT: }
// CHECK-NEXT: [[next:%.+]] = arith.addi [[column]], %c1
// CHECK-NEXT: [[inside:%.+]] = arith.cmpi ult, [[next]], %columns : index
// CHECK-NEXT: scf.if [[inside]] {
// CHECK-NEXT: vector.extract %{{.*}}[0, 0, 0, 1] : f32 from vector<1x1x2x2xf32>
// CHECK: memref.store %{{.*}}{{\[}}[[row]], [[next]]]
// CHECK-COUNT-2: memref.store
// CHECK-NOT: {{vector.store|memref.store|linalg}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[77, 1], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @odd_rows(%C: memref<64x77xf32>, %j: index, %columns: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %c = memref.subview %C[0, %j] [64, %columns] [1, 1] : memref<64x77xf32> to memref<64x?xf32, #c_view>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %inside = memref.subview %tile[0, 0] [64, %columns] [1, 1]
        : memref<64x8xf32, #space> to memref<64x?xf32, strided<[8, 1]>, #space>
    linalg.add ins(%inside, %c : memref<64x?xf32, strided<[8, 1]>, #space>, memref<64x?xf32, #c_view>)
        outs(%c : memref<64x?xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

// Where a tile is wanted as threads hold it: what one holds of two matrices beside each other, for 32 threads in a row.
// A warp's 16 rows of 32 columns are 128 vectors.
// CHECK-DAG: #[[to_vector:.+]] = affine_map<()[s0] -> (s0 + ((s0 mod 128) floordiv 32) * 128 - (s0 floordiv 32) * 32)>
// CHECK-LABEL: func.func @fragment_order(
// CHECK-NOT: {{linalg|memref.alloc|expand_shape}}
// CHECK: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} to vector<1x4x2x2xf32>
// CHECK: [[first:%.+]] = affine.apply #[[to_vector]]()[%{{.*}}]
// CHECK-NEXT: [[left:%.+]] = vector.extract [[held]][0, 0, 0]
// CHECK-NEXT: [[right:%.+]] = vector.extract [[held]][0, 1, 0]
// CHECK-NEXT: [[both:%.+]] = vector.shuffle [[left]], [[right]] [0, 1, 2, 3]
// CHECK-NEXT: vector.store [[both]], %vectors{{\[}}[[first]], %c0] {alignment = 16 : i64}
// CHECK-NEXT: vector.extract [[held]][0, 2, 0]
// CHECK-NEXT: vector.extract [[held]][0, 3, 0]
// CHECK-NEXT: vector.shuffle
// CHECK-NEXT: [[beside:%.+]] = arith.addi [[first]], %c32
// CHECK-NEXT: vector.store %{{.*}}, %vectors{{\[}}[[beside]], %c0]
// CHECK-NEXT: vector.extract [[held]][0, 0, 1]
// CHECK: [[below:%.+]] = arith.addi [[first]], %c64
// CHECK-NEXT: vector.store %{{.*}}, %vectors{{\[}}[[below]], %c0]
// CHECK: vector.store
// CHECK-NOT: {{vector.store|linalg|expand_shape}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x32xf32>>
func.func @fragment_order(%vectors: memref<512x4xf32, #gpu.address_space<global>>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x32xf32, #space>
    %held = memref.expand_shape %tile [[0, 1, 2], [3, 4, 5, 6]] output_shape [4, 2, 8, 2, 2, 4, 2]
        : memref<64x32xf32, #space> into memref<4x2x8x2x2x4x2xf32, #space>
    %wanted = memref.expand_shape %vectors [[0, 1, 2, 3, 4], [5, 6]] output_shape [4, 2, 2, 8, 4, 2, 2]
        : memref<512x4xf32, #gpu.address_space<global>> into memref<4x2x2x8x4x2x2xf32, #gpu.address_space<global>>
    linalg.transpose ins(%held : memref<4x2x8x2x2x4x2xf32, #space>)
        outs(%wanted : memref<4x2x2x8x4x2x2xf32, #gpu.address_space<global>>) permutation = [0, 1, 3, 2, 5, 4, 6]
    gpu.terminator
  }
  return
}

// -----

// Or in register order: a row of memory for each matrix, of both halves, four elements for each thread.
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0] -> (s0 * 4)>
// CHECK-LABEL: func.func @register_order(
// CHECK-NOT: {{linalg|memref.alloc|expand_shape}}
// CHECK: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} to vector<1x2x2x2xf32>
// CHECK: [[column:%.+]] = affine.apply #[[to_column]]()[%{{.*}}]
// CHECK-NEXT: [[upper:%.+]] = vector.extract [[held]][0, 0, 0]
// CHECK-NEXT: [[lower:%.+]] = vector.extract [[held]][0, 0, 1]
// CHECK-NEXT: [[both:%.+]] = vector.shuffle [[upper]], [[lower]] [0, 1, 2, 3]
// CHECK-NEXT: vector.store [[both]], %slots[%c0, [[column]]] {alignment = 16 : i64}
// CHECK-NEXT: vector.extract [[held]][0, 1, 0]
// CHECK-NEXT: vector.extract [[held]][0, 1, 1]
// CHECK-NEXT: [[both:%.+]] = vector.shuffle
// CHECK-NEXT: vector.store [[both]], %slots[%c1, [[column]]] {alignment = 16 : i64}
// CHECK-NOT: {{vector.store|linalg|expand_shape}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x16xf32>>
func.func @register_order(%slots: memref<2x512xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x16xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x16xf32, #space>
    %held = memref.expand_shape %tile [[0, 1, 2, 3, 4], [5, 6, 7]] output_shape [1, 1, 4, 2, 8, 2, 4, 2]
        : memref<64x16xf32, #space> into memref<1x1x4x2x8x2x4x2xf32, #space>
    %wanted = memref.expand_shape %slots [[0, 1], [2, 3, 4, 5, 6, 7]] output_shape [1, 2, 1, 4, 8, 4, 2, 2]
        : memref<2x512xf32, #space> into memref<1x2x1x4x8x4x2x2xf32, #space>
    linalg.transpose ins(%held : memref<1x1x4x2x8x2x4x2xf32, #space>)
        outs(%wanted : memref<1x2x1x4x8x4x2x2xf32, #space>) permutation = [1, 5, 0, 2, 4, 6, 3, 7]
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @doubled(%C: memref<64x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    // expected-error@+1 {{expected a copy, an addition or an elementwise linalg.generic of the product as epilogue, found linalg.exp}}
    linalg.exp ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @not_read() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.direct_store_epilogue: expected one op that reads the accumulator tile, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @read_twice(%C: memref<64x8xf32>, %D: memref<64x8xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.direct_store_epilogue: expected one op that reads the accumulator tile, found 2}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xf32>)
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%D : memref<64x8xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @tile_from_argument(%tile: memref<64x8xf32, #space>, %C: memref<64x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.direct_store_epilogue: expected an operand that views a tile in shared memory}}
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xf32>)
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.direct_store_epilogue: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
