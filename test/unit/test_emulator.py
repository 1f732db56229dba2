"""The emulator's threads and sanitizer, on kernels of a few lines."""

import numpy as np
import pytest

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

THREADS = 64
SHARED = f"memref<{THREADS}xf32, #gpu.address_space<workgroup>>"
GLOBAL = f"memref<{THREADS}xf32>"


def kernel(body: str, blocks: int = 1, cluster: int = 1) -> str:
    """Returns a function of two buffers X and Y with one launch; %t and %b are the thread and the block."""
    clusters = "clusters(%k0, %k1, %k2) in (%l0 = %cluster, %l1 = %c1, %l2 = %c1)" if cluster > 1 else ""
    return f"""
memref.global "private" @shared : {SHARED}
func.func @f(%X: {GLOBAL}, %Y: {GLOBAL}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %last = arith.constant {THREADS - 1} : index
  %threads = arith.constant {THREADS} : index
  %blocks = arith.constant {blocks} : index
  %cluster = arith.constant {cluster} : index
  gpu.launch {clusters} blocks(%b, %b1, %b2) in (%g0 = %blocks, %g1 = %c1, %g2 = %c1)
      threads(%t, %t1, %t2) in (%n0 = %threads, %n1 = %c1, %n2 = %c1) {{
    %s = memref.get_global @shared : {SHARED}
    {body}
    gpu.terminator
  }}
  return
}}"""


def run(text: str, **options: int | bool) -> tuple[np.ndarray | None, Outcome]:
    """Returns Y after a run with X = 0, 1, 2, ..., and the run's outcome."""
    with mlir_context():
        emulation = Emulation(parse_payload(text, "kernel.mlir"))
        outcome = emulation.run([np.arange(THREADS, dtype=np.float32), np.full(THREADS, -1, np.float32)], **options)
    return outcome.arguments[1], outcome


def kinds(outcome: Outcome) -> set[str]:
    return {finding.kind for finding in outcome.findings}


def reverse(barrier: str) -> str:
    return kernel(f"""
    %v = memref.load %X[%t] : {GLOBAL}
    memref.store %v, %s[%t] : {SHARED}
    {barrier}
    %r = arith.subi %last, %t : index
    %w = memref.load %s[%r] : {SHARED}
    memref.store %w, %Y[%t] : {GLOBAL}""")


def test_a_barrier_orders_what_threads_write_and_read() -> None:
    y, outcome = run(reverse("gpu.barrier"))
    assert np.array_equal(y, np.arange(THREADS)[::-1])
    assert not outcome.findings
    assert outcome.counters.barriers == {"gpu.barrier": 2}


@pytest.mark.parametrize("op", ["memref.alloc()", "memref.alloca()"])
def test_shared_memory_of_an_allocation(op: str) -> None:
    y, outcome = run(reverse("gpu.barrier").replace("memref.get_global @shared", op))
    assert np.array_equal(y, np.arange(THREADS)[::-1]) and not outcome.findings


def test_without_a_barrier_it_is_a_race_between_two_named_ops() -> None:
    _, outcome = run(reverse(""))
    (finding,) = outcome.findings
    assert (finding.kind, finding.op, finding.other) == ("race", "memref.load", "memref.store")
    assert finding.location.startswith("kernel.mlir:") and finding.other_location.startswith("kernel.mlir:")
    assert "warp 0 of block (0, 0, 0) reads byte 0xfc of shared memory, which warp 1" in finding.message


def test_the_sanitizer_can_be_turned_off() -> None:
    y, outcome = run(reverse(""), sanitize=False)
    assert not outcome.findings
    assert np.array_equal(y, np.arange(THREADS)[::-1])


def test_a_write_behind_a_read_needs_a_barrier_too() -> None:
    body = f"""
    memref.store %f, %s[%t] : {SHARED}
    gpu.barrier
    %r = arith.subi %last, %t : index
    %w = memref.load %s[%r] : {SHARED}
    memref.store %w, %s[%t] : {SHARED}
    memref.store %w, %Y[%t] : {GLOBAL}"""
    _, outcome = run(kernel(f"%f = memref.load %X[%t] : {GLOBAL}" + body))
    assert kinds(outcome) == {"race"}
    assert (
        "writes" in outcome.findings[0].message
        and "(0, 0, 0) read, without synchronization" in outcome.findings[0].message
    )


