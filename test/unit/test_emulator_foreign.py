"""The emulator on IR that no pipeline here makes: accesses, threads, barriers and matrices."""

import numpy as np
import pytest

from foreign_kernels import INTS, launch, launch_func, run, run_clean

# What is out of bounds.


@pytest.mark.parametrize(
    "access", ["%v = memref.load %Y[%i] : memref<64xi32>", "memref.store %v0, %Y[%i] : memref<64xi32>"]
)
def test_an_index_out_of_bounds_that_is_the_same_for_all_threads(access: str) -> None:
    outcome = run(
        launch(f"""
        %i = arith.constant 64 : index
        %v0 = arith.constant 1 : i32
        {access}
        gpu.terminator"""),
        INTS,
    )
    (finding,) = outcome.findings
    assert finding.kind == "out-of-bounds" and "element [64] of 64xi32" in finding.message


def test_the_host_out_of_bounds() -> None:
    outcome = run(
        """
    func.func @main(%X: memref<4xf32>) -> f32 {
      %i = arith.constant -1 : index
      %v = memref.load %X[%i] : memref<4xf32>
      return %v : f32
    }""",
        np.ones(4, np.float32),
    )
    assert [finding.kind for finding in outcome.findings] == ["out-of-bounds"]


def test_memory_that_has_been_freed() -> None:
    outcome = run("""
    func.func @main() {
      %c0 = arith.constant 0 : index
      %A = memref.alloc() : memref<4xf32>
      %z = arith.constant 0.0 : f32
      memref.store %z, %A[%c0] : memref<4xf32>
      memref.dealloc %A : memref<4xf32>
      %v = memref.load %A[%c0] : memref<4xf32>
      memref.dealloc %A : memref<4xf32>
      return
    }""")
    assert [finding.kind for finding in outcome.findings] == ["use-after-free"] * 2


# Threads and barriers.


def test_the_second_warpgroup_stores_behind_the_first() -> None:
    # MLIR's lowering takes the number of the warp in the block, not in its warpgroup.
    outcome = run_clean(
        launch(
            """
        %sums = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x8xf32>>
        %part = memref.subview %Y[0, 0] [64, 8] [1, 1] : memref<128x8xf32> to memref<64x8xf32, strided<[8, 1]>>
        nvgpu.warpgroup.mma.store %sums, %part
            : <fragmented = vector<64x8xf32>> to memref<64x8xf32, strided<[8, 1]>>
        gpu.terminator""",
            threads=256,
            arguments="%Y: memref<128x8xf32>",
        ),
        np.ones((128, 8), np.float32),
    )
    assert not outcome.arguments[0].any()


def test_threads_that_have_ended_count_as_arrived() -> None:
    outcome = run_clean(
        launch_func("""
        gpu.func @k(%Y: memref<64xi32>) workgroup(%s: memref<32xi32, #gpu.address_space<workgroup>>) kernel {
          %t = gpu.thread_id x
          %c32 = arith.constant 32 : index
          %c31 = arith.constant 31 : index
          %late = arith.cmpi uge, %t, %c32 : index
          cf.cond_br %late, ^leave, ^stay
        ^leave:
          gpu.return
        ^stay:
          %v = arith.index_cast %t : index to i32
          memref.store %v, %s[%t] : memref<32xi32, #gpu.address_space<workgroup>>
          gpu.barrier
          %r = arith.subi %c31, %t : index
          %w = memref.load %s[%r] : memref<32xi32, #gpu.address_space<workgroup>>
          memref.store %w, %Y[%t] : memref<64xi32>
          gpu.return
        }"""),
        INTS,
    )
    assert list(outcome.arguments[0][:32]) == list(range(31, -1, -1))


