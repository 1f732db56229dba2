"""Matmuls in PTX of one thread an element: what launching, checking and measuring are tested with on a GPU."""

from dataclasses import replace
from pathlib import Path

from conftest import make_descriptor, make_manifest
from stepladder.runtime.bundle import Bundle, write_bundle
from stepladder.runtime.problem import Problem

THREADS = 64

TEMPLATE = """\
.version 7.0
.target sm_75
.address_size 64

.visible .entry matmul(.param .u64 c, .param .u64 a, .param .u64 b)
{{
  .reg .pred %p<1>; .reg .b16 %h<2>; .reg .f32 %f<3>; .reg .b32 %r<6>; .reg .b64 %x<6>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r0, {threads}, %r1;  // column
  mov.u32 %r3, %ctaid.y;  // row
  ld.param.u64 %x0, [c];
  ld.param.u64 %x1, [a];
  ld.param.u64 %x2, [b];
  cvta.to.global.u64 %x0, %x0;
  cvta.to.global.u64 %x1, %x1;
  cvta.to.global.u64 %x2, %x2;
  mad.lo.u32 %r4, %r3, {n}, %r2;
  mad.wide.u32 %x0, %r4, 4, %x0;
  mad.wide.u32 %x1, %r3, {a_row_bytes}, %x1;
  mad.wide.u32 %x2, %r2, 2, %x2;
  {start}
  mov.u32 %r5, {k};
loop:
  ld.global.b16 %h0, [%x1];
  ld.global.b16 %h1, [%x2];
  cvt.f32.f16 %f1, %h0;
  cvt.f32.f16 %f2, %h1;
  fma.rn.f32 %f0, %f1, %f2, %f0;
  add.u64 %x1, %x1, 2;
  add.u64 %x2, %x2, {b_row_bytes};
  sub.u32 %r5, %r5, 1;
  setp.ne.u32 %p0, %r5, 0;
  @%p0 bra loop;
  st.global.f32 [%x0], %f0;
  ret;
}}
"""


def write_naive_bundle(path: Path, problem: Problem, products: int | None = None) -> None:
    """Writes a bundle whose cubin no driver takes, so that its PTX is used; sums `products` of the K products."""
    start = "ld.global.f32 %f0, [%x0];" if problem.accumulate else "mov.f32 %f0, 0f00000000;"
    ptx = TEMPLATE.format(
        threads=THREADS,
        n=problem.n,
        k=products or problem.k,
        a_row_bytes=2 * problem.k,
        b_row_bytes=2 * problem.n,
        start=start,
    )
    manifest = make_manifest(problem, target="sm_75", grid=(problem.n // THREADS, problem.m, 1), block=(THREADS, 1, 1))
    write_bundle(path, manifest, b"no machine code", ptx, {})


# Each block has TMA fetch its row of A. Blocks run in clusters of two, and wait for the kernel before them.
HOPPER_TEMPLATE = """\
.version 8.0
.target sm_90
.address_size 64

.visible .entry matmul(.param .u64 c, .param .align 64 .b8 a[128], .param .u64 b)
.reqnctapercluster 2, 1, 1
{{
  .reg .pred %p<3>; .reg .b16 %h<2>; .reg .f32 %f<3>; .reg .b32 %r<8>; .reg .b64 %x<4>;
  .shared .align 128 .b8 row[512];
  .shared .align 8 .b64 barrier;
  griddepcontrol.wait;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r0, {threads}, %r1;  // column
  mov.u32 %r3, %ctaid.y;  // row
  mov.u32 %r6, row;
  mov.u32 %r7, barrier;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra ready;
  mbarrier.init.shared::cta.b64 [%r7], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
  mov.b64 %x3, a;
  cvta.param.u64 %x3, %x3;
  mov.u32 %r5, 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], {a_row_bytes};
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%x3, {{%r5, %r3}}], [%r7];
ready:
  bar.sync 0;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], 0;
  @!%p2 bra wait;
  ld.param.u64 %x0, [c];
  ld.param.u64 %x2, [b];
  cvta.to.global.u64 %x0, %x0;
  cvta.to.global.u64 %x2, %x2;
  mad.lo.u32 %r4, %r3, {n}, %r2;
  mad.wide.u32 %x0, %r4, 4, %x0;
  mad.wide.u32 %x2, %r2, 2, %x2;
  ld.global.f32 %f0, [%x0];
  mov.u32 %r5, {k};
loop:
  ld.shared.b16 %h0, [%r6];
  ld.global.b16 %h1, [%x2];
  cvt.f32.f16 %f1, %h0;
  cvt.f32.f16 %f2, %h1;
  fma.rn.f32 %f0, %f1, %f2, %f0;
  add.u32 %r6, %r6, 2;
  add.u64 %x2, %x2, {b_row_bytes};
  sub.u32 %r5, %r5, 1;
  setp.ne.u32 %p0, %r5, 0;
  @%p0 bra loop;
  st.global.f32 [%x0], %f0;
  ret;
}}
"""


def hopper_bundle(path: Path, problem: Problem, **changes: tuple[int, int, int]) -> Bundle:
    """A bundle of C = AB + C with a TMA descriptor, clusters and dependent launches; K up to 256; not written.

    Its target is older than its PTX, so that Hopper's driver goes straight to the PTX.
    """
    ptx = HOPPER_TEMPLATE.format(
        threads=THREADS, n=problem.n, k=problem.k, a_row_bytes=2 * problem.k, b_row_bytes=2 * problem.n
    )
    manifest = make_manifest(
        problem,
        target="sm_80",
        grid=(problem.n // THREADS, problem.m, 1),
        block=(THREADS, 1, 1),
        cluster=(2, 1, 1),
        dependent_launch=True,
        static_shared_memory=520,
    )
    arguments = tuple(replace(item, descriptor=0 if item.role == "a" else None) for item in manifest.arguments)
    descriptor = make_descriptor("a", problem.a_shape, box=(1, problem.k), l2_promotion="128b")
    changed = replace(manifest, **{"arguments": arguments, "tma_descriptors": (descriptor,), **changes})
    return Bundle(path, changed, b"no machine code", ptx)
