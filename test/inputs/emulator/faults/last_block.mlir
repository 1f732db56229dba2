// Blocks write partial sums; the last to count itself in adds them.
// launch: grid=4 block=64
// arguments: 256xi32,4xi32=0,1xi32=0,1xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global internal @last() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<1 x i32>
    llvm.mlir.global internal @warps() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<2 x i32>
    llvm.func @sum(%x: !llvm.ptr<1>, %parts: !llvm.ptr<1>, %count: !llvm.ptr<1>, %y: !llvm.ptr<1>)
        attributes {gpu.kernel, nvvm.kernel} {
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c1 = llvm.mlir.constant(1 : i32) : i32
      //! the first block adds: race|unwritten-output|numbers: 3 : => 0 :
      //! no block is the last: unwritten-output: 3 : => 4 :
      //! the last block but one adds: race|numbers: 3 : => 2 :
      %c3 = llvm.mlir.constant(3 : i32) : i32
      %c4 = llvm.mlir.constant(4 : i32) : i32
      %c5 = llvm.mlir.constant(5 : i32) : i32
      %c31 = llvm.mlir.constant(31 : i32) : i32
      %c64 = llvm.mlir.constant(64 : i32) : i32
      //! mask of half a warp: divergent-barrier|order|race|numbers: -1 : => 65535 :
      %all = llvm.mlir.constant(-1 : i32) : i32
      %last = llvm.mlir.addressof @last : !llvm.ptr<3>
      %warps = llvm.mlir.addressof @warps : !llvm.ptr<3>
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %b = nvvm.read.ptx.sreg.ctaid.x : i32
      %o = llvm.mul %b, %c64 : i32
      //! all blocks add the same numbers: numbers: %o, %t => %c0, %t
      //! numbers beyond the array: out-of-bounds: %o, %t => %o, %c64
      %i = llvm.add %o, %t : i32
      %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %px : !llvm.ptr<1> -> i32
      //! largest number of the warp: numbers: add => max
      //! sum with a dead mask: numbers|order|divergent-barrier: %all => %c1
      %w = nvvm.redux.sync add %v, %all : i32 -> i32
      %warp = llvm.lshr %t, %c5 : i32
      //! sums of both warps at one place: race|uninitialized: [%warp] => [%c0]
      %pw = llvm.getelementptr %warps[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %lane = llvm.and %t, %c31 : i32
      //! another thread of the warp stores: uninitialized: %c0 : i32 => %c64 : i32
      %leads = llvm.icmp "eq" %lane, %c0 : i32
      llvm.cond_br %leads, ^store, ^stored
    ^store:
      //! sum of the warp not stored: uninitialized
      //! number stored instead of the sum: numbers: %w => %v
      llvm.store %w, %pw : i32, !llvm.ptr<3>
      llvm.br ^stored
    ^stored:
      //! barrier before the sum of the block dropped: race|uninitialized
      nvvm.barrier
      //! a thread of the other warp is the first: race|uninitialized|numbers: "eq" => "uge"
      %first = llvm.icmp "eq" %t, %c0 : i32
      llvm.cond_br %first, ^count, ^counted
    ^count:
      %w0 = llvm.load %warps : !llvm.ptr<3> -> i32
      %p1 = llvm.getelementptr %warps[%c1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %w1 = llvm.load %p1 : !llvm.ptr<3> -> i32
      //! sum of one warp: numbers: %w1 => %w0
      %s = llvm.add %w0, %w1 : i32
      //! all sums at one place: race|numbers: [%b] => [%c0]
      %pp = llvm.getelementptr %parts[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %s, %pp : i32, !llvm.ptr<1>
      //! counts itself in without an order: race: acq_rel => monotonic
      //! counts itself in without a release: race: acq_rel => acquire
      //! counts itself in without an acquire: race: acq_rel => release
      //! counts two at a time: numbers|unwritten-output|race: %c1 acq_rel => %c4 acq_rel
      %before = llvm.atomicrmw add %count, %c1 acq_rel : !llvm.ptr<1>, i32
      llvm.store %before, %last : i32, !llvm.ptr<3>
      llvm.br ^counted
    ^counted:
      //! barrier before the answer is read dropped: race|uninitialized
      nvvm.barrier
      %ended = llvm.load %last : !llvm.ptr<3> -> i32
      //! all blocks but the last add: race|unwritten-output|numbers: "eq" => "ne"
      %is_last = llvm.icmp "eq" %ended, %c3 : i32
      %adds = llvm.and %is_last, %first : i1
      llvm.cond_br %adds, ^loop(%c0, %c0 : i32, i32), ^end
    ^loop(%k: i32, %sum: i32):
      %pk = llvm.getelementptr %parts[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %part = llvm.load %pk : !llvm.ptr<1> -> i32
      //! sum of the last part: numbers: %sum, => %c0,
      %next = llvm.add %sum, %part : i32
      %k1 = llvm.add %k, %c1 : i32
      //! a part too many: out-of-bounds: %k1, %c4 => %k, %c4
      //! a part too few: numbers: %k1, %c4 => %k1, %c3
      %more = llvm.icmp "slt" %k1, %c4 : i32
      llvm.cond_br %more, ^loop(%k1, %next : i32, i32), ^out
    ^out:
      //! sum without the last part: numbers: %next => %sum
      llvm.store %next, %y : i32, !llvm.ptr<1>
      llvm.br ^end
    ^end:
      llvm.return
    }
  }
}
