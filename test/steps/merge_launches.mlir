// Each launch is a range of the blocks of one kernel. Launches of one kernel share its body, and the parameters of the
// launch are selected. Bodies share variables in shared memory, and only those. A comment of its own ends each, so that
// LLVM does not share the last stores of all.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/group.mlir --step merge_launches --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @two(
// CHECK: gpu.launch_func @two_kernel::@two_kernel blocks in (%c14, %c1{{(_[0-9]+)?}}, %c1{{(_[0-9]+)?}}) threads in (%c32
// CHECK-SAME: dynamic_shared_memory_size %c512_i32
// CHECK-SAME: args(%a : memref<64xf32>, %b : memref<64xf32>, %x : memref<64xf32>, %c : memref<64xf32>)
// CHECK-NOT: gpu.launch_func
// CHECK: gpu.module @two_kernel [#nvvm.target
// CHECK: llvm.mlir.global private @tile() {addr_space = 3 : i32} : !llvm.array<32 x f32>
// CHECK-NOT: llvm.mlir.global private @tile_
// CHECK: llvm.mlir.global internal @count(
// CHECK: llvm.func @two_kernel(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}, %x: !llvm.ptr,
// CHECK-SAME: gpu.known_grid_size = array<i32: 14, 1, 1>
// CHECK: [[block:%.+]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK: [[end:%.+]] = llvm.mlir.constant(12 : i32) : i32
// CHECK: [[first:%.+]] = llvm.icmp "ult" [[block]], [[end]] : i32
// CHECK: llvm.cond_br [[first]], ^[[grid:bb.+]], ^[[rest:bb.+]]
// CHECK: ^[[grid]]:
// CHECK: [[c6:%.+]] = llvm.mlir.constant(6 : i32) : i32
// CHECK: [[number:%.+]] = llvm.udiv [[block]], [[c6]] : i32
// CHECK: [[place:%.+]] = llvm.urem [[block]], [[c6]] : i32
// CHECK: [[second:%.+]] = llvm.icmp "eq" [[number]], {{.*}} : i32
// CHECK: [[out:%.+]] = llvm.select [[second]], %b, %a : i1, !llvm.ptr
// CHECK: [[x:%.+]] = llvm.urem [[place]], {{.*}} : i32
// CHECK: [[y:%.+]] = llvm.udiv [[place]], {{.*}} : i32
// CHECK: llvm.add [[x]], [[y]] : i32
// CHECK: llvm.store {{.*}}, [[out]]
// CHECK: llvm.inline_asm has_side_effects "// end of the blocks from 0", "" : () -> ()
// CHECK-NEXT: llvm.return
// CHECK: ^[[rest]]:
// CHECK: llvm.sub [[block]], {{.*}} : i32
// CHECK: llvm.mlir.addressof @tile :
// CHECK: llvm.mlir.addressof @count :
// CHECK: llvm.inline_asm has_side_effects "// end of the blocks from 12", "" : () -> ()
// CHECK-NEXT: llvm.return
// CHECK-NOT: gpu.module
module attributes {gpu.container_module} {
  func.func @two(%a: memref<64xf32>, %b: memref<64xf32>, %x: memref<64xf32> {bufferization.access = "read"},
                 %c: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    %bytes = arith.constant 512 : i32
    gpu.launch_func @grid::@kernel blocks in (%c3, %c2, %c1) threads in (%c32, %c1, %c1) args(%a : memref<64xf32>)
    gpu.launch_func @counts::@kernel blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1)
        dynamic_shared_memory_size %bytes args(%x : memref<64xf32>, %c : memref<64xf32>)
    gpu.launch_func @grid::@kernel blocks in (%c3, %c2, %c1) threads in (%c32, %c1, %c1) args(%b : memref<64xf32>)
    return
  }
  gpu.module @grid [#nvvm.target<chip = "sm_80">] {
    llvm.mlir.global private @tile() {addr_space = 3 : i32} : !llvm.array<32 x f32>
    llvm.func @kernel(%out: !llvm.ptr {llvm.noalias}) attributes {gpu.known_grid_size = array<i32: 3, 2, 1>, gpu.kernel, nvvm.kernel} {
      %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %x = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 3> : i32
      %y = nvvm.read.ptx.sreg.ctaid.y range <i32, 0, 2> : i32
      %sum = llvm.add %x, %y : i32
      llvm.store %sum, %out : i32, !llvm.ptr
      llvm.return
    }
  }
  gpu.module @counts [#nvvm.target<chip = "sm_80">] {
    llvm.mlir.global private @tile() {addr_space = 3 : i32} : !llvm.array<32 x f32>
    llvm.mlir.global internal @count(0 : i32) {addr_space = 1 : i32} : i32
    llvm.func @kernel(%in: !llvm.ptr, %out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %count = llvm.mlir.addressof @count : !llvm.ptr<1>
      %x = nvvm.read.ptx.sreg.ctaid.x : i32
      %zero = llvm.mlir.constant(0 : i32) : i32
      %is_first = llvm.icmp "eq" %x, %zero : i32
      llvm.cond_br %is_first, ^bb1, ^bb2
    ^bb1:
      llvm.store %x, %count : i32, !llvm.ptr<1>
      llvm.br ^bb2
    ^bb2:
      llvm.return
    }
  }
}

