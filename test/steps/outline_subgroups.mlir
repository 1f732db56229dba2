// The kernel states the size of its subgroups, and its module the GPU.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step outline_subgroups
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set target=pvc | FileCheck %s --check-prefix=PVC

// CHECK: gpu.launch_func @launch_kernel::@launch_kernel
// CHECK: gpu.module @launch_kernel [#xevm.target]
// CHECK: gpu.func @launch_kernel({{.*}} kernel attributes {{.*}}intel_reqd_sub_group_size = 16 : i32
// PVC: gpu.module @launch_kernel [#xevm.target<chip = "pvc">]
func.func @launch(%A: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    memref.store %zero, %A[%tx] : memref<64xf32>
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
