// A kernel takes a pointer for each memref; what built-ins return through the stack is at the entry of the function.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step lower_xevm_to_llvm --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// CHECK-LABEL: func.func @launches
// CHECK: gpu.launch_func @kernels::@kernel {{.*}} args(%A : memref<64x64xf16>, %n : index, %C : memref<64xf32>)
// CHECK: llvm.func spir_funccc @_Z41intel_sub_group_2d_block_read_16b_8r16x1cPU3AS1viiiDv2_iPt(
// CHECK: llvm.func spir_kernelcc @kernel(%{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: i64, %{{[^:]*}}: !llvm.ptr<1>)
// CHECK-SAME: intel_reqd_sub_group_size = 16 : i32
// CHECK-DAG: [[count:%.+]] = llvm.mlir.constant(8 : i32)
// CHECK-DAG: llvm.alloca [[count]] x i16
// CHECK: ^bb1(
// CHECK-NOT: llvm.alloca
// CHECK: llvm.call spir_funccc @_Z41intel_sub_group_2d_block_read_16b_8r16x1cPU3AS1viiiDv2_iPt(
// CHECK-NOT: llvm.alloca
// CHECK: llvm.return
// CHECK: // -----
module attributes {gpu.container_module} {
  func.func @launches(%A: memref<64x64xf16>, %n: index, %C: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
        args(%A : memref<64x64xf16>, %n : index, %C : memref<64xf32>)
    return
  }
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @kernel(%A: memref<64x64xf16>, %n: index, %C: memref<64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = arith.constant 0 : i32
      %width = arith.constant 128 : i32
      %height = arith.constant 64 : i32
      %zero = arith.constant 0.0 : f16
      %base = memref.extract_aligned_pointer_as_index %A : memref<64x64xf16> -> index
      %number = arith.index_cast %base : index to i64
      %address = llvm.inttoptr %number : i64 to !llvm.ptr<1>
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f16 {
        %y = arith.index_cast %i : index to i32
        %w = xevm.blockload2d %address, %width, %height, %width, %x, %y <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32,
          tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}>
          : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>
        %v = vector.bitcast %w : vector<8xi16> to vector<8xf16>
        %e = vector.extract %v[0] : f16 from vector<8xf16>
        %t = arith.addf %s, %e : f16
        scf.yield %t : f16
      }
      %f = arith.extf %sum : f16 to f32
      memref.store %f, %C[%c0] : memref<64xf32>
      gpu.return
    }
  }
}

// -----

// Vectors of one element become numbers.
// CHECK-LABEL: llvm.func spir_kernelcc @one(
// CHECK: [[x:%.+]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK-NOT: vector<1xf32>
// CHECK: llvm.fadd %{{.*}}, %{{.*}} : f32
// CHECK-NOT: vector<1xf32>
// CHECK: // -----
module attributes {gpu.container_module} {
  func.func @launches_one(%A: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%A : memref<64xf32>)
    return
  }
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @one(%A: memref<64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %bias = arith.constant dense<1.5> : vector<1xf32>
      %some = vector.load %A[%c0] : memref<64xf32>, vector<8xf32>
      %x = vector.load %A[%c0] : memref<64xf32>, vector<1xf32>
      %last = vector.extract_strided_slice %some {offsets = [7], sizes = [1], strides = [1]} : vector<8xf32> to vector<1xf32>
      %y = arith.addf %x, %bias : vector<1xf32>
      %z = arith.addf %y, %last : vector<1xf32>
      %e = vector.insert_strided_slice %z, %some {offsets = [3], strides = [1]} : vector<1xf32> into vector<8xf32>
      vector.store %e, %A[%c0] : memref<64xf32>, vector<8xf32>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @dynamic(%C: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{memref<?xf32> is passed: a kernel takes a pointer for a memref of static layout and offset 0}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%C : memref<?xf32>)
    return
  }
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @kernel(%C: memref<?xf32>) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @twice(%C: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%C : memref<4xf32>)
    // expected-error @below {{the kernel @kernel has another launch; accepted: a kernel with one launch}}
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%C : memref<4xf32>)
    return
  }
  gpu.module @kernels [#xevm.target<chip = "bmg">] {
    gpu.func @kernel(%C: memref<4xf32>) kernel {
      gpu.return
    }
  }
}
