// The sums of a block have a whole tile in shared memory, whose part inside of C is what starts from C and is written
// to it. A and B are padded to whole tiles.
//
// DEFINE: %{front} = --pipeline wgmma --through stage_c_in_shared_memory
// DEFINE: %{ragged} = %stepladder payload matmul --m 200 --n 300 --k 100
// RUN: %{ragged} | %stepladder-opt - %{front} | FileCheck %s
// RUN: %{ragged} --no-accumulate | %stepladder-opt - %{front} | FileCheck %s --check-prefix=ZERO
// RUN: %{ragged} --no-accumulate --c-type f16 | %stepladder-opt - %{front} | FileCheck %s --check-prefix=ROUNDED
// RUN: %stepladder-opt %payloads/accumulate.mlir %{front} | FileCheck %s --check-prefix=WHOLE
// RUN: %stepladder-opt %payloads/product.mlir %{front} | FileCheck %s --check-prefix=WHOLE-ZERO

// CHECK: scf.forall
// CHECK: [[ROWS:%.+]] = affine.min
// CHECK: [[COLUMNS:%.+]] = affine.min
// CHECK: [[C:%.+]] = tensor.extract_slice {{.*}} {{\[}}[[ROWS]], [[COLUMNS]]]
// CHECK: [[A:%.+]] = tensor.pad {{.*}} nofold low[0, 0] high[{{%.+}}, 28]
// CHECK: tensor<?x100xf16> to tensor<128x128xf16>
// CHECK: [[B:%.+]] = tensor.pad {{.*}} nofold low[0, 0] high[28, {{%.+}}]
// CHECK: tensor<100x?xf16> to tensor<128x256xf16>
// CHECK: [[SUMS:%.+]] = memref.alloc() {operand_c} : memref<128x256xf32, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[SUMS]] :
// CHECK: [[INSIDE:%.+]] = memref.subview [[SUMS]][0, 0] {{\[}}[[ROWS]], [[COLUMNS]]]
// CHECK: [[FROM:%.+]] = bufferization.to_buffer [[C]] read_only
// CHECK: linalg.copy {operand_c} ins([[FROM]] : {{.*}}) outs([[INSIDE]] :
// CHECK: [[START:%.+]] = bufferization.to_tensor [[SUMS]] restrict writable
// CHECK: [[D:%.+]] = linalg.matmul ins([[A]], [[B]] : {{.*}}) outs([[START]] : tensor<128x256xf32>)
// CHECK: [[d:%.+]] = tensor.extract_slice [[D]][0, 0] {{\[}}[[ROWS]], [[COLUMNS]]]
// CHECK: linalg.copy {operand_c} ins([[d]] : tensor<?x?xf32>) outs([[C]] : tensor<?x?xf32>)
// CHECK-NOT: {{linalg|memref.alloc}}

// ZERO: [[SUMS:%.+]] = memref.alloc() {operand_c} : memref<128x256xf32, #gpu.address_space<workgroup>>
// ZERO-NEXT: linalg.fill {{.*}} outs([[SUMS]] :
// ZERO-NOT: linalg.copy
// ZERO: linalg.matmul
// ZERO: linalg.copy {operand_c} ins({{.*}} : tensor<?x?xf32>) outs({{.*}} : tensor<?x?xf32>)
// ZERO-NOT: linalg.

// ROUNDED-NOT: linalg.copy
// ROUNDED: memref.alloc() {operand_c} : memref<128x256xf32, #gpu.address_space<workgroup>>
// ROUNDED-NEXT: linalg.fill
// ROUNDED: [[D:%.+]] = linalg.matmul
// ROUNDED: [[INSIDE:%.+]] = tensor.extract_slice [[D]][0, 0]
// ROUNDED: linalg.generic {{.*}} ins([[INSIDE]] : tensor<?x?xf32>) outs({{.*}} : tensor<?x?xf16>) attrs = {operand_c}
// ROUNDED-NOT: linalg.copy

// WHOLE-NOT: {{linalg.fill|affine.min|\?}}
// WHOLE: tensor.pad {{.*}} nofold low[0, 0] high[0, 0]
// WHOLE: tensor<128x128xf16> to tensor<128x128xf16>
// WHOLE: [[SUMS:%.+]] = memref.alloc() {operand_c} : memref<128x256xf32, #gpu.address_space<workgroup>>
// WHOLE: linalg.copy {operand_c} ins({{.*}}) outs([[SUMS]] :
// WHOLE: linalg.matmul
// WHOLE: linalg.copy {operand_c} ins({{.*}} : tensor<128x256xf32>) outs({{.*}} : tensor<128x256xf32>)

// WHOLE-ZERO: [[SUMS:%.+]] = memref.alloc() {operand_c}
// WHOLE-ZERO-NEXT: linalg.fill {{.*}} outs([[SUMS]] :
// WHOLE-ZERO-NOT: linalg.copy
// WHOLE-ZERO: linalg.matmul
// WHOLE-ZERO: linalg.copy {operand_c}
