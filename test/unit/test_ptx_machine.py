"""PTX that threads share: memory with order and scope, barriers, mbarriers, faults of accesses, and launches."""

import numpy as np
import pytest

from ptx_kernels import HEAD, kernel, kinds, run, run_clean
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.ptx.arguments import from_texts
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.runtime.errors import BAD_INPUT, FAILED, StepladderError

SHARED = ".shared .align 16 .b8 s[2048]; .shared .align 8 .b64 bar;"
# Each thread writes its number to its place in shared memory, and reads its neighbour's in the other warp.
WRITE = "  shl.b32 %r1, %t, 2;\n  mov.b32 %r2, s;\n  add.u32 %r2, %r2, %r1;\n  st.shared.b32 [%r2], %t;\n"
READ = """
  xor.b32 %r3, %t, 32;
  shl.b32 %r3, %r3, 2;
  mov.b32 %r4, s;
  add.u32 %r4, %r4, %r3;
  ld.shared.b32 %r5, [%r4];
  cvt.u64.u32 %d1, %r5;
  st.global.b64 [%y], %d1;
"""
OTHERS = [x ^ 32 for x in range(64)]


# Barriers.


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync.aligned 3, 64;", "barrier.cta.sync 1;"])
def test_a_barrier(barrier: str) -> None:
    assert run_clean(WRITE + "  " + barrier + READ, shared=SHARED).tolist() == OTHERS


@pytest.mark.parametrize("barrier", ["", "bar.sync %r5, 32;", "bar.warp.sync -1;", "fence.acq_rel.cta;"])
def test_no_barrier_of_all_threads(barrier: str) -> None:
    setup = "  shr.u32 %r5, %t, 5;\n"
    _, outcome = run(kernel(setup + WRITE + "  " + barrier + READ, shared=SHARED))
    assert kinds(outcome) & {"race", "uninitialized"}
    assert all(finding.location.startswith("k.ptx:") for finding in outcome.findings)


def test_barriers_that_combine_predicates() -> None:
    y = run_clean(
        """
  setp.lt.u32 %p1, %t, 5;
  bar.red.popc.u32 %r1, 0, %p1;
  bar.red.or.pred %p2, 0, %p1;
  barrier.red.and.pred %p3, 0, 64, %p1;
  selp.b32 %r2, 100, 0, %p2;
  selp.b32 %r3, 1000, 0, %p3;
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  cvt.u64.u32 %d1, %r1;
  st.global.b64 [%y], %d1;"""
    )
    assert set(y.tolist()) == {105}


def test_a_guarded_barrier_that_some_do_not_come_to() -> None:
    _, outcome = run(kernel("  setp.lt.u32 %p1, %t, 32;\n  @%p1 bar.sync 0;\n  bar.sync 1;"))
    assert "deadlock" in kinds(outcome)


# Atomics, order and scope.


@pytest.mark.parametrize(
    "update, wanted",
    [
        ("atom.global.add.u32 %r1, [%Y], 1;", 63),
        ("atom.relaxed.gpu.global.inc.u32 %r1, [%Y], 10;", 63 % 11 - 1 if 63 % 11 else 10),
        ("atom.global.max.s32 %r1, [%Y], %t;", 63),
        ("red.global.add.u32 [%Y], 1;", 63),
        ("atom.global.exch.b32 %r1, [%Y], %t;", 63),
        ("atom.global.cas.b32 %r1, [%Y], -1, 7;", 7),
        ("atom.global.and.b32 %r1, [%Y], 0xF0;", 0xF0),
        ("red.async.global.add.u32 [%Y], 1;", "expected .relaxed"),
    ],
)
def test_updates(update: str, wanted: int | str) -> None:
    if isinstance(wanted, str):
        with pytest.raises(StepladderError, match=wanted):
            run(kernel(update))
        return
    y = run_clean("  " + update)
    if "inc" not in update:
        assert y.view(np.int32)[0] == wanted


