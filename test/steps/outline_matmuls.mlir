// Each matmul takes the transpose of its weight and the elementwise ops behind it along: also both uses of x * sigmoid(x),
// and the product with another matmul's result, which is a stage before it. What two ops read ends a stage.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step outline_matmuls --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s
// RUN: sed -n '/^.. The transpose that merges/,$p' %s | %stepladder-opt - --step outline_matmuls --set columns=false \
// RUN:   --pipeline %transforms/functions/functions.mlir | FileCheck %s --check-prefix=WHOLE

// CHECK-LABEL: func.func @gated(%x: tensor<8x16xf16>, %w: tensor<32x16xf16>, %u: tensor<16x32xf16>)
// CHECK-SAME: attributes {has_stages}
// CHECK-NEXT: [[up:%.+]] = call @gated_matmul_1(%x, %u) : (tensor<8x16xf16>, tensor<16x32xf16>)
// CHECK-NEXT: [[h:%.+]] = call @gated_matmul_0(%w, %x, [[up]])
// CHECK-NEXT: return [[h]]
// CHECK: func.func private @gated_matmul_0(
// CHECK: linalg.transpose
// CHECK: linalg.matmul
// CHECK: math.exp
// CHECK-COUNT-2: linalg.mul ins(
// CHECK: func.func private @gated_matmul_1(
// CHECK: linalg.matmul
// CHECK: arith.truncf
// CHECK: return
#map = affine_map<(i, j) -> (i, j)>
func.func @gated(%x: tensor<8x16xf16>, %w: tensor<32x16xf16>, %u: tensor<16x32xf16>) -> tensor<8x32xf16> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %0 = tensor.empty() : tensor<16x32xf16>
  %t = linalg.transpose ins(%w : tensor<32x16xf16>) outs(%0 : tensor<16x32xf16>) permutation = [1, 0]
  %1 = tensor.empty() : tensor<8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%1 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %sums = linalg.matmul ins(%x, %t : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %2 = tensor.empty() : tensor<8x32xf16>
  %g = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%sums : tensor<8x32xf32>) outs(%2 : tensor<8x32xf16>) {
  ^bb0(%in: f32, %out: f16):
    %v = arith.truncf %in : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x32xf16>
  %s = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<8x32xf16>) outs(%2 : tensor<8x32xf16>) {
  ^bb0(%in: f16, %out: f16):
    %n = arith.negf %in : f16
    %e = math.exp %n : f16
    %d = arith.addf %e, %one : f16
    %v = arith.divf %one, %d : f16
    linalg.yield %v : f16
  } -> tensor<8x32xf16>
  %silu = linalg.mul ins(%g, %s : tensor<8x32xf16>, tensor<8x32xf16>) outs(%2 : tensor<8x32xf16>) -> tensor<8x32xf16>
  %others = linalg.matmul ins(%x, %u : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %up = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%others : tensor<8x32xf32>) outs(%2 : tensor<8x32xf16>) {
  ^bb0(%in: f32, %out: f16):
    %v = arith.truncf %in : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x32xf16>
  %h = linalg.mul ins(%silu, %up : tensor<8x32xf16>, tensor<8x32xf16>) outs(%2 : tensor<8x32xf16>) -> tensor<8x32xf16>
  return %h : tensor<8x32xf16>
}

// -----

