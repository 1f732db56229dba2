"""SIGINT ends a command line with one word and status 130, whatever it is at; nothing half written is left.

A run takes half of the points in time, others for another STEPLADDER_TEST_SEED; STEPLADDER_TEST_PROFILE=random takes
all.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from combinations import sample
from stepladder.cli import main
from stepladder.cli.guard import INTERRUPTED
from stepladder.payload.writing import matmul_text

HERE = Path(__file__).resolve().parent
RUNNER = Path(main.__file__).resolve().parents[1]
POINTS = 16


def run(where: str, number: int, folder: Path) -> subprocess.CompletedProcess[str]:
    payload = folder / "matmul.mlir"
    payload.write_text(matmul_text(256, 256, 64))
    return subprocess.run(
        [
            sys.executable,
            HERE / "interrupted_main.py",
            where,
            str(number),
            payload,
            "--pipeline",
            "wmma",
            "-o",
            folder / "out.mlir",
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(RUNNER)},
    )


def assert_interrupted(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "interrupted\n")
    assert [file.name for file in folder.iterdir()] == ["matmul.mlir"]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> int:
    return int(run("count", 0, tmp_path_factory.mktemp("count")).stderr.splitlines()[-1])


@pytest.mark.parametrize("point", sample(range(1, POINTS + 1), 2))
def test_at_any_time(point: int, events: int, tmp_path: Path) -> None:
    """From the first imports to the last step: while Python runs, and in functions that MLIR calls."""
    assert_interrupted(run("event", events * point // (POINTS + 1), tmp_path), tmp_path)


@pytest.mark.parametrize("number", [1, 40, 500, 1300, 2000])
def test_while_native_modules_are_imported(number: int, tmp_path: Path) -> None:
    """Where an exception ends the process in a segmentation fault, or passes for MLIR not being installed."""
    assert_interrupted(run("native", number, tmp_path), tmp_path)


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """As of a job in the background of a shell without job control."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            'trap "" INT; exec "$@"',
            "sh",
            sys.executable,
            HERE / "interrupted_main.py",
            "event",
            "9999",
            "--version",
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(RUNNER)},
    )
    assert done.returncode == 0 and "interrupted" not in done.stderr
