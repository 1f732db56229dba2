// A product becomes one wgmma for each 32 bytes of k, on 64-bit descriptors of its operands; an accumulator becomes
// registers.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 1024 --n 1024 --k 512
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma_single_stage --set block_n=32 --through lower_to_wgmma
// RUN: %{payload} | %{opt} -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=ALL
// RUN: %{payload} --b-layout column | %{opt} --set consumer_warpgroups=1 | FileCheck %s --check-prefix=TALL
// RUN: %{payload} --a-layout column --a-type bf16 --b-type bf16 | %{opt} | FileCheck %s --check-prefix=COLUMN
// RUN: %{payload} --acc-type f16 --c-type f16 | %{opt} --set block_k=32 | FileCheck %s --check-prefix=F16
// RUN: %{payload} --a-type f8E5M2 --b-type f8E5M2 --b-layout column | %{opt} --set block_k=128 | FileCheck %s --check-prefix=FP8
// RUN: %{payload} --a-type f32 --b-type f32 --b-layout column | %{opt} --set block_k=32 | FileCheck %s --check-prefix=TF32
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma --set block_n=32 --set epilogue=registers --through lower_to_wgmma | FileCheck %s --check-prefix=IN-FLIGHT

// One block a multiprocessor, or setmaxnreg does nothing.
// CHECK: gpu.func @matmul_kernel({{.*}}nvvm.minctasm = 1 : i32
// Swizzle of 128 bytes (1 << 62); 1024 bytes between groups of eight rows (64 << 32); A's box of 128 rows (1024 << 16),
// B's of 64 rows of 64 bytes (256 << 16), swizzled over 64 (2 << 62).
// CHECK-DAG: arith.constant 4611686293372403712 : i64
// CHECK-DAG: arith.constant -9223371899399045120 : i64
// CHECK-DAG: arith.constant 262143 : i64
// CHECK: scf.for
// CHECK: [[address:%.+]] = arith.andi %{{.*}}, %c262143_i64
// CHECK-NEXT: [[units:%.+]] = arith.shrui [[address]], %c4_i64
// CHECK-NEXT: [[a:%.+]] = arith.ori [[units]], %c4611686293372403712_i64
// CHECK: [[b:%.+]] = arith.ori %{{.*}}, %c-9223371899399045120_i64
// CHECK: nvvm.wgmma.fence.aligned
// A runs along k: 32 bytes further in the row; B is transposed: 16 rows of 64 bytes further.
// CHECK: nvvm.wgmma.mma_async [[a]], [[b]], %{{.*}}, <m = 64, n = 32, k = 16>, D[{{.*}}<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>]
// CHECK-DAG: [[a1:%.+]] = arith.addi [[a]], %c2_i64
// CHECK-DAG: [[b1:%.+]] = arith.addi [[b]], %c64_i64
// CHECK: nvvm.wgmma.mma_async [[a1]], [[b1]],
// CHECK-DAG: [[a2:%.+]] = arith.addi [[a]], %c4_i64
// CHECK-DAG: [[b2:%.+]] = arith.addi [[b]], %c128_i64
// CHECK: nvvm.wgmma.mma_async [[a2]], [[b2]],
// CHECK-DAG: [[a3:%.+]] = arith.addi [[a]], %c6_i64
// CHECK-DAG: [[b3:%.+]] = arith.addi [[b]], %c192_i64
// CHECK: nvvm.wgmma.mma_async [[a3]], [[b3]],
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// ALL-COUNT-4: nvvm.wgmma.mma_async
// ALL-NOT: {{nvvm.wgmma.mma_async|nvgpu.warpgroup|tc.warpgroup|unrealized_conversion_cast}}

// 128 rows of one warpgroup: twice 64, the second 64 x 128 bytes on; B is column-major.
// TALL: nvvm.wgmma.mma_async {{.*}}A[<f16>, <one>, <row>], B[<f16>, <one>, <col>]
// TALL: arith.addi %{{.*}}, %c512_i64
// TALL: nvvm.wgmma.mma_async
// TALL: nvvm.wgmma.commit.group.sync.aligned

// A along m: 16 rows of 128 bytes to the next step of k.
// COLUMN: arith.addi %{{.*}}, %c128_i64
// COLUMN: nvvm.wgmma.mma_async {{.*}}A[<bf16>, <one>, <col>], B[<bf16>, <one>, <row>]

// Pairs of f16 sums in a register: 32 / 4 of them.
// F16: llvm.mlir.zero : !llvm.struct<(struct<(i32, i32, i32, i32, i32, i32, i32, i32)>)>
// F16: nvvm.wgmma.mma_async {{.*}}D[{{.*}}<f16>, <one>]

// FP8-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 32, k = 32>, D[{{.*}}<f32>, <one>], A[<e5m2>, <one>, <row>], B[<e5m2>, <one>, <col>]
// FP8-NOT: nvvm.wgmma.mma_async
// TF32-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 32, k = 8>, D[{{.*}}<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>]
// TF32-NOT: nvvm.wgmma.mma_async

// IN-FLIGHT: scf.for
// IN-FLIGHT: nvvm.wgmma.commit.group.sync.aligned
// IN-FLIGHT-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
// IN-FLIGHT: nvvm.wgmma.wait.group.sync.aligned 0