// A reduction of what the matmul's kernel computes is a result of it; one of another op's result is not.
// CHECK-LABEL: func.func @softmax(
// CHECK: [[x:%.+]]:2 = call @softmax_matmul_0(%a, %b)
// CHECK: [[e:%.+]] = linalg.generic {{.*}} ins([[x]]#0, [[x]]#1 :
// CHECK: linalg.reduce ins([[e]] :
// CHECK: func.func private @softmax_matmul_0(
// CHECK: [[sums:%.+]] = linalg.matmul
// CHECK: [[most:%.+]] = linalg.reduce ins([[sums]] : tensor<8x16xf32>) outs({{.*}} : tensor<8xf32>) dimensions = [1]
// CHECK: return [[sums]], [[most]] : tensor<8x16xf32>, tensor<8xf32>
func.func @softmax(%a: tensor<8x16xf16>, %b: tensor<16x16xf16>) -> (tensor<8x16xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %sums = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x16xf16>) outs(%zeros : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  %1 = tensor.empty() : tensor<8xf32>
  %2 = linalg.fill ins(%least : f32) outs(%1 : tensor<8xf32>) -> tensor<8xf32>
  %most = linalg.reduce ins(%sums : tensor<8x16xf32>) outs(%2 : tensor<8xf32>) dimensions = [1]
    (%x: f32, %y: f32) {
      %v = arith.maximumf %x, %y : f32
      linalg.yield %v : f32
    }
  %e = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %most : tensor<8x16xf32>, tensor<8xf32>) outs(%0 : tensor<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %d = arith.subf %x, %y : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%1 : tensor<8xf32>) -> tensor<8xf32>
  %total = linalg.reduce ins(%e : tensor<8x16xf32>) outs(%3 : tensor<8xf32>) dimensions = [1]
    (%x: f32, %y: f32) {
      %v = arith.addf %x, %y : f32
      linalg.yield %v : f32
    }
  return %e, %total : tensor<8x16xf32>, tensor<8xf32>
}

// -----

