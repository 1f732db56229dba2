// Includes the sequence that `tile_to_blocks` includes for a batch. `--from drop` takes any IR, not only a batch.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @before(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }

  transform.named_sequence @drop(%module: !transform.any_op {transform.readonly}) {
    transform.include @drop_batch_dimension failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  transform.named_sequence @drop_batch(%module: !transform.any_op {transform.consumed}) {
    transform.include @before failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @drop failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
