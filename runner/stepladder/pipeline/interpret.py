"""Interprets one step of a pipeline over a module.

The pipeline's sequence is cloned with one of its `transform.include` ops, and the interpreter runs the clone: the ops
are those that a stock mlir-opt interprets in one go, and a run can stop, dump the IR or leave a step out in between.
"""

from __future__ import annotations

from stepladder.extension.lib import faults
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import interpreter, ir
from stepladder.pipeline.definition import Pipeline
from stepladder.pipeline.sequences import include_ops

_ENTRY = "__stepladder_step"


def interpret_step(pipeline: Pipeline, index: int, module: ir.Module) -> diagnostics.Diagnostic | None:
    """Runs one step over a module, in place; returns its first error, or None where it succeeds.

    Args:
        pipeline: bound to knob values (`bind`).
        index: the step's index.
        module: the payload; it is left in an unspecified state where the step fails.
    """
    faults.take()  # drops the traceback of an earlier failure
    with diagnostics.collect(module.context) as errors:
        entry = _entry_for(pipeline, index)
        try:
            interpreter.apply_named_sequence(module.operation, entry, pipeline.module.operation)
            module.operation.verify()
        except (ValueError, ir.MLIRError) as error:
            if errors:
                return errors[0]
            messages = diagnostics.from_error(error) if isinstance(error, ir.MLIRError) else []
            return (
                messages[0]
                if messages
                else diagnostics.from_text(str(error)) or diagnostics.Diagnostic("", diagnostics.shorten(str(error)))
            )
        finally:
            entry.erase()
    return errors[0] if errors else None


def _entry_for(pipeline: Pipeline, index: int) -> ir.Operation:
    """Adds a clone of the pipeline's sequence with only include `index` to its module; returns the clone."""
    entry = pipeline.sequence.clone()
    pipeline.module.body.append(entry)
    entry.attributes["sym_name"] = ir.StringAttr.get(_ENTRY)
    for position, include in enumerate(include_ops(entry)):
        if position == index:
            continue
        for result in include.results:
            result.replace_all_uses_with(include.operands[0])
        include.erase()
    return entry
