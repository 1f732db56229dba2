"""Runs a command of the project by the server of `command_server.py`: command_client.py SOCKET PROGRAM ARGUMENT..."""

import marshal
import os
import socket
import sys


def run(path: str, program: str, arguments: list[str]) -> int:
    """Runs a command with the folder, the environment and the standard streams of this process.

    Args:
        path: the server's socket.
        program: one of the server's programs.
        arguments: of the program.

    Returns:
        The exit status; below 0, the signal that ended the command.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(marshal.dumps((program, arguments, os.getcwd(), dict(os.environ))))
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(16)
    return int(answer) if answer else -9


if __name__ == "__main__":
    status = run(sys.argv[1], sys.argv[2], sys.argv[3:])
    if status < 0:  # ended by a signal, as is the process that stands for it
        os.kill(os.getpid(), -status)
    sys.exit(status)