// A matmul that starts from a value starts from zeros, and the value is added behind it. Two functions of its sums are
// stored by its kernel.
// CHECK-LABEL: func.func @two_uses(
// CHECK: [[r:%.+]]:2 = call @two_uses_matmul_0(
// CHECK-NEXT: return [[r]]#0, [[r]]#1
// CHECK: func.func private @two_uses_matmul_0(
// CHECK: linalg.fill
// CHECK: linalg.matmul
// CHECK: [[sums:%.+]] = linalg.add
// CHECK: linalg.exp ins([[sums]]
// CHECK: linalg.abs ins([[sums]]
func.func @two_uses(%a: tensor<8x16xf16>, %b: tensor<16x8xf16>, %c: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %sums = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x8xf16>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = tensor.empty() : tensor<8x8xf32>
  %x = linalg.exp ins(%sums : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.abs ins(%sums : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// One in bf16 has sums in f32, to which the value is added before they are rounded.
// CHECK-LABEL: func.func @rounded_once(
// CHECK: func.func private @rounded_once_matmul_0(
// CHECK-SAME: [[c:%arg2]]: tensor<8x8xbf16>
// CHECK: [[sums:%.+]] = linalg.matmul ins({{.*}}) outs({{.*}}) -> tensor<8x8xf32>
// CHECK: linalg.generic {{.*}} ins([[sums]], [[c]] : tensor<8x8xf32>, tensor<8x8xbf16>)
// CHECK: [[wide:%.+]] = arith.extf
// CHECK-NEXT: [[total:%.+]] = arith.addf %{{.+}}, [[wide]]
// CHECK-NEXT: arith.truncf [[total]]
// CHECK: // -----
func.func @rounded_once(%a: tensor<8x16xbf16>, %b: tensor<16x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %sums = linalg.matmul ins(%a, %b : tensor<8x16xbf16>, tensor<16x8xbf16>) outs(%c : tensor<8x8xbf16>)
      -> tensor<8x8xbf16>
  return %sums : tensor<8x8xbf16>
}

// -----

// A batch of products with one row each is no matmul of matrix units.
//
// CHECK-LABEL: func.func @vectors(
// CHECK-NOT: call
// CHECK: linalg.batch_matmul
// CHECK-NOT: func.func private
func.func @vectors(%x: tensor<4x1x32xf16>, %w: tensor<4x32x16xf16>, %c: tensor<4x1x16xf32>) -> tensor<4x1x16xf32> {
  %y = linalg.batch_matmul ins(%x, %w : tensor<4x1x32xf16>, tensor<4x32x16xf16>) outs(%c : tensor<4x1x16xf32>)
    -> tensor<4x1x16xf32>
  return %y : tensor<4x1x16xf32>
}

// -----

// A cast that widens the operand of a later matmul belongs to that matmul: what lies between is stored in f16.
// CHECK-LABEL: func.func @widened_operand(
// CHECK: [[h:%.+]] = call @widened_operand_matmul_0({{.+}}) : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf16>
// CHECK: call @widened_operand_matmul_1({{.*}}[[h]]{{.*}} -> tensor<8x16xf32>
// CHECK: func.func private @widened_operand_matmul_1(
// CHECK: arith.extf
// CHECK: linalg.matmul
#map = affine_map<(i, j) -> (i, j)>

func.func @widened_operand(%x: tensor<8x16xf16>, %w: tensor<16x16xf16>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x16xf32>
  %1 = tensor.empty() : tensor<8x16xf16>
  %2 = tensor.empty() : tensor<16x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %sums = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x16xf16>) outs(%zeros : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  %h = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%sums : tensor<8x16xf32>) outs(%1 : tensor<8x16xf16>) {
  ^bb0(%in: f32, %out: f16):
    %v = arith.truncf %in : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x16xf16>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x16xf16>) outs(%0 : tensor<8x16xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x16xf16>) outs(%2 : tensor<16x16xf32>) {
  ^bb0(%in: f16, %out: f32):
    %v = arith.extf %in : f16 to f32
    linalg.yield %v : f32
  } -> tensor<16x16xf32>
  %y = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x16xf32>) outs(%zeros : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// An A of one number, such as the first state of a recurrent layer, is written by a kernel of its own.
//
// CHECK-LABEL: func.func @first_state(
// CHECK: [[state:%.+]] = linalg.copy
// CHECK: call @first_state_matmul_0([[state]], %w)
func.func @first_state(%w: tensor<16x8xf16>) -> tensor<4x8xf32> {
  %ones = arith.constant dense<1.0> : tensor<4x16xf16>
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%ones, %w : tensor<4x16xf16>, tensor<16x8xf16>) outs(%zeros : tensor<4x8xf32>)
    -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// What the sums start from is added behind the matmul, if it is a number other than 0.
//
// CHECK-LABEL: func.func @from_ones(
// CHECK: call @from_ones_matmul_0(%a, %b)
// CHECK: func.func private @from_ones_matmul_0(
// CHECK: [[zero:%.+]] = arith.constant 0.000000e+00 : f32
// CHECK: [[zeros:%.+]] = linalg.fill ins([[zero]] : f32)
// CHECK: linalg.matmul {{.*}} outs([[zeros]] :
// CHECK: linalg.add
func.func @from_ones(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>) -> tensor<4x8xf32> {
  %one = arith.constant 1.0 : f32
  %0 = tensor.empty() : tensor<4x8xf32>
  %ones = linalg.fill ins(%one : f32) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%ones : tensor<4x8xf32>)
    -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @dynamic(%a: tensor<?x16xf16>, %b: tensor<16x8xf16>, %c: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{tc.outline_matmuls: linalg.matmul has dynamic shapes; sizes must be static}}
  %sums = linalg.matmul ins(%a, %b : tensor<?x16xf16>, tensor<16x8xf16>) outs(%c : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %sums : tensor<?x8xf32>
}

// -----

// Ops that write over the product, as whole-tensor arithmetic becomes, are part of its kernel.
//
// CHECK-LABEL: func.func @in_place(
// CHECK-NEXT: [[c:%.+]] = call @in_place_matmul_0(%a, %b, %bias)
// CHECK-NEXT: return [[c]]
// CHECK: func.func private @in_place_matmul_0(
// CHECK: linalg.matmul
// CHECK: linalg.add
// CHECK-SAME: outs(%{{[0-9]+}} : tensor<8x32xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{[0-9]+}} : tensor<8x32xf32>)
// CHECK: arith.maximumf
// CHECK: return
#whole = affine_map<(i, j) -> (i, j)>
func.func @in_place(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>, %bias: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %sums = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %biased = linalg.add ins(%sums, %bias : tensor<8x32xf32>, tensor<8x32xf32>) outs(%sums : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %numbers = arith.constant dense<0.5> : tensor<8x32xf32>
  %c = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%biased, %numbers : tensor<8x32xf32>, tensor<8x32xf32>) outs(%biased : tensor<8x32xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %v = arith.maximumf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<8x32xf32>
  return %c : tensor<8x32xf32>
}

// -----

// What dequantizes a weight is part of its matmul, with the view of it; what another op reads too is not.

// CHECK-LABEL: func.func @stored_weights(
// CHECK: [[made:%.+]] = linalg.generic {{.*}} ins(%p : tensor<32x16xi8>)
// CHECK: call @stored_weights_matmul_0(%q, %s, %x)
// CHECK-NEXT: call @stored_weights_matmul_1(%x, [[made]])
// CHECK: func.func private @stored_weights_matmul_0(
// CHECK: arith.sitofp
// CHECK: arith.mulf
// CHECK: linalg.matmul
func.func @stored_weights(%x: tensor<8x16xf16>, %q: tensor<32x16xi8>, %s: tensor<32xf16>, %p: tensor<32x16xi8>)
    -> (tensor<8x32xf32>, tensor<8x32xf32>, tensor<32x16xf16>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<32x16xf16>
  %made = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<32x16xi8>, tensor<32xf16>) outs(%0 : tensor<32x16xf16>) {
  ^bb0(%number: i8, %scale: f16, %out: f16):
    %wide = arith.sitofp %number : i8 to f16
    %value = arith.mulf %wide, %scale : f16
    linalg.yield %value : f16
  } -> tensor<32x16xf16>
  %other = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x16xi8>) outs(%0 : tensor<32x16xf16>) {
  ^bb0(%number: i8, %out: f16):
    %wide = arith.sitofp %number : i8 to f16
    linalg.yield %wide : f16
  } -> tensor<32x16xf16>
  %1 = tensor.empty() : tensor<8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%1 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%x, %made : tensor<8x16xf16>, tensor<32x16xf16>)
      outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %d = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%x, %other : tensor<8x16xf16>, tensor<32x16xf16>)
      outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %c, %d, %other : tensor<8x32xf32>, tensor<8x32xf32>, tensor<32x16xf16>
}

