"""Runs pass pipelines, as mlir-opt does."""

from __future__ import annotations

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.nesting import check_nesting
from stepladder.mlir.text import text_of
from stepladder.pipeline.context import parse_payload
from stepladder.runtime import activity
from stepladder.runtime.errors import FAILED, StepladderError


def run_pass_pipeline(text: str, name: str, pass_pipeline: str) -> str:
    """Runs mlir-opt's `--pass-pipeline` text over a module and returns the IR.

    Args:
        text: the module.
        name: the file it came from, for messages.
        pass_pipeline: for example `builtin.module(canonicalize,cse)`.

    Raises:
        StepladderError: text that does not parse, or a pass that fails (status FAILED).
    """
    module = parse_payload(text, name)
    check_nesting(pass_pipeline, "--pass-pipeline")
    try:
        passes = passmanager.PassManager.parse(pass_pipeline)
    except ValueError as error:
        raise StepladderError(
            f"--pass-pipeline: {diagnostics.shorten(str(error))}",
            notes=["for example: --pass-pipeline='builtin.module(canonicalize,cse)'"],
        ) from None
    try:
        with activity.during(f"a pass of '{diagnostics.shorten(pass_pipeline)}'"):
            passes.run(module.operation)
    except ir.MLIRError as error:
        messages = diagnostics.from_error(error)
        first = messages[0] if messages else diagnostics.Diagnostic("", "a pass failed")
        raise StepladderError(
            first.message, location=first.location or name, notes=first.notes, status=FAILED
        ) from None
    return text_of(module)
