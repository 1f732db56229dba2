// A block computes 128 queries of a head: its threads copy a tile of queries, and in each iteration tiles of keys and
// values, to shared memory in the order of the 128-byte swizzle. With a causal mask, the loop ends at the keys of the
// block's last query, and a tile that all queries of the block attend to is not masked. Exponentials are powers of two,
// whose exponents have the scale of the scores as a factor, but not with math = libdevice, which reads all keys too. With splits, the blocks of a cluster have a part of the
// tiles each, and combine their sums from each other's shared memory. A function without an attention is refused, and
// so are more splits than there are tiles.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/attention.mlir --step distribute_attention \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s
// RUN: %stepladder-opt %s --pipeline %transforms/functions/attention.mlir --step distribute_attention \
// RUN:   --set math=libdevice --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=EXACT
// RUN: %stepladder-opt %s --pipeline %transforms/functions/attention.mlir --step distribute_attention \
// RUN:   --set rows=64 --set splits=3 --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=SPLIT
// RUN: not %stepladder-opt %s --pipeline %transforms/functions/attention.mlir --step distribute_attention \
// RUN:   --set splits=5 --split-input-file 2>&1 | FileCheck %s --check-prefix=MANY

// MANY: tc.distribute_attention: 5 splits of 4 tiles of keys; accepted: at most one for each tile

#all = affine_map<(h, t, s) -> (h, t, s)>
#rows = affine_map<(h, t, s) -> (h, t)>
#q = affine_map<(h, t, s, d) -> (h, t, d)>
#k = affine_map<(h, t, s, d) -> (h, s, d)>
#s = affine_map<(h, t, s, d) -> (h, t, s)>
#v = affine_map<(h, t, d, s) -> (h, s, d)>
#p = affine_map<(h, t, d, s) -> (h, t, s)>
#o = affine_map<(h, t, d, s) -> (h, t, d)>

// CHECK-DAG: [[first:#.+]] = affine_map<()[s0] -> ((s0 floordiv 2) * -128 + 128)>
// CHECK-DAG: [[end:#.+]] = affine_map<()[s0] -> ((s0 floordiv 2) * -128 + 256)>
// CHECK-LABEL: func.func @causal(
// CHECK-DAG: arith.constant 0.180336878 : f32
// CHECK-NOT: 1.250000e-01
// CHECK: gpu.launch blocks({{.*}} in ({{.*}} = %c4, {{.*}} threads({{.*}} = %c256,
// CHECK: memref.alloc() : memref<1x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() {keys} : memref<1x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() {values} : memref<1x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: arith.xori
// CHECK: nvgpu.device_async_copy {{.*}}, 8 {bypassL1} : memref<2x256x64xbf16>
// CHECK: [[zeros:%.+]] = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
// CHECK: [[last:%.+]] = arith.minsi
// CHECK: scf.for {{.*}} to [[last]] step %c128 iter_args({{.*}} = [[zeros]],
// CHECK-COUNT-8: nvgpu.device_async_copy
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.fence.proxy
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.warpgroup.mma {{.*}} {waitGroup = 0 : i64}
// CHECK: scf.if
// CHECK-NOT: arith.select
// CHECK: else
// CHECK: arith.select
// CHECK: arith.maxnumf
// CHECK: gpu.shuffle xor
// CHECK: math.exp2 {{.*}} fastmath<afn>
// CHECK: vector.from_elements {{.*}} : vector<1x8x2x2xf32>
// CHECK: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-8: "tc.warpgroup_mma_registers"
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: scf.yield
// CHECK: arith.divf
// CHECK: vector.store {{.*}} : memref<2x256x64xbf16>, vector<2xbf16>

// EXACT-LABEL: func.func @causal(
// EXACT: arith.constant dense<1.250000e-01> : vector<2xf32>
// EXACT: scf.for {{.*}} = %c0 to %c256 step %c128
// EXACT-NOT: math.exp2
// EXACT: math.exp {{.*}} : f32
// EXACT-NOT: math.exp2

