// Generalizes named linalg ops that compute element by element, reduce, transpose or broadcast.
//
// Steps include it before `linalg-fuse-elementwise-ops`, which fuses generic ops only. Contractions keep their names,
// by which later steps match them.
//
// Before:
//   %s = linalg.exp ins(%x : tensor<8x16xf32>) outs(%0 : tensor<8x16xf32>)
// After:
//   %s = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : ...) {
//     %e = math.exp %in : f32
//     linalg.yield %e : f32
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @generalize_elementwise(%root: !transform.any_op {transform.readonly}) {
    %named = transform.structured.match ops{[
        "linalg.abs", "linalg.add", "linalg.broadcast", "linalg.ceil", "linalg.copy", "linalg.div",
        "linalg.div_unsigned", "linalg.dot", "linalg.elementwise", "linalg.erf", "linalg.exp", "linalg.floor",
        "linalg.log", "linalg.map", "linalg.max", "linalg.min", "linalg.mul", "linalg.negf", "linalg.powf",
        "linalg.reciprocal", "linalg.reduce", "linalg.round", "linalg.rsqrt", "linalg.select", "linalg.sqrt",
        "linalg.square", "linalg.sub", "linalg.tanh", "linalg.transpose"
      ]} in %root : (!transform.any_op) -> !transform.any_op
    %generic = transform.structured.generalize %named : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
