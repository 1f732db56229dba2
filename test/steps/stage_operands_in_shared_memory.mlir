// A k step copies the parts of A and B that there are into whole tiles of zeros, and multiplies whole tiles.
//
// DEFINE: %{front} = --pipeline wgmma --through stage_operands_in_shared_memory
// DEFINE: %{ragged} = %stepladder payload matmul --m 200 --n 300
// RUN: %{ragged} --k 100 | %stepladder-opt - %{front} | FileCheck %s
// RUN: %{ragged} --k 128 | %stepladder-opt - %{front} | FileCheck %s --check-prefix=DEEP
// RUN: %{ragged} --k 40 | %stepladder-opt - %{front} | FileCheck %s --check-prefix=ONE
// RUN: %{ragged} --k 100 --a-layout column --b-layout column | %stepladder-opt - %{front} | FileCheck %s --check-prefix=TRANSPOSED
// RUN: %stepladder-opt %payloads/accumulate.mlir %{front} | FileCheck %s --check-prefix=WHOLE

// CHECK: #[[depth:.+]] = affine_map<(d0) -> (-d0 + 100, 64)>
// CHECK: [[ROWS:%.+]] = affine.min
// CHECK: [[COLUMNS:%.+]] = affine.min
// CHECK: [[A:%.+]] = tensor.extract_slice %{{.*}} {{\[}}[[ROWS]], 100]
// CHECK: [[B:%.+]] = tensor.extract_slice %{{.*}} [100, [[COLUMNS]]]
// CHECK-NOT: {{tensor.pad|scf.if}}
// CHECK: scf.for [[K:%.+]] = %c0 to %c128 step %c64 iter_args([[C:%.+]] =
// CHECK-NOT: affine.max
// CHECK: [[DEPTH:%.+]] = affine.min #[[depth]]([[K]])
// CHECK: [[a:%.+]] = tensor.extract_slice [[A]][0, [[K]]] {{\[}}[[ROWS]], [[DEPTH]]]
// CHECK: [[SHARED_A:%.+]] = memref.alloc() {operand_a} : memref<128x64xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[SHARED_A]] :
// CHECK: [[INSIDE_A:%.+]] = memref.subview [[SHARED_A]][0, 0] {{\[}}[[ROWS]], [[DEPTH]]]
// CHECK: [[FROM_A:%.+]] = bufferization.to_buffer [[a]] read_only
// CHECK: linalg.copy {operand_a} ins([[FROM_A]] : {{.*}}) outs([[INSIDE_A]] :
// CHECK: [[TILE_A:%.+]] = bufferization.to_tensor [[SHARED_A]]
// CHECK: [[b:%.+]] = tensor.extract_slice [[B]]{{\[}}[[K]], 0] {{\[}}[[DEPTH]], [[COLUMNS]]]
// CHECK: [[SHARED_B:%.+]] = memref.alloc() {operand_b} : memref<64x256xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[SHARED_B]] :
// CHECK: [[INSIDE_B:%.+]] = memref.subview [[SHARED_B]][0, 0] {{\[}}[[DEPTH]], [[COLUMNS]]]
// CHECK: linalg.copy {operand_b} {{.*}} outs([[INSIDE_B]] :
// CHECK: [[TILE_B:%.+]] = bufferization.to_tensor [[SHARED_B]]
// CHECK: linalg.matmul ins([[TILE_A]], [[TILE_B]] : tensor<128x64xf16>, tensor<64x256xf16>) outs([[C]] : tensor<128x256xf32>)
// CHECK-NOT: {{tensor.pad|scf.if}}

// DEEP: scf.for %
// DEEP-NOT: affine.min
// DEEP: [[A:%.+]] = memref.alloc() {operand_a}
// DEEP: memref.subview [[A]][0, 0] {{\[}}{{%.+}}, 64]

// A reduction of one step has no loop.
// ONE-NOT: {{scf.for |tensor.pad}}
// ONE-DAG: linalg.copy {operand_a}
// ONE-DAG: linalg.copy {operand_b}
// ONE: linalg.matmul ins({{.*}} : tensor<128x64xf16>, tensor<64x256xf16>)
// ONE-NOT: {{scf.for |tensor.pad}}

// TRANSPOSED: memref.alloc() {operand_a} : memref<64x128xf16, #gpu.address_space<workgroup>>
// TRANSPOSED: memref.alloc() {operand_b} : memref<256x64xf16, #gpu.address_space<workgroup>>
// TRANSPOSED: linalg.matmul indexing_maps = {{.*}} ins({{.*}} : tensor<64x128xf16>, tensor<256x64xf16>) outs({{.*}} : tensor<128x256xf32>)

// WHOLE-NOT: {{affine.min|linalg.fill|tensor.pad|\?x}}
// WHOLE: scf.for %
// WHOLE: [[A:%.+]] = memref.alloc() {operand_a} : memref<128x64xf16, #gpu.address_space<workgroup>>
// WHOLE: linalg.copy {operand_a} {{.*}} outs([[A]] :
// WHOLE: [[B:%.+]] = memref.alloc() {operand_b} : memref<64x256xf16, #gpu.address_space<workgroup>>
// WHOLE: linalg.copy {operand_b} {{.*}} outs([[B]] :
// WHOLE: linalg.matmul
// WHOLE-NOT: {{linalg.fill|tensor.pad}}
