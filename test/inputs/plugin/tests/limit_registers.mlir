// DEFINE: %{step} = stepladder-opt %s --pipeline %S/../occupancy.mlir --plugin %S/../occupancy.py \
// DEFINE:   --step limit_registers --split-input-file --verify-diagnostics
// RUN: %{step} | FileCheck %s

// CHECK: llvm.func @sized_kernel() attributes {{.*}}nvvm.maxnreg = 128 : i32
llvm.func @sized_kernel() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
  llvm.return
}

// -----

// expected-error@+1 {{the kernel's block size is not known}}
llvm.func @kernel_of_any_size() attributes {nvvm.kernel} {
  llvm.return
}
