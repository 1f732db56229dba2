"""The named sequences of a pipeline's transform module, and the ops in them that the runner reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.pipeline.definition import Pipeline, Step

_SEQUENCE = "transform.named_sequence"


def sequences_by_name(module: ir.Module) -> dict[str, ir.Operation]:
    """Returns the named sequences of a transform module, definitions and declarations alike.

    Args:
        module: with a `transform.named_sequence` for each step.
    """
    return {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == _SEQUENCE
    }


def is_declaration(sequence: ir.Operation) -> bool:
    """Returns whether a named sequence has no body: another file defines it.

    Args:
        sequence: a `transform.named_sequence`.
    """
    return not sequence.regions[0].blocks


def knob_ops(pipeline: Pipeline) -> list[ir.Operation]:
    """Returns the `transform.tune.knob` ops of a pipeline, in order.

    Args:
        pipeline: loaded in the current MLIR context.
    """
    return walk(pipeline.sequence, "transform.tune.knob")


def include_ops(sequence: ir.Operation) -> list[ir.Operation]:
    """Returns the `transform.include` ops of a named sequence, in order.

    Args:
        sequence: a `transform.named_sequence`; a declaration has none.
    """
    return walk(sequence, "transform.include")


def included_name(include: ir.Operation) -> str:
    """Returns the name of the sequence that a `transform.include` op includes.

    Args:
        include: a `transform.include`.
    """
    return include.attributes["target"].value


def with_included(pipeline: Pipeline, names: Iterable[str]) -> dict[str, ir.Operation]:
    """Returns some named sequences and those that they include, directly or not, by name.

    Args:
        pipeline: whose module has the sequences.
        names: of the sequences to begin with.
    """
    sequences = sequences_by_name(pipeline.module)
    included: dict[str, ir.Operation] = {}
    pending = list(names)
    while pending:
        name = pending.pop(0)
        if name not in included:
            included[name] = sequences[name]
            pending += [included_name(include) for include in include_ops(sequences[name])]
    return included


def sequences_of(pipeline: Pipeline, steps: Sequence[Step]) -> list[ir.Operation]:
    """Returns the named sequences of some steps of a pipeline and those that they include, each once.

    Args:
        pipeline: whose module has the sequences.
        steps: of the pipeline.
    """
    return list(with_included(pipeline, (step.name for step in steps)).values())


def texts_of_steps(pipeline: Pipeline) -> dict[str, str]:
    """Returns the definition of every step of a pipeline, with what it includes, as MLIR prints it, by step name.

    Args:
        pipeline: loaded in the current MLIR context.
    """
    return {step.name: "\n".join(map(_text_of, sequences_of(pipeline, [step]))) for step in pipeline.steps}


def text_of_sequence(pipeline: Pipeline) -> str:
    """Returns the pipeline's own sequence as MLIR prints it, named `@pipeline` so that copies compare equal.

    Args:
        pipeline: loaded in the current MLIR context.
    """
    return _text_of(pipeline.sequence).replace(f"@{pipeline.name}(", "@pipeline(", 1)


def _text_of(sequence: ir.Operation) -> str:
    """Returns a sequence as MLIR prints it; without a local scope, MLIR resolves the names of the whole module."""
    return sequence.operation.get_asm(use_local_scope=True)
