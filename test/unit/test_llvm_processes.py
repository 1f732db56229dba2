"""Servers of LLVM's back end: reused, not shared with forked processes, and nothing is lost where one ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from stepladder.pipeline.codegen import llvm_processes
from stepladder.pipeline.codegen.llvm_processes import end_servers, run_back_end
from stepladder.pipeline.codegen.toolchain import find_libdevice

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each module")

PLAIN = "define ptx_kernel void @plain() { ret void }"
TANH = """declare float @__nv_tanhf(float)
define ptx_kernel void @of_tanh(ptr %p) {
  %x = load float, ptr %p
  %y = call float @__nv_tanhf(float %x)
  store float %y, ptr %p
  ret void
}"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The modules that processes were started with, without servers from before."""
    modules: list[str] = []

    class Recorded(subprocess.Popen):
        def __init__(self, command: list[str], *arguments: object, **options: object) -> None:
            modules.append(command[2].rpartition(".")[2])
            super().__init__(command, *arguments, **options)

    end_servers()
    monkeypatch.setattr(subprocess, "Popen", Recorded)
    yield modules
    end_servers()


def test_a_server_translates_all_modules(started: list[str]) -> None:
    """A module that LLVM refuses is no end of it, and none changes what comes of the next one."""
    library = find_libdevice()
    first = run_back_end(["sm_80", library], TANH)
    assert first.returncode == 0 and ".entry of_tanh" in first.stdout and "__nv_" not in first.stdout
    refused = run_back_end(["sm_80"], "no LLVM IR")
    assert refused.returncode == 1 and "expected top-level entity" in refused.stderr and not refused.stdout
    plain = run_back_end(["sm_90"], PLAIN)
    assert plain.returncode == 0 and ".target sm_90" in plain.stdout and ".entry plain" in plain.stdout
    assert run_back_end(["sm_80", library], TANH).stdout == first.stdout
    assert started == ["llvm_server"]


def test_a_server_that_has_ended_is_replaced(started: list[str]) -> None:
    first = run_back_end(["sm_80"], PLAIN)
    (server,) = llvm_processes._idle
    server.kill()
    server.wait()
    assert run_back_end(["sm_80"], PLAIN).stdout == first.stdout
    assert started == ["llvm_server"] * 2


def test_a_server_that_ends_before_it_answers(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is translated by a process of its own."""
    first = run_back_end(["sm_80"], PLAIN)
    (server,) = llvm_processes._idle
    server.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(server, "poll", lambda: None)
    assert run_back_end(["sm_80"], PLAIN).stdout == first.stdout
    assert started == ["llvm_server", "llvm_backend"] and not llvm_processes._idle


def test_a_forked_process_leaves_the_server_alone(started: list[str]) -> None:
    first = run_back_end(["sm_80"], PLAIN)
    child = os.fork()
    if child == 0:
        is_same = not llvm_processes._idle and run_back_end(["sm_80"], PLAIN).stdout == first.stdout
        end_servers()
        os._exit(0 if is_same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run_back_end(["sm_80"], PLAIN).stdout == first.stdout
    assert started == ["llvm_server"]
