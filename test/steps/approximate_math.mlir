// Sigmoids and `1 + tanh` of an op whose results have 16 bits become an exponential to the base 2 and a reciprocal.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step approximate_math --split-input-file | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>

// The factor 1/2 of GELU is folded, and so is the factor of the operand of tanh.
// CHECK-LABEL: func.func @gelu(
// CHECK-DAG: [[c:%.+]] = arith.constant -2.30220819 : f32
// CHECK-DAG: [[one:%.+]] = arith.constant 1.000000e+00 : f32
// CHECK: ^bb0([[x:%.+]]: f32, %{{.*}}: f16):
// CHECK-NEXT: [[y:%.+]] = arith.mulf [[x]], [[c]] fastmath<contract> : f32
// CHECK-NEXT: [[e:%.+]] = math.exp2 [[y]] fastmath<afn> : f32
// CHECK-NEXT: [[s:%.+]] = arith.addf [[e]], [[one]] fastmath<contract> : f32
// CHECK-NEXT: [[r:%.+]] = arith.divf [[one]], [[s]] fastmath<afn> : f32
// CHECK-NEXT: [[g:%.+]] = arith.mulf [[x]], [[r]] fastmath<contract> : f32
// CHECK-NEXT: arith.truncf [[g]]
func.func @gelu(%p: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %k = arith.constant 0.797884583 : f32
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %o: f16):
    %u = arith.mulf %x, %k : f32
    %t = math.tanh %u : f32
    %s = arith.addf %t, %one : f32
    %h = arith.mulf %x, %half : f32
    %g = arith.mulf %h, %s : f32
    %v = arith.truncf %g : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// The argument of GELU, f (x + c x^3), becomes x (f + f c x^2).
// CHECK-LABEL: func.func @cubic(
// CHECK-DAG: [[f:%.+]] = arith.constant -2.30220819 : f32
// CHECK-DAG: [[fc:%.+]] = arith.constant -0.10294{{[0-9]*}} : f32
// CHECK: ^bb0([[x:%.+]]: f32, %{{.*}}: f16):
// CHECK-NEXT: [[square:%.+]] = arith.mulf [[x]], [[x]]
// CHECK-NEXT: [[scaled:%.+]] = arith.mulf [[square]], [[fc]]
// CHECK-NEXT: [[factor:%.+]] = arith.addf [[scaled]], [[f]]
// CHECK-NEXT: [[y:%.+]] = arith.mulf [[x]], [[factor]]
// CHECK-NEXT: math.exp2 [[y]]
// Another power than the third stays.
// CHECK-LABEL: func.func @fourth(
// CHECK: ^bb0([[x:%.+]]: f32, %{{.*}}: f16):
// CHECK: [[sum:%.+]] = arith.addf [[x]], %{{.*}}
// CHECK-NEXT: [[y:%.+]] = arith.mulf [[sum]], %{{.*}}
// CHECK-NEXT: math.exp2 [[y]]
func.func @cubic(%p: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %f = arith.constant 0.797884583 : f32
  %cubic = arith.constant 4.471500e-02 : f32
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %o: f16):
    %square = arith.mulf %x, %x : f32
    %power = arith.mulf %square, %x : f32
    %scaled = arith.mulf %cubic, %power : f32
    %sum = arith.addf %x, %scaled : f32
    %u = arith.mulf %sum, %f : f32
    %t = math.tanh %u : f32
    %s = arith.addf %t, %one : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}
