"""XeTile programs, from the text of the RFC, with their references in NumPy: scatter tiles."""

from __future__ import annotations

import numpy as np

from tile_writer import Map, Value, Writer, Written, program, written_map


def indices(w: Writer, base: str, shape: tuple[int, int]) -> Value:
    """Loads i32 as indices: offsets of a scatter tile."""
    loaded = w.load(w.tile(base, [0, 0], shape, "i32"))
    return w.vector_of("arith.index_cast", [loaded], shape, "index")


@program
def gather_rows() -> Written:
    """Offsets of -4 to 4: negative ones are beyond the memref."""
    w = Writer({"x": "memref<3xf32>", "at": "memref<8x32xi32>", "y": "memref<8x32xf32>"})
    tile = w.scatter("x", indices(w, "at", (8, 32)), (8, 32), "f32")
    w.store(w.gather(tile, w.full("true", (8, 32), "i1"), "9.0 : f32"), w.tile("y", [0, 0], (8, 32), "f32"))
    return w, lambda x, at, y: [np.where((at >= 0) & (at < 3), x[np.clip(at, 0, 2)], np.float32(9))]


@program
def gather_masked_f16() -> Written:
    w = Writer({"x": "memref<64xf16>", "at": "memref<8x32xi32>", "y": "memref<8x32xf16>"})
    at = w.load(w.tile("at", [0, 0], (8, 32), "i32"))
    zero = w.full("0", (8, 32), "i32")
    mask = w.vector_of("arith.cmpi", [at, zero], (8, 32), "i1", predicate="4 : i64")  # sgt
    offsets = w.vector_of("arith.index_cast", [at], (8, 32), "index")
    w.store(w.gather(w.scatter("x", offsets, (8, 32), "f16"), mask), w.tile("y", [0, 0], (8, 32), "f16"))
    return w, lambda x, at, y: [np.where(at > 0, x[np.clip(at, 0, 63)], np.float16(0))]


@program
def scatter_rows() -> Written:
    """Each column has an element of its own in y, by lanes; a row's mask is its sign."""
    w = Writer({"x": "memref<1x32xf32>", "at": "memref<1x32xi32>", "y": "memref<40xf32>"})
    at = w.load(w.tile("at", [0, 0], (1, 32), "i32"))
    zero = w.full("0", (1, 32), "i32")
    mask = w.vector_of("arith.cmpi", [at, zero], (1, 32), "i1", predicate="4 : i64")  # sgt
    offsets = w.vector_of("arith.index_cast", [at], (1, 32), "index")
    value = w.full("7.0", (1, 32), "f32")
    w.scattered(value, mask, w.scatter("y", offsets, (1, 32), "f32"))

    def reference(x: np.ndarray, at: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        y[at[at > 0]] = 7
        return [y]

    return w, reference


@program
def gathered_product() -> Written:
    """A is gathered, then multiplied: rows of a table."""
    w = Writer({"x": "memref<512xf16>", "at": "memref<16x32xi32>", "b": "memref<32x32xf16>", "c": "memref<16x32xf32>"})
    a = w.gather(w.scatter("x", indices(w, "at", (16, 32)), (16, 32), "f16"), w.full("true", (16, 32), "i1"))
    sums = w.mma(a, w.load(w.tile("b", [0, 0], (32, 32), "f16")))
    w.store(sums, w.tile("c", [0, 0], (16, 32), "f32"))

    def reference(x: np.ndarray, at: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        a = np.where(at >= 0, x[np.clip(at, 0, 511)], np.float16(0))
        return [a.astype(np.float32) @ b.astype(np.float32)]

    return w, reference


@program
def constant_offsets() -> Written:
    w = Writer({"x": "memref<64xf32>", "y": "memref<1x16xf32>"})
    numbers = ", ".join(str(3 * lane) for lane in range(16))
    offsets = w.vector_of("arith.constant", [], (1, 16), "index", value=f"dense<[[{numbers}]]> : vector<1x16xindex>")
    tile = w.scatter("x", offsets, (1, 16), "f32")
    w.store(w.gather(tile, w.full("true", (1, 16), "i1")), w.tile("y", [0, 0], (1, 16), "f32"))
    return w, lambda x, y: [x[:48:3][None]]


def placed(w: Writer, base: str, wg: Map) -> Value:
    """Loads a work-group's offsets of 16 x 32 elements."""
    loaded = w.load(w.tile(base, [0, 0], (16, 32), "i32", wg=wg))
    return w.vector_of("arith.index_cast", [loaded], (16, 32), "index", wg_map=written_map(wg))


@program
def gathered_by_subgroups() -> Written:
    """A work-group gathers by the map of its offsets."""
    wg = ((2, 1), (8, 32))
    w = Writer({"x": "memref<64xf32>", "at": "memref<16x32xi32>", "y": "memref<16x32xf32>"}, subgroups=2)
    operands = [w.scatter("x", placed(w, "at", wg), (16, 32), "f32"), w.full("true", (16, 32), "i1")]
    found = w.vector_of("xetile.load_gather", operands, (16, 32), "f32", wg_map=written_map(wg), padding="2.0 : f32")
    w.store(found, w.tile("y", [0, 0], (16, 32), "f32", wg=wg))
    return w, lambda x, at, y: [np.where(at >= 0, x[np.clip(at, 0, 63)], np.float32(2))]


@program
def scattered_by_rounds() -> Written:
    """The only subgroup of a work-group scatters two blocks, in turn."""
    wg = ((1, 1), (8, 32))
    w = Writer({"at": "memref<16x32xi32>", "y": "memref<9xf32>"})
    value = w.load(w.tile("at", [0, 0], (16, 32), "i32", wg=wg))
    value = w.each("arith.sitofp", value, element="f32", wg=wg)
    w.scattered(value, w.full("true", (16, 32), "i1"), w.scatter("y", placed(w, "at", wg), (16, 32), "f32"))

    def reference(at: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        y[at[at >= 0]] = at[at >= 0]
        return [y]

    return w, reference
