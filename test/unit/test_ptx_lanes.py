"""Operands of PTX that differ between threads, or between warps, that execute in step."""

import numpy as np
import pytest

from ptx_kernels import HEAD, Kernel, Launch, from_texts, parse, run_clean

SHARED = ".shared .align 8 .b64 bar;"


def test_warps_in_step_at_different_barriers() -> None:
    y = run_clean(
        """
  shr.u32 %r1, %t, 5;
  add.u32 %r2, %r1, 1;
  setp.lt.u32 %p1, %t, 40;
  bar.red.popc.u32 %r4, %r2, 32, %p1;
  barrier.red.and.pred %p2, %r2, 32, %p1;
  selp.u32 %r5, 100, 0, %p2;
  add.u32 %r4, %r4, %r5;
  cvt.u64.u32 %d1, %r4;
  st.global.b64 [%y], %d1;"""
    )
    assert y.tolist() == 32 * [132] + 32 * [8]


@pytest.mark.parametrize("arrive", ["arrive", "arrive_drop", "arrive.noComplete"])
def test_arrivals_that_count_differently(arrive: str) -> None:
    """Threads arrive once or twice, as a register of each says."""
    last = "  bar.sync 0;\n  @!%p1 mbarrier.arrive.shared.b64 _, [bar];\n" if "noComplete" in arrive else ""
    y = run_clean(
        f"""
  setp.ne.u32 %p1, %t, 0;
  @!%p1 mbarrier.init.shared.b64 [bar], {97 if last else 96};
  bar.sync 0;
  and.b32 %r1, %t, 1;
  add.u32 %r1, %r1, 1;
  mbarrier.{arrive}.shared.b64 %d1, [bar], %r1;
{last}
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
  @!%p2 bra W;
  st.global.b64 [%y], 1;""",
        shared=SHARED,
    )
    assert y.tolist() == 64 * [1]


def test_matrices_of_warps_with_different_strides() -> None:
    registers = ", ".join(f"%f{number}" for number in range(8))
    text = f"""{HEAD}
.visible .entry k(.param .u64 X, .param .u64 Y)
{{
  .reg .b32 %r<5>, %t;
  .reg .f32 %f<8>;
  .reg .b64 %d<4>;
  mov.u32 %t, %tid.x;
  ld.param.u64 %d1, [X];
  ld.param.u64 %d2, [Y];
  shr.u32 %r1, %t, 5;
  add.u32 %r2, %r1, 1;
  shl.b32 %r2, %r2, 4;
  wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {{{registers}}}, [%d1], %r2;
  mad.wide.u32 %d2, %r1, 1024, %d2;
  mov.u32 %r4, 16;
  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d2], {{{registers}}}, %r4;
  ret;
}}
"""
    found = Kernel(parse(text, "k.ptx"), None, "k.ptx").bound(
        from_texts(["512xf32", "2x16x16xf32=0"]), Launch((1, 1, 1), (64, 1, 1))
    )
    x = np.arange(512, dtype=np.float32)
    outcome = found.run([x, np.zeros((2, 16, 16), np.float32)])
    assert not outcome.findings
    assert outcome.arguments[1].tolist() == [x[:256].reshape(16, 16).tolist(), x.reshape(16, 32)[:, :16].tolist()]
