"""XeTile programs, from the text of the RFC, with their references in NumPy: loads, stores and reductions."""

from __future__ import annotations

import numpy as np

from tile_writer import Value, Writer, Written, program


@program
def address_narrower() -> Written:
    """Shape smaller than the buffer: beyond is zero."""
    w = Writer({"a": "memref<32x64xf32>", "c": "memref<32x64xf32>"}, (1, 1, 1), 1)
    w.outside += [
        "%ptr = memref.extract_aligned_pointer_as_index %a : memref<32x64xf32> -> index",
        "%addr = arith.index_cast %ptr : index to i64",
    ]
    t = w.tile(Value("%addr", "i64"), [0, 0], (32, 64), "f32", given=(20, 32, 64, 1))
    w.store(w.load(t), w.tile("c", [0, 0], (32, 64), "f32"))

    def ref(a: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        r = np.zeros_like(c)
        r[:20, :32] = a[:20, :32]
        return [r]

    return w, ref


@program
def padding_negative_wg_f32() -> Written:
    wg = ((2, 2), (16, 16))
    w = Writer({"x": "memref<24x40xf32>", "y": "memref<32x64xf32>"}, (1, 1, 1), 4)
    v = w.load(w.tile("x", [0, 0], (32, 64), "f32", wg=wg), "-3.5 : f32")
    w.store(v, w.tile("y", [0, 0], (32, 64), "f32", wg=wg))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        r = np.full((32, 64), -3.5, np.float32)
        r[:24, :40] = x
        return [r]

    return w, ref


@program
def padding_column() -> Written:
    w = Writer({"x": "memref<40x24xf32>", "y": "memref<32x48xf32>"}, (1, 1, 1), 1)
    v = w.view("x", "memref<24x40xf32, strided<[1, 24]>>")
    t = w.tile(v, [0, 0], (32, 48), "f32", column=True)
    w.store(w.load(t, "7.0 : f32"), w.tile("y", [0, 0], (32, 48), "f32"))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        r = np.full((32, 48), 7, np.float32)
        r[:24, :40] = x.T
        return [r]

    return w, ref


@program
def copy_i32() -> Written:
    wg = ((2, 1), (8, 32))
    w = Writer({"x": "memref<24x40xi32>", "y": "memref<24x40xi32>"}, (2, 2, 1), 2)
    i, j = w.times("%wy", 16), w.times("%wx", 32)
    v = w.load(w.tile("x", [i, j], (16, 32), "i32", wg=wg))
    v = w.each("arith.addi", v, v, wg=wg)
    w.store(v, w.tile("y", [i, j], (16, 32), "i32", wg=wg))
    return w, lambda x, y: [x + x]


@program
def row_softmax_sg() -> Written:
    w = Writer({"x": "memref<16x64xf32>", "y": "memref<16x64xf32>"}, (1, 2, 1), 1)
    i = w.times("%wy", 8)
    v = w.load(w.tile("x", [i, 0], (8, 64), "f32"))
    m = w.broadcast(w.reduce(v, "maximumf", 1), 1, 64)
    e = w.each("math.exp", w.each("arith.subf", v, m))
    d = w.broadcast(w.reduce(e, "add", 1), 1, 64)
    w.store(w.each("arith.divf", e, d), w.tile("y", [i, 0], (8, 64), "f32"))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        e = np.exp(x - x.max(1, keepdims=True))
        return [e / e.sum(1, keepdims=True)]

    return w, ref


@program
def column_softmax_wg() -> Written:
    """Reductions along rows; columns distributed."""
    wg = ((1, 4), (32, 16))
    wr = ((1, 4), (1, 16))
    w = Writer({"x": "memref<32x128xf32>", "y": "memref<32x128xf32>"}, (2, 1, 1), 4)
    j = w.times("%wx", 64)
    v = w.load(w.tile("x", [0, j], (32, 64), "f32", wg=wg))
    m = w.broadcast(w.reduce(v, "maximumf", 0, wg=wr), 0, 32, wg=wg)
    e = w.each("math.exp", w.each("arith.subf", v, m, wg=wg), wg=wg)
    d = w.broadcast(w.reduce(e, "add", 0, wg=wr), 0, 32, wg=wg)
    w.store(w.each("arith.divf", e, d, wg=wg), w.tile("y", [0, j], (32, 64), "f32", wg=wg))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        e = np.exp(x - x.max(0, keepdims=True))
        return [e / e.sum(0, keepdims=True)]

    return w, ref


@program
def reduce_groups_columns() -> Written:
    """Reduction_size 16 along columns."""
    w = Writer({"x": "memref<16x64xf32>", "y": "memref<16x4xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 64), "f32"))
    w.store(w.reduce(v, "add", 1, 16), w.tile("y", [0, 0], (16, 4), "f32"))
    return w, lambda x, y: [x.reshape(16, 4, 16).sum(2)]


@program
def reduce_groups_wg_rfc() -> Written:
    """The RFC's exp + reduction_size example, smaller."""
    wa = ((4, 2), (16, 32))
    wb = ((4, 2), (1, 32))
    w = Writer({"x": "memref<64x64xf32>", "y": "memref<4x64xf32>"}, (1, 1, 1), 8)
    v = w.load(w.tile("x", [0, 0], (64, 64), "f32", wg=wa))
    e = w.each("math.exp", v, wg=wa)
    r = w.reduce(e, "add", 0, 16, wb)
    w.store(r, w.tile("y", [0, 0], (4, 64), "f32", wg=wb))
    return w, lambda x, y: [np.exp(x).reshape(4, 16, 64).sum(1)]


@program
def broadcast_groups_columns() -> Written:
    w = Writer({"x": "memref<16x2xf32>", "y": "memref<16x64xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 2), "f32"))
    w.store(w.broadcast(v, 1, 32, sized=True), w.tile("y", [0, 0], (16, 64), "f32"))
    return w, lambda x, y: [np.repeat(x, 32, 1)]


@program
def broadcast_groups_rows_wg() -> Written:
    wa = ((2, 2), (1, 16))
    wb = ((2, 2), (8, 16))
    w = Writer({"x": "memref<4x32xf32>", "y": "memref<32x32xf32>"}, (1, 1, 1), 4)
    v = w.load(w.tile("x", [0, 0], (4, 32), "f32", wg=wa))
    w.store(w.broadcast(v, 0, 8, sized=True, wg=wb), w.tile("y", [0, 0], (32, 32), "f32", wg=wb))
    return w, lambda x, y: [np.repeat(x, 8, 0)]


@program
def transpose_sg_f32() -> Written:
    """Plain transpose of a matrix."""
    w = Writer({"x": "memref<32x48xf32>", "y": "memref<48x32xf32>"}, (3, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    w.store(w.transpose(w.load(w.tile("x", [i, j], (16, 16), "f32"))), w.tile("y", [j, i], (16, 16), "f32"))
    return w, lambda x, y: [x.T]


@program
def transpose_sg_f16() -> Written:
    w = Writer({"x": "memref<32x48xf16>", "y": "memref<48x32xf16>"}, (3, 2, 1), 1)
    i, j = w.times("%wy", 16), w.times("%wx", 16)
    w.store(w.transpose(w.load(w.tile("x", [i, j], (16, 16), "f16"))), w.tile("y", [j, i], (16, 16), "f16"))
    return w, lambda x, y: [x.T]


@program
def atomic_wg_f32() -> Written:
    wg = ((2, 1), (8, 32))
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<16x32xf32>"}, (1, 1, 3), 2)
    v = w.load(w.tile("x", [0, 0], (16, 32), "f32", wg=wg))
    w.atomic("addf", v, w.tile("y", [0, 0], (16, 32), "f32", wg=wg))
    return w, lambda x, y: [y + 3 * x]


@program
def atomic_i32_max() -> Written:
    w = Writer({"x": "memref<16x32xi32>", "y": "memref<16x32xi32>"}, (2, 2, 1), 1)
    i, j = w.times("%wy", 8), w.times("%wx", 16)
    v = w.load(w.tile("x", [i, j], (8, 16), "i32"))
    w.atomic("maxs", v, w.tile("y", [i, j], (8, 16), "i32"))
    return w, lambda x, y: [np.maximum(x, y)]


@program
def layer_norm() -> Written:
    wg = ((4, 1), (8, 64))
    w1 = ((4, 1), (8, 1))
    w = Writer({"x": "memref<40x64xf32>", "y": "memref<40x64xf32>"}, (1, 2, 1), 4)
    i = w.times("%wy", 32)
    v = w.load(w.tile("x", [i, 0], (32, 64), "f32", wg=wg))
    n = w.full("0.015625", (32, 1), "f32")
    mean = w.each("arith.mulf", w.reduce(v, "add", 1, wg=w1), n, wg=w1)
    d = w.each("arith.subf", v, w.broadcast(mean, 1, 64, wg=wg), wg=wg)
    var = w.each("arith.mulf", w.reduce(w.each("arith.mulf", d, d, wg=wg), "add", 1, wg=w1), n, wg=w1)
    e = w.each("arith.addf", var, w.full("1.0", (32, 1), "f32"), wg=w1)
    r = w.each("math.rsqrt", e, wg=w1)
    w.store(w.each("arith.mulf", d, w.broadcast(r, 1, 64, wg=wg), wg=wg), w.tile("y", [i, 0], (32, 64), "f32", wg=wg))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        d = x - x.mean(1, keepdims=True)
        return [d / np.sqrt((d * d).mean(1, keepdims=True) + 1)]

    return w, ref


@program
def relu_compare_select() -> Written:
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<16x32xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 32), "f32"))
    z = w.full("0.0", (16, 32), "f32")
    m = w.vector_of("arith.cmpf", [v, z], (16, 32), "i1", predicate="2 : i64")
    w.store(w.vector_of("arith.select", [m, v, z], (16, 32), "f32"), w.tile("y", [0, 0], (16, 32), "f32"))
    return w, lambda x, y: [np.maximum(x, 0)]


@program
def strided_view() -> Written:
    """Memref with row gaps."""
    w = Writer({"x": "memref<32x64xf32>", "y": "memref<32x32xf32>"}, (1, 2, 1), 1)
    w.outside.append(
        "%sv = memref.subview %x[0, 16] [32, 32] [1, 1] "
        ": memref<32x64xf32> to memref<32x32xf32, strided<[64, 1], offset: 16>>"
    )
    i = w.times("%wy", 16)
    w.store(
        w.load(w.tile(Value("%sv", "memref<32x32xf32, strided<[64, 1], offset: 16>>"), [i, 0], (16, 32), "f32")),
        w.tile("y", [i, 0], (16, 32), "f32"),
    )
    return w, lambda x, y: [x[:, 16:48]]


@program
def offsets_negative_and_beyond() -> Written:
    """Tile begins beyond."""
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<16x32xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [8, 16], (16, 32), "f32"))
    w.store(v, w.tile("y", [0, 0], (16, 32), "f32"))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        r = np.zeros_like(y)
        r[:8, :16] = x[8:, 16:]
        return [r]

    return w, ref


@program
def store_beyond() -> Written:
    """Store clipped."""
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<20x40xf32>"}, (1, 1, 1), 1)
    w.store(w.load(w.tile("x", [0, 0], (16, 32), "f32")), w.tile("y", [12, 16], (16, 32), "f32"))

    def ref(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        r = y.copy()
        r[12:20, 16:40] = x[:8, :24]
        return [r]

    return w, ref


@program
def reductions_of_all_kinds() -> Written:
    w = Writer({"x": "memref<16x32xf32>", "y": "memref<4x32xf32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 32), "f32"))
    for n, kind in enumerate(("add", "mul", "minimumf", "maxnumf")):
        w.store(w.reduce(v, kind, 0), w.tile("y", [n, 0], (1, 32), "f32"))
    return w, lambda x, y: [np.stack([x.sum(0), x.prod(0), x.min(0), x.max(0)])]


@program
def integer_reductions() -> Written:
    w = Writer({"x": "memref<16x32xi32>", "y": "memref<16x1xi32>", "q": "memref<16x1xi32>"}, (1, 1, 1), 1)
    v = w.load(w.tile("x", [0, 0], (16, 32), "i32"))
    w.store(w.reduce(v, "maxsi", 1), w.tile("y", [0, 0], (16, 1), "i32"))
    w.store(w.reduce(v, "xor", 1), w.tile("q", [0, 0], (16, 1), "i32"))
    return w, lambda x, y, q: [x.max(1, keepdims=True), np.bitwise_xor.reduce(x, 1, keepdims=True)]
