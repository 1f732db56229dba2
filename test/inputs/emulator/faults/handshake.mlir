// y = x + 1 by two blocks of a cluster: the first writes tiles to the second's shared memory through counters in global
// memory; at the level of the LLVM dialect, with orders and scopes.
// launch: grid=2 block=64 reversed=1
// arguments: 4x64xi32,4x64xi32=out,2xi32=0,4x64xi32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @handshake(%x: !llvm.ptr<1>, %t: !llvm.ptr<1>, %f: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c1 = llvm.mlir.constant(1 : i32) : i32
      %c2 = llvm.mlir.constant(2 : i32) : i32
      //! a tile too few: numbers|unwritten-output: 4 : => 3 :
      %c4 = llvm.mlir.constant(4 : i32) : i32
      %c64 = llvm.mlir.constant(64 : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %b = nvvm.read.ptx.sreg.ctaid.x : i32
      %full = llvm.getelementptr %f[%c0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %first = llvm.icmp "eq" %tid, %c0 : i32
      //! both blocks are the first: race: "eq" %b, %c0 => "uge" %b, %c0
      %is_first = llvm.icmp "eq" %b, %c0 : i32
      llvm.cond_br %is_first, ^produce(%c0 : i32), ^wait(%c0 : i32)
    ^produce(%k: i32):
      %o = llvm.mul %k, %c64 : i32
      %i = llvm.add %o, %tid : i32
      %px = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %px : !llvm.ptr<1> -> i32
      %w = llvm.add %v, %c1 : i32
      //! tile at the place of the first: numbers|unwritten-output: [%i] => [%tid]
      %pt = llvm.getelementptr inbounds %t[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      //! tile not written: numbers|unwritten-output
      llvm.store %w, %pt : i32, !llvm.ptr<1>
      //! barrier before the release dropped: race
      nvvm.barrier
      llvm.cond_br %first, ^release, ^released
    ^release:
      //! released without order: race: release => monotonic
      //! released to the block: race: syncscope("device") => syncscope("block")
      //! counted down: deadlock: add %full => sub %full
      //! not counted: deadlock
      %was = llvm.atomicrmw add %full, %c1 syncscope("device") release : !llvm.ptr<1>, i32
      llvm.br ^released
    ^released:
      %k1 = llvm.add %k, %c1 : i32
      %again = llvm.icmp "slt" %k1, %c4 : i32
      llvm.cond_br %again, ^produce(%k1 : i32), ^end
    ^wait(%n: i32):
      llvm.cond_br %first, ^ask, ^go
    ^ask:
      //! asked without order: race: acquire => monotonic
      //! asked of the block: race: syncscope("device") => syncscope("block")
      %seen = llvm.load %full atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      //! waits for one tile less: race: "sgt" => "sge"
      %here = llvm.icmp "sgt" %seen, %n : i32
      llvm.cond_br %here, ^go, ^ask
    ^go:
      //! barrier after the wait dropped: race
      nvvm.barrier
      %o2 = llvm.mul %n, %c64 : i32
      %i2 = llvm.add %o2, %tid : i32
      %pt2 = llvm.getelementptr inbounds %t[%i2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v2 = llvm.load %pt2 : !llvm.ptr<1> -> i32
      %py = llvm.getelementptr inbounds %y[%i2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v2, %py : i32, !llvm.ptr<1>
      %n1 = llvm.add %n, %c1 : i32
      %more = llvm.icmp "slt" %n1, %c4 : i32
      llvm.cond_br %more, ^wait(%n1 : i32), ^end
    ^end:
      llvm.return
    }
  }
}
