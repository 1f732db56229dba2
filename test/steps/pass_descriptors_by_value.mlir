// TMA descriptors become pointers, aligned to 64 bytes, of kernel and launch alike; other arguments stay what they are.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wgmma_single_stage
// RUN: %{opt} --through lower_to_wgmma | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through pass_descriptors_by_value | FileCheck %s

// BEFORE: gpu.func @matmul_kernel(%{{.*}}: !nvgpu.tensormap.descriptor<

// CHECK-DAG: [[a_map:%.+]] = nvgpu.tma.create.descriptor %{{.*}} box[%c128, %c64]
// CHECK-DAG: [[b_map:%.+]] = nvgpu.tma.create.descriptor %{{.*}} box[%c64, %c64]
// CHECK-DAG: builtin.unrealized_conversion_cast [[a_map]] : {{.*}} to !llvm.ptr
// CHECK-DAG: builtin.unrealized_conversion_cast [[b_map]] : {{.*}} to !llvm.ptr
// CHECK: gpu.launch_func
// CHECK-NOT: args({{.*}}tensormap
// CHECK: gpu.func @matmul_kernel([[a:%.+]]: !llvm.ptr {llvm.align = 64 : i64}, [[b:%.+]]: !llvm.ptr {llvm.align = 64 : i64}, %{{.*}}: memref<256x256xf32>) kernel
// CHECK-DAG: builtin.unrealized_conversion_cast [[a]] : !llvm.ptr to !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16
// CHECK-DAG: builtin.unrealized_conversion_cast [[b]] : !llvm.ptr to !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16
