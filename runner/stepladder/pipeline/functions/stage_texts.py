"""The functions that become kernels, as separate payloads, and the roles in their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.extension.lib.multi_kernel.stages import as_payload, is_private, kind_named
from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import callee_of, producer, walk
from stepladder.mlir.windows import CAST
from stepladder.payload.matmul import find_matmul
from stepladder.payload.rewrites.computed_factors import WHOLE
from stepladder.payload.signature import set_signature
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.run import Run
from stepladder.runtime.problem import Problem

# The step after which each kernel is a function.
OUTLINED = "outline_elementwise"
# Of the matmuls that were asked for last, by their payloads; at most as many.
_problems: dict[str, Problem] = {}
_MAX_PROBLEMS = 256


def is_matmul(name: str) -> bool:
    """Returns whether a stage is a matmul, by the name of its function.

    Args:
        name: of the outlined function: its index is the last word.
    """
    return kind_named(name) == "matmul"


def is_attention(name: str) -> bool:
    """Returns whether a stage is an attention, by the name of its function.

    Args:
        name: of the outlined function: its index is the last word.
    """
    return kind_named(name) == "attention"


def problem_of(text: str, name: str) -> Problem:
    """Returns the problem of a stage that is a matmul, in the current MLIR context.

    Args:
        text: its payload; `name`: for messages.

    Raises:
        StepladderError: as `find_matmul`.
    """
    problem = _problems.get(text)
    if problem is None:
        problem = _problems[text] = find_matmul(parse_payload(text, name)).problem
        if len(_problems) > _MAX_PROBLEMS:
            del _problems[next(iter(_problems))]
    return problem


def stage_texts(run: Run) -> dict[str, str]:
    """Returns the functions that are kernels, each as a payload of its own, by name.

    Args:
        run: of the pipeline `functions`, with the IR after every step.
    """
    module = parse_payload(next(step.text for step in run.steps if step.name == OUTLINED), OUTLINED)
    texts = {}
    for function in walk(module, "func.func"):
        if not is_private(function):
            continue
        name = ir.StringAttr(function.attributes["sym_name"]).value
        alone = as_payload(function, keeps_marks=not is_matmul(name))
        # Equal kernels have one name, so that they are compiled once.
        stage = walk(alone, "func.func")[0]
        stage.attributes["sym_name"] = ir.StringAttr.get(name.rpartition("_")[0])
        if not is_matmul(name):
            stage.attributes[WHOLE] = ir.UnitAttr.get(stage.context)
        texts[name] = text_of(alone)
    return texts


def with_pitches(texts: Mapping[str, str], run: Run) -> dict[str, str]:
    """Returns the payloads of kernels, of which those that write columns of a buffer take the buffer that C is in.

    Args:
        texts: payloads by name (`stage_texts`).
        run: of the pipeline `functions`, whose last IR says which buffers kernels are launched on.
    """
    new_texts = dict(texts)
    for call in walk(run.module, "func.call"):
        if list(call.operands) and (source := producer(call.operands[len(call.operands) - 1])) is not None:
            name = callee_of(call)
            if source.name == CAST and is_matmul(name):
                strides = ir.MemRefType(source.results[0].type).get_strides_and_offset()[0]
                new_texts[name] = _with_pitch(texts[name], name, strides)
    return new_texts


def _with_pitch(text: str, name: str, strides: Sequence[int]) -> str:
    """Returns a payload on tensors that writes its one result to rows of a buffer, the last argument."""
    payload = parse_payload(text, name)
    function = walk(payload, "func.func")[0]
    body = function.regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1].operation
    type_ = ir.RankedTensorType(end.operands[0].type)
    layout = ir.StridedLayoutAttr.get(0, list(strides))
    with end.location:
        buffer = body.add_argument(ir.MemRefType.get(type_.shape, type_.element_type, layout), end.location)
        with ir.InsertionPoint(end):
            unit = ir.UnitAttr.get()
            ir.Operation.create(
                "bufferization.materialize_in_destination",
                operands=[end.operands[0], buffer],
                attributes={"restrict": unit, "writable": unit},
            )
            ir.Operation.create("func.return")
    end.erase()
    set_signature(function, [])
    return text_of(payload)
