"""XeTile programs, from the text of the RFC, with their references in NumPy: products with other ops around them."""

from __future__ import annotations

import numpy as np

from tile_writer import Writer, Written, program, wide


@program
def two_products() -> Written:
    """C = A B + D E."""
    w = Writer(
        {
            "a": "memref<32x32xf16>",
            "b": "memref<32x32xf16>",
            "d": "memref<32x64xf16>",
            "e": "memref<64x32xf16>",
            "c": "memref<32x32xf32>",
        },
        (2, 2, 1),
        1,
    )
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    s = w.gemm("a", "b", i, j, 32, (16, 16, 32))
    s = w.gemm("d", "e", i, j, 64, (16, 16, 32), start=s)
    w.store(s, w.tile("c", [i, j], (16, 16), "f32"))
    return w, lambda a, b, d, e, c: [wide(a) @ wide(b) + wide(d) @ wide(e)]


@program
def chained_products() -> Written:
    """(A B) C, through f16."""
    w = Writer(
        {"a": "memref<16x32xf16>", "b": "memref<32x32xf16>", "d": "memref<32x32xf16>", "c": "memref<16x32xf32>"},
        (1, 1, 1),
        1,
    )
    s = w.mma(w.load(w.tile("a", [0, 0], (16, 32), "f16")), w.load(w.tile("b", [0, 0], (32, 32), "f16")))
    h = w.each("arith.truncf", s, element="f16")
    s = w.mma(h, w.load(w.tile("d", [0, 0], (32, 32), "f16")))
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))
    return w, lambda a, b, d, c: [(wide(a) @ wide(b)).astype(np.float16).astype(np.float32) @ wide(d)]


@program
def round_to_f16() -> Written:
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 16)), ((2, 2), (16, 16))
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf16>"}, (1, 1, 1), 4)
    s = w.mma(
        w.load(w.tile("a", [0, 0], (32, 32), "f16", wg=wa)),
        w.load(w.tile("b", [0, 0], (32, 32), "f16", wg=wb)),
        None,
        wc,
    )
    w.store(w.each("arith.truncf", s, element="f16", wg=wc), w.tile("c", [0, 0], (32, 32), "f16", wg=wc))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).astype(np.float16)]


@program
def accumulators_f16() -> Written:
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf16>"}, (1, 1, 1), 1)
    s = w.mma(
        w.load(w.tile("a", [0, 0], (32, 32), "f16")), w.load(w.tile("b", [0, 0], (32, 32), "f16")), None, element="f16"
    )
    w.store(s, w.tile("c", [0, 0], (32, 32), "f16"))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).astype(np.float16)]


@program
def k_not_divided_k20() -> Written:
    w = Writer({"a": "memref<16x44xf16>", "b": "memref<44x32xf16>", "c": "memref<16x32xf32>"}, (1, 1, 1), 1)
    s = w.gemm("a", "b", w.number(0), w.number(0), 44, (16, 32, 16))
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def attention_like() -> Written:
    """Softmax(Q K^T) V at wg level."""
    wq = ((4, 1), (8, 32))
    wk = ((4, 1), (32, 64))
    ws = ((4, 1), (8, 64))
    w1 = ((4, 1), (8, 1))
    wv = ((4, 1), (64, 32))
    wo = ((4, 1), (8, 32))
    w = Writer(
        {"q": "memref<32x32xf16>", "k": "memref<64x32xf16>", "v": "memref<64x32xf16>", "o": "memref<32x32xf32>"},
        (1, 1, 1),
        4,
    )
    kt = w.view("k", "memref<32x64xf16, strided<[1, 32]>>")
    s = w.mma(
        w.load(w.tile("q", [0, 0], (32, 32), "f16", wg=wq)),
        w.load(w.tile(kt, [0, 0], (32, 64), "f16", wg=wk, column=True)),
        None,
        ws,
    )
    m = w.broadcast(w.reduce(s, "maximumf", 1, wg=w1), 1, 64, wg=ws)
    e = w.each("math.exp", w.each("arith.subf", s, m, wg=ws), wg=ws)
    d = w.broadcast(w.reduce(e, "add", 1, wg=w1), 1, 64, wg=ws)
    p = w.each("arith.truncf", w.each("arith.divf", e, d, wg=ws), element="f16", wg=ws)
    o = w.mma(p, w.load(w.tile("v", [0, 0], (64, 32), "f16", wg=wv)), None, wo)
    w.store(o, w.tile("o", [0, 0], (32, 32), "f32", wg=wo))

    def ref(q: np.ndarray, k: np.ndarray, v: np.ndarray, o: np.ndarray) -> list[np.ndarray]:
        s = wide(q) @ wide(k).T
        e = np.exp(s - s.max(1, keepdims=True))
        p = (e / e.sum(1, keepdims=True)).astype(np.float16)
        return [wide(p) @ wide(v)]

    return w, ref


