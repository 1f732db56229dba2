"""Knobs of the matmuls of a group: one choice for all, and the persistent blocks of each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from stepladder.payload.matmul import PayloadMatmul
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.cost_model import early_weights, ranking
from stepladder.pipeline.cost_model.ranking import Candidate
from stepladder.pipeline.definition import Knobs, KnobValue, Pipeline
from stepladder.pipeline.functions.stage_texts import problem_of
from stepladder.pipeline.knob_query import accepted_choice, accepts, make_query, read_payload
from stepladder.pipeline.knobs import choose_knobs, evaluation_scope
from stepladder.pipeline.request import Request

# Blocks do not share the reduction of a tile: its workspace is that of one kernel.
_WHOLE_TILES: dict[str, KnobValue] = {"split_k": 1, "tile_scheduler": "data_parallel"}
_PERSISTENT = "persistent_blocks"
# Candidates of the cost model that are compared.
_COMPARED = 64
# How much longer than predicted few rows take, if tiles of rows are filled up with zeros and kernels wait before they
# load weights, beside swapped operands, whose tiles have these rows as columns. Measured on an H200, 1 and 8 rows.
_SWAPPED, _FILLED_UP = "swap_operands", 0.1


def requests_of(texts: Sequence[str], request: Request) -> dict[str, Request]:
    """Returns the request of each matmul of a group: the knobs of all, and its part of the persistent blocks.

    Args:
        texts: payloads of the matmuls.
        request: pipeline of the matmuls, and its knobs.

    Raises:
        StepladderError: as `read_payload`.
    """
    pipeline = library.load(request.pipeline)
    request = _of_whole_tiles(pipeline, request)
    matmul_of = _read(pipeline, texts, request)
    matmuls = [matmul_of[text] for text in texts]
    if request.tuned:
        query, group = _query(pipeline, matmuls, request)
        request = _chosen(query, request, matmuls, group)
    request = dataclasses.replace(request, tuned=False)
    knobs = choose_knobs(pipeline, request)
    if not knobs.get(_PERSISTENT):
        return dict.fromkeys(matmul_of, request)
    shares = _shares([_tiles(pipeline, knobs, item, request) for item in matmuls], knobs)
    return {
        text: dataclasses.replace(request, settings={**request.settings, _PERSISTENT: share})
        for text, share in zip(texts, shares)
    }


def has_few_rows(text: str) -> bool:
    """Returns whether a matmul has so few rows that it may be in a group without being asked for.

    Args:
        text: its payload.

    Raises:
        StepladderError: as `problem_of`.
    """
    problem = problem_of(text, "group")
    return early_weights.is_short(problem.m, problem.m)


def is_faster(texts: Sequence[str], request: Request) -> bool:
    """Returns whether matmuls of few rows are predicted to take less time in one launch than in one each.

    Times are compared from launch to launch, with weights that are not in L2 and that all kernels may load early:
    without a promise, the first launch alone waits, either way.

    Args:
        texts: payloads of the matmuls.
        request: as for `requests_of`.

    Raises:
        StepladderError: as `read_payload`.
    """
    pipeline = library.load(request.pipeline)
    matmul_of = _read(pipeline, texts, request)
    if not all(map(has_few_rows, matmul_of)):
        return False
    with_weights = dataclasses.replace(request, constant_weights=True)
    group, _ = _query(pipeline, [matmul_of[text] for text in texts], _of_whole_tiles(pipeline, with_weights))
    alone = {
        text: _from_launch_to_launch(make_query(pipeline, with_weights, matmul)) for text, matmul in matmul_of.items()
    }
    return _from_launch_to_launch(group) < sum(alone[text] for text in texts)


def _from_launch_to_launch(query: knob_choice.Query) -> float:
    """Returns the predicted time, in us, of the fastest setting; infinity where there is none."""
    candidate = _best(query)
    if candidate is None:
        return math.inf
    # Where the knob was searched, predicted times are from launch to launch.
    if early_weights.KNOB in candidate.knobs or early_weights.KNOB not in query.pipeline.knobs:
        return candidate.microseconds
    size = ranking.size_of(query.facts, query.problem.accumulate)
    return early_weights.from_launch_to_launch(candidate.microseconds, size, query.found_gpu().gpu)


def _best(query: knob_choice.Query) -> Candidate | None:
    """Returns the fastest setting by the cost model; None where no setting is accepted, or the model knows none."""
    ranked = knob_choice.rank(query)
    return ranked.first(1)[0] if ranked is not None and len(ranked) else None


def _of_whole_tiles(pipeline: Pipeline, request: Request) -> Request:
    settings = {name: value for name, value in _WHOLE_TILES.items() if name in pipeline.knobs}
    return dataclasses.replace(request, settings={**settings, **request.settings})


def _read(pipeline: Pipeline, texts: Sequence[str], request: Request) -> dict[str, PayloadMatmul]:
    return {text: read_payload(pipeline, request, text, "group")[1] for text in dict.fromkeys(texts)}


def _query(
    pipeline: Pipeline, matmuls: Sequence[PayloadMatmul], request: Request
) -> tuple[knob_choice.Query, PayloadMatmul]:
    """Returns the query for a matmul that is as large as all of a group, and this matmul."""
    group = _together(max(matmuls, key=lambda item: item.problem.flops), matmuls)
    return make_query(pipeline, request, group), group


def _together(matmul: PayloadMatmul, matmuls: Sequence[PayloadMatmul]) -> PayloadMatmul:
    """Returns a matmul that has the arithmetic operations of a group, and no reductions: with more columns where all
    have as many rows, such as projections of the same activations, else with more rows."""
    problem, flops = matmul.problem, sum(item.problem.flops for item in matmuls)
    axis = "n" if len({item.problem.m for item in matmuls}) == 1 else "m"
    extent = -(-flops * getattr(problem, axis) // problem.flops)
    return dataclasses.replace(matmul, problem=dataclasses.replace(problem, results=(), **{axis: extent}))


def _chosen(
    query: knob_choice.Query, request: Request, matmuls: Sequence[PayloadMatmul], group: PayloadMatmul
) -> Request:
    """Returns a request with the knobs that are predicted to be the fastest, and that all matmuls accept.

    The prediction is that of one matmul as large as all together, times what the edges of all and their division into
    persistent blocks add to its waves of tiles, and _FILLED_UP.
    """
    pipeline = query.pipeline
    ranked = knob_choice.rank(query)
    if ranked is None:
        choice = accepted_choice(query, request, group)
        return choice[0] if choice is not None else request

    is_filled_up = early_weights.is_short(group.problem.m, group.problem.m) and not request.constant_weights

    def predicted(candidate: Candidate) -> float:
        factor = 1 + _FILLED_UP * (is_filled_up and not candidate.knobs.get(_SWAPPED, False))
        return factor * by_waves(candidate)

    def by_waves(candidate: Candidate) -> float:
        knobs = choose_knobs(pipeline, _with(request, query, candidate.knobs))
        tiles = [_tiles(pipeline, knobs, item, request) for item in matmuls]
        tile_count = _tiles(pipeline, knobs, group, request)
        if not knobs.get(_PERSISTENT):
            return candidate.microseconds * sum(tiles) / tile_count
        return candidate.microseconds * _waves(tiles, knobs) / _waves([tile_count], knobs)

    for candidate in sorted(ranked.first(_COMPARED), key=predicted):
        attempt = _with(request, query, candidate.knobs)
        if all(accepts(pipeline, attempt, item) for item in matmuls):
            return attempt
    return request


def _with(request: Request, query: knob_choice.Query, knobs: Mapping[str, KnobValue]) -> Request:
    """Returns a request that also gives the knobs that are not given."""
    settings = {
        name: value for name, value in knobs.items() if name in query.pipeline.knobs and name not in query.fixed
    }
    return dataclasses.replace(request, settings={**settings, **request.settings})


def _tiles(pipeline: Pipeline, knobs: Knobs, matmul: PayloadMatmul, request: Request) -> int:
    """Returns how many tiles of C a matmul has."""
    scope = evaluation_scope(pipeline, knobs, matmul.facts(), request.without)
    return math.prod(
        -(-_number(scope[size]) // _number(knobs[tile])) for size, tile in (("m", "block_m"), ("n", "block_n"))
    )


def _number(value: object) -> int:
    assert isinstance(value, int)  # a size, by the definition of its name
    return value


def _cells(tiles: Sequence[int], knobs: Knobs) -> tuple[list[int], int, int]:
    """Returns the clusters of tiles of each matmul, how many run at once, and the blocks of one."""
    cluster = _number(knobs.get("cluster_m", 1)) * _number(knobs.get("cluster_n", 1))
    return [-(-count // cluster) for count in tiles], _number(knobs[_PERSISTENT]) // cluster, cluster


def _waves(tiles: Sequence[int], knobs: Knobs) -> int:
    """Returns how many tiles, one after the other, a block has at least, if each computes those of one matmul."""
    cells, at_once, _ = _cells(tiles, knobs)
    return next(
        (waves for waves in range(1, max(cells)) if sum(-(-count // waves) for count in cells) <= at_once), max(cells)
    )


def _shares(tiles: Sequence[int], knobs: Knobs) -> list[int]:
    """Divides persistent blocks among matmuls, so that none has more waves of tiles than it must.

    Args:
        tiles: of each matmul.
        knobs: with the persistent blocks of all, and the clusters.

    Returns:
        Blocks of each, whole clusters; more than there are where each must have a cluster.
    """
    waves = _waves(tiles, knobs)
    cells, _, cluster = _cells(tiles, knobs)
    return [-(-count // waves) * cluster for count in cells]
