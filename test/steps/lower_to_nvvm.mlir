// The kernel is LLVM and NVVM dialect only, for the target of the knob, with bare pointers as its arguments. Divisions of
// thread and block numbers are unsigned.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through lower_transfers | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set target=sm_90a | FileCheck %s --check-prefix=TARGET
// RUN: %stepladder-opt %payloads/accumulate_f16.mlir --pipeline wmma | FileCheck %s --check-prefix=HALF

// BEFORE: gpu.func @matmul_kernel(
// BEFORE: gpu.subgroup_mma_compute

// CHECK: gpu.launch_func
// CHECK: gpu.module @matmul_kernel [#nvvm.target<O = 3, chip = "sm_80">] {
// CHECK-NOT: {{= gpu\.|^ *gpu\.| scf\.| affine\.| memref\.| arith\.| vector\.| cf\.|unrealized|sdiv|llvm.select}}
// CHECK: llvm.func @matmul_kernel(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes {gpu.kernel, {{.*}}nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK-COUNT-16: nvvm.wmma.load {{.*}} #nvvm.mma_frag<c>
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
// CHECK: llvm.cond_br
// CHECK-COUNT-8: llvm.store {{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
// CHECK-COUNT-32: nvvm.wmma.mma {{.*}}eltypeA = #nvvm.mma_type<f16>, eltypeB = #nvvm.mma_type<f32>, k = 16 : i32, {{.*}} m = 16 : i32, n = 16 : i32
// CHECK: llvm.br
// CHECK: nvvm.barrier
// CHECK-COUNT-32: nvvm.wmma.mma
// CHECK-COUNT-16: nvvm.wmma.store
// CHECK-NOT: {{= gpu\.|^ *gpu\.| scf\.| affine\.| memref\.| arith\.| vector\.| cf\.|unrealized|sdiv|llvm.select}}

// TARGET: gpu.module @matmul_kernel [#nvvm.target<O = 3, chip = "sm_90a">] {

// HALF: nvvm.wmma.mma {{.*}}eltypeB = #nvvm.mma_type<f16>
