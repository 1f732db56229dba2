"""Processes that a command starts end when the command does, by a signal that no program sees too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepladder.runtime.processes import environment_of_module
from stepladder.verify.opencl import __name__ as opencl

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes run to their end")

RUNNER = str(Path(__file__).resolve().parents[2] / "runner")
BACKENDS = "stepladder.pipeline.codegen"

# The package is found by `sys.path` alone, which a process does not pass on.
_BEGIN = f"import os, subprocess, sys, time\nsys.path.insert(0, {RUNNER!r})\n"
_MODULE = (
    "from stepladder.runtime.processes import environment_of_module\n"
    "started = subprocess.Popen([sys.executable, '-m', *sys.argv[1:]], env=environment_of_module())\n"
    "started.wait()\n"
)
_MEASUREMENT = (
    "from pathlib import Path\nfrom stepladder.measure.tuning import measuring\n"
    "measuring.measure_problem(Path(sys.argv[1]), 0, patience=600)\n"
)
_POOL = (
    "from concurrent.futures import ProcessPoolExecutor\nfrom stepladder.runtime.processes import end_with_pool\n"
    "with ProcessPoolExecutor(3, initializer=end_with_pool) as pool:\n"
    "    list(pool.map(abs, range(9)))\n"
    "    time.sleep(600)\n"
)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    """A named pipe, whose readers wait until the test ends."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writing = os.open(path, os.O_RDWR)
    yield path
    os.close(writing)


def end_by_kill(script: str, *arguments: str, stdin: Path | None = None) -> str:
    """Kills a script that has started a process; returns what they wrote, once none of them is left to write."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with open(stdin or os.devnull, "rb", buffering=0) as file:
        command = [sys.executable, "-c", _BEGIN + script, *arguments]
        waiting = subprocess.Popen(
            command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
    children = Path(f"/proc/{waiting.pid}/task/{waiting.pid}/children")
    while waiting.poll() is None and not children.read_text():
        time.sleep(0.01)
    waiting.kill()
    return waiting.communicate(timeout=60)[0]


@pytest.mark.parametrize("module", ["llvm_backend", "llvm_server", "spirv_backend"])
def test_a_process_of_llvm_ends(pipe: Path, module: str) -> None:
    assert end_by_kill(_MODULE, f"{BACKENDS}.{module}", "sm_80", stdin=pipe) == ""


@pytest.mark.skipif(importlib.util.find_spec("pyopencl") is None, reason="pyopencl is not installed")
def test_a_process_of_opencl_ends(pipe: Path) -> None:
    pipe.rename(pipe.with_name("job.json"))
    assert end_by_kill(_MODULE, opencl, str(pipe.parent)) == ""


def test_the_process_that_measures_ends(pipe: Path) -> None:
    pipe.rename(pipe.with_name("plan.json"))
    assert end_by_kill(_MEASUREMENT, str(pipe.parent)) == ""


def test_processes_of_a_pool_end() -> None:
    assert end_by_kill(_POOL) == ""


def test_a_module_is_found_where_this_process_found_it() -> None:
    """Before any package of that name that is installed."""
    first = environment_of_module()["PYTHONPATH"].split(os.pathsep)[0]
    assert Path(first).samefile(RUNNER) and Path(first, "stepladder", "__init__.py").is_file()
