"""Standard streams that are full, closed or not text: one message and an exit status, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepladder.cli import main
from stepladder.cli.guard import BROKEN_PIPE

RUNNER = Path(main.__file__).resolve().parents[2]
PAYLOADS = Path(__file__).resolve().parents[1] / "inputs" / "payloads"
LIST = "-m stepladder list"
TEXT = f"-m stepladder.cli.opt {PAYLOADS / 'product.mlir'}"
FROM_STDIN = "-m stepladder.cli.opt -"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command line of bash in which `python` is this Python; its output is what standard error got."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; python() {{ {sys.executable} "$@"; }}; {command}'],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": str(RUNNER)},
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command", [LIST, TEXT, "-m stepladder --help", "-u -m stepladder --help", "-u -m stepladder --version"]
)
@pytest.mark.parametrize("place, reason", [("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")])
def test_output_that_cannot_be_written(command: str, place: str, reason: str) -> None:
    done = shell(f"python {command} >{place}")
    assert (done.returncode, done.stderr) == (2, f"error: cannot write the output: {reason}\n")


@pytest.mark.parametrize("command", [LIST, TEXT])
def test_output_that_is_not_read(command: str) -> None:
    done = shell(f"python {command} | true")
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, "")


@pytest.mark.parametrize("place", ["&-", "/dev/full"])
def test_messages_that_cannot_be_written(place: str) -> None:
    done = shell(f"python -m stepladder.cli.opt nofile.mlir 2>{place}")
    assert (done.returncode, done.stdout) == (2, "")
    assert shell(f"python {TEXT} 2>{place}").stdout.startswith("module {")


@pytest.mark.parametrize(
    "redirection, message",
    [
        ("<&-", "error: cannot read '<stdin>': Bad file descriptor\n"),
        (r"< <(printf 'func\nr\351')", "<stdin>:2:2: error: not UTF-8 text: byte 0xe9\n"),
    ],
)
def test_input_that_cannot_be_read(redirection: str, message: str) -> None:
    done = shell(f"python {FROM_STDIN} {redirection}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
