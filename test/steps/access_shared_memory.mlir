// Lanes access shared local memory by element, and the memory becomes a global of the kernel's module.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step access_shared_memory --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// CHECK: memref.global "private" @kernel_shared_0 : memref<32x64xf16, 3> = uninitialized
// CHECK-LABEL: gpu.func @kernel(
// CHECK: [[slm:%.+]] = memref.get_global @kernel_shared_0
// CHECK: [[first:%.+]] = vector.extract %{{.*}}[0]
// CHECK: memref.store [[first]], [[slm]][%{{.*}}, %{{.*}}]
// CHECK: memref.store %{{.*}}, [[slm]][%{{.*}}, %{{.*}}]
// The columns of the memory are the rows of its transpose.
// CHECK: [[v0:%.+]] = memref.load [[slm]][[[j:%.+]], %{{.*}}]
// CHECK: [[next:%.+]] = arith.addi
// CHECK: [[v1:%.+]] = memref.load [[slm]][[[j]], [[next]]]
// CHECK: vector.from_elements [[v0]], [[v1]] : vector<2xf16>
// CHECK-NOT: xegpu
gpu.module @code {
  gpu.func @kernel(%i: index, %j: index, %v: vector<2x1xf16>, %out: memref<2x1xf16>) kernel {
    %c0 = arith.constant 0 : index
    %slm = memref.alloc() : memref<32x64xf16, 3>
    %desc = xegpu.create_mem_desc %slm : memref<32x64xf16, 3> -> !xegpu.mem_desc<32x64xf16>
    %turned = xegpu.create_mem_desc %slm : memref<32x64xf16, 3> -> !xegpu.mem_desc<64x32xf16, #xegpu.mem_layout<stride = [1, 64]>>
    xegpu.store_matrix %v, %desc[%i, %j] : vector<2x1xf16>, !xegpu.mem_desc<32x64xf16>, index, index
    gpu.barrier
    %w = xegpu.load_matrix %turned[%i, %j] : !xegpu.mem_desc<64x32xf16, #xegpu.mem_layout<stride = [1, 64]>>, index, index -> vector<2x1xf16>
    vector.store %w, %out[%c0, %c0] : memref<2x1xf16>, vector<2x1xf16>
    gpu.return
  }
}

// -----

gpu.module @code {
  gpu.func @kernel(%i: index, %j: index, %v: vector<2x2xf16>) kernel {
    %slm = memref.alloc() : memref<32x64xf16, 3>
    %desc = xegpu.create_mem_desc %slm : memref<32x64xf16, 3> -> !xegpu.mem_desc<32x64xf16>
    // expected-error @+1 {{xegpu.store_matrix of vector<2x2xf16>: a lane accesses rows of one column}}
    xegpu.store_matrix %v, %desc[%i, %j] : vector<2x2xf16>, !xegpu.mem_desc<32x64xf16>, index, index
    gpu.return
  }
}

// -----

gpu.module @code {
  gpu.func @kernel() kernel {
    // expected-error @+1 {{memref.alloc of memref<32x64xf16>: static memory of memory space 3 is a work-group's}}
    %memory = memref.alloc() : memref<32x64xf16>
    gpu.return
  }
}
