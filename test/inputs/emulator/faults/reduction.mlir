// The sum of each block: a tree in shared memory, then an atomic update.
// launch: grid=2 block=128
// arguments: 256xi32,2xi32=0
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" @tree : memref<128xi32, #gpu.address_space<workgroup>>
    gpu.func @reduction(%x: memref<256xi32>, %sums: memref<2xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %z = arith.constant 0 : i32
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %t1 = arith.addi %t, %c1 : index
      %s = memref.get_global @tree : memref<128xi32, #gpu.address_space<workgroup>>
      //! all blocks read the same part: numbers: %b, => %c0,
      //! part of the second block: numbers: %b, => %c1,
      //! too short a part: numbers: %c128 => %c2
      %o = arith.muli %b, %c128 : index
      //! neighbour's element: out-of-bounds: %o, %t => %o, %c128
      %i = arith.addi %o, %t : index
      %v = memref.load %x[%i] : memref<256xi32>
      //! every thread stores to one place: race: [%t] => [%c0]
      //! first values not stored: uninitialized
      memref.store %v, %s[%t] : memref<128xi32, #gpu.address_space<workgroup>>
      //! barrier before the tree dropped: race
      gpu.barrier
      //! tree begins a level too high: out-of-bounds: %n = %c64 => %n = %c128
      %end = scf.while (%n = %c64) : (index) -> index {
        //! tree ends a level too early: numbers: %c0 => %c1
        %more = arith.cmpi ugt, %n, %c0 : index
        scf.condition(%more) %n : index
      } do {
      ^bb0(%n: index):
        //! threads above the level take part: race: ult => uge
        //! all threads of the level but the last: numbers: ult, %t, %n => ult, %t1, %n
        //! all threads take part: race|out-of-bounds: %t, %n => %c0, %n
        %in = arith.cmpi ult, %t, %n : index
        scf.if %in {
          //! other half shifted by one: race|numbers: %t, %n => %t1, %n
          %j = arith.addi %t, %n : index
          %p = memref.load %s[%t] : memref<128xi32, #gpu.address_space<workgroup>>
          %q = memref.load %s[%j] : memref<128xi32, #gpu.address_space<workgroup>>
          //! half is subtracted: numbers: addi => subi
          %r = arith.addi %p, %q : i32
          //! sum stored to the other half: race|numbers: [%t] => [%j]
          memref.store %r, %s[%t] : memref<128xi32, #gpu.address_space<workgroup>>
          //! barrier inside of the branch: divergent-barrier|deadlock|race: // here => gpu.barrier
          // here
        }
        //! barrier in the loop dropped: race
        gpu.barrier
        //! half of the threads at the barrier: numbers: %c2 => %c64
        %next = arith.divui %n, %c2 : index
        scf.yield %next : index
      }
      //! every thread adds the sum: numbers: %t, %c0 => %c0, %c0
      //! no thread adds the sum: numbers: %t, %c0 => %t, %c128
      %first = arith.cmpi eq, %t, %c0 : index
      scf.if %first {
        %r = memref.load %s[%c0] : memref<128xi32, #gpu.address_space<workgroup>>
        //! sums of all blocks at one place: numbers: [%b] => [%c0]
        //! maximum instead of the sum: numbers: addi => maxs
        %old = memref.atomic_rmw addi %r, %sums[%b] : (i32, memref<2xi32>) -> i32
      }
      gpu.return
    }
  }
}
