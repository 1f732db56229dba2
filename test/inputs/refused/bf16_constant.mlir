// A constant of bf16 whose bits mean another number in f16.
func.func @f(%A: memref<16xbf16>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  memref.store %one, %A[%c0] : memref<16xbf16>
  return
}
