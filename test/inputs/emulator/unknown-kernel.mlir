module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      %n = shape.const_size 1
      %z = arith.constant 0 : i32
      %w = shape.const_witness true
      %m = shape.const_size 2
      gpu.return
    }
  }
}
