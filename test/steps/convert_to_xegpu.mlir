// Tiles of subgroups become descriptors; loops carry the offsets of a tile, of which one is constant here.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step convert_to_xegpu --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// CHECK-LABEL: func.func @loop(
// CHECK: [[a:%.+]] = xegpu.create_nd_tdesc %A : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
// The block of the row-major matrix, whose dimensions are exchanged.
// CHECK: [[b:%.+]] = xegpu.create_nd_tdesc %B : memref<64x64xf16> -> !xegpu.tensor_desc<32x16xf16>
// CHECK: [[end:%.+]]:2 = scf.for {{.*}} iter_args([[sum:%.+]] = %{{.*}}, [[j:%.+]] = %c0) -> (vector<8x32xf32>, index)
// CHECK: [[va:%.+]] = xegpu.load_nd [[a]]{{\[}}%c0, [[j]]]{{.*}} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
// CHECK: [[rows:%.+]] = xegpu.load_nd [[b]]{{.*}} : !xegpu.tensor_desc<32x16xf16> -> vector<32x16xf16>
// CHECK: [[vb:%.+]] = vector.transpose [[rows]], [1, 0] : vector<32x16xf16> to vector<16x32xf16>
// CHECK: xegpu.dpas [[va]], [[vb]], [[sum]]
// CHECK: xegpu.prefetch_nd [[a]]{{\[}}%c0, [[j]]] <{l1_hint = #xegpu.cache_hint<uncached>, l2_hint = #xegpu.cache_hint<cached>, l3_hint = #xegpu.cache_hint<cached>}>
// CHECK: xegpu.store_nd [[end]]#0
// CHECK-NOT: xetile
#column = #xetile.tile_attr<{order = [0, 1]}>
!a = !xetile.tile<vector<8x16xf16>, unit>
!b = !xetile.tile<vector<16x32xf16>, #column>
!c = !xetile.tile<vector<8x32xf32>, unit>
func.func @loop(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %view = memref.transpose %B (i, j) -> (j, i) : memref<64x64xf16> to memref<64x64xf16, strided<[1, 64]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %ta = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<64x64xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<64x64xf16, strided<[1, 64]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<64x64xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<8x32xf32>
    %sum, %last = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero, %here = %ta) -> (vector<8x32xf32>, !a) {
      %va = "xetile.load_tile"(%here) : (!a) -> vector<8x16xf16>
      %vb = "xetile.load_tile"(%tb) : (!b) -> vector<16x32xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc)
        : (vector<8x16xf16>, vector<16x32xf16>, vector<8x32xf32>) -> vector<8x32xf32>
      "xetile.prefetch_tile"(%here) {locality = 2 : i32} : (!a) -> ()
      %next = "xetile.update_tile_offset"(%here, %c0, %c16) : (!a, index, index) -> !a
      scf.yield %d, %next : vector<8x32xf32>, !a
    }
    "xetile.store_tile"(%sum, %tc) : (vector<8x32xf32>, !c) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x36xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{the rows of memref<64x36xf16> are 72 bytes apart, and 2D block operations need at least 64, a multiple of 16}}
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x36xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    gpu.terminator
  }
  return
}

// -----

