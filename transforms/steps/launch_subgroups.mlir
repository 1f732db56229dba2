// Sets the threads of each work-group: 16 for each subgroup.
//
// The tiles count subgroups, and a launch counts threads. A subgroup that executes matrix instructions has 16 threads
// on the supported GPUs. An attribute of the launch states this size, as an attribute of the kernel's `llvm.func` does
// later.
//
// Source: the OpenCL C extension for matrix multiply accumulate, whose built-ins need subgroups of 16.
//
// Before:
//   gpu.launch blocks(...) in (2, 2, 1) threads(...) in (1, 1, 1) { ... }
// After, with 32 subgroups:
//   gpu.launch blocks(...) in (2, 2, 1) threads(...) in (512, 1, 1) { ... } {intel_reqd_sub_group_size = 16 : i32}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @launch_subgroups(%module: !transform.any_op {transform.readonly}) {
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.xegpu.set_gpu_launch_threads %launch threads = [512, 1, 1]
      {knobs = {static_threads = "[threads, 1, 1]"}} : !transform.any_op
    %size = transform.param.constant 16 : i32 -> !transform.any_param
    transform.annotate %launch "intel_reqd_sub_group_size" = %size : !transform.any_op, !transform.any_param
    transform.yield
  }
}
