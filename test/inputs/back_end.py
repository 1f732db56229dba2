"""Translates LLVM IR by a server of LLVM's back end, instead of a process that starts for each module.

Python and LLVM take longer to start than most kernels of the tests take to translate. The server forks a process for
each module (`command_server.py`), which LLVM may end as it may the other.
"""

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import command_client

from stepladder.pipeline.codegen import ptx
from stepladder.runtime.processes import environment_of_module

own_process = ptx.run_back_end
_processes: list[subprocess.Popen[str]] = []  # their standard inputs stay open


@functools.cache
def server() -> str:
    """Starts a server, which ends with this process; returns its socket."""
    process = subprocess.Popen(
        [sys.executable, os.path.join(os.path.dirname(__file__), "command_server.py"), "back-end"],
        env=environment_of_module(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _processes.append(process)
    assert process.stdout
    return process.stdout.readline().strip()


def use() -> None:
    """Has this process, and those that it forks, use the server of this process."""
    if hasattr(os, "fork"):
        ptx.run_back_end = run


def run(arguments: Sequence[str], llvm_ir: str) -> subprocess.CompletedProcess[str]:
    """Runs the back end in a process that the server forks.

    Args:
        arguments: of its command.
        llvm_ir: text of the module.

    Returns:
        As `ptx.run_back_end`.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        source.write(llvm_ir.encode())
        source.seek(0)
        streams = (source.fileno(), output.fileno(), messages.fileno())
        status = command_client.run(server(), "back-end", list(arguments), streams)
        output.seek(0)
        messages.seek(0)
        return subprocess.CompletedProcess(
            ["back-end", *arguments], status, output.read().decode(), messages.read().decode()
        )