// SPLIT-DAG: [[begin:#.+]] = affine_map<()[s0] -> (((s0 * 4) floordiv 3) * 64 - (s0 floordiv 3) * 256)>
// SPLIT-LABEL: func.func @causal(
// SPLIT: gpu.launch clusters({{.*}} = %c3, {{.*}} blocks({{.*}} = %c24, {{.*}} threads({{.*}} = %c128,
// SPLIT: [[rank:%.+]] = gpu.cluster_block_id x
// SPLIT: memref.alloc() {keys} : memref<1x64x64xbf16, #gpu.address_space<workgroup>>
// SPLIT: [[sums:%.+]] = memref.alloc() : memref<64x72xf32, #gpu.address_space<workgroup>>
// SPLIT: [[states:%.+]] = memref.alloc() : memref<64x2xf32, #gpu.address_space<workgroup>>
// SPLIT: [[first:%.+]] = affine.apply [[begin]]()[[[rank]]]
// SPLIT: scf.for [[key:%.+]] = %c0 to {{.*}} step %c64
// SPLIT-NEXT: arith.addi [[first]], [[key]]
// SPLIT: scf.yield
// SPLIT-COUNT-8: vector.store {{.*}}, [[sums]][
// SPLIT: vector.store {{.*}}, [[states]][
// SPLIT: nvvm.cluster.arrive
// SPLIT-NEXT: nvvm.cluster.wait
// SPLIT-COUNT-6: nvvm.mapa
// SPLIT: scf.for
// SPLIT: arith.maxnumf
// SPLIT-COUNT-3: llvm.load {{.*}} : !llvm.ptr<7> -> vector<4xf32>
// SPLIT: arith.truncf {{.*}} : vector<4xf32> to vector<4xbf16>
// SPLIT: vector.store {{.*}} : memref<2x256x64xbf16>, vector<4xbf16>
// SPLIT: nvvm.cluster.arrive
// SPLIT-NEXT: nvvm.cluster.wait
func.func @causal(%q: tensor<2x256x64xbf16>, %k: tensor<2x256x64xbf16>, %v: tensor<2x256x64xbf16>)
    -> tensor<2x256x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %0 = tensor.empty() : tensor<2x256x256xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x256x256xf32>) -> tensor<2x256x256xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<2x256x64xbf16>, tensor<2x256x64xbf16>)
    outs(%1 : tensor<2x256x256xf32>) -> tensor<2x256x256xf32>
  %logits = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<2x256x256xf32>) outs(%0 : tensor<2x256x256xf32>) {
  ^bb0(%x: f32, %out: f32):
    %t = linalg.index 1 : index
    %s = linalg.index 2 : index
    %before = arith.cmpi ule, %s, %t : index
    %scaled = arith.mulf %x, %scale : f32
    %y = arith.select %before, %scaled, %low : f32
    linalg.yield %y : f32
  } -> tensor<2x256x256xf32>
  %2 = tensor.empty() : tensor<2x256xf32>
  %lows = linalg.fill ins(%low : f32) outs(%2 : tensor<2x256xf32>) -> tensor<2x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%2 : tensor<2x256xf32>) -> tensor<2x256xf32>
  %maxima = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%logits : tensor<2x256x256xf32>) outs(%lows : tensor<2x256xf32>) {
  ^bb0(%x: f32, %m: f32):
    %new = arith.maximumf %x, %m : f32
    linalg.yield %new : f32
  } -> tensor<2x256xf32>
  %powers = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%logits, %maxima : tensor<2x256x256xf32>, tensor<2x256xf32>) outs(%0 : tensor<2x256x256xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x256x256xf32>
  %sums = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers : tensor<2x256x256xf32>) outs(%zeros : tensor<2x256xf32>) {
  ^bb0(%x: f32, %out: f32):
    %new = arith.addf %x, %out : f32
    linalg.yield %new : f32
  } -> tensor<2x256xf32>
  %3 = tensor.empty() : tensor<2x256x256xbf16>
  %weights = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%powers, %sums : tensor<2x256x256xf32>, tensor<2x256xf32>) outs(%3 : tensor<2x256x256xbf16>) {
  ^bb0(%x: f32, %s: f32, %out: bf16):
    %w = arith.divf %x, %s : f32
    %r = arith.truncf %w : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x256x256xbf16>
  %4 = tensor.empty() : tensor<2x256x64xf32>
  %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<2x256x64xf32>) -> tensor<2x256x64xf32>
  %wide = linalg.contract indexing_maps = [#p, #v, #o] ins(%weights, %v : tensor<2x256x256xbf16>, tensor<2x256x64xbf16>)
    outs(%5 : tensor<2x256x64xf32>) -> tensor<2x256x64xf32>
  %6 = tensor.empty() : tensor<2x256x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%wide : tensor<2x256x64xf32>) outs(%6 : tensor<2x256x64xbf16>) {
  ^bb0(%x: f32, %out: bf16):
    %r = arith.truncf %x : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x256x64xbf16>
  return %y : tensor<2x256x64xbf16>
}

// -----

