"""Random problems that tiles do not divide: sizes, types, layouts, batches and knobs of the pipelines of warps."""

from __future__ import annotations

import random
from dataclasses import dataclass

from stepladder.payload.writing import matmul_text

# A and B, sums and C of each pipeline.
TYPES = {
    "mma_sync": (
        ("f16", "f32", "f32"),
        ("f16", "f32", "f16"),
        ("f16", "f16", "f16"),
        ("bf16", "f32", "f32"),
        ("bf16", "f32", "bf16"),
        ("f32", "f32", "f32"),
        ("i8", "i32", "i32"),
    ),
    "wmma": (
        ("f16", "f32", "f32"),
        ("f16", "f32", "f16"),
        ("f16", "f16", "f16"),
        ("bf16", "f32", "f32"),
        ("bf16", "f32", "bf16"),
        ("i8", "i32", "i32"),
    ),
}
BITS = {"f32": 32, "f16": 16, "bf16": 16, "i8": 8}
WIDEST = 16  # bytes of a copy
TRIES = 10000


@dataclass(frozen=True)
class RandomSize:
    """A payload, and the pipeline and knobs that compile it."""

    text: str
    pipeline: str
    knobs: dict[str, int | str | bool]
    name: str


def _extent(chosen: random.Random, most: int) -> int:
    """Returns a size: often a small one, a multiple of eight, or one beside a multiple of a tile."""
    kind = chosen.randrange(4)
    if kind == 0:
        return chosen.randint(1, most)
    if kind == 1:
        return 8 * chosen.randint(1, most // 8)
    if kind == 2:
        return max(1, 64 * chosen.randint(0, most // 64) + chosen.choice((-2, -1, 0, 1, 2, 4)))
    return chosen.randint(1, 20)


def _vector(length: int, bits: int) -> int:
    """Returns the elements of the widest copy that divides a row."""
    width = WIDEST * 8 // bits
    while length % width:
        width //= 2
    return width


def random_size(seed: int, most: int = 200) -> RandomSize:
    """Returns the problem of a seed, with extents up to `most`."""
    chosen = random.Random(seed)
    pipeline = chosen.choice(tuple(TYPES))
    operands, sums, stored = chosen.choice(TYPES[pipeline])
    bits = BITS[operands]
    layouts = [chosen.choice(("row", "column")) for _ in "ab"]
    batch = chosen.choice((None, None, None, 1, 2, 3))
    least = 1 if batch is None else 2  # `tile_to_blocks` refuses dimensions of 1 of a batch
    m, n, k = (max(least, _extent(chosen, most)) for _ in "mnk")
    accumulate = sums == stored and chosen.random() < 0.5
    vectors = [_vector(k if layouts[0] == "row" else m, bits), _vector(n if layouts[1] == "row" else k, bits)]
    for _ in range(TRIES):
        knobs: dict[str, int | str | bool] = {
            name: chosen.choice((16, 32, 64)) for name in ("block_m", "block_n", "warp_m", "warp_n")
        }
        knobs["block_k"] = chosen.choice((32, 64) if bits == 16 else (64,) if bits == 8 else (16, 32))
        knobs["stages"] = chosen.choice((2, 3, 4))
        knobs["raster_group"] = chosen.choice((1, 2))
        narrow = min(vectors) * bits < (128 if bits == 8 else 32)
        if pipeline == "wmma":
            knobs["prefetch"] = "registers" if narrow else chosen.choice(("registers", "cp_async"))
        if operands == "f32":
            knobs["allow_tf32"] = chosen.random() < 0.5
        if _is_accepted(knobs, (m, n, k), vectors, bits, narrow):
            break
    options = {
        "a_type": operands,
        "b_type": operands,
        "acc_type": sums,
        "c_type": stored,
        "a_layout": layouts[0],
        "b_layout": layouts[1],
        "accumulate": accumulate,
    }
    name = f"seed {seed}: {pipeline} {m} x {n} x {k} batch {batch} {options} {knobs}"
    return RandomSize(matmul_text(m, n, k, batch=batch, **options), pipeline, knobs, name)


def _is_accepted(knobs: dict, sizes: tuple[int, int, int], vectors: list[int], bits: int, narrow: bool) -> bool:
    """Returns whether a pipeline accepts tiles, copies and stages."""
    block_m, block_n, block_k = (knobs[f"block_{axis}"] for axis in "mnk")
    if block_m % knobs["warp_m"] or block_n % knobs["warp_n"]:
        return False
    threads = block_m // knobs["warp_m"] * (block_n // knobs["warp_n"]) * 32
    is_whole = not any(size % tile for size, tile in zip(sizes, (block_m, block_n, block_k)))
    narrowest = 128 // bits  # a swizzled tile has rows of more than 16 bytes
    if min(block_m, block_n, block_k) <= narrowest:
        return False
    if is_whole or block_m * block_k % (threads * vectors[0]) or block_k * block_n % (threads * vectors[1]):
        return False
    steps = -(-sizes[2] // block_k)
    pipelined = not narrow and knobs.get("prefetch") != "registers"
    return not pipelined or steps == 1 or steps >= knobs["stages"] - 1
