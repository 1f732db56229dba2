"""XeTile programs, from the text of the RFC, with their references in NumPy: products of tiles."""

from __future__ import annotations

import numpy as np

from tile_writer import Value, Writer, Written, program, wide


@program
def wg_small_layout() -> Written:
    """2x2 subgroups, each 16x32 of 32x64, ragged."""
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 32)), ((2, 2), (16, 32))
    w = Writer({"a": "memref<40x72xf16>", "b": "memref<72x104xf16>", "c": "memref<40x104xf32>"}, (2, 2, 1), 4)
    i, j = w.times("%wy", 32), w.times("%wx", 64)
    s = w.gemm("a", "b", i, j, 72, (32, 64, 32), (wa, wb, wc))
    w.store(s, w.tile("c", [i, j], (32, 64), "f32", wg=wc))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def wg_round_robin() -> Written:
    """C 64x64 by 2x2 subgroups of 16x16: two rounds."""
    wa, wb, wc = ((2, 2), (16, 16)), ((2, 2), (16, 16)), ((2, 2), (16, 16))
    w = Writer({"a": "memref<64x48xbf16>", "b": "memref<48x64xbf16>", "c": "memref<64x64xf32>"}, (1, 1, 1), 4)
    s = w.gemm("a", "b", w.number(0), w.number(0), 48, (64, 64, 16), (wa, wb, wc), element="bf16")
    w.store(s, w.tile("c", [0, 0], (64, 64), "f32", wg=wc))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def wg_wrap_single_row() -> Written:
    """Sg_layout [1,4], A shared by all."""
    wa, wb, wc = ((1, 4), (8, 32)), ((1, 4), (32, 16)), ((1, 4), (8, 16))
    w = Writer({"a": "memref<20x64xf16>", "b": "memref<64x96xf16>", "c": "memref<20x96xf32>"}, (2, 3, 1), 4)
    i, j = w.times("%wy", 8), w.times("%wx", 64)
    s = w.gemm("a", "b", i, j, 64, (8, 64, 32), (wa, wb, wc))
    w.store(s, w.tile("c", [i, j], (8, 64), "f32", wg=wc))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def sg_column_a() -> Written:
    """A stored column-major."""
    w = Writer({"a": "memref<64x40xf16>", "b": "memref<64x48xf16>", "c": "memref<40x48xf32>"}, (3, 3, 1), 1)
    v = w.view("a", "memref<40x64xf16, strided<[1, 40]>>")
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    s = w.gemm(v, "b", i, j, 64, (16, 16, 32), columns=(True, False))
    w.store(s, w.tile("c", [i, j], (16, 16), "f32"))
    return w, lambda a, b, c: [wide(a).T @ wide(b)]


@program
def sg_both_columns_store_column() -> Written:
    w = Writer({"a": "memref<64x48xf16>", "b": "memref<48x64xf16>", "c": "memref<48x48xf32>"}, (2, 3, 1), 1)
    va = w.view("a", "memref<48x64xf16, strided<[1, 48]>>")
    vb = w.view("b", "memref<64x48xf16, strided<[1, 64]>>")
    vc = w.view("c", "memref<48x48xf32, strided<[1, 48]>>")
    i, j = w.times("%wy", 16), w.times("%wx", 32)
    s = w.gemm(va, vb, i, j, 64, (16, 32, 16), columns=(True, True))
    w.store(s, w.tile(vc, [i, j], (16, 32), "f32", column=True))
    return w, lambda a, b, c: [(wide(a).T @ wide(b).T).T]


