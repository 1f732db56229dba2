// A kernel flushes subnormal numbers, and libdevice's exponential to the base 2 becomes LLVM's.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step flush_denormals | FileCheck %s

gpu.module @m {
  llvm.func @__nv_exp2f(f32) -> f32
  llvm.func @__nv_tanhf(f32) -> f32
  // CHECK: llvm.func @kernel(%{{.*}}: f32) attributes
  // CHECK-SAME: passthrough = {{\[\[}}"denormal-fp-math-f32", "preserve-sign,preserve-sign"]]
  // CHECK-NEXT: [[e:%.+]] = llvm.intr.exp2(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
  // CHECK-NEXT: llvm.call @__nv_tanhf([[e]])
  llvm.func @kernel(%x: f32) attributes {gpu.kernel, nvvm.kernel} {
    %e = llvm.call @__nv_exp2f(%x) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
    %t = llvm.call @__nv_tanhf(%e) : (f32) -> f32
    llvm.return
  }
  // A kernel that prepares a workspace keeps them, and so does a function that is no kernel.
  // CHECK-NOT: passthrough
  llvm.func @prepares(%x: f32) attributes {gpu.kernel, nvvm.kernel, workspace} {
    llvm.return
  }
  llvm.func @other(%x: f32) {
    llvm.return
  }
}
