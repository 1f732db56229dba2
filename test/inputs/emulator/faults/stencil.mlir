// y[i] = x[i - 1] + 2 x[i] + x[i + 1], zero beyond the ends, by way of a tile with a halo.
// launch: grid=2 block=64
// arguments: 128xi32,128xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @stencil(%x: memref<128xi32>, %y: memref<128xi32>)
        workgroup(%s: memref<66xi32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %c65 = arith.constant 65 : index
      //! end of the array a block too late: out-of-bounds: 127 : => 191 :
      %c127 = arith.constant 127 : index
      %zero = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %t = gpu.thread_id x
      %i = gpu.global_id x
      //! tile without room for the halo: race|uninitialized: %t, %c1 => %t, %c0
      %place = arith.addi %t, %c1 : index
      %v = memref.load %x[%i] : memref<128xi32>
      memref.store %v, %s[%place] : memref<66xi32, #gpu.address_space<workgroup>>
      //! halo on the left by the last thread: race|uninitialized|numbers: %t, %c0 => %t, %c63
      //! halo on the left by every thread: race: eq, %t, %c0 => uge, %t, %c0
      %left = arith.cmpi eq, %t, %c0 : index
      scf.if %left {
        //! left end not looked at: out-of-bounds: ugt => uge
        //! halo of the left always zero: numbers: ugt => ult
        %has = arith.cmpi ugt, %i, %c0 : index
        %h = scf.if %has -> i32 {
          //! halo of the left shifted: numbers: %i, %c1 => %i, %c2
          %j = arith.subi %i, %c1 : index
          %u = memref.load %x[%j] : memref<128xi32>
          scf.yield %u : i32
        } else {
          //! left end of two: numbers: %zero => %two
          scf.yield %zero : i32
        }
        //! halo on the left not stored: uninitialized
        //! halo on the left over the first element: numbers|race|uninitialized: [%c0] => [%c1]
        memref.store %h, %s[%c0] : memref<66xi32, #gpu.address_space<workgroup>>
      }
      %right = arith.cmpi eq, %t, %c63 : index
      scf.if %right {
        //! right end not looked at: out-of-bounds: ult => ule
        %has = arith.cmpi ult, %i, %c127 : index
        %h = scf.if %has -> i32 {
          %j = arith.addi %i, %c1 : index
          %u = memref.load %x[%j] : memref<128xi32>
          scf.yield %u : i32
        } else {
          scf.yield %zero : i32
        }
        //! halo on the right not stored: uninitialized
        //! halo on the right beyond the tile: out-of-bounds: [%c65] => [%c127]
        memref.store %h, %s[%c65] : memref<66xi32, #gpu.address_space<workgroup>>
      }
      //! barrier dropped: race|uninitialized
      gpu.barrier
      %after = arith.addi %t, %c2 : index
      %l = memref.load %s[%t] : memref<66xi32, #gpu.address_space<workgroup>>
      %m = memref.load %s[%place] : memref<66xi32, #gpu.address_space<workgroup>>
      //! right neighbour is the element: numbers: %after => %place
      %r = memref.load %s[%after] : memref<66xi32, #gpu.address_space<workgroup>>
      %m2 = arith.muli %m, %two : i32
      //! neighbours subtracted: numbers: addi => subi
      %p = arith.addi %l, %r : i32
      %q = arith.addi %p, %m2 : i32
      //! block's part of the result: race|unwritten-output: [%i] => [%t]
      memref.store %q, %y[%i] : memref<128xi32>
      gpu.return
    }
  }
}