// Shared local memory, which the launch has as an argument here, has a descriptor of its own, and its transpose another.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT: workgroup(
// CHECK: [[slm:%.+]] = memref.alloc() : memref<32x64xf16, 3>
// CHECK: [[desc:%.+]] = xegpu.create_mem_desc [[slm]] : memref<32x64xf16, 3> -> !xegpu.mem_desc<32x64xf16>
// CHECK: xegpu.store_matrix %v, [[desc]][%c0, %{{.*}}] <{layout = #xegpu.layout<inst_data = [8, 16]>}>
// CHECK: [[turned:%.+]] = xegpu.create_mem_desc [[slm]] : memref<32x64xf16, 3> -> !xegpu.mem_desc<64x32xf16, #xegpu.mem_layout<stride = [1, 64]>>
// CHECK: xegpu.load_matrix [[turned]]{{.*}} -> vector<16x16xf16>
!t = !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{memory_space = 3}>>
!turned = !xetile.tile<vector<16x16xf16>, #xetile.tile_attr<{order = [0, 1], memory_space = 3}>>
func.func @shared(%C: memref<16x64xf16>, %v: vector<8x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) workgroup(%slm : memref<32x64xf16, 3>) {
    %sg = gpu.subgroup_id : index
    %j = arith.muli %sg, %c16 : index
    %ts = "xetile.init_tile"(%slm, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x64xf16, 3>, index, index) -> !t
    "xetile.store_tile"(%v, %ts) : (vector<8x16xf16>, !t) -> ()
    gpu.barrier
    %view = memref.transpose %slm (i, j) -> (j, i) : memref<32x64xf16, 3> to memref<64x32xf16, strided<[1, 64]>, 3>
    %k = arith.remui %j, %c32 : index
    %tl = "xetile.init_tile"(%view, %k, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x32xf16, strided<[1, 64]>, 3>, index, index) -> !turned
    %w = "xetile.load_tile"(%tl) : (!turned) -> vector<16x16xf16>
    %tc = "xetile.init_tile"(%C, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x64xf16>, index, index) -> !xetile.tile<vector<16x16xf16>, unit>
    "xetile.store_tile"(%w, %tc) : (vector<16x16xf16>, !xetile.tile<vector<16x16xf16>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

!t = !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{memory_space = 3}>>
func.func @refused(%i: index, %v: vector<8x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) workgroup(%slm : memref<64x64xf16, 3>) {
    %t = "xetile.init_tile"(%slm, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16, 3>, index, index) -> !t
    // expected-error @+1 {{nothing says that dimension 0 of the tile stays within shared local memory, which has no bounds}}
    "xetile.store_tile"(%v, %t) : (vector<8x16xf16>, !t) -> ()
    gpu.terminator
  }
  return
}

// -----

!t = !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{memory_space = 3}>>
func.func @refused(%v: vector<8x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c64, %by = %c1, %bz = %c1) workgroup(%slm : memref<64x48xf16, 3>) {
    %sg = gpu.subgroup_id : index
    %j = arith.muli %sg, %c16 : index
    %t = "xetile.init_tile"(%slm, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x48xf16, 3>, index, index) -> !t
    // expected-error @+1 {{dimension 1 of the tile reaches elements 0 to 63 of shared local memory with 48}}
    "xetile.store_tile"(%v, %t) : (vector<8x16xf16>, !t) -> ()
    gpu.terminator
  }
  return
}

// -----

// A matrix of several, and one of dynamic shape whose numbers are constants: an address, and a static view of the memref.
// CHECK-LABEL: func.func @inner(
// CHECK: [[view:%.+]] = memref.subview %A[%i, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16> to memref<64x64xf16, strided<[64, 1], offset: ?>>
// CHECK: memref.extract_strided_metadata [[view]]
// CHECK: xegpu.create_nd_tdesc %{{.*}}, shape : [64, 64], strides : [64, 1] : i64 -> !xegpu.tensor_desc<8x16xf16>
// CHECK: [[static:%.+]] = memref.reinterpret_cast %B to offset: [0], sizes: [48, 96], strides: [96, 1] : memref<?x?xf16>
// CHECK: xegpu.create_nd_tdesc [[static]] : memref<48x96xf16, strided<[96, 1]>> -> !xegpu.tensor_desc<8x16xf16>
func.func @inner(%A: memref<2x64x64xf16>, %B: memref<?x?xf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c48 = arith.constant 48 : index
  %c96 = arith.constant 96 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %i, %c0, %c0) {operandSegmentSizes = array<i32: 1, 3, 0, 0>} : (memref<2x64x64xf16>, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    %u = "xetile.init_tile"(%B, %c0, %c0, %c48, %c96, %c96, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (memref<?x?xf16>, index, index, index, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
    "xetile.store_tile"(%v, %u) : (vector<8x16xf16>, !xetile.tile<vector<8x16xf16>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<?x?xf16>, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{the base is memref<?x?xf16>: its shape and its strides must be constants}}
    %t = "xetile.init_tile"(%A, %c0, %c0, %m, %m, %m, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (memref<?x?xf16>, index, index, index, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<2x36x36xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{the matrices of memref<2x36x36xf16> are 2592 bytes apart along dimension 0, and 2D block operations need a multiple of 64}}
    %t = "xetile.init_tile"(%A, %c0, %c0, %c0) {operandSegmentSizes = array<i32: 1, 3, 0, 0>} : (memref<2x36x36xf16>, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    gpu.terminator
  }
  return
}

// -----

// Pairs of 16-bit elements are transposed: an odd offset would be rounded.
func.func @refused(%A: memref<64x64xf16, strided<[1, 64]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c1, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16, strided<[1, 64]>>, index, index) -> !xetile.tile<vector<16x16xf16>, #xetile.tile_attr<{order = [0, 1]}>>
    // expected-error @+1 {{elements of f16 are transposed in pairs: the offset along the contiguous dimension must be even}}
    %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<16x16xf16>, #xetile.tile_attr<{order = [0, 1]}>>) -> vector<16x16xf16>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%a: vector<8x8xf16>, %b: vector<8x16xf16>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.tile_mma of f16 over 8 elements of k; accepted: a multiple of 16}}
    %d = "xetile.tile_mma"(%a, %b) : (vector<8x8xf16>, vector<8x16xf16>) -> vector<8x16xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%a: vector<1x16xf16>, %b: vector<16x16xf16>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.tile_mma of 1 rows cannot be distributed to lanes; accepted: an even number of rows}}
    %d = "xetile.tile_mma"(%a, %b) : (vector<1x16xf16>, vector<16x16xf16>) -> vector<1x16xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{a tile of 24 contiguous elements of f32 has no 2D block operations; accepted: a multiple of 16}}
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !xetile.tile<vector<8x24xf32>, unit>
    %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<8x24xf32>, unit>) -> vector<8x24xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%v: vector<16x1xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.transpose of one row or one column cannot be distributed to lanes}}
    %t = "xetile.transpose"(%v) {permutation = [1, 0]} : (vector<16x1xf32>) -> vector<1x16xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%v: vector<8x64xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{a reduction to 16 columns cannot be distributed to lanes; accepted: fewer than 16 columns}}
    %t = "xetile.reduction"(%v) {kind = #vector.kind<add>, dims = [1], reduction_size = 4} : (vector<8x64xf32>) -> vector<8x16xf32>
    gpu.terminator
  }
  return
}

