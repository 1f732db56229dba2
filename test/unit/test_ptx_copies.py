"""PTX that copies: cp.async, bulk copies, and shared memory of other blocks of a cluster."""

import numpy as np
import pytest

from ptx_kernels import HEAD, kernel, kinds, run, run_clean
from stepladder.runtime.errors import StepladderError

SHARED = ".shared .align 16 .b8 s[2048]; .shared .align 8 .b64 bar;"


# Copies.


def test_cp_async() -> None:
    body = """
  shl.b32 %r1, %t, 3;
  mov.b32 %r2, s;
  add.u32 %r2, %r2, %r1;
  cp.async.ca.shared.global.L2::128B [%r2], [%x], 8, %r7;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.b64 %d1, [%r2];
  st.global.b64 [%y], %d1;"""
    set_size = "  and.b32 %r7, %t, 1;\n  shl.b32 %r7, %r7, 3;\n"
    assert run_clean(set_size + body, shared=SHARED).tolist() == [x if x % 2 else 0 for x in range(64)]
    _, outcome = run(kernel(set_size + body.replace("wait_group 0", "wait_group 1"), shared=SHARED))
    assert kinds(outcome) == {"in-flight", "unwaited"}


BULK = """
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%X], 512, [bar];
READY:
  bar.sync 0;
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
  @!%p2 bra W;
  shl.b32 %r1, %t, 3;
  mov.b32 %r2, s;
  add.u32 %r2, %r2, %r1;
  ld.shared.b64 %d1, [%r2];
  add.s64 %d1, %d1, 5;
  st.shared.b64 [%r2], %d1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p1 bra END;
  cp{reduce}.async.bulk.global.shared::cta.bulk_group{op} [%Y], [s], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:
"""


def test_bulk_copies() -> None:
    shared = SHARED
    y = run_clean(BULK.format(reduce="", op=""), shared=shared)
    assert y.tolist() == [x + 5 for x in range(64)]
    y = run_clean(BULK.format(reduce=".reduce", op=".add.u64"), shared=shared)
    assert y.tolist() == [x + 4 for x in range(64)]


_IN_FRONT = "fence.proxy.async.shared::cta;\n  bar.sync 0;"
_BEHIND = "bar.sync 0;\n  fence.proxy.async.shared::cta;"


@pytest.mark.parametrize(
    "old, new, finds",
    [
        ("fence.proxy.async.shared::cta;", "", {"proxy"}),
        ("fence.proxy.async.shared::cta;", "fence.proxy.async.global;", {"proxy"}),
        (_IN_FRONT, _BEHIND, {"proxy"}),
        (_IN_FRONT, _BEHIND + "\n  bar.sync 0;", set()),
        ("fence.mbarrier_init.release.cluster;", "", {"proxy"}),
        ("_, [bar], 512;", "_, [bar], 256;", {"transaction-bytes", "deadlock"}),
        ("[%X], 512", "[%X], 1024", {"out-of-bounds"}),
        ("[%X], 512", "[%X+8], 496", {"misaligned"}),
        ("cp.async.bulk.wait_group 0;", "", {"unwaited"}),
    ],
)
def test_bulk_copies_that_are_wrong(old: str, new: str, finds: set[str]) -> None:
    _, outcome = run(kernel(BULK.format(reduce="", op="").replace(old, new), shared=SHARED))
    assert kinds(outcome) & finds or not kinds(outcome) | finds


WRITTEN = "  st.global.b64 [%x], %d1;\n  {fence}\n  bar.sync 0;\n{behind}" + BULK.format(reduce="", op="")


@pytest.mark.parametrize(
    "fence, behind, finds",
    [
        ("fence.proxy.async.global;", "", set()),
        ("fence.proxy.async;", "", set()),
        ("", "  fence.proxy.async.global;\n", set()),
        ("", "", {"proxy"}),
        ("fence.proxy.async.shared::cta;", "", {"proxy"}),
    ],
)
def test_a_bulk_copy_of_what_threads_wrote_to_global_memory(fence: str, behind: str, finds: set[str]) -> None:
    text = "  cvt.u64.u32 %d1, %t;\n" + WRITTEN.format(fence=fence, behind=behind)
    y, outcome = run(kernel(text, shared=SHARED))
    assert kinds(outcome) == finds
    assert y.tolist() == [x + 5 for x in range(64)]
    for finding in outcome.findings:
        assert "no fence.proxy.async for global memory follows the write" in finding.message
        assert finding.other == "st.global.b64"


