"""Starts the commands of lit's shell that `command_client.py` would run, without a process for that script.

lit's shell starts a process for each command, and Python takes as long to start as many of the commands take. A command
of the client is sent to the server by the process of lit that runs the test.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

import command_client

_CLIENT = [sys.executable, "-S", command_client.__file__]


class _Served:
    """What lit uses of a `subprocess.Popen`, of a command that a server runs; arguments as there."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        streams: Sequence[int | IO[Any]],
        errors: str,
    ) -> None:
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self.returncode: int | None = None
        numbers: list[int] = []
        pipes: list[int] = []
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            if stream == subprocess.PIPE:
                ends = os.pipe()
                own, other = ends[::-1] if name == "stdin" else ends
                setattr(self, name, os.fdopen(own, "w" if name == "stdin" else "r", errors=errors))
                pipes.append(other)
                numbers.append(other)
            elif stream == subprocess.STDOUT:
                numbers.append(numbers[-1])
            else:
                numbers.append(stream if isinstance(stream, int) else stream.fileno())
        socket, program, *rest = arguments
        self._connection = command_client.begin(socket, program, rest, numbers, folder, dict(environment))
        for pipe in pipes:
            os.close(pipe)

    def communicate(self) -> tuple[str | None, str | None]:
        """Returns what the command writes to its pipes, after its end."""
        outputs: dict[str, str] = {}

        def read(name: str, stream: IO[str]) -> None:
            with stream:
                outputs[name] = stream.read()

        streams = {name: stream for name in ("stdout", "stderr") if (stream := getattr(self, name)) is not None}
        others = [threading.Thread(target=read, args=item) for item in list(streams.items())[1:]]
        for thread in others:
            thread.start()
        for item in list(streams.items())[:1]:
            read(*item)
        for thread in others:
            thread.join()
        self.wait()
        return outputs.get("stdout"), outputs.get("stderr")

    def wait(self) -> int:
        """Returns the exit status; below 0, the signal that ended the command."""
        if self.returncode is None:
            self.returncode = command_client.end(self._connection)
        return self.returncode


class Subprocess:
    """The module `subprocess`, for lit's shell."""

    def __getattr__(self, name: str) -> object:
        return getattr(subprocess, name)

    @staticmethod
    def Popen(args: list[str], **options: Any) -> subprocess.Popen[str] | _Served:  # noqa: ANN401
        """Starts a command.

        Args:
            args: the command line; options: as those of `subprocess.Popen`.
        """
        if args[: len(_CLIENT)] != _CLIENT:
            return subprocess.Popen(args, **options)
        streams = [options[name] for name in ("stdin", "stdout", "stderr")]
        return _Served(args[len(_CLIENT) :], options["cwd"], options["env"], streams, options.get("errors", "replace"))
