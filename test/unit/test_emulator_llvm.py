"""Blocks, branches and barriers of the LLVM dialect in the emulator."""

import numpy as np
import pytest

from llvm_kernels import THREADS, kernel, kinds, run, run_clean
from stepladder.emulator.core import control_flow
from stepladder.runtime.errors import StepladderError

# Blocks.


def test_post_dominators() -> None:
    #   0 -> 1 -> 3 -> (1 again, or 4); 0 -> 2 -> 4; 4 -> 5 or 6, which end
    graph = control_flow.Graph([[1, 2], [3], [4], [1, 4], [5, 6], [], []])
    assert graph.after == [4, 3, 4, 4, None, None, None]
    order = graph.order()
    assert order[0] == 0 and order.index(1) < order.index(3) and max(map(order.index, (2, 3))) < order.index(4)
    assert graph.between(3, 4) == {3, 1}


def test_a_way_that_never_ends_counts_for_nothing() -> None:
    assert control_flow.Graph([[1, 2], [1], []]).after == [2, None, None]


def test_threads_leave_a_loop_one_after_the_other() -> None:
    """Collatz's numbers: how many steps it takes until 1; what the loop computes is used behind it, by no argument."""
    y = run_clean("""
      %one = llvm.add %t, %c1 : i32
      %three = llvm.mlir.constant(3 : i32) : i32
      llvm.br ^head(%one, %c0 : i32, i32)
    ^head(%n: i32, %steps: i32):
      %twice = llvm.mul %steps, %c2 : i32
      %more = llvm.icmp "ne" %n, %c1 : i32
      llvm.cond_br %more, ^body, ^end
    ^body:
      %bit = llvm.and %n, %c1 : i32
      %odd = llvm.icmp "eq" %bit, %c1 : i32
      %next = llvm.add %steps, %c1 : i32
      llvm.cond_br %odd, ^up, ^down
    ^up:
      %m = llvm.mul %n, %three : i32
      %m1 = llvm.add %m, %c1 : i32
      llvm.br ^head(%m1, %next : i32, i32)
    ^down:
      %half = llvm.lshr %n, %c1 : i32
      llvm.br ^head(%half, %next : i32, i32)
    ^end:
      llvm.store %twice, %y : i32, !llvm.ptr
      nvvm.barrier
      llvm.return""")

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
        return count

    assert list(y) == [2 * steps(n + 1) for n in range(THREADS)]


def test_loops_in_loops_with_a_branch_out_of_both() -> None:
    """Thread t looks for the first pair with i * j = t, i and j from 2 to 9; another block, another way out."""
    y = run_clean("""
      %ten = llvm.mlir.constant(10 : i32) : i32
      %none = llvm.mlir.constant(-1 : i32) : i32
      llvm.br ^outer(%c2 : i32)
    ^outer(%i: i32):
      %in = llvm.icmp "slt" %i, %ten : i32
      llvm.cond_br %in, ^inner(%c2 : i32), ^end(%none : i32)
    ^inner(%j: i32):
      %product = llvm.mul %i, %j : i32
      %hit = llvm.icmp "eq" %product, %t : i32
      llvm.cond_br %hit, ^end(%i : i32), ^on
    ^on:
      %j1 = llvm.add %j, %c1 : i32
      %go = llvm.icmp "slt" %j1, %ten : i32
      llvm.cond_br %go, ^inner(%j1 : i32), ^next
    ^next:
      %i1 = llvm.add %i, %c1 : i32
      llvm.br ^outer(%i1 : i32)
    ^end(%found: i32):
      llvm.store %found, %y : i32, !llvm.ptr
      nvvm.barrier
      llvm.return""")
    wanted = [next((i for i in range(2, 10) for j in range(2, 10) if i * j == t), -1) for t in range(THREADS)]
    assert list(y) == wanted


@pytest.mark.parametrize("dialect", ["llvm", "cf"])
def test_switch(dialect: str) -> None:
    cases = {
        "llvm": """llvm.switch %t : i32, ^end(%t : i32) [5: ^end(%c2 : i32), 6: ^other(%t, %c1 : i32, i32)]""",
        "cf": """cf.switch %t : i32, [default: ^end(%t : i32), 5: ^end(%c2 : i32),
                                           6: ^other(%t, %c1 : i32, i32)]""",
    }
    y = run_clean(f"""
      {cases[dialect]}
    ^other(%a: i32, %b: i32):
      %sum = llvm.add %a, %b : i32
      llvm.br ^end(%sum : i32)
    ^end(%v: i32):
      llvm.store %v, %y : i32, !llvm.ptr
      nvvm.barrier
      llvm.return""")
    assert list(y) == [{5: 2, 6: 7}.get(t, t) for t in range(THREADS)]


def test_blocks_that_stand_in_another_order_than_they_run() -> None:
    y = run_clean("""
      llvm.br ^first
    ^last:
      llvm.store %a, %y : i32, !llvm.ptr
      llvm.return
    ^first:
      %a = llvm.add %t, %c2 : i32
      llvm.br ^last""")
    assert list(y) == [t + 2 for t in range(THREADS)]


def test_threads_that_end_early() -> None:
    y = run_clean("""
      %small = llvm.icmp "slt" %t, %c32 : i32
      llvm.cond_br %small, ^end, ^on
    ^end:
      llvm.return
    ^on:
      llvm.store %t, %y : i32, !llvm.ptr
      llvm.return""")
    assert list(y) == [-1] * 32 + list(range(32, THREADS))


