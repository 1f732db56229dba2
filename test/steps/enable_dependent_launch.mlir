// Behind the initialisation of barriers a kernel lets the next begin, and waits for the one before: all threads, and in
// front of the first access to memory. Launches that are ordered, or the step left out, do neither.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wgmma --through enable_dependent_launch
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set cluster_m=2 | FileCheck %s --check-prefix=CLUSTERS
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wgmma --without enable_dependent_launch --through tma_store_epilogue | FileCheck %s --check-prefix=ORDERED
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wgmma --set dependent_launch=false --through tma_store_epilogue | FileCheck %s --check-prefix=ORDERED

// CHECK-NOT: nvgpu.tma.async.load
// CHECK: nvgpu.tma.prefetch.descriptor
// CHECK: gpu.barrier
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK: scf.if
// CHECK: nvgpu.tma.async.load
// CHECK-NOT: griddepcontrol

// CLUSTERS: nvvm.cluster.wait
// CLUSTERS-NEXT: nvvm.griddepcontrol launch_dependents
// CLUSTERS-NEXT: nvvm.griddepcontrol wait

// ORDERED-NOT: griddepcontrol
