// A sum of bf16, which f16 would round otherwise.
func.func @f(%A: memref<16xbf16>) {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<16xbf16>
  %y = arith.addf %x, %x : bf16
  memref.store %y, %A[%c0] : memref<16xbf16>
  return
}
