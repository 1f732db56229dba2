// Y = X + 1, 4 tiles of 8 x 64 by TMA: two stages with an mbarrier each, the results stored by TMA.
// launch: grid=1 block=64
// arguments: 32x64xf16,32x64xf16=out
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!tiles = memref<2x8x64xf16, #gpu.address_space<workgroup>>
!tile = memref<8x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @tma(%x: !map, %y: !map) workgroup(%in: !tiles, %out: !tiles) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      //! loop of a tile too few: unwritten-output|unwaited: 4 : => 3 :
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      //! more bytes announced: transaction-bytes|deadlock: 1024 : => 1040 :
      //! fewer bytes announced: transaction-bytes|deadlock: 1024 : => 512 :
      %bytes = arith.constant 1024 : index
      %ticks = arith.constant 10000000 : index
      %true = arith.constant true
      %f1 = arith.constant 1.0 : f16
      %t = gpu.thread_id x
      //! every thread is the first: order|transaction-bytes|race|deadlock: eq, => uge,
      %first = arith.cmpi eq, %t, %c0 : index
      %bars = nvgpu.mbarrier.create -> !group
      //! first mbarrier for two arrivals: deadlock: %c1, => %c2,
      //! first mbarrier not initialized: uninitialized
      nvgpu.mbarrier.init %bars[%c0], %c1, predicate = %first : !group
      //! first mbarrier initialized twice: uninitialized: [%c1] => [%c0]
      //! second mbarrier not initialized: uninitialized
      nvgpu.mbarrier.init %bars[%c1], %c1, predicate = %first : !group
      //! fence of the initialization dropped: proxy
      nvvm.fence.mbarrier.init
      //! barrier after the initialization dropped: race
      gpu.barrier
      %in0 = memref.subview %in[0, 0, 0] [1, 8, 64] [1, 1, 1] : !tiles to memref<8x64xf16, strided<[64, 1]>, #gpu.address_space<workgroup>>
      scf.if %first {
        //! first bytes not announced: in-flight|deadlock|transaction-bytes|order
        nvgpu.mbarrier.arrive.expect_tx %bars[%c0], %bytes : !group
        //! first tile not loaded: transaction-bytes|deadlock
        //! first tile from the second rows: numbers: [%c0, %c0] => [%c0, %c8]
        //! first tile from between 16 bytes: misaligned: [%c0, %c0] => [%c4, %c0]
        //! first tile told to the second mbarrier: transaction-bytes|deadlock: %bars[%c0] => %bars[%c1]
        nvgpu.tma.async.load %x[%c0, %c0], %bars[%c0] to %in0 : !map, !group -> memref<8x64xf16, strided<[64, 1]>, #gpu.address_space<workgroup>>
      }
      scf.for %k = %c0 to %c4 step %c1 {
        %k1 = arith.addi %k, %c1 : index
        //! stage of the tile behind: deadlock|in-flight|uninitialized: %k, => %k1,
        %stage = arith.remui %k, %c2 : index
        //! loads to the stage that is read: in-flight|race|order: %k1, => %k,
        %next = arith.remui %k1, %c2 : index
        %row = arith.muli %k, %c8 : index
        //! rows of the tile that is there: numbers: %k1, => %k,
        %row1 = arith.muli %k1, %c8 : index
        %round = arith.divui %k, %c2 : index
        //! parity of the stage: in-flight|deadlock|race: %round, => %k,
        %odd = arith.remui %round, %c2 : index
        //! parity flipped: in-flight|deadlock: eq, => ne,
        %parity = arith.cmpi eq, %odd, %c1 : index
        //! loads a tile too few: deadlock: %c4 => %c2
        //! loads a tile too many: unwaited: ult, %k1 => ult, %k
        %more = arith.cmpi ult, %k1, %c4 : index
        %loads = arith.andi %more, %first : i1
        %in1 = memref.subview %in[%next, 0, 0] [1, 8, 64] [1, 1, 1] : !tiles to !tile
        scf.if %loads {
          //! bytes of the loop not announced: in-flight|deadlock|transaction-bytes|order
          nvgpu.mbarrier.arrive.expect_tx %bars[%next], %bytes : !group
          //! load of the loop told to the stage that is read: transaction-bytes|deadlock|in-flight: %bars[%next] => %bars[%stage]
          nvgpu.tma.async.load %x[%c0, %row1], %bars[%next] to %in1 : !map, !group -> !tile
        }
        //! wait dropped: in-flight
        //! wait for the other stage: in-flight|deadlock: [%stage] => [%next]
        nvgpu.mbarrier.try_wait.parity %bars[%stage], %parity, %ticks : !group
        scf.for %r = %c0 to %c8 step %c1 {
          %v = memref.load %in[%stage, %r, %t] : !tiles
          %w = arith.addf %v, %f1 : f16
          memref.store %w, %out[%stage, %r, %t] : !tiles
        }
        //! fence before the store dropped: proxy
        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
        //! barrier before the store dropped: race|proxy
        gpu.barrier
        %out1 = memref.subview %out[%stage, 0, 0] [1, 8, 64] [1, 1, 1] : !tiles to !tile
        scf.if %first {
          //! stored to the first rows: race|unwritten-output: %row] => %c0]
          //! not stored: unwritten-output
          nvgpu.tma.async.store %out1 to %y[%c0, %row] : !tile -> !map
          //! store not committed: in-flight|unwaited
          nvvm.cp.async.bulk.commit.group
          //! wait for the box to be read dropped: in-flight|unwaited
          //! wait for a box too few: in-flight: 0 { => 4 {
          nvvm.cp.async.bulk.wait_group 0 {read}
        }
      }
      scf.if %first {
        nvvm.cp.async.bulk.wait_group 0
      }
      gpu.return
    }
  }
}
