// The shared tiles are views of one array, one behind the other. Up to 48 KB it is static; above, it is dynamic: external
// and without a size, and the launch says how many bytes it needs.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through hoist_accumulators | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through pack_shared_memory | FileCheck %s
// RUN: %{opt} --through pack_shared_memory --set block_m=256 | FileCheck %s --check-prefix=DYNAMIC
// RUN: %{opt} --set block_m=256 | FileCheck %s --check-prefix=EXTERNAL
// RUN: %{opt} --through pack_shared_memory --set padding=0 --set block_k=64 --set stages=1 --set block_m=256 | FileCheck %s --check-prefix=LIMIT
// RUN: %{opt} --through pack_shared_memory --without stage_in_shared_memory,prefetch_to_registers | FileCheck %s --check-prefix=NONE

// BEFORE: memref.alloc() {operand_a} : memref<2x128x40xf16, #gpu.address_space<workgroup>>
// BEFORE: memref.alloc() {operand_b} : memref<2x32x136xf16, #gpu.address_space<workgroup>>

// A's tiles take 2 * 128 * 40 * 2 = 20480 bytes, B's 2 * 32 * 136 * 2 = 17408.
// CHECK: memref.global "private" @shared_memory : memref<37888xi8, #gpu.address_space<workgroup>> = uninitialized {alignment = 128 : i64}
// CHECK-NOT: {{memref.alloc|dynamic_shared_memory}}
// CHECK: gpu.launch
// CHECK: [[array:%.+]] = memref.get_global @shared_memory
// CHECK: memref.view [[array]][%c0{{.*}}][] : memref<37888xi8, #gpu.address_space<workgroup>> to memref<2x128x40xf16, #gpu.address_space<workgroup>>
// CHECK: memref.view [[array]][%c20480{{.*}}][] : memref<37888xi8, #gpu.address_space<workgroup>> to memref<2x32x136xf16, #gpu.address_space<workgroup>>
// CHECK-NOT: {{memref.alloc|dynamic_shared_memory}}

// DYNAMIC: memref.global @shared_memory : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
// DYNAMIC: [[bytes:%.+]] = arith.constant 58368 : i32
// DYNAMIC: gpu.launch {{.*}} dynamic_shared_memory_size [[bytes]]
// DYNAMIC: [[name:%.+]] = memref.get_global @shared_memory : memref<0xi8,
// DYNAMIC: [[array:%.+]] = memref.reinterpret_cast [[name]] to offset: [0], sizes: [58368], strides: [1]
// DYNAMIC: memref.view [[array]][%c0{{.*}}][] : {{.*}} to memref<2x256x40xf16,
// DYNAMIC: memref.view [[array]][%c40960{{.*}}][] : {{.*}} to memref<2x32x136xf16,
// DYNAMIC-NOT: memref.alloc

// EXTERNAL: gpu.launch_func @matmul_kernel::@matmul_kernel {{.*}} dynamic_shared_memory_size %{{.*}} args(
// EXTERNAL: llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64{{.*}}} : !llvm.array<0 x i8>

// Exactly 48 KB are still static.
// LIMIT: memref.global "private" @shared_memory : memref<49152xi8,
// LIMIT-NOT: dynamic_shared_memory_size

// NONE-NOT: shared_memory
// NONE: gpu.launch
// NONE-NOT: shared_memory
