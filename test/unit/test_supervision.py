"""Commands that run MLIR end in a message where native code crashes, and as they would by themselves otherwise."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepladder.cli.supervision import IN_PROCESS
from stepladder.payload.writing import matmul_text

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")

# A plug-in with an op that crashes. With WAITING=FILE it writes its process number to FILE when loaded, and waits.
PLUGIN = '''
import os, signal, time
from pathlib import Path
from stepladder.extension import Dialect, Handle, transform_op

class Crash(Dialect, name="crash"):
    """Ops that crash."""

class Now(Crash.Operation, name="now"):
    """Crashes."""

    target: Handle

@transform_op(Now)
def now(payload, op, rewriter):
    """Crashes."""
    os.kill(os.getpid(), signal.Signals[os.environ["CRASH"]])

if "WAITING" in os.environ:
    Path(os.environ["WAITING"]).write_text(f"{os.getpid()}\\n")
    time.sleep(60)
'''

PIPELINE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @crash_now(!transform.any_op {transform.readonly})
  transform.named_sequence @crashing(%module: !transform.any_op {transform.consumed}) {
    transform.include @crash_now failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
"""

STEP = """
// A step that crashes.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @crash_now(%module: !transform.any_op {transform.readonly}) {
    "crash.now"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "crash.py").write_text(PLUGIN)
    (tmp_path / "crashing.mlir").write_text(PIPELINE)
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "crash_now.mlir").write_text(STEP)
    (tmp_path / "matmul.mlir").write_text(matmul_text(64, 64, 64))
    options = ["--pipeline", "crashing.mlir", "--plugin", "crash.py", "-o", "out.mlir"]
    return [sys.executable, "-m", "stepladder.cli.opt", "matmul.mlir", *options]


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != IN_PROCESS}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables


@contextlib.contextmanager
def waiting(command: list[str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Starts a command in a group of its own; yields it and the process that loads its plug-in, which waits."""
    file = folder / "waiting"
    started = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(WAITING=str(file)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not (file.exists() and file.read_text().endswith("\n")):
            assert started.poll() is None, started.stderr.read()
            time.sleep(0.02)
        yield started, int(file.read_text())
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate()


def has_ended(process: int) -> bool:
    """Returns whether a process is gone, or only its parent has not asked for its status yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("number", ["SIGSEGV", "SIGABRT"])
def test_a_crash_is_a_message(number: str, command: list[str], tmp_path: Path) -> None:
    done = subprocess.run(command, cwd=tmp_path, env=environment(CRASH=number), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    first, *notes = done.stderr.splitlines()
    assert first == f"error: native code crashed in step 'crash_now' of the pipeline 'crashing': {number}"
    assert notes and all(note.startswith("note: ") for note in notes)
    assert not (tmp_path / "out.mlir").exists()


def test_in_one_process_for_debuggers(command: list[str], tmp_path: Path) -> None:
    variables = environment(CRASH="SIGSEGV") | {IN_PROCESS: "1"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV


@pytest.mark.parametrize("by_keyboard", [False, True])
def test_an_interrupt_is_one(by_keyboard: bool, command: list[str], tmp_path: Path) -> None:
    """Of the process that was started alone, and of the keyboard, which sends it to both."""
    with waiting(command, tmp_path) as (started, inner):
        assert inner != started.pid
        (os.killpg if by_keyboard else os.kill)(started.pid, signal.SIGINT)
        output, errors = started.communicate(timeout=30)
        assert (started.returncode, output, errors) == (130, "", "interrupted\n")
        assert has_ended(inner)


# The signal comes when the other process has ended and its status was read: nothing is left to pass it on to.
LATE_SIGNAL = """
import os, signal, sys
from stepladder.cli.supervision import supervised
wait = os.waitpid

def wait_then_interrupt(process, options):
    ended = wait(process, options)
    os.kill(os.getpid(), signal.SIGINT)
    return ended

os.waitpid = wait_then_interrupt
sys.exit(supervised(lambda: 7))
"""


def test_a_signal_behind_the_end_changes_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LATE_SIGNAL], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_ends_by_the_signal_that_it_gets(command: list[str], tmp_path: Path) -> None:
    with waiting(command, tmp_path) as (started, inner):
        started.terminate()
        output, errors = started.communicate(timeout=30)
        assert (started.returncode, output, errors) == (-signal.SIGTERM, "", "")
        assert has_ended(inner)


def test_a_killed_process_is_a_message(command: list[str], tmp_path: Path) -> None:
    """Such as by the system, where memory runs out."""
    with waiting(command, tmp_path) as (started, inner):
        os.kill(inner, signal.SIGKILL)
        _, errors = started.communicate(timeout=30)
        assert started.returncode == 1
        assert errors.splitlines()[0] == "error: the command was ended: SIGKILL"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process with its parent")
def test_is_killed_together(command: list[str], tmp_path: Path) -> None:
    with waiting(command, tmp_path) as (started, inner):
        started.kill()
        started.wait()
        deadline = time.monotonic() + 30
        while not has_ended(inner):
            assert time.monotonic() < deadline
            time.sleep(0.02)