# Clusters.

REMOTE = """
  mov.u32 %r1, %cluster_ctarank;
  xor.b32 %r2, %r1, 1;
  shl.b32 %r3, %t, 3;
  mov.b32 %r4, s;
  add.u32 %r4, %r4, %r3;
  mapa.shared::cluster.u32 %r5, %r4, %r2;
  cvt.u64.u32 %d1, %g;
  {write}
  barrier.cluster.arrive{order};
  barrier.cluster.wait;
  {read}
  st.global.b64 [%y], %d2;
  barrier.cluster.arrive;
  barrier.cluster.wait;
"""
CROSSED = [*range(64, 128), *range(64)]


@pytest.mark.parametrize(
    "write, read",
    [
        ("st.shared.b64 [%r4], %d1;", "ld.shared::cluster.b64 %d2, [%r5];"),
        ("st.shared::cluster.b64 [%r5], %d1;", "ld.shared.b64 %d2, [%r4];"),
        (
            "st.shared.b64 [%r4], 0;\n bar.sync 0;\n barrier.cluster.arrive;\n barrier.cluster.wait;\n"
            " red.relaxed.cluster.shared::cluster.add.u64 [%r5], %d1;",
            "ld.shared.b64 %d2, [%r4];",
        ),
    ],
)
def test_shared_memory_of_the_other_block(write: str, read: str) -> None:
    text = REMOTE.format(write=write, read=read, order="")
    assert run_clean(text, shared=SHARED, blocks=2, cluster=2).tolist() == CROSSED
    _, outcome = run(
        kernel(
            text.replace("arrive;\n  barrier.cluster.wait;\n  ld", "arrive.relaxed;\n  barrier.cluster.wait;\n  ld"),
            shared=SHARED,
        ),
        blocks=2,
        cluster=2,
    )
    assert kinds(outcome) == {"race"}


def test_a_block_that_is_not_there() -> None:
    text = REMOTE.format(write="", read="ld.shared::cluster.b64 %d2, [%r5];", order="").replace("%r1, 1", "%r1, 4")
    _, outcome = run(kernel(text, shared=SHARED), blocks=2, cluster=2)
    assert "out-of-bounds" in kinds(outcome)


COPIED = """
  mov.u32 %r1, %cluster_ctarank;
  xor.b32 %r2, %r1, 1;
  shl.b32 %r3, %t, 3;
  mov.b32 %r4, s;
  add.u32 %r4, %r4, %r3;
  cvt.u64.u32 %d1, %g;
  st.shared.b64 [%r4], %d1;
  fence.proxy.async.shared::cta;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
READY:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  @%p1 bra BEGUN;
  mov.b32 %r5, s;
  add.u32 %r6, %r5, 512;
  mapa.shared::cluster.u32 %r6, %r6, %r2;
  mov.b32 %r7, bar;
  mapa.shared::cluster.u32 %r7, %r7, %r2;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r5], 512, [%r7];
BEGUN:
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
  @!%p2 bra W;
  ld.shared.b64 %d2, [%r4+512];
  st.global.b64 [%y], %d2;
  barrier.cluster.arrive;
  barrier.cluster.wait;
"""


@pytest.mark.parametrize(
    "old, new, finds",
    [
        ("", "", set()),
        ("  fence.proxy.async.shared::cta;\n", "", {"proxy"}),
        ("  @!%p2 bra W;\n", "", {"in-flight"}),
        ("BEGUN:\n", "BEGUN:\n  st.shared.b64 [%r4], 0;\n", {"in-flight"}),
        ("_, [bar], 512;", "_, [bar], 256;", {"transaction-bytes"}),
        ("[%r5], 512, [%r7]", "[%r5+8], 512, [%r7]", {"misaligned"}),
        ("[%r5], 512, [%r7]", "[%r5], 2048, [%r7]", {"out-of-bounds"}),
    ],
)
def test_bulk_copies_to_the_other_block(old: str, new: str, finds: set[str]) -> None:
    y, outcome = run(kernel(COPIED.replace(old, new, 1), shared=SHARED), blocks=2, cluster=2)
    assert kinds(outcome) >= finds and bool(finds) == bool(outcome.findings)
    if not finds:
        assert y.tolist() == CROSSED


