// Epilogues fold the rows and the columns of what they compute: in registers and between lanes, and by the last warp of
// a group, of the partial results in global memory. The workspace and its reduction on the host go.
//
// DEFINE: %{wgmma} = %stepladder-opt %payloads/row_norms.mlir --pipeline wgmma --set block_m=128 --set block_n=64
// DEFINE: %{warps} = %stepladder-opt %payloads/row_norms.mlir --set block_m=64 --set block_n=64 --set warp_m=32 --set warp_n=32
// RUN: %{wgmma} --set epilogue=registers --through direct_store_epilogue -o %t.direct
// RUN: FileCheck %s --input-file %t.direct --check-prefixes=ALL,WGMMA
// RUN: %{wgmma} --through tma_store_epilogue -o %t.tma
// RUN: FileCheck %s --input-file %t.tma --check-prefixes=ALL,TMA,WGMMA
// RUN: %{warps} --pipeline mma_sync --through convert_to_mma_sync -o %t.mma
// RUN: FileCheck %s --input-file %t.mma --check-prefixes=ALL,MMA-SYNC
// RUN: %{warps} --pipeline wmma --through map_consumer_to_lanes -o %t.wmma
// RUN: FileCheck %s --input-file %t.wmma --check-prefixes=ALL,WMMA
// RUN: sed 's/256/2048/g' %payloads/row_norms.mlir | %stepladder-opt - --pipeline wgmma --set block_m=128 --set block_n=64 --set epilogue=registers --through direct_store_epilogue | FileCheck %s --check-prefix=TWICE
// RUN: %refused 2 %stepladder-opt %payloads/row_norms.mlir --pipeline wgmma --set epilogue=registers --set persistent_blocks=0 --set split_k=2 | FileCheck %s --check-prefix=SPLIT

// The rows of 8 groups of warps have 2 or 4 partial results each; the sums in registers are never written.
// WGMMA-DAG: memref.global "private" @[[rows:.+]] : memref<2x256xf32, #gpu.address_space<global>> = uninitialized
// WGMMA-DAG: memref.global "private" @[[counters:.+]] : memref<16xi32, #gpu.address_space<global>> = dense<0>
// MMA-SYNC-DAG: memref.global "private" @[[rows:.+]] : memref<4x256xf32, #gpu.address_space<global>> = uninitialized
// MMA-SYNC-DAG: memref.global "private" @[[counters:.+]] : memref<8xi32, #gpu.address_space<global>> = dense<0>
// WMMA-DAG: memref.global "private" @[[rows:.+]] : memref<4x256xf32, #gpu.address_space<global>> = uninitialized
// ALL-NOT: workspace
// WMMA: affine.for
// ALL: arith.mulf
// ALL: gpu.shuffle xor {{.*}} : f32
// ALL: memref.store {{.*}} : memref<{{2|4}}x256xf32, #gpu.address_space<global>>
// ALL: nvvm.bar.warp.sync
// ALL: llvm.fence syncscope("device") acq_rel
// ALL-NEXT: [[before:%.+]] = memref.atomic_rmw addi %{{.*}} : (i32, memref<{{8|16}}xi32, #gpu.address_space<global>>) -> i32
// ALL-NEXT: llvm.fence syncscope("device") acq_rel
// ALL: gpu.shuffle idx {{.*}} : i32
// ALL: memref.load {{.*}} : memref<{{2|4}}x256xf32, #gpu.address_space<global>>
// ALL: memref.store {{.*}} : memref<256xf32>
// Lanes exchange halves of their columns.
// WGMMA: arith.select %{{.*}} : f32
// WGMMA: arith.select %{{.*}} : index
// WGMMA: gpu.shuffle xor {{.*}} : f32
// ALL: arith.maximumf
// ALL: memref.store {{.*}} : memref<128xf32>
// TMA: nvgpu.tma.async.store
// ALL-NOT: {{linalg.reduce|linalg.map|linalg.generic}}

// SPLIT: error: step 'split_k': split_k above 1 does not support reductions of the product

// Of 128 partial results of a column, a warp folds 8, and another one the 16 results.
// TWICE-DAG: memref.global "private" @[[columns:.+]] : memref<128x128xf32, #gpu.address_space<global>> = uninitialized {alignment = 16 : i64}
// TWICE-DAG: memref.global "private" @[[folds:.+]] : memref<16x128xf32, #gpu.address_space<global>> = uninitialized {alignment = 16 : i64}
// TWICE: memref.atomic_rmw addi {{.*}} memref<32xi32
// TWICE: vector.load {{.*}} : memref<128x128xf32, #gpu.address_space<global>>, vector<2xf32>
// TWICE: vector.store {{.*}} : memref<16x128xf32, #gpu.address_space<global>>, vector<2xf32>
// TWICE: memref.atomic_rmw addi {{.*}} memref<2xi32
// TWICE: vector.load {{.*}} : memref<16x128xf32, #gpu.address_space<global>>, vector<2xf32>
// TWICE: memref.store {{.*}} : memref<128xf32>
