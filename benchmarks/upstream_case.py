"""Runs one of LLVM's integration tests on the emulator: the child process of `upstream.py`.

    python benchmarks/upstream_case.py TEST ENTRY FINDINGS.json [EDITED]

The output of the program goes to standard output, the findings of the emulator to FINDINGS.json. EDITED is a changed
copy that is read instead of TEST. A test in Python runs unchanged, with the installed bindings as `mlir` and the
emulator as the execution engine. The exit status is 2 if the emulator does not support an op.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser
from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.mlir import bindings
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

MAX_STEPS = 20_000_000
_MLIR_OPT = ("mlir-opt-22", "mlir-opt")
_SCHEDULE = re.compile(r"^ *module (@\w+ )?attributes \{ ?transform\.with_named_sequence ?\} ", re.MULTILINE)


def scheduled(text: str, name: str) -> str:
    """Returns a module after the application of its own schedule; one without a schedule is unchanged.

    Args:
        text: of the module.
        name: of the file, for messages.

    Raises:
        StepladderError: there is no stock mlir-opt, or it does not apply the schedule.
    """
    if "-transform-interpreter" not in text or not _SCHEDULE.search(text):
        return text
    tool = next(filter(None, map(shutil.which, _MLIR_OPT)), None)
    if tool is None:
        raise StepladderError("the schedule of this test needs a stock mlir-opt, and there is none", location=name)
    process = subprocess.run(
        [tool, "-", "--transform-interpreter", "--mlir-print-debuginfo"], input=text, text=True, capture_output=True
    )
    if process.returncode:
        raise StepladderError(f"{tool} does not apply the schedule: {process.stderr.splitlines()[0]}", location=name)
    body = process.stdout
    match = _SCHEDULE.search(body)
    assert match is not None
    start, place, depth = match.start(), match.end(), 0
    for end in range(place, len(body)):
        depth += (body[end] == "{") - (body[end] == "}")
        if depth == 0:
            break
    # The location behind the closing brace goes as well.
    return body[:start] + re.sub(r"\A loc\(#\w+\)", "", body[end + 1 :])


def run_text(text: str, name: str, entry: str) -> Outcome:
    """Returns the outcome of a module's function.

    Args:
        text: of the module.
        name: of the file, for messages.
        entry: the function.
    """
    verified = "-generate-runtime-verification" in text
    continues = "-test-cf-assert" in text
    with mlir_context():
        module = parse_payload(scheduled(text, name), name)
        if verified:
            manager = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.passmanager").PassManager
            manager.parse("builtin.module(generate-runtime-verification)").run(module.operation)
        emulation = Emulation(module, entry, name=name)
        return emulation.run(
            emulation.random_inputs(0), count=False, max_steps=MAX_STEPS, stops_at_assertions=not continues
        )


# Tests in Python.


class _Bindings(importlib.abc.Loader):
    """`mlir` and its modules, as tests in Python import them."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.findings: list[dict] = []
        self.name = bindings.ir.__name__.rpartition(".")[0]

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Finds `mlir` and its modules: those of the installed bindings with the same names."""
        return importlib.machinery.ModuleSpec(name, self) if name == "mlir" or name.startswith("mlir.") else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns the module of a name."""
        rest = spec.name.removeprefix("mlir")
        if rest in ("", ".dialects"):  # their modules are found one by one
            stand_in = types.ModuleType(spec.name)
            stand_in.__path__ = []
            return stand_in
        if rest == ".execution_engine":
            return self._engine()
        if rest == ".runtime":
            stand_in = types.ModuleType(spec.name)
            vars(stand_in).update(get_ranked_memref_descriptor=self._descriptor)
            return stand_in
        if rest == ".passmanager":
            stand_in = types.ModuleType(spec.name)
            # The emulator runs what the pass pipeline would lower.
            unused = types.SimpleNamespace(run=lambda operation: None, enable_ir_printing=lambda: None)
            vars(stand_in).update(PassManager=types.SimpleNamespace(parse=lambda text: unused))
            return stand_in
        module = importlib.import_module(self.name + rest)
        if rest == ".dialects.gpu":
            stand_in = types.ModuleType(spec.name)
            vars(stand_in).update(vars(module))
            generated = importlib.import_module(f"{self.name}.dialects._gpu_ops_gen")

            def adapted(name: str) -> Callable[..., object]:
                """Returns an op that older tests build with the token's type first, as the generated class takes it."""

                def build(*operands: object, **options: object) -> object:
                    older = operands and isinstance(operands[0], bindings.ir.Type)
                    return getattr(generated if older else module, name)(*operands, **options)

                return build

            vars(stand_in).update(wait=adapted("wait"), LaunchOp=adapted("LaunchOp"))
            return stand_in
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: the module is there."""

    def _descriptor(self, array: np.ndarray) -> ctypes.Structure:
        """Returns what stands for the descriptor of an array: its number, and its shape."""
        self.arrays.append(array)
        made = type(
            "Descriptor",
            (ctypes.Structure,),
            {"_fields_": [("number", ctypes.c_int64), ("shape", ctypes.c_int64 * array.ndim)]},
        )
        return made(len(self.arrays) - 1, array.shape)

    def _engine(self) -> types.ModuleType:
        made = types.ModuleType("mlir.execution_engine")
        owner = self

        class ExecutionEngine:
            """Runs functions on the emulator."""

            def __init__(self, module: bindings.ir.Module, **options: object) -> None:
                self.module = module

            def initialize(self) -> None:
                """Nothing."""

            def invoke(self, name: str, *arguments: object) -> None:
                """Calls a function with pointers to its arguments, and changes arrays as it does."""
                owner.invoke(self.module, name, arguments)

        vars(made).update(ExecutionEngine=ExecutionEngine)
        return made

    def invoke(self, module: bindings.ir.Module, name: str, arguments: Sequence) -> None:
        """Runs a function of a module that a test has built, with pointers to its arguments."""
        emulation = Emulation(module, name)
        given = [
            self.arrays[argument.contents.contents.number] if hasattr(argument, "contents") else argument[0]
            for argument in arguments
        ]
        outcome = emulation.run(given, count=False, max_steps=MAX_STEPS)
        print(outcome.output, end="")
        self.findings += [finding.as_dict() for finding in outcome.findings]
        for array, after in zip(given, outcome.arguments):
            if after is not None:
                np.copyto(array, after)


def run_python(path: Path) -> tuple[list[dict], bool]:
    """Runs a test in Python.

    Args:
        path: of the test.

    Returns:
        The findings, and whether the test ended without an exception.
    """
    given = _Bindings()
    bindings.import_dialects()
    sys.meta_path.insert(0, given)
    sys.path.insert(0, str(path.parent))
    os.environ.setdefault("SUPPORT_LIB", str(path))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except AssertionError:  # wrong numbers, by the test's own reference
        traceback.print_exc()
        return given.findings, False
    return given.findings, True


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("test", type=Path, metavar="TEST", help="the test, in MLIR or Python")
    parser.add_argument("entry", metavar="ENTRY", help="the function to run")
    parser.add_argument("findings", type=Path, metavar="FINDINGS.json", help="file to write")
    parser.add_argument("edited", type=Path, nargs="?", metavar="EDITED", help="a changed copy of the test to run")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a test; returns the exit status.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    path: Path = args.edited or args.test
    ended = True
    try:
        if args.test.suffix == ".py":
            found, ended = run_python(path)
        else:
            outcome = run_text(path.read_text(), args.test.name, args.entry)
            print(outcome.output, end="")
            found = [finding.as_dict() for finding in outcome.findings]
    except StepladderError as error:
        print(error.render(), file=sys.stderr)
        return 2
    args.findings.write_text(json.dumps(found))
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
