// A grid whose size is not known: there is nothing to number blocks by.
func.func @f(%n: index, %A: memref<?xf16>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %0 = memref.load %A[%x] : memref<?xf16>
    memref.store %0, %A[%y] : memref<?xf16>
    gpu.terminator
  }
  return
}
