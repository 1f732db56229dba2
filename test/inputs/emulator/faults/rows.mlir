// y[r] = largest of the 100 numbers of row r: vectors of 4 with a mask, a reduction of the warp, rows by warp.
// launch: grid=2 block=64
// arguments: 8x100xf32,8xf32=out
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @rows(%x: memref<8x100xf32>, %y: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      //! rows of a block overlap: numbers|unwritten-output: 2 : => 1 :
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %least = arith.constant -1.0e+30 : f32
      %warp = gpu.subgroup_id : index
      %lane = gpu.lane_id
      //! lanes read the same columns: numbers: %lane, %c4 => %lane, %c1
      %col = arith.muli %lane, %c4 : index
      %b = gpu.block_id x
      //! all blocks the rows of the first: race: %b, %c4 => %c0, %c4
      %row0 = arith.muli %b, %c4 : index
      //! rows of the warps: out-of-bounds|race: %warp, %c2 => %warp, %c4
      %rw = arith.muli %warp, %c2 : index
      %row1 = arith.addi %row0, %rw : index
      %part = memref.subview %x[%row1, 0] [2, 100] [1, 1] : memref<8x100xf32> to memref<2x100xf32, strided<[100, 1], offset: ?>>
      //! a row too many: out-of-bounds|race: to %c2 => to %c4
      //! a row too few: numbers|unwritten-output: %c0 to => %c1 to
      scf.for %r = %c0 to %c2 step %c1 {
        //! promised to be in bounds: out-of-bounds: : memref => {in_bounds = [true]} : memref
        //! promised to be in bounds in the rows behind: out-of-bounds: [%r, %col], %least => [%c2, %col], %least
        %v = vector.transfer_read %part[%r, %col], %least : memref<2x100xf32, strided<[100, 1], offset: ?>>, vector<4xf32>
        %m = vector.reduction <maximumf>, %v : vector<4xf32> into f32
        //! sum of the warp: numbers: maximumf => add
        //! reduction of half the warp: numbers: %m : => %m cluster(size = 16) :
        %w = gpu.subgroup_reduce maximumf %m : (f32) -> f32
        %row = arith.addi %row1, %r : index
        %leads = arith.cmpi eq, %lane, %c0 : index
        scf.if %leads {
          //! stored to the row of the warp: numbers|unwritten-output: %row] => %row1]
          memref.store %w, %y[%row] : memref<8xf32>
        }
      }
      gpu.return
    }
  }
}
