// A warp computes a row: the sum is in registers of its lanes, and what an elementwise op makes is computed again where it
// is read. A block computes a long row, of which its warps exchange parts through shared memory. A buffer that two ops
// write, a sum that begins from nothing, a sum of another row, a sum along columns, and other ops are refused.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/rows.mlir --step distribute_rows --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @divided(
// CHECK: gpu.launch blocks({{.*}} = %c2, {{.*}} threads({{.*}} = %c256,
// CHECK: scf.if
// CHECK: [[part:%.+]] = scf.for {{.*}} step %c32 iter_args
// CHECK: memref.load %x[
// CHECK: math.exp
// CHECK: arith.addf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: scf.for {{.*}} step %c32
// CHECK: memref.load %x[
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: memref.store %{{.*}}, %y[
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @divided(%x: memref<11x60xf32>, %y: memref<11x60xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<11x60xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<11x60xf32>) outs(%e : memref<11x60xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  }
  %s = memref.alloc() : memref<11xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<11xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<11x60xf32>) outs(%s : memref<11xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  %c = memref.expand_shape %s [[0, 1]] output_shape [11, 1] : memref<11xf32> into memref<11x1xf32>
  linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> (i, 0)>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %c : memref<11x60xf32>, memref<11x1xf32>) outs(%y : memref<11x60xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %v = arith.divf %in, %sum : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows of a few vectors: four lanes compute a row of 16, so that each loads a vector, which it keeps.
// CHECK-LABEL: func.func @short(
// CHECK: gpu.launch blocks({{.*}} = %c2, {{.*}} threads({{.*}} = %c256,
// CHECK: scf.if
// CHECK: vector.load %x[{{.*}} : memref<72x16xf32>, vector<4xf32>
// CHECK-NOT: scf.for
// CHECK-COUNT-2: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: vector.load
// CHECK: vector.store %{{.*}}, %y[
// CHECK: return
func.func @short(%x: memref<72x16xf32>, %y: memref<72x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<72xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<72xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<72x16xf32>) outs(%s : memref<72xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<72x16xf32>, memref<72xf32>) outs(%y : memref<72x16xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %v = arith.divf %in, %sum : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// An extremum of f16 is exchanged as f32.
// CHECK: memref.global "private" @row_parts : memref<8xf32, #gpu.address_space<workgroup>>
// CHECK-LABEL: func.func @long(
// CHECK: gpu.launch blocks({{.*}} = %c3,
// CHECK: scf.for {{.*}} to %c2048 step %c2048 iter_args
// CHECK-COUNT-2: vector.load %x[{{.*}} : memref<3x2100xf16>, vector<4xf16>
// CHECK: scf.for {{.*}} to %c2100 step %c1024 iter_args
// CHECK: vector.load %x[
// CHECK-NOT: vector.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK-COUNT-8: memref.load {{.*}} #gpu.address_space<workgroup>
// CHECK: memref.store %{{.*}}, %y[
// CHECK: return
func.func @long(%x: memref<3x2100xf16>, %y: memref<3xf16>) {
  %low = arith.constant 0xFC00 : f16
  linalg.fill ins(%low : f16) outs(%y : memref<3xf16>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x2100xf16>) outs(%y : memref<3xf16>) {
  ^bb0(%in: f16, %out: f16):
    %v = arith.maximumf %in, %out : f16
    linalg.yield %v : f16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows that are a few vectors of each thread take no loop: what is read of arguments is loaded once, before the threads
// exchange their sums.
// CHECK-LABEL: func.func @normed(
// CHECK-NOT: scf.for
// CHECK-DAG: vector.load %x[{{.*}} : memref<3x4096xbf16>, vector<8xbf16>
// CHECK-DAG: vector.load %x[{{.*}} : memref<3x4096xbf16>, vector<8xbf16>
// CHECK-DAG: vector.load %w[{{.*}} : memref<4096xbf16>, vector<8xbf16>
// CHECK-DAG: vector.load %w[{{.*}} : memref<4096xbf16>, vector<8xbf16>
// CHECK-NOT: vector.load
// CHECK: gpu.barrier
// CHECK-NOT: {{load %(x|w)}}
// CHECK-COUNT-2: vector.store %{{.*}}, %y[{{.*}} : memref<3x4096xbf16>, vector<8xbf16>
// CHECK: return
func.func @normed(%x: memref<3x4096xbf16>, %w: memref<4096xbf16>, %y: memref<3x4096xbf16>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<3xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x4096xbf16>) outs(%s : memref<3xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %f = arith.extf %in : bf16 to f32
    %q = arith.mulf %f, %f : f32
    %v = arith.addf %q, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#all, #row, affine_map<(i, j) -> (j)>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %w : memref<3x4096xbf16>, memref<3xf32>, memref<4096xbf16>) outs(%y : memref<3x4096xbf16>) {
  ^bb0(%in: bf16, %sum: f32, %weight: bf16, %out: bf16):
    %f = arith.extf %in : bf16 to f32
    %d = arith.divf %f, %sum : f32
    %t = arith.truncf %d : f32 to bf16
    %v = arith.mulf %t, %weight : bf16
    linalg.yield %v : bf16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A sum of f64 is exchanged in halves.
// CHECK-LABEL: func.func @wide(
// CHECK: arith.bitcast %{{.*}} : f64 to i64
// CHECK-COUNT-2: gpu.shuffle xor {{.*}} : i32
// CHECK: arith.bitcast %{{.*}} : i64 to f64
// CHECK-NEXT: arith.addf %{{.*}} : f64
// CHECK-COUNT-8: gpu.shuffle xor {{.*}} : i32
// CHECK-NOT: gpu.shuffle
// CHECK: memref.store %{{.*}}, %y[
func.func @wide(%x: memref<3x40xf32>, %y: memref<3xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%y : memref<3xf64>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x40xf32>) outs(%y : memref<3xf64>) {
  ^bb0(%in: f32, %out: f64):
    %f = arith.extf %in : f32 to f64
    %v = arith.addf %f, %out : f64
    linalg.yield %v : f64
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @from_nothing(%x: memref<3x32xf32>, %y: memref<3xf32>) {
  // expected-error@+1 {{tc.distribute_rows: a reduction that does not begin from a constant}}
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x32xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @columns(%x: memref<32x32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<32xf32>)
  // expected-error@+1 {{tc.distribute_rows: an op that is not over rows of [32]}}
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<32x32xf32>) outs(%y : memref<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @other_row(%x: memref<32x32xf32>, %y: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<32xf32>)
  // expected-error@+1 {{tc.distribute_rows: a result of another row, or that is read before it is computed}}
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<32x32xf32>) outs(%s : memref<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<32xf32>) outs(%y : memref<32x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @twice(%x: memref<3x32xf32>, %y: memref<3xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x32xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  // expected-error@+1 {{tc.distribute_rows: a result in a buffer that another op writes}}
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x32xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

func.func @copied(%x: memref<3xf32>, %y: memref<3xf32>) {
  // expected-error@+1 {{tc.distribute_rows: 'memref.copy' between ops over rows}}
  memref.copy %x, %y : memref<3xf32> to memref<3xf32>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<3xf32>) {
  ^bb0(%out: f32):
    %v = arith.constant 1.0 : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// A part of an argument is read where it is.
// CHECK-LABEL: func.func @part(
// CHECK: gpu.launch
// CHECK: %[[part:.+]] = memref.subview %x[0, 5] [3, 32] [1, 1]
// CHECK: scf.for %[[column:[a-z0-9]+]] = %
// CHECK: memref.load %[[part]][%{{.+}}, %[[column]]] : memref<3x32xf32, strided<[40, 1], offset: 5>>
// CHECK: arith.addf
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @part(%x: memref<3x40xf32>, %y: memref<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %right = memref.subview %x[0, 5] [3, 32] [1, 1] : memref<3x40xf32> to memref<3x32xf32, strided<[40, 1], offset: 5>>
  linalg.fill ins(%zero : f32) outs(%y : memref<3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%right : memref<3x32xf32, strided<[40, 1], offset: 5>>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @part_of_a_result(%x: memref<3x32xf32>, %y: memref<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %made = memref.alloc() : memref<3x32xf32>
  // expected-error@+1 {{tc.distribute_rows: a part of what an op over rows computes}}
  %left = memref.subview %made[0, 0] [3, 16] [1, 1] : memref<3x32xf32> to memref<3x16xf32, strided<[32, 1]>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<3x32xf32>) outs(%made : memref<3x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%left : memref<3x16xf32, strided<[32, 1]>>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// Views of one buffer may differ in axes of one element.
// CHECK-LABEL: func.func @views(
// CHECK: gpu.launch
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: [[sum:%.+]] = arith.addf %{{.*}}, %cst{{.*}} : f32
// CHECK: scf.for
// CHECK: arith.divf [[sum]], {{.*}} : f32
// CHECK: memref.store %{{.*}}, %y[%{{.*}}, %c0{{.*}}, %c0{{.*}}] : memref<3x1x1xf32>
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#wide = affine_map<(i, j, k) -> (i, j, k)>
func.func @views(%x: memref<3x8xf32>, %y: memref<3x1x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %eight = arith.constant 8.0 : f32
  %s = memref.alloc() : memref<3x1x1xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<3x1x1xf32>)
  %rows = memref.collapse_shape %s [[0, 1, 2]] : memref<3x1x1xf32> into memref<3xf32>
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x8xf32>) outs(%rows : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#wide, #wide], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : memref<3x1x1xf32>) outs(%y : memref<3x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.divf %in, %eight : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// Lanes exchange booleans as integers; the largest of signed integers begins from the least one.
// CHECK-LABEL: func.func @all_of_a_row(
// CHECK: %c-2147483648_i32 = arith.constant -2147483648 : i32
// CHECK: [[positive:%.+]] = arith.cmpi sgt
// CHECK: [[bit:%.+]] = arith.extui [[positive]] : i1 to i32
// CHECK: arith.andi %{{.*}}, [[bit]] : i32
// CHECK: gpu.shuffle xor
// CHECK: arith.andi %{{.*}} : i32
// CHECK: arith.trunci %{{.*}} : i32 to i1
// CHECK: arith.maxsi %{{.*}} : i32
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @all_of_a_row(%x: memref<3x8xi32>, %y: memref<3xi1>, %z: memref<3xi32>) {
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  linalg.fill ins(%true : i1) outs(%y : memref<3xi1>)
  linalg.fill ins(%zero : i32) outs(%z : memref<3xi32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x8xi32>) outs(%y : memref<3xi1>) {
  ^bb0(%in: i32, %out: i1):
    %positive = arith.cmpi sgt, %in, %zero : i32
    %v = arith.andi %positive, %out : i1
    linalg.yield %v : i1
  }
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x8xi32>) outs(%z : memref<3xi32>) {
  ^bb0(%in: i32, %out: i32):
    %v = arith.maxsi %in, %out : i32
    linalg.yield %v : i32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @read_result(%x: memref<3x32xf32>, %y: memref<3xf32>, %z: memref<3x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x32xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  // expected-error@+1 {{tc.distribute_rows: an elementwise op that reads its result}}
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<3x32xf32>, memref<3xf32>) outs(%z : memref<3x32xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %v = arith.divf %in, %sum : f32
    %w = arith.addf %v, %out : f32
    linalg.yield %w : f32
  }
  return
}
