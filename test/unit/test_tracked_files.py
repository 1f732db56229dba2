"""What is tracked: files of the project, which name no folder of a machine."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = {".err", ".log", ".out", ".part"}
HOME = re.compile(rb"/(root|home|Users)/[\w.]")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name]


def test_no_output_is_tracked(tracked: list[Path]) -> None:
    assert [str(path) for path in tracked if path.suffix in OUTPUT] == []


def test_no_file_names_a_folder_of_a_machine(tracked: list[Path]) -> None:
    here = [path for path in tracked if (ROOT / path).is_file()]
    assert [str(path) for path in here if HOME.search((ROOT / path).read_bytes())] == []