def test_an_arrival_at_the_mbarrier_of_another_block_of_the_cluster() -> None:
    run_clean(
        launch_func(
            """
        llvm.mlir.global internal @m() {addr_space = 3 : i32, alignment = 8 : i64} : i64
        llvm.func @k(%Y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
          %c0 = llvm.mlir.constant(0 : i32) : i32
          %c1 = llvm.mlir.constant(1 : i32) : i32
          %c32 = llvm.mlir.constant(32 : i32) : i32
          %ticks = llvm.mlir.constant(1000 : i32) : i32
          %m = llvm.mlir.addressof @m : !llvm.ptr<3>
          %t = nvvm.read.ptx.sreg.tid.x : i32
          %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
          %first = llvm.icmp "eq" %t, %c0 : i32
          nvvm.mbarrier.init %m, %c32, predicate = %first : !llvm.ptr<3>, i32, i1
          nvvm.fence.mbarrier.init
          nvvm.cluster.arrive
          nvvm.cluster.wait
          // Those of block 1 arrive at the mbarrier of block 0, which waits for them.
          %of_first = llvm.icmp "eq" %rank, %c0 : i32
          llvm.cond_br %of_first, ^wait, ^arrive
        ^arrive:
          %there = nvvm.mapa %m, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
          nvvm.mbarrier.arrive %there : !llvm.ptr<7>
          llvm.br ^end
        ^wait:
          nvvm.mbarrier.try_wait.parity %m, %c0, %ticks : !llvm.ptr<3>, i32, i32
          llvm.br ^end
        ^end:
          nvvm.cluster.arrive
          nvvm.cluster.wait
          llvm.return
        }""",
            threads=32,
            blocks=2,
            clusters=2,
        ),
        INTS,
    )


def test_f64_matrices_are_multiplied_in_f64() -> None:
    a = np.full((8, 4), 1 + 2.0**-40)
    outcome = run_clean(
        launch(
            """
        %p = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 4 : index}
            : memref<8x4xf64> -> !gpu.mma_matrix<8x4xf64, "AOp">
        %q = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {leadDimension = 8 : index}
            : memref<4x8xf64> -> !gpu.mma_matrix<4x8xf64, "BOp">
        %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 8 : index}
            : memref<8x8xf64> -> !gpu.mma_matrix<8x8xf64, "COp">
        %d = gpu.subgroup_mma_compute %p, %q, %c : !gpu.mma_matrix<8x4xf64, "AOp">, !gpu.mma_matrix<4x8xf64, "BOp">
            -> !gpu.mma_matrix<8x8xf64, "COp">
        gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 8 : index}
            : !gpu.mma_matrix<8x8xf64, "COp">, memref<8x8xf64>
        gpu.terminator""",
            threads=32,
            arguments="%A: memref<8x4xf64>, %B: memref<4x8xf64>, %C: memref<8x8xf64>",
        ),
        a,
        a.T.copy(),
        np.zeros((8, 8)),
    )
    assert np.array_equal(outcome.arguments[2], a @ a.T)


def column_major(compute: str) -> str:
    """A product of f64 matrices, of which A is loaded transposed; `compute` has the attributes of the product."""
    return launch(
        f"""
        %p = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {{leadDimension = 8 : index, transpose}}
            : memref<4x8xf64> -> !gpu.mma_matrix<8x4xf64, "AOp">
        %q = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {{leadDimension = 8 : index}}
            : memref<4x8xf64> -> !gpu.mma_matrix<4x8xf64, "BOp">
        %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {{leadDimension = 8 : index}}
            : memref<8x8xf64> -> !gpu.mma_matrix<8x8xf64, "COp">
        %d = gpu.subgroup_mma_compute %p, %q, %c {compute} : !gpu.mma_matrix<8x4xf64, "AOp">,
            !gpu.mma_matrix<4x8xf64, "BOp"> -> !gpu.mma_matrix<8x8xf64, "COp">
        gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {{leadDimension = 8 : index}}
            : !gpu.mma_matrix<8x8xf64, "COp">, memref<8x8xf64>
        gpu.terminator""",
        threads=32,
        arguments="%A: memref<4x8xf64>, %B: memref<4x8xf64>, %C: memref<8x8xf64>",
    )


