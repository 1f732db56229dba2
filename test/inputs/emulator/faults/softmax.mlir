// Softmax of rows of 64: a warp a row, two numbers a thread, maxima and sums by shuffles.
// launch: grid=2 block=64
// arguments: 4x64xf32,4x64xf32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @softmax(%x: memref<4x64xf32>, %y: memref<4x64xf32>) kernel {
      %c2 = arith.constant 2 : index
      %c32 = arith.constant 32 : index
      %w = arith.constant 32 : i32
      %c1 = arith.constant 1 : i32
      %b = gpu.block_id x
      %warp = gpu.subgroup_id : index
      %lane = gpu.lane_id
      //! rows of a block: race|unwritten-output: muli %b, %c2 => muli %b, %b
      %r0 = arith.muli %b, %c2 : index
      //! row of the block for both warps: race|unwritten-output: %warp : => %b :
      %row = arith.addi %r0, %warp : index
      //! second half is the first: unwritten-output: addi %lane, %c32 => remui %lane, %c32
      //! second half begins too late: out-of-bounds: addi %lane, %c32 => addi %c32, %c32
      %next = arith.addi %lane, %c32 : index
      //! first half of another row: numbers: %row => %b
      %u = memref.load %x[%row, %lane] : memref<4x64xf32>
      %v = memref.load %x[%row, %next] : memref<4x64xf32>
      %m0 = arith.maximumf %u, %v : f32
      //! first distance left out: numbers: 16 : => 8 :
      %d16 = arith.constant 16 : i32
      %d8 = arith.constant 8 : i32
      %d4 = arith.constant 4 : i32
      %d2 = arith.constant 2 : i32
      %s1, %p1 = gpu.shuffle xor %m0, %d16, %w : f32
      %m1 = arith.maximumf %m0, %s1 : f32
      %s2, %p2 = gpu.shuffle xor %m1, %d8, %w : f32
      %m2 = arith.maximumf %m1, %s2 : f32
      %s3, %p3 = gpu.shuffle xor %m2, %d4, %w : f32
      %m3 = arith.maximumf %m2, %s3 : f32
      %s4, %p4 = gpu.shuffle xor %m3, %d2, %w : f32
      %m4 = arith.maximumf %m3, %s4 : f32
      %s5, %p5 = gpu.shuffle xor %m4, %c1, %w : f32
      %m5 = arith.maximumf %m4, %s5 : f32
      //! maximum of the thread alone: numbers: %m5 => %m0
      %a0 = arith.subf %u, %m5 : f32
      %a1 = arith.subf %v, %m5 : f32
      %e0 = math.exp %a0 : f32
      //! first half twice: numbers: %a1 => %a0
      %e1 = math.exp %a1 : f32
      //! sum of one half: numbers: %e0, %e1 => %e0, %e0
      %t0 = arith.addf %e0, %e1 : f32
      //! sum of half a warp: numbers: %d16, %w => %d16, %d16
      %q1, %o1 = gpu.shuffle xor %t0, %d16, %w : f32
      %t1 = arith.addf %t0, %q1 : f32
      //! sum from one side: numbers: xor => down
      %q2, %o2 = gpu.shuffle xor %t1, %d8, %w : f32
      //! partial sum dropped: numbers: %q2 => %t1
      %t2 = arith.addf %t1, %q2 : f32
      //! distance twice: numbers: %d4 => %d8
      %q3, %o3 = gpu.shuffle xor %t2, %d4, %w : f32
      %t3 = arith.addf %t2, %q3 : f32
      %q4, %o4 = gpu.shuffle xor %t3, %d2, %w : f32
      %t4 = arith.addf %t3, %q4 : f32
      //! value of another step: numbers: %t4 => %t3
      %q5, %o5 = gpu.shuffle xor %t4, %c1, %w : f32
      %t5 = arith.addf %t4, %q5 : f32
      //! operands of the division swapped: numbers: %e0, %t5 => %t5, %e0
      %y0 = arith.divf %e0, %t5 : f32
      %y1 = arith.divf %e1, %t5 : f32
      memref.store %y0, %y[%row, %lane] : memref<4x64xf32>
      //! second half stored over the first: unwritten-output: %next => %lane
      //! second half not stored: unwritten-output
      memref.store %y1, %y[%row, %next] : memref<4x64xf32>
      gpu.return
    }
  }
}
