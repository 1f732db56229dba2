"""Chooses whether matmuls of a function are groups, by the predicted times of one launch and of one each."""

from __future__ import annotations

from collections.abc import Mapping

from stepladder.extension.lib.multi_kernel.stages import group_of
from stepladder.mlir.traverse import symbol_of, walk
from stepladder.pipeline.functions.group_knobs import is_faster
from stepladder.pipeline.functions.stage_texts import is_matmul
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run


def has_faster_group(run: Run, texts: Mapping[str, str], request: Request) -> bool:
    """Returns whether one of the groups of matmuls of a function is predicted to be faster in one launch.

    Args:
        run: that divided the function, with groups.
        texts: payloads of the kernels by name, which groups do not change.
        request: of the matmuls.
    """
    groups: dict[int, list[str]] = {}
    for function in walk(run.module, "func.func"):
        if (number := group_of(function)) is not None and is_matmul(symbol_of(function)):
            groups.setdefault(number, []).append(texts[symbol_of(function)])
    return any(is_faster(members, request) for members in groups.values())
