// Three values of a chain: the third takes the place of the first, which nothing reads any more. Offsets are multiples of
// 256 bytes. A buffer that is used otherwise than by calls, and one of an element type that no kernel has, are refused.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step plan_workspace --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @chain(
// CHECK: [[all:%.+]] = memref.alloc() {workspace} : memref<912xi8>
// CHECK: [[zero:%.+]] = arith.constant 0 : index
// CHECK: [[a:%.+]] = memref.view [[all]][[[zero]]][] : memref<912xi8> to memref<100xf32>
// CHECK: call @f(%x, [[a]])
// CHECK: [[at:%.+]] = arith.constant 512 : index
// CHECK: [[b:%.+]] = memref.view [[all]][[[at]]][] : memref<912xi8> to memref<100xf32>
// CHECK: call @f([[a]], [[b]])
// CHECK: [[again:%.+]] = arith.constant 0 : index
// CHECK: [[c:%.+]] = memref.view [[all]][[[again]]][] : memref<912xi8> to memref<100xf32>
// CHECK: call @f([[b]], [[c]])
// CHECK: call @f([[c]], %y)
func.func @chain(%x: memref<100xf32>, %y: memref<100xf32>) {
  %a = memref.alloc() : memref<100xf32>
  call @f(%x, %a) : (memref<100xf32>, memref<100xf32>) -> ()
  %b = memref.alloc() : memref<100xf32>
  call @f(%a, %b) : (memref<100xf32>, memref<100xf32>) -> ()
  %c = memref.alloc() : memref<100xf32>
  call @f(%b, %c) : (memref<100xf32>, memref<100xf32>) -> ()
  call @f(%c, %y) : (memref<100xf32>, memref<100xf32>) -> ()
  return
}
func.func private @f(memref<100xf32>, memref<100xf32>)

// -----

