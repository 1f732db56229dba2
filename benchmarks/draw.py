"""Draws random problems to judge the choice of knobs by: three kinds, a fixed seed, half of each held out.

    python benchmarks/draw.py [--count 300] [--seed 20261122]       prints them as JSON

Kinds: `large` has squares and other large products, some with a long k; `eights` has sizes that are multiples of 8,
from 48 to 9728; `layers` has linear layers of language models, 8 to 12,000 rows on 768 to 28,672 columns. Models are
not fitted to the held-out half.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, run

_Size = tuple[int, int, int]

SEED, COUNT = 20261122, 300
THIN_SEED, THIN_COUNT = 20261123, 100
THIN_FORMS = ("few rows, wide C", "few columns", "long reduction", "decoding, 8 to 128 rows", "few tiles")
TAIL_SEED, TAIL_COUNT = 20261124, 60
EDGE_SEED, EDGE_COUNT = 20261125, 60
FRESH_SEED, FRESH_COUNT = 20261201, 96
LONG_SEED, LONG_COUNT = 20261202, 40
STREAMED_SEED, STREAMED_COUNT = 20261220, 27
WIDE_SEED, WIDE_COUNT = 20270401, 40
# Bytes of 16-bit operands and C that are read from HBM at every launch, some or all of them.
STREAMED_BYTES = (20e6, 160e6)
# Bytes of 16-bit operands and C that the L2 cache of an H200 holds in part.
EDGE_BYTES = (18e6, 90e6)

# Columns and k of layers with about a hundred rows.
_WIDE_LAYERS = (3000, 9000), (1000, 5200)

# Limits of a problem that can be measured.
MAX_OPERATIONS = 9e12
MAX_BYTES = 8e9

# Widths of layers: hidden sizes and those of feed-forward layers, as public models have them.
HIDDEN = (768, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 8192)
FEED_FORWARD = (
    2048,
    3072,
    4096,
    5632,
    6912,
    8192,
    8960,
    9728,
    11008,
    12288,
    13824,
    14336,
    17920,
    18432,
    18944,
    21504,
    22016,
    28672,
)

# Problems of other draws on which default choices were slowest beside cuBLAS.
SLOW: tuple[_Size, ...] = (
    (640, 832, 41280),
    (640, 832, 30016),
    (704, 928, 2208),
    (48, 5120, 3584),
    (1176, 1536, 2848),
    (128, 3072, 2048),
    (152, 6208, 3984),
    (832, 5992, 240),
    (333, 21504, 5120),
    (64, 5512, 104),
    (700, 1536, 6912),
    (256, 2560, 6144),
    (96, 6144, 8192),
    (128, 5632, 2048),
    (192, 6144, 6144),
)


@dataclass(frozen=True)
class Drawn:
    """A problem: its kind, its sizes, and whether it is held out."""

    kind: str
    m: int
    n: int
    k: int
    held_out: bool

    @property
    def size(self) -> tuple[int, int, int]:
        """Returns m, n, k."""
        return self.m, self.n, self.k

    @property
    def name(self) -> str:
        """Returns MxNxK."""
        return "x".join(map(str, self.size))


def log_uniform(rng: random.Random, least: float, most: float, multiple: int) -> int:
    """Returns a multiple of `multiple` from a range, of which each octave is as likely.

    Args:
        rng: what draws.
        least, most: the range.
        multiple: of the result; at least 1.
    """
    value = least * (most / least) ** rng.random()
    return max(multiple, multiple * round(value / multiple))


def _three(rng: random.Random, least: float, most: float, multiple: int) -> tuple[int, int, int]:
    m, n, k = (log_uniform(rng, least, most, multiple) for _ in range(3))
    return m, n, k


def _large(rng: random.Random) -> tuple[int, int, int]:
    form = rng.randrange(4)
    if form < 2:
        size = log_uniform(rng, 1024, 16384, 128)
        return size, size, size
    if form == 2:
        return _three(rng, 1024, 14336, 64)
    return _long(rng)


def _eights(rng: random.Random) -> tuple[int, int, int]:
    return _three(rng, 48, 9728, 8)


def _layers(rng: random.Random) -> tuple[int, int, int]:
    rows = rng.choice(
        (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 333, 512, 700, 1000, 1024, 1536, 2048, 3000, 4096, 6000, 8192, 12000)
    )
    hidden, width = rng.choice(HIDDEN), rng.choice((*HIDDEN, *FEED_FORWARD))
    return (rows, width, hidden) if rng.random() < 0.5 else (rows, hidden, width)


KINDS: dict[str, Callable[[random.Random], tuple[int, int, int]]] = {
    "large": _large,
    "eights": _eights,
    "layers": _layers,
}


def draw(count: int = COUNT, seed: int = SEED) -> list[Drawn]:
    """Returns `count` different problems; the kinds alternate, and so do seen and held-out problems of a kind.

    Args:
        count: of problems.
        seed: the same seed gives the same problems; a longer list begins with the shorter one.
    """
    rng = random.Random(seed)
    problems: list[Drawn] = []
    sizes: set[tuple[int, int, int]] = set()
    while len(problems) < count:
        kind = list(KINDS)[len(problems) % len(KINDS)]
        m, n, k = KINDS[kind](rng)
        if (m, n, k) in sizes or 2.0 * m * n * k > MAX_OPERATIONS or 4.0 * (m * n + m * k + k * n) > MAX_BYTES:
            continue
        sizes.add((m, n, k))
        problems.append(Drawn(kind, m, n, k, len(problems) // len(KINDS) % 2 == 1))
    return problems


def draw_fresh(count: int = FRESH_COUNT, seed: int = FRESH_SEED) -> list[Drawn]:
    """Returns `count` different problems of the kinds of `draw()`, none of them in it: no setting and no constant was
    chosen by them, and all count as held out.

    Args:
        count, seed: as for `draw`.
    """
    sizes = {problem.size for problem in draw()}
    problems = [problem for problem in draw(count + len(sizes), seed) if problem.size not in sizes]
    return [replace(problem, held_out=True) for problem in problems[:count]]


def draw_thin(count: int = THIN_COUNT, seed: int = THIN_SEED) -> list[Drawn]:
    """Returns `count` different problems of which one or two sides are short, none of them in `draw()`; the forms
    (`THIN_FORMS`) alternate.

    Args:
        count, seed: as for `draw`.
    """
    return _others("thin", count, seed, lambda rng, place: _thin(rng, place % len(THIN_FORMS)))


def draw_tail(count: int = TAIL_COUNT, seed: int = TAIL_SEED) -> list[Drawn]:
    """Returns `count` different problems of the kinds that default choices lose most often, none of them in `draw()`;
    the forms alternate: few rows of a layer, few ragged rows, both sides a few hundred, and a few waves of tiles.

    Args:
        count, seed: as for `draw`.
    """
    return _others("tail", count, seed, lambda rng, place: _tail(rng, place % 4))


def draw_edge(count: int = EDGE_COUNT, seed: int = EDGE_SEED) -> list[Drawn]:
    """Returns `count` different problems whose operands an L2 cache holds in part from launch to launch, none of them
    in `draw()`: two of three have few rows.

    Args:
        count, seed: as for `draw`.
    """
    return _others("edge", count, seed, _edge)


def draw_long(count: int = LONG_COUNT, seed: int = LONG_SEED) -> list[Drawn]:
    """Returns `count` different problems of few tiles and a long reduction, none of them in `draw()`.

    Args:
        count, seed: as for `draw`.
    """
    return _others("long", count, seed, lambda rng, place: _long(rng))


def draw_slow(count: int = len(SLOW)) -> list[Drawn]:
    """Returns the first `count` problems of SLOW.

    Args:
        count: of problems.
    """
    return [Drawn("slow", *size, False) for size in SLOW[:count]]


def draw_streamed(count: int = STREAMED_COUNT, seed: int = STREAMED_SEED) -> list[Drawn]:
    """Returns `count` different problems of which one operand is read from HBM and has a few tiles beside it, none of
    them in `draw()`.

    Args:
        count, seed: as for `draw`.
    """
    return _others("streamed", count, seed, _streamed)


def draw_wide(count: int = WIDE_COUNT, seed: int = WIDE_SEED) -> list[Drawn]:
    """Returns `count` different problems of a hundred rows or a few hundred, and of several thousand columns, none of
    them in `draw()`.

    Args:
        count, seed: as for `draw`.
    """
    return _others("wide", count, seed, _wide)


# Draws beside that of the two halves, by name.
DRAWS = {
    "thin": draw_thin,
    "tail": draw_tail,
    "edge": draw_edge,
    "fresh": draw_fresh,
    "long": draw_long,
    "slow": draw_slow,
    "streamed": draw_streamed,
    "wide": draw_wide,
}


def named(sizes: Sequence[str]) -> list[Drawn]:
    """Returns problems of given sizes.

    Args:
        sizes: of each, like 512x1024x2048: m, n and k.
    """
    extents = [tuple(int(extent) for extent in size.split("x")) for size in sizes]
    return [Drawn("named", m, n, k, False) for m, n, k in extents]


def _others(kind: str, count: int, seed: int, size: Callable[[random.Random, int], _Size | None]) -> list[Drawn]:
    """Returns different problems that are not in `draw()`; `size` gives that of a place, or None to draw again."""
    rng = random.Random(seed)
    sizes = {problem.size for problem in draw()}
    problems: list[Drawn] = []
    while len(problems) < count:
        drawn_size = size(rng, len(problems))
        if drawn_size is not None and drawn_size not in sizes:
            sizes.add(drawn_size)
            problems.append(Drawn(kind, *drawn_size, False))
    return problems


def _edge(rng: random.Random, place: int) -> _Size | None:
    rows = (8, 256) if place % 3 else (512, 4096)
    m, n, k = log_uniform(rng, *rows, 8), log_uniform(rng, 1024, 18432, 8), log_uniform(rng, 768, 12288, 8)
    return (m, n, k) if EDGE_BYTES[0] < 2.0 * (m * k + k * n + m * n) < EDGE_BYTES[1] else None


def _streamed(rng: random.Random, place: int) -> _Size | None:
    short_side, long_side = (
        rng.choice((48, 64, 96, 128, 160, 192, 256, 320, 384, 512)),
        log_uniform(rng, 2048, 14336, 64),
    )
    k = log_uniform(rng, 2048, 12288, 64)
    m, n = (short_side, long_side) if place % 3 else (long_side, short_side)
    return (m, n, k) if STREAMED_BYTES[0] < 2.0 * (m * k + k * n + m * n) < STREAMED_BYTES[1] else None


def _wide(rng: random.Random, place: int) -> tuple[int, int, int]:
    rows = rng.choice((80, 96, 128, 160, 192, log_uniform(rng, 80, 192, 8), rng.choice((333, 700))))
    if place % 2:
        return rows, log_uniform(rng, 3000, 9000, 8), log_uniform(rng, 1000, 5000, 8)
    widths, depths = (tuple(w for w in (*HIDDEN, *FEED_FORWARD) if low <= w <= top) for low, top in _WIDE_LAYERS)
    return rows, rng.choice(widths), rng.choice(depths)


def _long(rng: random.Random) -> tuple[int, int, int]:
    side = [log_uniform(rng, 256, 1024, 64) for _ in range(2)]
    return side[0], side[1], log_uniform(rng, 8192, 49152, 64)


def _tail(rng: random.Random, form: int) -> tuple[int, int, int]:
    if form == 0:
        return rng.choice((16, 24, 32, 48, 64, 96, 128)), rng.choice(FEED_FORWARD + HIDDEN), rng.choice(HIDDEN)
    if form == 1:
        sides = [log_uniform(rng, 16, 168, 8), log_uniform(rng, 2048, 9728, 8)]
        rng.shuffle(sides)
        return sides[0], sides[1], log_uniform(rng, 768, 8192, 8)
    if form == 2:
        sides = [8 * (2 * rng.randrange(12, 64) + 1), log_uniform(rng, 200, 1200, 8)]
        rng.shuffle(sides)
        return sides[0], sides[1], log_uniform(rng, 2048, 8192, 8)
    return rng.choice((256, 333, 512, 700, 768, 1000)), rng.choice(HIDDEN + FEED_FORWARD), rng.choice(HIDDEN)


def _thin(rng: random.Random, form: int) -> tuple[int, int, int]:
    if form == 0:
        rows = rng.choice((333, 700, log_uniform(rng, 56, 800, 8), log_uniform(rng, 56, 800, 8)))
        return rows, log_uniform(rng, 1536, 20000, 8), log_uniform(rng, 128, 8192, 8)
    if form == 1:
        return log_uniform(rng, 1024, 8192, 8), log_uniform(rng, 48, 320, 8), log_uniform(rng, 128, 4096, 8)
    if form == 2:
        side = [log_uniform(rng, 256, 1024, 32) for _ in range(2)]
        return side[0], side[1], log_uniform(rng, 5120, 40960, 64)
    if form == 3:
        return rng.choice((8, 16, 24, 32, 48, 64, 96, 128)), rng.choice(FEED_FORWARD), rng.choice(HIDDEN)
    return _three(rng, 320, 2560, 8)


def add_draw_options(parser: argparse.ArgumentParser, count: int, seed: int) -> None:
    """Adds the options that say which problems are drawn.

    Args:
        parser: of the command line.
        count, seed: where the options are not given.
    """
    parser.add_argument("--count", type=int, default=count, metavar="N", help=f"of problems (default: {count})")
    parser.add_argument("--seed", type=int, default=seed, metavar="N", help=f"of the draw (default: {seed})")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    add_draw_options(parser, COUNT, SEED)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the problems.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    print(json.dumps([asdict(problem) for problem in draw(args.count, args.seed)]))


if __name__ == "__main__":
    run(main)