@program
def product_to_column_wg() -> Written:
    wa, wb, wc = ((2, 1), (16, 32)), ((2, 1), (32, 64)), ((2, 1), (16, 64))
    w = Writer({"a": "memref<40x64xf16>", "b": "memref<64x64xf16>", "c": "memref<64x40xf32>"}, (1, 2, 1), 2)
    v = w.view("c", "memref<40x64xf32, strided<[1, 40]>>")
    i = w.times("%wy", 32)
    s = w.gemm("a", "b", i, w.number(0), 64, (32, 64, 32), (wa, wb, wc))
    w.store(s, w.tile(v, [i, 0], (32, 64), "f32", wg=wc, column=True))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).T]


@program
def product_to_column_f16() -> Written:
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf16>"}, (2, 2, 1), 1)
    v = w.view("c", "memref<32x32xf16, strided<[1, 32]>>")
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    s = w.mma(w.load(w.tile("a", [i, 0], (16, 32), "f16")), w.load(w.tile("b", [0, j], (32, 16), "f16")))
    w.store(w.each("arith.truncf", s, element="f16"), w.tile(v, [i, j], (16, 16), "f16", column=True))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).T.astype(np.float16)]


@program
def transpose_of_product() -> Written:
    """Xetile.transpose of sums, row-major store."""
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf32>"}, (2, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    s = w.mma(w.load(w.tile("a", [i, 0], (16, 32), "f16")), w.load(w.tile("b", [0, j], (32, 16), "f16")))
    w.store(w.transpose(s), w.tile("c", [j, i], (16, 16), "f32"))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).T]


@program
def pad_b_only() -> Written:
    w = Writer({"a": "memref<16x32xf16>", "b": "memref<20x32xf16>", "c": "memref<16x32xf32>"}, (1, 1, 1), 1)
    s = w.mma(w.load(w.tile("a", [0, 0], (16, 32), "f16")), w.load(w.tile("b", [0, 0], (32, 32), "f16"), "2.0 : f16"))
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))

    def ref(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        bb = np.full((32, 32), 2, np.float32)
        bb[:20] = wide(b)
        return [wide(a) @ bb]

    return w, ref


@program
def pad_a_only() -> Written:
    w = Writer({"a": "memref<16x40xf16>", "b": "memref<64x32xf16>", "c": "memref<16x32xf32>"}, (1, 1, 1), 1)
    s = w.mma(w.load(w.tile("a", [0, 0], (16, 64), "f16"), "2.0 : f16"), w.load(w.tile("b", [0, 0], (64, 32), "f16")))
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))

    def ref(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        aa = np.full((16, 64), 2, np.float32)
        aa[:, :40] = wide(a)
        return [aa @ wide(b)]

    return w, ref


@program
def scale_b() -> Written:
    w = Writer({"a": "memref<16x32xf16>", "b": "memref<32x32xf16>", "c": "memref<16x32xf32>"}, (1, 1, 1), 1)
    b = w.load(w.tile("b", [0, 0], (32, 32), "f16"))
    b = w.each("arith.addf", b, b)
    s = w.mma(w.load(w.tile("a", [0, 0], (16, 32), "f16")), b)
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))
    return w, lambda a, b, c: [wide(a) @ (2 * wide(b))]


