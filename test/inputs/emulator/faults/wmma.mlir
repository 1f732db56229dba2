// D = A B + C of 16 x 16 x 32 by WMMA, two warps a half of k each; the second adds what the first stored.
// launch: grid=1 block=64
// arguments: 16x32xf16,32x16xf16,16x16xf32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @wmma(%a: memref<16x32xf16>, %b: memref<32x16xf16>, %d: memref<16x16xf32>)
        workgroup(%s: memref<16x24xf32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      //! halves of k overlap: numbers: 16 : => 8 :
      //! second half of k beyond the end: out-of-bounds: 16 : => 24 :
      %c16 = arith.constant 16 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %true = arith.constant true
      %warp = gpu.subgroup_id : index
      //! both warps the first half: numbers: %warp, %c16 => %c0, %c16
      %k = arith.muli %warp, %c16 : index
      //! leading dimension of A: numbers: 32 => 16
      //! leading dimension of A too long: out-of-bounds|numbers: 32 => 40
      //! rows of A shifted: out-of-bounds: [%c0, => [%c8,
      %p = gpu.subgroup_mma_load_matrix %a[%c0, %k] {leadDimension = 32 : index} : memref<16x32xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
      //! B transposed: layout: 16 : index => 16 : index, transpose
      //! B from a row beyond: out-of-bounds|numbers: [%k, => [%c16,
      %q = gpu.subgroup_mma_load_matrix %b[%k, %c0] {leadDimension = 16 : index} : memref<32x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
      //! sums begin with one: numbers: %zero => %one
      %z = gpu.subgroup_mma_constant_matrix %zero : !gpu.mma_matrix<16x16xf32, "COp">
      %r = gpu.subgroup_mma_compute %p, %q, %z : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      %first = arith.cmpi eq, %warp, %c0 : index
      scf.if %first {
        //! leading dimension of the store: numbers|uninitialized: 24 => 16
        //! columns of the store shifted: uninitialized|numbers: %c0, %c0 => %c0, %c8
        //! not stored: uninitialized
        gpu.subgroup_mma_store_matrix %r, %s[%c0, %c0] {leadDimension = 24 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x24xf32, #gpu.address_space<workgroup>>
      }
      //! barrier dropped: race|uninitialized
      gpu.barrier
      //! both warps add: race|numbers: xori => ori
      %second = arith.xori %first, %true : i1
      scf.if %second {
        //! leading dimension of the load: numbers|uninitialized: 24 => 20
        %o = gpu.subgroup_mma_load_matrix %s[%c0, %c0] {leadDimension = 24 : index} : memref<16x24xf32, #gpu.address_space<workgroup>> -> !gpu.mma_matrix<16x16xf32, "COp">
        //! doubled instead of added: numbers: %o : => %r :
        %sum = gpu.subgroup_mma_elementwise addf %r, %o : (!gpu.mma_matrix<16x16xf32, "COp">, !gpu.mma_matrix<16x16xf32, "COp">) -> !gpu.mma_matrix<16x16xf32, "COp">
        //! own half stored: numbers: %sum => %r
        //! result transposed: numbers: 16 : index => 16 : index, transpose
        //! result not stored: unwritten-output
        gpu.subgroup_mma_store_matrix %sum, %d[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
      }
      gpu.return
    }
  }
}
