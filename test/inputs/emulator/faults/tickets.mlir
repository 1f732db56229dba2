// y = 3 x of 6 tiles of 32 x 8: blocks take tiles by an atomic counter; the tile is read by columns from shared memory.
// launch: grid=3 block=32
// arguments: 192x8xi32,1xi32=0,192x8xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @tickets(%x: memref<192x8xi32>, %count: memref<1xi32>, %y: memref<192x8xi32>)
        workgroup(%s: memref<32x9xi32, #gpu.address_space<workgroup>>, %next: memref<1xindex, #gpu.address_space<workgroup>>)
        kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      //! tile of the next 8 columns: out-of-bounds: 8 : => 9 :
      %c8 = arith.constant 8 : index
      //! rows of a tile overlap: numbers|unwritten-output: 32 : => 16 :
      %c32 = arith.constant 32 : index
      //! a tile too many: out-of-bounds: 6 : => 7 :
      //! a tile too few: numbers|unwritten-output: 6 : => 5 :
      %c6 = arith.constant 6 : index
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %t = gpu.thread_id x
      %first = arith.cmpi eq, %t, %c0 : index
      scf.while : () -> () {
        scf.if %first {
          //! counter not counted: endless: addi %one => maxu %one
          %n = memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32>) -> i32
          %k = arith.index_cast %n : i32 to index
          //! ticket not stored: uninitialized
          memref.store %k, %next[%c0] : memref<1xindex, #gpu.address_space<workgroup>>
        }
        //! barrier before the ticket is read dropped: race
        gpu.barrier
        %tile = memref.load %next[%c0] : memref<1xindex, #gpu.address_space<workgroup>>
        gpu.barrier
        //! compared with one: out-of-bounds: ult, => ule,
        %more = arith.cmpi ult, %tile, %c6 : index
        scf.condition(%more)
      } do {
        %tile = memref.load %next[%c0] : memref<1xindex, #gpu.address_space<workgroup>>
        %row = arith.muli %tile, %c32 : index
        %own = arith.addi %row, %t : index
        scf.for %j = %c0 to %c8 step %c1 {
          %v = memref.load %x[%own, %j] : memref<192x8xi32>
          %w = arith.muli %v, %three : i32
          //! own row of the tile is a column: out-of-bounds|uninitialized: [%t, %j] => [%j, %t]
          memref.store %w, %s[%t, %j] : memref<32x9xi32, #gpu.address_space<workgroup>>
        }
        //! barrier of the tile dropped: race
        gpu.barrier
        %q = arith.divui %t, %c8 : index
        %r = arith.remui %t, %c8 : index
        %c4 = arith.constant 4 : index
        //! steps of one row: numbers|unwritten-output: step %c4 => step %c8
        scf.for %i = %c0 to %c32 step %c4 {
          %i2 = arith.addi %i, %q : index
          %v = memref.load %s[%i2, %r] : memref<32x9xi32, #gpu.address_space<workgroup>>
          %o = arith.addi %row, %i2 : index
          //! stored to the row of the thread: numbers|unwritten-output: [%o, => [%own,
          memref.store %v, %y[%o, %r] : memref<192x8xi32>
        }
        scf.yield
      }
      gpu.return
    }
  }
}