def test_updates_of_floating_point_numbers() -> None:
    y = run_clean(
        """
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.global.b32 [%Y], 0;
  @%p1 st.global.b32 [%Y+8], 0;
  bar.sync 0;
  red.global.add.f32 [%Y], 0f3F000000;
  atom.global.add.noftz.f16x2 %r1, [%Y+8], 0x3C003800;"""
    )
    assert y.view(np.float32)[0] == 32
    assert y.view(np.float16)[4:6].tolist() == [32, 64]


# The first warp writes X to Y and raises a flag; the second waits for it.
FLAG = """
  setp.ge.u32 %p1, %t, 32;
  @%p1 bra READER;
  ld.global.b64 %d1, [%x];
  st.global.b64 [%y], %d1;
  {before}
  setp.ne.u32 %p2, %t, 0;
  @%p2 bra END;
  {store} [flag], 1;
  bra.uni END;
READER:
  {load} %r1, [flag];
  setp.ne.u32 %p3, %r1, 1;
  @%p3 bra READER;
  {behind}
  ld.global.b64 %d2, [%y-256];
  st.global.b64 [%y], %d2;
END:
"""
GLOBAL = HEAD + ".visible .global .align 4 .u32 flag;"


def flag(store: str, load: str, before: str = "", behind: str = "") -> set[str]:
    text = FLAG.format(store=store, load=load, before=before, behind=behind)
    y, outcome = run(kernel(text, head=GLOBAL))
    assert y.tolist() == [*range(32), *range(32)]
    return kinds(outcome)


@pytest.mark.parametrize("scope", ["cta", "cluster", "gpu", "sys"], ids="scope {}".format)
def test_a_flag_that_is_released_and_acquired(scope: str) -> None:
    assert not flag(f"st.release.{scope}.global.b32", f"ld.acquire.{scope}.global.b32")


def test_a_flag_with_fences() -> None:
    assert not flag("st.relaxed.gpu.b32", "ld.relaxed.gpu.b32", "fence.acq_rel.gpu;", "fence.acq_rel.gpu;")
    assert not flag("st.volatile.global.b32", "ld.volatile.global.b32", "membar.gl;", "membar.gl;")
    assert not flag("red.relaxed.gpu.add.u32", "ld.acquire.gpu.b32", "fence.release.gpu;")


@pytest.mark.parametrize(
    "store, load",
    [
        ("st.relaxed.gpu.global.b32", "ld.acquire.gpu.global.b32"),
        ("st.release.gpu.global.b32", "ld.relaxed.gpu.global.b32"),
        ("st.volatile.global.b32", "ld.volatile.global.b32"),
        ("red.relaxed.gpu.global.add.u32", "ld.acquire.gpu.global.b32"),
        ("st.global.b32", "ld.acquire.gpu.global.b32"),
    ],
)
def test_a_flag_that_orders_nothing(store: str, load: str) -> None:
    assert flag(store, load) == {"race"}


def test_a_flag_that_no_thread_raises() -> None:
    text = "WAIT:\n  ld.acquire.gpu.global.b32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra WAIT;"
    _, outcome = run(kernel(text, head=GLOBAL))
    (found,) = outcome.findings
    assert found.kind == "deadlock" and found.location == "k.ptx:26:3"
    assert "another number than 0" in found.message


def test_a_lock() -> None:
    """One thread of each block counts up under a lock: cas acquires, exch releases."""
    text = """
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra END;
LOCK:
  atom.acquire.gpu.global.cas.b32 %r1, [flag], 0, 1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra LOCK;
  ld.global.b64 %d1, [%Y];
  add.s64 %d1, %d1, 1;
  st.global.b64 [%Y], %d1;
  atom.release.{scope}.global.exch.b32 %r1, [flag], 0;
END:"""
    y, outcome = run(kernel(text.replace("{scope}", "gpu"), head=GLOBAL), blocks=4)
    assert y[0] == 3 and not outcome.findings
    _, outcome = run(kernel(text.replace("{scope}", "cta"), head=GLOBAL), blocks=4)
    assert kinds(outcome) == {"race"}


# mbarriers.

