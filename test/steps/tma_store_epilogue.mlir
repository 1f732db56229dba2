// Sums leave through boxes of up to 128 bytes a row. Each warpgroup has as many as there are stages and uses them in
// turn: one is written while TMA reads the others. 16-bit sums go to shared memory by stmatrix.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step tma_store_epilogue --split-input-file
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s
// RUN: sed '/^\/\/ Refused/Q' %s | %{opt} - --set consumer_warpgroups=1 --set block_m=64 --set epilogue_stages=1 \
// RUN:   | FileCheck %s --check-prefix=ONE

// Two boxes of 32 columns of f32, for each of two warpgroups of 64 rows.
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[to_swizzle:.+]] = affine_map<()[s0] -> ((s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[to_unit:.+]] = affine_map<()[s0] -> ((s0 mod 4) floordiv 2)>
// CHECK-DAG: #[[to_side:.+]] = affine_map<()[s0] -> (s0 * 2 - (s0 floordiv 2) * 4)>
// CHECK-DAG: #[[four:.+]] = affine_map<()[s0] -> (s0 * 4)>
// CHECK-LABEL: func.func @two_boxes(
// CHECK: [[any:%.+]] = memref.cast %C : memref<512x128xf32> to memref<*xf32>
// CHECK-NEXT: [[map:%.+]] = nvgpu.tma.create.descriptor [[any]] box[%c64, %c32] :
// CHECK-SAME: -> <tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b,
// CHECK: gpu.launch
// CHECK-NEXT: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x64x32xf32, #gpu.address_space<workgroup>>
// CHECK-NOT: {{memref.alloc|linalg|warpgroup_mma_store}}
// CHECK: scf.for
// CHECK: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} to vector<1x8x2x2xf32>
// CHECK: [[warpgroup:%.+]] = affine.apply
// CHECK: [[one:%.+]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: [[barrier:%.+]] = arith.addi %{{.*}}, %c1_i32 : i32
// CHECK-NEXT: [[first_row:%.+]] = arith.addi %i, %own
// A thread's row, and its places in that: the 16-byte unit is XORed with the row.
// CHECK-NEXT: [[row:%.+]] = affine.apply #[[to_row]]()
// CHECK-NEXT: [[swizzle:%.+]] = affine.apply #[[to_swizzle]]()
// CHECK-NEXT: [[unit:%.+]] = affine.apply #[[to_unit]]()
// CHECK-NEXT: [[side:%.+]] = affine.apply #[[to_side]]()
// CHECK-NEXT: [[there:%.+]] = arith.xori [[unit]], [[swizzle]]
// CHECK-NEXT: [[begin:%.+]] = affine.apply #[[four]]()[[[there]]]
// CHECK-NEXT: [[column:%.+]] = arith.addi [[begin]], [[side]]
// CHECK-NEXT: [[unit2:%.+]] = arith.addi [[unit]], %c2
// CHECK-NEXT: [[there:%.+]] = arith.xori [[unit2]], [[swizzle]]
// CHECK-NEXT: [[begin:%.+]] = affine.apply #[[four]]()[[[there]]]
// CHECK-NEXT: [[column2:%.+]] = arith.addi [[begin]], [[side]]
// CHECK: [[box:%.+]] = memref.subview [[boxes]]{{\[}}[[warpgroup]], 0, 0, 0] [1, 1, 64, 32]
// One store was issued since that of this box: the box is free once all others have been read.
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.barrier id = [[barrier]] number_of_threads = %c128_i32
// Four matrices of eight columns, of two rows each.
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 0, 0]
// CHECK-NEXT: vector.store [[pair]], [[box]]{{\[}}[[row]], [[column]]] {alignment = 8 : i64}
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 0, 1]
// CHECK-NEXT: [[below:%.+]] = arith.addi [[row]], %c8
// CHECK-NEXT: vector.store [[pair]], [[box]]{{\[}}[[below]], [[column]]] {alignment = 8 : i64}
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 1, 0]
// CHECK-NEXT: vector.store [[pair]], [[box]]{{\[}}[[row]], [[column2]]]
// CHECK-COUNT-5: vector.store %{{.*}}, [[box]][
// CHECK-NOT: vector.store
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.barrier id = [[barrier]] number_of_threads = %c128_i32
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvgpu.tma.async.store [[box]] to [[map]][%j, [[first_row]]] :
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: }
// CHECK-NEXT: [[box:%.+]] = memref.subview [[boxes]]{{\[}}[[warpgroup]], 1, 0, 0] [1, 1, 64, 32]
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: vector.extract [[held]][0, 4, 0]
// CHECK-COUNT-8: vector.store %{{.*}}, [[box]][
// CHECK-NOT: vector.store
// CHECK: [[next:%.+]] = arith.addi %j, %c32
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvgpu.tma.async.store [[box]] to [[map]]{{\[}}[[next]], [[first_row]]] :
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: }
// CHECK-NEXT: }
// The last boxes are waited for behind the loop over tiles.
// CHECK: [[one:%.+]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NEXT: }
// CHECK-NEXT: gpu.terminator
// CHECK: // -----

