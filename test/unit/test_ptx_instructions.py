"""What instructions of PTX compute: tables of operands and results."""

from collections.abc import Callable

import numpy as np
import pytest

from ptx_kernels import kernel, kinds, run, run_clean

X = np.arange(64)


def low(y: np.ndarray) -> np.ndarray:
    """Returns the lower 32 bits."""
    return y.view(np.int32)[::2]


def bits(value: float, kind: type = np.float32) -> int:
    return int(np.array([value], kind).view(f"i{np.dtype(kind).itemsize}")[0])


# An instruction of %r0, of %r1 and %r2 (a number a thread each), and what it gives for thread x.
WORDS = [
    ("add.s32 %r0, %r1, 5;", lambda x: x + 5),
    ("sub.u32 %r0, 5, %r1;", lambda x: 5 - x),
    ("add.sat.s32 %r0, %r1, 2147483640;", lambda x: min(x + 2147483640, 2**31 - 1)),
    ("mul.lo.s32 %r0, %r1, -3;", lambda x: -3 * x),
    ("mul.hi.u32 %r0, %r1, 0x80000000;", lambda x: x * 2**31 >> 32),
    ("mul.hi.s32 %r0, %r1, 0x80000000;", lambda x: x * -(2**31) >> 32),
    ("mad.lo.u32 %r0, %r1, %r1, 7;", lambda x: x * x + 7),
    ("mul24.lo.u32 %r0, %r1, 0x1000003;", lambda x: x * 3),
    ("div.s32 %r0, -100, %r2;", lambda x: -(100 // (x + 1))),
    ("div.u32 %r0, -1, %r2;", lambda x: (2**32 - 1) // (x + 1)),
    ("rem.s32 %r0, -100, %r2;", lambda x: -(100 % (x + 1))),
    ("rem.u32 %r0, 100, %r2;", lambda x: 100 % (x + 1)),
    ("min.s32 %r0, %r1, 3;", lambda x: min(x, 3)),
    ("max.u32 %r0, %r1, -1;", lambda x: -1),
    ("min.relu.s32 %r0, %r1, 3;", lambda x: max(min(x, 3), 0)),
    ("max.relu.s32 %r0, -5, -7;", lambda x: 0),
    ("neg.s32 %r0, %r1;", lambda x: -x),
    ("sad.u32 %r0, %r1, 10, 1;", lambda x: abs(x - 10) + 1),
    ("and.b32 %r0, %r1, 12;", lambda x: x & 12),
    ("or.b32 %r0, %r1, 0xF0;", lambda x: x | 0xF0),
    ("xor.b32 %r0, %r1, -1;", lambda x: ~x),
    ("not.b32 %r0, %r1;", lambda x: ~x),
    ("cnot.b32 %r0, %r1;", lambda x: int(x == 0)),
    ("lop3.b32 %r0, %r1, 12, 5, 0x96;", lambda x: x ^ 12 ^ 5),
    ("shl.b32 %r0, 3, %r1;", lambda x: 3 << x if x < 32 else 0),
    ("shr.u32 %r0, 0x80000000, %r1;", lambda x: 2**31 >> x),
    ("shr.s32 %r0, 0x80000000, %r1;", lambda x: -(2**31) >> min(x, 31)),
    ("shf.l.wrap.b32 %r0, 0x80000001, 2, %r1;", lambda x: (2 << 32 | 0x80000001) << (x & 31) >> 32),
    ("shf.r.clamp.b32 %r0, 0x80000001, 2, %r1;", lambda x: (2 << 32 | 0x80000001) >> min(x, 32)),
    ("popc.b32 %r0, %r1;", lambda x: bin(x).count("1")),
    ("clz.b32 %r0, %r1;", lambda x: 32 - x.bit_length()),
    ("brev.b32 %r0, %r1;", lambda x: int(f"{x:032b}"[::-1], 2)),
    ("bfind.u32 %r0, %r1;", lambda x: x.bit_length() - 1),
    ("bfe.u32 %r0, 0xABCD, %r1, 4;", lambda x: 0xABCD >> x & 15),
    ("bfe.s32 %r0, %r1, 2, 3;", lambda x: (x >> 2 & 7) - (8 if x >> 2 & 4 else 0)),
    ("bfi.b32 %r0, %r1, 0xF0F0, 4, 6;", lambda x: 0xF0F0 & ~0x3F0 | (x & 63) << 4),
    ("szext.clamp.s32 %r0, %r1, 3;", lambda x: (x & 7) - (8 if x & 4 else 0)),
    (
        "szext.wrap.s32 %r0, 0xABCD, %r1;",
        lambda x: (0xABCD & (1 << x % 32) - 1) - ((0xABCD << 1 & 1 << x % 32) and 1 << x % 32),
    ),
    ("setp.lt.f16x2 %p1, %r1, 0x3C000005; selp.u32 %r0, 1, 0, %p1;", lambda x: int(x < 5)),  # of the lower halves
    ("bmsk.wrap.b32 %r0, %r1, 5;", lambda x: (0x1F << x % 32) & 0xFFFFFFFF),
    ("mad24.hi.sat.s32 %r0, 0x7FFFFF, 0x7FFFFF, 0x7FFFFFFF;", lambda x: 2**31 - 1),
    ("bmsk.clamp.b32 %r0, %r1, 5;", lambda x: (0x1F << x) & 0xFFFFFFFF),
    ("bmsk.clamp.b32 %r0, %r1, 256;", lambda x: (0xFFFFFFFF << x) & 0xFFFFFFFF),
    ("bmsk.clamp.b32 %r0, 0x100, %r1;", lambda x: 0),
    ("dp4a.s32.s32 %r0, 0x01FF0203, 0x04050607, %r1;", lambda x: 1 * 4 + -1 * 5 + 2 * 6 + 3 * 7 + x),
    ("dp2a.lo.u32.u32 %r0, 0x00020003, 0x00000504, %r1;", lambda x: 3 * 4 + 2 * 5 + x),
    ("prmt.b32 %r0, 0x33221100, 0x77665544, 0x7531;", lambda x: 0x77553311),
    ("selp.b32 %r0, 1, 2, %p1;", lambda x: 1 if x < 5 else 2),
    ("slct.s32.s32 %r0, 1, 2, -1;", lambda x: 2),
    ("set.lt.u32.u32 %r0, %r1, 5;", lambda x: -1 if x < 5 else 0),
    ("set.lt.f32.u32 %r0, %r1, 5;", lambda x: bits(1.0) if x < 5 else 0),
    ("cvt.u32.u16 %r0, %h1;", lambda x: x),
    ("cvt.s32.s8 %r0, %r3;", lambda x: (x * 4 & 255) - (256 if x * 4 & 128 else 0)),
    ("cvt.rn.f32.s32 %r0, %r1;", lambda x: bits(x)),
    ("cvt.rz.f32.s32 %r0, 0x7FFFFFFF;", lambda x: 0x4EFFFFFF),
    ("cvt.rz.f32.s32 %r0, 0x80000001;", lambda x: 0xCEFFFFFF),
    ("min.f32 %r0, 0f80000000, 0f00000000;", lambda x: 0x80000000),
    ("min.f32 %r0, 0f00000000, 0f80000000;", lambda x: 0x80000000),
    ("max.NaN.f32 %r0, 0f00000000, 0f80000000;", lambda x: 0),
    ("cvt.rzi.s32.f32 %r0, 0fC0200000;", lambda x: -2),
    ("cvt.rni.u32.f32 %r0, 0fC0200000;", lambda x: 0),
    ("cvt.rmi.f32.f32 %r0, 0fC0200000;", lambda x: bits(-3.0)),
    ("cvt.rzi.s32.f32 %r0, 0f7FC00000;", lambda x: 0),
    ("cvt.sat.s8.s32 %r0, 300;", lambda x: 127),
    ("cvt.rn.f16x2.f32 %r0, 0f3F800000, 0f40000000;", lambda x: bits(1.0, np.float16) << 16 | bits(2.0, np.float16)),
    ("cvt.rn.bf16x2.f32 %r0, 0f3F800000, 0f40000000;", lambda x: 0x3F804000),
    ("cvt.rna.tf32.f32 %r0, 0f3F801000;", lambda x: 0x3F802000),
    ("cvt.u32.u64 %r0, %o;", lambda x: 8 * x),
    ("add.f32 %r0, %r4, 0f3F000000;", lambda x: bits(x + 0.5)),
    ("mul.rn.f32 %r0, %r4, %r4;", lambda x: bits(x * x)),
    ("fma.rn.f32 %r0, %r4, %r4, 0fBF800000;", lambda x: bits(x * x - 1)),
    ("div.rn.f32 %r0, %r4, 0f40400000;", lambda x: bits(np.float32(x) / np.float32(3))),
    ("neg.f32 %r0, %r4;", lambda x: bits(-float(x))),
    ("abs.f32 %r0, 0fBF800000;", lambda x: bits(1.0)),
    ("max.f32 %r0, %r4, 0f7FC00000;", lambda x: bits(x)),
    ("max.f32 %r0, 0fFFC00001, 0f7FC00002;", lambda x: 0x7FFFFFFF),
    ("sub.f32 %r0, 0f7F800000, 0f7F800000;", lambda x: 0x7FFFFFFF),
    ("fma.rn.f32 %r0, 0fFFC12345, %r4, %r4;", lambda x: 0x7FFFFFFF),
    ("sqrt.rn.f32 %r0, 0fBF800000;", lambda x: 0x7FFFFFFF),
    ("abs.f32 %r0, 0fFFC12345;", lambda x: 0x7FC12345),
    ("add.f16x2 %r0, 0x7E013C00, 0x3C003C00;", lambda x: 0x7FFF4000),
    ("cvt.rn.f16x2.f32 %r0, 0fFFC12345, 0f3F800000;", lambda x: 0x7FFF3C00),
    ("cvt.rn.bf16x2.f32 %r0, 0f7F800001, 0f3F800000;", lambda x: 0x7FFF3F80),
    ("cvt.rna.tf32.f32 %r0, 0fFFC12345;", lambda x: 0x7FFFFFFF),
    ("sqrt.rn.f32 %r0, %r4;", lambda x: bits(np.sqrt(np.float32(x)))),
    ("ex2.approx.ftz.f32 %r0, 0f40000000;", lambda x: bits(4.0)),
    ("add.f16x2 %r0, 0x3C003C00, 0x40003C00;", lambda x: bits(3.0, np.float16) << 16 | bits(2.0, np.float16)),
    ("add.s16x2 %r0, 0x00017FFF, 0xFFFF0001;", lambda x: 0x00008000),
    ("add.u16x2 %r0, %r1, 0xFFFF0001;", lambda x: (0xFFFF << 16) | ((x + 1) & 0xFFFF)),
    ("min.s16x2 %r0, 0x80000005, 0x0001FFFF;", lambda x: 0x8000FFFF),
    ("max.u16x2 %r0, 0x80000005, 0x0001FFFF;", lambda x: 0x8000FFFF),
    ("max.relu.s16x2 %r0, 0x8000FFF0, 0x0005FFFF;", lambda x: 0x00050000),
    ("fma.rn.relu.f16x2 %r0, 0xBC003C00, 0x3C003C00, 0;", lambda x: 0x00003C00),
    ("vabsdiff4.u32.u32.u32.add %r0, 0x01FF0020, 0x03FE1000, %r1;", lambda x: 2 + 1 + 16 + 32 + x),
    ("vadd2.s32.s32.s32.sat %r0, 0x7FFF8000, 0x0001FFFF, 0;", lambda x: 0x7FFF8000),
    ("vmax4.s32.s32.s32 %r0, 0x80FF017F, 0x7F000280, 0;", lambda x: 0x7F00027F),
    ("vset2.u32.u32.lt %r0, 0x00010005, 0x00020004, 0;", lambda x: 0x00010000),
    ("copysign.f32 %r0, 0f80000000, %r4;", lambda x: bits(-float(x))),
    ("mov.b32 %r0, {%h1, %h1};", lambda x: x << 16 | x),
    ("mov.b32 %r0, %laneid;", lambda x: x % 32),
    ("mov.u32 %r0, %ntid.x;", lambda x: 64),
    ("mov.u32 %r0, %lanemask_lt;", lambda x: (1 << x % 32) - 1),
    ("mov.u32 %r0, WARP_SZ;", lambda x: 32),
    ("shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;", lambda x: x ^ 1),
    ("shfl.sync.bfly.b32 %r0, %r1, 0x81, 31, -1;", lambda x: x ^ 1),
    ("shfl.sync.idx.b32 %r0, %r1, 0x21, 31, -1;", lambda x: x - x % 32 + 1),
    ("shfl.sync.down.b32 %r0, %r1, 32, 31, -1;", lambda x: x),
    ("shfl.sync.down.b32 %r0, %r1, 4, 0x1807, -1;", lambda x: x + 4 if x % 8 < 4 else x),
    ("vote.sync.ballot.b32 %r0, %p1, -1;", lambda x: 31 if x < 32 else 0),
    ("match.any.sync.b32 %r0, %r5, -1;", lambda x: 0x11111111 << x % 4),
    ("redux.sync.add.s32 %r0, %r1, -1;", lambda x: sum(range(32)) + (1024 if x >= 32 else 0)),
    ("redux.sync.max.u32 %r0, %r1, -1;", lambda x: 31 if x < 32 else 63),
    ("activemask.b32 %r0;", lambda x: -1),
    ("elect.sync %r0|%p2, -1;", lambda x: 0),
    ("movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r6;", None),
    ("@%p1 add.s32 %r0, %r1, 100;", lambda x: x + 100 if x < 5 else -7),
    ("@!%p1 mov.b32 %r0, 3;", lambda x: -7 if x < 5 else 3),
    # 0xffffffff + x, and its carry; a borrow; x (2^32 - 1) + (2^32 - 1) in two halves, of which the upper one is x.
    ("add.cc.u32 %r2, %r1, -1; addc.u32 %r0, %r1, 10;", lambda x: x + 10 + (x > 0)),
    ("sub.cc.u32 %r2, %r1, 5; subc.u32 %r0, 7, 0;", lambda x: 7 - (x < 5)),
    ("sub.cc.u32 %r2, %r1, 5; addc.u32 %r0, 7, 0;", lambda x: 7 + (x >= 5)),
    ("add.cc.u32 %r2, %r1, -5; subc.u32 %r0, 7, 0;", lambda x: 6 + (x >= 5)),
    ("mad.lo.cc.u32 %r2, %r1, -1, -1; madc.hi.u32 %r0, %r1, -1, 0;", lambda x: x),
    ("mad.hi.cc.s32 %r2, %r1, -1, 1; addc.s32 %r0, 3, 0;", lambda x: 3 + (x > 0)),
    ("add.rz.f32 %r0, 0f3F800000, 0f33C00000;", lambda x: bits(1.0)),
    ("add.rp.f32 %r0, 0f3F800000, 0f2F800000;", lambda x: bits(1.0 + 2.0**-23)),
    ("sub.rm.f32 %r0, 0f3F800000, 0f2F800000;", lambda x: bits(1.0 - 2.0**-24)),
    ("mul.rz.f32 %r0, 0f3F7FFFFF, 0f3F7FFFFF;", lambda x: bits((1 - 2.0**-24) - 2.0**-24)),
    ("mul.rp.f32 %r0, 0f80000000, 0f3F800000;", lambda x: -(2**31)),
    ("isspacep.global %p2, %x; selp.b32 %r0, 1, 0, %p2;", lambda x: 0 + 1),
    ("isspacep.shared %p2, 16; selp.b32 %r0, 1, 0, %p2;", lambda x: 1),
    ("testp.finite.f32 %p2, 0f7F800000; selp.b32 %r0, 1, 0, %p2;", lambda x: 0),
    # The number that is subnormal is 0 with .ftz; NaN and -0 are 0 with .sat.
    ("setp.eq.ftz.f32 %p2, 0f80000001, 0f00000000; selp.b32 %r0, 1, 0, %p2;", lambda x: 1),
    ("setp.eq.f32 %p2, 0f80000001, 0f00000000; selp.b32 %r0, 1, 0, %p2;", lambda x: 0),
    ("slct.ftz.s32.f32 %r0, 5, 7, 0f80000001;", lambda x: 5),
    ("slct.s32.f32 %r0, 5, 7, 0f80000001;", lambda x: 7),
    ("cvt.ftz.f32.f32 %r0, 0f80000001;", lambda x: 0x80000000),
    ("cvt.rpi.ftz.u32.f32 %r0, 0f00000001;", lambda x: 0),
    ("cvt.rpi.u32.f32 %r0, 0f00000001;", lambda x: 1),
    ("cvt.sat.f32.f32 %r0, 0f80000000;", lambda x: 0),
    ("add.sat.f32 %r0, 0f80000000, 0f80000000;", lambda x: 0),
    ("cvt.rzi.s32.f64 %r0, 0d7FF8000000000000;", lambda x: -(2**31)),
    ("cvt.rzi.u32.f64 %r0, 0d7FF8000000000000;", lambda x: 2**31),
    ("cvt.rm.f32.s32 %r0, 0x7FFFFFFF;", lambda x: bits(2.0**31 - 128)),
    ("cvt.rp.f32.s32 %r0, 0x80000001;", lambda x: bits(-(2.0**31 - 128))),
    ("cvt.rp.f32.u64 %r0, 0x8000000000000001;", lambda x: bits(2.0**63 + 2.0**40)),
    ("cvt.rz.f32.s64 %r0, 0x8000000000000001;", lambda x: bits(-(2.0**63 - 2.0**39))),
    ("cvt.rp.f32.f64 %r0, 0d3FF0000000000001;", lambda x: bits(1 + 2.0**-23)),
    ("cvt.rp.sat.f32.f64 %r0, 0d3FE0000000000001;", lambda x: bits(0.5 + 2.0**-24)),
    ("div.rz.f32 %r0, 0f40000000, 0f40400000;", lambda x: 0x3F2AAAAA),
    ("div.rp.f32 %r0, 0fBF800000, 0f40400000;", lambda x: bits(np.float32(-1) / np.float32(3)) - 1),
    ("rcp.rm.f32 %r0, 0f40400000;", lambda x: 0x3EAAAAAA),
    ("rcp.rp.f32 %r0, 0f00000000;", lambda x: 0x7F800000),
    ("sqrt.rm.f32 %r0, 0f40000000;", lambda x: 0x3FB504F3),
    ("sqrt.rp.f32 %r0, 0f40000000;", lambda x: 0x3FB504F4),
    ("min.xorsign.abs.f32 %r0, 0f40400000, 0fC0000000;", lambda x: bits(-2.0)),
    ("set.lt.and.u32.u32 %r0, %r1, 9, %p1;", lambda x: -1 if x < 5 else 0),
    ("set.gt.f16x2.f16x2 %r0, 0x40003C00, 0x3C003C00;", lambda x: 0x3C000000),
    ("set.ge.u32.bf16x2 %r0, 0x40003F80, 0x3F804000;", lambda x: 0xFFFF0000),
    ("lop3.or.b32 %r0|%p2, %r1, 12, 0, 0xC0, %p1; selp.b32 %r0, 1, 0, %p2;", lambda x: int(x & 12 != 0 or x < 5)),
    ("lop3.and.b32 %r0|%p2, %r1, 12, 0, 0xC0, %p1; selp.b32 %r0, 1, 0, %p2;", lambda x: int(x == 4)),
    ("mad.hi.sat.s32 %r0, 0x40000000, 0x40000000, 0x7FFFFFF0;", lambda x: 2**31 - 1),
    ("prmt.b32.f4e %r0, 0x33221100, 0x77665544, 3;", lambda x: 0x66554433),
    ("prmt.b32.b4e %r0, 0x33221100, 0x77665544, %r5;", lambda x: [0x55667700, 0x66770011, 0x77001122, 0x112233][x % 4]),
    ("prmt.b32.rc8 %r0, 0x33221100, 0, 2;", lambda x: 0x22222222),
    ("prmt.b32.ecl %r0, 0x33221100, 0, 2;", lambda x: 0x33222222),
    ("prmt.b32.ecr %r0, 0x33221100, 0, %r5;", lambda x: [0, 0x11111100, 0x22221100, 0x33221100][x % 4]),
    ("prmt.b32.rc16 %r0, 0x33221100, 0, 1;", lambda x: 0x33223322),
    ("fns.b32 %r0, 0x00010110, 5, %r5;", lambda x: [-1, 8, 16, -1][x % 4]),
    ("fns.b32 %r0, 0x00010110, 8, -2;", lambda x: 4),
    ("fns.b32 %r0, 0x00010110, 8, 0;", lambda x: 8),
    ("cvt.pack.sat.s8.s32.b32 %r0, -300, %r1, 0x00050007;", lambda x: 0x00070000 | 0x80 << 8 | x),
    ("cvt.pack.sat.s4.s32.b32 %r0, -300, %r1, 0x12;", lambda x: 0x12 << 8 | 8 << 4 | min(x, 7)),
    ("cvt.pack.sat.u2.s32.b32 %r0, 9, %r1, 5;", lambda x: 5 << 4 | 3 << 2 | min(x, 3)),
    ("cvt.pack.sat.u16.s32 %r0, 70000, -5;", lambda x: 0xFFFF0000),
]
GIVEN = """
  mov.b32 %r0, -7;
  mov.b32 %r1, %t;
  add.s32 %r2, %t, 1;
  cvt.u16.u32 %h1, %t;
  shl.b32 %r3, %t, 2;
  cvt.rn.f32.u32 %r4, %t;
  and.b32 %r5, %t, 3;
  shl.b32 %r6, %t, 1;
  setp.lt.u32 %p1, %t, 5;
"""


@pytest.mark.parametrize("text, wanted", WORDS, ids=[row[0] for row in WORDS])
def test_words(text: str, wanted: Callable[..., object] | None) -> None:
    y = low(run_clean(f"{GIVEN}\n  {text}\n  st.global.b32 [%y], %r0;"))
    if wanted is None:  # element (i, j) of a warp's matrix is half of 2 (4 i + j / 2), in the thread's lower bits
        threads = np.arange(32)
        matrix = np.zeros((8, 8), np.int16)
        matrix[threads // 4, threads % 4 * 2] = 2 * threads
        expected = np.ascontiguousarray(matrix.T).reshape(-1).view(np.int32)
        assert np.array_equal(y[:32], expected)
        return
    expected = [(wanted(int(x)) + 2**31) % 2**32 - 2**31 for x in X]
    assert y.tolist() == expected


# The same with 64 bits: %d0 of %d1.
LONGS = [
    ("add.s64 %d0, %d1, -1;", lambda x: x - 1),
    ("mul.wide.u32 %d0, %r1, -1;", lambda x: x * (2**32 - 1)),
    ("mul.wide.s32 %d0, %r1, -1;", lambda x: -x),
    ("mad.wide.s32 %d0, %r1, -2, %d1;", lambda x: -x),
    ("mul.lo.s64 %d0, %d1, 0x100000001;", lambda x: x * 0x100000001),
    ("mul.hi.u64 %d0, %d1, -1;", lambda x: x * (2**64 - 1) >> 64),
    ("mad.lo.s64 %d0, %d1, 320, 0x7fffffffffffff00;", lambda x: x * 320 + 0x7FFFFFFFFFFFFF00),
    ("div.s64 %d0, %d1, -3;", lambda x: -(x // 3)),
    ("shl.b64 %d0, 1, %r1;", lambda x: 1 << x),
    ("shr.u64 %d0, -1, %r1;", lambda x: (2**64 - 1) >> x),
    ("popc.b64 %r0, -1; cvt.u64.u32 %d0, %r0;", lambda x: 64),
    ("bfe.u64 %d0, -1, 3, %r1;", lambda x: (1 << min(x, 61)) - 1),
    ("bfi.b64 %d0, -1, 0, 60, 8;", lambda x: 15 << 60),
    ("cvt.s64.s32 %d0, -5;", lambda x: -5),
    ("cvt.u64.u32 %d0, -5;", lambda x: 2**32 - 5),
    ("cvt.rn.f64.s64 %d0, %d1;", lambda x: bits(x, np.float64)),
    ("cvt.rzi.u64.f64 %d0, 0d7FF0000000000000;", lambda x: 2**64 - 1),
    ("fma.rn.f64 %d0, 0d4000000000000000, 0d4008000000000000, 0d3FF0000000000000;", lambda x: bits(7, np.float64)),
    ("add.rz.f64 %d0, 0d3FF0000000000000, 0d3CA8000000000000;", lambda x: bits(1, np.float64)),
    ("add.rp.f64 %d0, 0d3FF0000000000000, 0d3C00000000000000;", lambda x: bits(1 + 2.0**-52, np.float64)),
    ("sub.rm.f64 %d0, 0d3FF0000000000000, 0d3C00000000000000;", lambda x: bits(1 - 2.0**-53, np.float64)),
    ("mul.rz.f64 %d0, 0dFFE0000000000000, 0d7FE0000000000000;", lambda x: bits(-np.finfo(float).max, np.float64)),
    ("add.cc.s64 %d2, %d1, -1; addc.s64 %d0, %d1, 10;", lambda x: x + 10 + (x > 0)),
    ("sub.cc.u64 %d2, %d1, 5; subc.u64 %d0, 7, 0;", lambda x: 7 - (x < 5)),
    ("sub.cc.u64 %d2, %d1, 5; addc.u64 %d0, 7, 0;", lambda x: 7 + (x >= 5)),
    ("mad.lo.cc.u64 %d2, %d1, -1, -1; madc.hi.u64 %d0, %d1, -1, 0;", lambda x: x),
    ("cvt.rzi.s64.f32 %d0, 0f7FC00000;", lambda x: -(2**63)),
    ("cvt.rm.f64.s64 %d0, 0x7FFFFFFFFFFFFFFF;", lambda x: bits(2.0**63 - 1024, np.float64)),
    ("div.rp.f64 %d0, 0d3FF0000000000000, 0d4008000000000000;", lambda x: bits(1 / 3, np.float64) + 1),
    ("sqrt.rz.f64 %d0, 0d4008000000000000;", lambda x: bits(np.sqrt(3.0), np.float64)),
    ("mov.b64 %d0, {%r1, 2};", lambda x: 2 << 32 | x),
    ("mov.b64 {%r1, %r2}, 0x500000004; cvt.u64.u32 %d0, %r2;", lambda x: 5),
    ("selp.b64 %d0, %d1, -1, %p1;", lambda x: x if x < 5 else -1),
    ("setp.ge.and.u64 %p2|%p3, %d1, 3, %p1; selp.b64 %d0, 1, 0, %p2;", lambda x: int(3 <= x < 5)),
    ("setp.gt.u64 %p2, %d1, -1; selp.b64 %d0, 1, 0, %p2;", lambda x: 0),
    ("setp.neu.f32 %p2, 0f7FC00000, 0f7FC00000; selp.b64 %d0, 1, 0, %p2;", lambda x: 1),
    ("setp.lt.f32 %p2, 0f7FC00000, 0f7FC00000; selp.b64 %d0, 1, 0, %p2;", lambda x: 0),
    ("match.all.sync.b64 %r0|%p2, 7, -1; selp.b64 %d0, 1, 0, %p2;", lambda x: 1),
    ("vote.sync.any.pred %p2, %p1, -1; selp.b64 %d0, 1, 0, %p2;", lambda x: int(x < 32)),
    ("xor.pred %p2, %p1, 1; selp.b64 %d0, 1, 0, %p2;", lambda x: int(x >= 5)),
]


@pytest.mark.parametrize("text, wanted", LONGS, ids=[row[0] for row in LONGS])
def test_longs(text: str, wanted: Callable[..., object]) -> None:
    y = run_clean(f"{GIVEN}\n  cvt.u64.u32 %d1, %t;\n  {text}\n  st.global.b64 [%y], %d0;")
    assert y.tolist() == [(wanted(int(x)) + 2**63) % 2**64 - 2**63 for x in X]


@pytest.mark.parametrize("text, wanted", [row for row in WORDS if "%t" not in row[0] and row[1]], ids=lambda row: "")
def test_words_of_one_number(text: str, wanted: Callable[..., object]) -> None:
    """The same with operands that all threads have alike: numbers that are computed once."""
    alike = GIVEN.replace("%t", "3")
    y = low(run_clean(f"{alike}\n  {text}\n  st.global.b32 [%y], %r0;"))
    if not any(name in text for name in ("sync", "laneid", "lanemask", "activemask", "%o")):
        assert set(y.tolist()) == {(wanted(3) + 2**31) % 2**32 - 2**31}


def test_loads_and_stores_of_all_sizes() -> None:
    y = run_clean(
        """
  ld.global.s8 %r1, [%x];
  ld.global.b8 %h2, [%x];
  st.global.b16 [%y], %h2;
  st.global.b8 [%y+2], %r1;
  st.global.b8 [%y+3], 0;
  ld.global.nc.L1::no_allocate.v2.b16 {%h3, %h4}, [%x];
  ld.global.u8 %h5, [%x];
  st.global.v2.u16 [%y+4], {%h3, %h5};""",
        np.array([0x80]),
    )
    assert set(y.tolist()) == {0x80 | 0x80 << 16 | 0x80 << 32 | 0x80 << 48}


def test_vectors_in_shared_local_and_global_memory() -> None:
    y = run_clean(
        """
  shl.b32 %r1, %t, 4;
  mov.b32 %r2, s;
  add.s32 %r2, %r2, %r1;
  st.shared.v4.b32 [%r2], {%t, 1, 2, %t};
  mov.b64 %d1, here;
  cvta.local.u64 %d1, %d1;
  ld.shared.v2.b64 {%d2, %d3}, [%r2];
  st.local.b64 [here+8], %d3;
  ld.b64 %d4, [%d1+8];
  ld.const.b32 %r5, [two];
  st.global.b64 [%y], %d4;""",
        shared=".shared .align 16 .b8 s[1024]; .local .align 8 .b8 here[16]; .const .u32 two = 2;",
    )
    assert y.tolist() == [x << 32 | 2 for x in range(64)]


def test_a_loop_that_threads_leave_one_after_the_other() -> None:
    y = run_clean(
        """
  mov.b32 %r1, 0;
  mov.b32 %r2, 0;
LOOP:
  add.s32 %r1, %r1, %r2;
  add.s32 %r2, %r2, 1;
  setp.le.u32 %p1, %r2, %t;
  @%p1 bra LOOP;
  setp.gt.u32 %p2, %t, 40;
  @!%p2 bra SMALL;
  neg.s32 %r1, %r1;
  bra.uni DONE;
SMALL:
  { .reg .b32 more; mov.b32 more, 1000; add.s32 %r1, %r1, more; }
DONE:
  cvt.s64.s32 %d1, %r1;
  st.global.b64 [%y], %d1;"""
    )
    sums = [x * (x + 1) // 2 for x in range(64)]
    assert y.tolist() == [-s if x > 40 else s + 1000 for x, s in enumerate(sums)]


def test_threads_that_end_early() -> None:
    y = run_clean("  setp.lt.u32 %p1, %t, 10;\n  @%p1 exit;\n  st.global.b64 [%y], 5;")
    assert y.tolist() == [-1] * 10 + [5] * 54


# Branches by a table.

TABLE = """
  and.b32 %r1, %t, 3;
  {index}
  mov.u64 %d1, 7;
  $targets: .branchtargets
    $even,
    $odd,
    $even,
    $last;
  {guard}brx.idx %r1, $targets;
  bra $end;
$even:
  mov.u64 %d1, 10;
  bra $end;
$odd:
  mov.u64 %d1, 11;
  bra $end;
$last:
  mov.u64 %d1, 13;
$end:
  bar.sync 0;
  st.global.b64 [%y], %d1;
"""


def test_a_branch_by_a_table() -> None:
    """Threads that part by a table meet behind it; a guard leaves threads where they are."""
    every = np.resize([10, 11, 10, 13], 64)
    assert np.array_equal(run_clean(TABLE.format(index="", guard="")), every)
    guarded = TABLE.format(index="setp.lt.u32 %p1, %t, 40;", guard="@%p1 ")
    assert np.array_equal(run_clean(guarded), np.where(np.arange(64) < 40, every, 7))


def test_an_index_beyond_a_table_is_a_finding() -> None:
    _, outcome = run(kernel(TABLE.format(index="or.b32 %r1, %r1, 4;", guard="")))
    assert kinds(outcome) == {"assumption"}
