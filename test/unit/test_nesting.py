"""Text that nests is refused before MLIR's parser overflows the stack, and what only looks nested is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from stepladder.mlir.nesting import MAX_DEPTH, MAX_OPERATORS, check_nesting
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

INPUTS = Path(__file__).resolve().parents[1] / "inputs"
sys.path.insert(0, str(INPUTS))

from nested import KINDS  # noqa: E402

DEEP = [
    "regions",
    "generic",
    "modules",
    "brackets",
    "dictionaries",
    "types",
    "functions",
    "locations",
    "affine",
    "minus",
    "aliases",
]


@pytest.mark.parametrize("kind", DEEP)
def test_too_deep(kind) -> None:
    with pytest.raises(StepladderError, match=f"nested deeper than the {MAX_DEPTH} levels") as caught:
        check_nesting(KINDS[kind](MAX_DEPTH + 1), "deep.mlir")
    name, line, column = caught.value.location.split(":")
    assert name == "deep.mlir" and int(line) >= 1 and int(column) >= 1


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_accepted_does_not_overflow_the_stack(kind) -> None:
    """The deepest text that passes the check is parsed, verified and printed, with a margin: on a quarter of the stack
    that a process has."""
    for depth in range(MAX_DEPTH - 4, 0, -1):  # the printer adds levels, such as the module around a function
        text = KINDS[kind](depth)
        try:
            check_nesting(text, "deep.mlir")
            break
        except StepladderError:
            continue
    assert depth >= MAX_DEPTH // 2 - 4
    done = subprocess.run(
        [
            "sh",
            "-c",
            'ulimit -s 2048; exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "stepladder.cli.opt",
            "-",
            "--pass-pipeline=builtin.module(canonicalize,cse)",
        ],
        input=text,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_too_many_operators() -> None:
    check_nesting(KINDS["sum"](MAX_OPERATORS), "long.mlir")
    with pytest.raises(StepladderError, match=f"more than the {MAX_OPERATORS} operators"):
        check_nesting(KINDS["sum"](MAX_OPERATORS + 2), "long.mlir")


@pytest.mark.parametrize("kind", ["texts", "side by side", "arrows"])
def test_what_only_looks_nested(kind) -> None:
    with mlir_context():
        parse_payload(KINDS[kind](20 * MAX_DEPTH), "flat.mlir")