// One warpgroup with one box: each store waits for the one before.
// ONE-LABEL: func.func @two_boxes(
// ONE: memref.alloc() {operand_c} : memref<1x1x64x32xf32,
// ONE: nvvm.cp.async.bulk.wait_group 0 {read}
// ONE: nvgpu.tma.async.store
// ONE: nvvm.cp.async.bulk.wait_group 0 {read}
// ONE: nvgpu.tma.async.store
// ONE: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[128, 1], offset: ?>
#own_view = strided<[64, 1], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_boxes(%C: memref<512x128xf32>, %i: index, %j: index, %own: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    %own_rows = memref.subview %tile[%own, 0] [64, 64] [1, 1]
        : memref<128x64xf32, #space> to memref<64x64xf32, #own_view, #space>
    scf.for %number = %c0 to %c4 step %c1 {
      %c = memref.subview %C[%i, %j] [128, 64] [1, 1] : memref<512x128xf32> to memref<128x64xf32, #c_view>
      %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
      "tc.warpgroup_mma_store"(%sums, %own_rows) : (!sums, memref<64x64xf32, #own_view, #space>) -> ()
      linalg.copy ins(%tile : memref<128x64xf32, #space>) outs(%c : memref<128x64xf32, #c_view>)
    }
    gpu.terminator
  }
  return
}

// -----

