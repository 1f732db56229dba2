"""Times kernels of drawn forms with settings that are given, beside the best library call of each.

Where MLIR is:

    python benchmarks/form_settings.py build FOLDER --part epilogues

Where a GPU is, with PyTorch (no MLIR):

    python benchmarks/form_settings.py measure FOLDER RESULT.json

The parts are `seen`, drawn forms with batches and a column-major A more often than others, with the first settings of
the cost model that differ in more than the tile; `epilogues`, fused elementwise ops in small tiles that TMA stores or
registers store; `blocks`, the first settings for small matmuls in batches, with one block on a multiprocessor and with
two; `suspects`, drawn forms of the kinds that were slow in `seen`, with their default kernels and the first settings
that differ; `batches`, drawn batches of any bytes whose matmuls have matrices of their own, with settings as of `seen`;
`triggers`, the first settings for these, each with both launch triggers; `any`, drawn forms of all kinds, with settings
as of `seen`; `added`, drawn products to which a matrix is added, with the first settings for each number of buffers of
the epilogue; `tall`, drawn products with many rows or columns, few of the others and a short k, with settings as of
`seen`; `outer`, drawn products with a short k whose C is larger than the L2 cache, with random ones of the first
settings, numbers of buffers and orders of tiles; and `few_rows`, drawn batches of matmuls with few rows, with settings
as of `seen`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from common import main_of_parts, run, write_result
from draw import MAX_BYTES, MAX_OPERATIONS, log_uniform
from drawn_forms import BURST, build_form, measure, microseconds_of, payload
from duel import header
from forms import KINDS, MAX, MAX_OF_BATCH, Form, draw, draw_few_rows, sized
from fused_epilogues import PIPELINE, TARGET
from halves import parser_of_parts
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.processes import end_with_pool

Knobs = dict[str, Any]
_PLAN = "plan.json"

_FUSED = (
    Form("fused", "mk,nk->mn", {"m": 88, "n": 840, "k": 312}, "add_relu"),
    Form("fused", "mk,kn->mn", {"m": 512, "n": 1000, "k": 256}, "add"),
    Form("fused", "mk,kn->mn", {"m": 2000, "n": 776, "k": 512}, "add"),
    Form("fused", "mk,nk->mn", {"m": 512, "n": 1000, "k": 256}, "bias_relu"),
    Form("fused", "mk,nk->mn", {"m": 512, "n": 1000, "k": 256}, "relu"),
    Form("fused", "mk,kn->mn", {"m": 1000, "n": 520, "k": 200}, "bias_gelu"),
)
# Rows and columns of a tile, and whether operands are exchanged.
_TILES = ((64, 32, False), (64, 48, False), (128, 32, False), (128, 64, False), (64, 24, True), (64, 32, True))
_ALL = {"block_k": 64, "consumer_warpgroups": 1, "schedule": "cooperative", "persistent_blocks": 132, "stages": 8}
_BATCHES = (
    Form("batched", "bmk,bkn->bmn", {"b": 17, "k": 112, "m": 576, "n": 128}),
    Form("batched", "bmk,bnk->bmn", {"b": 2, "k": 128, "m": 328, "n": 1480}),
    Form("batched", "bkm,bkn->bmn", {"b": 53, "k": 248, "m": 128, "n": 240}),
    Form("batched", "bkm,bkn->bmn", {"b": 10, "k": 168, "m": 256, "n": 632}),
    Form("batched", "bkm,bkn->bmn", {"b": 14, "k": 1992, "m": 128, "n": 328}),
    Form("batched", "bkm,bkn->bmn", {"b": 7, "k": 784, "m": 360, "n": 176}),
    Form("batched", "bkm,bkn->bmn", {"b": 44, "k": 1048, "m": 72, "n": 72}),
)
_FIRST = 3  # settings of each number of blocks
_SEEN_SEED, _SEEN = 20270417, 70
_MIN_OPERATIONS = 2e8
# The kinds of `seen`, one after the other: a kind and its operands, or a kind whose operands are drawn.
_CYCLE = (
    *(("batched", "bkm,bkn->bmn"), ("batched", "bmk,bkn->bmn"), ("transposed", "km,kn->mn")),
    *(("batched", "bmk,bnk->bmn"), ("fused", ""), ("batched", "bkm,bkn->bmn"), ("transposed", "km,nk->mn")),
    *(("batched", "bmk,kn->bmn"), ("batched", "bmk,bkn->bmn"), ("transposed", "mk,nk->mn")),
    *(("batched", "bmk,bnk->bmn"), ("contraction", "kmp,kn->mpn"), ("fused", ""), ("contraction", "")),
)
# Of `suspects`: how many problems have which dimensions, and how many operations they take at least and at most.
_SUSPECTS_SEED, _DRAWN = 20270811, 400
_SUSPECTS = {
    "bkm,bkn->bmn": 14,
    "kmp,kn->mpn": 10,
    "mpk,nk->nmp": 9,
    "mpk,kn->mpn": 9,
    "bmk,bkn->bmn": 9,
    "bmk,bnk->bmn": 7,
    "km,kn->mn": 4,
    "km,nk->mn": 4,
    "mk,nk->mn": 4,
}
_SUSPECT_OPERATIONS = (3e7, 1.2e11)
# Of `batches`: how many problems, of how many drawn ones, of at least so many bytes.
_BATCHES_SEED, _DRAWN_BATCHES, _OF_OWN_MATRICES, _MIN_BYTES = 20271701, 800, 64, 8e6
# Of `any`: how many problems, of how many drawn ones, that take as many operations as `suspects`.
_ANY_SEED, _DRAWN_ANY, _ANY = 20271129, 400, 110
# Of `added`: how many problems, of how many drawn ones; buffers of the epilogue, and settings with each.
_ADDED_SEED, _DRAWN_ADDED, _ADDED = 20271130, 1200, 36
_BUFFERS, _OF_BUFFERS = (1, 2, 3, 4), 2
# Of `tall` and `outer`: how many problems, ranges of their sizes, and the bytes of C of `outer`.
_TALL_SEED, _TALL, _LONG_SIDE, _SHORT_SIDE, _SHORT_K = 20271201, 36, (4096, 131072), (16, 512), (48, 800)
_OUTER_SEED, _OUTER, _SIDES, _OUTER_K, _C_BYTES = 20271202, 14, (1024, 131072), (16, 256), (7e7, 1.6e9)
_OUTER_BUFFERS, _ORDERS, _OF_OUTER, _CANDIDATES, _AREA = (1, 2, 4), (1, 4, 16), 14, 4000, 2**14
_KIND_OF_OUTER = ("block_m", "block_n", "schedule", "swap_operands", "cluster_m", "cluster_n")
# Of `few_rows`: how many problems.
_FEW_ROWS_SEED, _FEW_ROWS = 20281231, 16
_LAYOUTS = ("mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->mn")
# Settings of a problem, how many of them may have a form of kernel or a tile, and how much longer than the first they
# are predicted to take at most.
_SETTINGS, _OF_A_FORM, _OF_A_TILE, _LONGEST = 10, 2, 3, 1.45


def draw_seen() -> list[Form]:
    """Returns the problems of `seen`."""
    rng = random.Random(_SEEN_SEED)
    forms: list[Form] = []
    while len(forms) < _SEEN:
        kind, spec = _CYCLE[len(forms) % len(_CYCLE)]
        most = MAX if kind == "transposed" else MAX_OF_BATCH
        form = sized(rng, kind, spec, most) if spec else KINDS[kind](rng)
        if _MIN_OPERATIONS < form.flops <= MAX_OPERATIONS / 16 and form.bytes <= MAX_BYTES / 8:
            forms.append(form)
    return forms


def _ranked(form: Form, count: int, **fixed: int | str) -> list[Any]:
    """Returns the first candidates of the cost model; none for a form that takes several kernels."""
    from stepladder.pipeline import knob_choice, library
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.knob_query import read_query
    from stepladder.pipeline.request import Request

    try:
        with mlir_context():
            request = Request(PIPELINE, {"target": TARGET, **fixed}, tuned=True)
            ranked = knob_choice.rank(read_query(library.load(PIPELINE), request, payload(form), "form.mlir"))
    except StepladderError as error:
        print(f"{form.name}: {error.message}")
        return []
    return ranked.first(count) if ranked else []


def draw_batches() -> list[Form]:
    """Returns the problems of `batches`."""
    forms = draw(_DRAWN_BATCHES, _BATCHES_SEED)
    of_own_matrices = [
        form for form in forms if form.kind == "batched" and form.spec.count("b") == 3 and form.bytes > _MIN_BYTES
    ]
    return of_own_matrices[:_OF_OWN_MATRICES]


def _seen() -> Iterator[tuple[Form, Knobs]]:
    yield from _various(draw_seen())


def _batches() -> Iterator[tuple[Form, Knobs]]:
    yield from _various(draw_batches())


def draw_any() -> list[Form]:
    """Returns the problems of `any`."""
    least, most = _SUSPECT_OPERATIONS
    return [form for form in draw(_DRAWN_ANY, _ANY_SEED) if least < form.flops < most][:_ANY]


def _any() -> Iterator[tuple[Form, Knobs]]:
    yield from _various(draw_any())


def draw_added() -> list[Form]:
    """Returns the problems of `added`."""
    least, most = _SUSPECT_OPERATIONS
    forms = draw(_DRAWN_ADDED, _ADDED_SEED)
    return [form for form in forms if form.epilogue in ("add", "add_relu") and least < form.flops < most][:_ADDED]


def _added() -> Iterator[tuple[Form, Knobs]]:
    for form in draw_added():
        for buffers in _BUFFERS:
            for candidate in _ranked(form, _OF_BUFFERS, epilogue="tma", epilogue_stages=buffers):
                yield form, {**candidate.knobs, "epilogue": "tma", "epilogue_stages": buffers}


def draw_tall() -> list[Form]:
    """Returns the problems of `tall`."""
    rng = random.Random(_TALL_SEED)
    forms: list[Form] = []
    while len(forms) < _TALL:
        sides = [log_uniform(rng, *_LONG_SIDE, 8), log_uniform(rng, *_SHORT_SIDE, 8)]
        rng.shuffle(sides)
        sizes = {"m": sides[0], "n": sides[1], "k": log_uniform(rng, *_SHORT_K, 8)}
        form = Form("transposed", _LAYOUTS[len(forms) % len(_LAYOUTS)], sizes)
        if form.bytes <= MAX_BYTES / 8:
            forms.append(form)
    return forms


def _tall() -> Iterator[tuple[Form, Knobs]]:
    yield from _various(draw_tall())


def draw_outer() -> list[Form]:
    """Returns the problems of `outer`."""
    rng = random.Random(_OUTER_SEED)
    forms: list[Form] = []
    while len(forms) < _OUTER:
        m, n = log_uniform(rng, *_SIDES, 8), log_uniform(rng, *_SIDES, 8)
        form = Form(
            "transposed", _LAYOUTS[len(forms) % len(_LAYOUTS)], {"m": m, "n": n, "k": log_uniform(rng, *_OUTER_K, 8)}
        )
        if _C_BYTES[0] <= 2 * m * n <= _C_BYTES[1]:
            forms.append(form)
    return forms


def _outer() -> Iterator[tuple[Form, Knobs]]:
    rng = random.Random(_OUTER_SEED)
    for form in draw_outer():
        candidates = _ranked(form, _CANDIDATES)
        near = [one.knobs for one in candidates if one.with_margin < _LONGEST * candidates[0].with_margin]
        near = [knobs for knobs in near if knobs["block_m"] * knobs["block_n"] >= _AREA]
        by_kind = {tuple(knobs.get(name) for name in _KIND_OF_OUTER): knobs for knobs in near}
        for kind in rng.sample(sorted(by_kind, key=str), min(_OF_OUTER, len(by_kind))):
            buffers, order = rng.choice(_OUTER_BUFFERS), rng.choice(_ORDERS)
            yield form, {**by_kind[kind], "epilogue": "tma", "epilogue_stages": buffers, "raster_group": order}


def _few_rows() -> Iterator[tuple[Form, Knobs]]:
    yield from _various(draw_few_rows(_FEW_ROWS, _FEW_ROWS_SEED))


def _various(forms: Sequence[Form]) -> Iterator[tuple[Form, Knobs]]:
    """Yields the first settings of forms that differ in more than the tile."""
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        for form, settings in zip(forms, executor.map(_various_of, forms)):
            yield from ((form, knobs) for knobs in settings)


def _various_of(form: Form) -> list[Knobs]:
    """Returns the first settings of a form that differ in more than the tile."""
    candidates = _ranked(form, 400)
    counts: Counter[tuple[object, ...]] = Counter()
    settings = []
    for candidate in candidates:
        knobs = candidate.knobs
        swap = knobs.get("swap_operands")
        of_form = [knobs[name] for name in ("cluster_m", "cluster_n", "min_blocks_per_sm", "schedule")]
        key = ("form", swap, *of_form, int(knobs["persistent_blocks"]) > 0, int(knobs["split_k"]) > 1)
        tile = ("tile", swap, knobs["block_m"], knobs["block_n"])
        is_slow = candidate.with_margin > _LONGEST * candidates[0].with_margin
        if is_slow or counts[key] == _OF_A_FORM or counts[tile] == _OF_A_TILE or counts["all",] == _SETTINGS:
            continue
        counts.update([key, tile, ("all",)])
        settings.append(knobs)
    return settings


def _epilogues() -> Iterator[tuple[Form, Knobs]]:
    for form in _FUSED:
        for block_m, block_n, swap in _TILES:
            for epilogue in ("tma", "registers"):
                yield (
                    form,
                    {**_ALL, "block_m": block_m, "block_n": block_n, "swap_operands": swap, "epilogue": epilogue},
                )


def _blocks() -> Iterator[tuple[Form, Knobs]]:
    for form in _BATCHES:
        for blocks in (1, 2):
            for candidate in _ranked(form, _FIRST, min_blocks_per_sm=blocks):
                yield form, {**candidate.knobs, "min_blocks_per_sm": blocks}


def draw_suspects() -> list[Form]:
    """Returns the problems of `suspects`."""
    left = Counter(_SUSPECTS)
    least, most = _SUSPECT_OPERATIONS
    suspects: list[Form] = []
    for form in draw(_DRAWN, _SUSPECTS_SEED):
        if not form.epilogue and left[form.spec] and least < form.flops < most:
            left[form.spec] -= 1
            suspects.append(form)
    return suspects


def _suspects() -> Iterator[tuple[Form, Knobs]]:
    for form in draw_suspects():
        tiles: Counter[tuple[object, ...]] = Counter()
        for candidate in _ranked(form, 2 * _SETTINGS):
            knobs = candidate.knobs
            tile = (knobs.get("swap_operands"), knobs["block_m"], knobs["block_n"])
            tiles[tile] += 1
            if tiles[tile] < _OF_A_TILE:
                yield form, knobs


def _triggers() -> Iterator[tuple[Form, Knobs]]:
    for form in draw_batches():
        tiles: list[tuple[object, ...]] = []
        for candidate in _ranked(form, 40):
            knobs = candidate.knobs
            tile = (knobs["block_m"], knobs["block_n"], knobs["cluster_m"], knobs["cluster_n"])
            if tile not in tiles and len(tiles) < _FIRST:
                tiles.append(tile)
                for trigger in ("early", "exit"):
                    yield form, {**knobs, "launch_trigger": trigger}


PARTS = {
    "seen": _seen,
    "epilogues": _epilogues,
    "blocks": _blocks,
    "suspects": _suspects,
    "batches": _batches,
    "triggers": _triggers,
    "any": _any,
    "added": _added,
    "tall": _tall,
    "outer": _outer,
    "few_rows": _few_rows,
}


def build(args: argparse.Namespace) -> None:
    """Builds the kernels of a part.

    Args:
        args: of the command line.
    """
    args.folder.mkdir(parents=True, exist_ok=True)
    plan: list[dict[str, Any]] = []
    settings = list(PARTS[args.part]())
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        jobs = [(form, args.folder / str(number), knobs) for number, (form, knobs) in enumerate(settings)]
        refusals = list(executor.map(build_form, *zip(*jobs)))
    for number, ((form, knobs), refusal) in enumerate(zip(settings, refusals)):
        if refusal:
            print(f"{form.name}: {refusal}")
            continue
        if not plan or plan[-1]["form"] != vars(form):
            plan.append({"form": vars(form), "kernels": {}})
        plan[-1]["kernels"][str(number)] = knobs
    (args.folder / _PLAN).write_text(json.dumps({"part": args.part, "problems": plan}, indent=1) + "\n")


def time_all(args: argparse.Namespace) -> None:
    """Times the kernels of a part, and writes the result.

    Args:
        args: of the command line.
    """
    plan = json.loads((args.folder / _PLAN).read_text())
    with Device() as device:
        result = header(device) | {"part": plan["part"], "rounds": args.rounds, "problems": []}
        for planned in plan["problems"]:
            form = Form(**planned["form"])
            kernels = planned["kernels"]
            paths = {number: args.folder / number for number in kernels}
            entry, ratios = measure(device, form, paths, args.rounds, BURST)
            settings = [
                {"knobs": kernels[number], "ratio": ratio, "microseconds": microseconds_of(form, entry, ratio)}
                for number, ratio in ratios.items()
            ]
            result["problems"].append(entry | {"settings": settings})
            write_result(args.result, result)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser, building, _ = parser_of_parts(__doc__, build, time_all)
    building.add_argument("--part", choices=PARTS, required=True)
    return parser


main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
