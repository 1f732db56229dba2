// The loop over tiles of a batch stores to a C with several strides between its matrices: tiles are at the quotients and
// the remainders of the batch index, and each is read from where it is stored.
//
// DEFINE: %{step} = %stepladder-opt %s --pipeline mma_sync --step divide_batch_index --split-input-file \
// DEFINE:   --verify-diagnostics
// RUN: %{step} | FileCheck %s

// CHECK-DAG: #[[sequence:.+]] = affine_map<()[s0] -> (s0 floordiv 3)>
// CHECK-DAG: #[[head:.+]] = affine_map<()[s0] -> (s0 mod 3)>
// CHECK-LABEL: func.func @two_strides(
// CHECK: [[C:%.+]] = bufferization.to_tensor %C restrict writable
// CHECK: [[all:%.+]] = scf.forall ([[b:%.+]], [[i:%.+]]) in (6, 2) shared_outs([[o:%.+]] = [[C]])
// CHECK-DAG: [[q:%.+]] = affine.apply #[[sequence]]()[[[b]]]
// CHECK-DAG: [[r:%.+]] = affine.apply #[[head]]()[[[b]]]
// CHECK: [[tile:%.+]] = tensor.extract_slice [[o]]{{\[}}[[q]], [[r]], [[row:%.+]], 0] [1, 1, 4, 8] [1, 1, 1, 1]
// CHECK: [[zeros:%.+]] = linalg.fill ins(%{{.+}}) outs([[tile]]
// CHECK: tensor.parallel_insert_slice [[zeros]] into [[o]]{{\[}}[[q]], [[r]], [[row]], 0] [1, 1, 4, 8] [1, 1, 1, 1]
// CHECK-NOT: tensor.reshape
// CHECK: bufferization.materialize_in_destination [[all]] in restrict writable %C
#rows = affine_map<(d0) -> (d0 * 4)>
func.func @two_strides(%C: memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x8x8xf16>
  %all = scf.forall (%b, %i) in (6, 2) shared_outs(%o = %e) -> (tensor<6x8x8xf16>) {
    %row = affine.apply #rows(%i)
    %tile = tensor.extract_slice %o[%b, %row, 0] [1, 4, 8] [1, 1, 1] : tensor<6x8x8xf16> to tensor<4x8xf16>
    %zeros = linalg.fill ins(%zero : f16) outs(%tile : tensor<4x8xf16>) -> tensor<4x8xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %zeros into %o[%b, %row, 0] [1, 4, 8] [1, 1, 1]
        : tensor<4x8xf16> into tensor<6x8x8xf16>
    }
  }
  %extents = arith.constant dense<[2, 3, 8, 8]> : tensor<4xi64>
  %divided = tensor.reshape %all(%extents) : (tensor<6x8x8xf16>, tensor<4xi64>) -> tensor<2x3x8x8xf16>
  bufferization.materialize_in_destination %divided in restrict writable %C
    : (tensor<2x3x8x8xf16>, memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @two_strides_of_a(
// CHECK: [[a:%.+]] = bufferization.to_tensor %A restrict
// CHECK-NOT: tensor.reshape
// CHECK: scf.forall ([[b:%.+]]) in (6)
// CHECK-DAG: [[q:%.+]] = affine.apply #[[sequence]]()[[[b]]]
// CHECK-DAG: [[r:%.+]] = affine.apply #[[head]]()[[[b]]]
// CHECK: tensor.extract_slice [[a]]{{\[}}[[q]], [[r]], 0, 0] [1, 1, 8, 8] [1, 1, 1, 1]
func.func @two_strides_of_a(%A: memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>, %e: tensor<6x8x8xf16>)
    -> tensor<6x8x8xf16> {
  %extents = arith.constant dense<[6, 8, 8]> : tensor<3xi64>
  %a = bufferization.to_tensor %A restrict : memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>> to tensor<2x3x8x8xf16>
  %joined = tensor.reshape %a(%extents) : (tensor<2x3x8x8xf16>, tensor<3xi64>) -> tensor<6x8x8xf16>
  %all = scf.forall (%b) in (6) shared_outs(%o = %e) -> (tensor<6x8x8xf16>) {
    %tile = tensor.extract_slice %joined[%b, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<6x8x8xf16> to tensor<8x8xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %tile into %o[%b, 0, 0] [1, 8, 8] [1, 1, 1]
        : tensor<8x8xf16> into tensor<6x8x8xf16>
    }
  }
  return %all : tensor<6x8x8xf16>
}

// -----

// Three heads of a sequence share a matrix.
//
// CHECK-LABEL: func.func @shared_matrix(
// CHECK: [[A:%.+]] = memref.reinterpret_cast %B {{.*}} to memref<2x8x8xf16, strided<[192, 24, 1]>>
// CHECK: [[a:%.+]] = bufferization.to_tensor [[A]] restrict
// CHECK-NOT: tensor.reshape
// CHECK: scf.forall ([[b:%.+]]) in (6)
// CHECK: [[q:%.+]] = affine.apply #[[sequence]]()[[[b]]]
// CHECK: tensor.extract_slice [[a]]{{\[}}[[q]], 0, 0] [1, 8, 8] [1, 1, 1]
func.func @shared_matrix(%B: memref<384xf16>, %e: tensor<6x8x8xf16>) -> tensor<6x8x8xf16> {
  %extents = arith.constant dense<[6, 8, 8]> : tensor<3xi64>
  %A = memref.reinterpret_cast %B to offset: [0], sizes: [2, 3, 8, 8], strides: [192, 0, 24, 1]
    : memref<384xf16> to memref<2x3x8x8xf16, strided<[192, 0, 24, 1]>>
  %a = bufferization.to_tensor %A restrict : memref<2x3x8x8xf16, strided<[192, 0, 24, 1]>> to tensor<2x3x8x8xf16>
  %joined = tensor.reshape %a(%extents) : (tensor<2x3x8x8xf16>, tensor<3xi64>) -> tensor<6x8x8xf16>
  %all = scf.forall (%b) in (6) shared_outs(%o = %e) -> (tensor<6x8x8xf16>) {
    %tile = tensor.extract_slice %joined[%b, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<6x8x8xf16> to tensor<8x8xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %tile into %o[%b, 0, 0] [1, 8, 8] [1, 1, 1]
        : tensor<8x8xf16> into tensor<6x8x8xf16>
    }
  }
  return %all : tensor<6x8x8xf16>
}

// -----

func.func @read_outside_of_a_loop(%A: memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) -> tensor<6x8x8xf16> {
  %extents = arith.constant dense<[6, 8, 8]> : tensor<3xi64>
  %a = bufferization.to_tensor %A restrict : memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>> to tensor<2x3x8x8xf16>
  // expected-error@+1 {{expected slices of A or B in a loop over tiles}}
  %joined = tensor.reshape %a(%extents) : (tensor<2x3x8x8xf16>, tensor<3xi64>) -> tensor<6x8x8xf16>
  return %joined : tensor<6x8x8xf16>
}

// -----

func.func @not_tiled(%t: tensor<6x8x8xf16>, %C: memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) {
  %extents = arith.constant dense<[2, 3, 8, 8]> : tensor<4xi64>
  // expected-error@+1 {{expected the result of a loop over tiles}}
  %divided = tensor.reshape %t(%extents) : (tensor<6x8x8xf16>, tensor<4xi64>) -> tensor<2x3x8x8xf16>
  bufferization.materialize_in_destination %divided in restrict writable %C
    : (tensor<2x3x8x8xf16>, memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) -> ()
  return
}

// -----

func.func @reads_c(%t: tensor<6x8x8xf16>, %C: memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) {
  // expected-error@+1 {{expected a loop over tiles that does not read C, which has several strides in a batch}}
  %all = scf.forall (%b) in (6) shared_outs(%o = %t) -> (tensor<6x8x8xf16>) {
    %tile = tensor.extract_slice %t[%b, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<6x8x8xf16> to tensor<8x8xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %tile into %o[%b, 0, 0] [1, 8, 8] [1, 1, 1]
        : tensor<8x8xf16> into tensor<6x8x8xf16>
    }
  }
  %extents = arith.constant dense<[2, 3, 8, 8]> : tensor<4xi64>
  %divided = tensor.reshape %all(%extents) : (tensor<6x8x8xf16>, tensor<4xi64>) -> tensor<2x3x8x8xf16>
  bufferization.materialize_in_destination %divided in restrict writable %C
    : (tensor<2x3x8x8xf16>, memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) -> ()
  return
}

// -----

func.func @several_matrices(%t: tensor<2x8x8xf16>, %C: memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) {
  %e = tensor.empty() : tensor<6x8x8xf16>
  %all = scf.forall (%b) in (3) shared_outs(%o = %e) -> (tensor<6x8x8xf16>) {
    scf.forall.in_parallel {
      // expected-error@+1 {{expected slices at the batch index of the loop, of one matrix each}}
      tensor.parallel_insert_slice %t into %o[%b, 0, 0] [2, 8, 8] [1, 1, 1]
        : tensor<2x8x8xf16> into tensor<6x8x8xf16>
    }
  }
  %extents = arith.constant dense<[2, 3, 8, 8]> : tensor<4xi64>
  %divided = tensor.reshape %all(%extents) : (tensor<6x8x8xf16>, tensor<4xi64>) -> tensor<2x3x8x8xf16>
  bufferization.materialize_in_destination %divided in restrict writable %C
    : (tensor<2x3x8x8xf16>, memref<2x3x8x8xf16, strided<[192, 8, 24, 1]>>) -> ()
  return
}
