"""Chooses whether a pair of products is one kernel or two, by the predicted times of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from stepladder.payload.matmul import find_matmul
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request


def is_slower(texts: Iterable[str], request: Request) -> bool:
    """Tells whether a pair is predicted to take longer in one kernel than in two, in the current MLIR context.

    One kernel writes no product to memory, but split-K and a stream-K tail are for one product: a pair with few tiles
    and a long reduction leaves multiprocessors idle. Where two kernels would have neither, or the model does not know
    the pipeline's kernels, one kernel is taken.

    Args:
        texts: payloads of one matmul or one pair each.
        request: the pipeline of pairs, and its knobs.

    Raises:
        StepladderError: as `knob_query.read_query`.
    """
    for text in texts:
        if find_matmul(parse_payload(text, "pair")).problem.second_b is None:
            continue
        query = read_query(library.load(request.pipeline), request, text, "pair")
        alone = dataclasses.replace(
            query,
            problem=dataclasses.replace(query.problem, second_b=None),
            facts={**query.facts, "products": 1, "has_elementwise": False},
        )
        pair, one = (knob_choice.rank(item) for item in (query, alone))
        if pair is None or one is None or not len(pair) or not len(one):
            continue
        first, second = pair.first(1)[0], one.first(1)[0]
        splits = second.knobs.get("split_k", 1) != 1 or second.knobs.get("tile_scheduler") == "stream_k"
        if splits and first.microseconds > 2 * second.microseconds:
            return True
    return False
