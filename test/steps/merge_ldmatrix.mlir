// Two fragments of B side by side come with one ldmatrix of four tiles. A load that has no neighbour stays as it is.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step merge_ldmatrix | FileCheck %s

#row = affine_map<()[s0] -> (s0 mod 16)>
#next_row = affine_map<()[s0] -> (s0 mod 16 + 16)>
#column = affine_map<()[s0] -> ((s0 floordiv 16) * 8)>
#next_column = affine_map<()[s0] -> ((s0 floordiv 16) * 8 + 8)>
#far_column = affine_map<()[s0] -> ((s0 floordiv 16) * 8 + 16)>
!tile = memref<32x128xf16, #gpu.address_space<workgroup>>

// CHECK-LABEL: func.func @beside(
// CHECK: [[both:%.+]] = nvgpu.ldmatrix %B{{.*}} {numTiles = 4 : i32, transpose = true} : {{.*}} -> vector<4x2xf16>
// CHECK-NEXT: [[l0:%.+]] = vector.extract [[both]][0] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[l1:%.+]] = vector.extract [[both]][1] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[l0s:%.+]]:2 = vector.to_elements [[l0]]
// CHECK-NEXT: [[l1s:%.+]]:2 = vector.to_elements [[l1]]
// CHECK-NEXT: [[left:%.+]] = vector.from_elements [[l0s]]#0, [[l0s]]#1, [[l1s]]#0, [[l1s]]#1 : vector<2x2xf16>
// CHECK-NEXT: [[r0:%.+]] = vector.extract [[both]][2] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[r1:%.+]] = vector.extract [[both]][3] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[r0s:%.+]]:2 = vector.to_elements [[r0]]
// CHECK-NEXT: [[r1s:%.+]]:2 = vector.to_elements [[r1]]
// CHECK-NEXT: [[right:%.+]] = vector.from_elements [[r0s]]#0, [[r0s]]#1, [[r1s]]#0, [[r1s]]#1 : vector<2x2xf16>
// CHECK-NEXT: return [[left]], [[right]]
func.func @beside(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i, %j_next] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-2: numTiles = 2 : i32, transpose = true
func.func @apart(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_far = affine.apply #far_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i, %j_far] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

// CHECK-LABEL: func.func @another_row(
// CHECK-COUNT-2: numTiles = 2 : i32, transpose = true
func.func @another_row(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %i_next = affine.apply #next_row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i_next, %j_next] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

// CHECK-LABEL: func.func @another_array(
// CHECK-COUNT-2: numTiles = 2 : i32, transpose = true
func.func @another_array(%B: !tile, %D: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %D[%i, %j_next] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

// CHECK-LABEL: func.func @another_order(
// CHECK: numTiles = 2 : i32, transpose = true
// CHECK: numTiles = 2 : i32, transpose = false
func.func @another_order(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i, %j_next] {numTiles = 2 : i32, transpose = false} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

// CHECK-LABEL: func.func @not_affine(
// CHECK-COUNT-2: numTiles = 2 : i32, transpose = true
func.func @not_affine(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = arith.xori %j, %i : index
  %1 = arith.xori %j_next, %i : index
  %2 = nvgpu.ldmatrix %B[%i, %0] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %3 = nvgpu.ldmatrix %B[%i, %1] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %2, %3 : vector<2x2xf16>, vector<2x2xf16>
}

// CHECK-LABEL: func.func @another_block(
// CHECK-COUNT-2: numTiles = 2 : i32, transpose = true
func.func @another_block(%B: !tile, %condition: i1) -> vector<2x2xf16> {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = scf.if %condition -> vector<2x2xf16> {
    %2 = nvgpu.ldmatrix %B[%i, %j_next] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
    scf.yield %2 : vector<2x2xf16>
  } else {
    scf.yield %0 : vector<2x2xf16>
  }
  return %1 : vector<2x2xf16>
}

// Fragments of A have four tiles already.
// CHECK-LABEL: func.func @four_tiles(
// CHECK-COUNT-2: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x2xf16>
// CHECK-NEXT: return
func.func @four_tiles(%A: !tile) -> (vector<4x2xf16>, vector<4x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_far = affine.apply #far_column()[%lane]
  %0 = nvgpu.ldmatrix %A[%i, %j] {numTiles = 4 : i32, transpose = false} : !tile -> vector<4x2xf16>
  %1 = nvgpu.ldmatrix %A[%i, %j_far] {numTiles = 4 : i32, transpose = false} : !tile -> vector<4x2xf16>
  return %0, %1 : vector<4x2xf16>, vector<4x2xf16>
}
