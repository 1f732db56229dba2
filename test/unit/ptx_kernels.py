"""Kernels in PTX for the emulator: small ones in text, and those that pipelines are compiled to."""

from __future__ import annotations

import functools

import numpy as np

from faults import BASES
from stepladder.emulator.core.emulation import Outcome
from stepladder.emulator.core.launched import BoundKernel, Launch
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.emulator.memory.findings import Finding
from stepladder.emulator.ptx.arguments import from_manifest, from_texts
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import Build, build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import Manifest
from stepladder.verify.check import check_exact

THREADS = 64
HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def kernel(body: str, *, shared: str = "", head: str = HEAD) -> str:
    """Returns a kernel of pointers X and Y; %x and %y are the addresses of the thread's own eight bytes in them.

    %t is the thread, %b the block; registers of all kinds are declared; the body begins at line 25.
    """
    return f"""{head}
.visible .entry k(.param .u64 X, .param .u64 Y)
{{
  .reg .pred %p<20>;
  .reg .b16 %h<40>;
  .reg .b32 %r<80>;
  .reg .b64 %d<40>;
  .reg .b32 %t, %b, %g;
  .reg .b64 %X, %Y, %x, %y, %o;
  {shared}
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mad.lo.u32 %g, %b, {THREADS}, %t;
  mul.wide.u32 %o, %g, 8;
  ld.param.u64 %X, [X];
  ld.param.u64 %Y, [Y];
  cvta.to.global.u64 %X, %X;
  cvta.to.global.u64 %Y, %Y;
  add.s64 %x, %X, %o;
  add.s64 %y, %Y, %o;
  // body
{body}
  ret;
}}
"""


def run(
    text: str,
    x: np.ndarray | None = None,
    *,
    threads: int = THREADS,
    blocks: int = 1,
    cluster: int = 1,
    dynamic: int = 0,
    **options: object,
) -> tuple[np.ndarray, Outcome]:
    """Returns Y, which begins with -1, as 64-bit integers after a run of `kernel`, and the run's outcome."""
    size = threads * blocks
    found = Kernel(parse(text, "k.ptx"), None, "k.ptx")
    bound = found.bound(
        from_texts([f"{size}xi64"] * 2), Launch((blocks, 1, 1), (threads, 1, 1), (cluster, 1, 1), dynamic)
    )
    given = np.arange(size, dtype=np.int64) if x is None else np.resize(np.asarray(x), size).astype(np.int64)
    outcome = bound.run([given, np.full(size, -1, np.int64)], **options)
    held = outcome.arguments[1]
    assert held is not None
    return held, outcome


def run_clean(body: str, x: np.ndarray | None = None, *, shared: str = "", **options: object) -> np.ndarray:
    """Returns Y after a run without findings."""
    y, outcome = run(kernel(body, shared=shared), x, **options)
    assert not outcome.findings, outcome.findings[0].render()
    return y


def kinds(outcome: Outcome) -> set[str]:
    """Returns the kinds of findings."""
    return {finding.kind for finding in outcome.findings}


# Kernels of pipelines.


@functools.cache
def compiled(base: str) -> Build:
    """Returns the build of a base of `faults`; its module is not valid any more."""
    found = BASES[base]
    with mlir_context():
        return build(
            matmul_text(*found.size, b_layout=found.b_layout, c_type=found.c_type, accumulate=found.accumulate),
            "payload.mlir",
            Request(found.pipeline, found.knobs),
        )


def bind(text: str, manifest: Manifest) -> BoundKernel:
    """Returns the kernel of a bundle in another version."""
    launch = Launch.of_manifest(manifest)
    return Kernel(parse(text, "kernel.ptx"), None, "kernel.ptx").bound(from_manifest(manifest), launch)


def executor(text: str, manifest: Manifest) -> EmulatedExecutor:
    """Returns what runs the kernel of a bundle in another version."""
    roles = {number: argument.role for number, argument in enumerate(manifest.arguments)}
    return EmulatedExecutor(bind(text, manifest), roles)


def check(text: str, made: Build) -> tuple[set[str], list[Finding]]:
    """Returns the kinds of findings of a run, "numbers" where the result is wrong, and the findings."""
    runs = executor(text, made.manifest)
    report = check_exact(made.manifest.problem, made.reference, runs, seed=0)
    found = {finding.kind for finding in runs.findings}
    return found if report.passed else found | {"numbers"}, runs.findings
