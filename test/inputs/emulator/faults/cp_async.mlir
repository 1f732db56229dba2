// Y = X + 1 of 8 tiles through a three-stage circular buffer in shared memory; each thread reads what another thread copied.
// launch: grid=1 block=64
// arguments: 8x256xi32,8x64xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @pipelined(%x: memref<8x256xi32>, %y: memref<8x64xi32>)
        workgroup(%s: memref<3x256xi32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      //! pipeline of two stages: race|in-flight: 3 : => 2 :
      //! pipeline of four stages: out-of-bounds: 3 : => 4 :
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c7 = arith.constant 7 : index
      //! loop beyond the tiles: out-of-bounds|uninitialized: 8 : => 9 :
      //! loop ends a tile too early: unwritten-output: 8 : => 7 :
      %c8 = arith.constant 8 : index
      %c63 = arith.constant 63 : index
      %one = arith.constant 1 : i32
      %t = gpu.thread_id x
      //! places of four bytes: misaligned: %c4 => %c1
      %p = arith.muli %t, %c4 : index
      %last = arith.subi %c63, %t : index
      %q = arith.muli %last, %c4 : index
      //! first tile not copied: uninitialized|in-flight|numbers: %c0, %p], 4 => %c2, %p], 4
      %t0 = nvgpu.device_async_copy %x[%c0, %p], %s[%c0, %p], 4 : memref<8x256xi32> to memref<3x256xi32, #gpu.address_space<workgroup>>
      %g0 = nvgpu.device_async_create_group %t0
      %t1 = nvgpu.device_async_copy %x[%c1, %p], %s[%c1, %p], 4 : memref<8x256xi32> to memref<3x256xi32, #gpu.address_space<workgroup>>
      %g1 = nvgpu.device_async_create_group %t1
      //! loop begins a tile late: unwritten-output: %c0 to => %c1 to
      scf.for %k = %c0 to %c8 step %c1 {
        %k1 = arith.addi %k, %c1 : index
        //! stage of the tile behind: in-flight|uninitialized: %k, => %k1,
        %stage = arith.remui %k, %c3 : index
        //! copies a tile too far ahead: in-flight|numbers|out-of-bounds: %c2 => %c3
        //! copies a tile too little ahead: race|in-flight|numbers: %c2 => %c1
        %k2 = arith.addi %k, %c2 : index
        //! copies to the stage that is read: race|in-flight: %k2, => %k,
        //! copies to the stage read next: in-flight: %k2, => %k1,
        %next = arith.remui %k2, %c3 : index
        //! wait dropped: in-flight
        //! wait for a group too few: in-flight: 1 : => 2 :
        nvgpu.device_async_wait %g0 {numGroups = 1 : i32}
        //! barrier behind the wait dropped: race
        gpu.barrier
        //! copies of tiles that there are not: out-of-bounds: ult, %k2, %c8 => ult, %k, %c8
        //! copies end a tile too early: uninitialized|numbers|in-flight: %c8 => %c7
        %more = arith.cmpi ult, %k2, %c8 : index
        scf.if %more {
          //! copies of the tile before: numbers: %x[%k2 => %x[%k
          //! copies to another thread's place: race|in-flight|numbers|uninitialized: %s[%next, %p] => %s[%next, %c0]
          %c = nvgpu.device_async_copy %x[%k2, %p], %s[%next, %p], 4 : memref<8x256xi32> to memref<3x256xi32, #gpu.address_space<workgroup>>
        }
        %g = nvgpu.device_async_create_group {}
        //! reads the stage of the copies: in-flight|uninitialized: %stage => %next
        //! reads what the thread itself copied: numbers: %q] => %p]
        %v = memref.load %s[%stage, %q] : memref<3x256xi32, #gpu.address_space<workgroup>>
        %w = arith.addi %v, %one : i32
        //! stores to the first row: race|unwritten-output: %y[%k => %y[%c0
        //! not stored: unwritten-output
        memref.store %w, %y[%k, %t] : memref<8x64xi32>
      }
      gpu.return
    }
  }
}
