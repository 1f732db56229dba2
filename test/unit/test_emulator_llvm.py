"""The emulator on the llvm dialect: control flow between blocks, addresses, and what only lowered IR has."""

import numpy as np
import pytest

from stepladder.emulator.core import control_flow
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.memory.llvm_layouts import layout
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError

THREADS = 64


def kernel(body: str, *, element: str = "f32", globals_: str = "", threads: int = THREADS, size: int = THREADS) -> str:
    """Returns a function of two buffers X and Y with one launch; %t is the thread, as i32, and %l as i64."""
    buffer = f"memref<{size}x{element}>"
    return f"""
module attributes {{gpu.container_module}} {{
  func.func @f(%X: {buffer}, %Y: {buffer}) {{
    %c1 = arith.constant 1 : index
    %threads = arith.constant {threads} : index
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%threads, %c1, %c1)
        args(%X : {buffer}, %Y : {buffer})
    return
  }}
  gpu.module @k {{
    {globals_}
    llvm.func @k(%X: !llvm.ptr, %Y: !llvm.ptr) attributes {{gpu.kernel, nvvm.kernel}} {{
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c1 = llvm.mlir.constant(1 : i32) : i32
      %c2 = llvm.mlir.constant(2 : i32) : i32
      %c32 = llvm.mlir.constant(32 : i32) : i32
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %l = llvm.sext %t : i32 to i64
      %x = llvm.getelementptr %X[%l] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
      %y = llvm.getelementptr %Y[%l] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
      {body}
    }}
  }}
}}"""


def run(text: str, x: np.ndarray, **options):
    """Returns Y after a run, and the run's outcome."""
    with mlir_context():
        emulation = Emulation(parse_payload(text, "kernel.mlir"))
        outcome = emulation.run([x, np.full(x.shape, -1, x.dtype)], **options)
    return outcome.arguments[1], outcome


def run_clean(body: str, x: np.ndarray | None = None, **options) -> np.ndarray:
    """Returns Y of integers after a run without findings."""
    x = np.arange(THREADS, dtype=np.int32) if x is None else x
    y, outcome = run(kernel(body, element="i32", **options), x)
    assert not outcome.findings, outcome.findings[0].render()
    return y


def kinds(outcome) -> set[str]:
    return {finding.kind for finding in outcome.findings}


# Blocks.


def test_post_dominators():
    #   0 -> 1 -> 3 -> (1 again, or 4); 0 -> 2 -> 4; 4 -> 5 or 6, which end
    graph = control_flow._Graph([[1, 2], [3], [4], [1, 4], [5, 6], [], []])
    assert graph.after == [4, 3, 4, 4, None, None, None]
    order = graph.order()
    assert order[0] == 0 and order.index(1) < order.index(3) and max(map(order.index, (2, 3))) < order.index(4)
    assert graph.between(3, 4) == {3, 1}


def test_a_way_that_never_ends_counts_for_nothing():
    assert control_flow._Graph([[1, 2], [1], []]).after == [2, None, None]


def test_threads_leave_a_loop_one_after_the_other():
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


def test_loops_in_loops_with_a_branch_out_of_both():
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
def test_switch(dialect):
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


def test_blocks_that_stand_in_another_order_than_they_run():
    y = run_clean("""
      llvm.br ^first
    ^last:
      llvm.store %a, %y : i32, !llvm.ptr
      llvm.return
    ^first:
      %a = llvm.add %t, %c2 : i32
      llvm.br ^last""")
    assert list(y) == [t + 2 for t in range(THREADS)]


def test_threads_that_end_early():
    y = run_clean("""
      %small = llvm.icmp "slt" %t, %c32 : i32
      llvm.cond_br %small, ^end, ^on
    ^end:
      llvm.return
    ^on:
      llvm.store %t, %y : i32, !llvm.ptr
      llvm.return""")
    assert list(y) == [-1] * 32 + list(range(32, THREADS))


def test_a_barrier_that_part_of_a_warp_comes_to():
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
def test_a_warp_waits_for_another_that_went_another_way(wait):
    y = run_clean(EXCHANGE.format(wait=wait), globals_=SHARED)
    assert list(y[:32]) == list(range(32, 64))


def test_without_waiting_it_is_a_race():
    _, outcome = run(kernel(EXCHANGE.format(wait=""), element="i32", globals_=SHARED), np.zeros(THREADS, np.int32))
    assert kinds(outcome) & {"race", "uninitialized"}


