// Divides a function with several matmuls into calls of functions that are one kernel each, and one workspace.
//
// The payload is a function on tensors of static sizes. Each function that it calls afterwards is a payload of another
// pipeline: those with a matmul of `wgmma`, `mma_sync` or `wmma`, the others of `elementwise`, `rows` or `attention`.
// `stepladder compile` compiles them from the IR after `outline_elementwise`. The IR after the last step is the list of
// launches: it gives the buffers that the kernels are launched on.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @functions(%module: !transform.any_op {transform.consumed}) attributes {whole_function} {
    %pairs = transform.tune.knob<"pairs"> = true from options = [true, false]
      {description = "two matmuls of one A that an elementwise op combines are one kernel, if a pipeline compiles it"}
      -> !transform.any_param
    %dequantizing = transform.tune.knob<"dequantizing"> = true from options = [true, false]
      {description = "kernels of matmuls dequantize their operands, where the pipelines of matmuls have producers"}
      -> !transform.any_param
    %groups = transform.tune.knob<"groups"> = false from options = [false, true]
      {description = "independent matmuls of the same types and layouts are one launch, where a pipeline compiles it"}
      -> !transform.any_param
    %merge_elementwise = transform.tune.knob<"merge_elementwise"> = true from options = [true, false]
      {description = "adjacent elementwise ops that do not depend on each other are one launch"}
      -> !transform.any_param
    %rows = transform.tune.knob<"rows"> = true from options = [true, false]
      {description = "reductions along rows and elementwise ops on the same rows are one kernel"}
      -> !transform.any_param
    %attention = transform.tune.knob<"attention"> = false from options = [false, true]
      {description = "an attention is one kernel, where the pipeline of attentions compiles it"}
      -> !transform.any_param
    %attention_weights = transform.tune.knob<"attention_weights"> = "f32" from options = ["f32", "rounded"]
      {description = "weights of an attention in one kernel that the payload has in f32: rounded to 16 bits or not"}
      -> !transform.any_param
    %mixed_fp8 = transform.tune.knob<"mixed_fp8"> = true from options = [true, false]
      {description = "the pipelines of matmuls multiply one fp8 type by the other; else both become f16"}
      -> !transform.any_param
    %multiplies_fp8 = transform.tune.knob<"multiplies_fp8"> = true from options = [true, false]
      {description = "the pipelines of matmuls multiply fp8 on the target; else it becomes f16"}
      -> !transform.any_param
    %multiplies_bf16 = transform.tune.knob<"multiplies_bf16"> = true from options = [true, false]
      {description = "the target multiplies bf16; else fp8 that the payload extends to bf16 becomes f16"}
      -> !transform.any_param
    %in_place = transform.tune.knob<"in_place"> = false from options = [false, true]
      {description = "the pipelines of matmuls read operands in other orders by TMA, without a copy"}
      -> !transform.any_param
    %columns = transform.tune.knob<"columns"> = true from options = [true, false]
      {description = "matmuls read and write rows with a pitch in place: columns of a tensor, heads behind rows"}
      -> !transform.any_param
    %strided = transform.tune.knob<"strided"> = false from options = [false, true]
      {description = "the pipelines of matmuls read batches of several strides in place: heads of several sequences"}
      -> !transform.any_param
    %unrolled = transform.include @unroll_loops failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @decompose_ops failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    transform.include @widen_operands failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    transform.include @split_integers failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    transform.tune.alternatives<"attention"> selected_region = 0
        attributes {knobs = {selected_region_attr = "attention"}} {
    }, {
      transform.include @outline_attention failures(propagate) (%unrolled) : (!transform.any_op) -> ()
      transform.tune.alternatives<"round_weights"> selected_region = 0
          attributes {knobs = {selected_region_attr = "attention_weights == 'rounded'"}} {
      }, {
        transform.include @round_weights failures(propagate) (%unrolled) : (!transform.any_op) -> ()
      }
    }
    transform.tune.alternatives<"absorb_transposes"> selected_region = 0
        attributes {knobs = {selected_region_attr = "in_place"}} {
    }, {
      transform.include @absorb_transposes failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    }
    transform.include @permute_contractions failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    %outlined = transform.include @outline_matmuls failures(propagate) (%unrolled)
      : (!transform.any_op) -> !transform.any_op
    transform.include @fuse_elementwise failures(propagate) (%outlined) : (!transform.any_op) -> ()
    transform.include @split_reductions failures(propagate) (%outlined) : (!transform.any_op) -> ()
    transform.include @outline_in_place failures(propagate) (%outlined) : (!transform.any_op) -> ()
    transform.tune.alternatives<"rows"> selected_region = 1
        attributes {knobs = {selected_region_attr = "rows"}} {
    }, {
      transform.include @outline_rows failures(propagate) (%outlined) : (!transform.any_op) -> ()
    }
    %calls = transform.include @outline_elementwise failures(propagate) (%outlined)
      : (!transform.any_op) -> !transform.any_op
    transform.tune.alternatives<"groups"> selected_region = 0
        attributes {knobs = {selected_region_attr = "groups"}} {
    }, {
      transform.include @group_matmuls failures(propagate) (%calls) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"merge_elementwise"> selected_region = 1
        attributes {knobs = {selected_region_attr = "merge_elementwise"}} {
    }, {
      transform.include @group_elementwise failures(propagate) (%calls) : (!transform.any_op) -> ()
    }
    %buffers = transform.include @bufferize_function failures(propagate) (%calls)
      : (!transform.any_op) -> !transform.any_op
    transform.include @plan_workspace failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.yield
  }
}