// 100 queries and 200 keys, in tiles of 128: rows beyond them are copied as zeros, from the last row's address. The scores
// of the last tile are minus infinity beyond the last key, and rows of the result beyond the last query are not stored.
//
// CHECK-LABEL: func.func @edges(
// CHECK: gpu.launch blocks({{.*}} in ({{.*}} = %c2, {{.*}}
// CHECK: [[row:%.+]] = arith.minui %{{.*}}, %c99
// CHECK: [[count:%.+]] = arith.select %{{.*}}, %c8, %c0
// CHECK: nvgpu.device_async_copy {{.*}}, [[row]], {{.*}}, 8, [[count]] {bypassL1} : memref<2x100x64xf16>
// CHECK: scf.for [[key:%.+]] = %c0 to %c200 step %c128
// CHECK: arith.minui %{{.*}}, %c199
// CHECK: [[last:%.+]] = affine.apply #{{.*}}()[[[key]]]
// CHECK: [[whole:%.+]] = arith.cmpi ult, [[last]], %c200
// CHECK: scf.if [[whole]]
// CHECK-NOT: arith.select
// CHECK: else
// CHECK: arith.select %{{.*}}, %{{.*}}, %cst{{.*}} : f32
// CHECK: arith.maxnumf
// CHECK: arith.divf
// CHECK: [[inside:%.+]] = arith.cmpi ult, %{{.*}}, %c100
// CHECK: scf.if [[inside]]
// CHECK: vector.store {{.*}} : memref<2x100x64xf16>, vector<2xf16>
// CHECK: // -----
#all = affine_map<(h, t, s) -> (h, t, s)>
#rows = affine_map<(h, t, s) -> (h, t)>
#q = affine_map<(h, t, s, d) -> (h, t, d)>
#k = affine_map<(h, t, s, d) -> (h, s, d)>
#s = affine_map<(h, t, s, d) -> (h, t, s)>
#v = affine_map<(h, t, d, s) -> (h, s, d)>
#p = affine_map<(h, t, d, s) -> (h, t, s)>
#o = affine_map<(h, t, d, s) -> (h, t, d)>
func.func @edges(%q: tensor<2x100x64xf16>, %k: tensor<2x200x64xf16>, %v: tensor<2x200x64xf16>) -> tensor<2x100x64xf16> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<2x100x200xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x100x200xf32>) -> tensor<2x100x200xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<2x100x64xf16>, tensor<2x200x64xf16>)
    outs(%1 : tensor<2x100x200xf32>) -> tensor<2x100x200xf32>
  %low = arith.constant 0xFF800000 : f32
  %2 = tensor.empty() : tensor<2x100xf32>
  %lows = linalg.fill ins(%low : f32) outs(%2 : tensor<2x100xf32>) -> tensor<2x100xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%2 : tensor<2x100xf32>) -> tensor<2x100xf32>
  %maxima = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : tensor<2x100x200xf32>) outs(%lows : tensor<2x100xf32>) {
  ^bb0(%x: f32, %m: f32):
    %new = arith.maximumf %x, %m : f32
    linalg.yield %new : f32
  } -> tensor<2x100xf32>
  %powers = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %maxima : tensor<2x100x200xf32>, tensor<2x100xf32>) outs(%0 : tensor<2x100x200xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x100x200xf32>
  %sums = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers : tensor<2x100x200xf32>) outs(%zeros : tensor<2x100xf32>) {
  ^bb0(%x: f32, %out: f32):
    %new = arith.addf %x, %out : f32
    linalg.yield %new : f32
  } -> tensor<2x100xf32>
  %narrow = tensor.empty() : tensor<2x100x200xf16>
  %weights = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%powers, %sums : tensor<2x100x200xf32>, tensor<2x100xf32>) outs(%narrow : tensor<2x100x200xf16>) {
  ^bb0(%x: f32, %s: f32, %out: f16):
    %w = arith.divf %x, %s : f32
    %r = arith.truncf %w : f32 to f16
    linalg.yield %r : f16
  } -> tensor<2x100x200xf16>
  %3 = tensor.empty() : tensor<2x100x64xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<2x100x64xf32>) -> tensor<2x100x64xf32>
  %wide = linalg.contract indexing_maps = [#p, #v, #o] ins(%weights, %v : tensor<2x100x200xf16>, tensor<2x200x64xf16>)
    outs(%4 : tensor<2x100x64xf32>) -> tensor<2x100x64xf32>
  %5 = tensor.empty() : tensor<2x100x64xf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%wide : tensor<2x100x64xf32>) outs(%5 : tensor<2x100x64xf16>) {
  ^bb0(%x: f32, %out: f16):
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  } -> tensor<2x100x64xf16>
  return %y : tensor<2x100x64xf16>
}

// -----

// expected-error@+1 {{tc.distribute_attention: expected the products of an attention, found none}}
func.func @no_product(%x: tensor<4x4xf16>) -> tensor<4x4xf16> {
  return %x : tensor<4x4xf16>
}

// -----

func.func @no_softmax(%x: tensor<128x128xf16>, %y: tensor<128x128xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<128x128xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<128x128xf32>) -> tensor<128x128xf32>
  // expected-error@+1 {{tc.distribute_attention: a product that does not read a softmax}}
  %2 = linalg.matmul ins(%x, %y : tensor<128x128xf16>, tensor<128x128xf16>) outs(%1 : tensor<128x128xf32>)
    -> tensor<128x128xf32>
  return %2 : tensor<128x128xf32>
}
