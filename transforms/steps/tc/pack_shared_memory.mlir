module attributes {transform.with_named_sequence} {
  transform.named_sequence @pack_shared_memory(%module: !transform.any_op {transform.readonly}) {
    "tc.pack_shared_memory"(%module) {static_limit = 49152 : i64} : (!transform.any_op) -> ()
    transform.yield
  }
}