func.func @fourth(%p: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %f = arith.constant 0.797884583 : f32
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %o: f16):
    %square = arith.mulf %x, %x : f32
    %power = arith.mulf %square, %square : f32
    %sum = arith.addf %x, %power : f32
    %u = arith.mulf %sum, %f : f32
    %t = math.tanh %u : f32
    %s = arith.addf %t, %one : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @silu(
// CHECK-DAG: [[c:%.+]] = arith.constant -1.44269502 : f32
// CHECK: ^bb0([[x:%.+]]: f32, %{{.*}}: bf16):
// CHECK: [[y:%.+]] = arith.mulf [[x]], [[c]] fastmath<contract> : f32
// CHECK-NEXT: math.exp2 [[y]] fastmath<afn> : f32
// CHECK: [[r:%.+]] = arith.divf
// CHECK-NEXT: arith.mulf [[x]], [[r]] fastmath<contract> : f32
func.func @silu(%p: tensor<8x8xf32>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c : tensor<8x8xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %s = arith.addf %one, %e : f32
    %g = arith.divf %x, %s : f32
    %v = arith.truncf %g : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<8x8xbf16>
  return %r : tensor<8x8xbf16>
}

// A result of f32 keeps the functions of libdevice.
// CHECK-LABEL: func.func @wide(
// CHECK: math.exp %{{.*}} : f32
// CHECK-NEXT: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: arith.divf %{{.*}}, %{{.*}} : f32
func.func @wide(%p: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %e = math.exp %x : f32
    %s = arith.addf %e, %one : f32
    %g = arith.divf %x, %s : f32
    linalg.yield %g : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// A tanh that is stored as well stays; 1 + tanh has no factor 1/2 to fold.
// CHECK-LABEL: func.func @both(
// CHECK: math.tanh
// CHECK: [[e:%.+]] = math.exp2 %{{.*}} fastmath<afn> : f32
// CHECK: [[h:%.+]] = arith.mulf [[e]], [[half:%.+]] fastmath<contract> : f32
// CHECK-NEXT: [[s:%.+]] = arith.addf [[h]], [[half]] fastmath<contract> : f32
// CHECK-NEXT: arith.divf %{{.*}}, [[s]] fastmath<afn> : f32
func.func @both(%p: tensor<8x8xf32>, %c: tensor<8x8xf16>, %d: tensor<8x8xf16>) -> (tensor<8x8xf16>, tensor<8x8xf16>) {
  %one = arith.constant 1.0 : f32
  %r:2 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c, %d : tensor<8x8xf16>, tensor<8x8xf16>) {
  ^bb0(%x: f32, %o: f16, %q: f16):
    %t = math.tanh %x : f32
    %s = arith.addf %t, %one : f32
    %v = arith.truncf %t : f32 to f16
    %w = arith.truncf %s : f32 to f16
    linalg.yield %v, %w : f16, f16
  } -> (tensor<8x8xf16>, tensor<8x8xf16>)
  return %r#0, %r#1 : tensor<8x8xf16>, tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// GELU by erf of a sum: its half contracts; the logarithm of the tail is a polynomial.
// CHECK-LABEL: func.func @gelu_erf(
// CHECK-DAG: [[half:%.+]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG: [[limit:%.+]] = arith.constant 3.000000e+00 : f32
// CHECK-DAG: [[sixth:%.+]] = arith.constant 0.002138{{[0-9]*}} : f32
// CHECK: ^bb0([[x:%.+]]: f32, [[b:%.+]]: f32, %{{.*}}: f16):
// CHECK-NEXT: [[hx:%.+]] = arith.mulf [[x]], [[half]] fastmath<contract> : f32
// CHECK-NEXT: [[hb:%.+]] = arith.mulf [[b]], [[half]] fastmath<contract> : f32
// CHECK-NEXT: [[h:%.+]] = arith.addf [[hx]], [[hb]] fastmath<contract> : f32
// CHECK-NEXT: [[m:%.+]] = math.absf [[h]] : f32
// CHECK-NEXT: [[z:%.+]] = arith.minimumf [[m]], [[limit]] : f32
// CHECK-NEXT: [[first:%.+]] = arith.mulf [[z]], [[sixth]] fastmath<contract> : f32
// CHECK-COUNT-5: arith.mulf %{{.*}}, [[z]] fastmath<contract> : f32
// CHECK-NEXT: [[y:%.+]] = arith.addf
// CHECK-NEXT: [[p:%.+]] = arith.addf [[h]], [[m]] fastmath<contract> : f32
// CHECK-NEXT: [[e:%.+]] = math.exp2 [[y]] fastmath<afn> : f32
// CHECK-NEXT: [[t:%.+]] = arith.mulf [[z]], [[e]] fastmath<contract> : f32
// CHECK-NEXT: [[g:%.+]] = arith.subf [[p]], [[t]] fastmath<contract> : f32
// CHECK-NEXT: arith.truncf [[g]]
func.func @gelu_erf(%p: tensor<8x8xf32>, %d: tensor<8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %k = arith.constant 0.707106769 : f32
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %d : tensor<8x8xf32>, tensor<8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%product: f32, %bias: f32, %o: f16):
    %x = arith.addf %product, %bias : f32
    %u = arith.mulf %x, %k : f32
    %t = math.erf %u : f32
    %s = arith.addf %t, %one : f32
    %h = arith.mulf %half, %x : f32
    %g = arith.mulf %s, %h : f32
    %v = arith.truncf %g : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// 1 + erf without x: a polynomial in 1 / (1 + p |v|), times an exponential; the side is selected by the sign.
// CHECK-LABEL: func.func @half_of_erf(
// CHECK: [[m:%.+]] = math.absf [[v:%.+]] : f32
// CHECK: arith.divf %{{.*}}, %{{.*}} fastmath<afn> : f32
// CHECK: math.exp2 %{{.*}} fastmath<afn> : f32
// CHECK: arith.cmpf olt, [[v]], %{{.*}} : f32
// CHECK: [[s:%.+]] = arith.select
// CHECK-NEXT: arith.truncf [[s]]
// CHECK-NOT: math.erf
func.func @half_of_erf(%p: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %o: f16):
    %t = math.erf %x : f32
    %s = arith.addf %t, %one : f32
    %h = arith.mulf %half, %s : f32
    %v = arith.truncf %h : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// A power by math.fpowi is one too.
// CHECK-LABEL: func.func @power(
// CHECK: ^bb0([[x:%.+]]: f32, %{{.*}}: f32, %{{.*}}: f16):
// CHECK-NEXT: [[square:%.+]] = arith.mulf [[x]], [[x]]
// CHECK-NEXT: [[scaled:%.+]] = arith.mulf [[square]], %{{.*}}
// CHECK-NEXT: [[factor:%.+]] = arith.addf [[scaled]], %{{.*}}
// CHECK-NEXT: [[y:%.+]] = arith.mulf [[x]], [[factor]]
// CHECK-NEXT: math.exp2 [[y]]
// The cube of another value stays.
// CHECK-LABEL: func.func @two_values(
// CHECK: ^bb0([[x:%.+]]: f32, [[z:%.+]]: f32, %{{.*}}: f16):
// CHECK: [[sum:%.+]] = arith.addf [[x]], %{{.*}}
// CHECK-NEXT: [[y:%.+]] = arith.mulf [[sum]], %{{.*}}
// CHECK-NEXT: math.exp2 [[y]]
// Half of a sum becomes the reciprocal, without a product.
// CHECK-LABEL: func.func @half_of_tanh(
// CHECK: [[e:%.+]] = math.exp2
// CHECK-NEXT: [[s:%.+]] = arith.addf [[e]], %{{.*}}
// CHECK-NEXT: [[r:%.+]] = arith.divf %{{.*}}, [[s]] fastmath<afn>
// CHECK-NEXT: arith.truncf [[r]]
// The quotient of two values with exponentials, which may be infinite, stays; that of one is rewritten.
// CHECK-LABEL: func.func @two_exponentials(
// CHECK: [[n:%.+]] = math.exp %{{.*}} : f32
// CHECK: [[d:%.+]] = math.exp %{{.*}} : f32
// CHECK-NEXT: [[s:%.+]] = arith.addf [[d]], %{{.*}}
// CHECK-NEXT: arith.divf %{{.*}}, [[s]] : f32
// CHECK-LABEL: func.func @of_another_op(
// CHECK: [[n:%.+]] = arith.addf
// CHECK: math.exp2
// CHECK: [[r:%.+]] = arith.divf {{.*}} fastmath<afn>
// CHECK-NEXT: arith.mulf [[n]], [[r]]
func.func @power(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %f = arith.constant 0.797884583 : f32
  %cubic = arith.constant 4.471500e-02 : f32
  %three = arith.constant 3 : i32
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %y: f32, %o: f16):
    %power = math.fpowi %x, %three : f32, i32
    %scaled = arith.mulf %cubic, %power : f32
    %sum = arith.addf %x, %scaled : f32
    %u = arith.mulf %sum, %f : f32
    %t = math.tanh %u : f32
    %s = arith.addf %t, %one : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}
func.func @two_values(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %f = arith.constant 0.797884583 : f32
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %y: f32, %o: f16):
    %square = arith.mulf %y, %y : f32
    %power = arith.mulf %square, %y : f32
    %sum = arith.addf %x, %power : f32
    %u = arith.mulf %sum, %f : f32
    %t = math.tanh %u : f32
    %s = arith.addf %t, %one : f32
    %v = arith.truncf %s : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}