def test_a_barrier_that_part_of_a_warp_comes_to() -> None:
    _, outcome = run(
        kernel("""
      %first = llvm.icmp "eq" %t, %c0 : i32
      llvm.cond_br %first, ^one, ^end
    ^one:
      nvvm.barrier
      llvm.br ^end
    ^end:
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    assert "divergent-barrier" in kinds(outcome)


EXCHANGE = """
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %b = llvm.mlir.addressof @b : !llvm.ptr<3>
      %ticks = llvm.mlir.constant(1000 : i32) : i32
      %warp = llvm.udiv %t, %c32 : i32
      %producer = llvm.icmp "eq" %warp, %c1 : i32
      %first = llvm.icmp "eq" %t, %c0 : i32
      llvm.cond_br %first, ^init, ^start
    ^init:
      nvvm.mbarrier.init %b, %c32 : !llvm.ptr<3>, i32
      llvm.br ^start
    ^start:
      nvvm.barrier
      llvm.cond_br %producer, ^produce, ^consume
    ^consume:
      {wait}
      %r = llvm.getelementptr %s[0, %l] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, !llvm.array<32 x i32>
      %v = llvm.load %r : !llvm.ptr<3> -> i32
      llvm.store %v, %y : i32, !llvm.ptr
      llvm.br ^end
    ^produce:
      %w = llvm.sub %t, %c32 : i32
      %p = llvm.getelementptr %s[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %t, %p : i32, !llvm.ptr<3>
      %token = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
      llvm.br ^end
    ^end:
      llvm.return"""
SHARED = """
    llvm.mlir.global private @s() {addr_space = 3 : i32} : !llvm.array<32 x i32>
    llvm.mlir.global private @b() {addr_space = 3 : i32} : !llvm.array<1 x i64>"""
LOOP = (
    r'llvm.inline_asm has_side_effects asm_dialect = att "{ \0A .reg .pred P1; \0A LAB_WAIT: \0A '
    r"mbarrier.try_wait.parity.shared.b64 P1, [$0], $1, $2; \0A @P1 bra.uni DONE; \0A bra.uni LAB_WAIT; \0A DONE: "
    r'\0A }", "r,r,r" %b, %c0, %ticks : (!llvm.ptr<3>, i32, i32) -> ()'
)


@pytest.mark.parametrize("wait", ["nvvm.mbarrier.try_wait.parity %b, %c0, %ticks : !llvm.ptr<3>, i32, i32", LOOP])
def test_a_warp_waits_for_another_that_went_another_way(wait: str) -> None:
    y = run_clean(EXCHANGE.format(wait=wait), globals_=SHARED)
    assert list(y[:32]) == list(range(32, 64))


def test_without_waiting_it_is_a_race() -> None:
    _, outcome = run(kernel(EXCHANGE.format(wait=""), element="i32", globals_=SHARED), np.zeros(THREADS, np.int32))
    assert kinds(outcome) & {"race", "uninitialized"}


def test_blocks_of_a_function_of_the_gpu_dialect() -> None:
    text = """
module attributes {gpu.container_module} {
  func.func @f(%X: memref<64xi32>, %Y: memref<64xi32>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%X : memref<64xi32>, %Y : memref<64xi32>)
    return
  }
  gpu.module @k {
    gpu.func @k(%X: memref<64xi32>, %Y: memref<64xi32>) kernel {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : index
      %t = gpu.thread_id x
      cf.br ^head(%t, %c0 : index, i32)
    ^head(%i: index, %sum: i32):
      %c60 = arith.constant 60 : index
      %in = arith.cmpi slt, %i, %c60 : index
      cf.cond_br %in, ^body, ^end
    ^body:
      %v = memref.load %X[%i] : memref<64xi32>
      %more = arith.addi %sum, %v : i32
      %next = arith.addi %i, %c1 : index
      cf.br ^head(%next, %more : index, i32)
    ^end:
      memref.store %sum, %Y[%t] : memref<64xi32>
      gpu.barrier
      gpu.return
    }
  }
}"""
    x = np.arange(64, dtype=np.int32)
    y, outcome = run(text, x)
    assert not outcome.findings
    assert list(y) == [int(x[t:60].sum()) for t in range(64)]


def test_an_unknown_op_is_an_error_that_names_it() -> None:
    with pytest.raises(StepladderError, match=r"llvm.intr.vastart") as caught:
        run_clean("llvm.intr.vastart %x : !llvm.ptr\n llvm.return")
    assert caught.value.location.startswith("kernel.mlir:")


def test_all_unknown_ops_are_named_at_once() -> None:
    with pytest.raises(StepladderError) as caught:
        run_clean("""llvm.intr.vastart %x : !llvm.ptr
            llvm.intr.vaend %x : !llvm.ptr
            llvm.intr.vaend %x : !llvm.ptr
            llvm.return""")
    assert "llvm.intr.vastart" in caught.value.message
    (note,) = caught.value.notes
    assert "llvm.intr.vaend" in note and "1 more place" in note


@pytest.mark.parametrize("type_", ["f128", "f80", "i128", "vector<2xi128>"])
def test_numbers_that_are_too_wide(type_: str) -> None:
    with pytest.raises(StepladderError, match=rf"^the emulator does not support values of type {type_}$"):
        run_clean(f"%v = llvm.mlir.poison : {type_}\n llvm.return")