// -----

// A kernel with a counter in global memory is copied for each launch.
//
// CHECK-LABEL: func.func @counted(
// CHECK: gpu.module @counted_kernel
// CHECK: llvm.mlir.global internal @count(
// CHECK: llvm.mlir.global internal @count_1(
// CHECK: llvm.mlir.addressof @count :
// CHECK: llvm.mlir.addressof @count_1 :
module attributes {gpu.container_module} {
  func.func @counted() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @counts::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @counts::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @counts [#nvvm.target<chip = "sm_80">] {
    llvm.mlir.global internal @count(0 : i32) {addr_space = 1 : i32} : i32
    llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} {
      %count = llvm.mlir.addressof @count : !llvm.ptr<1>
      llvm.return
    }
  }
}

// -----

// The second launch may read what the first one writes.
module attributes {gpu.container_module} {
  func.func @dependent(%a: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<64xf32>)
    // expected-error@+1 {{tc.merge_launches: a launch shares a buffer with an earlier one; accepted: arguments with bufferization.access = "read"}}
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<64xf32>)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    llvm.func @kernel(%a: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @threads() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    // expected-error@+1 {{tc.merge_launches: a kernel with the threads (2, 1, 1), and the first has (1, 1, 1); accepted: equal ones}}
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @by_hand() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} {
      // expected-error@+1 {{tc.merge_launches: inline PTX reads the position of the block in the grid; accepted: nvvm.read.ptx.sreg}}
      %x = llvm.inline_asm "mov.u32 $0, %ctaid.x;", "=r" : () -> i32
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @not_lowered() {
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{tc.merge_launches: kernel @one::@kernel is not lowered to the LLVM dialect}}
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
}

// -----

// CHECK-LABEL: func.func @shared_input(
// CHECK: gpu.launch_func @shared_input_kernel::@shared_input_kernel blocks in (%c2
// CHECK-NOT: gpu.launch_func
module attributes {gpu.container_module} {
  func.func @shared_input(%a: memref<64xf32> {bufferization.access = "read"}) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<64xf32>)
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<64xf32>)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    llvm.func @kernel(%a: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @shared_result(%a: memref<64xf32> {bufferization.access = "write"}) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<64xf32>)
    // expected-error@+1 {{tc.merge_launches: a launch shares a buffer with an earlier one}}
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<64xf32>)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    llvm.func @kernel(%a: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @clusters_of_rows() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    // expected-error@+1 {{tc.merge_launches: clusters of (1, 2, 1); accepted: along x, which divide the blocks}}
    gpu.launch_func @one::@kernel clusters in (%c1, %c2, %c1) blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @one::@kernel clusters in (%c1, %c2, %c1) blocks in (%c2, %c2, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_90a">] {
    llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @another_op() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @one::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @one [#nvvm.target<chip = "sm_80">] {
    // expected-error@+1 {{tc.merge_launches: 'llvm.comdat' beside a kernel; accepted: globals and declarations}}
    llvm.comdat @any {
      llvm.comdat_selector @any any
    }
    llvm.func @kernel() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}

// -----

// expected-error@unknown {{tc.merge_launches: expected launches of kernels, found none}}
func.func @no_launches() {
  return
}
