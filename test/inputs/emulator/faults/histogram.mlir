// Counts of 256 numbers in 16 bins: atomics in shared memory, then in global memory.
// launch: grid=2 block=64
// arguments: 256xi32,16xi32=0
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @histogram(%x: memref<256xi32>, %bins: memref<16xi32>)
        workgroup(%s: memref<16xi32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c8 = arith.constant 8 : index
      //! stride of a block: numbers: 128 : => 64 :
      %c128 = arith.constant 128 : index
      //! end beyond the numbers: out-of-bounds: 256 : => 320 :
      //! end before the numbers: numbers: 256 : => 192 :
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      //! mask of too few bits: numbers: 15 : => 7 :
      //! mask of too many bits: out-of-bounds: 15 : => 31 :
      %mask = arith.constant 15 : i32
      %t = gpu.thread_id x
      //! thread in the block instead of the grid: numbers: global_id => thread_id
      %g = gpu.global_id x
      //! some bins not cleared: uninitialized: %c16 => %c8
      //! every thread clears: out-of-bounds: ult => uge
      %clears = arith.cmpi ult, %t, %c16 : index
      scf.if %clears {
        //! bins not cleared: uninitialized
        //! bins begin with one: numbers: %zero => %one
        memref.store %zero, %s[%t] : memref<16xi32, #gpu.address_space<workgroup>>
      }
      //! barrier after the clearing dropped: race
      gpu.barrier
      scf.for %i = %g to %c256 step %c128 {
        %v = memref.load %x[%i] : memref<256xi32>
        //! no mask: out-of-bounds: andi %v, %mask => addi %v, %zero
        %m = arith.andi %v, %mask : i32
        %bin = arith.index_cast %m : i32 to index
        //! counts twice as much: numbers: %one => %m
        %old = memref.atomic_rmw addi %one, %s[%bin] : (i32, memref<16xi32, #gpu.address_space<workgroup>>) -> i32
      }
      //! barrier before the counts are read dropped: race
      gpu.barrier
      scf.if %clears {
        //! counts of the first bin for all: numbers: %s[%t] => %s[%c0]
        %n = memref.load %s[%t] : memref<16xi32, #gpu.address_space<workgroup>>
        //! largest count of a block: numbers: addi => maxs
        //! all counts to one bin: numbers: %bins[%t] => %bins[%c0]
        %old = memref.atomic_rmw addi %n, %bins[%t] : (i32, memref<16xi32>) -> i32
      }
      gpu.return
    }
  }
}
