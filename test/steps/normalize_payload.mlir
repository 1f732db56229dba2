// Every way to write the matmul becomes the normal form: buffers at the boundary, tensors inside, C updated in place.
//
// RUN: %stepladder-opt %s --pipeline %inputs/own/normalize.mlir --from normalize_payload --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @on_memrefs(
// CHECK-SAME: [[A:%.+]]: memref<16x8xf16>, [[B:%.+]]: memref<8x32xf16>, [[C:%.+]]: memref<16x32xf32>) {
// CHECK-DAG: [[a:%.+]] = bufferization.to_tensor [[A]] restrict : memref<16x8xf16> to tensor<16x8xf16>
// CHECK-DAG: [[b:%.+]] = bufferization.to_tensor [[B]] restrict : memref<8x32xf16> to tensor<8x32xf16>
// CHECK-DAG: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable : memref<16x32xf32> to tensor<16x32xf32>
// CHECK: [[d:%.+]] = linalg.matmul ins([[a]], [[b]] : {{.*}}) outs([[c]] : tensor<16x32xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
// CHECK-NEXT: return
func.func @on_memrefs(%A: memref<16x8xf16>, %B: memref<8x32xf16>, %C: memref<16x32xf32>) {
  linalg.matmul ins(%A, %B : memref<16x8xf16>, memref<8x32xf16>) outs(%C : memref<16x32xf32>)
  return
}

// -----

// The product goes to the buffer that the accumulator came from.
// CHECK-LABEL: func.func @on_tensors(
// CHECK-SAME: [[A:%.+]]: memref<16x8xf16>, [[B:%.+]]: memref<8x32xf16>, [[C:%.+]]: memref<16x32xf32>) {
// CHECK-DAG: [[a:%.+]] = bufferization.to_tensor [[A]] restrict : memref<16x8xf16> to tensor<16x8xf16>
// CHECK-DAG: [[b:%.+]] = bufferization.to_tensor [[B]] restrict : memref<8x32xf16> to tensor<8x32xf16>
// CHECK-DAG: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable : memref<16x32xf32> to tensor<16x32xf32>
// CHECK: [[d:%.+]] = linalg.matmul ins([[a]], [[b]] : {{.*}}) outs([[c]] : tensor<16x32xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
// CHECK-NEXT: return
func.func @on_tensors(%A: tensor<16x8xf16>, %B: tensor<8x32xf16>, %C: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %product = linalg.matmul ins(%A, %B : tensor<16x8xf16>, tensor<8x32xf16>)
                           outs(%C : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %product : tensor<16x32xf32>
}

// -----

// CHECK-LABEL: func.func @on_memrefs_from_zero(
// CHECK-SAME: [[A:%.+]]: memref<16x8xf16>, [[B:%.+]]: memref<8x32xf16>, [[C:%.+]]: memref<16x32xf32>) {
// CHECK: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable
// CHECK: [[zeros:%.+]] = linalg.fill ins(%{{.*}} : f32) outs([[c]] : tensor<16x32xf32>)
// CHECK: [[d:%.+]] = linalg.matmul ins({{.*}}) outs([[zeros]] : tensor<16x32xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
// CHECK-NEXT: return
func.func @on_memrefs_from_zero(%A: memref<16x8xf16>, %B: memref<8x32xf16>, %C: memref<16x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<16x32xf32>)
  linalg.matmul ins(%A, %B : memref<16x8xf16>, memref<8x32xf16>) outs(%C : memref<16x32xf32>)
  return
}

// -----

// Where the accumulator came from no buffer, C is a new last argument.
// CHECK-LABEL: func.func @on_tensors_from_zero(
// CHECK-SAME: [[A:%.+]]: memref<16x8xf16>, [[B:%.+]]: memref<8x32xf16>, [[C:%.+]]: memref<16x32xf32>) {
// CHECK-NOT: tensor.empty
// CHECK: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable
// CHECK: [[zeros:%.+]] = linalg.fill ins(%{{.*}} : f32) outs([[c]] : tensor<16x32xf32>)
// CHECK: [[d:%.+]] = linalg.matmul ins({{.*}}) outs([[zeros]] : tensor<16x32xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
// CHECK-NEXT: return
func.func @on_tensors_from_zero(%A: tensor<16x8xf16>, %B: tensor<8x32xf16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x32xf32>) -> tensor<16x32xf32>
  %product = linalg.matmul ins(%A, %B : tensor<16x8xf16>, tensor<8x32xf16>)
                           outs(%start : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %product : tensor<16x32xf32>
}

