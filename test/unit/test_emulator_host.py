"""The emulator on whole programs: what the host does and prints, atomics, reductions, and loops of every kind."""

import numpy as np
import pytest

from foreign_kernels import INTS, launch, run, run_clean

# The host.


def test_assertions_of_the_host_end_the_program() -> None:
    outcome = run(
        """
    func.func @main(%Y: memref<64xi32>) {
      %c0 = arith.constant 0 : index
      %no = arith.constant false
      %v = arith.constant 1 : i32
      cf.assert %no, "not so"
      memref.store %v, %Y[%c0] : memref<64xi32>
      return
    }""",
        INTS,
    )
    assert [finding.kind for finding in outcome.findings] == ["assertion"] and "not so" in outcome.output
    assert not outcome.arguments[0].any()


def test_what_runner_libraries_print() -> None:
    outcome = run_clean(
        """
    func.func private @printMemrefF32(memref<*xf32>)
    func.func @main(%X: memref<2x3xf32>) {
      %u = memref.cast %X : memref<2x3xf32> to memref<*xf32>
      call @printMemrefF32(%u) : (memref<*xf32>) -> ()
      %v = arith.constant dense<[1.5, -0.0, 1.0e+20]> : vector<3xf32>
      vector.print %v : vector<3xf32>
      %i = arith.constant dense<[[true, false], [true, true]]> : vector<2x2xi1>
      vector.print %i : vector<2x2xi1>
      vector.print str "text\\n"
      return
    }""",
        np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
    )
    head, *lines = outcome.output.splitlines()
    assert head.startswith("Unranked Memref base@ = 0x")
    assert head.endswith(" rank = 2 offset = 0 sizes = [2, 3] strides = [3, 1] data = ")
    assert lines == [
        "[[0,   0.25,   0.5], ",
        " [0.75,   1,   1.25]]",
        "( 1.5, -0, 1e+20 )",
        "( ( 1, 0 ), ( 1, 1 ) )",
        "text",
    ]


def test_kernels_print_one_thread_after_the_other() -> None:
    outcome = run_clean(
        launch(
            """
        %v = arith.index_cast %t : index to i32
        %f = arith.sitofp %v : i32 to f32
        gpu.printf "%lld|%3d|%-3d|%.2f|%%\\0A", %t, %v, %v, %f : index, i32, i32, f32
        gpu.terminator""",
            threads=2,
        ),
        INTS,
    )
    assert outcome.output == "0|  0|0  |0.00|%\n1|  1|1  |1.00|%\n"


# Atomics.


def test_a_counter_that_all_threads_of_all_blocks_add_to() -> None:
    outcome = run_clean(
        launch(
            """
        %one = arith.constant 1 : i32
        %old = memref.atomic_rmw addi %one, %Y[%c0] : (i32, memref<64xi32>) -> i32
        gpu.terminator""",
            blocks=3,
        ),
        INTS,
    )
    assert outcome.arguments[0][0] == 3 * 64


def test_an_atomic_update_races_with_a_plain_store() -> None:
    outcome = run(
        launch("""
        %one = arith.constant 1 : i32
        %c32 = arith.constant 32 : index
        %early = arith.cmpi ult, %t, %c32 : index
        scf.if %early {
          memref.atomic_rmw addi %one, %Y[%c0] : (i32, memref<64xi32>) -> i32
        } else {
          memref.store %one, %Y[%c0] : memref<64xi32>
        }
        gpu.terminator"""),
        INTS,
    )
    assert {finding.kind for finding in outcome.findings} == {"race"}


