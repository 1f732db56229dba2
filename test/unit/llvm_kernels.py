"""Kernels of the LLVM dialect for the emulator."""

import numpy as np

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.pipeline.context import mlir_context, parse_payload

THREADS = 64


def kernel(body: str, *, element: str = "f32", globals_: str = "", threads: int = THREADS, size: int = THREADS) -> str:
    """Returns a function of two buffers X and Y with one launch; %t is the thread, as i32, and %l as i64."""
    buffer = f"memref<{size}x{element}>"
    return f"""
module attributes {{gpu.container_module}} {{
  func.func @f(%X: {buffer}, %Y: {buffer}) {{
    %c1 = arith.constant 1 : index
    %threads = arith.constant {threads} : index
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%threads, %c1, %c1)
        args(%X : {buffer}, %Y : {buffer})
    return
  }}
  gpu.module @k {{
    {globals_}
    llvm.func @k(%X: !llvm.ptr, %Y: !llvm.ptr) attributes {{gpu.kernel, nvvm.kernel}} {{
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %c1 = llvm.mlir.constant(1 : i32) : i32
      %c2 = llvm.mlir.constant(2 : i32) : i32
      %c32 = llvm.mlir.constant(32 : i32) : i32
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %l = llvm.sext %t : i32 to i64
      %x = llvm.getelementptr %X[%l] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
      %y = llvm.getelementptr %Y[%l] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
      {body}
    }}
  }}
}}"""


def run(text: str, x: np.ndarray, **options: object) -> tuple[np.ndarray | None, Outcome]:
    """Returns Y after a run, and the run's outcome."""
    with mlir_context():
        emulation = Emulation(parse_payload(text, "kernel.mlir"))
        outcome = emulation.run([x, np.full(x.shape, -1, x.dtype)], **options)
    return outcome.arguments[1], outcome


def run_clean(body: str, x: np.ndarray | None = None, **options: str) -> np.ndarray:
    """Returns Y of integers after a run without findings."""
    x = np.arange(THREADS, dtype=np.int32) if x is None else x
    y, outcome = run(kernel(body, element="i32", **options), x)
    assert not outcome.findings, outcome.findings[0].render()
    return y


def kinds(outcome: Outcome) -> set[str]:
    return {finding.kind for finding in outcome.findings}
