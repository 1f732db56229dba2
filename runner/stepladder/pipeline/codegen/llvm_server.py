"""A process with LLVM's back end, which forks a process for each module: Python and LLVM take longer to start than most
kernels take to translate, and so does libdevice to parse.

    python -m stepladder.pipeline.codegen.llvm_server

Standard input has requests, and standard output the answers (`llvm_processes`): a line of JSON with numbers of bytes,
and the bytes. The server ends with its input, with the process that started it, and where no request comes for a while.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import sys
import tempfile
import traceback
from typing import BinaryIO

from stepladder.pipeline.codegen import llvm_backend
from stepladder.runtime.processes import end_with, end_with_starter

_PATIENCE = 60  # seconds


def _answer(arguments: list[str], llvm_ir: bytes) -> tuple[int, bytes, bytes]:
    """Translates a module in a forked process; returns its exit status, or minus its signal, and what it wrote."""
    for library in arguments[1:]:
        with contextlib.suppress(OSError, RuntimeError):  # the forked process reports it
            llvm_backend.parse_library(library)
    with tempfile.TemporaryFile(buffering=0) as output, tempfile.TemporaryFile(buffering=0) as messages:
        server = os.getpid()
        child = os.fork()
        if child == 0:
            end_with(server)
            _translate(arguments, llvm_ir, output.fileno(), messages.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        messages.seek(0)
        return os.waitstatus_to_exitcode(status), output.read(), messages.read()


def _translate(arguments: list[str], llvm_ir: bytes, output: int, messages: int) -> None:
    """Writes the PTX of a module, or the error, to files, and ends this process."""
    status = 1
    try:
        os.dup2(messages, 2)  # where LLVM writes why it ends the process
        os.dup2(output, 1)
        ptx = llvm_backend.to_ptx(llvm_ir.decode(), *arguments).encode()
        with open(output, "wb", closefd=False) as file:
            file.write(ptx)
        status = 0
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until they end, or none comes for a while.

    Args:
        requests: none is sent before the last one is answered.
        answers: to them.
    """
    while select.select([requests], [], [], _PATIENCE)[0]:
        line = requests.readline()
        if not line:
            return
        arguments, size = json.loads(line)
        llvm_ir = requests.read(size)
        if len(llvm_ir) != size:
            return
        status, output, messages = _answer(arguments, llvm_ir)
        answers.write(json.dumps([status, len(output), len(messages)]).encode() + b"\n" + output + messages)
        answers.flush()


if __name__ == "__main__":
    end_with_starter()
    gc.freeze()  # a collection in a forked process would copy the pages of what is imported
    serve(sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)  # the one that started it waits, and there is nothing to tear down
