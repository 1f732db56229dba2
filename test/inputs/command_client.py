"""Runs a command of the project by the server of `command_server.py`: command_client.py SOCKET PROGRAM ARGUMENT..."""

import marshal
import os
import socket
import sys

path, program, *arguments = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(path)
    socket.send_fds(connection, [b"."], [0, 1, 2])
    connection.sendall(marshal.dumps((program, arguments, os.getcwd(), dict(os.environ))))
    connection.shutdown(socket.SHUT_WR)
    answer = connection.recv(16)
status = int(answer) if answer else -9
if status < 0:  # ended by a signal, as is the process that stands for it
    os.kill(os.getpid(), -status)
sys.exit(status)