func.func @half_of_tanh(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %y: f32, %o: f16):
    %t = math.tanh %x : f32
    %s = arith.addf %t, %one : f32
    %h = arith.mulf %s, %half : f32
    %v = arith.truncf %h : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}
func.func @two_exponentials(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %y: f32, %o: f16):
    %n = math.exp %y : f32
    %m = arith.mulf %n, %x : f32
    %e = math.exp %x : f32
    %s = arith.addf %e, %one : f32
    %g = arith.divf %m, %s : f32
    %v = arith.truncf %g : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}
func.func @of_another_op(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f32, %y: f32, %o: f16):
    %n = arith.addf %y, %x : f32
    %e = math.exp %x : f32
    %s = arith.addf %e, %one : f32
    %g = arith.divf %n, %s : f32
    %v = arith.truncf %g : f32 to f16
    linalg.yield %v : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// Functions of f16 are computed in f32, without roundings between.
// CHECK-LABEL: func.func @of_f16(
// CHECK: [[x:%.+]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NOT: math.tanh
// CHECK-NOT: arith.truncf
// CHECK: math.exp2 %{{.*}} fastmath<afn> : f32
// CHECK: [[s:%.+]] = arith.divf
// CHECK: arith.truncf [[s]] : f32 to f16
func.func @of_f16(%p: tensor<8x8xf16>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f16
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf16>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f16, %o: f16):
    %t = math.tanh %x : f16
    %s = arith.addf %t, %one : f16
    linalg.yield %s : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// GELU as torch-mlir writes it: the root of 2 is rounded to f16.
