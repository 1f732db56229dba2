// A block that does not wait for all of what another one writes is found in the order of the blocks where it runs first:
// where nothing is found in one order, a program whose blocks wait for each other runs in the other one too.
//
// RUN: sed 's/"sgt" %%seen/"sge" %%seen/' %inputs/emulator/faults/handshake.mlir > %t.mlir
// RUN: %python %inputs/expect_status.py 1 %stepladder emulate %t.mlir --kernel handshake --grid 2 --block 64 \
// RUN:   --arguments 4x64xi32,4x64xi32,2xi32=0,4x64xi32=out | FileCheck %s
// RUN: %stepladder emulate %inputs/emulator/faults/handshake.mlir --kernel handshake --grid 2 --block 64 \
// RUN:   --arguments 4x64xi32,4x64xi32,2xi32=0,4x64xi32=out | FileCheck %s --check-prefix=CLEAN

// CHECK: race: llvm.store: a thread of block (0, 0, 0) writes byte 0x0 of argument 1, which another block read
// CHECK: note: with the blocks from the last to the first (--reverse-blocks)
// CHECK: findings: 1
// CLEAN: findings: none
