"""Chooses whether a pair of products is one kernel or two, by the predicted times of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.functions.stage_texts import problem_of
from stepladder.pipeline.knob_choice import Query
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request

if TYPE_CHECKING:
    from stepladder.pipeline.cost_model.ranking import Candidate

# Two kernels are taken where a pair, whose weights preceding kernels dequantize, is predicted to take this much longer:
# the model is uncertain by so much.
_LONGER = 1.1


def is_slower(texts: Sequence[str], apart: Callable[[], Sequence[str]], request: Request) -> bool:
    """Returns whether pairs are predicted to take longer in one kernel each than in two, in the current MLIR context.

    One kernel writes no product to memory, but split-K and a stream-K tail are for one product: a pair with few tiles
    and a long reduction leaves multiprocessors idle. A pair takes both B from memory, where preceding kernels write
    those that are dequantized: with few rows, matmuls that make their own from the stored values are faster. Where the
    model does not know the pipeline's kernels, one kernel is taken.

    Args:
        texts: payloads of one matmul or one pair each.
        apart: returns those without pairs.
        request: the pipeline of pairs, and its knobs.

    Raises:
        StepladderError: as `knob_query.read_query`.
    """
    kinds = dict.fromkeys(texts)  # equal kernels have equal texts
    pairs = [text for text in kinds if problem_of(text, "pair").second_b is not None]
    return bool(pairs) and (_leaves_idle(pairs, request) or _dequantizes_longer(texts, apart(), request))


def _leaves_idle(pairs: Iterable[str], request: Request) -> bool:
    """Returns whether a pair takes longer in one kernel than two with split-K or a stream-K tail."""
    for text in pairs:
        query = read_query(library.load(request.pipeline), request, text, "pair")
        alone = dataclasses.replace(
            query,
            problem=dataclasses.replace(query.problem, second_b=None),
            facts={**query.facts, "products": 1, "has_elementwise": False},
        )
        pair, single = (knob_choice.rank(item) for item in (query, alone))
        if pair is None or single is None or not len(pair) or not len(single):
            continue
        first, second = pair.first(1)[0], single.first(1)[0]
        splits = second.knobs.get("split_k", 1) != 1 or second.knobs.get("tile_scheduler") == "stream_k"
        if splits and first.microseconds > 2 * second.microseconds:
            return True
    return False


def _dequantizes_longer(texts: Sequence[str], apart: Sequence[str], request: Request) -> bool:
    """Returns whether matmuls with pairs, and the preceding kernels that dequantize for pairs, take longer than matmuls
    without, which dequantize their own operands."""
    pipeline = library.load(request.pipeline)
    queries = {text: read_query(pipeline, request, text, "matmul") for text in (*texts, *apart)}
    prepared = [text for text in apart if queries[text].problem.is_prepared]
    if not prepared:
        return False
    # Kernels in front make the operands of a pair as they would those of its matmuls alone.
    in_front = request
    if "producers" in pipeline.knobs:
        in_front = dataclasses.replace(request, settings={**request.settings, "producers": "kernels"})
    together, alone = ([_first(queries[text]) for text in candidate] for candidate in (texts, apart))
    kernels = [_first(read_query(pipeline, in_front, text, "matmul")) for text in prepared]
    if not all((*together, *alone, *kernels)):
        return False
    prepare_time = sum(candidate.times.get("preparing", 0.0) for candidate in kernels if candidate)
    times = [sum(candidate.microseconds for candidate in kind if candidate) for kind in (together, alone)]
    return times[0] + prepare_time > _LONGER * times[1]


def _first(query: Query) -> Candidate | None:
    """Returns the setting of the shortest predicted time; None where there is none."""
    ranked = knob_choice.rank(query)
    return ranked.first(1)[0] if ranked is not None and len(ranked) else None