@program
def scale_b_by_row() -> Written:
    w = Writer(
        {"a": "memref<16x32xf16>", "b": "memref<32x32xf16>", "r": "memref<1x32xf16>", "c": "memref<16x32xf32>"},
        (1, 1, 1),
        1,
    )
    b = w.load(w.tile("b", [0, 0], (32, 32), "f16"))
    r = w.broadcast(w.load(w.tile("r", [0, 0], (1, 32), "f16")), 0, 32)
    s = w.mma(w.load(w.tile("a", [0, 0], (16, 32), "f16")), w.each("arith.mulf", b, r))
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))
    return w, lambda a, b, r, c: [wide(a) @ (wide(r) * wide(b))]


@program
def scale_b_by_column() -> Written:
    w = Writer(
        {"a": "memref<16x32xf16>", "b": "memref<32x32xf16>", "r": "memref<32x1xf16>", "c": "memref<16x32xf32>"},
        (1, 1, 1),
        1,
    )
    b = w.load(w.tile("b", [0, 0], (32, 32), "f16"))
    r = w.broadcast(w.load(w.tile("r", [0, 0], (32, 1), "f16")), 1, 32)
    s = w.mma(w.load(w.tile("a", [0, 0], (16, 32), "f16")), w.each("arith.mulf", b, r))
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))
    return w, lambda a, b, r, c: [wide(a) @ (wide(r) * wide(b))]