def test_a_matrix_that_is_loaded_transposed() -> None:
    a, b = np.arange(32.0).reshape(4, 8), np.arange(32.0).reshape(4, 8)[:, ::-1].copy()
    outcome = run_clean(column_major("{a_transpose}"), a, b, np.zeros((8, 8)))
    assert np.array_equal(outcome.arguments[2], a.T @ b)


def test_a_product_of_a_matrix_in_another_layout_than_it_says() -> None:
    outcome = run(column_major(""), np.zeros((4, 8)), np.zeros((4, 8)), np.zeros((8, 8)))
    assert [finding.kind for finding in outcome.findings] == ["layout"]
    assert "loaded with transpose, and a_transpose says otherwise" in outcome.findings[0].message


def test_matrices_of_a_warp_in_column_major_order_and_with_rows_elsewhere() -> None:
    a = np.arange(512, dtype=np.float16).reshape(16, 32)
    outcome = run_clean(
        launch(
            """
        %p = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 32 : index, transpose}
            : memref<16x32xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
        gpu.subgroup_mma_store_matrix %p, %B[%c0, %c0] {leadDimension = 16 : index}
            : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
        %c16 = arith.constant 16 : index
        %q = gpu.subgroup_mma_load_matrix %A[%c0, %c16] {leadDimension = 16 : index}
            : memref<16x32xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
        gpu.subgroup_mma_store_matrix %q, %C[%c0, %c0] {leadDimension = 16 : index, transpose}
            : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
        gpu.terminator""",
            threads=32,
            arguments="%A: memref<16x32xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf16>",
        ),
        a,
        np.zeros((16, 16), np.float16),
        np.zeros((16, 16), np.float16),
    )
    assert np.array_equal(outcome.arguments[1], a[:, :16].T)
    assert np.array_equal(outcome.arguments[2], a.ravel()[16:272].reshape(16, 16).T)


def test_vectors_are_arrays_of_vectors_where_ops_are_lowered_in_part() -> None:
    """A constant of LLVM's array type becomes a vector, one of whose elements changes, and an array again."""
    array, deep = "!llvm.array<2 x vector<3xi32>>", "!llvm.array<2 x array<1 x vector<3xi32>>>"
    text = launch(
        f"""
        %array = llvm.mlir.constant(dense<[[1, 2, 3], [4, 5, 6]]> : vector<2x3xi32>) : {array}
        %vector = builtin.unrealized_conversion_cast %array : {array} to vector<2x3xi32>
        %n = arith.index_cast %t : index to i32
        %row = arith.remui %t, %c2 : index
        %changed = vector.insert %n, %vector [%row, 1] : i32 into vector<2x3xi32>
        %again = builtin.unrealized_conversion_cast %changed : vector<2x3xi32> to {array}
        %second = llvm.extractvalue %again[1] : {array}
        %cast = vector.shape_cast %changed : vector<2x3xi32> to vector<2x1x3xi32>
        %deep = builtin.unrealized_conversion_cast %cast : vector<2x1x3xi32> to {deep}
        %first = llvm.extractvalue %deep[0, 0] : {deep}
        %back = builtin.unrealized_conversion_cast %deep : {deep} to vector<2x1x3xi32>
        %same = arith.cmpi eq, %back, %cast : vector<2x1x3xi32>
        %all = vector.shape_cast %same : vector<2x1x3xi1> to vector<6xi1>
        %is = vector.reduction <and>, %all : vector<6xi1> into i1
        %sum = arith.addi %first, %second : vector<3xi32>
        %total = vector.reduction <add>, %sum : vector<3xi32> into i32
        %zero = arith.constant 0 : i32
        %result = arith.select %is, %total, %zero : i32
        memref.store %result, %Y[%t] : memref<64xi32>
        gpu.terminator"""
    ).replace("%c1 = arith", "%c2 = arith.constant 2 : index\n      %c1 = arith")
    outcome = run_clean(text, np.zeros(64, np.int32))
    lanes = np.arange(64)
    assert (outcome.arguments[0] == 21 + lanes - np.where(lanes % 2, 5, 2)).all()
