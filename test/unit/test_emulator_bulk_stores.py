"""Reads of global memory that TMA has not written completely."""

from __future__ import annotations

import numpy as np
import pytest

from stepladder.emulator.core.emulation import Emulation
from stepladder.pipeline.context import mlir_context, parse_payload

# Each thread writes its column of a tile, the first one stores the tile, and all read what is stored.
_TEXT = """
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xf16, 3>, swizzle = none, l2promo = none, oob = zero,
  interleave = none>
!tile = memref<8x64xf16, #gpu.address_space<workgroup>>
func.func @main(%y: memref<8x64xf16>, %z: memref<8x64xf16>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %any = memref.cast %y : memref<8x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c8, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c64, %ny = %c1, %nz = %c1) workgroup(%tile : !tile) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f16
    scf.for %r = %c0 to %c8 step %c1 {
      memref.store %one, %tile[%r, %t] : !tile
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      nvgpu.tma.async.store %tile to %map[%c0, %c0] : !tile -> !map
      nvvm.cp.async.bulk.commit.group
      WAIT
    }
    BARRIER
    scf.for %r = %c0 to %c8 step %c1 {
      %v = memref.load %y[%r, %t] : memref<8x64xf16>
      memref.store %v, %z[%r, %t] : memref<8x64xf16>
    }
    nvvm.cp.async.bulk.wait_group 0
    gpu.terminator
  }
  return
}
"""


@pytest.mark.parametrize(
    ("wait", "barrier", "found"),
    [
        ("nvvm.cp.async.bulk.wait_group 0", "gpu.barrier", set()),
        ("nvvm.cp.async.bulk.wait_group 0 {read}", "gpu.barrier", {"race"}),
        ("", "gpu.barrier", {"race"}),
        ("nvvm.cp.async.bulk.wait_group 0", "", {"race"}),
    ],
)
def test_reads_behind_a_store(wait: str, barrier: str, found: set[str]) -> None:
    with mlir_context():
        text = _TEXT.replace("WAIT", wait).replace("BARRIER", barrier)
        emulation = Emulation(parse_payload(text, "store.mlir"), name="store.mlir")
        outcome = emulation.run([np.zeros((8, 64), np.float16)] * 2)
    assert {finding.kind for finding in outcome.findings} == found
    assert all("an asynchronous copy wrote" in finding.message for finding in outcome.findings)
    if not found:
        np.testing.assert_array_equal(outcome.arguments[1], np.ones((8, 64)))
