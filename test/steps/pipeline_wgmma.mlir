// A step of k waits for the product of the one before, and releases the slot that that one has read; behind the loop the
// last is waited for, and its slot released. Left out, each step waits for its own product.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wgmma --set persistent_blocks=0 --through pipeline_wgmma
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --without pipeline_wgmma | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --set block_k=128 --set stages=2 | FileCheck %s --check-prefix=STEP
// RUN: %{opt} --set stages=1 -o %t.one
// RUN: %{opt} --set stages=1 --without pipeline_wgmma -o %t.without
// RUN: diff %t.one %t.without

// CHECK: [[first:%.+]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create
// CHECK: [[empty:%.+]] = nvgpu.mbarrier.create
// CHECK: [[all:%.+]]:4 = scf.for [[k:%.+]] = %c0 to %c128 step %c64 iter_args([[slot:%.+]] = %c0, {{.*}} = %{{.*}}, {{.*}} = %{{.*}}, [[previous:%.+]] = %c0)
// CHECK: [[next:%.+]] = nvgpu.warpgroup.mma {{.*}} {transposeB} :
// CHECK: [[later:%.+]] = arith.cmpi ne, [[k]], %c0
// CHECK: [[releases:%.+]] = arith.andi %{{.*}}, [[later]]
// CHECK: scf.if [[releases]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[previous]]]
// CHECK-NOT: nvgpu.mbarrier.arrive
// CHECK: scf.yield %{{.*}}, %{{.*}}, [[next]], [[slot]] :
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: scf.if
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[all]]#3]
// CHECK-NOT: nvgpu.mbarrier.arrive
// CHECK: "tc.warpgroup_mma_store"([[all]]#2

// WITHOUT: nvgpu.warpgroup.mma {{.*}} {transposeB, waitGroup = 0 : i64}
// WITHOUT-NOT: nvvm.wgmma.wait
// WITHOUT: nvgpu.mbarrier.arrive
// WITHOUT-NOT: {{nvgpu.mbarrier.arrive|nvvm.wgmma.wait}}

// k of one step: there is nothing to keep in flight, and the one product is waited for.
// STEP: nvgpu.warpgroup.mma {{.*}} {transposeB, waitGroup = 0 : i64}
// STEP-NOT: nvvm.wgmma.wait

// With one slot there is nothing to keep in flight either: the next product would wait for the slot that the last reads,
// which would be released behind the next product. (The two results above are the same.)