INIT = """
  setp.ne.u32 %p1, %t, 0;
  @!%p1 mbarrier.init.shared.b64 [bar], {count};
  bar.sync 0;
"""
LOOP = """
  mbarrier.arrive.release.cta.shared.b64 %d1, [bar];
WAIT:
  {wait}
  @!%p2 bra WAIT;
"""


@pytest.mark.parametrize(
    "wait",
    [
        "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;",
        "mbarrier.try_wait.shared::cta.b64 %p2, [bar], %d1, 1000;",
        "mbarrier.test_wait.acquire.cta.shared.b64 %p2, [bar], %d1;",
        "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n  nanosleep.u32 20;",
        # Of a loop that counts its turns, which is no plain wait.
        "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n  add.u32 %r9, %r9, 1;",
    ],
)
def test_mbarriers(wait: str) -> None:
    text = "mov.u32 %r9, 0;" + INIT.format(count=64) + WRITE + LOOP.format(wait=wait) + READ
    assert run_clean(text, shared=SHARED).tolist() == OTHERS


def test_an_mbarrier_that_waits_for_more() -> None:
    wait = "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;"
    _, outcome = run(kernel(INIT.format(count=65) + LOOP.format(wait=wait), shared=SHARED))
    assert kinds(outcome) == {"deadlock"}


def test_a_test_that_is_not_repeated_may_fail() -> None:
    """The first warp asks before the second has arrived: it is told so, and reads what is not there yet."""
    text = (
        INIT.format(count=32)
        + """
  setp.ge.u32 %p3, %t, 32;
  @%p3 bra ARRIVE;
  mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
  selp.b64 %d2, 1, 0, %p2;
  st.global.b64 [%y], %d2;
  bra.uni END;
ARRIVE:
"""
        + WRITE
        + """
  mbarrier.arrive.shared.b64 _, [bar];
END:"""
    )
    y, _ = run(kernel(text, shared=SHARED))
    assert set(y[:32].tolist()) == {0}


def test_waits_and_arrivals_that_are_relaxed() -> None:
    wait = "mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p2, [bar], 0;"
    _, outcome = run(kernel(INIT.format(count=64) + WRITE + LOOP.format(wait=wait) + READ, shared=SHARED))
    assert kinds(outcome) == {"race"}
    text = LOOP.format(wait=wait.replace("relaxed", "acquire")).replace("release", "relaxed")
    _, outcome = run(kernel(INIT.format(count=64) + WRITE + text + READ, shared=SHARED))
    assert kinds(outcome) == {"race"}


def test_threads_that_drop_out() -> None:
    text = (
        INIT.format(count=64)
        + """
  setp.ge.u32 %p3, %t, 32;
  @%p3 mbarrier.arrive_drop.shared.b64 _, [bar];
  @%p3 exit;
  mbarrier.arrive.shared.b64 _, [bar];
  mbarrier.arrive.shared.b64 %d1, [bar];
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 1;
  @!%p2 bra W;
  st.global.b64 [%y], 3;"""
    )
    _, outcome = run(kernel(text, shared=SHARED))
    assert kinds(outcome) <= {"order"}


# What accesses must not do.


@pytest.mark.parametrize(
    "body, finds",
    [
        ("ld.global.b64 %d1, [%x+4096];", {"out-of-bounds"}),
        ("ld.global.b64 %d1, [%x+4];", {"misaligned"}),
        ("st.global.v4.b32 [%y], {%t, %t, %t, %t};", {"misaligned"}),
        ("mov.b64 %d2, s; ld.global.b32 %r1, [%d2];", {"out-of-bounds"}),
        ("ld.shared.b32 %r1, [s];", {"uninitialized"}),
        ("ld.shared.b32 %r1, [s+4096];", {"out-of-bounds"}),
        ("st.global.b32 [%Y], %t;", {"race"}),
        ("trap;", {"assertion"}),
        ("setmaxnreg.inc.sync.aligned.u32 33;", {"registers"}),
        ("mbarrier.arrive.shared.b64 _, [bar];", {"uninitialized"}),
        (
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%X, {0}], [bar];",
            {"descriptor"},
        ),
        ("shfl.sync.idx.b32 %r1, %t, 0, 31, 1;", {"divergent-barrier"}),
    ],
)
def test_what_is_found(body: str, finds: set[str]) -> None:
    _, outcome = run(kernel(f"  {body}", shared=SHARED), threads=128)
    assert finds <= kinds(outcome), [finding.render() for finding in outcome.findings]
    assert outcome.findings[0].location.startswith("k.ptx:25:")


