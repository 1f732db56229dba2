"""Measures products of f32 on tensor cores beside cuBLAS in f32: throughput, and the largest error against f64.

Kernels of `wgmma` and `mma_sync` multiply f32 by three products of tf32, or by one with `allow_tf32`; those of
`mma_sync` compute tiles with a NaN again, or do not (`keep_infinities=false`). cuBLAS computes in f32 (COMPUTE_32F),
without tf32. A and B hold random normal numbers. The error of a product is the largest difference of an element from
the product in f64, over the largest element of that; of several seeds, the largest error counts.

`--compile` needs MLIR and ptxas, and `--bundles` PyTorch and the GPU. Without either, one machine has all:

    python benchmarks/f32_products.py --sizes 2048 4096 --rounds 7
    python benchmarks/f32_products.py --compile build/f32
    python benchmarks/f32_products.py --bundles build/f32 --rounds 7
    python benchmarks/f32_products.py --shapes 64x4096x4096 4096x128x4096 --out RESULT.json
    python benchmarks/f32_products.py --drawn 24 --settings 10 --compile build/thin
    python benchmarks/f32_products.py --drawn 24 --settings 10 --bundles build/thin --rounds 3 --out RESULT.json
    python benchmarks/f32_products.py --batches 16 --rounds 3 --out RESULT.json

Products of `--shapes` are measured with the knobs that `compile` chooses for `wgmma`, and with both operands split in
front of the matmul; those of `--drawn`, of few rows or columns, and of `--batches`, with these knobs. `--settings` adds
the first settings of the cost model whose tile or splits of k differ, as many for each place where operands can be
split.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duel
from common import measurement_parser, run, write_result
from draw import log_uniform, named
from stepladder.measure.baselines import cublas
from stepladder.measure.timing import MODES, Contestant
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.processes import end_with_pool

SIZES = (512, 1000, 1024, 1536, 2048, 4096, 8192)
SEEDS = 3
Kernels = dict[str, tuple[str, dict[str, int | str]]]
# Names of kernels in the result, their pipelines and knobs: of squares, and of other shapes.
SQUARES: Kernels = {
    "wgmma": ("wgmma", {}),
    "mma_sync": ("mma_sync", {}),
    "finite": ("mma_sync", {"keep_infinities": False}),
    "tf32": ("wgmma", {"allow_tf32": True}),
}
SHAPES: Kernels = {"wgmma": ("wgmma", {}), "in_front": ("wgmma", {"split_f32": "kernels"})}
DRAWN: Kernels = {"wgmma": ("wgmma", {})}
# Of `--batches`: the seed, the matmuls, and their extents.
BATCH_SEED, MATMULS, EXTENTS = 20272301, (4, 192), (64, 1024)
# Of `--drawn`: the seed, the short side, the others, and the most operations.
DRAW_SEED, SHORT, LONG, MAX_DRAWN_OPERATIONS = 20271801, (8, 256), (512, 16384), 6e10
# Settings of `--settings` differ in one of these; each value of the first three may come so often.
_FORM = ("block_m", "block_n", "consumer_warpgroups", "split_k", "split_k_workspace")
_RANKED, _OF_A_TILE, _WHERE = 400, 2, "split_f32"
_PLACES = ("kernels", "registers", "shared")


@dataclass(frozen=True)
class Product:
    """C = AB in f32: its extents, and the kernels that are measured, by their names in the result; a batch has so many
    products."""

    m: int
    n: int
    k: int
    kernels: Kernels = field(repr=False)
    batch: int | None = None
    b_layout: str = "row"

    @property
    def name(self) -> str:
        """The extents, as `--sizes` and `--shapes` take them; those of a batch, and the layout of B."""
        if self.batch:
            return f"{self.batch}x{self.m}x{self.n}x{self.k}-{self.b_layout}"
        return str(self.m) if self.m == self.n == self.k else f"{self.m}x{self.n}x{self.k}"


def draw(count: int, skip: int = 0) -> list[Product]:
    """Returns random products of few rows or columns.

    Args:
        count: how many are drawn.
        skip: how many of these are left out, the first ones.
    """
    rng = random.Random(DRAW_SEED)
    products: list[Product] = []
    while len(products) < count:
        shorter, longer, k = (log_uniform(rng, *limits, 8) for limits in (SHORT, LONG, LONG))
        m, n = (shorter, longer) if len(products) % 2 else (longer, shorter)
        if 2 * m * n * k <= MAX_DRAWN_OPERATIONS:
            products.append(Product(m, n, k, DRAWN))
    return products[skip:]


def draw_batches(count: int) -> list[Product]:
    """Returns random batches, every second one of a column-major B.

    Args:
        count: how many are drawn.
    """
    rng = random.Random(BATCH_SEED)
    products: list[Product] = []
    while len(products) < count:
        batch, m, n, k = (log_uniform(rng, *limits, 8) for limits in (MATMULS, EXTENTS, EXTENTS, EXTENTS))
        if 2 * batch * m * n * k <= MAX_DRAWN_OPERATIONS:
            products.append(Product(m, n, k, DRAWN, batch, "column" if len(products) % 2 else "row"))
    return products


def _text(product: Product) -> str:
    """Returns the payload of a product."""
    from stepladder.payload.writing import matmul_text

    size = (product.m, product.n, product.k)
    types = {"a_type": "f32", "b_type": "f32", "c_type": "f32"}
    return matmul_text(*size, accumulate=False, batch=product.batch, b_layout=product.b_layout, **types)


def with_settings(product: Product, count: int) -> Product:
    """Returns a product with kernels of the cost model's first settings that differ in more than stages.

    Args:
        product: with kernels to which they are added.
        count: settings.
    """
    from stepladder.pipeline import knob_choice, library
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.knob_query import read_query
    from stepladder.pipeline.request import Request

    kernels = dict(product.kernels)
    for place in _PLACES:
        with mlir_context():
            request = Request("wgmma", {"target": "sm_90a", _WHERE: place}, tuned=True)
            ranked = knob_choice.rank(read_query(library.load("wgmma"), request, _text(product), product.name))
        forms: set[tuple[object, ...]] = set()
        tiles = Counter[tuple[object, ...]]()
        for candidate in ranked.first(_RANKED) if ranked else ():
            form = tuple(candidate.knobs.get(name) for name in _FORM)
            if form not in forms and tiles[form[:3]] < _OF_A_TILE and len(forms) < count // len(_PLACES):
                forms.add(form)
                tiles[form[:3]] += 1
                kernels[f"{place}_setting_{len(forms)}"] = "wgmma", {**candidate.knobs, _WHERE: place}
    return replace(product, kernels=kernels)


def build_bundles(product: Product, folder: Path) -> None:
    """Compiles C = AB in f32 with each setting and the best known other knobs.

    Args:
        product: the extents and the settings.
        folder: of the bundles.
    """
    from stepladder.pipeline.build import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    for name, (pipeline, knobs) in product.kernels.items():
        with mlir_context():
            request = Request(pipeline, {**knobs, "target": "sm_90a"}, tuned=True)
            build(_text(product), "payload.mlir", request).write(folder / f"{name}_{product.name}")


def largest_errors(operands: duel.Operands, launches: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Returns the largest error of each kernel over the seeds, relative to the largest element.

    Args:
        operands: of the problem, on the GPU; they are overwritten.
        launches: enqueue a launch, by the name of the kernel.
    """
    errors = dict.fromkeys(launches, 0.0)
    for seed in range(SEEDS):
        operands.torch.manual_seed(seed)
        for operand in (operands.a, operands.b):
            operand.normal_()
        b = operands.b.mT if operands.problem.b_layout == "column" else operands.b
        exact = operands.a.double() @ b.double()
        largest = exact.abs().max()
        for name, enqueue in launches.items():
            operands.c.fill_(float("nan"))
            operands.torch.cuda.synchronize()
            enqueue()
            operands.device.synchronize()
            error = float((operands.c.double() - exact).abs().max() / largest)
            errors[name] = error if error != error else max(errors[name], error)
    return errors


