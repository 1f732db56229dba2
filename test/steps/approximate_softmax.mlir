// The exponentials and quotients of a softmax along rows are approximated where all results have 16 bits. A softmax of
// f32, an exponential of other numbers, and a quotient of another sum stay.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/rows.mlir --step approximate_softmax --split-input-file \
// RUN:   | FileCheck %s
//
// Exponentials of sums, and of squares less their rows' maxima, stay.
// DEFINE: %{opt} = %stepladder-opt --pipeline %transforms/functions/rows.mlir --step approximate_softmax \
// DEFINE:   --split-input-file
// RUN: sed 's/= arith.subf %in/= arith.addf %in/' %s > %t.sums.mlir
// RUN: %{opt} %t.sums.mlir | FileCheck %s --check-prefix=OTHERS
// RUN: sed 's/%d = arith.subf %in/%nn = arith.mulf %in, %in : f32 %d = arith.subf %nn/' %s > %t.squares.mlir
// RUN: %{opt} %t.squares.mlir | FileCheck %s --check-prefix=OTHERS

// OTHERS-LABEL: func.func @softmax(
// OTHERS-NOT: math.exp2
// OTHERS-LABEL: func.func @extended(

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @softmax(
// CHECK: [[d:%.+]] = arith.subf
// CHECK: [[log2_e:%.+]] = arith.constant 1.44269502 : f32
// CHECK: [[y:%.+]] = arith.mulf [[d]], [[log2_e]] : f32
// CHECK: math.exp2 [[y]] fastmath<afn> : f32
// CHECK: ^bb0([[e:%.+]]: f32, [[s:%.+]]: f32, %{{.+}}: bf16):
// CHECK: [[one:%.+]] = arith.constant 1.000000e+00 : f32
// CHECK: [[r:%.+]] = arith.divf [[one]], [[s]] : f32
// CHECK: [[q:%.+]] = arith.mulf [[e]], [[r]] : f32
// CHECK: arith.truncf [[q]] : f32 to bf16
func.func @softmax(%x: tensor<8x64xf32>, %given: tensor<8xf32>) -> tensor<8x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%low : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maxnumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %whole = tensor.empty() : tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<8x64xf32>, tensor<8xf32>) outs(%whole : tensor<8x64xf32>) {
  ^bb0(%in: f32, %most: f32, %out: f32):
    %d = arith.subf %in, %most : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x64xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%2 : tensor<8x64xbf16>) {
  ^bb0(%in: f32, %total: f32, %out: bf16):
    %q = arith.divf %in, %total : f32
    %r = arith.truncf %q : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8x64xbf16>
  return %y : tensor<8x64xbf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Each op extends the elements that it reads.
// CHECK-LABEL: func.func @extended(
// CHECK-NOT: math.exp %
// CHECK: math.exp2 {{.*}} fastmath<afn> : f32
// CHECK: return
func.func @extended(%x: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%low : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf16>) outs(%0 : tensor<8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    %v = arith.maxnumf %w, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %whole = tensor.empty() : tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<8x64xf16>, tensor<8xf32>) outs(%whole : tensor<8x64xf32>) {
  ^bb0(%in: f16, %most: f32, %out: f32):
    %w = arith.extf %in : f16 to f32
    %d = arith.subf %w, %most : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %1 = tensor.empty() : tensor<8x64xf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<8x64xf32>) outs(%1 : tensor<8x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %r = arith.truncf %in : f32 to f16
    linalg.yield %r : f16
  } -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @wide(
// CHECK-NOT: exp2
// CHECK: math.exp %
// CHECK-NOT: arith.mulf
func.func @wide(%x: tensor<8x64xf32>, %given: tensor<8xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%low : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maxnumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %whole = tensor.empty() : tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<8x64xf32>, tensor<8xf32>) outs(%whole : tensor<8x64xf32>) {
  ^bb0(%in: f32, %most: f32, %out: f32):
    %d = arith.subf %in, %most : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x64xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%2 : tensor<8x64xf32>) {
  ^bb0(%in: f32, %total: f32, %out: f32):
    %q = arith.divf %in, %total : f32
    linalg.yield %q : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @of_others(
// CHECK-NOT: exp2
// CHECK: math.exp %
// CHECK-NOT: arith.mulf
func.func @of_others(%x: tensor<8x64xf32>, %given: tensor<8xf32>) -> tensor<8x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%low : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maxnumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %whole = tensor.empty() : tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %given : tensor<8x64xf32>, tensor<8xf32>) outs(%whole : tensor<8x64xf32>) {
  ^bb0(%in: f32, %most: f32, %out: f32):
    %d = arith.subf %in, %most : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x64xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%2 : tensor<8x64xbf16>) {
  ^bb0(%in: f32, %total: f32, %out: bf16):
    %q = arith.divf %in, %total : f32
    %r = arith.truncf %q : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8x64xbf16>
  return %y : tensor<8x64xbf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @by_others(
// CHECK: math.exp2
// CHECK: arith.divf %in, %
// CHECK-NOT: arith.mulf
func.func @by_others(%x: tensor<8x64xf32>, %given: tensor<8xf32>) -> tensor<8x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%low : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maxnumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %whole = tensor.empty() : tensor<8x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<8x64xf32>, tensor<8xf32>) outs(%whole : tensor<8x64xf32>) {
  ^bb0(%in: f32, %most: f32, %out: f32):
    %d = arith.subf %in, %most : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x64xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %given : tensor<8x64xf32>, tensor<8xf32>) outs(%2 : tensor<8x64xbf16>) {
  ^bb0(%in: f32, %total: f32, %out: bf16):
    %q = arith.divf %in, %total : f32
    %r = arith.truncf %q : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8x64xbf16>
  return %y : tensor<8x64xbf16>
}