def test_threads_part_and_come_together() -> None:
    """Loops of different length, with a branch inside, and their results in lanes."""
    y, outcome = run(
        kernel(f"""
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %sum = scf.for %i = %c0 to %t step %c1 iter_args(%a = %zero) -> (f32) {{
      %odd = arith.remui %i, %c2 : index
      %even = arith.cmpi eq, %odd, %c0 : index
      %next = scf.if %even -> (f32) {{
        %more = arith.addf %a, %one : f32
        scf.yield %more : f32
      }} else {{
        scf.yield %a : f32
      }}
      scf.yield %next : f32
    }}
    memref.store %sum, %Y[%t] : {GLOBAL}""")
    )
    assert np.array_equal(y, (np.arange(THREADS) + 1) // 2)
    assert not outcome.findings


def test_a_while_loop_ends_for_each_thread_when_it_does() -> None:
    y, outcome = run(
        kernel(f"""
    %n = scf.while (%i = %t) : (index) -> index {{
      %more = arith.cmpi ult, %i, %threads : index
      scf.condition(%more) %i : index
    }} do {{
    ^bb0(%i: index):
      %next = arith.addi %i, %c32 : index
      scf.yield %next : index
    }}
    %k = arith.index_cast %n : index to i32
    %f = arith.sitofp %k : i32 to f32
    memref.store %f, %Y[%t] : {GLOBAL}""")
    )
    assert np.array_equal(y, THREADS + np.arange(THREADS) % 32)
    assert not outcome.findings


def test_warps_that_wait_for_each_other_in_turn_leave_the_group() -> None:
    """Two warps run the same code in different phases of a named barrier: in step they could not proceed."""
    y, outcome = run(
        kernel(
            f"""
    %w = gpu.subgroup_id : index
    %first = arith.cmpi eq, %w, %c0 : index
    %n = arith.constant 64 : i32
    %one = arith.constant 1 : i32
    scf.if %first {{
      memref.store %f, %s[%t] : {SHARED}
      nvvm.barrier id = %one number_of_threads = %n
    }} else {{
      nvvm.barrier id = %one number_of_threads = %n
      %o = arith.subi %t, %c32 : index
      %v = memref.load %s[%o] : {SHARED}
      memref.store %v, %Y[%t] : {GLOBAL}
    }}""".replace("%w = ", f"%f = memref.load %X[%t] : {GLOBAL}\n    %w = ")
        )
    )
    assert np.array_equal(y[32:], np.arange(32))
    assert not outcome.findings


NUMBERS = "memref<1xi32, #gpu.address_space<global>>"
BOXES = "memref<2xf32, #gpu.address_space<global>>"


def meeting(wait: str) -> str:
    """Returns two launches of two blocks each: Y = 2 Y + X of the other block, which has counted itself in first."""
    text = kernel(
        f"""
    %boxes = memref.get_global @boxes : {BOXES}
    %leads = arith.cmpi eq, %t, %c0 : index
    scf.if %leads {{
      %number = memref.get_global @number : {NUMBERS}
      %place = memref.extract_aligned_pointer_as_index %number : {NUMBERS} -> index
      %address = arith.index_cast %place : index to i64
      %latest = arith.constant 3 : i32
      %half = arith.constant 2 : i32
      %x = memref.load %X[%b] : {GLOBAL}
      %y = memref.load %Y[%b] : {GLOBAL}
      %yy = arith.addf %y, %y : f32
      %own = arith.addf %yy, %x : f32
      memref.store %own, %boxes[%b] : {BOXES}
      %before = nvvm.inline_ptx "atom.release.gpu.global.inc.u32 {{$w0}}, [{{$r0}}], {{$r1}};"
        ro(%address, %latest : i64, i32) memory_clobber = true -> i32
      {wait}
      %other = arith.subi %c1, %b : index
      %read = memref.load %boxes[%other] : {BOXES}
      memref.store %read, %Y[%b] : {GLOBAL}
    }}""",
        blocks=2,
    )
    launch = text[text.index("  gpu.launch") : text.index("  return")]
    return (
        f'memref.global "private" @number : {NUMBERS} = dense<0>\n'
        f'memref.global "private" @boxes : {BOXES} = uninitialized\n' + text.replace(launch, launch + launch)
    )


WAIT_FOR_HALF = """nvvm.inline_ptx "{.reg .pred p, q; .reg .b32 now; setp.ge.u32 q, {$r1}, {$r2}; \
WAIT: ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ge.xor.u32 p, now, {$r2}, q; \
@!p bra WAIT;}" ro(%address, %before, %half : i64, i32, i32) memory_clobber = true"""


def test_blocks_that_count_each_other_in_wait_for_the_other_half() -> None:
    """A launch finds the number at zero, and the next one half way: both wait for both blocks."""
    y, outcome = run(meeting(WAIT_FOR_HALF))
    first = [2 * -1 + 1, 2 * -1 + 0]
    assert y[:2].tolist() == [2 * first[1] + 1, 2 * first[0] + 0]
    assert not outcome.findings


def test_blocks_that_do_not_wait_for_each_other_race() -> None:
    _, outcome = run(meeting(""))
    assert kinds(outcome) == {"race"}


# PTX: threads that have ended count as arrived; a warp comes to a barrier as a whole.
@pytest.mark.parametrize("threads, found", [(32, set()), (5, {"deadlock", "divergent-barrier"})])
def test_a_barrier_that_not_all_come_to(threads: int, found: set[str]) -> None:
    _, outcome = run(
        kernel(f"""
    %some = arith.constant {threads} : index
    %p = arith.cmpi ult, %t, %some : index
    scf.if %p {{
      gpu.barrier
    }}""")
    )
    assert kinds(outcome) == found
    for deadlock in (finding for finding in outcome.findings if finding.kind == "deadlock"):
        assert "warp 0 of block (0, 0, 0) at gpu.barrier" in deadlock.message
        assert f"{threads} of {THREADS} threads are there" in deadlock.message


def test_barriers_at_different_places_are_divergent() -> None:
    _, outcome = run(
        kernel("""
    %p = arith.cmpi ult, %t, %c32 : index
    scf.if %p {
      gpu.barrier
    } else {
      gpu.barrier
    }""")
    )
    assert kinds(outcome) == {"divergent-barrier"}


def test_out_of_bounds_names_the_thread_and_the_element() -> None:
    y, outcome = run(
        kernel(f"""
    %r = arith.addi %t, %c1 : index
    %v = memref.load %X[%r] : {GLOBAL}
    memref.store %v, %Y[%t] : {GLOBAL}""")
    )
    (finding,) = outcome.findings
    assert finding.kind == "out-of-bounds"
    assert "thread 63 of block (0, 0, 0) touches element [64] of 64xf32" in finding.message
    assert np.array_equal(y[:-1], np.arange(1, THREADS))


def test_a_view_that_reaches_beyond_what_it_is_of() -> None:
    _, outcome = run(
        kernel(f"""
    %v = memref.subview %X[%t] [2] [1] : {GLOBAL} to memref<2xf32, strided<[1], offset: ?>>""")
    )
    assert kinds(outcome) == {"out-of-bounds"}


def test_shared_memory_begins_uninitialized() -> None:
    y, outcome = run(
        kernel(f"""
    %v = memref.load %s[%t] : {SHARED}
    memref.store %v, %Y[%t] : {GLOBAL}""")
    )
    assert kinds(outcome) == {"uninitialized"}
    assert np.isnan(y).all()


def test_different_values_to_one_place() -> None:
    _, outcome = run(
        kernel(f"""
    %v = memref.load %X[%t] : {GLOBAL}
    memref.store %v, %Y[%c0] : {GLOBAL}""")
    )
    assert kinds(outcome) == {"race"}
    _, outcome = run(
        kernel(f"""
    %v = memref.load %X[%c1] : {GLOBAL}
    memref.store %v, %Y[%c0] : {GLOBAL}""")
    )
    assert not outcome.findings, "the same value is no harm"


def test_blocks_that_write_the_same_place() -> None:
    _, outcome = run(
        kernel(
            f"""
    %v = memref.load %X[%t] : {GLOBAL}
    memref.store %v, %Y[%t] : {GLOBAL}""",
            blocks=2,
        )
    )
    (finding,) = outcome.findings
    assert finding.kind == "race" and "another block wrote" in finding.message


def test_a_shuffle_takes_the_value_of_another_lane() -> None:
    y, outcome = run(
        kernel(f"""
    %v = memref.load %X[%t] : {GLOBAL}
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %o, %valid = gpu.shuffle xor %v, %one, %width : f32
    memref.store %o, %Y[%t] : {GLOBAL}""")
    )
    assert np.array_equal(y, np.arange(THREADS) ^ 1)
    assert not outcome.findings


def test_an_endless_loop_ends_with_an_error() -> None:
    text = kernel("""
    scf.while : () -> () {
      %true = arith.constant true
      scf.condition(%true)
    } do {
      scf.yield
    }""")
    with pytest.raises(StepladderError, match=r"stopped after 1000 steps, at scf.while") as error:
        run(text, max_steps=1000)
    assert error.value.location.startswith("kernel.mlir:")


def test_bank_conflicts_are_counted() -> None:
    """Threads two rows of banks apart access one bank: 32 passes for a warp instead of one."""
    stride = "memref<64x32xf32, #gpu.address_space<workgroup>>"
    body = """
    %m = memref.alloc() : {type}
    memref.store %f, %m[{index}] : {type}"""
    for index, conflicts in (("%t, %c0", 2 * 31), ("%c0, %l", 0)):
        text = kernel(
            f"%f = memref.load %X[%t] : {GLOBAL}\n%l = arith.remui %t, %c32 : index"
            + body.format(type=stride, index=index)
        )
        _, outcome = run(text)
        (row,) = [row for row in outcome.counters.traffic.values() if row.space == "shared"]
        assert (row.wavefronts, row.conflicts) == (2 + conflicts, conflicts)


def test_global_sectors_are_counted() -> None:
    _, outcome = run(
        kernel(f"""
    %v = memref.load %X[%t] : {GLOBAL}
    memref.store %v, %Y[%t] : {GLOBAL}""")
    )
    counted = outcome.counters.as_dict()
    assert counted["global"] == {"bytes": 2 * THREADS * 4, "sectors": 2 * THREADS * 4 // 32}
    assert counted["blocks"] == 1 and counted["per_block"]["global"] == counted["global"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("func.func private @f()", "no function with a body"),
        ("func.func @f() { return }\nfunc.func @g() { return }", "several functions"),
        ("func.func @f(%x: index) {\n  %0 = shape.const_size 1\n  return\n}", "does not support shape.const_size"),
    ],
)
def test_modules_that_cannot_be_run(text: str, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=message) as error:
        Emulation(parse_payload(text, "module.mlir"), name="module.mlir")
    assert error.value.location.startswith("module.mlir")


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([np.zeros(4, np.float16)], "takes 2 inputs, and 1 were given"),
        ([np.zeros(5, np.float16), np.zeros(4, np.int8)], "input 0 is 5, and argument 0 of @f is 4"),
        ([np.zeros(4, np.float32), np.zeros(4, np.int8)], "input 0 is float32, and argument 0 of @f is f16"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[np.ndarray], message: str) -> None:
    text = "func.func @f(%x: memref<4xf16>, %y: memref<4xi8>) { return }"
    with mlir_context():
        emulation = Emulation(parse_payload(text, "module.mlir"))
        with pytest.raises(StepladderError, match=message):
            emulation.check_inputs(inputs)