// -----

// CHECK-LABEL: func.func @c_first(
// CHECK-SAME: [[C:%.+]]: memref<16x32xf32>, [[B:%.+]]: memref<8x32xf16>, [[A:%.+]]: memref<16x8xf16>) {
// CHECK: [[a:%.+]] = bufferization.to_tensor [[A]]
// CHECK: [[b:%.+]] = bufferization.to_tensor [[B]]
// CHECK: linalg.matmul ins([[a]], [[b]]
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable [[C]]
func.func @c_first(%C: memref<16x32xf32>, %B: memref<8x32xf16>, %A: memref<16x8xf16>) {
  linalg.matmul ins(%A, %B : memref<16x8xf16>, memref<8x32xf16>) outs(%C : memref<16x32xf32>)
  return
}

// -----

// The normal form stays as it is.
// CHECK-LABEL: func.func @normal(
// CHECK-NEXT: [[a:%.+]] = bufferization.to_tensor %A restrict :
// CHECK-NEXT: [[b:%.+]] = bufferization.to_tensor %B restrict :
// CHECK-NEXT: [[c:%.+]] = bufferization.to_tensor %C restrict writable :
// CHECK-NEXT: [[d:%.+]] = linalg.matmul ins([[a]], [[b]] : {{.*}}) outs([[c]] :
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable %C
// CHECK-NEXT: return
func.func @normal(%A: memref<16x8xf16>, %B: memref<8x32xf16>, %C: memref<16x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<16x8xf16> to tensor<16x8xf16>
  %b = bufferization.to_tensor %B restrict : memref<8x32xf16> to tensor<8x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<16x32xf32> to tensor<16x32xf32>
  %d = linalg.matmul ins(%a, %b : tensor<16x8xf16>, tensor<8x32xf16>) outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<16x32xf32>, memref<16x32xf32>) -> ()
  return
}

// -----

// expected-error@unknown {{tc.normalize_payload: expected one function with a body, found 3}}
func.func private @other()
func.func @helper() {
  return
}
func.func @several_functions(%A: memref<16x8xf16>, %B: memref<8x32xf16>, %C: memref<16x32xf32>) {
  linalg.matmul ins(%A, %B : memref<16x8xf16>, memref<8x32xf16>) outs(%C : memref<16x32xf32>)
  return
}

// -----

// A transposed weight is column-major, three dimensions are two, and extensions are those of the matmul.
// CHECK-DAG: [[weight:#.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @linear(
// CHECK-SAME: [[X:%.+]]: memref<4x4x8xf16>, [[W:%.+]]: memref<32x8xf16>, [[C:%.+]]: memref<4x4x32xf32>) {
// CHECK: [[x:%.+]] = memref.collapse_shape [[X]] {{\[}}[0, 1], [2]] : memref<4x4x8xf16> into memref<16x8xf16>
// CHECK: [[a:%.+]] = bufferization.to_tensor [[x]] restrict
// CHECK: [[b:%.+]] = bufferization.to_tensor [[W]] restrict
// CHECK: [[y:%.+]] = memref.collapse_shape [[C]] {{\[}}[0, 1], [2]] : memref<4x4x32xf32> into memref<16x32xf32>
// CHECK: [[d:%.+]] = linalg.matmul indexing_maps = [{{.*}}, [[weight]], {{.*}}] ins([[a]], [[b]] : {{.*}})
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[y]]
// CHECK-NEXT: return
func.func @linear(%X: tensor<4x4x8xf16>, %W: tensor<32x8xf16>) -> tensor<4x4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4x32xf32>) -> tensor<4x4x32xf32>
  %wide = tensor.empty() : tensor<32x8xf32>
  %w = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%W : tensor<32x8xf16>) outs(%wide : tensor<32x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %e = arith.extf %in : f16 to f32
    linalg.yield %e : f32
  } -> tensor<32x8xf32>
  %d = linalg.contract indexing_maps = [
      affine_map<(b, s, n, k) -> (b, s, k)>, affine_map<(b, s, n, k) -> (n, k)>, affine_map<(b, s, n, k) -> (b, s, n)>]
      ins(%X, %w : tensor<4x4x8xf16>, tensor<32x8xf32>) outs(%start : tensor<4x4x32xf32>) -> tensor<4x4x32xf32>
  return %d : tensor<4x4x32xf32>
}

