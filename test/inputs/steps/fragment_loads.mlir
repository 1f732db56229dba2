// Pairs of fragment loads, of which only the first can be joined.
#row = affine_map<()[s0] -> (s0 mod 16)>
#next_row = affine_map<()[s0] -> (s0 mod 16 + 16)>
#column = affine_map<()[s0] -> ((s0 floordiv 16) * 8)>
#next_column = affine_map<()[s0] -> ((s0 floordiv 16) * 8 + 8)>
#far_column = affine_map<()[s0] -> ((s0 floordiv 16) * 8 + 16)>
!tile = memref<32x128xf16, #gpu.address_space<workgroup>>

func.func @beside(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i, %j_next] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

func.func @apart(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_far = affine.apply #far_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i, %j_far] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

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

func.func @another_array(%B: !tile, %D: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %D[%i, %j_next] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

func.func @another_order(%B: !tile) -> (vector<2x2xf16>, vector<2x2xf16>) {
  %lane = gpu.lane_id
  %i = affine.apply #row()[%lane]
  %j = affine.apply #column()[%lane]
  %j_next = affine.apply #next_column()[%lane]
  %0 = nvgpu.ldmatrix %B[%i, %j] {numTiles = 2 : i32, transpose = true} : !tile -> vector<2x2xf16>
  %1 = nvgpu.ldmatrix %B[%i, %j_next] {numTiles = 2 : i32, transpose = false} : !tile -> vector<2x2xf16>
  return %0, %1 : vector<2x2xf16>, vector<2x2xf16>
}

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