// -----

// A padding takes the place of the zeros: beyond the matrix, and before it where the offset may be negative. A load of
// what is reduced has the blocks of an instruction.
// CHECK-LABEL: func.func @padded(
// CHECK: [[v:%.+]] = xegpu.load_nd %{{.*}}[%i, %c0] <{layout = #xegpu.layout<inst_data = [8, 16]>}>
// CHECK: [[rows:%.+]] = arith.subi %c64, %i
// CHECK: [[inside:%.+]] = vector.create_mask [[rows]], %c64 : vector<8x16xi1>
// CHECK: [[upper:%.+]] = arith.select [[inside]], [[v]], %{{.*}}
// CHECK: [[above:%.+]] = arith.subi %c0, %i
// CHECK: [[before:%.+]] = vector.create_mask [[above]], %c16
// CHECK: [[all:%.+]] = arith.select [[before]], %{{.*}}, [[upper]]
// CHECK: [[given:%.+]] = xegpu.convert_layout [[all]]
// CHECK: vector.multi_reduction <minimumf>, [[given]], %{{.*}} [1] : vector<8x16xf16> to vector<8xf16>
func.func @padded(%A: memref<64x64xf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    %v = "xetile.load_tile"(%t) {padding = 1.0 : f16} : (!xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
    %r = "xetile.reduction"(%v) {kind = #vector.kind<minimumf>, dims = [1]} : (vector<8x16xf16>) -> vector<8x1xf16>
    %b = "xetile.broadcast"(%r) {dims = [1]} : (vector<8x1xf16>) -> vector<8x16xf16>
    "xetile.store_tile"(%b, %t) : (vector<8x16xf16>, !xetile.tile<vector<8x16xf16>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%v: vector<8x8xf16>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.reduction of 8 columns cannot be distributed to lanes; accepted: a multiple of 16}}
    %r = "xetile.reduction"(%v) {kind = #vector.kind<add>, dims = [1]} : (vector<8x8xf16>) -> vector<8x1xf16>
    gpu.terminator
  }
  return
}

// -----

// Lanes update the elements of a block, and those of a column, where they are within the matrix: each lane takes its
// column of the block from shared local memory, where it has stored it.
// CHECK-LABEL: func.func @atomic(
// CHECK: arith.constant dense<-0.000000e+00> : vector<8xf32>
// CHECK: [[buffer:%.+]] = memref.alloc() : memref<8x16xf32, 3>
// CHECK: [[scratch:%.+]] = xegpu.create_mem_desc [[buffer]]
// CHECK: [[lane:%.+]] = gpu.lane_id
// CHECK: xegpu.store_matrix %{{.*}}, [[scratch]]
// CHECK: scf.if
// CHECK: [[v:%.+]] = memref.load [[buffer]][%{{.*}}, [[lane]]]
// CHECK: memref.atomic_rmw addf [[v]], %A[%{{.*}}, %{{.*}}]
// CHECK-COUNT-31: memref.atomic_rmw addf
// CHECK: [[all:%.+]] = vector.broadcast %{{.*}} : vector<8x1xf32> to vector<8x16xf32>
// CHECK: xegpu.store_matrix [[all]], [[scratch]]
// CHECK: scf.if
// CHECK: [[w:%.+]] = memref.load [[buffer]][%{{.*}}, [[lane]]]
// CHECK: memref.store [[w]], %column[%{{.*}}, %c0]
// CHECK-NOT: memref.store
func.func @atomic(%A: memref<64x64xf32>, %column: memref<64x1xf32>, %v: vector<16x32xf32>, %u: vector<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !xetile.tile<vector<16x32xf32>, unit>
    %m = "xetile.update_tile_offset"(%t, %c8, %c8) : (!xetile.tile<vector<16x32xf32>, unit>, index, index) -> !xetile.tile<vector<16x32xf32>, unit>
    %r = "xetile.atomic_rmw"(%v, %m) {kind = "addf"} : (vector<16x32xf32>, !xetile.tile<vector<16x32xf32>, unit>) -> vector<16x32xf32>
    %s = "xetile.reduction"(%u) {kind = #vector.kind<add>, dims = [1]} : (vector<8x16xf32>) -> vector<8x1xf32>
    %tc = "xetile.init_tile"(%column, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x1xf32>, index, index) -> !xetile.tile<vector<8x1xf32>, unit>
    "xetile.store_tile"(%s, %tc) : (vector<8x1xf32>, !xetile.tile<vector<8x1xf32>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x64xf16>, %v: vector<8x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    // expected-error @+1 {{xetile.atomic_rmw by addf of f16 cannot be distributed to lanes; accepted: addf, assign of f32; addi, maxs, mins, maxu, minu, andi, ori, assign of i32}}
    %r = "xetile.atomic_rmw"(%v, %t) {kind = "addf"} : (vector<8x16xf16>, !xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
    gpu.terminator
  }
  return
}

// -----

// Lanes load the elements of a column, and all lanes have them: a padding is what those beyond the matrix are.
// CHECK-LABEL: func.func @column(
// CHECK: scf.if
// CHECK: memref.load %A[%i, %c0]
// CHECK: vector.insert_strided_slice
// CHECK: [[column:%.+]] = vector.shape_cast %{{.*}} : vector<2xf32> to vector<2x1xf32>
// CHECK: vector.broadcast [[column]] : vector<2x1xf32> to vector<2x16xf32>
func.func @column(%A: memref<64x1xf32>, %B: memref<64x64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x1xf32>, index, index) -> !xetile.tile<vector<2x1xf32>, unit>
    %v = "xetile.load_tile"(%t) {padding = 1.0} : (!xetile.tile<vector<2x1xf32>, unit>) -> vector<2x1xf32>
    %w = "xetile.broadcast"(%v) {dims = [1]} : (vector<2x1xf32>) -> vector<2x16xf32>
    %o = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !xetile.tile<vector<2x16xf32>, unit>
    "xetile.store_tile"(%w, %o) : (vector<2x16xf32>, !xetile.tile<vector<2x16xf32>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x24xf16, strided<[64, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{the rows of memref<64x24xf16, strided<[64, 1]>> have 48 bytes, and 2D block operations need at least 64, a multiple of 4}}
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x24xf16, strided<[64, 1]>>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    gpu.terminator
  }
  return
}

// -----

// A column-major tile of fewer than 16 columns is prefetched as the block of its contiguous elements; of fewer than
// these there is no block, and a prefetch is a hint.
// CHECK-LABEL: func.func @prefetched(
// CHECK: [[desc:%.+]] = xegpu.create_nd_tdesc %A : memref<64x64xf16> -> !xegpu.tensor_desc<8x32xf16>
// CHECK: xegpu.prefetch_nd [[desc]]
// CHECK-NOT: xegpu.prefetch_nd
func.func @prefetched(%A: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %view = memref.transpose %A (i, j) -> (j, i) : memref<64x64xf16> to memref<64x64xf16, strided<[1, 64]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16, strided<[1, 64]>>, index, index) -> !xetile.tile<vector<32x8xf16>, #xetile.tile_attr<{order = [0, 1]}>>
    "xetile.prefetch_tile"(%t) {locality = 3 : i32} : (!xetile.tile<vector<32x8xf16>, #xetile.tile_attr<{order = [0, 1]}>>) -> ()
    %u = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !xetile.tile<vector<32x1xf16>, unit>
    "xetile.prefetch_tile"(%u) {locality = 3 : i32} : (!xetile.tile<vector<32x1xf16>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%v: vector<8x16xbf16>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.reduction of bf16 cannot be distributed to lanes; accepted: integers of 16 and 32 bits, f16, f32}}
    %r = "xetile.reduction"(%v) {kind = #vector.kind<add>, dims = [1]} : (vector<8x16xbf16>) -> vector<8x1xbf16>
    gpu.terminator
  }
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [8, 16]}>
!t = !xetile.tile<vector<8x16xf32>, #xetile.tile_attr<{wg = #map}>>
func.func @refused(%A: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{only a tile of a subgroup can be lowered to XeGPU}}
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !t
    gpu.terminator
  }
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [8, 16]}>
func.func @refused(%A: memref<64x64xf32>, %v: vector<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.convert_layout of this kind cannot be lowered to XeGPU here; accepted on subgroups: init_tile, update_tile_offset}}
    %t = "xetile.convert_layout"(%v) {wg_map = #map, wg_map_source = #map} : (vector<8x16xf32>) -> vector<8x16xf32>
    gpu.terminator
  }
  return
}