// The third value takes all that the first one leaves in front of the second.
// CHECK-LABEL: func.func @gap(
// CHECK: memref.alloc() {workspace} : memref<1024xi8>
func.func @gap(%x: memref<128xf32>, %y: memref<128xf32>) {
  %a = memref.alloc() : memref<128xf32>
  call @f(%x, %a) : (memref<128xf32>, memref<128xf32>) -> ()
  %b = memref.alloc() : memref<128xf32>
  call @f(%a, %b) : (memref<128xf32>, memref<128xf32>) -> ()
  %c = memref.alloc() : memref<128xf32>
  call @f(%x, %c) : (memref<128xf32>, memref<128xf32>) -> ()
  call @g(%b, %c, %y) : (memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
  return
}
func.func private @f(memref<128xf32>, memref<128xf32>)
func.func private @g(memref<128xf32>, memref<128xf32>, memref<128xf32>)

// -----

// The calls of a group are one launch: what one of them reads is apart from what another one writes.
// CHECK-LABEL: func.func @group(
// CHECK: memref.alloc() {workspace} : memref<2048xi8>
func.func @group(%x: memref<128xf32>, %y: memref<128xf32>) {
  %a = memref.alloc() : memref<128xf32>
  call @f(%x, %a) : (memref<128xf32>, memref<128xf32>) -> ()
  %b = memref.alloc() : memref<128xf32>
  call @f(%x, %b) : (memref<128xf32>, memref<128xf32>) -> ()
  %c = memref.alloc() : memref<128xf32>
  call @first(%a, %c) : (memref<128xf32>, memref<128xf32>) -> ()
  %d = memref.alloc() : memref<128xf32>
  call @second(%b, %d) : (memref<128xf32>, memref<128xf32>) -> ()
  call @g(%c, %d, %y) : (memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
  return
}
func.func private @f(memref<128xf32>, memref<128xf32>)
func.func private @first(memref<128xf32>, memref<128xf32>) attributes {group = 0 : i64}
func.func private @second(memref<128xf32>, memref<128xf32>) attributes {group = 0 : i64}
func.func private @g(memref<128xf32>, memref<128xf32>, memref<128xf32>)

// -----

func.func @other_use(%x: memref<100xf32>) {
  %a = memref.alloc() : memref<100xf32>
  // expected-error@+1 {{tc.plan_workspace: 'memref.subview' of a buffer of the function; accepted: calls and copies}}
  %v = memref.subview %a[0] [10] [1] : memref<100xf32> to memref<10xf32, strided<[1]>>
  return
}

// -----

func.func @dynamic(%n: index) {
  // expected-error@+1 {{tc.plan_workspace: a buffer of type memref<?xf32>; accepted: static sizes}}
  %a = memref.alloc(%n) : memref<?xf32>
  call @f(%a) : (memref<?xf32>) -> ()
  return
}
func.func private @f(memref<?xf32>)

// -----

func.func @unknown_type(%x: memref<100xf32>) {
  // expected-error@+1 {{tc.plan_workspace: a value of i24 between kernels; accepted element types: f16, bf16, f32}}
  %a = memref.alloc() : memref<100xi24>
  call @f(%a) : (memref<100xi24>) -> ()
  return
}
func.func private @f(memref<100xi24>)

// -----

// Parts that a function would assemble are written where they belong in the result; the call goes.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %a: memref<32x64xf16>, %r: memref<2x32x64xf16>
// CHECK: [[bytes:%.+]] = builtin.unrealized_conversion_cast %r : memref<2x32x64xf16> to memref<8192xi8>
// CHECK: [[h0:%.+]] = memref.view [[bytes]][%c0{{.*}}][] : memref<8192xi8> to memref<32x64xf16>
// CHECK: call @matmul(%a, [[h0]])
// CHECK: [[h1:%.+]] = memref.view [[bytes]][%c4096{{.*}}][] : memref<8192xi8> to memref<32x64xf16>
// CHECK: call @matmul(%a, [[h1]])
// CHECK-NEXT: return
func.func @heads(%a: memref<32x64xf16>, %r: memref<2x32x64xf16>) {
  %h0 = memref.alloc() : memref<32x64xf16>
  call @matmul(%a, %h0) : (memref<32x64xf16>, memref<32x64xf16>) -> ()
  %h1 = memref.alloc() : memref<32x64xf16>
  call @matmul(%a, %h1) : (memref<32x64xf16>, memref<32x64xf16>) -> ()
  call @stack(%h0, %h1, %r) : (memref<32x64xf16>, memref<32x64xf16>, memref<2x32x64xf16>) -> ()
  return
}
func.func private @matmul(memref<32x64xf16>, memref<32x64xf16>)
func.func private @stack(memref<32x64xf16>, memref<32x64xf16>, memref<2x32x64xf16>)
    attributes {assembles = array<i64: 0, 4096>}

// -----

// One part twice: a kernel copies it.
// CHECK-LABEL: func.func @twice(
// CHECK: [[h:%.+]] = memref.view
// CHECK: call @stack([[h]], [[h]], %r)
func.func @twice(%a: memref<32x64xf16>, %r: memref<2x32x64xf16>) {
  %h = memref.alloc() : memref<32x64xf16>
  call @matmul(%a, %h) : (memref<32x64xf16>, memref<32x64xf16>) -> ()
  call @stack(%h, %h, %r) : (memref<32x64xf16>, memref<32x64xf16>, memref<2x32x64xf16>) -> ()
  return
}
func.func private @matmul(memref<32x64xf16>, memref<32x64xf16>)
func.func private @stack(memref<32x64xf16>, memref<32x64xf16>, memref<2x32x64xf16>)
    attributes {assembles = array<i64: 0, 4096>}

// -----

// Columns of the result: the views have its row pitch, and so have the arguments of the functions.
// CHECK-LABEL: func.func @columns(
// CHECK: [[bytes:%.+]] = builtin.unrealized_conversion_cast %r : memref<32x72xf16> to memref<4608xi8>
// CHECK: [[v0:%.+]] = memref.view [[bytes]][%c0{{.*}}][] : memref<4608xi8> to memref<2296xf16>
// CHECK: [[h0:%.+]] = memref.reinterpret_cast [[v0]] to offset: [0], sizes: [32, 64], strides: [72, 1]
// CHECK: call @wide(%a, [[h0]]) : (memref<32x64xf16>, memref<32x64xf16, strided<[72, 1]>>) -> ()
// CHECK: [[v1:%.+]] = memref.view [[bytes]][%c128{{.*}}][] : memref<4608xi8> to memref<2240xf16>
// CHECK: [[h1:%.+]] = memref.reinterpret_cast [[v1]] to offset: [0], sizes: [32, 8], strides: [72, 1]
// CHECK: call @narrow(%a, [[h1]])
// CHECK-NEXT: return
// CHECK: func.func private @wide(memref<32x64xf16>, memref<32x64xf16, strided<[72, 1]>>)
func.func @columns(%a: memref<32x64xf16>, %r: memref<32x72xf16>) {
  %h0 = memref.alloc() : memref<32x64xf16>
  call @wide(%a, %h0) : (memref<32x64xf16>, memref<32x64xf16>) -> ()
  %h1 = memref.alloc() : memref<32x8xf16>
  call @narrow(%a, %h1) : (memref<32x64xf16>, memref<32x8xf16>) -> ()
  call @join(%h0, %h1, %r) : (memref<32x64xf16>, memref<32x8xf16>, memref<32x72xf16>) -> ()
  return
}
func.func private @wide(memref<32x64xf16>, memref<32x64xf16>)
func.func private @narrow(memref<32x64xf16>, memref<32x8xf16>)
func.func private @join(memref<32x64xf16>, memref<32x8xf16>, memref<32x72xf16>)
    attributes {assembles = array<i64: 0, 128>, extents = [array<i64: 32, 64>, array<i64: 32, 8>]}

// -----

// Of a result in the memory of an argument, kernels write parts; the stage reads the argument as the rest of it.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT: memref.alloc
// CHECK: [[bytes:%.+]] = builtin.unrealized_conversion_cast %r : memref<64x64xf16> to memref<8192xi8>
// CHECK: [[h:%.+]] = memref.view [[bytes]][%c2048{{.*}}][] : memref<8192xi8> to memref<32x64xf16>
// CHECK: call @make(%a, [[h]])
// CHECK-NEXT: return
func.func @rows(%a: memref<32x64xf16>, %whole: memref<64x64xf16> {tf.aliasing_output = 0 : i32},
    %r: memref<64x64xf16>) {
  %h = memref.alloc() : memref<32x64xf16>
  call @make(%a, %h) : (memref<32x64xf16>, memref<32x64xf16>) -> ()
  call @replace(%whole, %h, %r) : (memref<64x64xf16>, memref<32x64xf16>, memref<64x64xf16>) -> ()
  return
}
func.func private @make(memref<32x64xf16>, memref<32x64xf16>)
func.func private @replace(memref<64x64xf16> {tf.aliasing_output = 0 : i32}, memref<32x64xf16>, memref<64x64xf16>)
    attributes {assembles = array<i64: 2048>}

// -----

// A result that is returned in another shape is written as it is, and no copy is left.
// CHECK-LABEL: func.func @reshaped(
// CHECK-NEXT: [[flat:%.+]] = memref.collapse_shape %r {{.*}} : memref<32x128xf16> into memref<4096xf16>
// CHECK-NEXT: [[y:%.+]] = memref.expand_shape [[flat]] {{.*}} : memref<4096xf16> into memref<32x2x64xf16>
// CHECK-NEXT: call @merge(%a, [[y]])
// CHECK-NEXT: return
func.func @reshaped(%a: memref<2x32x64xf16>, %r: memref<32x128xf16>) {
  %y = memref.alloc() : memref<32x2x64xf16>
  call @merge(%a, %y) : (memref<2x32x64xf16>, memref<32x2x64xf16>) -> ()
  %s = memref.collapse_shape %y [[0], [1, 2]] : memref<32x2x64xf16> into memref<32x128xf16>
  memref.copy %s, %r : memref<32x128xf16> to memref<32x128xf16>
  return
}
func.func private @merge(memref<2x32x64xf16>, memref<32x2x64xf16>)