// C = AB + C: TMA adds. A tile may reach beyond C: TMA leaves out what does, and nothing is compared. There is no
// loop over tiles.
// CHECK-LABEL: func.func @added(
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c8] :
// CHECK-SAME: -> <tensor = memref<64x8xf32, 3>, swizzle = swizzle_32b,
// CHECK-NOT: {{arith.cmpi [us]lt|affine.min|linalg|nvgpu.tma.async.store}}
// CHECK: [[c:%.+]] = builtin.unrealized_conversion_cast [[map]] : {{.*}} to !llvm.ptr
// CHECK-NEXT: [[column:%.+]] = arith.index_cast %j : index to i32
// CHECK-NEXT: [[row:%.+]] = arith.index_cast %i : index to i32
// CHECK: [[box:%.+]] = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT: nvvm.inline_ptx "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
// CHECK-SAME: [{$r0}, {{.*}}], [{$r3}];" ro([[c]], [[column]], [[row]], [[box]] : !llvm.ptr, i32, i32, i32)
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NEXT: }
// CHECK-NEXT: gpu.terminator
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[100, 1], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @added(%C: memref<100x100xf32>, %i: index, %j: index, %rows: index, %columns: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %c = memref.subview %C[%i, %j] [%rows, %columns] [1, 1] : memref<100x100xf32> to memref<?x?xf32, #c_view>
    %inside = memref.subview %tile[0, 0] [%rows, %columns] [1, 1]
        : memref<64x8xf32, #space> to memref<?x?xf32, strided<[8, 1]>, #space>
    linalg.add ins(%inside, %c : memref<?x?xf32, strided<[8, 1]>, #space>, memref<?x?xf32, #c_view>)
        outs(%c : memref<?x?xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

// Sums are rounded to 16 bits, and four matrices, 16 rows of 16 columns, leave the registers of a warp at once. Three
// boxes in two places: the first of a tile goes where the last of the one before it went, and waits for that.
// CHECK-LABEL: func.func @rounded(
// CHECK: nvgpu.tma.create.descriptor {{.*}} -> <tensor = memref<64x16xf16, 3>, swizzle = swizzle_32b,
// CHECK: memref.alloc() {operand_c} : memref<2x2x64x16xf16,
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: [[pair:%.+]] = vector.extract [[held:%.+]][0, 0, 0] : vector<2xf32> from vector<1x6x2x2xf32>
// CHECK-NEXT: [[rounded0:%.+]] = arith.truncf [[pair]] : vector<2xf32> to vector<2xf16>
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 0, 1]
// CHECK-NEXT: [[rounded1:%.+]] = arith.truncf [[pair]]
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 1, 0]
// CHECK-NEXT: [[rounded2:%.+]] = arith.truncf [[pair]]
// CHECK-NEXT: [[pair:%.+]] = vector.extract [[held]][0, 1, 1]
// CHECK-NEXT: [[rounded3:%.+]] = arith.truncf [[pair]]
// CHECK-NEXT: [[bits:%.+]] = vector.bitcast [[rounded0]] : vector<2xf16> to vector<1xi32>
// CHECK-NEXT: [[register0:%.+]] = vector.extract [[bits]][0]
// CHECK-COUNT-2: vector.bitcast
// CHECK: [[bits:%.+]] = vector.bitcast [[rounded3]]
// CHECK-NEXT: [[register3:%.+]] = vector.extract [[bits]][0]
// CHECK: nvvm.stmatrix [[address:%.+]], [[register0]], %{{.*}}, %{{.*}}, [[register3]] {
// CHECK-SAME: layout = #nvvm.mma_layout<row>
// CHECK-NOT: {{nvvm.stmatrix|vector.store}}
// CHECK: nvgpu.tma.async.store
// CHECK: nvvm.cp.async.bulk.wait_group 2 {read}
// CHECK: nvvm.stmatrix
// CHECK: nvgpu.tma.async.store
// CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK: nvvm.stmatrix
// CHECK: nvgpu.tma.async.store
// CHECK-NOT: {{vector.store|nvvm.stmatrix|nvgpu.tma.async.store|linalg}}
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x48xf32>>
func.func @rounded(%C: memref<64x48xf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x48xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x48xf32, #space>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x48xf32, #space>) outs(%C : memref<64x48xf16>) {
    ^bb0(%sum: f32, %old: f16):
      %rounded = arith.truncf %sum : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// Sums of f16 stay what they are; each 64 rows of a warpgroup store matrices of their own, to one box.
// CHECK-LABEL: func.func @tall_f16(
// CHECK-NOT: arith.truncf
// CHECK: memref.alloc() {operand_c} : memref<2x2x128x16xf16,
// CHECK-COUNT-2: nvvm.stmatrix
// CHECK-NOT: {{nvvm.stmatrix|arith.truncf}}
// CHECK: nvgpu.tma.async.store {{.*}} : memref<128x16xf16
// CHECK-NOT: nvgpu.tma.async.store
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x16xf16>>
func.func @tall_f16(%C: memref<128x16xf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<128x16xf16, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    "tc.warpgroup_mma_store"(%sums, %tile) : (!sums, memref<128x16xf16, #space>) -> ()
    linalg.copy ins(%tile : memref<128x16xf16, #space>) outs(%C : memref<128x16xf16>)
    gpu.terminator
  }
  return
}

// -----

// A matrix that the epilogue adds is copied to both boxes, in the fourth and the sixth of eight k steps. `ldmatrix`
// reads a box before `stmatrix` writes C to the same addresses.
// CHECK-LABEL: func.func @copied(
// CHECK: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x64x64xf16,
// CHECK: scf.for [[k:%.+]] = %c0 to %c512 step %c64
// CHECK: [[fourth:%.+]] = arith.cmpi eq, [[k]], %c192 : index
// CHECK-NEXT: scf.if [[fourth]] {
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-COUNT-4: nvgpu.device_async_copy %D[%{{.*}}, %{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}], 8 {bypassL1}
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK: [[sixth:%.+]] = arith.cmpi eq, [[k]], %c320 : index
// CHECK-NEXT: scf.if [[sixth]] {
// CHECK-NOT: nvvm.cp.async.bulk.wait_group
// CHECK-COUNT-4: nvgpu.device_async_copy %D[%{{.*}}, %{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}], 8 {bypassL1}
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.bulk.wait_group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier
// CHECK-NOT: {{vector.load|nvvm.stmatrix}}
// CHECK-COUNT-4: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x2xf16>
// CHECK-NOT: {{vector.load|nvgpu.ldmatrix}}
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK: nvgpu.tma.async.store
// CHECK-COUNT-4: nvgpu.ldmatrix
// CHECK-NOT: {{vector.load|nvgpu.ldmatrix}}
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK-NOT: {{vector.load|nvgpu.ldmatrix}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!wide = !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
func.func @copied(%C: memref<64x128xf16>, %D: memref<64x128xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x128xf32, #space>
    %zeros = nvgpu.warpgroup.mma.init.accumulator -> !wide
    %sums = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zeros) -> (!wide) {
      scf.yield %sum : !wide
    }
    nvgpu.warpgroup.mma.store %sums, %tile : !wide to memref<64x128xf32, #space>
    linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile, %D : memref<64x128xf32, #space>, memref<64x128xf16>) outs(%C : memref<64x128xf16>) {
    ^bb0(%sum: f32, %d: f16, %old: f16):
      %wide = arith.extf %d : f16 to f32
      %total = arith.addf %sum, %wide : f32
      %rounded = arith.truncf %total : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// With a transposed C, the matrix is copied as C lies in its boxes, 16 of 24 rows at a time, and read transposed: two
// matrices of 8 rows, then one.
// CHECK-LABEL: func.func @copied_transposed(
// CHECK: memref.alloc() {operand_c} : memref<2x2x24x64xf16,
// CHECK: scf.for
// CHECK: nvgpu.device_async_copy %D[{{.*}} 8 {bypassL1} : memref<24x64xf16> to memref<24x64xf16,
// CHECK: [[inside:%.+]] = arith.cmpi ult, %{{.*}}, %c24 : index
// CHECK-NEXT: scf.if [[inside]] {
// CHECK: nvgpu.device_async_copy %D[
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: {{vector.load|memref.load|nvvm.stmatrix}}
// CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = true} : memref<24x64xf16, {{.*}} -> vector<4x2xf16>
// CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 2 : i32, transpose = true} : memref<24x64xf16, {{.*}} -> vector<2x2xf16>
// CHECK-NOT: {{vector.load|memref.load|nvgpu.ldmatrix}}
// CHECK: nvvm.stmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x24xf32>>
func.func @copied_transposed(%C: memref<24x64xf16>, %D: memref<24x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %turned = memref.transpose %C (i, j) -> (j, i) : memref<24x64xf16> to memref<64x24xf16, strided<[1, 64]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x24xf32, #space>
    %zeros = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %sums = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zeros) -> (!sums) {
      scf.yield %sum : !sums
    }
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x24xf32, #space>
    linalg.generic {indexing_maps = [#same, #turned, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile, %D : memref<64x24xf32, #space>, memref<24x64xf16>)
        outs(%turned : memref<64x24xf16, strided<[1, 64]>>) {
    ^bb0(%sum: f32, %d: f16, %old: f16):
      %wide = arith.extf %d : f16 to f32
      %total = arith.addf %sum, %wide : f32
      %rounded = arith.truncf %total : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// One step is too short: the matrix is read from memory.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT: nvgpu.device_async_copy
// CHECK-COUNT-16: vector.load %D
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_step(%C: memref<64x64xf16>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %zeros = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %sums = scf.for %k = %c0 to %c64 step %c64 iter_args(%sum = %zeros) -> (!sums) {
      scf.yield %sum : !sums
    }
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x64xf32, #space>
    linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile, %D : memref<64x64xf32, #space>, memref<64x64xf16>) outs(%C : memref<64x64xf16>) {
    ^bb0(%sum: f32, %d: f16, %old: f16):
      %wide = arith.extf %d : f16 to f32
      %total = arith.addf %sum, %wide : f32
      %rounded = arith.truncf %total : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// Of a transposed C, rows of C are columns of the tile: a box has the 24 rows and 64 of the columns, which `stmatrix`
// writes transposed: two matrices of 8 rows, then one; the upper and the lower half of a warp's 16 rows are neighbours.
// CHECK-DAG: #[[first_unit:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 2)>
// CHECK-DAG: #[[to_matrix:.+]] = affine_map<()[s0] -> (s0 mod 8)>
// CHECK-DAG: #[[to_right:.+]] = affine_map<()[s0] -> (((s0 mod 32) floordiv 16) * 8)>
// CHECK-DAG: #[[to_lower:.+]] = affine_map<()[s0] -> (((s0 mod 32) floordiv 8) mod 2)>
// CHECK-DAG: #[[address:.+]] = affine_map<()[s0, s1, s2] -> (s0 * 2 + s1 * 128 + s2 * 16)>
// CHECK-LABEL: func.func @transposed(
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c24, %c64] :
// CHECK-SAME: -> <tensor = memref<24x64xf16, 3>, swizzle = swizzle_128b,
// CHECK: memref.alloc() {operand_c} : memref<2x2x24x64xf16,
// CHECK: [[first:%.+]] = affine.apply #[[first_unit]]()
// CHECK-NEXT: [[row:%.+]] = affine.apply #[[to_matrix]]()
// CHECK-NEXT: [[right:%.+]] = affine.apply #[[to_right]]()
// CHECK-NEXT: [[lower:%.+]] = affine.apply #[[to_lower]]()
// CHECK-NEXT: [[unit:%.+]] = arith.addi [[first]], [[lower]]
// CHECK-NEXT: [[swizzled:%.+]] = arith.xori [[unit]], [[row]]
// CHECK-NEXT: [[column:%.+]] = arith.addi [[right]], [[row]]
// CHECK: [[box:%.+]] = memref.subview
// CHECK: %{{[^,]*}}, [[offset:%[^,]+]], {{.*}} = memref.extract_strided_metadata [[box]]
// CHECK: affine.apply #[[address]]()[[[offset]], [[column]], [[swizzled]]]
// CHECK: nvvm.stmatrix %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {
// CHECK-SAME: layout = #nvvm.mma_layout<col>
// CHECK: [[further:%.+]] = arith.addi [[column]], %c16
// CHECK: affine.apply #[[address]]()[[[offset]], [[further]], [[swizzled]]]
// CHECK: nvvm.stmatrix %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {{{.*}}layout = #nvvm.mma_layout<col>
// CHECK-NOT: {{nvvm.stmatrix|vector.store|memref.store}}
// CHECK: nvgpu.tma.async.store [[box]] to [[map]][%i, %c0]
// CHECK-NOT: {{nvgpu.tma.async.store|linalg}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
#c_view = strided<[1, 128], offset: ?>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x24xf32>>
func.func @transposed(%C: memref<24x128xf16>, %i: index) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %turned = memref.transpose %C (i, j) -> (j, i) : memref<24x128xf16> to memref<128x24xf16, strided<[1, 128]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c = memref.subview %turned[%i, 0] [64, 24] [1, 1]
        : memref<128x24xf16, strided<[1, 128]>> to memref<64x24xf16, #c_view>
    %tile = memref.alloc() {operand_c} : memref<64x24xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x24xf32, #space>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x24xf32, #space>) outs(%c : memref<64x24xf16, #c_view>) {
    ^bb0(%sum: f32, %old: f16):
      %rounded = arith.truncf %sum : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// Elements of 32 bits are stored one by one, and 64 rows of the tile are two boxes beside each other in C, of which the
// first two warps write one and the others the other.
// CHECK-DAG: #[[part:.+]] = affine_map<()[s0] -> ((((s0 mod 128) floordiv 32) floordiv 2) * 8)>
// CHECK-LABEL: func.func @transposed_f32(
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c8, %c32] :
// CHECK: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x16x32xf32,
// CHECK: affine.apply #[[part]]()
// CHECK-COUNT-4: memref.store
// CHECK-NOT: memref.store
// CHECK: [[left:%.+]] = memref.subview [[boxes]][%{{.*}}, 0, 0, 0] [1, 1, 8, 32]
// CHECK-NEXT: nvgpu.tma.async.store [[left]] to [[map]][%c0, %c0]
// CHECK-NEXT: [[right:%.+]] = memref.subview [[boxes]][%{{.*}}, 0, 8, 0] [1, 1, 8, 32]
// CHECK-NEXT: nvgpu.tma.async.store [[right]] to [[map]][%c32, %c0]
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @transposed_f32(%C: memref<8x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %turned = memref.transpose %C (i, j) -> (j, i) : memref<8x64xf32> to memref<64x8xf32, strided<[1, 64]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%turned : memref<64x8xf32, strided<[1, 64]>>)
    gpu.terminator
  }
  return
}

// -----

// A tile of 72 columns is stored by boxes of 40 and 32 rows of C, which have a descriptor each and take turns in the
// buffers.
// CHECK-LABEL: func.func @divided(
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c40, %c64] :
// CHECK: [[rest:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c32, %c64] :
// CHECK: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x40x64xf16,
// CHECK: [[box:%.+]] = memref.subview [[boxes]][%{{.*}}, 0, 0, 0] [1, 1, 40, 64]
// CHECK-COUNT-3: nvvm.stmatrix
// CHECK-NOT: nvvm.stmatrix
// CHECK: nvgpu.tma.async.store [[box]] to [[map]][%c0, %c0]
// CHECK: memref.subview [[boxes]][%{{.*}}, 1, 0, 0] [1, 1, 40, 64]
// CHECK-COUNT-2: nvvm.stmatrix
// CHECK-NOT: nvvm.stmatrix
// CHECK: [[part:%.+]] = memref.subview [[boxes]][%{{.*}}, 1, 0, 0] [1, 1, 32, 64]
// CHECK-NEXT: nvgpu.tma.async.store [[part]] to [[rest]][%c0, %c40]
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x72xf32>>
func.func @divided(%C: memref<72x64xf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %turned = memref.transpose %C (i, j) -> (j, i) : memref<72x64xf16> to memref<64x72xf16, strided<[1, 64]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x72xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x72xf32, #space>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x72xf32, #space>) outs(%turned : memref<64x72xf16, strided<[1, 64]>>) {
    ^bb0(%sum: f32, %old: f16):
      %rounded = arith.truncf %sum : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// An elementwise op is computed on the accumulators.
// CHECK-LABEL: func.func @computed_transposed(
// CHECK: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x16x32xf32,
// CHECK-NOT: linalg.generic
// CHECK: [[squares:%.+]] = arith.mulf %{{.*}} : vector<2xf32>
// CHECK: [[square:%.+]] = vector.extract [[squares]][0]
// CHECK: memref.store [[square]]
// CHECK: nvgpu.tma.async.store
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @computed_transposed(%C: memref<8x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %turned = memref.transpose %C (i, j) -> (j, i) : memref<8x64xf32> to memref<64x8xf32, strided<[1, 64]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x8xf32, #space>) outs(%turned : memref<64x8xf32, strided<[1, 64]>>) {
    ^bb0(%sum: f32, %old: f32):
      %square = arith.mulf %sum, %sum : f32
      linalg.yield %square : f32
    }
    gpu.terminator
  }
  return
}

// Refused below.
// -----

#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @narrow(%C: memref<64x8xf16>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    // expected-error@+1 {{rows of the tile of C are 8 x f16; TMA stores require multiples of 16}}
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xf16>) {
    ^bb0(%sum: f32, %old: f16):
      %rounded = arith.truncf %sum : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<320x8xf32>>
func.func @many_rows(%C: memref<320x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<320x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<320x8xf32, #space>
    // expected-error@+1 {{a warpgroup's 320 rows are more than a box of TMA has, 256}}
    linalg.copy ins(%tile : memref<320x8xf32, #space>) outs(%C : memref<320x8xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @pitch(%C: memref<64x30xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %c = memref.subview %C[0, 0] [64, 8] [1, 1] : memref<64x30xf32> to memref<64x8xf32, strided<[30, 1]>>
    // expected-error@+1 {{rows of C are 30 x f32, 120 bytes; TMA requires multiples of 16 bytes: make its}}
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%c : memref<64x8xf32, strided<[30, 1]>>)
    gpu.terminator
  }
  return
}

// -----

// Every second row of C.
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @strides(%C: memref<128x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    %c = memref.subview %C[0, 0] [64, 8] [2, 1] : memref<128x8xf32> to memref<64x8xf32, strided<[16, 1]>>
    // expected-error@+1 {{tc.tma_store_epilogue: expected a view of an argument of the function}}
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%c : memref<64x8xf32, strided<[16, 1]>>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @own_buffer() {
  %C = memref.alloc() : memref<64x8xf32>
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {operand_c} : memref<64x8xf32, #space>
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    // expected-error@+1 {{tc.tma_store_epilogue: expected a view of an argument of the function}}
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func @exponential(%C: memref<64x8xf32>) {
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
  // expected-error@+1 {{tc.tma_store_epilogue: expected one op that reads the accumulator tile, found 0}}
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
func.func @tile_from_argument(%tile: memref<64x8xf32, #space>, %C: memref<64x8xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.tma_store_epilogue: expected an operand that views a tile in shared memory}}
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to memref<64x8xf32, #space>
    linalg.copy ins(%tile : memref<64x8xf32, #space>) outs(%C : memref<64x8xf32>)
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.tma_store_epilogue: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