def test_blocks_of_a_function_of_the_gpu_dialect():
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


def test_an_unknown_op_is_an_error_that_names_it():
    with pytest.raises(StepladderError, match="llvm.intr.stacksave") as caught:
        run_clean("%p = llvm.intr.stacksave : !llvm.ptr\n llvm.return")
    assert caught.value.location.startswith("kernel.mlir:")


def test_all_unknown_ops_are_named_at_once():
    with pytest.raises(StepladderError) as caught:
        run_clean("""%p = llvm.intr.stacksave : !llvm.ptr
            llvm.intr.stackrestore %p : !llvm.ptr
            llvm.intr.stackrestore %p : !llvm.ptr
            llvm.return""")
    assert "llvm.intr.stacksave" in caught.value.message
    (note,) = caught.value.notes
    assert "llvm.intr.stackrestore" in note and "1 more place" in note


# Addresses.


def test_layouts():
    assert layout("!llvm.struct<(i8, i64, array<3 x i16>)>").offsets == (0, 8, 16)
    assert layout("!llvm.struct<(i8, i64, array<3 x i16>)>").bytes == 24
    assert layout("!llvm.struct<packed (i8, i64)>").bytes == 9
    assert layout("vector<3xf32>").alignment == 16
    assert layout("!llvm.array<2 x struct<(ptr<3>, f16)>>").bytes == 32
    assert layout("i1").bytes == 1 and layout("i33").bytes == 8


def test_addresses_of_parts():
    y = run_clean("""
      %p = llvm.getelementptr %Y[%l, 1, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i8, array<3 x i32>)>
      %q = llvm.getelementptr inbounds %p[-3] : (!llvm.ptr) -> !llvm.ptr, i32
      %four = llvm.mlir.constant(4 : i32) : i32
      %little = llvm.icmp "slt" %t, %four : i32
      llvm.cond_br %little, ^write, ^end
    ^write:
      llvm.store %t, %q : i32, !llvm.ptr
      llvm.br ^end
    ^end:
      llvm.return""")
    assert list(np.flatnonzero(y >= 0)) == [0, 4, 8, 12] and list(y[:13:4]) == [0, 1, 2, 3]


def test_threads_whose_pointers_are_of_different_memory():
    y = run_clean("""
      %bit = llvm.and %t, %c1 : i32
      %odd = llvm.icmp "eq" %bit, %c1 : i32
      %c5 = llvm.mlir.constant(5 : i32) : i32
      llvm.store %c5, %y : i32, !llvm.ptr
      %p = llvm.select %odd, %x, %y : i1, !llvm.ptr
      %v = llvm.load %p : !llvm.ptr -> i32
      %number = llvm.ptrtoint %p : !llvm.ptr to i64
      %again = llvm.inttoptr %number : i64 to !llvm.ptr
      %w = llvm.load %again : !llvm.ptr -> i32
      %sum = llvm.add %v, %w : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""")
    assert list(y) == [2 * t if t % 2 else 10 for t in range(THREADS)]


@pytest.mark.parametrize(
    "shift, who",
    [
        (1, "thread 63 of block (0, 0, 0) touches element [64] of 64xi32"),
        (-1, "thread 0 of block (0, 0, 0) touches element [-1] of 64xi32"),
        (99999, "thread 0 of block (0, 0, 0) touches element [99999] of 64xi32"),
    ],
)
def test_what_is_outside_of_a_buffer_is_found_and_left_out(shift, who):
    _, outcome = run(
        kernel(
            f"""
      %p = llvm.getelementptr %y[{shift}] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.store %t, %p : i32, !llvm.ptr
      llvm.return""",
            element="i32",
        ),
        np.zeros(THREADS, np.int32),
    )
    (finding,) = outcome.findings
    assert finding.kind == "out-of-bounds" and who in finding.message and finding.op == "llvm.store"


def test_what_is_outside_of_shared_memory_is_found():
    _, outcome = run(
        kernel(
            """
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %g = llvm.addrspacecast %p : !llvm.ptr<3> to !llvm.ptr
      llvm.store %t, %g : i32, !llvm.ptr
      llvm.return""",
            element="i32",
            globals_="""
    llvm.mlir.global private @s() {addr_space = 3 : i32} : !llvm.array<32 x i32>""",
        ),
        np.zeros(THREADS, np.int32),
    )
    assert kinds(outcome) == {"out-of-bounds"}


