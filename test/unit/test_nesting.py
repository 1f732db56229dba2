"""Text that nests is refused before MLIR's parser overflows the stack, and what only looks nested is not."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import examples
from stepladder.mlir import nesting
from stepladder.mlir.nesting import MAX_DEPTH, MAX_OPERATORS, check_nesting
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

INPUTS = Path(__file__).resolve().parents[1] / "inputs"
sys.path.insert(0, str(INPUTS))

from nested import KINDS

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
def test_too_deep(kind: str) -> None:
    with pytest.raises(StepladderError, match=f"nested deeper than the {MAX_DEPTH} levels") as caught:
        check_nesting(KINDS[kind](MAX_DEPTH + 1), "deep.mlir")
    name, line, column = caught.value.location.split(":")
    assert name == "deep.mlir" and int(line) >= 1 and int(column) >= 1


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_accepted_does_not_overflow_the_stack(kind: str) -> None:
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
def test_what_only_looks_nested(kind: str) -> None:
    with mlir_context():
        parse_payload(KINDS[kind](20 * MAX_DEPTH), "flat.mlir")


PIECES = [
    "(",
    ")",
    "<",
    ">",
    "{",
    "}",
    "->",
    "-->",
    "-",
    "=",
    '"',
    "//",
    "\n",
    "#a",
    "\n#a =",
    "\n #b =",
    "#b",
    "\n#map = affine_map<()>\n",
    "\n#map = affine_map<(#a)>\n",
    "#map",
    "!t",
    "x",
]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("((((")
@example("#a = <<<>>>\n#b = <<#a>>\n#c = <<#b>>")
@example("#a->(((")
@example("---((")
def test_the_bound_of_the_depth_is_one(text: str) -> None:
    """What the exact check refuses, the bound does not accept."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nesting, "MAX_DEPTH", 3)
        patched.setattr(nesting, "_MAX_MINUS_SIGNS", 2)
        try:
            nesting._check_depth(text, "text")
        except StepladderError:
            assert nesting._depth_bound(text) > 3


def test_text_of_kernels_is_not_looked_at_token_by_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound accepts the IR of a kernel: the exact check takes several times as long."""
    function = "func.func @f(%a: memref<4x4xf32, strided<[4, 1], offset: ?>>) { scf.if %c { scf.for %i = {} } }\n"
    monkeypatch.setattr(nesting, "_check_depth", lambda text, name: pytest.fail("the bound is too high"))
    maps = "".join(f"#map{number} = affine_map<(d0) -> (d0 * -{number})>\n" for number in range(40))
    check_nesting(maps + function * 200, "kernel.mlir")