def test_kernels_that_wait_for_each_other_run_together() -> None:
    kernel = """
      gpu.module @k {
        gpu.func @k(%Y: memref<i32>) kernel {
          %c0 = arith.constant 0 : i32
          %c1 = arith.constant 1 : i32
          %c2 = arith.constant 2 : i32
          %old = memref.atomic_rmw addi %c1, %Y[] : (i32, memref<i32>) -> i32
          scf.while : () -> () {
            %v = memref.atomic_rmw addi %c0, %Y[] : (i32, memref<i32>) -> i32
            %more = arith.cmpi slt, %v, %c2 : i32
            scf.condition(%more)
          } do {
            scf.yield
          }
          gpu.return
        }
      }"""

    def host(count: int) -> str:
        launches = "\n".join(
            f"%s{n} = gpu.launch_func async [%t] @k::@k blocks in (%c1, %c1, %c1) "
            "threads in (%c1, %c1, %c1) args(%Y : memref<i32>)"
            for n in range(count)
        )
        return f"""module attributes {{gpu.container_module}} {{
          func.func @main(%Y: memref<i32>) {{
            %c1 = arith.constant 1 : index
            %t = gpu.wait async
            {launches}
            gpu.wait [{", ".join(f"%s{n}" for n in range(count))}]
            return
          }}
          {kernel}
        }}"""

    assert run_clean(host(2), np.zeros((), np.int32)).arguments[0] == 2
    assert [finding.kind for finding in run(host(1), np.zeros((), np.int32)).findings] == ["deadlock"]


def test_a_wait_of_a_kernel_waits_for_nothing() -> None:
    run_clean(
        launch("""
        gpu.wait
        gpu.terminator"""),
        INTS,
    )


# Reductions.


@pytest.mark.parametrize("kind, expected", [("add", sum(range(64))), ("maxsi", 63), ("xor", 0)])
def test_what_all_threads_of_a_block_have_together(kind: str, expected: int) -> None:
    outcome = run_clean(
        launch(f"""
        %v = arith.index_cast %t : index to i32
        %r = gpu.all_reduce {kind} %v uniform {{}} : (i32) -> (i32)
        memref.store %r, %Y[%t] : memref<64xi32>
        gpu.terminator"""),
        INTS,
    )
    assert set(outcome.arguments[0]) == {expected}


