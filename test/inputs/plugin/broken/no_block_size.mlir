// A kernel whose block size is not known.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @kernel() attributes {nvvm.kernel} {
      llvm.return
    }
  }
}
