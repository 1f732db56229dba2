"""The emulator on IR that no pipeline here makes: forms of launches, kernels and calls."""

import numpy as np
import pytest

from foreign_kernels import INTS, launch, launch_func, run, run_clean
from stepladder.runtime.errors import StepladderError


def test_a_launch_of_several_blocks_of_instructions() -> None:
    outcome = run_clean(
        launch("""
        %big = arith.cmpi ult, %t, %c1 : index
        cf.cond_br %big, ^first, ^rest
      ^first:
        %seven = arith.constant 7 : i32
        cf.br ^end(%seven : i32)
      ^rest:
        %v = arith.index_cast %t : index to i32
        cf.br ^end(%v : i32)
      ^end(%w: i32):
        memref.store %w, %Y[%t] : memref<64xi32>
        gpu.terminator"""),
        INTS,
    )
    assert list(outcome.arguments[0]) == [7, *range(1, 64)]


def test_an_asynchronous_launch_with_memory_of_its_own() -> None:
    outcome = run_clean(
        """
    func.func @main(%Y: memref<64xi32>) {
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %c64 = arith.constant 64 : index
      %t0 = gpu.wait async
      %D, %t1 = gpu.alloc async [%t0] () : memref<64xi32>
      %t2 = gpu.memcpy async [%t1] %D, %Y : memref<64xi32>, memref<64xi32>
      %t3 = gpu.launch async [%t2] blocks(%b, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
          threads(%t, %n1, %n2) in (%m0 = %c64, %m1 = %c1, %m2 = %c1)
          workgroup(%s : memref<64xi32, #gpu.address_space<workgroup>>)
          private(%p : memref<1xi32, #gpu.address_space<private>>) {
        %i = arith.constant 0 : index
        %v = arith.index_cast %t : index to i32
        memref.store %v, %p[%i] : memref<1xi32, #gpu.address_space<private>>
        memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        %r = arith.subi %c63, %t : index
        %a = memref.load %s[%r] : memref<64xi32, #gpu.address_space<workgroup>>
        %o = memref.load %p[%i] : memref<1xi32, #gpu.address_space<private>>
        %d = arith.subi %a, %o : i32
        memref.store %d, %D[%t] : memref<64xi32>
        gpu.terminator
      }
      %t4 = gpu.memcpy async [%t3] %Y, %D : memref<64xi32>, memref<64xi32>
      %t5 = gpu.dealloc async [%t4] %D : memref<64xi32>
      gpu.wait [%t5]
      return
    }""",
        INTS,
    )
    assert list(outcome.arguments[0]) == [63 - 2 * t for t in range(64)]


FUNCTION = """
    func.func @twice(%i: i32, %t: index) -> i32 {
      %c32 = arith.constant 32 : index
      %early = arith.cmpi ult, %t, %c32 : index
      cf.cond_br %early, ^one, ^two
    ^one:
      %a = arith.addi %i, %i : i32
      return %a : i32
    ^two:
      %b = arith.constant -1 : i32
      return %b : i32
    }
    gpu.func @k(%Y: memref<64xi32>) kernel {
      %t = gpu.thread_id x
      %v = arith.index_cast %t : index to i32
      %w = func.call @twice(%v, %t) : (i32, index) -> i32
      %x = func.call @twice(%w, %t) : (i32, index) -> i32
      // All threads have come together again.
      gpu.barrier
      memref.store %x, %Y[%t] : memref<64xi32>
      gpu.return
    }"""


def test_a_kernel_calls_a_function() -> None:
    outcome = run_clean(launch_func(FUNCTION), INTS)
    assert list(outcome.arguments[0]) == [4 * t if t < 32 else -1 for t in range(64)]


def test_a_function_without_a_body_is_an_error_that_names_it() -> None:
    with pytest.raises(StepladderError, match="no function @secret with a body") as caught:
        run("""
        func.func private @secret(f32)
        func.func @main() {
          %v = arith.constant 1.0 : f32
          call @secret(%v) : (f32) -> ()
          return
        }""")
    assert caught.value.location.startswith("kernel.mlir:")


def test_four_bit_integers() -> None:
    (y,) = run_clean(
        launch(
            """
        %i = arith.index_cast %t : index to i4
        memref.store %i, %S[%t] : memref<64xi4>
        %v = memref.load %S[%t] : memref<64xi4>
        %two = arith.constant 2 : i4
        %p = arith.muli %v, %two : i4
        %w = arith.extsi %p : i4 to i32
        memref.store %w, %Y[%t] : memref<64xi32>
        gpu.terminator""",
            arguments="%S: memref<64xi4>, %Y: memref<64xi32>",
        ),
        np.zeros(64, np.int8),
        INTS,
    ).arguments[1:]
    assert list(y) == [((2 * t + 8) % 16) - 8 for t in range(64)]


def test_a_launch_that_no_gpu_takes_does_not_run() -> None:
    outcome = run(launch("gpu.terminator", threads=10**9), INTS)
    (finding,) = outcome.findings
    assert finding.kind == "launch" and "a block of 1000000000 threads; at most 1024" in finding.message
    with pytest.raises(StepladderError, match=r"gpu\.launch cannot be executed: a block of 1000000000 x 1 x 1"):
        run(launch("gpu.terminator", threads=10**9), INTS, sanitize=False)


def test_a_launch_takes_the_cluster_of_its_kernel() -> None:
    kernel = """
        gpu.func @k(%Y: memref<64xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
          %b = gpu.block_id x
          %c = gpu.cluster_id x
          %v = arith.index_cast %c : index to i32
          memref.store %v, %Y[%b] : memref<64xi32>
          gpu.return
        }"""
    text = launch_func(kernel, threads=1, blocks=4, targets='[#nvvm.target<chip = "sm_90">]')
    assert list(run_clean(text, INTS).arguments[0][:4]) == [0, 0, 1, 1]
    (finding,) = run(text.replace("sm_90", "sm_80"), INTS).findings
    assert "a cluster of 2 blocks; at most 1 on sm_80" in finding.message


@pytest.mark.parametrize(
    "body, says",
    [
        ("call @main(%Y) : (memref<64xi32>) -> ()", "calls are nested more than 100 deep, at @main"),
        ("%n = arith.constant 1000000000000 : index\n%m = memref.alloc(%n) : memref<?xf32>", "needs 3.6 TiB of memory"),
    ],
)
def test_what_ends_a_program_of_the_host(body: str, says: str) -> None:
    with pytest.raises(StepladderError, match=says) as caught:
        run(f"func.func @main(%Y: memref<64xi32>) {{\n{body}\nreturn\n}}", INTS)
    assert caught.value.location.startswith("kernel.mlir:")


def test_a_size_below_zero() -> None:
    (finding,) = run(
        """
    func.func @main() {
      %n = arith.constant -5 : index
      %m = memref.alloc(%n) : memref<?xf32>
      return
    }"""
    ).findings
    assert finding.kind == "out-of-bounds" and "asks for a dimension of -5 elements" in finding.message
