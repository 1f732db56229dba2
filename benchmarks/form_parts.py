"""The drawn forms that `form_settings.py` times, and the settings of each: by the name of a part."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from draw import MAX_BYTES, MAX_OPERATIONS, log_uniform
from drawn_forms import payload
from forms import KINDS, MAX, MAX_OF_BATCH, Form, draw, draw_few_rows, sized
from fused_epilogues import PIPELINE, TARGET
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.processes import end_with_pool

Knobs = dict[str, Any]
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
# Of `diverse`: how many problems, of how many drawn ones; settings of one, how many of them are the first ones, and how
# much longer than the first those of other kinds and tiles are predicted to take at most.
_DIVERSE_SEED, _DRAWN_DIVERSE, _DIVERSE = 20290101, 400, 90
_OF_DIVERSE, _FIRST_OF_DIVERSE, _RANKED = 32, 8, 6000
_LONGEST_OF_KIND, _LONGEST_OF_TILE = 1.8, 1.5
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


def draw_diverse() -> list[Form]:
    """Returns the problems of `diverse`."""
    least, most = _SUSPECT_OPERATIONS
    return [form for form in draw(_DRAWN_DIVERSE, _DIVERSE_SEED) if least < form.flops < most][:_DIVERSE]


def _diverse() -> Iterator[tuple[Form, Knobs]]:
    yield from _of_each(draw_diverse(), _diverse_of)


def _diverse_of(form: Form) -> list[Knobs]:
    """Returns the first settings of a form, and the first of every other kind and tile."""
    candidates = _ranked(form, _RANKED)
    seen: set[tuple[object, ...]] = set()
    settings: list[Knobs] = []
    for candidate in candidates:
        knobs = candidate.knobs
        slowness = candidate.with_margin / candidates[0].with_margin
        kind = ("kind", *_form_of(knobs), knobs["split_k"], knobs["block_k"])
        tile = _tile_of(knobs)
        is_new = (kind not in seen and slowness < _LONGEST_OF_KIND) or (
            tile not in seen and slowness < _LONGEST_OF_TILE
        )
        if len(settings) < _FIRST_OF_DIVERSE or is_new:
            settings.append(knobs)
        seen.update([kind, tile])
        if len(settings) == _OF_DIVERSE:
            break
    return settings


def _few_rows() -> Iterator[tuple[Form, Knobs]]:
    yield from _various(draw_few_rows(_FEW_ROWS, _FEW_ROWS_SEED))


def _of_each(forms: Sequence[Form], settings_of: Callable[[Form], list[Knobs]]) -> Iterator[tuple[Form, Knobs]]:
    """Yields the settings that a function returns of each form, with all cores."""
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        for form, settings in zip(forms, executor.map(settings_of, forms)):
            yield from ((form, knobs) for knobs in settings)


def _various(forms: Sequence[Form]) -> Iterator[tuple[Form, Knobs]]:
    """Yields the first settings of forms that differ in more than the tile."""
    yield from _of_each(forms, _various_of)


def _form_of(knobs: Knobs) -> tuple[object, ...]:
    """Returns what settings of one form of kernel have in common."""
    names = ("cluster_m", "cluster_n", "min_blocks_per_sm", "schedule")
    of_form = [knobs[name] for name in names]
    return (knobs.get("swap_operands"), *of_form, int(knobs["persistent_blocks"]) > 0, int(knobs["split_k"]) > 1)


def _tile_of(knobs: Knobs) -> tuple[object, ...]:
    """Returns what settings of one tile have in common."""
    return ("tile", knobs.get("swap_operands"), knobs["block_m"], knobs["block_n"])


def _various_of(form: Form) -> list[Knobs]:
    """Returns the first settings of a form that differ in more than the tile."""
    candidates = _ranked(form, 400)
    counts: Counter[tuple[object, ...]] = Counter()
    settings = []
    for candidate in candidates:
        knobs = candidate.knobs
        key, tile = ("form", *_form_of(knobs)), _tile_of(knobs)
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
    "diverse": _diverse,
}
