// A shared tile whose size is not known.
func.func @f(%n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc(%n) : memref<?xf16, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}