def test_an_endless_loop_ends() -> None:
    with pytest.raises(StepladderError, match="stopped after 1000 steps") as caught:
        run(kernel("L:\n  add.u32 %r1, %r1, 1;\n  bra L;"), max_steps=1000)
    assert caught.value.status == FAILED


# Launches.


def bound(text: str, arguments: list[str], launch: Launch) -> None:
    Kernel(parse(text, "k.ptx"), None, "k.ptx").bound(from_texts(arguments), launch)


@pytest.mark.parametrize(
    "arguments, launch, directive, message",
    [
        (
            ["4xf32"],
            Launch((1, 1, 1), (1, 1, 1)),
            "",
            "takes 2 arguments, and 1 were given: .param .u64 X, .param .u64 Y",
        ),
        (["4xf32", "1:i32"], Launch((1, 1, 1), (1, 1, 1)), "", "takes 8 bytes as argument 1"),
        (["4xf32", "4x4xf32[4x4,32b]"], Launch((1, 1, 1), (1, 1, 1)), "", "a TMA descriptor is 128"),
        (
            ["4xf32", "4xq7"],
            Launch((1, 1, 1), (1, 1, 1)),
            "",
            "argument '4xq7' has the element type 'q7', which there is not\naccepted: element types of MLIR, such as",
        ),
        (["4xf32", "four"], Launch((1, 1, 1), (1, 1, 1)), "", "argument 'four' must be 256x128xf16 for an array"),
        (["4xf32"] * 2, Launch((1, 1, 1), (64, 1, 1)), ".maxntid 32, 1, 1", "has at most 32 threads per block, got 64"),
        (["4xf32"] * 2, Launch((1, 1, 1), (64, 1, 1)), ".reqntid 32", "has 32 threads per block, got 64"),
        (
            ["4xf32"] * 2,
            Launch((1, 1, 1), (64, 1, 1)),
            ".reqnctapercluster 2",
            "for clusters of 2 x 1 x 1, got 1 x 1 x 1",
        ),
        (["4xf32"] * 2, Launch((3, 1, 1), (64, 1, 1), (2, 1, 1)), "", "which clusters of 2 x 1 x 1 do not divide"),
        (
            ["4xf32"] * 2,
            Launch((1, 1, 1), (2048, 1, 1)),
            "",
            "cannot be launched: a block of 2048 x 1 x 1; accepted: 1 to 1024 threads along x",
        ),
        (
            ["4xf32"] * 2,
            Launch((1, 1, 1), (32, 1, 1), (1, 1, 1), 2**20),
            "",
            "1048576 bytes of shared memory per block; at most 232448 on sm_90a",
        ),
    ],
)
def test_launches_that_do_not_fit(arguments: list[str], launch: Launch, directive: str, message: str) -> None:
    text = kernel("").replace(".param .u64 Y)", f".param .u64 Y) {directive}")
    with pytest.raises(StepladderError) as caught:
        bound(text, arguments, launch)
    assert message in "\n".join([caught.value.message, *caught.value.notes])
    assert caught.value.status == BAD_INPUT


def test_dynamic_shared_memory_begins_behind_the_rest() -> None:
    head = HEAD + ".extern .shared .align 16 .b8 dynamic[];"
    text = "  mov.b64 %d1, dynamic;\n  st.global.b64 [%y], %d1;\n  mov.u32 %r1, %dynamic_smem_size;"
    y, outcome = run(kernel(text, head=head, shared=".shared .align 4 .b8 other[20];"), dynamic=64)
    assert set(y.tolist()) == {32} and not outcome.findings