// -----

// A comparison with a constant in f64, as PyTorch writes it, is one of the f16 that are compared, with its neighbour.

// CHECK-LABEL: func.func @masked(
// CHECK-NEXT: [[r:%.+]] = call @masked_matmul_0(%x, %w)
// CHECK-NEXT: return [[r]]
// CHECK: func.func private @masked_matmul_0(
// CHECK: arith.constant 9.997550e-02 : f16
// CHECK: arith.cmpf ogt, %{{.+}}, %{{.+}} : f16
// CHECK-NOT: f64
func.func @masked(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>) -> tensor<8x32xf16> {
  %zero = arith.constant 0.0 : f16
  %limit = arith.constant 1.000000e-01 : f64
  %0 = tensor.empty() : tensor<8x32xf16>
  %1 = tensor.empty() : tensor<8x32xi1>
  %zeros = linalg.fill ins(%zero : f16) outs(%0 : tensor<8x32xf16>) -> tensor<8x32xf16>
  %sums = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf16>)
    -> tensor<8x32xf16>
  %mask = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<8x32xf16>) outs(%1 : tensor<8x32xi1>) {
  ^bb0(%sum: f16, %out: i1):
    %wide = arith.extf %sum : f16 to f64
    %is = arith.cmpf ogt, %wide, %limit : f64
    linalg.yield %is : i1
  } -> tensor<8x32xi1>
  %r = linalg.select ins(%mask, %zeros, %sums : tensor<8x32xi1>, tensor<8x32xf16>, tensor<8x32xf16>)
    outs(%0 : tensor<8x32xf16>) -> tensor<8x32xf16>
  return %r : tensor<8x32xf16>
}

