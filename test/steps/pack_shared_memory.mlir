// The shared tiles are views of one array, one behind the other. Up to 48 KB it is static; above, it is dynamic:
// external and without a size, and the launch says how many bytes it needs.
//
// RUN: %stepladder-opt %s --pipeline wmma --step pack_shared_memory --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// A's tiles take 2 * 16 * 24 * 2 = 1536 bytes, B's 2 * 16 * 40 * 2 = 2560.
// CHECK: memref.global "private" @shared_memory : memref<4096xi8, #gpu.address_space<workgroup>> = uninitialized
// CHECK-SAME: {alignment = 128 : i64}
// CHECK-LABEL: func.func @static(
// CHECK-NOT: {{memref.alloc|dynamic_shared_memory}}
// CHECK: gpu.launch
// CHECK: [[array:%.+]] = memref.get_global @shared_memory
// CHECK: [[a:%.+]] = memref.view [[array]][%c0{{.*}}][] : memref<4096xi8, #gpu.address_space<workgroup>>
// CHECK-SAME: to memref<2x16x24xf16, #gpu.address_space<workgroup>>
// CHECK: [[b:%.+]] = memref.view [[array]][%c1536{{.*}}][] : memref<4096xi8, #gpu.address_space<workgroup>>
// CHECK-SAME: to memref<2x16x40xf16, #gpu.address_space<workgroup>>
// CHECK: vector.store %x, [[a]][
// CHECK: vector.store %x, [[b]][
// CHECK-NOT: {{memref.alloc|dynamic_shared_memory}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @static(%x: vector<8xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<2x16x24xf16, #space>
    %b = memref.alloc() : memref<2x16x40xf16, #space>
    vector.store %x, %a[%c0, %c0, %c0] : memref<2x16x24xf16, #space>, vector<8xf16>
    vector.store %x, %b[%c0, %c0, %c0] : memref<2x16x40xf16, #space>, vector<8xf16>
    gpu.terminator
  }
  return
}

// -----

// CHECK: memref.global @shared_memory : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
// CHECK-LABEL: func.func @dynamic(
// CHECK: [[bytes:%.+]] = arith.constant 58368 : i32
// CHECK: gpu.launch {{.*}} dynamic_shared_memory_size [[bytes]]
// CHECK: [[name:%.+]] = memref.get_global @shared_memory : memref<0xi8,
// CHECK: [[array:%.+]] = memref.reinterpret_cast [[name]] to offset: [0], sizes: [58368], strides: [1]
// CHECK: memref.view [[array]][%c0{{.*}}][] : {{.*}} to memref<2x256x40xf16,
// CHECK: memref.view [[array]][%c40960{{.*}}][] : {{.*}} to memref<2x32x136xf16,
// CHECK-NOT: memref.alloc
// CHECK: // -----
func.func @dynamic(%x: f16) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<2x256x40xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<2x32x136xf16, #gpu.address_space<workgroup>>
    memref.store %x, %a[%c1, %c1, %c1] : memref<2x256x40xf16, #gpu.address_space<workgroup>>
    memref.store %x, %b[%c1, %c1, %c1] : memref<2x32x136xf16, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

// Exactly 48 KB are still static. A tile begins on a boundary of 128 bytes.
// CHECK: memref.global "private" @shared_memory : memref<49152xi8,
// CHECK-LABEL: func.func @limit(
// CHECK-NOT: dynamic_shared_memory_size
// CHECK: memref.view {{.*}}[%c128{{.*}}][] : {{.*}} to memref<24512xf16,
// CHECK: // -----
func.func @limit(%x: f16) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<50xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<24512xf16, #gpu.address_space<workgroup>>
    memref.store %x, %a[%c1] : memref<50xf16, #gpu.address_space<workgroup>>
    memref.store %x, %b[%c1] : memref<24512xf16, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

// CHECK-LABEL: func.func @none(
// CHECK-NOT: shared_memory
// CHECK: memref.alloc() : memref<8xf16>
// CHECK-NOT: shared_memory
// CHECK: // -----
func.func @none(%x: f16) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<8xf16>
    memref.store %x, %a[%c1] : memref<8xf16>
    gpu.terminator
  }
  return
}

// -----

// Tiles that TMA writes begin where its swizzle does, at multiples of 1024 bytes.
// CHECK: memref.global "private" @shared_memory : memref<9216xi8, {{.*}}alignment = 1024 : i64
// CHECK-LABEL: func.func @tma(
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : {{.*}} to memref<50xf16,
// CHECK: memref.view %{{.*}}[%c1024{{.*}}][] : {{.*}} to memref<64x64xf16,
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @tma(%map: !map, %x: f16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %small = memref.alloc() : memref<50xf16, #space>
    %tile = memref.alloc() : memref<64x64xf16, #space>
    memref.store %x, %small[%c1] : memref<50xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %tile : !map, !barriers -> memref<64x64xf16, #space>
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.pack_shared_memory: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}

// -----

func.func @dynamic_tile(%n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error@+1 {{tc.pack_shared_memory: a shared tile of dynamic shape has no offset in a packed array}}
    %tile = memref.alloc(%n) : memref<?xf16, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}
