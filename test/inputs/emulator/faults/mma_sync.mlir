// C = A B + C of 16 x 8 x 32 in two steps of mma.sync: A and B by cp.async, ldmatrix, C in registers.
// launch: grid=1 block=32
// arguments: 16x32xf16,32x8xf16,16x8xf32=iota,16x8xf32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @mma(%a: memref<16x32xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %d: memref<16x8xf32>)
        workgroup(%as: memref<2x16x24xf16, #gpu.address_space<workgroup>>,
                  %bs: memref<32x8xf16, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      //! second half of k too early: numbers: 16 : => 8 :
      //! second half of k too late: out-of-bounds: 16 : => 24 :
      %c16 = arith.constant 16 : index
      %t = gpu.lane_id
      %half = arith.divui %t, %c16 : index
      //! rows of one half: numbers: %c16 => %c8
      %row = arith.remui %t, %c16 : index
      //! columns between 16 bytes: misaligned: %c8 => %c4
      %col = arith.muli %half, %c8 : index
      %col2 = arith.addi %col, %c16 : index
      //! copies of the first part to the second: uninitialized|race: %as[%c0 => %as[%c1
      //! copies of the wrong columns: numbers: %a[%row, %col] => %a[%row, %col2]
      %g0 = nvgpu.device_async_copy %a[%row, %col], %as[%c0, %row, %col], 8 : memref<16x32xf16> to memref<2x16x24xf16, #gpu.address_space<workgroup>>
      //! copies of the second part too small: uninitialized: 8 : => 4 :
      //! copies of the second part of the first columns: numbers: %col2 => %col
      %g1 = nvgpu.device_async_copy %a[%row, %col2], %as[%c1, %row, %col], 8 : memref<16x32xf16> to memref<2x16x24xf16, #gpu.address_space<workgroup>>
      //! rows of B over each other: uninitialized|race: %bs[%t, => %bs[%row,
      %g2 = nvgpu.device_async_copy %b[%t, %c0], %bs[%t, %c0], 8 : memref<32x8xf16> to memref<32x8xf16, #gpu.address_space<workgroup>>
      %group = nvgpu.device_async_create_group %g0, %g1, %g2
      //! wait dropped: in-flight
      //! wait for all groups but one: in-flight: %group => %group {numGroups = 1 : i32}
      nvgpu.device_async_wait %group
      gpu.barrier
      %r0 = arith.divui %t, %c4 : index
      %r = arith.addi %r0, %c8 : index
      %q = arith.remui %t, %c4 : index
      //! columns of C: race|out-of-bounds|unwritten-output: %c2 => %c1
      %n = arith.muli %q, %c2 : index
      //! row of C: numbers: %r0 => %r
      %x0 = vector.load %c[%r0, %n] : memref<16x8xf32>, vector<2xf32>
      %x1 = vector.load %c[%r, %n] : memref<16x8xf32>, vector<2xf32>
      %z = arith.constant dense<0.0> : vector<2x2xf32>
      %y0 = vector.insert %x0, %z[0] : vector<2xf32> into vector<2x2xf32>
      //! second row of C over the first: numbers: [1] => [0]
      %y1 = vector.insert %x1, %y0[1] : vector<2xf32> into vector<2x2xf32>
      //! ldmatrix of A transposed: numbers: transpose = false => transpose = true
      //! ldmatrix from rows of one half: numbers: %row, %col => %r0, %col
      //! ldmatrix beyond the tile: uninitialized: %row, %col => %row, %c16
      //! ldmatrix from between 16 bytes: misaligned: %row, %col => %row, %c4
      %a0 = nvgpu.ldmatrix %as[%c0, %row, %col] {numTiles = 4 : i32, transpose = false} : memref<2x16x24xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      //! second part of A is the first: numbers: %c1, %row => %c0, %row
      %a1 = nvgpu.ldmatrix %as[%c1, %row, %col] {numTiles = 4 : i32, transpose = false} : memref<2x16x24xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      //! ldmatrix of B not transposed: numbers: transpose = true => transpose = false
      %b0 = nvgpu.ldmatrix %bs[%row, %c0] {numTiles = 2 : i32, transpose = true} : memref<32x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
      //! second part of B shifted: numbers: %row, %c16 => %row, %c8
      %row2 = arith.addi %row, %c16 : index
      %b1 = nvgpu.ldmatrix %bs[%row2, %c0] {numTiles = 2 : i32, transpose = true} : memref<32x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
      //! A of the other step: numbers: %a0 => %a1
      //! sums begin at zero: numbers: %y1 => %z
      %d0 = nvgpu.mma.sync (%a0, %b0, %y1) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      //! sums of the first step lost: numbers: %d0 => %y1
      //! B of the other step: numbers: %b1 => %b0
      %d1 = nvgpu.mma.sync (%a1, %b1, %d0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      //! rows of the result swapped: numbers|race: [0] => [1]
      %o0 = vector.extract %d1[0] : vector<2xf32> from vector<2x2xf32>
      %o1 = vector.extract %d1[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %o0, %d[%r0, %n] : memref<16x8xf32>, vector<2xf32>
      //! second row stored over the first: unwritten-output: [%r, => [%r0,
      vector.store %o1, %d[%r, %n] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
  }
}
