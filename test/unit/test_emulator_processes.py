"""Blocks of a launch in several processes: the same numbers, findings and counts as one after the other."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from stepladder.emulator.core import processes
from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.pipeline.context import mlir_context, parse_payload

BLOCKS, THREADS = 7, 32
KERNEL = """
func.func @main(%x: memref<224xf32>, %y: memref<224xf32>) {{
  %1 = arith.constant 1 : index
  %blocks = arith.constant 7 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %blocks, %gy = %1, %gz = %1)
      threads(%t, %ty, %tz) in (%dx = %threads, %dy = %1, %dz = %1) {{
    %0 = arith.constant 0 : index
    %six = arith.constant 6 : index
    %far = arith.constant 1000 : index
    %o = arith.muli %b, %dx : index
    %i = arith.addi %o, %t : index
    %v = memref.load %x[%i] : memref<224xf32>
    %w = arith.addf %v, %v : f32
    {body}
    gpu.terminator
  }}
  return
}}
"""
STORE = "memref.store %w, %y[%i] : memref<224xf32>"
LAST = "%last = arith.cmpi eq, %b, %six : index\n    scf.if %last {{ {} }}"
# Each with the kinds of findings, and whether several processes can run it.
BODIES = {
    "independent": (STORE, set(), True),
    "all write one element": ("memref.store %w, %y[%t] : memref<224xf32>", {"race"}, False),
    "one reads what another wrote": (
        f"{STORE}\n    " + LAST.format("%u = memref.load %y[%t] : memref<224xf32>"),
        {"race"},
        False,
    ),
    "the last is out of bounds": (
        f"{STORE}\n    " + LAST.format("%u = memref.load %x[%far] : memref<224xf32>"),
        {"out-of-bounds"},
        False,
    ),
    "atomic sums": (
        "%r = memref.atomic_rmw addf %w, %y[%t] : (f32, memref<224xf32>) -> f32",
        set(),
        False,
    ),
}


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(processes, "WORTH", 0.0)
    with mlir_context():
        yield


def _run(body: str, count: int) -> Outcome:
    emulation = Emulation(parse_payload(KERNEL.format(body=body), "k.mlir"))
    inputs = [np.arange(BLOCKS * THREADS, dtype=np.float32), np.zeros(BLOCKS * THREADS, np.float32)]
    return emulation.run(inputs, processes=count)


@pytest.mark.parametrize("name", BODIES)
def test_the_same_as_one_after_the_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, kinds, is_parted = BODIES[name]
    done = []
    run_parts = processes.run_parts
    monkeypatch.setattr(processes, "run_parts", lambda *args: done.append(run_parts(*args)) or done[-1])
    one, several = _run(body, 1), _run(body, 3)
    assert (True in done) == is_parted
    assert {finding.kind for finding in one.findings} == kinds
    assert [finding.as_dict() for finding in several.findings] == [finding.as_dict() for finding in one.findings]
    for left, right in zip(one.arguments, several.arguments):
        np.testing.assert_array_equal(left, right)
    assert several.steps == one.steps
    assert one.counters is not None and several.counters is not None
    assert several.counters.as_dict() == one.counters.as_dict()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes run to their end")
def test_processes_end_with_the_one_that_waits() -> None:
    """However that ends: the pipe, which all of them write, is closed."""
    script = (
        "import os, time, types\nfrom stepladder.emulator.core import processes\n"
        "def run(*arguments):\n    os.write(1, b'runs\\n')\n    time.sleep(600)\n"
        "processes._run = run\n"
        "processes._forked(types.SimpleNamespace(progress=None), [[0], [1]], None)\n"
    )
    runner = os.pathsep.join(path for path in sys.path if path.endswith("runner"))
    waiting = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": runner}
    )
    assert waiting.stdout is not None
    assert [waiting.stdout.readline() for _ in range(2)] == ["runs\n"] * 2
    waiting.kill()
    assert waiting.communicate(timeout=60)[0] == ""
