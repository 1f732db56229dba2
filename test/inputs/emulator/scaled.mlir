// What test/inputs/emulator/scale.ptx computes with a factor of 2.
func.func @golden(%x: tensor<200xf32>, %y: tensor<200xf32>, %factor: f32, %count: i32) -> tensor<200xf32> {
  %s = linalg.add ins(%x, %x : tensor<200xf32>, tensor<200xf32>) outs(%y : tensor<200xf32>) -> tensor<200xf32>
  return %s : tensor<200xf32>
}