@pytest.mark.parametrize(
    "attribute, found", [("", True), ("{alignment = 8 : i64}", True), ("{alignment = 4 : i64}", False)]
)
def test_alignment(attribute, found):
    """A vector's own alignment counts where nothing else is said."""
    _, outcome = run(
        kernel(f"""
      %p = llvm.getelementptr %X[1] : (!llvm.ptr) -> !llvm.ptr, f32
      %v = llvm.load %p {attribute} : !llvm.ptr -> vector<2xf32>
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    assert kinds(outcome) == ({"misaligned"} if found else set())


def test_globals():
    y = run_clean(
        """
      %g = llvm.mlir.addressof @table : !llvm.ptr
      %i = llvm.and %t, %c1 : i32
      %p = llvm.getelementptr %g[0, %i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<2 x i32>
      %v = llvm.load %p : !llvm.ptr -> i32
      llvm.store %v, %y : i32, !llvm.ptr
      llvm.return""",
        globals_="llvm.mlir.global private constant @table(dense<[7, 9]> : tensor<2xi32>) : !llvm.array<2 x i32>",
    )
    assert list(y[:4]) == [7, 9, 7, 9]


# Values.


def test_vectors_structs_and_arrays():
    y = run_clean("""
      %v = llvm.mlir.poison : vector<2xi32>
      %v1 = llvm.insertelement %t, %v[%c0 : i32] : vector<2xi32>
      %v2 = llvm.insertelement %c2, %v1[%c1 : i32] : vector<2xi32>
      %zero = llvm.mlir.constant(dense<0> : vector<2x2xi32>) : !llvm.array<2 x vector<2xi32>>
      %a = llvm.insertvalue %v2, %zero[1] : !llvm.array<2 x vector<2xi32>>
      %small = llvm.icmp "slt" %t, %c2 : i32
      llvm.cond_br %small, ^end(%zero : !llvm.array<2 x vector<2xi32>>), ^end(%a : !llvm.array<2 x vector<2xi32>>)
    ^end(%either: !llvm.array<2 x vector<2xi32>>):
      %w = llvm.extractvalue %either[1] : !llvm.array<2 x vector<2xi32>>
      %s = llvm.mlir.undef : !llvm.struct<(i32, struct<(vector<2xi32>, f32)>)>
      %s1 = llvm.insertvalue %w, %s[1, 0] : !llvm.struct<(i32, struct<(vector<2xi32>, f32)>)>
      %u = llvm.extractvalue %s1[1, 0] : !llvm.struct<(i32, struct<(vector<2xi32>, f32)>)>
      %r = llvm.shufflevector %u, %w [1, 2] : vector<2xi32>
      %e0 = llvm.extractelement %r[%c0 : i32] : vector<2xi32>
      %bit = llvm.and %t, %c1 : i32
      %e1 = llvm.extractelement %r[%bit : i32] : vector<2xi32>
      %sum = llvm.add %e0, %e1 : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""")
    assert list(y) == [0 if t < 2 else 2 + (t if t % 2 else 2) for t in range(THREADS)]


def test_elements_that_a_vector_does_not_have():
    _, outcome = run(
        kernel("""
      %v = llvm.mlir.zero : vector<2xf32>
      %e = llvm.extractelement %v[%c2 : i32] : vector<2xf32>
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    (finding,) = outcome.findings
    assert finding.kind == "out-of-bounds" and "element 2 of a vector of 2" in finding.message


@pytest.mark.parametrize("range_, found", [("range <i32, 0, 64>", False), ("range <i32, 0, 63>", True)])
def test_a_range_that_llvm_is_told(range_, found):
    _, outcome = run(
        kernel(f"%u = nvvm.read.ptx.sreg.tid.x {range_} : i32\n llvm.return"), np.zeros(THREADS, np.float32)
    )
    assert kinds(outcome) == ({"out-of-bounds"} if found else set())


def test_a_shuffle_among_others():
    _, outcome = run(
        kernel("""
      %members = llvm.mlir.constant(-2 : i32) : i32
      %limits = llvm.mlir.constant(31 : i32) : i32
      %v = nvvm.shfl.sync idx %members, %t, %c1, %limits : i32 -> i32
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    (finding,) = outcome.findings
    assert finding.kind == "divergent-barrier" and "thread 0 " in finding.message


def test_integers_without_a_sign_as_addresses_and_widths():
    y = run_clean("""
      %m = llvm.mlir.constant(-1 : i32) : i32
      %wide = llvm.zext %m : i32 to i64
      %c16 = llvm.mlir.constant(16 : i64) : i64
      %high = llvm.lshr %wide, %c16 : i64
      %low = llvm.trunc %high : i64 to i32
      %least = llvm.intr.umin(%m, %low) : (i32, i32) -> i32
      %below = llvm.intr.smin(%m, %low) : (i32, i32) -> i32
      %sum = llvm.add %least, %below : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""")
    assert set(y) == {0xFFFF - 1}


# Matrices of a warp.


def wmma(*, a: str = "row", b: str = "row", says: str | None = None, pad: int = 0) -> str:
    """Returns a kernel of one warp: Y = XX, 16 x 16, the operands read by rows or columns."""
    half, four = ", ".join(["vector<2xf16>"] * 8), ", ".join(["vector<2xf16>"] * 4)
    struct, sums = f"!llvm.struct<({half})>", f"!llvm.struct<({four})>"
    fields = "\n".join(
        [f"%{name}_{i} = llvm.extractvalue %{name}[{i}] : {struct}" for name in "ab" for i in range(8)]
        + [f"%c_{i} = llvm.extractvalue %c[{i}] : {sums}" for i in range(4)]
        + [f"%d_{i} = llvm.extractvalue %d[{i}] : {sums}" for i in range(4)]
    )
    taken = ", ".join(f"%{name}_{i}" for name, count in (("a", 8), ("b", 8), ("c", 4)) for i in range(count))
    shape = "k = 16 : i32, m = 16 : i32, n = 16 : i32"

    def load(name: str, pointer: str, layout_: str, type_: str) -> str:
        return (
            f"%{name} = nvvm.wmma.load {pointer}, %c16 {{eltype = #nvvm.mma_type<f16>, "
            f"frag = #nvvm.mma_frag<{name}>, {shape}, layout = #nvvm.mma_layout<{layout_}>}} : "
            f"(!llvm.ptr) -> {type_}"
        )

    before, after = fields.split("%d_0", 1)
    return f"""
      %c16 = llvm.mlir.constant(16 : i32) : i32
      %p = llvm.getelementptr %X[{pad}] : (!llvm.ptr) -> !llvm.ptr, f16
      {load("a", "%p", a, struct)}
      {load("b", "%X", b, struct)}
      {load("c", "%Y", "row", sums)}
      {before}
      %d = nvvm.wmma.mma {taken} {{eltypeA = #nvvm.mma_type<f16>, eltypeB = #nvvm.mma_type<f16>, {shape},
          layoutA = #nvvm.mma_layout<{says or a}>, layoutB = #nvvm.mma_layout<{b}>}} :
          ({half}, {half}, {four}) -> {sums}
      %d_0{after}
      nvvm.wmma.store %Y, %c16, %d_0, %d_1, %d_2, %d_3 {{eltype = #nvvm.mma_type<f16>, {shape},
          layout = #nvvm.mma_layout<row>}} : !llvm.ptr, {four}
      llvm.return"""


def multiply(**options):
    x = np.random.default_rng(0).integers(-4, 5, 256).astype(np.float16)
    y, outcome = run(kernel(wmma(**options), element="f16", threads=32, size=256), x)
    return x.reshape(16, 16), y.reshape(16, 16) + 1, outcome  # Y began with -1


@pytest.mark.parametrize("a", ["row", "col"])
@pytest.mark.parametrize("b", ["row", "col"])
def test_products_of_a_warp(a, b):
    x, y, outcome = multiply(a=a, b=b)
    assert not outcome.findings
    assert outcome.counters.instructions == {"nvvm.wmma.mma": 1}
    np.testing.assert_array_equal(y, (x if a == "row" else x.T) @ (x if b == "row" else x.T))


def test_a_product_must_say_how_its_operands_were_loaded():
    x, y, _ = multiply(a="col", says="row")
    assert not np.array_equal(y, x.T @ x)


def test_a_matrix_that_is_not_aligned():
    _, _, outcome = multiply(pad=8)
    assert kinds(outcome) == {"misaligned", "out-of-bounds"}


# PTX in text.


def wgmma(between: str, *, constraints: str = "=f,=f,=f,=f,0,1,2,3,l,l,n,n,n,n,n") -> str:
    """Returns a kernel of one warpgroup that multiplies what shared memory holds; `between` stands behind it."""
    struct = "!llvm.struct<(f32, f32, f32, f32)>"
    return kernel(
        f"""
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<8xf16>
      %ones = llvm.mlir.constant(dense<1.0> : vector<8xf16>) : vector<8xf16>
      llvm.store %ones, %p : vector<8xf16>, !llvm.ptr<3>
      nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
      nvvm.barrier
      %descriptor = llvm.mlir.constant({(128 >> 4) << 16 | (256 >> 4) << 32} : i64) : i64
      %zero = llvm.mlir.zero : {struct}
      %z0 = llvm.extractvalue %zero[0] : {struct}
      %z1 = llvm.extractvalue %zero[1] : {struct}
      %z2 = llvm.extractvalue %zero[2] : {struct}
      %z3 = llvm.extractvalue %zero[3] : {struct}
      nvvm.wgmma.fence.aligned
      %sums = llvm.inline_asm has_side_effects asm_dialect = att "{{\\0A.reg .pred p;\\0Asetp.ne.b32 p, $10, 0;\\0A\
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{$0, $1, $2, $3}}, $8, $9, p, $11,  $12, $13,  $14;\\0A}}\\0A",
          "{constraints}" %z0, %z1, %z2, %z3, %descriptor, %descriptor, %c1, %c1, %c1, %c0, %c0 :
          (f32, f32, f32, f32, i64, i64, i32, i32, i32, i32, i32) -> {struct}
      nvvm.wgmma.commit.group.sync.aligned
      {between}
      %r = llvm.extractvalue %sums[3] : {struct}
      llvm.store %r, %y : f32, !llvm.ptr
      nvvm.wgmma.wait.group.sync.aligned 0
      llvm.return""",
        threads=128,
        size=128,
        globals_="""
    llvm.mlir.global private @s() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<1024 x f16>""",
    )


def test_a_product_in_text():
    y, outcome = run(wgmma("nvvm.wgmma.wait.group.sync.aligned 0"), np.zeros(128, np.float32))
    assert not outcome.findings, outcome.findings[0].render()
    assert set(y) == {16}


def test_sums_in_text_that_nothing_waited_for():
    y, outcome = run(wgmma(""), np.zeros(128, np.float32))
    assert kinds(outcome) == {"in-flight"}
    assert outcome.findings[0].other == "llvm.inline_asm wgmma.mma_async"
    assert np.isnan(y).all()


def test_text_that_is_not_known_is_an_error_that_says_it():
    with pytest.raises(StepladderError, match="the PTX of llvm.inline_asm: {\\s*.reg .pred p"):
        run(wgmma("", constraints="=f,=f,=f,=f,1,0,2,3,l,l,n,n,n,n,n"), np.zeros(128, np.float32))
    with pytest.raises(StepladderError, match="the PTX of llvm.inline_asm: nanosleep"):
        run_clean('llvm.inline_asm "nanosleep.u32 $0;", "r" %t : (i32) -> ()\n llvm.return')


# What pipelines end with.


@pytest.mark.parametrize(
    "pipeline, knobs",
    [
        ("wmma", {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}),
        ("mma_sync", {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}),
        ("wgmma", {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}),
    ],
)
def test_lowered_ir_costs_what_it_did_before(pipeline, knobs):
    """The same bytes, sectors and wavefronts, and as many products: the conversions move no data of their own."""
    steps = {}
    with mlir_context():
        run_pipeline(
            matmul_text(64, 64, 96),
            "payload.mlir",
            Request(pipeline, knobs),
            progress=lambda step: steps.setdefault(step.name, step.text),
        )
    names = list(steps)
    counted = []
    for name in names[names.index("lower_to_nvvm") - 1 :]:
        with mlir_context():
            emulation = Emulation(parse_payload(steps[name], name))
            counters = emulation.run(emulation.random_inputs(0)).counters.as_dict()
        counted.append(
            (
                counters["global"],
                counters["shared"],
                counters["multiply_adds"],
                sum(counters["instructions"].values()),
                sum(counters["barriers"].values()),
            )
        )
    assert len(counted) == (3 if pipeline == "wgmma" else 2)
    assert all(numbers == counted[0] for numbers in counted)