@program
def address_b() -> Written:
    """B by address with given shape."""
    w = Writer({"a": "memref<32x64xf16>", "b": "memref<64x80xf16>", "c": "memref<32x80xf32>"}, (5, 2, 1), 1)
    w.outside += [
        "%ptr = memref.extract_aligned_pointer_as_index %b : memref<64x80xf16> -> index",
        "%addr = arith.index_cast %ptr : index to i64",
    ]
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    z = w.number(0)
    ta = w.tile("a", [i, z], (16, 32), "f16")
    tb = w.tile(Value("%addr", "i64"), [z, j], (32, 16), "f16", given=(64, 80, 80, 1))
    s = w.full("0.0", (16, 16), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        s = w.mma(w.load(ta), w.load(tb), s)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [i, j], (16, 16), "f32"))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def dynamic_c() -> Written:
    """Dynamic memrefs with given shapes."""
    w = Writer({"a": "memref<32x64xf16>", "b": "memref<64x64xf16>", "c": "memref<32x64xf32>"}, (2, 2, 1), 1)
    w.outside += ["%da = memref.cast %a : memref<32x64xf16> to memref<?x?xf16>"]
    i, j = w.times("%wy", 16), w.times("%wx", 32)
    z = w.number(0)
    ta = w.tile(Value("%da", "memref<?x?xf16>"), [i, z], (16, 32), "f16", given=(32, 64, 64, 1))
    tb = w.tile("b", [z, j], (32, 32), "f16")
    s = w.full("0.0", (16, 32), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        s = w.mma(w.load(ta), w.load(tb), s)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [i, j], (16, 32), "f32"))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def batch3() -> Written:
    """3-d."""
    w = Writer({"a": "memref<3x32x64xf16>", "b": "memref<3x64x32xf16>", "c": "memref<3x32x32xf32>"}, (2, 2, 3), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    z = w.number(0)
    n = Value("%wz", "index")
    ta = w.tile("a", [n, i, z], (16, 32), "f16")
    tb = w.tile("b", [n, z, j], (32, 16), "f16")
    s = w.full("0.0", (16, 16), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        s = w.mma(w.load(ta), w.load(tb), s)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [n, i, j], (16, 16), "f32"))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def batch_5d_wg() -> Written:
    wg = ((2, 1), (8, 32))
    wb = ((2, 1), (32, 32))
    wc = ((2, 1), (8, 32))
    w = Writer({"a": "memref<2x2x16x32xf16>", "b": "memref<2x2x32x32xf16>", "c": "memref<2x2x16x32xf32>"}, (2, 2, 1), 2)
    x, y = Value("%wx", "index"), Value("%wy", "index")
    s = w.mma(
        w.load(w.tile("a", [y, x, 0, 0], (16, 32), "f16", wg=wg)),
        w.load(w.tile("b", [y, x, 0, 0], (32, 32), "f16", wg=wb)),
        None,
        wc,
    )
    w.store(s, w.tile("c", [y, x, 0, 0], (16, 32), "f32", wg=wc))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def padding_ones() -> Written:
    """Padding 1 along k and rows."""
    w = Writer({"a": "memref<20x40xf16>", "b": "memref<40x48xf16>", "c": "memref<32x48xf32>"}, (3, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    z = w.number(0)
    ta = w.tile("a", [i, z], (16, 32), "f16")
    tb = w.tile("b", [z, j], (32, 16), "f16")
    s = w.full("0.0", (16, 16), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        s = w.mma(w.load(ta, "1.0 : f16"), w.load(tb, "2.0 : f16"), s)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [i, j], (16, 16), "f32"))

    def ref(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        aa = np.ones((32, 64), np.float32)
        aa[:20, :40] = wide(a)
        bb = np.full((64, 48), 2, np.float32)
        bb[:40] = wide(b)
        return [aa @ bb]

    return w, ref


@program
def i8_product() -> Written:
    w = Writer({"a": "memref<32x64xi8>", "b": "memref<64x64xi8>", "c": "memref<32x64xi32>"}, (2, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 32)
    s = w.gemm("a", "b", i, j, 64, (16, 32, 32), element="i8", sums="i32")
    w.store(s, w.tile("c", [i, j], (16, 32), "i32"))
    return w, lambda a, b, c: [a.astype(np.int32) @ b.astype(np.int32)]


@program
def bias_rows_and_columns() -> Written:
    wa, wb, wc = ((2, 1), (16, 32)), ((2, 1), (32, 64)), ((2, 1), (16, 64))
    w = Writer(
        {
            "a": "memref<40x72xf16>",
            "b": "memref<72x104xf16>",
            "r": "memref<1x104xf32>",
            "q": "memref<40x1xf32>",
            "c": "memref<40x104xf32>",
        },
        (2, 2, 1),
        2,
    )
    i, j = w.times("%wy", 32), w.times("%wx", 64)
    s = w.gemm("a", "b", i, j, 72, (32, 64, 32), (wa, wb, wc))
    r = w.load(w.tile("r", [0, j], (1, 64), "f32", wg=((2, 1), (1, 64))))
    q = w.load(w.tile("q", [i, 0], (32, 1), "f32", wg=((2, 1), (16, 1))))
    s = w.each("arith.addf", s, w.broadcast(r, 0, 32, wg=wc), wg=wc)
    s = w.each("arith.addf", s, w.broadcast(q, 1, 64, wg=wc), wg=wc)
    w.store(s, w.tile("c", [i, j], (32, 64), "f32", wg=wc))
    return w, lambda a, b, r, q, c: [wide(a) @ wide(b) + r + q]


@program
def pre_scale_f16() -> Written:
    """Elementwise in front of the product."""
    w = Writer({"a": "memref<32x64xf16>", "b": "memref<64x32xf16>", "c": "memref<32x32xf32>"}, (2, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    z = w.number(0)
    ta = w.tile("a", [i, z], (16, 32), "f16")
    tb = w.tile("b", [z, j], (32, 16), "f16")
    s = w.full("0.0", (16, 16), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        va = w.load(ta)
        va = w.each("arith.addf", va, va)
        s = w.mma(va, w.load(tb), s)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [i, j], (16, 16), "f32"))
    return w, lambda a, b, c: [2 * wide(a) @ wide(b)]


@program
def pre_broadcast_scale_wg() -> Written:
    """A scaled by column vector, work-group level."""
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 16)), ((2, 2), (16, 16))
    wq = ((2, 2), (16, 1))
    w = Writer(
        {"a": "memref<32x64xf16>", "b": "memref<64x32xf16>", "q": "memref<32x1xf16>", "c": "memref<32x32xf32>"},
        (1, 1, 1),
        4,
    )
    z = w.number(0)
    q = w.broadcast(w.load(w.tile("q", [0, 0], (32, 1), "f16", wg=wq)), 1, 32, wg=wa)
    ta = w.tile("a", [z, z], (32, 32), "f16", wg=wa)
    tb = w.tile("b", [z, z], (32, 32), "f16", wg=wb)
    s = w.full("0.0", (32, 32), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        va = w.each("arith.mulf", w.load(ta), q, wg=wa)
        s = w.mma(va, w.load(tb), s, wc)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [0, 0], (32, 32), "f32", wg=wc))
    return w, lambda a, b, q, c: [(wide(a) * wide(q)) @ wide(b)]


@program
def transpose_a_wg() -> Written:
    """A^T stored, loaded and transposed between subgroups."""
    wa = ((2, 2), (16, 32))
    wb, wc = ((2, 2), (32, 16)), ((2, 2), (16, 16))
    w = Writer({"at": "memref<64x32xf16>", "b": "memref<64x32xf16>", "c": "memref<32x32xf32>"}, (1, 1, 1), 4)
    z = w.number(0)
    wl = ((2, 2), (32, 16))
    ta = w.tile("at", [z, z], (32, 32), "f16", wg=wl)
    tb = w.tile("b", [z, z], (32, 32), "f16", wg=wb)
    s = w.full("0.0", (32, 32), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        va = w.transpose(w.load(ta), wa)
        s = w.mma(va, w.load(tb), s, wc)
        loop.next = [s, w.move(ta, 32, 0), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [0, 0], (32, 32), "f32", wg=wc))
    return w, lambda at, b, c: [wide(at).T @ wide(b)]


@program
def convert_layouts() -> Written:
    """Product, then other owners, rows summed."""
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 32)), ((2, 2), (16, 32))
    wr = ((4, 1), (8, 64))
    w1 = ((4, 1), (8, 1))
    w = Writer({"a": "memref<32x64xf16>", "b": "memref<64x64xf16>", "y": "memref<32x1xf32>"}, (1, 1, 1), 4)
    s = w.gemm("a", "b", w.number(0), w.number(0), 64, (32, 64, 32), (wa, wb, wc))
    s = w.reduce(w.convert(s, wr), "add", 1, wg=w1)
    w.store(s, w.tile("y", [0, 0], (32, 1), "f32", wg=w1))
    return w, lambda a, b, y: [(wide(a) @ wide(b)).sum(1, keepdims=True)]


