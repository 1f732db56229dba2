// A pipeline of a user's own: a step of the package, one next to this file, and one in this file.

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @tile_k(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @mark_matmul(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})

  transform.named_sequence @tile_again(%module: !transform.any_op {transform.readonly}) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %matmul num_threads [1, 1]
      {knobs = {static_num_threads = "[width, half]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }

  transform.named_sequence @own(%module: !transform.any_op {transform.consumed})
      attributes {derived = {half = "width // 2"}} {
    %width = transform.tune.knob<"width"> = 2 from options = [2, 4, 8] -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = {multiple_of = 16} -> !transform.param<i64>
    %mode = transform.tune.knob<"mode"> = "slow" from options = ["slow", "fast"] -> !transform.any_param
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @mark_matmul failures(propagate) (%module, %width)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @tile_again failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
