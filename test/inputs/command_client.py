"""Runs a command of the project by the server of `command_server.py`: command_client.py SOCKET PROGRAM ARGUMENT...

Imports what Python has in C alone, in which a Unix socket has no `send_fds`: `socket` takes as long to import as Python
takes to start, and the suite runs this more than a thousand times.
"""

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket

STANDARD_STREAMS = (0, 1, 2)


def run(path: str, program: str, arguments: list[str], streams: tuple[int, ...] = STANDARD_STREAMS) -> int:
    """Runs a command with the folder and the environment of this process.

    Args:
        path: the server's socket.
        program: one of the server's programs.
        arguments: of the program.
        streams: numbers of the files of its standard streams.

    Returns:
        The exit status; below 0, the signal that ended the command.
    """
    return end(begin(path, program, arguments, streams, os.getcwd(), dict(os.environ)))


def begin(
    path: str, program: str, arguments: list[str], streams: tuple[int, ...], folder: str, environment: dict[str, str]
) -> socket:
    """Starts a command; arguments as of `run`, and its folder and environment. Returns a connection for `end`."""
    connection = socket(AF_UNIX)
    connection.connect(path)
    numbers = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)  # an array of C's int
    connection.sendmsg([b"."], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
    connection.sendall(marshal.dumps((program, arguments, folder, environment)))
    connection.shutdown(SHUT_WR)
    return connection


def end(connection: socket) -> int:
    """Waits for the end of a command; returns as `run`."""
    answer = connection.recv(16)
    connection.close()
    return int(answer) if answer else -9


if __name__ == "__main__":
    status = run(sys.argv[1], sys.argv[2], sys.argv[3:])
    if status < 0:  # ended by a signal, as is the process that stands for it
        os.kill(os.getpid(), -status)
    sys.exit(status)