// CHECK-LABEL: func.func @gelu_of_f16(
// CHECK: [[x:%.+]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NOT: math.erf
// CHECK-NOT: arith.divf
// CHECK: math.exp2
// CHECK: [[y:%.+]] = arith.subf
// CHECK: arith.truncf [[y]] : f32 to f16
func.func @gelu_of_f16(%p: tensor<8x8xf16>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %two = arith.constant 2.0 : f16
  %one = arith.constant 1.0 : f16
  %half = arith.constant 0.5 : f16
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8x8xf16>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f16, %o: f16):
    %root = math.sqrt %two : f16
    %v = arith.divf %x, %root : f16
    %e = math.erf %v : f16
    %s = arith.addf %e, %one : f16
    %h = arith.mulf %s, %half : f16
    %y = arith.mulf %x, %h : f16
    linalg.yield %y : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// A division by a value, and one that is too small for a reciprocal, stay divisions; what a maximum reads is rounded.
// CHECK-LABEL: func.func @quotients_of_f16(
// CHECK: arith.divf %{{.*}} : f32
// CHECK: arith.divf %{{.*}} : f32
// CHECK: [[r:%.+]] = arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.maximumf [[r]], %{{.*}} : f16
func.func @quotients_of_f16(%p: tensor<8x8xf16>, %q: tensor<8x8xf16>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %one = arith.constant 1.0 : f16
  %small = arith.constant 5.96e-08 : f16
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x8xf16>, tensor<8x8xf16>) outs(%c : tensor<8x8xf16>) {
  ^bb0(%x: f16, %d: f16, %o: f16):
    %v = arith.divf %x, %d : f16
    %u = arith.divf %v, %small : f16
    %t = math.tanh %u : f16
    %s = arith.addf %t, %one : f16
    %m = arith.maximumf %s, %d : f16
    linalg.yield %m : f16
  } -> tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}
