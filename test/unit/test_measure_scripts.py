"""The scripts that measure: help and wrong options write nothing, and their usage lines are ones that they take."""

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from documented import ROOT, make_checkout
from stepladder.runtime.resources import transforms_dir

BENCHMARKS = transforms_dir().parent / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="not a checkout")

MODULES = sorted(BENCHMARKS.glob("*.py"))
SCRIPTS = [path for path in MODULES if '__name__ == "__main__"' in path.read_text()]


# What a checkout held after the last command in it.
_HELD: dict[Path, dict[str, tuple[int, int]]] = {}


def _files(folder: str | Path) -> dict[str, tuple[int, int]]:
    """Returns path -> size and time of the last change for all files but byte code."""
    found = {}
    for entry in os.scandir(folder):
        if entry.is_dir():
            found |= {} if entry.name == "__pycache__" else _files(entry.path)
        else:
            found[entry.path] = (entry.stat().st_size, entry.stat().st_mtime_ns)
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkout(tmp_path_factory.mktemp("measure") / "checkout")


def _plain_environment() -> dict[str, str]:
    """Returns the variables of a shell in which nothing is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@contextlib.contextmanager
def _writes_nothing(checkout: Path) -> Iterator[None]:
    before = _HELD.get(checkout) or _files(checkout)
    yield
    _HELD[checkout] = _files(checkout)
    assert _HELD[checkout] == before


def _run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a plain checkout, where nothing is installed, and requires that it writes no file."""
    with _writes_nothing(checkout):
        return subprocess.run(
            [sys.executable, *arguments], cwd=checkout, capture_output=True, text=True, env=_plain_environment()
        )


# For each line with a script and usage lines: runs the script with --help, for itself and for each of its parts, and
# with an unknown option, and parses the usage lines, in one process, forked from one that has imported what most need.
_CALLS = """
import contextlib, io, json, os, re, runpy, sys

sys.path[:0] = [sys.argv[1], "runner"]
import common, numpy
import stepladder.pipeline.run

def call(script, *arguments):
    sys.argv = [script, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            runpy.run_path(script, run_name="__main__")
            status = None
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()

def check(script, usages):
    shown = call(script, "--help")
    parts = re.findall(r"^    (\\w+) {2,}\\S", shown[1].partition("PART")[2], re.MULTILINE)
    helps = {part: call(script, part, "--help") for part in parts}
    refused = call(script, "--nonsense")
    parser = runpy.run_path(script)["make_parser"]()
    for usage in usages:
        parser.parse_args(usage)
    print(json.dumps([shown, refused, helps]), flush=True)

for line in sys.stdin:
    if os.fork() == 0:
        check(*json.loads(line))
        os._exit(0)
    _, status = os.wait()
    if status:
        sys.exit(f"{line}: status {os.waitstatus_to_exitcode(status)}")
"""

# Imports modules, each in a process of its own, forked from one that has imported what most of them import.
_IMPORTS = """
import os, sys

folder, modules = sys.argv[1], sys.argv[2:]
sys.path[:0] = [folder, "runner"]
import numpy
import stepladder.pipeline.run

for module in modules:
    if os.fork() == 0:
        try:
            __import__(module)
        except ModuleNotFoundError as error:
            if error.name not in ("triton", "matplotlib"):
                raise
        sys.stdout.flush()
        os._exit(0)
    _, status = os.wait()
    if status:
        sys.exit(f"{module}: status {os.waitstatus_to_exitcode(status)}")
"""


def _usages(path: Path) -> list[list[str]]:
    """Returns the arguments of the commands in a script's docstring, each option once and without its brackets."""
    description = ast.get_docstring(ast.parse(path.read_text()), clean=False) or ""
    lines = re.findall(rf"^    python \S+/{path.name} ?(.*)$", description, re.MULTILINE)
    usages = [re.sub(r"[\[\]]| \.\.\.", "", re.split(r" {2,}", line)[0]) for line in lines]
    return [usage.replace("PART", "sizes").split() for usage in usages]


@pytest.fixture(scope="module")
def calls(checkout: Path) -> Iterator[subprocess.Popen[str]]:
    """The process of `_CALLS`, in a plain checkout."""
    with subprocess.Popen(
        [sys.executable, "-c", _CALLS, str(BENCHMARKS.relative_to(ROOT))],
        cwd=checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_plain_environment(),
    ) as process:
        yield process


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_help_and_unknown_options_write_nothing_and_usage_lines_are_accepted(
    path: Path, checkout: Path, calls: subprocess.Popen[str]
) -> None:
    usages = _usages(path)
    assert usages and calls.stdin and calls.stdout
    with _writes_nothing(checkout):
        print(json.dumps([str(path.relative_to(ROOT)), usages]), file=calls.stdin, flush=True)
        answer = calls.stdout.readline()
    assert answer, "the script failed; its traceback is above"
    (status, shown, _), (refused, _, message), parts = json.loads(answer)
    assert status == 0
    assert (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0] in shown
    assert refused == 2
    assert "usage:" in message
    for part, (status, of_part, _) in parts.items():
        assert status == 0 and f"{path.name} {part}" in of_part


def test_imports_write_nothing(checkout: Path) -> None:
    modules = [path.stem for path in MODULES if path not in SCRIPTS]
    assert modules
    done = _run(checkout, "-c", _IMPORTS, str(BENCHMARKS.relative_to(ROOT)), *modules)
    assert done.returncode == 0, done.stderr
    assert not done.stdout


def test_a_result_folder_that_is_missing_is_one_message(checkout: Path) -> None:
    script = str((BENCHMARKS / "hopper.py").relative_to(ROOT))
    done = _run(checkout, script, "numbers", "none", "result.json")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr and "none" in done.stderr