@program
def slm_once() -> Written:
    """Cooperative: A to SLM, then read by all."""
    wl = ((4, 1), (8, 32))
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 16)), ((2, 2), (16, 16))
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf32>"}, (1, 1, 1), 4)
    m = w.shared((32, 32), "f16")
    w.store(w.load(w.tile("a", [0, 0], (32, 32), "f16", wg=wl)), w.tile(m, [0, 0], (32, 32), "f16", wg=wl, shared=True))
    w.barrier()
    s = w.mma(
        w.load(w.tile(m, [0, 0], (32, 32), "f16", wg=wa, shared=True)),
        w.load(w.tile("b", [0, 0], (32, 32), "f16", wg=wb)),
        None,
        wc,
    )
    w.store(s, w.tile("c", [0, 0], (32, 32), "f32", wg=wc))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def slm_f32_exchange() -> Written:
    """Sums through SLM to other owners."""
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 16)), ((2, 2), (16, 16))
    wo = ((4, 1), (8, 32))
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf32>"}, (1, 1, 1), 4)
    m = w.shared((32, 32), "f32")
    s = w.mma(
        w.load(w.tile("a", [0, 0], (32, 32), "f16", wg=wa)),
        w.load(w.tile("b", [0, 0], (32, 32), "f16", wg=wb)),
        None,
        wc,
    )
    w.store(s, w.tile(m, [0, 0], (32, 32), "f32", wg=wc, shared=True))
    w.barrier()
    v = w.load(w.tile(m, [0, 0], (32, 32), "f32", wg=wo, shared=True))
    w.store(v, w.tile("c", [0, 0], (32, 32), "f32", wg=wo))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def prefetch_two_levels() -> Written:
    w = Writer({"a": "memref<32x128xf16>", "b": "memref<128x32xf16>", "c": "memref<32x32xf32>"}, (1, 2, 1), 1)
    i = w.times("%wy", 16)
    z = w.number(0)
    pa = w.tile("a", [i, z], (16, 64), "f16")
    w.prefetch(pa, 2)
    s = w.gemm("a", "b", i, z, 128, (16, 32, 32), prefetch=3)
    w.store(s, w.tile("c", [i, z], (16, 32), "f32"))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def accumulate_c() -> Written:
    w = Writer({"a": "memref<24x40xbf16>", "b": "memref<40x40xbf16>", "c": "memref<24x40xf32>"}, (3, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    tc = w.tile("c", [i, j], (16, 16), "f32")
    s = w.gemm("a", "b", i, j, 40, (16, 16, 16), element="bf16", start=w.load(tc))
    w.store(s, tc)
    return w, lambda a, b, c: [wide(a) @ wide(b) + c]
