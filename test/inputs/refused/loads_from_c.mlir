// A loop whose prefetch reads what the kernel writes: after prefetch_to_registers, before hoist_prefetch.
func.func @f(%C: memref<64xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %pad = arith.constant 0.0 : f16
  %shared = memref.alloc() : memref<64xf16, #gpu.address_space<workgroup>>
  %first = vector.transfer_read %C[%c0], %pad {in_bounds = [true]} : memref<64xf16>, vector<8xf16>
  %last = scf.for %i = %c0 to %n step %c8 iter_args(%tile = %first) -> (vector<8xf16>) {
    vector.transfer_write %tile, %shared[%i] {in_bounds = [true]} : vector<8xf16>, memref<64xf16, #gpu.address_space<workgroup>>
    %read = vector.transfer_read %shared[%c0], %pad {in_bounds = [true]} : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.transfer_write %read, %C[%i] {in_bounds = [true]} : vector<8xf16>, memref<64xf16>
    %next = vector.transfer_read %C[%i], %pad {in_bounds = [true]} : memref<64xf16>, vector<8xf16>
    scf.yield %next : vector<8xf16>
  }
  return
}