// -----

// A transposed result exchanges A and B.
// CHECK-LABEL: func.func @transposed_result(
// CHECK-SAME: [[A:%.+]]: memref<16x8xf16>, [[B:%.+]]: memref<32x8xf16>, [[C:%.+]]: memref<32x16xf32>) {
// CHECK-DAG: [[a:%.+]] = bufferization.to_tensor [[A]] restrict
// CHECK-DAG: [[b:%.+]] = bufferization.to_tensor [[B]] restrict
// CHECK: linalg.matmul indexing_maps = {{.*}} ins([[b]], [[a]] : tensor<32x8xf16>, tensor<16x8xf16>)
func.func @transposed_result(%A: memref<16x8xf16>, %B: memref<32x8xf16>, %C: memref<32x16xf32>) {
  linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%A, %B : memref<16x8xf16>, memref<32x8xf16>) outs(%C : memref<32x16xf32>)
  return
}

// -----

// Sums of bf16 become sums of f32: C is added to them before they are rounded, once.
// CHECK-LABEL: func.func @sums_in_bf16(
// CHECK-SAME: [[A:%.+]]: memref<16x8xbf16>, [[B:%.+]]: memref<8x32xbf16>, [[C:%.+]]: memref<16x32xbf16>) {
// CHECK: [[zeros:%.+]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<16x32xf32>)
// CHECK: [[sums:%.+]] = linalg.matmul ins({{.*}}) outs([[zeros]] : tensor<16x32xf32>)
// CHECK: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable
// CHECK: [[d:%.+]] = linalg.generic {{.*}} ins([[sums]] : tensor<16x32xf32>) outs([[c]] : tensor<16x32xbf16>)
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, [[y:%.+]]: bf16):
// CHECK-NEXT: [[w:%.+]] = arith.extf [[y]] : bf16 to f32
// CHECK-NEXT: [[s:%.+]] = arith.addf [[x]], [[w]] : f32
// CHECK-NEXT: [[r:%.+]] = arith.truncf [[s]] : f32 to bf16
// CHECK-NEXT: linalg.yield [[r]] : bf16
// CHECK: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
func.func @sums_in_bf16(%A: memref<16x8xbf16>, %B: memref<8x32xbf16>, %C: memref<16x32xbf16>) {
  linalg.matmul ins(%A, %B : memref<16x8xbf16>, memref<8x32xbf16>) outs(%C : memref<16x32xbf16>)
  return
}

// -----

func.func @local_c(%A: memref<16x8xf16>, %B: memref<8x32xf16>) {
  %C = memref.alloc() : memref<16x32xf32>
  // expected-error@+1 {{a linalg op on a buffer that is not an argument of the function}}
  linalg.matmul ins(%A, %B : memref<16x8xf16>, memref<8x32xf16>) outs(%C : memref<16x32xf32>)
  return
}

// -----

func.func @local_a(%B: memref<8x32xf16>, %C: memref<16x32xf32>) {
  %A = memref.alloc() : memref<16x8xf16>
  // expected-error@+1 {{a linalg op on a buffer that is not an argument of the function}}
  linalg.matmul ins(%A, %B : memref<16x8xf16>, memref<8x32xf16>) outs(%C : memref<16x32xf32>)
  return
}

// -----

