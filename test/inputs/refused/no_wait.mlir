// A main loop without asynchronous copies: nothing to wait for.
#space = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @f(%A: memref<64x64xf16>, %C: memref<64x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %start = arith.constant dense<0.0> : vector<2x2xf32>
    %b = arith.constant dense<1.0> : vector<2x2xf16>
    %lane = gpu.lane_id
    %tile = memref.get_global @tile : memref<64x64xf16, #space>
    %d = scf.for %i = %c0 to %c64 step %c16 iter_args(%sum = %start) -> (vector<2x2xf32>) {
      gpu.barrier
      %a0 = nvgpu.ldmatrix %tile[%i, %lane] {numTiles = 4 : i32, transpose = false} : memref<64x64xf16, #space> -> vector<4x2xf16>
      %a1 = nvgpu.ldmatrix %tile[%i, %lane] {numTiles = 4 : i32, transpose = false} : memref<64x64xf16, #space> -> vector<4x2xf16>
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      scf.yield %d1 : vector<2x2xf32>
    }
    %row_d = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
    vector.store %row_d, %C[%c0, %c0] : memref<64x2xf32>, vector<2xf32>
    gpu.return
  }
  memref.global "private" @tile : memref<64x64xf16, #space> = uninitialized
}
