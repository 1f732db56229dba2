// Y = X transposed, 32 x 32 tiles by 32 x 8 threads by way of a padded tile in shared memory.
// launch: grid=2,1 block=32,8
// arguments: 32x64xf32,64x32xf32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @transpose(%x: memref<32x64xf32>, %y: memref<64x32xf32>)
        workgroup(%s: memref<32x33xf32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      //! loop over two tiles of rows: out-of-bounds: 32 : => 64 :
      %c32 = arith.constant 32 : index
      %bx = gpu.block_id x
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      //! block offset of half a tile: numbers|race|unwritten-output: %c32 => %c16
      %o = arith.muli %bx, %c32 : index
      //! column of the next block: out-of-bounds: %o, %tx => %o, %c32
      %i = arith.addi %o, %tx : index
      //! step of the loop too long: uninitialized: step %c8 => step %c16
      //! first rows left out: uninitialized: %c0 to => %c8 to
      //! last rows left out: uninitialized: to %c32 => to %c16
      scf.for %k = %c0 to %c32 step %c8 {
        //! row of the neighbour: out-of-bounds: %k, %ty => %k, %c32
        %r = arith.addi %k, %ty : index
        %v = memref.load %x[%r, %i] : memref<32x64xf32>
        //! row and column of the tile swapped: numbers: %r, %tx => %tx, %r
        //! all rows of the tile at one place: race|uninitialized: [%r, => [%ty,
        memref.store %v, %s[%r, %tx] : memref<32x33xf32, #gpu.address_space<workgroup>>
      }
      //! barrier dropped: race
      gpu.barrier
      //! rows of the result left out: unwritten-output: to %c32 => to %c16
      //! first rows of the result left out: unwritten-output: %c0 to => %c1 to
      scf.for %k = %c0 to %c32 step %c8 {
        %r = arith.addi %k, %ty : index
        //! result not transposed: numbers: %tx, %r => %r, %tx
        //! column of the padding: uninitialized: %r] => %c32]
        %v = memref.load %s[%tx, %r] : memref<32x33xf32, #gpu.address_space<workgroup>>
        //! row of the result without the block's offset: race|unwritten-output: %o, %r => %c0, %r
        %j = arith.addi %o, %r : index
        //! columns of the result shifted: out-of-bounds|race|unwritten-output: %tx] => %i]
        //! result not stored: unwritten-output
        memref.store %v, %y[%j, %tx] : memref<64x32xf32>
      }
      gpu.return
    }
  }
}
