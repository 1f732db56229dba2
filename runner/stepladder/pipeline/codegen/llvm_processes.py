"""Runs LLVM's back end in other processes: by servers that fork (`llvm_server`), which this process starts and reuses,
or, where there is no fork or a server is lost, in a process that starts for one module."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

from stepladder.runtime.processes import environment_of_module

_PACKAGE = __name__.rpartition(".")[0]

# Servers of this process that wait for a request. Each thread takes one out, or starts another.
_idle: list[subprocess.Popen[bytes]] = []


def run_back_end(arguments: Sequence[str], llvm_ir: str) -> subprocess.CompletedProcess[str]:
    """Runs `llvm_backend` in another process, which LLVM may end.

    Args:
        arguments: of the command.
        llvm_ir: text of the module, which it reads.

    Returns:
        Its exit status and its outputs.
    """
    if hasattr(os, "fork"):
        server = _server()
        try:
            answer = _ask(server, arguments, llvm_ir.encode())
        except BaseException:  # such as an interrupt: an answer that nothing has read is left
            server.kill()
            _end(server)
            raise
        if answer is not None:
            _idle.append(server)
            return answer
        _end(server)
    return subprocess.run(
        [sys.executable, "-m", f"{_PACKAGE}.llvm_backend", *arguments],
        input=llvm_ir,
        capture_output=True,
        text=True,
        env=environment_of_module(),
        check=False,
    )


def _server() -> subprocess.Popen[bytes]:
    """Returns a server that waits: one that runs, or a new one."""
    while True:
        try:
            server = _idle.pop()
        except IndexError:
            return subprocess.Popen(
                [sys.executable, "-m", f"{_PACKAGE}.llvm_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # of a server that is lost; answers have what LLVM writes
                env=environment_of_module(),
            )
        if server.poll() is None:
            return server
        _end(server)


def _ask(
    server: subprocess.Popen[bytes], arguments: Sequence[str], llvm_ir: bytes
) -> subprocess.CompletedProcess[str] | None:
    """Returns what a server answers; None where it has ended."""
    requests, answers = _streams(server)
    try:
        requests.write(json.dumps([[*arguments], len(llvm_ir)]).encode() + b"\n" + llvm_ir)
        requests.flush()
        line = answers.readline()
        if not line:
            return None
        status, *sizes = json.loads(line)
        parts = [answers.read(size) for size in sizes]
    except OSError:
        return None
    if [len(part) for part in parts] != sizes:
        return None
    output, messages = (part.decode(errors="replace") for part in parts)
    return subprocess.CompletedProcess([*arguments], status, output, messages)


def _streams(server: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert server.stdin is not None and server.stdout is not None  # they are pipes
    return server.stdin, server.stdout


def _close(server: subprocess.Popen[bytes]) -> None:
    for stream in _streams(server):
        with contextlib.suppress(OSError):  # what is left of a request to a server that has ended
            stream.close()


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ends a server, which has ended or ends with its input."""
    _close(server)
    server.wait()


@atexit.register
def end_servers() -> None:
    """Ends the servers of this process that wait."""
    while _idle:
        _end(_idle.pop())


def _forget() -> None:
    """Leaves the servers to the process that this one was forked from, so that they end with that one."""
    while _idle:
        server = _idle.pop()
        _close(server)
        server.returncode = 0  # it is not a child of this process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
