"""A matmul in PTX of one thread an element: what launching, checking and measuring are tested with on a GPU."""

from conftest import make_manifest
from stepladder.bundle import write_bundle

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


def write_naive_bundle(path, problem, products=None) -> None:
    """Writes a bundle whose cubin no driver takes, so that its PTX is used; sums `products` of the K products."""
    start = "ld.global.f32 %f0, [%x0];" if problem.accumulate else "mov.f32 %f0, 0f00000000;"
    ptx = TEMPLATE.format(threads=THREADS, n=problem.n, k=products or problem.k, a_row_bytes=2 * problem.k,
                          b_row_bytes=2 * problem.n, start=start)
    manifest = make_manifest(problem, target="sm_75", grid=(problem.n // THREADS, problem.m, 1), block=(THREADS, 1, 1))
    write_bundle(path, manifest, b"no machine code", ptx, {})
