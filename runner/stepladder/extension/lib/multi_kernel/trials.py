"""Whether one kernel computes a group of ops with a matmul: the front of payloads is asked about a copy of it."""

from collections.abc import Sequence
from typing import Any

from stepladder.extension.lib.multi_kernel.stages import write_stage
from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.traverse import walk
from stepladder.payload.front.plan import STRIDED
from stepladder.payload.matmul import PayloadMatmul, find_matmul
from stepladder.runtime.errors import StepladderError

# The largest number of elements of a constant that a text has; what MLIR writes in place of more.
_SHOWN, _ELIDED = 16, "__elided__"
# Whether the groups that were tried last are accepted, by their texts; at most as many.
_tried: dict[tuple[str, bool], bool] = {}
_MAX_TRIED = 1024


def is_accepted(ops: Sequence[ir.Operation], *results: ir.Value, columns: bool = True) -> bool:
    """Returns whether a kernel computes a group of ops.

    Args:
        ops: of one block, with a matmul.
        results: the values of them that the kernel writes.
        columns: whether kernels read A and B and write C where rows have a pitch, as those of heads that are merged
            behind rows do.
    """
    trial = _trial(ops, results)
    # Several steps try one group, and the iterations of an unrolled loop and the layers of a network are many groups of
    # one text. Large constants are left out of it.
    limits: dict[str, Any] = {"large_elements_limit": _SHOWN, "large_resource_limit": _SHOWN}  # bool to pyright
    key = trial.operation.get_asm(**limits), columns
    if key in _tried:
        return _tried[key]
    accepted = _refusal_of(trial, columns=columns) is None
    if _ELIDED not in key[0]:
        _tried[key] = accepted
        if len(_tried) > _MAX_TRIED:
            del _tried[next(iter(_tried))]
    return accepted


def refusal_of(ops: Sequence[ir.Operation], *results: ir.Value, columns: bool = True) -> str:
    """Returns why no kernel computes a group of ops, one that `is_accepted` does not accept; arguments as for that.

    Args:
        ops: of one block, with a matmul.
        results: the values of them that the kernel writes.
        columns: as for `is_accepted`.
    """
    # Asked again: the names in the message are those of this group.
    return _refusal_of(_trial(ops, results), columns=columns) or ""


def _trial(ops: Sequence[ir.Operation], results: Sequence[ir.Value]) -> ir.Module:
    """Returns a module with copies of ops, whose function returns some of their results."""
    trial = ir.Module.create(ops[0].location)
    write_stage(trial.body, "stage", ops, results)
    return trial


def _refusal_of(trial: ir.Module, *, columns: bool) -> str | None:
    """Returns why no kernel computes the ops of a `_trial`; None where one does. `columns` as for `is_accepted`."""
    strided = any(STRIDED in op.attributes for op in walk(trial))
    try:
        matmul = find_matmul(trial)
    except StepladderError as refusal:
        return refusal.message
    problem = matmul.problem
    if problem.batch is not None and min(problem.m, problem.n, problem.k) == 1:
        return "m, n or k of the matmuls of a batch is 1"
    if problem.c_window is not None and not columns:
        return "C has a pitch between its rows, and the pipelines write whole buffers"
    if matmul.facts()["read_windows"] and not (columns and _reads_parts(matmul, strided=strided)):
        return "A or B is a part of a buffer that the pipelines do not read in place"
    return None


def _reads_parts(matmul: PayloadMatmul, *, strided: bool) -> bool:
    """Returns whether all pipelines read A and B where they are, as parts of buffers: `wgmma` does not, of elements
    that it transposes or splits in kernels of their own, and no pipeline reads rows that are not aligned.

    Args:
        matmul: with A or B that is a part.
        strided: whether the pipelines read batches of several strides of these elements.
    """
    problem = matmul.problem
    is_along_k = problem.a_layout == "row" and problem.b_layout == "column"
    widths = {bits_of_name(problem.a_type), bits_of_name(problem.b_type)}
    is_read = strided or widths == {16} or (widths == {8} and is_along_k)
    return bool(matmul.facts()["windows_aligned"]) and is_read