def test_what_threads_of_a_warp_have_together() -> None:
    outcome = run_clean(
        launch("""
        %v = arith.index_cast %t : index to i32
        %r = gpu.subgroup_reduce add %v cluster(size = 8) : (i32) -> (i32)
        memref.store %r, %Y[%t] : memref<64xi32>
        gpu.terminator"""),
        INTS,
    )
    assert list(outcome.arguments[0]) == [sum(range(t // 8 * 8, t // 8 * 8 + 8)) for t in range(64)]


def test_extrema_of_words_without_a_sign() -> None:
    outcome = run_clean(
        launch(
            """
        %v = memref.load %Y[%t] : memref<64xi64>
        %low = gpu.subgroup_reduce minui %v : (i64) -> (i64)
        %high = gpu.all_reduce maxui %v uniform {} : (i64) -> (i64)
        %r = arith.subi %high, %low : i64
        memref.store %r, %Y[%t] : memref<64xi64>
        gpu.terminator""",
            arguments="%Y: memref<64xi64>",
        ),
        np.arange(-60, 4, dtype=np.int64),
    )
    np.testing.assert_array_equal(outcome.arguments[0], np.repeat([59, -1], 32))  # -1 - -60, and -1 - 0


def test_parallel_loops_with_reductions() -> None:
    (total, least) = run_clean("""
    func.func @main() -> (i32, i32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %z = arith.constant 0 : i32
      %m = arith.constant 100 : i32
      %r:2 = scf.parallel (%i) = (%c0) to (%c5) step (%c1) init (%z, %m) -> (i32, i32) {
        %v = arith.index_cast %i : index to i32
        scf.reduce(%v, %v : i32, i32) {
        ^bb0(%l: i32, %r: i32):
          %s = arith.addi %l, %r : i32
          scf.reduce.return %s : i32
        }, {
        ^bb0(%l: i32, %r: i32):
          %s = arith.minsi %l, %r : i32
          scf.reduce.return %s : i32
        }
      }
      return %r#0, %r#1 : i32, i32
    }""").results
    assert (total, least) == (10, 0)


def test_affine_loops_and_conditions() -> None:
    (y,) = run_clean(
        """
    func.func @main(%Y: memref<8xi32>) {
      affine.for %i = 0 to 8 step 2 {
        %v = arith.index_cast %i : index to i32
        affine.if affine_set<(d0) : (d0 - 4 >= 0)>(%i) {
          affine.store %v, %Y[%i + 1] : memref<8xi32>
        } else {
          affine.store %v, %Y[%i] : memref<8xi32>
        }
      }
      return
    }""",
        np.full(8, -1, np.int32),
    ).arguments
    assert list(y) == [0, -1, 2, -1, -1, 4, -1, 6]


@pytest.mark.parametrize(
    "kind, old, new, left",
    [
        ("addi", 5, -7, -2),
        ("assign", 5, -7, -7),
        ("maxs", 5, -7, 5),
        ("maxu", 5, -7, -7),
        ("mins", 5, -7, -7),
        ("minu", 5, -7, 5),
        ("muli", 5, -7, -35),
        ("ori", 5, -8, -3),
        ("andi", 5, -2, 4),
        ("xori", 5, -1, -6),
        ("addf", 5, -7, -2),
        ("mulf", 5, -7, -35),
        ("maximumf", 5, -7, 5),
        ("minimumf", 5, -7, -7),
        ("maxnumf", 5, -7, 5),
        ("minnumf", 5, -7, -7),
    ],
)
def test_every_atomic_update(kind: str, old: int, new: int, left: int) -> None:
    """The numbers that stand for kinds differ between versions of MLIR."""
    type_, value = ("f32", f"{new}.0") if kind.endswith("f") else ("i32", str(new))
    outcome = run_clean(
        f"""
    func.func @main(%A: memref<1x{type_}>) {{
      %c0 = arith.constant 0 : index
      %v = arith.constant {value} : {type_}
      %r = memref.atomic_rmw {kind} %v, %A[%c0] : ({type_}, memref<1x{type_}>) -> {type_}
      return
    }}""",
        np.full(1, old, np.float32 if type_ == "f32" else np.int32),
    )
    assert outcome.arguments[0][0] == left


def test_what_libraries_of_other_targets_bring() -> None:
    """Those for Vulkan, for SPIR-V on CPUs and for ROCm, as LLVM's tests call them."""
    outcome = run_clean(
        """
    func.func private @fillResource1DInt(memref<?xi32>, i32)
    func.func private @fillF32Buffer2D(memref<?x?xf32>, f32)
    func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>
    func.func @main(%X: memref<2x3xf32>, %Y: memref<64xi32>) {
      %c1 = arith.constant 1 : index
      %one = arith.constant 1 : i32
      %half = arith.constant 0.5 : f32
      %x = memref.cast %X : memref<2x3xf32> to memref<?x?xf32>
      %y = memref.cast %Y : memref<64xi32> to memref<?xi32>
      call @fillF32Buffer2D(%x, %half) : (memref<?x?xf32>, f32) -> ()
      call @fillResource1DInt(%y, %one) : (memref<?xi32>, i32) -> ()
      %u = memref.cast %y : memref<?xi32> to memref<*xi32>
      gpu.host_register %u : memref<*xi32>
      %z = call @mgpuMemGetDeviceMemRef1dInt32(%y) : (memref<?xi32>) -> memref<?xi32>
      gpu.launch blocks(%b, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
          threads(%t, %t1, %t2) in (%n0 = %c1, %n1 = %c1, %n2 = %c1) {
        %v = memref.load %z[%c1] : memref<?xi32>
        %w = arith.addi %v, %v : i32
        memref.store %w, %z[%c1] : memref<?xi32>
        gpu.terminator
      }
      return
    }""",
        np.zeros((2, 3), np.float32),
        INTS,
    )
    assert (outcome.arguments[0] == 0.5).all()
    assert outcome.arguments[1].tolist() == [1, 2] + 62 * [1]
