"""Chooses whether an attention is one kernel or several, by an estimate of the times of both."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stepladder.extension.lib.attention import Attention, find_last
from stepladder.extension.lib.attention_logits import has_causal_mask
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.stages import is_attention

_MULTIPROCESSORS = 132  # of an H100 and an H200
_TILE = 128  # queries of a block, and keys of a tile
# Microseconds on an H200 (docs/results/attention_kernels.json): of a tile by the elements of a head, of a block beside
# its tiles, and of kernels of their own beside their memory traffic.
_OF_TILE = {64: 1.3, 128: 2.1}
_OF_BLOCK = 5.0
_OF_KERNELS = 10.0
# Picoseconds of a score that is written, read, and multiplied as a weight.
_OF_SCORE = 2.3


def is_slower(texts: Mapping[str, str], request: Request) -> bool:
    """Tells whether attentions are estimated to take longer in a kernel each than in several, in the current MLIR
    context.

    A block of the one kernel reads all keys of its head, one tile after the other: where heads and queries are few,
    multiprocessors are idle. Kernels of their own take as long as writing and reading scores and weights.

    Args:
        texts: payloads of the kernels of a function, by name.
        request: of its matmuls.
    """
    one = several = 0.0
    skips = request.settings.get("math") != "libdevice"
    for name, text in texts.items():
        if not is_attention(name):
            continue
        module = parse_payload(text, "attention")  # what `walk` returns does not keep it
        found = find_last(walk(module, "func.func")[0].regions[0].blocks[0])
        one += _of_one(found, skips=skips)
        several += _OF_KERNELS + math.prod(found.shape) * _OF_SCORE * 1e-6
    return one > several


def _of_one(found: Attention, *, skips: bool) -> float:
    """Returns the estimated microseconds of one kernel: of the tiles that the busiest multiprocessor multiplies."""
    *outer, queries, keys = found.shape
    depth = ir.RankedTensorType(found.queries.value.type).shape[-1]
    heads, blocks, tiles = math.prod(outer), queries // _TILE, keys // _TILE
    waves = math.ceil(heads * blocks / _MULTIPROCESSORS)
    most = waves * tiles
    if skips and has_causal_mask(found):
        own = [min(tiles, number + 1) for number in range(blocks)]
        most = max(own[-1], heads * sum(own) / _MULTIPROCESSORS)
    return most * _OF_TILE[depth] + waves * _OF_BLOCK