def measure(device: Device, product: Product, mode: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Measures the kernels of a product.

    Args:
        device: the GPU.
        product: the extents and the kernels.
        mode: "burst" or "sustained".
        rounds: of the measurement.
        folder: of the bundles.

    Returns:
        The entry of the result.
    """
    bundles = {name: read_bundle(folder / f"{name}_{product.name}") for name in product.kernels}
    problem = bundles["wgmma"].manifest.problem
    with duel.Operands(device, problem) as operands:
        library = cublas(operands.buffers)
        launches: dict[str, Callable[[], None]] = {"cublas": library.enqueue}
        for name, bundle in bundles.items():
            launches[name] = operands.buffers.launcher(device.load(bundle), bundle)
        errors = largest_errors(operands, launches)
        operands.fill_random()
        contest = duel.Duel(
            device,
            Contestant("cublas", problem.flops, launches["cublas"]),
            [Contestant(name, problem.flops, launches[name]) for name in bundles],
        )
        try:
            measured = contest.run(MODES[mode], rounds)
        finally:
            contest.free()
    return {
        "size": product.m if product.name == str(product.m) else product.name,
        "provider": library.provider,
        "kernels": {name: duel.describe(bundle) for name, bundle in bundles.items()},
        "errors": errors,
        "measured": measured,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = measurement_parser(__doc__, SIZES, "f32_products", 7)
    parser.add_argument("--shapes", nargs="+", metavar="MxNxK", help="products of these extents, in place of squares")
    parser.add_argument("--drawn", type=int, metavar="N", help="random products of few rows or columns")
    parser.add_argument("--batches", type=int, metavar="N", help="random batches")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first of --drawn")
    parser.add_argument("--settings", type=int, default=0, metavar="N", help="first settings of the cost model too")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--compile", metavar="FOLDER", type=Path, help="write the bundles, and measure nothing")
    parts.add_argument("--bundles", metavar="FOLDER", type=Path, help="measure these bundles, and compile nothing")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Compiles and measures all sizes; writes the result after each.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(arguments)
    products = [Product(size, size, size, SQUARES) for size in args.sizes]
    if args.shapes:
        products = [Product(*problem.size, SHAPES) for problem in named(args.shapes)]
    if args.drawn:
        products = draw(args.drawn, args.skip)
    if args.batches:
        products = draw_batches(args.batches)
    if args.settings:
        products = [with_settings(product, args.settings) for product in products]
    if args.compile:
        with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
            list(executor.map(build_bundles, products, itertools.repeat(args.compile)))
        return
    with Device() as device, tempfile.TemporaryDirectory(prefix="stepladder-") as folder:
        result = duel.header(device)
        result |= {"mode": args.mode, "rounds": args.rounds, "seeds": SEEDS, "problems": []}
        for product in products:
            if args.bundles is None:
                build_bundles(product, Path(folder))
            problem = measure(device, product, args.mode, args.rounds, args.bundles or Path(folder))
            result["problems"].append(problem)
            write_result(args.out, result)
            baseline = problem["measured"]["baseline"]["tflops_spread"]["median"]
            kernels = problem["measured"]["kernels"]
            rates = {name: round(kernel["tflops_spread"]["median"], 1) for name, kernel in kernels.items()}
            print(f"{product.name}: cuBLAS {baseline:.1f}, {rates} TFLOP/s; errors {problem['errors']}", flush=True)


if __name__ == "__main__":
    run(main)
