// The inclusive sums of 64 numbers, in six steps between two buffers in shared memory.
// launch: grid=1 block=64
// arguments: 64xi32,64xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scan(%x: memref<64xi32>, %y: memref<64xi32>)
        workgroup(%s: memref<2x64xi32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c5 = arith.constant 5 : index
      //! four steps: numbers: 6 : => 4 :
      %c6 = arith.constant 6 : index
      %t = gpu.thread_id x
      %z = arith.constant 0 : i32
      %t1 = arith.addi %t, %c1 : index
      %v = memref.load %x[%t] : memref<64xi32>
      //! begins in the other buffer: uninitialized: %c0, %t => %c1, %t
      memref.store %v, %s[%c0, %t] : memref<2x64xi32, #gpu.address_space<workgroup>>
      //! barrier before the steps dropped: race
      gpu.barrier
      //! last step left out: numbers|uninitialized: to %c6 => to %c5
      //! first step left out: numbers|uninitialized: %c0 to => %c1 to
      scf.for %k = %c0 to %c6 step %c1 {
        %k1 = arith.addi %k, %c1 : index
        //! distance of one in all steps: numbers: %c1, %k => %c1, %c0
        %d = arith.shli %c1, %k : index
        //! reads what it writes: race|uninitialized: %k, => %k1,
        %from = arith.remui %k, %c2 : index
        //! one buffer for all: race: %k1, => %k,
        %to = arith.remui %k1, %c2 : index
        //! one thread too few adds: numbers: uge => ugt
        //! one thread too many adds: out-of-bounds: %t, %d => %t1, %d
        %adds = arith.cmpi uge, %t, %d : index
        %own = memref.load %s[%from, %t] : memref<2x64xi32, #gpu.address_space<workgroup>>
        %sum = scf.if %adds -> i32 {
          //! distance on the other side: out-of-bounds: subi => addi
          %j = arith.subi %t, %d : index
          %w = memref.load %s[%from, %j] : memref<2x64xi32, #gpu.address_space<workgroup>>
          %r = arith.addi %own, %w : i32
          scf.yield %r : i32
        } else {
          //! zero where nothing is added: numbers: %own => %z
          scf.yield %own : i32
        }
        //! only those that add store: uninitialized|numbers: %t] => %c0]
        memref.store %sum, %s[%to, %t] : memref<2x64xi32, #gpu.address_space<workgroup>>
        //! barrier in the loop dropped: race
        gpu.barrier
      }
      //! result of the step before the last: numbers: %c0, %t => %c1, %t
      //! result of the neighbour: out-of-bounds: %t] => %t1]
      %r = memref.load %s[%c0, %t] : memref<2x64xi32, #gpu.address_space<workgroup>>
      //! result in the wrong place: race|unwritten-output: %y[%t] => %y[%c0]
      memref.store %r, %y[%t] : memref<64xi32>
      gpu.return
    }
  }
}
