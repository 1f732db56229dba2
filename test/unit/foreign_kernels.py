"""Runs modules that no pipeline here makes."""

import numpy as np

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.pipeline.context import mlir_context, parse_payload


def run(text: str, *inputs: np.ndarray, function: str | None = "main", **options: bool) -> Outcome:
    """Returns the outcome of a module's function."""
    with mlir_context():
        emulation = Emulation(parse_payload(text, "kernel.mlir"), function)
        return emulation.run(list(inputs), **options)


def run_clean(text: str, *inputs: np.ndarray, **options: object) -> Outcome:
    """Returns the outcome of a module's function, in which nothing is found."""
    outcome = run(text, *inputs, **options)
    assert not outcome.findings, outcome.findings[0].render()
    return outcome


def launch(body: str, *, threads: int = 64, arguments: str = "%Y: memref<64xi32>", blocks: int = 1) -> str:
    """Returns a module with one launch; %t is the thread."""
    return f"""
    func.func @main({arguments}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %threads = arith.constant {threads} : index
      %blocks = arith.constant {blocks} : index
      gpu.launch blocks(%b, %b1, %b2) in (%g0 = %blocks, %g1 = %c1, %g2 = %c1)
          threads(%t, %t1, %t2) in (%n0 = %threads, %n1 = %c1, %n2 = %c1) {{
        {body}
      }}
      return
    }}"""


def launch_func(kernel: str, *, threads: int = 64, blocks: int = 1, clusters: int = 0, targets: str = "") -> str:
    """Returns a module that launches the kernel @k of a `gpu.module`, whose body is given, on %Y of 64 i32."""
    cluster = f"clusters in (%c{clusters}, %c1, %c1) " if clusters else ""
    sizes = "\n".join(
        f"        %c{size} = arith.constant {size} : index" for size in sorted({1, threads, blocks, clusters or 1})
    )
    return f"""
    module attributes {{gpu.container_module}} {{
      func.func @main(%Y: memref<64xi32>) {{
{sizes}
        gpu.launch_func @k::@k {cluster}blocks in (%c{blocks}, %c1, %c1) threads in (%c{threads}, %c1, %c1)
            args(%Y : memref<64xi32>)
        return
      }}
      gpu.module @k {targets} {{
{kernel}
      }}
    }}"""


INTS = np.zeros(64, np.int32)