// expected-error@+1 {{a function on tensors returns an argument beside another tensor}}
func.func @two_results(%A: tensor<16x8xf16>, %B: tensor<8x32xf16>, %C: tensor<16x32xf32>)
                       -> (tensor<16x32xf32>, tensor<16x32xf32>) {
  %d = linalg.matmul ins(%A, %B : tensor<16x8xf16>, tensor<8x32xf16>)
                           outs(%C : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %d, %C : tensor<16x32xf32>, tensor<16x32xf32>
}

// -----

// expected-error@+1 {{a function on tensors returns tensors, which are computed from the product}}
func.func @no_result(%A: tensor<16x8xf16>, %B: tensor<8x32xf16>, %C: tensor<16x32xf32>) {
  %d = linalg.matmul ins(%A, %B : tensor<16x8xf16>, tensor<8x32xf16>)
                           outs(%C : tensor<16x32xf32>) -> tensor<16x32xf32>
  return
}

// -----

// A contraction of a transposed A and a reshaped B is a matmul, whose maps have the layout; no element is moved.
// CHECK-DAG: #[[a_map:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[b_map:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: [[A:%.+]]: memref<8x16xf16>, [[B:%.+]]: memref<8x4x8xf16>, [[C:%.+]]: memref<16x32xf32>) {
// CHECK-DAG: [[a:%.+]] = bufferization.to_tensor [[A]] restrict : memref<8x16xf16> to tensor<8x16xf16>
// CHECK-DAG: [[matrix:%.+]] = memref.collapse_shape [[B]] {{\[}}[0], [1, 2]] : memref<8x4x8xf16> into memref<8x32xf16>
// CHECK-DAG: [[b:%.+]] = bufferization.to_tensor [[matrix]] restrict : memref<8x32xf16> to tensor<8x32xf16>
// CHECK: linalg.matmul indexing_maps = [#[[a_map]], #[[b_map]], #{{.+}}] ins([[a]], [[b]] :
// CHECK-NOT: linalg
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @transposed(%A: tensor<8x16xf16>, %B: tensor<8x4x8xf16>, %C: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %b = tensor.collapse_shape %B [[0], [1, 2]] : tensor<8x4x8xf16> into tensor<8x32xf16>
  %product = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %b : tensor<8x16xf16>, tensor<8x32xf16>) outs(%C : tensor<16x32xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %wide_x = arith.extf %x : f16 to f32
    %wide_y = arith.extf %y : f16 to f32
    %term = arith.mulf %wide_x, %wide_y : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<16x32xf32>
  return %product : tensor<16x32xf32>
}

// -----

// Each product of a pair is recognized.
// CHECK-DAG: #[[b_map:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @pair(
// CHECK-NOT: linalg.transpose
// CHECK: [[q:%.+]] = linalg.matmul indexing_maps = [#{{.+}}, #[[b_map]], #{{.+}}] ins(%{{.*}}, %{{.*}} :
// CHECK: [[p:%.+]] = linalg.matmul indexing_maps = [#{{.+}}, #[[b_map]], #{{.+}}] ins(%{{.*}}, %{{.*}} :
// CHECK: [[d:%.+]] = linalg.generic {{.*}} ins([[p]], [[q]] :
// CHECK: bufferization.materialize_in_destination [[d]] in restrict writable
#same = affine_map<(i, j) -> (i, j)>
func.func @pair(%A: tensor<16x8xf16>, %B: tensor<32x8xf16>, %G: tensor<32x8xf16>) -> tensor<16x32xf16> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<8x32xf16>
  %b = linalg.transpose ins(%B : tensor<32x8xf16>) outs(%rows : tensor<8x32xf16>) permutation = [1, 0]
  %g = linalg.transpose ins(%G : tensor<32x8xf16>) outs(%rows : tensor<8x32xf16>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<16x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x32xf32>) -> tensor<16x32xf32>
  %p = linalg.matmul ins(%A, %b : tensor<16x8xf16>, tensor<8x32xf16>) outs(%zeros : tensor<16x32xf32>)
      -> tensor<16x32xf32>
  %q = linalg.matmul ins(%A, %g : tensor<16x8xf16>, tensor<8x32xf16>) outs(%zeros : tensor<16x32xf32>)
      -> tensor<16x32xf32>
  %half = tensor.empty() : tensor<16x32xf16>
  %d = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<16x32xf32>, tensor<16x32xf32>) outs(%half : tensor<16x32xf16>) {
  ^bb0(%x: f32, %y: f32, %old: f16):
    %product = arith.mulf %x, %y : f32
    %rounded = arith.truncf %product : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<16x32xf16>
  return %d : tensor<16x32xf16>
}
