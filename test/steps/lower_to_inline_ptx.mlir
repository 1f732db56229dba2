// What LLVM has no intrinsic for is PTX, descriptors are parameters by value, constant for the grid, and nothing is left
// that waits for a conversion in the kernel.
//
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wgmma --set epilogue=registers -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=PRODUCTS
// RUN: FileCheck %s --input-file %t --check-prefix=GONE

// CHECK: gpu.module @matmul_kernel
// CHECK: llvm.func @matmul_kernel(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %C: !llvm.ptr) attributes {{.*}}nvvm.kernel
// CHECK: llvm.inline_asm has_side_effects {{.*}}mbarrier.try_wait.parity.shared.b64
// Two steps of k, and four products in each.
// PRODUCTS-COUNT-4: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16
// PRODUCTS-NOT: wgmma.mma_async

// GONE: gpu.module @matmul_kernel
// GONE-NOT: {{nvgpu\.|memref\.|scf\.|affine\.|arith\.|vector\.|unrealized_conversion_cast|nvvm.wgmma.mma_async|nvvm.mbarrier.try_wait}}
