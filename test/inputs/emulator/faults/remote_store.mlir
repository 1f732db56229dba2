// Each block of a cluster of two adds its neighbour's numbers, which that block has written to its shared memory.
// launch: grid=4 block=32 cluster=2
// arguments: 128xi32,128xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x i32>
    llvm.func @remote_store(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      //! another block's number: out-of-bounds|numbers|uninitialized: 1 : => 2 :
      %c1 = llvm.mlir.constant(1 : i32) : i32
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c32 = llvm.mlir.constant(32 : i32) : i32
      %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %b = nvvm.read.ptx.sreg.ctaid.x : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      //! the block's own rank: numbers: %rank, %c1 => %rank, %c0
      %other = llvm.xor %rank, %c1 : i32
      %o = llvm.mul %b, %c32 : i32
      %i = llvm.add %o, %t : i32
      %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %px : !llvm.ptr<1> -> i32
      %ps = llvm.getelementptr %tile[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      //! every thread's number at one place: race|uninitialized: %ps => %tile
      //! rank of the first block: race|uninitialized: %other => %c0
      %remote = nvvm.mapa %ps, %other : !llvm.ptr<3> -> !llvm.ptr<7>
      //! numbers not stored: uninitialized
      llvm.store %v, %remote : i32, !llvm.ptr<7>
      //!2 barrier of the cluster dropped: race|uninitialized|order
      //! arrival that releases nothing: race: arrive => arrive.relaxed
      nvvm.cluster.arrive
      //! wait for the cluster dropped: race|uninitialized|order|deadlock
      nvvm.cluster.wait
      %w = llvm.load %ps : !llvm.ptr<3> -> i32
      //! own number twice: numbers: %w => %v
      %s = llvm.add %v, %w : i32
      %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %s, %py : i32, !llvm.ptr<1>
      llvm.return
    }
  }
}
