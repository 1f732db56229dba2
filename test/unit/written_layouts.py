"""XeTile programs, from the text of the RFC, with their references in NumPy: transposes, layouts and updates."""

from __future__ import annotations

import numpy as np

from tile_writer import Writer, Written, program, wide


@program
def row_reduction_f16() -> Written:
    w = Writer({"x": "memref<16x64xf16>", "y": "memref<16x64xf16>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 64), "f16"))
    w.store(w.broadcast(w.reduce(v, "maximumf", 1), 1, 64), w.tile("y", [0, 0], (16, 64), "f16"))
    return w, lambda x, y: [np.repeat(x.max(1, keepdims=True), 64, 1)]


@program
def conditional_store() -> Written:
    """Scf.if on block id."""
    w = Writer({"x": "memref<32x32xf32>", "y": "memref<32x32xf32>"}, (1, 2, 1), 1)
    i = w.times("%wy", 16)
    v = w.load(w.tile("x", [i, 0], (16, 32), "f32"))
    t = w.tile("y", [i, 0], (16, 32), "f32")
    w.lines.append("%first = arith.cmpi eq, %wy, %n0 : index")
    w.number(0)
    w.lines.append("scf.if %first {")
    w.store(v, t)
    w.lines.append("}")

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        r = y.copy()
        r[:16] = x[:16]
        return [r]

    return w, ref


@program
def copy_row_to_column() -> Written:
    w = Writer({"x": "memref<32x48xf32>", "y": "memref<48x32xf32>"}, (3, 2, 1), 1)
    v = w.view("y", "memref<32x48xf32, strided<[1, 32]>>")
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    w.store(w.load(w.tile("x", [i, j], (16, 16), "f32")), w.tile(v, [i, j], (16, 16), "f32", column=True))
    return w, lambda x, y: [x.T]


@program
def copy_row_to_column_f16() -> Written:
    w = Writer({"x": "memref<32x64xf16>", "y": "memref<64x32xf16>"}, (2, 2, 1), 1)
    v = w.view("y", "memref<32x64xf16, strided<[1, 32]>>")
    i, j = w.times("%wy", 16), w.times("%wx", 32)
    w.store(w.load(w.tile("x", [i, j], (16, 32), "f16")), w.tile(v, [i, j], (16, 32), "f16", column=True))
    return w, lambda x, y: [x.T]


@program
def copy_column_to_column() -> Written:
    w = Writer({"x": "memref<48x32xf32>", "y": "memref<48x32xf32>"}, (3, 2, 1), 1)
    u = w.view("x", "memref<32x48xf32, strided<[1, 32]>>")
    v = w.view("y", "memref<32x48xf32, strided<[1, 32]>>")
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    t = w.load(w.tile(u, [i, j], (16, 16), "f32", column=True))
    t = w.each("arith.addf", t, t)
    w.store(t, w.tile(v, [i, j], (16, 16), "f32", column=True))
    return w, lambda x, y: [2 * x]


@program
def transpose_of_broadcast() -> Written:
    w = Writer({"x": "memref<16x1xf32>", "y": "memref<16x16xf32>"}, (1, 1, 1), 1)
    v = w.broadcast(w.load(w.tile("x", [0, 0], (16, 1), "f32")), 1, 16)
    w.store(w.transpose(v), w.tile("y", [0, 0], (16, 16), "f32"))
    return w, lambda x, y: [np.repeat(x.T, 16, 0)]


@program
def transpose_of_broadcast_row() -> Written:
    w = Writer({"x": "memref<1x16xf32>", "y": "memref<16x16xf32>"}, (1, 1, 1), 1)
    v = w.broadcast(w.load(w.tile("x", [0, 0], (1, 16), "f32")), 0, 16)
    w.store(w.transpose(v), w.tile("y", [0, 0], (16, 16), "f32"))
    return w, lambda x, y: [np.repeat(x.T, 16, 1)]


@program
def transpose_and_plain_use() -> Written:
    w = Writer({"x": "memref<16x16xf32>", "y": "memref<16x16xf32>", "q": "memref<16x16xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 16), "f32"))
    w.store(w.transpose(v), w.tile("y", [0, 0], (16, 16), "f32"))
    w.store(v, w.tile("q", [0, 0], (16, 16), "f32"))
    return w, lambda x, y, q: [x.T, x]


@program
def transpose_plus_itself() -> Written:
    w = Writer({"x": "memref<16x16xf32>", "y": "memref<16x16xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 16), "f32"))
    w.store(w.each("arith.addf", v, w.transpose(v)), w.tile("y", [0, 0], (16, 16), "f32"))
    return w, lambda x, y: [x + x.T]


@program
def transpose_twice() -> Written:
    w = Writer({"x": "memref<16x32xf16>", "y": "memref<16x32xf16>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 32), "f16"))
    t = w.transpose(v)
    t = w.each("arith.addf", t, t)
    w.store(w.transpose(t), w.tile("y", [0, 0], (16, 32), "f16"))
    return w, lambda x, y: [2 * x]


@program
def transposed_reduced() -> Written:
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<1x16xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 32), "f32"))
    w.store(w.reduce(w.transpose(v), "add", 0), w.tile("y", [0, 0], (1, 16), "f32"))
    return w, lambda x, y: [x.sum(1)[None]]


@program
def reduced_then_added() -> Written:
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<16x1xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 32), "f32"))
    t = w.tile("y", [0, 0], (16, 1), "f32")
    w.store(w.each("arith.addf", w.reduce(v, "add", 1), w.load(t)), t)
    return w, lambda x, y: [y + x.sum(1, keepdims=True)]


@program
def reduce_in_loop_carried() -> Written:
    """Running row maxima in a loop."""
    w = Writer({"x": "memref<16x96xf32>", "y": "memref<16x1xf32>"}, (1, 1, 1), 1)
    t = w.tile("x", [0, 0], (16, 32), "f32")
    m = w.full("-100.0", (16, 1), "f32")
    with w.loop(0, 96, 32, [m, t]) as loop:
        m, t = loop.carried
        loop.next = [w.each("arith.maximumf", m, w.reduce(w.load(t), "maximumf", 1)), w.move(t, 0, 32)]
    w.store(loop.results[0], w.tile("y", [0, 0], (16, 1), "f32"))
    return w, lambda x, y: [x.max(1, keepdims=True)]


@program
def online_softmax_wg() -> Written:
    """Running max and sum over two halves."""
    wg = ((2, 1), (8, 32))
    w1 = ((2, 1), (8, 1))
    w = Writer({"x": "memref<16x64xf32>", "y": "memref<16x1xf32>"}, (1, 1, 1), 2)
    t = w.tile("x", [0, 0], (16, 32), "f32", wg=wg)
    m0 = w.full("-100.0", (16, 1), "f32")
    s0 = w.full("0.0", (16, 1), "f32")
    with w.loop(0, 64, 32, [m0, s0, t]) as loop:
        m, s, t = loop.carried
        v = w.load(t)
        n = w.each("arith.maximumf", m, w.reduce(v, "maximumf", 1, wg=w1), wg=w1)
        e = w.each("math.exp", w.each("arith.subf", v, w.broadcast(n, 1, 32, wg=wg), wg=wg), wg=wg)
        k = w.each("math.exp", w.each("arith.subf", m, n, wg=w1), wg=w1)
        s = w.each("arith.addf", w.each("arith.mulf", s, k, wg=w1), w.reduce(e, "add", 1, wg=w1), wg=w1)
        loop.next = [n, s, w.move(t, 0, 32)]
    r = w.each("arith.addf", w.each("math.log", loop.results[1], wg=w1), loop.results[0], wg=w1)
    w.store(r, w.tile("y", [0, 0], (16, 1), "f32", wg=w1))
    return w, lambda x, y: [np.log(np.exp(x).sum(1, keepdims=True))]


@program
def down_counting_tiles() -> Written:
    """Tiles that move backwards."""
    w = Writer({"x": "memref<64x32xf32>", "y": "memref<16x32xf32>"}, (1, 1, 1), 1)
    t = w.tile("x", [48, 0], (16, 32), "f32")
    s = w.full("0.0", (16, 32), "f32")
    with w.loop(0, 64, 16, [s, t]) as loop:
        s, t = loop.carried
        loop.next = [w.each("arith.addf", s, w.load(t, "5.0 : f32")), w.move(t, -16, 0)]
    w.store(loop.results[0], w.tile("y", [0, 0], (16, 32), "f32"))
    return w, lambda x, y: [x.reshape(4, 16, 32).sum(0)]


@program
def moves_before_matrix() -> Written:
    """Negative offsets: padding."""
    w = Writer({"x": "memref<64x32xf32>", "y": "memref<16x32xf32>"}, (1, 1, 1), 1)
    t = w.move(w.tile("x", [8, 0], (16, 32), "f32"), -16, 0)
    w.store(w.load(t, "5.0 : f32"), w.tile("y", [0, 0], (16, 32), "f32"))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        r = np.full((16, 32), 5, np.float32)
        r[8:] = x[:8]
        return [r]

    return w, ref


@program
def odd_rows_tile() -> Written:
    w = Writer({"x": "memref<24x32xf32>", "y": "memref<24x32xf32>"}, (1, 8, 1), 1)
    i = w.times("%wy", 3)
    w.store(w.load(w.tile("x", [i, 0], (3, 32), "f32")), w.tile("y", [i, 0], (3, 32), "f32"))
    return w, lambda x, y: [x]


@program
def eight_bit_store() -> Written:
    w = Writer({"x": "memref<16x64xi8>", "y": "memref<16x64xi8>"}, (1, 1, 1), 1)
    w.store(w.load(w.tile("x", [0, 0], (16, 64), "i8")), w.tile("y", [0, 0], (16, 64), "i8"))
    return w, lambda x, y: [x]


@program
def f64_tile() -> Written:
    w = Writer({"x": "memref<16x64xf64>", "y": "memref<16x64xf64>"}, (1, 1, 1), 1)
    w.store(w.load(w.tile("x", [0, 0], (16, 64), "f64")), w.tile("y", [0, 0], (16, 64), "f64"))
    return w, lambda x, y: [x]


@program
def bf16_softmax() -> Written:
    w = Writer({"x": "memref<16x32xbf16>", "y": "memref<16x32xf32>"}, (1, 1, 1), 1)
    v = w.each("arith.extf", w.load(w.tile("x", [0, 0], (16, 32), "bf16")), element="f32")
    e = w.each("math.exp", w.each("arith.subf", v, w.broadcast(w.reduce(v, "maximumf", 1), 1, 32)))
    w.store(w.each("arith.divf", e, w.broadcast(w.reduce(e, "add", 1), 1, 32)), w.tile("y", [0, 0], (16, 32), "f32"))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        x = wide(x)
        e = np.exp(x - x.max(1, keepdims=True))
        return [e / e.sum(1, keepdims=True)]

    return w, ref