@program
def pad_b_column() -> Written:
    w = Writer({"a": "memref<16x32xf16>", "b": "memref<32x40xf16>", "c": "memref<16x32xf32>"}, (1, 1, 1), 1)
    v = w.view("b", "memref<40x32xf16, strided<[1, 40]>>")
    s = w.mma(
        w.load(w.tile("a", [0, 0], (16, 32), "f16")),
        w.load(w.tile(v, [16, 0], (32, 32), "f16", column=True), "2.0 : f16"),
    )
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))

    def ref(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        bb = np.full((32, 32), 2, np.float32)
        bb[:24] = wide(b).T[16:]
        return [wide(a) @ bb]

    return w, ref


@program
def pad_b_transposed() -> Written:
    w = Writer({"a": "memref<16x32xf16>", "b": "memref<20x40xf16>", "c": "memref<16x32xf32>"}, (1, 1, 1), 1)
    s = w.mma(
        w.load(w.tile("a", [0, 0], (16, 32), "f16")),
        w.transpose(w.load(w.tile("b", [0, 16], (32, 32), "f16"), "2.0 : f16")),
    )
    w.store(s, w.tile("c", [0, 0], (16, 32), "f32"))

    def ref(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        bb = np.full((32, 32), 2, np.float32)
        bb[:20, :24] = wide(b)[:, 16:]
        return [wide(a) @ bb.T]

    return w, ref


@program
def pad_b_columns_of_grid() -> Written:
    w = Writer({"a": "memref<16x64xf16>", "b": "memref<40x40xf16>", "c": "memref<16x64xf32>"}, (2, 1, 1), 1)
    j = w.times("%wx", 32)
    z = w.number(0)
    ta = w.tile("a", [0, z], (16, 32), "f16")
    tb = w.tile("b", [z, j], (32, 32), "f16")
    s = w.full("0.0", (16, 32), "f32")
    with w.loop(0, 64, 32, [s, ta, tb]) as loop:
        s, ta, tb = loop.carried
        s = w.mma(w.load(ta), w.load(tb, "3.0 : f16"), s)
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    w.store(loop.results[0], w.tile("c", [0, j], (16, 32), "f32"))

    def ref(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        bb = np.full((64, 64), 3, np.float32)
        bb[:40, :40] = wide(b)
        return [wide(a) @ bb]

    return w, ref


@program
def big_tile_128x128() -> Written:
    wa, wb, wc = ((4, 4), (32, 32)), ((4, 4), (32, 32)), ((4, 4), (32, 32))
    w = Writer({"a": "memref<128x64xf16>", "b": "memref<64x128xf16>", "c": "memref<128x128xf32>"}, (1, 1, 1), 16)
    s = w.gemm("a", "b", w.number(0), w.number(0), 64, (128, 128, 32), (wa, wb, wc))
    w.store(s, w.tile("c", [0, 0], (128, 128), "f32", wg=wc))
    return w, lambda a, b, c: [wide(a) @ wide(b)]


@program
def transpose_of_product_wg() -> Written:
    wa, wb, wc = ((2, 2), (16, 32)), ((2, 2), (32, 16)), ((2, 2), (16, 16))
    wt = ((2, 2), (16, 16))
    w = Writer({"a": "memref<32x32xf16>", "b": "memref<32x32xf16>", "c": "memref<32x32xf32>"}, (1, 1, 1), 4)
    s = w.mma(
        w.load(w.tile("a", [0, 0], (32, 32), "f16", wg=wa)),
        w.load(w.tile("b", [0, 0], (32, 32), "f16", wg=wb)),
        None,
        wc,
    )
    w.store(w.transpose(s, wt), w.tile("c", [0, 0], (32, 32), "f32", wg=wt))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).T]


@program
def transpose_of_product_one_subgroup_wg() -> Written:
    wa, wb, wc = ((1, 1), (16, 32)), ((1, 1), (32, 16)), ((1, 1), (16, 16))
    wt = ((1, 1), (16, 16))
    w = Writer({"a": "memref<16x32xf16>", "b": "memref<32x16xf16>", "c": "memref<16x16xf32>"}, (1, 1, 1), 1)
    s = w.mma(
        w.load(w.tile("a", [0, 0], (16, 32), "f16", wg=wa)),
        w.load(w.tile("b", [0, 0], (32, 16), "f16", wg=wb)),
        None,
        wc,
    )
    w.store(w.transpose(s, wt), w.tile("c", [0, 0], (16, 16), "f32", wg=wt))
    return w, lambda a, b, c: [(wide(a) @ wide(b)).T]


@program
def cooperative_loads() -> Written:
    """Each step of k goes through shared local memory: subgroups load and store other parts than they multiply."""
    stored_a, stored_b = ((4, 1), (16, 32)), ((4, 1), (8, 64))
    a_map, b_map, c_map = ((2, 2), (32, 32)), ((2, 2), (32, 32)), ((2, 2), (32, 32))
    w = Writer({"a": "memref<64x96xf16>", "b": "memref<96x128xf16>", "c": "memref<64x128xf32>"}, (2, 1, 1), 4)
    i, j, zero = w.times("%wy", 64), w.times("%wx", 64), w.number(0)
    a, b = w.shared((64, 32), "f16"), w.shared((32, 64), "f16")
    ta, tb = w.tile("a", [i, zero], (64, 32), "f16", wg=stored_a), w.tile("b", [zero, j], (32, 64), "f16", wg=stored_b)
    with w.loop(0, 96, 32, [w.full("0.0", (64, 64), "f32"), ta, tb]) as loop:
        s, ta, tb = loop.carried
        w.store(w.load(ta), w.tile(a, [0, 0], (64, 32), "f16", wg=stored_a, shared=True))
        w.store(w.load(tb), w.tile(b, [0, 0], (32, 64), "f16", wg=stored_b, shared=True))
        w.barrier()
        va = w.load(w.tile(a, [0, 0], (64, 32), "f16", wg=a_map, shared=True))
        vb = w.load(w.tile(b, [0, 0], (32, 64), "f16", wg=b_map, shared=True))
        s = w.mma(va, vb, s, c_map)
        w.barrier()
        loop.next = [s, w.move(ta, 0, 32), w.move(tb, 32, 0)]
    rows = ((4, 1), (16, 64))
    w.store(w.convert(loop.results[0], rows), w.tile("c", [i, j], (64, 64), "f32", wg=rows))
    return w, lambda a, b, c: [wide(a) @ wide(b)]
