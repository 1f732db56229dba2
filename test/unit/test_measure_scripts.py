"""The scripts that measure: help and wrong options write nothing, and their usage lines are ones that they take."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documented import ROOT, make_checkout
from stepladder.runtime.resources import transforms_dir

BENCHMARKS = transforms_dir().parent / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="not a checkout")

MODULES = sorted(BENCHMARKS.glob("*.py"))
SCRIPTS = [path for path in MODULES if '__name__ == "__main__"' in path.read_text()]


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Returns path -> size and time of the last change for all files but byte code."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkout(tmp_path_factory.mktemp("measure") / "checkout")


def _run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a plain checkout, where nothing is installed, and requires that it writes no file."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    before = _files(checkout)
    done = subprocess.run([sys.executable, *arguments], cwd=checkout, capture_output=True, text=True, env=environment)
    assert _files(checkout) == before
    return done


def _import(module: str) -> str:
    return f"import sys; sys.path[:0] = [{str(BENCHMARKS.relative_to(ROOT))!r}, 'runner']; import {module}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_help_and_unknown_options_write_nothing(path: Path, checkout: Path) -> None:
    script = str(path.relative_to(ROOT))
    shown = _run(checkout, script, "--help")
    assert shown.returncode == 0, shown.stderr
    assert (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0] in shown.stdout
    refused = _run(checkout, script, "--nonsense")
    assert refused.returncode == 2
    assert "usage:" in refused.stderr and "Traceback" not in refused.stderr
    for part in re.findall(r"^    (\w+) {2,}\S", shown.stdout.partition("PART")[2], re.MULTILINE):
        of_part = _run(checkout, script, part, "--help")
        assert of_part.returncode == 0 and f"{path.name} {part}" in of_part.stdout


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_an_import_writes_nothing(path: Path, checkout: Path) -> None:
    done = _run(checkout, "-c", _import(path.stem))
    if missing := re.search(r"No module named '(triton|matplotlib)'", done.stderr):
        pytest.skip(f"needs {missing[1]}")
    assert done.returncode == 0, done.stderr
    assert not done.stdout


def _usages(path: Path) -> list[list[str]]:
    """Returns the arguments of the commands in a script's docstring, each option once and without its brackets."""
    description = ast.get_docstring(ast.parse(path.read_text()), clean=False) or ""
    lines = re.findall(rf"^    python \S+/{path.name} ?(.*)$", description, re.MULTILINE)
    usages = [re.sub(r"[\[\]]| \.\.\.", "", re.split(r" {2,}", line)[0]) for line in lines]
    return [usage.replace("PART", "sizes").split() for usage in usages]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_usage_lines_are_accepted(path: Path, checkout: Path) -> None:
    usages = _usages(path)
    assert usages
    done = _run(checkout, "-c", f"{_import(path.stem)}; [{path.stem}.make_parser().parse_args(u) for u in {usages}]")
    assert done.returncode == 0, done.stderr


def test_a_result_folder_that_is_missing_is_one_message(checkout: Path) -> None:
    script = str((BENCHMARKS / "hopper.py").relative_to(ROOT))
    done = _run(checkout, script, "numbers", "none", "result.json")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr and "none" in done.stderr
