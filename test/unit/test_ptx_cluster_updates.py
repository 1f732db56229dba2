"""Updates of memory that complete later: red.async, and bulk copies and boxes that reduce."""

from collections.abc import Callable

import numpy as np
import pytest

from ptx_kernels import HEAD, Kernel, Launch, from_texts, kernel, kinds, parse, run, run_clean
from stepladder.runtime.errors import StepladderError

SHARED = ".shared .align 128 .b8 a[256]; .shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar;"
COUNT = 64


def _inc(old: int, new: int) -> int:
    return 0 if old >= new else old + 1


def _dec(old: int, new: int) -> int:
    return new if old == 0 or old > new else old - 1


# By operation and type: what two numbers become, as PTX defines it.
CASES: list[tuple[str, str, Callable[[int, int], int]]] = [
    ("add", "u32", lambda old, new: old + new),
    ("add", "s32", lambda old, new: old + new),
    ("min", "u32", min),
    ("min", "s32", min),
    ("max", "u32", max),
    ("max", "s32", max),
    ("inc", "u32", _inc),
    ("dec", "u32", _dec),
    ("and", "b32", lambda old, new: old & new),
    ("or", "b32", lambda old, new: old | new),
    ("xor", "b32", lambda old, new: old ^ new),
]
BEGIN = """
  mov.b32 %r1, s;
  mov.b32 %r2, a;
  shl.b32 %r3, %t, 2;
  add.u32 %r4, %r1, %r3;
  add.u32 %r5, %r2, %r3;
  ld.global.b32 %r6, [%x];
  ld.global.b32 %r7, [%x+4];
  st.shared.b32 [%r4], %r6;
  st.shared.b32 [%r5], %r7;
  fence.proxy.async;
  setp.ne.u32 %p1, %t, 0;
  @!%p1 mbarrier.init.shared.b64 [bar], 1;
  @!%p1 fence.mbarrier_init.release.cluster;
  @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
  bar.sync 0;
  mapa.shared::cluster.u32 %r8, %r4, 0;
  mapa.shared::cluster.u32 %r9, %r2, 0;
  mov.b32 %r10, bar;
  mapa.shared::cluster.u32 %r11, %r10, 0;
"""
END = """
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
  @!%p2 bra W;
  ld.shared.b32 %r12, [%r5];
  st.global.b32 [%y], %r12;
"""


def _given(type_: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns pairs of random bits, of which some are small and some equal, and their numbers."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, (COUNT, 2), np.uint32)
    bits[::3] %= 4
    return bits.copy().view(np.int64)[:, 0], bits.view(np.int32) if type_ == "s32" else bits


@pytest.mark.parametrize("operation, type_, combine", CASES)
def test_red_async(operation: str, type_: str, combine: Callable) -> None:
    """Each thread updates its own number; one number of all threads is in test_emulator_planted."""
    x, numbers = _given(type_)
    update = (
        f"  add.u32 %r9, %r9, %r3;\n  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
        f".{operation}.{type_} [%r9], %r6, [%r11];"
    )
    y = run_clean(BEGIN + update + END, x, shared=SHARED).view(np.uint32)[::2]
    assert y.tolist() == [combine(int(old), int(new)) % 2**32 for new, old in numbers]


@pytest.mark.parametrize("operation, type_, combine", CASES)
def test_bulk_reductions_in_a_block(operation: str, type_: str, combine: Callable) -> None:
    x, numbers = _given(type_)
    copy = (
        "  @!%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        f".{operation}.{type_} [%r9], [%r1], 256, [%r11];"
    )
    y = run_clean(BEGIN + copy + END, x, shared=SHARED).view(np.uint32)[::2]
    assert y.tolist() == [combine(int(old), int(new)) % 2**32 for new, old in numbers]


@pytest.mark.parametrize("operation, type_, combine", CASES)
def test_bulk_reductions_in_global_memory(operation: str, type_: str, combine: Callable) -> None:
    x, numbers = _given(type_)
    body = f"""
  mov.b32 %r1, s;
  shl.b32 %r3, %t, 2;
  add.u32 %r4, %r1, %r3;
  ld.global.b32 %r6, [%x];
  ld.global.b32 %r7, [%x+4];
  st.shared.b32 [%r4], %r6;
  cvt.u64.u32 %d1, %r3;
  add.s64 %d2, %Y, %d1;
  st.global.b32 [%d2], %r7;
  fence.proxy.async;
  bar.sync 0;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra END;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{type_} [%Y], [%r1], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:"""
    y = run_clean(body, x, shared=SHARED).view(np.uint32)[:COUNT]
    assert y.tolist() == [combine(int(old), int(new)) % 2**32 for new, old in numbers]


def test_stores_of_two_threads_to_one_number() -> None:
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r9], {}, [%r11];"
    for number, finds in (("%t", {"race"}), ("7", set())):
        assert kinds(run(kernel(BEGIN + store.format(number) + END, shared=SHARED))[1]) == finds


@pytest.mark.parametrize(
    "operation, type_, finds",
    [("add", "f32", 0), ("min", "f32", 1), ("and", "f32", 1), ("xor", "i32", 0), ("inc", "i32", 0), ("dec", "i64", 1)],
)
def test_reductions_of_boxes(operation: str, type_: str, finds: int) -> None:
    text = f"""{HEAD}
.visible .entry k(.param .align 64 .b8 M[128])
{{
  .reg .b64 %d1;
  .shared .align 128 .b8 s[128];
  mov.b64 %d1, M;
  cvta.param.u64 %d1, %d1;
  st.shared.b64 [s], 0;
  st.shared.b64 [s+8], 0;
  fence.proxy.async;
  cp.reduce.async.bulk.tensor.1d.global.shared::cta.{operation}.tile.bulk_group [%d1, {{0}}], [s];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}}
"""
    count = 2 if type_ == "i64" else 4
    found = Kernel(parse(text, "k.ptx"), None, "k.ptx").bound(
        from_texts([f"{count}x{type_}[{count}]"]), Launch((1, 1, 1), (1, 1, 1))
    )
    outcome = found.run([np.arange(count).astype(type_.replace("i", "int").replace("f", "float"))])
    assert [finding.kind for finding in outcome.findings] == ["descriptor"] * finds
    if operation != "add" and not finds:
        assert outcome.arguments[0].tolist() == ([0, 1, 2, 3] if operation == "xor" else [0, 0, 0, 0])


@pytest.mark.parametrize(
    "instruction, message",
    [
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r1], %r2, [%r3];",
            "with .f32: expected one of .u32, .s32, .u64, .s64",
        ),
        (
            "red.async.relaxed.gpu.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], 1, [%r3];",
            "expected .cluster",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r1], [%r2], 16,"
            " [%r3];",
            "with .f32: expected one of .u32, .s32, .u64",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%d1], [%r2], 16;",
            "with .f32: expected one of .u32, .s32, .u64, .s64, .f16, .bf16",
        ),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r1], {%d1, %d2, %d3, %d4}, [%r3];",
            "of 4 elements of 64 bits: expected 128 bits at most",
        ),
    ],
)
def test_updates_that_are_refused(instruction: str, message: str) -> None:
    with pytest.raises(StepladderError, match=message):
        run(kernel(f"  {instruction}"))
