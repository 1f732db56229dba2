// Casts to fp8 by pairs from sm_89 on: what is beyond the largest number gets the bits after its own, unless a clamp
// bounds it. Before sm_89, and of an odd number of elements, by integer arithmetic. Other casts stay.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step lower_fp8_casts --split-input-file | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wmma --step lower_fp8_casts --split-input-file | FileCheck %s --check-prefix BITS

// CHECK-LABEL: func.func @pair(
// CHECK: [[X:%.+]] = vector.extract %x[0] : f32 from vector<2xf32>
// CHECK: [[Y:%.+]] = vector.extract %x[1] : f32 from vector<2xf32>
// CHECK: [[BYTES:%.+]] = nvvm.convert.f32x2.to.f8x2 [[Y]], [[X]] {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : vector<2xi8>{{ ?}}(f8E4M3FN)
// CHECK: [[BOTH:%.+]] = vector.bitcast [[BYTES]] : vector<2xi8> to vector<1xi16>
// CHECK: [[PAIR:%.+]] = vector.extract [[BOTH]][0]
// CHECK: [[MX:%.+]] = math.absf [[X]] : f32
// CHECK: [[HALFWAY:%.+]] = arith.constant 4.640000e+02 : f32
// CHECK: arith.cmpf ogt, [[MX]], [[HALFWAY]] : f32
// CHECK: math.absf [[Y]] : f32
// CHECK: arith.shli
// CHECK: arith.addi [[PAIR]], {{.*}} : i16
// CHECK: arith.bitcast {{.*}} : vector<2xi8> to vector<2xf8E4M3FN>
// BITS-LABEL: func.func @pair(
// BITS-NOT: nvvm.
// BITS: arith.bitcast %x : vector<2xf32> to vector<2xi32>
// BITS: arith.minui
// BITS: arith.bitcast {{.*}} : vector<2xi8> to vector<2xf8E4M3FN>
func.func @pair(%x: vector<2xf32>) -> vector<2xf8E4M3FN> {
  %q = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>
  return %q : vector<2xf8E4M3FN>
}

// -----

// Casts between integers and fp8 are by way of f32.
// CHECK-LABEL: func.func @integers(
// CHECK: [[W:%.+]] = arith.uitofp %x : i1 to f32
// CHECK: nvvm.convert.f32x2.to.f8x2 [[W]], [[W]]
// CHECK: [[E:%.+]] = arith.extf {{.*}} : vector<2xf16> to vector<2xf32>
// CHECK: arith.fptosi [[E]] : vector<2xf32> to vector<2xi32>
func.func @integers(%x: i1, %y: vector<2xf8E5M2>) -> (f8E4M3FN, vector<2xi32>) {
  %q = arith.uitofp %x : i1 to f8E4M3FN
  %i = arith.fptosi %y : vector<2xf8E5M2> to vector<2xi32>
  return %q, %i : f8E4M3FN, vector<2xi32>
}

// -----

// f8E5M2 has infinity, and halfway to it is rounded up.
// CHECK-LABEL: func.func @number(
// CHECK: [[W:%.+]] = arith.extf %x : bf16 to f32
// CHECK: nvvm.convert.f32x2.to.f8x2 [[W]], [[W]] {{.*}}(f8E5M2)
// CHECK: arith.constant 6.144000e+04 : f32
// CHECK: arith.cmpf oge
func.func @number(%x: bf16) -> f8E5M2 {
  %q = arith.truncf %x : bf16 to f8E5M2
  return %q : f8E5M2
}

// -----

// CHECK-LABEL: func.func @clamped(
// CHECK-COUNT-2: nvvm.convert.f32x2.to.f8x2
// CHECK-NOT: math.absf
// CHECK: arith.bitcast
func.func @clamped(%x: vector<2x2xf32>) -> vector<2x2xf8E4M3FN> {
  %low = arith.constant dense<-4.480000e+02> : vector<2x2xf32>
  %high = arith.constant dense<4.480000e+02> : vector<2x2xf32>
  %0 = arith.maximumf %x, %low : vector<2x2xf32>
  %1 = arith.minimumf %0, %high : vector<2x2xf32>
  %q = arith.truncf %1 : vector<2x2xf32> to vector<2x2xf8E4M3FN>
  return %q : vector<2x2xf8E4M3FN>
}

// -----

// A clamp of one side, or to a larger number, does not bound.
// CHECK-LABEL: func.func @not_clamped(
// CHECK: nvvm.convert.f32x2.to.f8x2
// CHECK: math.absf
// CHECK: nvvm.convert.f32x2.to.f8x2
// CHECK: math.absf
func.func @not_clamped(%x: f32) -> (f8E4M3FN, f8E4M3FN) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -448.0 : f32
  %high = arith.constant 460.0 : f32
  %0 = arith.maximumf %x, %zero : f32
  %q = arith.truncf %0 : f32 to f8E4M3FN
  %1 = arith.maximumf %x, %low : f32
  %2 = arith.minimumf %1, %high : f32
  %r = arith.truncf %2 : f32 to f8E4M3FN
  return %q, %r : f8E4M3FN, f8E4M3FN
}

// -----

// CHECK-LABEL: func.func @others(
// CHECK: arith.bitcast %x : vector<3xf32> to vector<3xi32>
// CHECK: arith.bitcast %y : f8E4M3FN to i8
// CHECK: arith.mulf {{.*}} : f16
// CHECK: arith.truncf %z : f32 to f16
// CHECK-NEXT: return
func.func @others(%x: vector<3xf32>, %y: f8E4M3FN, %z: f32) -> (vector<3xf8E5M2>, f32, f16) {
  %q = arith.truncf %x : vector<3xf32> to vector<3xf8E5M2>
  %w = arith.extf %y : f8E4M3FN to f32
  %h = arith.truncf %z : f32 to f16
  return %q, %w, %h : vector<3xf8E5M2>, f32, f16
}

// -----

// CHECK-LABEL: func.func @integers(
// CHECK: arith.sitofp %x : vector<2xi32> to vector<2xf32>
// CHECK: nvvm.convert.f32x2.to.f8x2
// CHECK: arith.uitofp %y : i8 to f32
// CHECK-NOT: f8E5M2 to
// BITS-LABEL: func.func @integers(
// BITS: arith.sitofp %x : vector<2xi32> to vector<2xf32>
func.func @integers(%x: vector<2xi32>, %y: i8) -> (vector<2xf8E4M3FN>, f8E5M2) {
  %q = arith.sitofp %x : vector<2xi32> to vector<2xf8E4M3FN>
  %w = arith.uitofp %y : i8 to f8E5M2
  return %q, %w : vector<2xf8E4M3FN>, f8E5M2
}

// -----

// CHECK-LABEL: func.func @others(
// CHECK-NEXT: arith.extf %x : f16 to f32
// CHECK-NEXT: arith.truncf %y : f32 to bf16
// CHECK-NEXT: return
func.func @others(%x: f16, %y: f32) -> (f32, bf16) {
  %w = arith.extf %x : f16 to f32
  %n = arith.truncf %y : f32 to bf16
  return %w, %n : f32, bf16
}
