"""Runs a kernel's last IR that the emulator knows, on arrays, with the sanitizer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepladder.api.building import exclusive
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.bundle import Bundle
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError


def run(
    dumps: Mapping[str, str], bundle: Bundle, arrays: Mapping[str, np.ndarray]
) -> tuple[list[np.ndarray], list[str]]:
    """Runs a kernel on the emulator.

    Args:
        dumps: the IR after each step, by file name.
        bundle: the kernel.
        arrays: by role, row-major, of the shapes of the kernel's buffers.

    Returns:
        What C and the results beside it hold afterwards, and what the sanitizer found.

    Raises:
        StepladderError: the emulator knows the IR after none of the steps; status NOT_EXECUTED.
    """
    assert bundle.reference is not None  # `Signature` needs it too
    further = [arrays[role] for role in bundle.manifest.problem.epilogue_roles]
    reason = "there is no IR"
    with exclusive, mlir_context():
        for name, text in sorted(dumps.items(), reverse=True):
            try:
                emulation = Emulation(parse_payload(text, name), name=name)
            except StepladderError as error:
                reason = error.message
                continue
            executor = EmulatedExecutor(emulation, bundle.reference.roles)
            executor.load(arrays["a"], arrays["b"] if "b" in arrays else arrays["a"], *further)
            result = executor.launch(arrays["c"])
            return [result, *executor.results()], [finding.render() for finding in executor.findings]
    raise StepladderError(f"the emulator has nothing to run: {reason}; nothing was executed", status=NOT_EXECUTED)
