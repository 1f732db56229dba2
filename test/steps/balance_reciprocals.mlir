// The second element of a sigmoid's reciprocal is computed by an integer subtraction and two steps of Newton's iteration.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step balance_reciprocals --set math=fast | FileCheck %s

// CHECK-LABEL: func.func @sigmoid(
// CHECK: [[total:%.+]] = arith.addf
// CHECK-NEXT: [[one:%.+]] = vector.extract %{{.*}}[0] : f32 from vector<2xf32>
// CHECK-NEXT: [[even:%.+]] = vector.extract [[total]][0]
// CHECK-NEXT: [[first:%.+]] = arith.divf [[one]], [[even]] fastmath<afn> : f32
// CHECK: [[odd:%.+]] = vector.extract [[total]][1]
// CHECK: [[limit:%.+]] = arith.constant 1.61708893E+38 : f32
// CHECK-NEXT: [[limited:%.+]] = arith.minimumf [[odd]], [[limit]] : f32
// CHECK: [[magic:%.+]] = arith.constant 2129874944 : i32
// CHECK: [[bits:%.+]] = arith.bitcast [[limited]] : f32 to i32
// CHECK-NEXT: [[estimate:%.+]] = arith.subi [[magic]], [[bits]] : i32
// CHECK-NEXT: [[guess:%.+]] = arith.bitcast [[estimate]] : i32 to f32
// CHECK-NEXT: [[product:%.+]] = arith.mulf [[limited]], [[guess]] fastmath<contract> : f32
// CHECK-NEXT: [[two:%.+]] = arith.constant 2.001{{[0-9]*}} : f32
// CHECK-NEXT: [[rest:%.+]] = arith.subf [[two]], [[product]] fastmath<contract> : f32
// CHECK-NEXT: [[better:%.+]] = arith.mulf [[guess]], [[rest]] : f32
// CHECK: [[last:%.+]] = arith.mulf [[better]], %{{.*}} : f32
// CHECK-NEXT: vector.from_elements [[first]], [[last]] : vector<2xf32>
func.func @sigmoid(%y: vector<2xf32>) -> vector<2xf32> {
  %one = arith.constant dense<1.0> : vector<2xf32>
  %power = math.exp2 %y fastmath<afn> : vector<2xf32>
  %total = arith.addf %power, %one fastmath<contract> : vector<2xf32>
  %part = arith.divf %one, %total fastmath<afn> : vector<2xf32>
  return %part : vector<2xf32>
}

// Of four elements, the second and the fourth.
// CHECK-LABEL: func.func @four(
// CHECK: arith.divf
// CHECK-NOT: arith.divf
// CHECK: arith.subi
// CHECK-NOT: arith.subi
// CHECK: arith.divf
// CHECK-NOT: arith.divf
// CHECK: arith.subi
// CHECK: vector.from_elements {{.*}} : vector<4xf32>
func.func @four(%y: vector<4xf32>) -> vector<4xf32> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %power = math.exp2 %y fastmath<afn> : vector<4xf32>
  %total = arith.addf %power, %one fastmath<contract> : vector<4xf32>
  %part = arith.divf %one, %total fastmath<afn> : vector<4xf32>
  return %part : vector<4xf32>
}

// Exact quotients, those of other sums and of products, and single ones stay.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-4: arith.divf
// CHECK-NOT: arith.subi
func.func @others(%y: vector<2xf32>, %z: f32) -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, f32) {
  %one = arith.constant dense<1.0> : vector<2xf32>
  %single = arith.constant 1.0 : f32
  %power = math.exp2 %y fastmath<afn> : vector<2xf32>
  %total = arith.addf %power, %one : vector<2xf32>
  %exact = arith.divf %one, %total : vector<2xf32>
  %sum = arith.addf %y, %one : vector<2xf32>
  %other = arith.divf %one, %sum fastmath<afn> : vector<2xf32>
  %scaled = arith.mulf %power, %y : vector<2xf32>
  %product = arith.divf %one, %scaled fastmath<afn> : vector<2xf32>
  %e = math.exp2 %z fastmath<afn> : f32
  %d = arith.addf %e, %single : f32
  %number = arith.divf %single, %d fastmath<afn> : f32
  return %exact, %other, %product, %number : vector<2xf32>, vector<2xf32>, vector<2xf32>, f32
}
