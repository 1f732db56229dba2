"""Atomic updates of many threads: of one place and of several, one after the other."""

from collections.abc import Callable

import numpy as np
import pytest

from ptx_kernels import kernel, kinds, run, run_clean

MASK = 0xFFFFFFFF

UPDATES: list[tuple[str, Callable[[int, int], int]]] = [
    ("add.u32", lambda old, own: old + own & MASK),
    ("inc.u32", lambda old, own: 0 if old >= own else old + 1),
    ("dec.u32", lambda old, own: own if old == 0 or old > own else old - 1),
    ("min.s32", lambda old, own: min(old, own, key=lambda value: value - (value >> 31 << 32))),
    ("max.u32", max),
    ("xor.b32", lambda old, own: old ^ own),
    ("exch.b32", lambda old, own: own),
]


@pytest.mark.parametrize("places", [1, 5, 64])
@pytest.mark.parametrize("update, function", UPDATES, ids=[update for update, _ in UPDATES])
def test_threads_update_in_their_order(update: str, function: Callable[[int, int], int], places: int) -> None:
    """Each gets what those before it have left."""
    found = run_clean(
        f"""
  mul.lo.u32 %r1, %t, 7;
  and.b32 %r1, %r1, 31;
  rem.u32 %r2, %t, {places};
  shl.b32 %r2, %r2, 2;
  add.u32 %r2, %r2, table;
  setp.lt.u32 %p1, %t, {places};
  @%p1 st.shared.u32 [%r2], 0xFFFFFFFD;
  bar.sync 0;
  atom.shared.{update} %r3, [%r2], %r1;
  cvt.u64.u32 %d1, %r3;
  st.global.u64 [%y], %d1;""",
        shared=".shared .b32 table[64];",
    )
    table = [0xFFFFFFFD] * places
    wanted = []
    for thread in range(64):
        wanted.append(table[thread % places])
        table[thread % places] = function(table[thread % places], thread * 7 & 31)
    assert found.tolist() == wanted


def test_threads_compare_and_exchange_in_their_order() -> None:
    """The first thread of the block finds what it compares with, and the others what it left."""
    found = run_clean("""
  atom.global.cas.b64 %d1, [%Y+504], -1, 5;
  bar.sync 0;
  st.global.u64 [%y], %d1;""")
    assert found[0] == -1 and (found[1:] == 5).all()


def test_vectors_of_halves_at_generic_addresses() -> None:
    body = """
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.v2.b64 [%Y], {0, 0};
  bar.sync 0;
  mov.b16 %h1, 0x3C00;
  red.add.noftz.v8.f16 [%Y], {%h1, %h1, %h1, %h1, %h1, %h1, %h1, %h1};
  red.max.noftz.v4.f16x2 [%Y], {0x54005400, 0x54005400, 0x54005400, 0x54005400};"""
    found = run_clean(body).view(np.float16)[:8]
    assert found.tolist() == [64.0] * 8
    _, outcome = run(kernel(body.replace("f16x2 [%Y]", "f16x2 [%Y+8]")))
    assert "misaligned" in kinds(outcome)


def test_loads_and_stores_of_devices_and_with_a_policy() -> None:
    found = run_clean("""
  createpolicy.fractional.L2::evict_first.b64 %d3, 1.0;
  ld.mmio.relaxed.sys.global.u64 %d1, [%x];
  add.u64 %d1, %d1, 1;
  st.global.L2::cache_hint.u64 [%y], %d1, %d3;
  ld.global.u64 %d2, [%y];
  add.u64 %d2, %d2, 1;
  st.mmio.relaxed.sys.global.u64 [%y], %d2;""")
    assert found.tolist() == [thread + 2 for thread in range(64)]


def test_a_shuffle_from_a_thread_that_is_no_member() -> None:
    """The value is not specified: all bits are set."""
    found = run_clean("""
  and.b32 %r1, %t, 31;
  setp.ge.u32 %p1, %r1, 16;
  mov.b32 %r3, 7;
  @%p1 bra BEHIND;
  shfl.sync.bfly.b32 %r3, %t, 16, 31, 0xFFFF;
BEHIND:
  cvt.s64.s32 %d1, %r3;
  st.global.u64 [%y], %d1;""")
    assert found.tolist() == ([-1] * 16 + [7] * 16) * 2


def test_numbers_of_128_bits() -> None:
    """Each thread adds 1 by `cas`; both halves are compared and exchanged together."""
    found = run_clean(
        """
  .reg .b128 %q<5>;
  setp.eq.u32 %p1, %t, 0;
  mov.b64 %d1, 0xFFFFFFFFFFFFFFF0;
  mov.b64 %d2, 5;
  mov.b128 %q1, {%d1, %d2};
  @%p1 st.shared.b128 [number], %q1;
  bar.sync 0;
  ld.relaxed.cta.shared.b128 %q1, [number];
AGAIN:
  mov.b128 {%d1, %d2}, %q1;
  add.cc.u64 %d3, %d1, 1;
  addc.u64 %d4, %d2, 0;
  mov.b128 %q2, {%d3, %d4};
  mov.b128 %q3, %q1;
  atom.shared.cas.b128 %q1, [number], %q3, %q2;
  mov.b128 {%d5, %d6}, %q1;
  setp.ne.u64 %p2, %d5, %d1;
  @%p2 bra AGAIN;
  st.global.u64 [%y], %d6;
  bar.sync 0;
  mov.b128 %q2, {%d1, %d2};
  @%p1 atom.exch.shared.b128 %q4, [number], %q2;
  @%p1 st.global.b128 [%Y], %q4;""",
        shared=".shared .align 16 .b8 number[16];",
    )
    assert found[:2].tolist() == [64 - 16, 6]
    assert set(found[2:].tolist()) == {5, 6}
    assert 14 <= (found[2:] == 5).sum() <= 16


@pytest.mark.parametrize("place", ["global", "shared"])
@pytest.mark.parametrize("load, is_strong", [("ld", False), ("ld.relaxed.gpu", True), ("ld.volatile", True)])
def test_the_first_load_of_a_loop_of_compare_and_exchange(load: str, is_strong: bool, place: str) -> None:
    """The count is right in any case; a plain load is a race, and a note says what is none."""
    address = {"global": "[%Y]", "shared": "[number]"}[place]
    _, outcome = run(
        kernel(
            f"""
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.{place}.u32 {address}, 0;
  bar.sync 0;
  {load}.{place}.u32 %r1, {address};
AGAIN:
  mov.b32 %r2, %r1;
  add.u32 %r3, %r2, 1;
  atom.{place}.cas.b32 %r1, {address}, %r2, %r3;
  setp.ne.u32 %p2, %r1, %r2;
  @%p2 bra AGAIN;""",
            shared=".shared .b32 number;",
        )
    )
    if is_strong:
        assert not outcome.findings
        return
    assert kinds(outcome) == {"race"}
    notes = [note for finding in outcome.findings for note in finding.notes if "ld.relaxed" in note]
    assert len(notes) == len(outcome.findings)


def test_other_races_have_no_note_on_loads() -> None:
    _, outcome = run(kernel("  atom.global.add.u32 %r2, [%Y], 1;\n  ld.global.u32 %r1, [%Y];"))
    assert kinds(outcome) == {"race"}
    assert not any("ld.relaxed" in note for finding in outcome.findings for note in finding.notes)