// -----

!t = !xetile.tile<vector<8x8xf32>, unit>
func.func @refused(%A: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{the base is an address: lanes access elements of a memref}}
    %t = "xetile.init_tile"(%A, %c0, %c0, %c64, %c64, %c64, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !t
    %v = "xetile.load_tile"(%t) : (!t) -> vector<8x8xf32>
    "xetile.store_tile"(%v, %t) : (vector<8x8xf32>, !t) -> ()
    gpu.terminator
  }
  return
}

// -----

!t = !xetile.tile<vector<8x16xf32>, unit>
func.func @refused(%A: memref<64x64xf32>, %B: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !t
    %u = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !t
    %last = scf.for %k = %c0 to %c16 step %c1 iter_args(%at = %t) -> (!t) {
      %v = "xetile.load_tile"(%at) : (!t) -> vector<8x16xf32>
      "xetile.store_tile"(%v, %at) : (vector<8x16xf32>, !t) -> ()
      // expected-error @+1 {{scf.yield makes a tile one of another xetile.init_tile: a carried tile keeps its own}}
      scf.yield %u : !t
    }
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x64xf32>, %v: vector<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !xetile.tile<vector<16x16xf32>, unit>
    // expected-error @+1 {{xetile.transpose of this vector cannot be distributed to lanes; accepted: a vector loaded from global memory without other uses (a store to a tile of order [0, 1] transposes any vector)}}
    %w = "xetile.transpose"(%v) {permutation = [1, 0]} : (vector<16x16xf32>) -> vector<16x16xf32>
    "xetile.store_tile"(%w, %t) : (vector<16x16xf32>, !xetile.tile<vector<16x16xf32>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x64xf16>, %B: memref<40x40xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %ta = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    %tb = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x40xf16>, index, index) -> !xetile.tile<vector<16x16xf16>, unit>
    %tc = "xetile.init_tile"(%C, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !xetile.tile<vector<8x16xf32>, unit>
    %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
    // expected-error @+1 {{padding of a load whose xetile.transpose is B cannot be distributed to lanes; accepted: a tile of order [0, 1]}}
    %b = "xetile.load_tile"(%tb) {padding = 1.0 : f16} : (!xetile.tile<vector<16x16xf16>, unit>) -> vector<16x16xf16>
    %t = "xetile.transpose"(%b) {permutation = [1, 0]} : (vector<16x16xf16>) -> vector<16x16xf16>
    %d = "xetile.tile_mma"(%a, %t) : (vector<8x16xf16>, vector<16x16xf16>) -> vector<8x16xf32>
    "xetile.store_tile"(%d, %tc) : (vector<8x16xf32>, !xetile.tile<vector<8x16xf32>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

// B is padded by masks of rows and of columns, sixteen rows at a time; sums that become column-major are stored by
// element, to the view of the matrix.
// CHECK-LABEL: func.func @padded_b(
// CHECK: vector.create_mask {{.*}} : vector<1x16xi1>
// CHECK: [[mask:%.+]] = arith.andi {{.*}} : vector<16x16xi1>
// CHECK: arith.select [[mask]]
// CHECK: xegpu.dpas
// CHECK: memref.store {{.*}} : memref<64x64xf32, strided<[1, 64]>>
!c = !xetile.tile<vector<8x16xf32>, #xetile.tile_attr<{order = [0, 1]}>>
func.func @padded_b(%A: memref<64x64xf16>, %B: memref<40x40xf16>, %C: memref<64x64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %view = memref.transpose %C (i, j) -> (j, i) : memref<64x64xf32> to memref<64x64xf32, strided<[1, 64]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %ta = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
    %tb = "xetile.init_tile"(%B, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x40xf16>, index, index) -> !xetile.tile<vector<16x16xf16>, unit>
    %tc = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32, strided<[1, 64]>>, index, index) -> !c
    %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
    %b = "xetile.load_tile"(%tb) {padding = 1.0 : f16} : (!xetile.tile<vector<16x16xf16>, unit>) -> vector<16x16xf16>
    %d = "xetile.tile_mma"(%a, %b) : (vector<8x16xf16>, vector<16x16xf16>) -> vector<8x16xf32>
    "xetile.store_tile"(%d, %tc) : (vector<8x16xf32>, !c) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64xf32>, %o: vector<16xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{a scatter tile of vector<16xf32> cannot be distributed to lanes; accepted: rows of a multiple of 16 elements}}
    %t = "xetile.init_tile"(%A, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<64xf32>, vector<16xindex>) -> !xetile.tile<vector<16xf32>, #xetile.scatter>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64xi8>, %o: vector<4x16xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.init_tile of i8 cannot be distributed to lanes; accepted: integers of 16 and 32 bits, f16, f32}}
    %t = "xetile.init_tile"(%A, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<64xi8>, vector<4x16xindex>) -> !xetile.tile<vector<4x16xi8>, #xetile.scatter>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<?xf32>, %o: vector<4x16xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{the base is memref<?xf32>: a scatter tile in lanes is of a static memref of global memory, without gaps}}
    %t = "xetile.init_tile"(%A, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<?xf32>, vector<4x16xindex>) -> !xetile.tile<vector<4x16xf32>, #xetile.scatter>
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %o = arith.constant dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : vector<1x16xindex>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    // expected-error @+1 {{xetile.init_tile of a constant that is not a splat cannot be distributed to lanes; accepted: splat constants}}
    %t = "xetile.init_tile"(%A, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<64xf32>, vector<1x16xindex>) -> !xetile.tile<vector<1x16xf32>, #xetile.scatter>
    gpu.terminator
  }
  return
}

