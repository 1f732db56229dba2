// A launch has 16 threads for each subgroup.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step launch_subgroups
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set sg_m=64 | FileCheck %s --check-prefix=HALF

// CHECK: gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c512{{[_0-9]*}}, %{{.*}} = %c1{{[_0-9]*}},
// CHECK: intel_reqd_sub_group_size = 16 : i32
// HALF: gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c256{{[_0-9]*}}, %{{.*}} = %c1{{[_0-9]*}},
func.func @launch() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c1, %by = %c1, %bz = %c1) {
    gpu.terminator
  }
  return
}
