module attributes {transform.with_named_sequence} {
  transform.named_sequence @map_to_fragments(%module: !transform.any_op {transform.readonly}) {
    %copies = transform.structured.match ops{["linalg.copy"]} in %module : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.convert_to_loops %copies : (!transform.any_op) -> !transform.any_op

    %compute = transform.structured.match ops{["linalg.matmul", "linalg.fill"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %compute {create_named_contraction} : !transform.any_op
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.vector.fold_arith_extension
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.gpu.unroll_vectors_subgroup_mma [16, 16, 16]
    } : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
