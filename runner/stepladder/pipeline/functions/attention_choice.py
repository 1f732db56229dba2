"""Chooses whether an attention is one kernel or several, by an estimate of the times of both."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stepladder.extension.lib.multi_kernel.attention import VECTOR_PRODUCTS, find_last
from stepladder.mlir.traverse import walk
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.cost_model import gpu
from stepladder.pipeline.functions.attention_knobs import choose
from stepladder.pipeline.functions.stage_texts import is_attention
from stepladder.pipeline.request import Request


def is_slower(texts: Mapping[str, str], request: Request, target: str) -> bool:
    """Returns whether attentions are estimated to take longer in a kernel each than in several, in the current MLIR
    context.

    A block of the one kernel reads all keys of its head, one tile after the other: where heads and queries are few,
    multiprocessors are idle. Kernels of their own take as long as writing and reading scores and weights.

    Args:
        texts: payloads of the kernels of a function, by name.
        request: of its matmuls.
        target: GPU architecture of the kernels.
    """
    on = gpu.find(request.gpu, target).gpu
    one_kernel = several_kernels = 0.0
    skips = request.settings.get("math") != "libdevice"
    for name, text in texts.items():
        if not is_attention(name):
            continue
        module = parse_payload(text, "attention")  # what `walk` returns does not keep it
        function = walk(module, "func.func")[0]
        attention = find_last(function.regions[0].blocks[0])
        one_kernel += choose(attention, on, skips=skips).us
        score = on.attention["score"] * (on.attention["wide_score"] if attention.terms > 1 else 1)
        if VECTOR_PRODUCTS in function.attributes:
            score = on.attention["vector_score"]
        several_kernels += on.attention["kernels"] + math.prod(attention.shape) * score * 1e-6
    return one_kernel > several_kernels