// -----

// Columns of which one is returned too: no matmul writes it in their tensor, and the function assembles them itself.

// CHECK-LABEL: func.func @returned_too(
// CHECK-NOT: call @join
// CHECK: tensor.extract
// CHECK-NOT: func.func private @join
func.func @returned_too(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf16>, %d: tensor<64x64xf16>)
    -> (tensor<32x128xf16>, tensor<32x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<32x64xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<32x64xf16>) -> tensor<32x64xf16>
  %p = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %q = linalg.matmul ins(%a, %c : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %r = linalg.matmul ins(%a, %d : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %s = linalg.mul ins(%q, %r : tensor<32x64xf16>, tensor<32x64xf16>) outs(%e : tensor<32x64xf16>) -> tensor<32x64xf16>
  %all = call @join(%p, %s) : (tensor<32x64xf16>, tensor<32x64xf16>) -> tensor<32x128xf16>
  return %all, %p : tensor<32x128xf16>, tensor<32x64xf16>
}
func.func private @join(%x: tensor<32x64xf16>, %y: tensor<32x64xf16>) -> tensor<32x128xf16>
    attributes {assembles = array<i64: 0, 128>, extents = [array<i64: 32, 64>, array<i64: 32, 64>]} {
  %e = tensor.empty() : tensor<32x128xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<32x128xf16>) {
  ^bb0(%out: f16):
    %c64 = arith.constant 64 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.remui %j, %c64 : index
    %first = arith.cmpi ult, %j, %c64 : index
    %one = tensor.extract %x[%i, %k] : tensor<32x64xf16>
    %two = tensor.extract %y[%i, %k] : tensor<32x64xf16>
    %either = arith.select %first, %one, %two : f16
    linalg.yield %either : f16
  } -> tensor<32x128xf16>
  return %r : tensor<32x128xf16>
}

// -----

// A sum and its rounding, which is multiplied, are both stored by the kernel. Where another op reads the sum, the rounding
// is part of another kernel.

