// More than a matmul: the high halves of squares.
func.func @matmul(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x64xf16> to tensor<64x64xf16>
  %b = bufferization.to_tensor %B restrict : memref<64x64xf16> to tensor<64x64xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x64xf32>) outs(%c : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %i = arith.fptosi %x : f32 to i32
    %low, %high = arith.mulsi_extended %i, %i : i32
    %m = arith.sitofp %high : i32 to f32
    linalg.yield %m : f32
  } -> tensor<64x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}
