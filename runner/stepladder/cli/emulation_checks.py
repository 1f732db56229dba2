"""The expected outputs of `stepladder emulate`: files (`--expect`), or a function in MLIR (`--reference`)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stepladder.cli.emulation_output import load_array
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from stepladder.emulator.core.emulation import Emulation, Outcome
    from stepladder.emulator.core.launched import BoundKernel
    from stepladder.emulator.memory.findings import Finding
    from stepladder.mlir.bindings import ir

_FILE = ".mlir"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for expected outputs.

    Args:
        parser: of `stepladder emulate`.
    """
    group = parser.add_argument_group("expected outputs")
    exclusive = group.add_mutually_exclusive_group()
    exclusive.add_argument(
        "--expect",
        metavar="N=FILE.npy,...",
        help="expected arrays, by the number of the argument; results are numbered after the arguments",
    )
    exclusive.add_argument(
        "--reference",
        metavar="[FILE.mlir:]NAME",
        help="function of the same file or of another one, for example in linalg form, that computes the expected "
        "outputs from the same arguments; FILE.mlir alone names the only function of that file",
    )
    group.add_argument(
        "--tolerance",
        type=_tolerance,
        metavar="X",
        help="largest relative error of floating-point outputs, with --expect and --reference (default: square root "
        "of the epsilon of the output's type)",
    )


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got '{text}'")
    return value


def _expected_files(text: str) -> dict[int, str]:
    """Returns the files of `--expect` by the index of the argument or result.

    Raises:
        StepladderError: something else than NUMBER=FILE, or a number given twice.
    """
    files: dict[int, str] = {}
    for item in text.split(","):
        number, equals, path = item.partition("=")
        if not (number.isdecimal() and equals and path):
            raise StepladderError(f"--expect takes NUMBER=FILE.npy, separated by commas, got '{item}'")
        if int(number) in files:
            raise StepladderError(f"--expect has two files for {number}")
        files[int(number)] = path
    return files


class Checks:
    """The expected outputs of a run.

    Args:
        args: of the command line.

    Attributes:
        reference_name: the function of the same file that is the reference, None where there is none or another file
            has it.

    Raises:
        StepladderError: options that do not fit together, or a file that cannot be read.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        if args.tolerance is not None and not (args.expect or args.reference):
            raise StepladderError("--tolerance requires --expect or --reference")
        self.tolerance: float | None = args.tolerance
        files = _expected_files(args.expect) if args.expect else {}
        self.files: dict[int, np.ndarray] = {number: load_array(path) for number, path in files.items()}
        self.reference_file: str | None = None
        self.reference_name: str | None = args.reference
        if args.reference is not None:
            path, suffix, name = args.reference.rpartition(_FILE)
            if suffix and (not name or name.startswith(":")):
                self.reference_file, self.reference_name = path + suffix, name[1:] or None

    @property
    def is_given(self) -> bool:
        """Whether anything is expected."""
        return bool(self.files or self.reference_name or self.reference_file)

    def reference(self, module: ir.Module | None, name: str) -> Emulation | None:
        """Returns the reference, None where there is none; the current context is that of the module.

        Args:
            module: of the checked program, None for PTX.
            name: of its file.

        Raises:
            StepladderError: there is no such function, or it cannot be executed.
        """
        from stepladder.emulator.core.emulation import Emulation
        from stepladder.mlir.diagnostics import keeping_payload_name
        from stepladder.pipeline.context import parse_payload
        from stepladder.runtime.files import read_text

        if self.reference_file is not None:
            text, file = read_text(self.reference_file)
            with keeping_payload_name():
                return Emulation(parse_payload(text, file), self.reference_name, name=file)
        if self.reference_name is None:
            return None
        if module is None:
            raise StepladderError(
                f"PTX has no function @{self.reference_name}: --reference FILE.mlir:NAME names one of another file"
            )
        return Emulation(module, self.reference_name, name=name)

    def compare(
        self,
        outcome: Outcome,
        program: Emulation | BoundKernel,
        reference: Emulation | None,
        inputs: Sequence[np.ndarray],
    ) -> list[Finding]:
        """Returns findings about outputs that differ from the expected ones.

        Args:
            outcome: of the run that is checked.
            program: what was run.
            reference: as `reference` returns it; the context of its module is current.
            inputs: what the arguments held before the run.
        """
        from stepladder.emulator.core import expected

        findings = expected.compare_with_files(outcome, self.files, self.tolerance)
        if reference is not None:
            outputs = expected.reference_outputs(program, reference, self._given(program, inputs))
            findings += expected.compare_with_reference(outcome, inputs, outputs, self.tolerance)
        return findings

    def _given(self, program: Emulation | BoundKernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns what the reference is given: the inputs, but other values for outputs, which are not initialized."""
        import numpy as np

        arguments = getattr(program, "arguments", [])
        arrays = list(inputs)
        for number, argument in enumerate(arguments):
            if argument.is_output:
                random = np.random.default_rng(number).integers(1, 100, arrays[number].shape)
                arrays[number] = random.astype(arrays[number].dtype)
        return arrays
