"""Runs a kernel's last IR that the emulator knows, on arrays, with the sanitizer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepladder.api.building import exclusive
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.emulator.ptx.arguments import from_manifest
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.bundle import Bundle
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, StepladderError


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
            executor = EmulatedExecutor(emulation, bundle.reference.roles, count=False)
            executor.load(arrays["a"], arrays["b"] if "b" in arrays else arrays["a"], *further)
            result = executor.launch(arrays["c"])
            return [result, *executor.results()], [finding.render() for finding in executor.findings]
    raise StepladderError(f"the emulator has nothing to run: {reason}; no kernel was launched", status=NOT_EXECUTED)


def run_ptx(bundle: Bundle, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Runs the PTX of a kernel without preceding kernels on the emulator, with memory of the sizes of its manifest.

    Args:
        bundle: the kernel.
        arrays: by role, row-major, of the shapes of the kernel's buffers.

    Returns:
        What C and the results beside it hold afterwards.

    Raises:
        StepladderError: PTX that the emulator does not know, or faults of the kernel; status FAILED.
    """
    manifest = bundle.manifest
    with exclusive:
        kernel = Kernel(parse(bundle.ptx, "kernel.ptx"), manifest.kernel_name, "kernel.ptx")
        bound = kernel.bound(from_manifest(manifest), Launch.of_manifest(manifest))
        outcome = bound.run([np.ascontiguousarray(arrays[item.role]) for item in manifest.arguments], count=False)
    if outcome.findings:
        notes = [finding.render() for finding in outcome.findings[:4]]
        count = len(outcome.findings)
        raise StepladderError(f"the emulator found {count} faults of the kernel", notes=notes, status=FAILED)
    by_role = {item.role: array for item, array in zip(manifest.arguments, outcome.arguments)}
    return [np.asarray(by_role[role]) for role in ("c", *manifest.problem.result_roles)]