// CHECK-LABEL: func.func @stored(
// CHECK-NEXT: [[r:%.+]]:2 = call @stored_matmul_0(%x, %w) : {{.*}} -> (tensor<8x32xf32>, tensor<8x32xf16>)
// CHECK-NEXT: [[q:%.+]] = call @stored_matmul_1([[r]]#1, %v)
// CHECK-NEXT: return [[r]]#0, [[q]]
func.func @stored(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>, %v: tensor<32x16xf16>)
    -> (tensor<8x32xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x32xf32>
  %1 = tensor.empty() : tensor<8x32xf16>
  %2 = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %more = linalg.fill ins(%zero : f32) outs(%2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %t = linalg.map { arith.truncf } ins(%p : tensor<8x32xf32>) outs(%1 : tensor<8x32xf16>)
  %q = linalg.matmul ins(%t, %v : tensor<8x32xf16>, tensor<32x16xf16>) outs(%more : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  return %p, %q : tensor<8x32xf32>, tensor<8x16xf32>
}

// -----

// CHECK-LABEL: func.func @read(
// CHECK: [[r:%.+]] = call @read_matmul_0(%x, %w) : {{.*}} -> tensor<8x32xf32>
// CHECK: arith.truncf
func.func @read(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>) -> (tensor<8xf32>, tensor<8x32xf16>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x32xf32>
  %1 = tensor.empty() : tensor<8x32xf16>
  %2 = tensor.empty() : tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %one = linalg.fill ins(%zero : f32) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %t = linalg.map { arith.truncf } ins(%p : tensor<8x32xf32>) outs(%1 : tensor<8x32xf16>)
  %s = linalg.reduce { arith.mulf } ins(%p : tensor<8x32xf32>) outs(%one : tensor<8xf32>) dimensions = [1]
  return %s, %t : tensor<8xf32>, tensor<8x32xf16>
}

// -----

// A sum and its rounding, which is multiplied, are both stored by the kernel. Where another op reads the sum, the rounding
// is part of another kernel.

// CHECK-LABEL: func.func @stored(
// CHECK-NEXT: [[r:%.+]]:2 = call @stored_matmul_0(%x, %w) : {{.*}} -> (tensor<8x32xf32>, tensor<8x32xf16>)
// CHECK-NEXT: [[q:%.+]] = call @stored_matmul_1([[r]]#1, %v)
// CHECK-NEXT: return [[r]]#0, [[q]]
func.func @stored(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>, %v: tensor<32x16xf16>)
    -> (tensor<8x32xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x32xf32>
  %1 = tensor.empty() : tensor<8x32xf16>
  %2 = tensor.empty() : tensor<8x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %more = linalg.fill ins(%zero : f32) outs(%2 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %t = linalg.map { arith.truncf } ins(%p : tensor<8x32xf32>) outs(%1 : tensor<8x32xf16>)
  %q = linalg.matmul ins(%t, %v : tensor<8x32xf16>, tensor<32x16xf16>) outs(%more : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  return %p, %q : tensor<8x32xf32>, tensor<8x16xf32>
}

// -----

// CHECK-LABEL: func.func @read(
// CHECK: [[r:%.+]] = call @read_matmul_0(%x, %w) : {{.*}} -> tensor<8x32xf32>
// CHECK: arith.truncf
func.func @read(%x: tensor<8x16xf16>, %w: tensor<16x32xf16>) -> (tensor<8xf32>, tensor<8x32xf16>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x32xf32>
  %1 = tensor.empty() : tensor<8x32xf16>
  %2 = tensor.empty() : tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %one = linalg.fill ins(%zero : f32) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  %t = linalg.map { arith.truncf } ins(%p : tensor<8x32xf32>) outs(%1 : tensor<8x32xf16>)
  %s = linalg.reduce { arith.mulf } ins(%p : tensor<8x32xf32>) outs(%one : tensor<8xf32>) dimensions = [1]
  return %s, %t : tensor<8xf32>, tensor<8x32xf16>
}

// -----

// The transpose that merges heads is part of the matmul, which writes rows with a pitch, unless the pipelines do not.
//
// CHECK-LABEL: func.func @merged(
// CHECK-NEXT: [[merged:%.+]] = call @merged_matmul_0(%p, %v) : (tensor<4x8x16xf16>, tensor<4x16x32xf16>) -> tensor<8x128xf16>
// CHECK-NEXT: call @merged_matmul_1([[merged]], %w)
// WHOLE-LABEL: func.func @merged(
// WHOLE: [[heads:%.+]] = call @merged_matmul_0(%p, %v) : (tensor<4x8x16xf16>, tensor<4x16x32xf16>) -> tensor<4x8x32xf16>
// WHOLE: linalg.transpose ins([[heads]]
// WHOLE: call @merged_matmul_1(
func.func @merged(%p: tensor<4x8x16xf16>, %v: tensor<4x16x32xf16>, %w: tensor<128x64xf16>) -> tensor<8x64xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4x8x32xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4x8x32xf16>) -> tensor<4x8x32xf16>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x8x16xf16>, tensor<4x16x32xf16>) outs(%1 : tensor<4x8x32xf16>)
    -> tensor<4x8x32xf16>
  %2 = tensor.empty() : tensor<8x4x32xf16>
  %t = linalg.transpose ins(%o : tensor<4x8x32xf16>) outs(%2 : tensor<8x4x32xf16>) permutation = [1, 0, 2]
  %m = tensor.collapse_shape %t [[0], [1, 2]] : tensor<8x4x32xf16> into tensor<8x128xf16>
  %3 = tensor.empty() : tensor<8x64xf16>
  %4 = linalg.fill ins(%zero : f16) outs(%3 : tensor<8x64xf16>) -> tensor<8x64xf16>
  %y = linalg.matmul ins(%m, %w : tensor<8x128xf16>, tensor<128x64xf16>) outs(%4 : tensor<8x64xf16>)
    -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}
