// The tiles of A and B are copied into shared memory, C is not. Left out, the matmul reads the buffers themselves.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through stage_in_shared_memory | FileCheck %s
// RUN: %{opt} --through bufferize | FileCheck %s --check-prefix=STAGED
// RUN: %{opt} --through bufferize --without stage_in_shared_memory,prefetch_to_registers | FileCheck %s --check-prefix=WITHOUT

// CHECK: scf.for
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_a} ins({{.*}}) outs([[A]] :
// CHECK: [[a:%.+]] = bufferization.to_tensor [[A]] restrict writable
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_b} ins({{.*}}) outs([[B]] :
// CHECK: [[b:%.+]] = bufferization.to_tensor [[B]] restrict writable
// CHECK: linalg.matmul ins([[a]], [[b]] :
// CHECK-NOT: tensor.pad
// CHECK-NOT: memref.alloc

// STAGED: linalg.matmul ins({{.*}}#gpu.address_space<workgroup>>, {{.*}}#gpu.address_space<workgroup>>)

// WITHOUT-NOT: workgroup
// WITHOUT: linalg.matmul ins({{.*}} : memref<128x32xf16, strided<[128, 1], offset: ?>>, memref<32x128xf16, strided<[256, 1], offset: ?>>)
// WITHOUT-NOT: workgroup