MADE = """
  setp.ge.u32 %p1, %t, 32;
  @%p1 bra READY;
  mov.b32 %r1, made;
  shl.b32 %r2, %t, 2;
  add.u32 %r2, %r1, %r2;
  st.shared.b32 [%r2], 0;
  bar.warp.sync -1;
  setp.ne.u32 %p2, %t, 0;
  mov.b64 %d1, map;
  @%p2 bra FILLED;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [made], %X;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [made], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [made], 0, 4;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [made], 1, 16;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [made], 0, 3;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [made], 1, 16;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [made], 0, 32;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [made], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [made], 1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [made], 5;
  mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
FILLED:
  bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [made], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
  @%p2 bra READY;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%d1, {0, 0}], [bar];
READY:
  bar.sync 0;
W: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
  @!%p3 bra W;
  shl.b32 %r1, %t, 3;
  mov.b32 %r2, s;
  add.u32 %r2, %r2, %r1;
  ld.shared.b64 %d2, [%r2];
  st.global.b64 [%y], %d2;
"""
FIELD = "tensormap.replace.tile.{}.shared::cta.b1024.b32 [made], {};"
FENCED = "  fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;\n"


@pytest.mark.parametrize(
    "old, new, finds",
    [
        ("", "", set()),
        (FENCED, "", {"proxy"}),
        ("  bar.warp.sync -1;\n  tensormap.cp", "  tensormap.cp", {"race"}),
        ("elemtype.shared::cta.b1024.b32 [made], 5", "elemtype.shared::cta.b1024.b32 [made], 8", {"descriptor"}),
        ("  mbarrier.init", f"  {FIELD.format('interleave_layout', 1)}\n  mbarrier.init", {"descriptor"}),
        ("  mbarrier.init", f"  {FIELD.format('fill_mode', 1)}\n  mbarrier.init", {"descriptor"}),  # integers
        ("  mbarrier.init", f"  {FIELD.format('fill_mode', 2)}\n  mbarrier.init", {"descriptor"}),
        ("[made], 0, 32;", "[made], 0, 24;", {"descriptor"}),
        ("[made], 1, 16;", "[made], 1, 8;", {"uninitialized", "deadlock"}),
        ("b1024.b64 [made], %X", "b1024.b64 [made], 64", {"descriptor"}),
    ],
)
def test_a_descriptor_that_the_kernel_makes(old: str, new: str, finds: set[str]) -> None:
    """Of a tensor of 16 rows of 3 numbers, 4 apart; the fourth of a row is outside of it."""
    shared = ".shared .align 128 .b8 s[512]; .shared .align 128 .b8 made[128]; .shared .align 8 .b64 bar;"
    head = HEAD + ".global .align 128 .b8 map[128];"
    y, outcome = run(kernel(MADE.replace(old, new, 1), shared=shared, head=head))
    assert bool(kinds(outcome) & finds) == bool(finds) == bool(outcome.findings)
    if not finds:
        assert y.tolist() == [0 if x % 4 == 3 else x for x in range(64)]


def test_a_descriptor_of_floating_point_numbers_that_are_nan_outside() -> None:
    made = MADE.replace(FIELD.format("elemtype", 5), f"{FIELD.format('elemtype', 9)} {FIELD.format('fill_mode', 1)}")
    shared = ".shared .align 128 .b8 s[512]; .shared .align 128 .b8 made[128]; .shared .align 8 .b64 bar;"
    y, outcome = run(kernel(made, shared=shared, head=HEAD + ".global .align 128 .b8 map[128];"))
    assert not outcome.findings
    assert np.isnan(y.view(np.float64)[3::4]).all() and y[:3].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "text, message",
    [
        ("tensormap.replace.tile.box_dim.global.b1024.b32 [%X], 5, 1;", "of field 5: there are 5"),
        ("tensormap.replace.tile.new.global.b1024.b32 [%X], 1;", "without one of .global_address"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%X], 64;", "of 64 bytes: it takes 128"),
    ],
)
def test_descriptors_that_are_not_known(text: str, message: str) -> None:
    with pytest.raises(StepladderError) as refused:
        run(kernel(text))
    assert message in refused.value.render()
