// In front of the loop three of the four slots are filled; the loop issues the loads of three steps later, behind its
// product, as long as there are such steps.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma_multistage --through multistage_loads
// RUN: %stepladder payload matmul --m 256 --n 256 --k 512 -o %t.mlir
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --without multistage_loads | FileCheck %s --check-prefix=WITHOUT
// RUN: %stepladder payload matmul --m 256 --n 256 --k 104 | %stepladder-opt - --pipeline wgmma_multistage --set stages=8 --set block_n=64 --through multistage_loads | FileCheck %s --check-prefix=FEW

// CHECK: [[full:%.+]] = nvgpu.mbarrier.create -> {{.*}}num_barriers = 4>
// CHECK: [[empty:%.+]] = nvgpu.mbarrier.create
// CHECK: [[filled:%.+]]:2 = scf.for [[k:%.+]] = %c0 to %c192 step %c64 iter_args([[slot:%.+]] = %c0, [[parity:%.+]] = %false) -> (index, i1) {
// CHECK: nvgpu.mbarrier.try_wait.parity [[empty]]{{\[}}[[slot]]]
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]]{{\[}}[[slot]]], %c32768
// CHECK-COUNT-3: nvgpu.tma.async.load {{.*}}, [[full]]{{\[}}[[slot]]]
// CHECK-NOT: {{nvgpu.tma.async.load|nvgpu.warpgroup.mma %}}
// CHECK: scf.for [[k:%.+]] = %c0 to %c512 step %c64 iter_args([[slot:%.+]] = %c0, [[parity:%.+]] = %false, {{.*}}, [[ahead:%.+]] = [[filled]]#0, [[ahead_parity:%.+]] = [[filled]]#1)
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: nvgpu.mbarrier.try_wait.parity [[full]]{{\[}}[[slot]]], [[parity]]
// CHECK: nvgpu.warpgroup.mma
// CHECK: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[slot]]]
// CHECK: [[later:%.+]] = arith.addi [[k]], %c192
// CHECK: [[there:%.+]] = arith.cmpi ult, [[later]], %c512
// CHECK: [[issues:%.+]] = arith.andi %{{.*}}, [[there]]
// CHECK: [[before:%.+]] = arith.xori [[ahead_parity]], %true
// CHECK: scf.if [[issues]] {
// CHECK: nvgpu.mbarrier.try_wait.parity [[empty]]{{\[}}[[ahead]]], [[before]]
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]]{{\[}}[[ahead]]], %c32768
// CHECK: nvgpu.tma.async.load {{.*}}[[later]]{{.*}}, [[full]]{{\[}}[[ahead]]]
// CHECK-COUNT-2: nvgpu.tma.async.load {{.*}}, [[later]]], [[full]]{{\[}}[[ahead]]]
// CHECK-NOT: nvgpu.tma.async.load

// Nothing runs ahead: a step issues its loads and waits for them.
// WITHOUT: scf.for {{.*}} to %c512 step %c64
// WITHOUT-NEXT: scf.if
// WITHOUT: nvgpu.tma.async.load
// WITHOUT: nvgpu.warpgroup.mma
// WITHOUT-NOT: nvgpu.tma.async.load

// Eight slots and two steps of k: both are filled, none is left to issue.
// FEW: scf.for {{.*}} = %c0 to %c128 step %c64 iter_args({{.*}}) -> (index, i1) {
// FEW: arith.addi %{{.*}}, %c448
// FEW: arith.cmpi ult, %{{.*}}, %c128
