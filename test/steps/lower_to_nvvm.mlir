// The kernel is LLVM and NVVM dialect only, for the target of the knob, with bare pointers as its arguments. Divisions
// of thread and block numbers are unsigned.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wmma --step lower_to_nvvm --split-input-file
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set target=sm_90a | FileCheck %s --check-prefix=TARGET

// CHECK: gpu.launch_func
// CHECK: gpu.module @matmul_kernel [#nvvm.target<O = 3, chip = "sm_80">] {
// CHECK-NOT: {{= gpu\.|^ *gpu\.| scf\.| affine\.| memref\.| arith\.| vector\.| cf\.|unrealized|sdiv|llvm.select}}
// CHECK: llvm.func @matmul_kernel(%A: !llvm.ptr, %C: !llvm.ptr) attributes {gpu.kernel,
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>
// CHECK: llvm.udiv
// CHECK: nvvm.wmma.load {{.*}} #nvvm.mma_frag<c>
// CHECK: llvm.cond_br
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: nvvm.wmma.mma {{.*}}eltypeA = #nvvm.mma_type<f16>, eltypeB = #nvvm.mma_type<f32>, k = 16 : i32, {{.*}} m = 16
// CHECK-SAME: : i32, n = 16 : i32
// CHECK: llvm.br
// CHECK: nvvm.wmma.store
// CHECK: llvm.mlir.global private @tile() {addr_space = 3 : i32, alignment = 128 : i64}
// CHECK-SAME: : !llvm.array<64 x array<64 x f16>>
// CHECK-NOT: {{= gpu\.|^ *gpu\.| scf\.| affine\.| memref\.| arith\.| vector\.| cf\.|unrealized|sdiv|llvm.select}}
// CHECK: // -----

// TARGET: gpu.module @matmul_kernel [#nvvm.target<O = 3, chip = "sm_90a">] {
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
#row = affine_map<()[s0, s1] -> (s0 * 32 + s1 floordiv 2)>
module attributes {gpu.container_module} {
  func.func @matmul(%A: memref<64x64xf16>, %C: memref<64x64xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @matmul_kernel::@matmul_kernel blocks in (%c1, %c2, %c1) threads in (%c64, %c1, %c1)
      args(%A : memref<64x64xf16>, %C : memref<64x64xf32>)
    return
  }
  gpu.module @matmul_kernel {
    gpu.func @matmul_kernel(%A: memref<64x64xf16>, %C: memref<64x64xf32>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 2, 1>} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %tile = memref.get_global @tile : memref<64x64xf16, #gpu.address_space<workgroup>>
      %y = gpu.block_id y
      %x = gpu.thread_id x
      %row = affine.apply #row()[%y, %x]
      %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 64 : index} : memref<64x64xf32> -> !c
      %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!c) {
        %0 = vector.load %A[%row, %k] {alignment = 16 : i64} : memref<64x64xf16>, vector<8xf16>
        vector.store %0, %tile[%row, %k] {alignment = 16 : i64}
            : memref<64x64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
        gpu.barrier
        %a = gpu.subgroup_mma_load_matrix %tile[%c0, %c0] {leadDimension = 64 : index}
            : memref<64x64xf16, #gpu.address_space<workgroup>> -> !a
        %b = gpu.subgroup_mma_load_matrix %tile[%c0, %c16] {leadDimension = 64 : index}
            : memref<64x64xf16, #gpu.address_space<workgroup>> -> !b
        %next = gpu.subgroup_mma_compute %a, %b, %sum : !a, !b -> !c
        scf.yield %next : !c
      }
      gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 64 : index}
          : !c, memref<64x64xf32>
      gpu.return
    }
    memref.global "private" @tile : memref<64x64xf16, #gpu.address_space<workgroup>> = uninitialized
        {alignment = 128 : i64}
  }
}

// -----

// An array without a size is external; the products of f16 sums say so.
// CHECK-LABEL: llvm.func @half(
// CHECK: nvvm.wmma.mma {{.*}}eltypeB = #nvvm.mma_type<f16>
// CHECK: llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64{{.*}}}
// CHECK-SAME: : !llvm.array<0 x i8>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf16, "COp">
gpu.module @kernels {
  gpu.func @half(%C: memref<16x16xf16>) kernel {
    %c0 = arith.constant 0 : index
    %array = memref.get_global @shared_memory : memref<0xi8, #gpu.address_space<workgroup>>
    %bytes = memref.reinterpret_cast %array to offset: [0], sizes: [512], strides: [1]
        : memref<0xi8, #gpu.address_space<workgroup>> to memref<512xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %bytes[%c0][] : memref<512xi8, #gpu.address_space<workgroup>>
        to memref<16x16xf16, #gpu.address_space<workgroup>>
    %a = gpu.subgroup_mma_load_matrix %tile[%c0, %c0] {leadDimension = 16 : index}
        : memref<16x16xf16, #gpu.address_space<workgroup>> -> !a
    %b = gpu.subgroup_mma_load_matrix %tile[%c0, %c0] {leadDimension = 16 : index}
        : memref<16x16xf16, #gpu.address_space<workgroup>> -> !b
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !c
    %d = gpu.subgroup_mma_compute %a, %b, %c : !a, !b -> !c
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf16>
    gpu.return
  }
  memref.global @shared_memory : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
}

// -----

// Sums of i32 wrap.
// CHECK-LABEL: llvm.func @wraps(
// CHECK-NOT: satfinite
// CHECK: nvvm.mma.sync {{.*}}intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>
// CHECK-NOT: satfinite
gpu.module @kernels {
  gpu.func @wraps(%A: memref<4x4xi8>, %B: memref<2x4xi8>, %C: memref<2x2xi32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i8
    %none = arith.constant 0 : i32
    %a = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<4x4xi8>, vector<4x4xi8>
    %b = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<2x4xi8>, vector<2x4xi8>
    %c = vector.transfer_read %C[%c0, %c0], %none {in_bounds = [true, true]} : memref<2x2xi32>, vector<2x2xi32>
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
    vector.transfer_write %d, %C[%c0, %c0] {in_bounds = [true, true]} : vector<2x2xi32>, memref<2x2xi32>
    gpu.return
  }
}
