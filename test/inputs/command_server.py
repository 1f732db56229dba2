"""Runs the commands of the lit suite in processes forked from one that has loaded MLIR's bindings and the pipelines.

The suite runs stepladder and FileCheck more than a thousand times, and most of the time of a short command is imports
and the parsing of scripts. `command_client.py` sends a command line, its folder, its environment and its standard
streams over a Unix socket; a forked process runs the command as `python -m` would, and its exit status goes back. The
server ends when its standard input ends: with the process that started it.

As a script: command_server.py [back-end | FileCheck]. Prints the path of its socket when it accepts commands; imports
at the first of them. With `back-end`, it has LLVM's back end alone, which MLIR's bindings do not share a process with
(`back_end`); with `FileCheck`, it has that alone, since forking a small process takes less than most checks.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from types import NoneType
from typing import NoReturn

# Program: the module and the function that it calls.
PROGRAMS = {
    "stepladder": ("stepladder.cli.entry", "stepladder"),
    "stepladder-opt": ("stepladder.cli.entry", "stepladder_opt"),
    "FileCheck": ("filecheck.main", "main"),
    "parse": ("script_arguments", "main"),
    "refused": ("expect_refusal", "main"),
    "back-end": ("stepladder.pipeline.codegen.llvm_backend", "main"),
}
START = (
    f"import sys; sys.path.append({os.path.dirname(os.path.abspath(__file__))!r}); "
    "from {} import {} as program; sys.exit(program())"
)
PACKAGES = ("cli", "emulator", "extension", "payload", "pipeline", "runtime", "verify")
BACK_ENDS = ("llvm_backend", "llvm_server", "spirv_backend")  # run in processes of their own


def preload() -> bool:
    """Imports what commands import, and loads the pipelines.

    Returns:
        Whether a forked process can use it: threads other than the one that forks are missing there.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported
    importlib.import_module("expect_refusal")
    importlib.import_module("numpy.ma")  # NumPy imports it when it is first used
    for package in PACKAGES:
        folder = importlib.import_module(f"stepladder.{package}").__path__
        for module in pkgutil.walk_packages(folder, f"stepladder.{package}."):
            if module.name.rpartition(".")[2] not in BACK_ENDS:
                importlib.import_module(module.name)
    importlib.import_module("stepladder.mlir.bindings").import_dialects()
    importlib.import_module("back_end").use()
    importlib.import_module("back_end").server()
    library = importlib.import_module("stepladder.pipeline.library")
    with importlib.import_module("stepladder.pipeline.context").mlir_context():
        of_functions = (library.transforms_dir() / "functions").glob("*.mlir")
        for pipeline in (*library.pipeline_names(), *map(str, of_functions)):
            library.load(pipeline)  # which keeps it
    gc.collect()
    gc.freeze()
    return os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) == 1


def preload_back_end() -> bool:
    """Imports LLVM's back end; returns as `preload`."""
    importlib.import_module(PROGRAMS["back-end"][0])
    gc.collect()
    gc.freeze()
    return len(os.listdir("/proc/self/task")) == 1


def preload_filecheck() -> bool:
    """Imports FileCheck; returns as `preload`."""
    importlib.import_module(PROGRAMS["FileCheck"][0])
    gc.collect()
    gc.freeze()
    return len(os.listdir("/proc/self/task")) == 1


PRELOADS = {"back-end": preload_back_end, "FileCheck": preload_filecheck}


def serve(listening: socket.socket, preload: Callable[[], bool]) -> tuple[str, list[str]] | None:
    """Accepts commands until standard input ends.

    Args:
        listening: the socket.
        preload: called at the first command.

    Returns:
        None at the end; in a process that is forked for a command, the program and its arguments.
    """
    is_preloaded: bool | None = None
    running: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([listening, ended, 0], [], [])
        if ended in ready:
            os.read(ended, select.PIPE_BUF)
            _answer(running)
        if 0 in ready:
            return None
        if listening not in ready:
            continue
        connection, _ = listening.accept()
        if is_preloaded is None:
            is_preloaded = preload()
        child = os.fork()
        if child:
            running[child] = connection
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in (listening, *running.values()):
            other.close()
        os.close(ended)
        os.close(wake)
        command = _receive(connection)
        connection.close()
        if not is_preloaded:
            os.execv(sys.executable, [sys.executable, "-c", START.format(*PROGRAMS[command[0]]), *command[1]])
        return command


def _answer(running: dict[int, socket.socket]) -> None:
    """Sends the exit status of each command that has ended, by its process, to the client; forgets it."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        connection = running.pop(child, None)
        if connection is None:  # LLVM's back end
            continue
        with contextlib.suppress(OSError):  # a client that was ended
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        connection.close()


def _receive(connection: socket.socket) -> tuple[str, list[str]]:
    """Takes the folder, the environment and the standard streams of a command; returns its program and arguments."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as file:
        program, arguments, folder, environment = marshal.load(file)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Those of the server may be files of another kind.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    tempfile.tempdir = None  # TMPDIR is read again
    os.environ.clear()
    os.environ.update(environment)
    return program, arguments


def main() -> None:
    """Serves; ends as the command does in a process that is forked for one."""
    # A path below the tests may be too long for a socket.
    folder = tempfile.mkdtemp(prefix="stepladder-lit-")
    path = os.path.join(folder, "commands")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(64)
    print(path, flush=True)
    command = serve(listening, PRELOADS[sys.argv[1]] if sys.argv[1:] else preload)
    if command is None:
        shutil.rmtree(folder)
        return
    program, arguments = command
    sys.argv = [program, *arguments]
    module, function = PROGRAMS[program]
    try:
        status = getattr(importlib.import_module(module), function)()
    except SystemExit as ended:
        status = ended.code
    finish(status)


def finish(status: object) -> NoReturn:
    """Ends the process of a command without Python's teardown of the bindings, which takes longer than most commands.

    Where there is more to do than that, the process ends as any other: with a message, with threads, or with output
    that cannot be written.

    Args:
        status: as for `sys.exit`.
    """
    if isinstance(status, (int, NoneType)) and threading.active_count() == 1:
        with contextlib.suppress(OSError):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit((status or 0) & 0xFF)
    sys.exit(status)


if __name__ == "__main__":
    main()
