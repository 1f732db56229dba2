// Lowers masked reads of A and B to loads under a condition, and writes of narrow vectors to stores.
//
// The mask of a read has all elements or none, so that the read becomes one load under a branch, which ptxas
// predicates. LLVM would lower a masked load of a vector to a branch for each element. Vectors of less than 16 bytes,
// in rows whose length is not a multiple of 16 bytes, get the alignment that holds; `lower_transfers` assumes 16 bytes
// for all others.
//
// `cp.async` copies have no masks at this point. Of the copies that could become `cp.async`, the step finds only those
// whose mask is known to be empty: `convert_to_cp_async` does not convert them, and the step writes zeros instead.
//
// Before:
//   %mask = vector.create_mask (%is_inside ? 4 : 0) : vector<4xi1>
//   %0 = vector.transfer_read %A[%i, %k], 0, %mask : memref<100x36xf16>, vector<4xf16>
//   vector.transfer_write %0, %shared_a[%r, %c] : vector<4xf16>, memref<...>
// After:
//   %0 = scf.if %is_inside { vector.load %A[%i, %k] {alignment = 8} } else { zeros }
//   vector.store %0, %shared_a[%r, %c] {alignment = 8}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @lower_masked_copies(%module: !transform.any_op {transform.readonly}) {
    "tc.lower_masked_copies"(%module) : (!transform.any_op) -> ()

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernel) : (!transform.any_op) -> ()
    transform.yield
  }
}
