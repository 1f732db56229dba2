// Kernels that run alone (test/emulator/kernel.test, test/unit/test_emulator_kernel.py), and references of them.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @axpy(%x: memref<?xf32>, %y: memref<?xf32>, %a: f32, %n: index) kernel {
      %i = gpu.global_id x
      %in = arith.cmpi ult, %i, %n : index
      scf.if %in {
        %u = memref.load %x[%i] : memref<?xf32>
        %v = memref.load %y[%i] : memref<?xf32>
        %p = arith.mulf %a, %u : f32
        %s = arith.addf %p, %v : f32
        memref.store %s, %y[%i] : memref<?xf32>
      }
      gpu.return
    }

    gpu.func @tile(%x: memref<8x4xf32, strided<[6, 1], offset: 2>>, %y: memref<4x8xf32>) kernel {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %u = memref.load %x[%t, %b] : memref<8x4xf32, strided<[6, 1], offset: 2>>
      memref.store %u, %y[%b, %t] : memref<4x8xf32>
      gpu.return
    }

    llvm.func @scale(%x: !llvm.ptr, %y: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %b = nvvm.read.ptx.sreg.ctaid.x : i32
      %d = nvvm.read.ptx.sreg.ntid.x : i32
      %o = llvm.mul %b, %d : i32
      %i = llvm.add %o, %t : i32
      %in = llvm.icmp "slt" %i, %n : i32
      llvm.cond_br %in, ^do, ^end
    ^do:
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %u = llvm.load %p : !llvm.ptr -> f32
      %v = llvm.fadd %u, %u : f32
      llvm.store %v, %q : f32, !llvm.ptr<1>
      llvm.br ^end
    ^end:
      llvm.return
    }

    // Two memrefs, each expanded to its descriptor: y[b, t] = x[t, b] + n.
    llvm.func @expanded(%x0: !llvm.ptr, %x: !llvm.ptr, %xo: i64, %xm: i64, %xn: i64, %xs: i64, %xt: i64,
                        %y0: !llvm.ptr, %y: !llvm.ptr, %yo: i64, %ym: i64, %yn: i64, %ys: i64, %yt: i64, %n: i64)
        attributes {nvvm.kernel} {
      %t0 = nvvm.read.ptx.sreg.tid.x : i32
      %b0 = nvvm.read.ptx.sreg.ctaid.x : i32
      %t = llvm.sext %t0 : i32 to i64
      %b = llvm.sext %b0 : i32 to i64
      %r = llvm.mul %t, %xs : i64
      %i = llvm.add %r, %b : i64
      %q = llvm.mul %b, %ys : i64
      %j = llvm.add %q, %t : i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %u = llvm.load %p : !llvm.ptr -> f32
      %f = llvm.sitofp %n : i64 to f32
      %v = llvm.fadd %u, %f : f32
      %o = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %v, %o : f32, !llvm.ptr
      llvm.return
    }

    gpu.func @endless() kernel {
      cf.br ^again
    ^again:
      %t = gpu.thread_id x
      cf.br ^again
    }
  }

  func.func @golden(%x: tensor<100xf32>, %y: tensor<100xf32>, %a: f32, %n: index) -> tensor<100xf32> {
    %as = tensor.splat %a : tensor<100xf32>
    %e = tensor.empty() : tensor<100xf32>
    %p = linalg.mul ins(%as, %x : tensor<100xf32>, tensor<100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
    %s = linalg.add ins(%p, %y : tensor<100xf32>, tensor<100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
    return %s : tensor<100xf32>
  }

  func.func @transposed(%x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %t = linalg.transpose ins(%x : tensor<8x4xf32>) outs(%y : tensor<4x8xf32>) permutation = [1, 0]
    return %t : tensor<4x8xf32>
  }

  func.func @twice(%x: tensor<100xf32>, %y: tensor<100xf32>, %n: i32) -> tensor<100xf32> {
    %s = linalg.add ins(%x, %x : tensor<100xf32>, tensor<100xf32>) outs(%y : tensor<100xf32>) -> tensor<100xf32>
    return %s : tensor<100xf32>
  }
}