// -----

// Elements that are masked, or beyond the memref, are the padding.
// CHECK-LABEL: func.func @scattered(
// CHECK: [[within:%.+]] = arith.cmpi ult, [[at:%.+]], %{{.*}} : vector<4x16xindex>
// CHECK: [[mask:%.+]] = arith.andi [[within]], %{{.*}} : vector<4x16xi1>
// CHECK: [[loaded:%.+]] = xegpu.load %A{{\[}}[[at]]], [[mask]] <{layout = #xegpu.layout<inst_data = [1, 16]>}>
// CHECK: [[padded:%.+]] = arith.select [[mask]], [[loaded]], %{{.*}}
// CHECK: xegpu.store [[padded]], %A{{\[}}%{{.*}}], %{{.*}} <{layout = #xegpu.layout<inst_data = [1, 16]>}>
!t = !xetile.tile<vector<4x16xf32>, #xetile.scatter>
func.func @scattered(%A: memref<64xf32>, %o: vector<4x16xindex>, %m: vector<4x16xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<64xf32>, vector<4x16xindex>) -> !t
    %v = "xetile.load_gather"(%t, %m) {padding = 1.0 : f32} : (!t, vector<4x16xi1>) -> vector<4x16xf32>
    "xetile.store_scatter"(%v, %m, %t) : (vector<4x16xf32>, vector<4x16xi1>, !t) -> ()
    gpu.terminator
  }
  return
}
