"""A persistent matmul in Triton with TMA descriptors, for comparison: C = AB, row-major, f32 accumulator."""

import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]


@triton.jit
def _place(tile, tiles_m, tiles_n, group: tl.constexpr):
    """Returns the row and the column of a tile, in groups of rows for the L2 cache."""
    in_group = group * tiles_n
    first = tile // in_group * group
    rows = min(tiles_m - first, group)
    return first + tile % in_group % rows, tile % in_group // rows


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    group: tl.constexpr,
    blocks: tl.constexpr,
    flat: tl.constexpr,
):
    """Computes every `blocks`-th tile in each of `blocks` programs.

    Args:
        a, b, c: descriptors of block-sized tiles.
        m, n, k: sizes of the problem.
        block_m, block_n, block_k: sizes of a tile.
        group: rows of tiles whose columns are computed together.
        blocks: programs.
        flat: whether the loops over tiles and k are flattened.
    """
    tiles_m = tl.cdiv(m, block_m)
    tiles_n = tl.cdiv(n, block_n)
    steps = tl.cdiv(k, block_k)
    # The store counts its tiles itself: in a flattened loop, the counter of the loop is not live at the store.
    stored = tl.program_id(0) - blocks
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, blocks, flatten=flat):
        row, column = _place(tile, tiles_m, tiles_n, group)
        accumulator = tl.zeros((block_m, block_n), dtype=tl.float32)
        for step in range(steps):
            left = a.load([row * block_m, step * block_k])
            right = b.load([step * block_k, column * block_n])
            accumulator = tl.dot(left, right, accumulator)
        stored += blocks
        row, column = _place(stored, tiles_m, tiles_n, group)
        c.store([row * block_m, column * block_n], accumulator.to(tl.float16))
