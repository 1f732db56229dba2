// Epilogues compute an elementwise op on pairs of accumulators in registers: of wgmma, stored directly or through boxes
// for TMA, after split-K, and of mma.sync.
//
// DEFINE: %{wgmma} = %stepladder-opt %payloads/bias_relu.mlir --pipeline wgmma --set block_m=128 --set block_n=64
// RUN: %{wgmma} --set epilogue=registers --through direct_store_epilogue | FileCheck %s --check-prefixes=PAIR,DIRECT
// RUN: %{wgmma} --through tma_store_epilogue -o %t.tma
// RUN: FileCheck %s --input-file %t.tma --check-prefixes=PAIR,TMA
// RUN: %{wgmma} --set epilogue=registers --set persistent_blocks=0 --set split_k=2 --through split_k | FileCheck %s --check-prefix=SPLIT
// RUN: %stepladder-opt %payloads/bias_relu.mlir --pipeline mma_sync --through convert_to_mma_sync | FileCheck %s --check-prefix=MMA-SYNC
// RUN: %refused 2 %stepladder-opt %payloads/bias_relu.mlir --pipeline mma_sync --without hoist_accumulators | FileCheck %s --check-prefix=HOIST
// RUN: %refused 2 %stepladder-opt %payloads/bias_relu.mlir --pipeline wgmma --set tile_scheduler=stream_k --set block_n=64 | FileCheck %s --check-prefix=STREAM-K
// RUN: %refused 2 %stepladder-opt %payloads/bias_relu.mlir --pipeline wmma_upstream | FileCheck %s --check-prefix=UPSTREAM

// PAIR: [[pair:%.+]] = vector.extract %{{.*}}[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
// PAIR: [[bias:%.+]] = vector.load {{.*}} {alignment = 8 : i64} : memref<64xf32, {{.*}}>, vector<2xf32>
// PAIR-NEXT: [[sum:%.+]] = arith.addf [[pair]], [[bias]] : vector<2xf32>
// PAIR-NEXT: [[positive:%.+]] = arith.maximumf [[sum]], %{{.*}} : vector<2xf32>
// PAIR-NEXT: [[rounded:%.+]] = arith.truncf [[positive]] : vector<2xf32> to vector<2xf16>
// DIRECT-NEXT: vector.store [[rounded]], {{.*}} {alignment = 4 : i64}
// DIRECT-NOT: linalg.generic
// TMA: nvvm.stmatrix
// TMA: nvgpu.tma.async.store
// TMA-NOT: linalg.generic

// The bias is loaded before blocks wait for each other.
// SPLIT: [[bias:%.+]] = vector.load {{.*}} {alignment = 16 : i64} : memref<64xf32, {{.*}}>, vector<4xf32>
// SPLIT: nvvm.cluster.arrive
// SPLIT: [[both:%.+]] = arith.addf {{.*}} : vector<4xf32>
// SPLIT: [[sum:%.+]] = arith.addf [[both]], [[bias]] : vector<4xf32>
// SPLIT: [[rounded:%.+]] = arith.truncf {{.*}} : vector<4xf32> to vector<4xf16>
// SPLIT-NEXT: vector.store [[rounded]]
// SPLIT-NOT: linalg.generic

// MMA-SYNC-NOT: {{operand_c|consumer}}
// MMA-SYNC: nvgpu.mma.sync
// MMA-SYNC: [[bias:%.+]] = vector.load {{.*}} {alignment = 8 : i64} : memref<64xf32, {{.*}}>, vector<2xf32>
// MMA-SYNC: [[sum:%.+]] = arith.addf %{{.*}}, [[bias]] : vector<2xf32>
// MMA-SYNC: [[rounded:%.+]] = arith.truncf {{.*}} : vector<2xf32> to vector<2xf16>
// MMA-SYNC-NEXT: vector.store [[rounded]], {{.*}} {alignment = 4 : i64}

// HOIST: error: step 'convert_to_mma_sync': elementwise ops require accumulators in registers: hoist_accumulators must run
// STREAM-K: error: step 'stream_k_tail':
// UPSTREAM: error: step 'tile_to_blocks':
