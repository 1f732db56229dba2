"""Global memory that a program allocates and a kernel reads, and registers of PTX that nothing has written."""

import numpy as np
import pytest

import ptx_kernels
from llvm_kernels import kinds, run
from stepladder.emulator.core.emulation import Outcome

PROGRAM = """
func.func @f(%X: memref<64xf32>, %Y: memref<64xf32>) {{
  %c1 = arith.constant 1 : index
  %n = arith.constant {threads} : index
  %zero = arith.constant 0.0 : f32
  %A = {alloc} : memref<64xf32>
  {before}
  gpu.launch blocks(%b, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
      threads(%t, %t1, %t2) in (%n0 = %n, %n1 = %c1, %n2 = %c1) {{
    {body}
    gpu.terminator
  }}
  return
}}"""
READ = """%v = memref.load %A[%t] : memref<64xf32>
    memref.store %v, %Y[%t] : memref<64xf32>"""
WRITE = "memref.store %zero, %A[%t] : memref<64xf32>"
UPDATE = "%u = memref.atomic_rmw addf %zero, %A[%t] : (f32, memref<64xf32>) -> f32"


def found(body: str, *, before: str = "", alloc: str = "gpu.alloc ()", threads: int = 64) -> Outcome:
    text = PROGRAM.format(body=body, before=before, alloc=alloc, threads=threads)
    _, outcome = run(text, np.zeros(64, np.float32))
    return outcome


@pytest.mark.parametrize("alloc", ["gpu.alloc ()", "memref.alloc()"])
@pytest.mark.parametrize("body, op", [(READ, "memref.load"), (UPDATE, "memref.atomic_rmw")])
def test_a_kernel_that_reads_what_nothing_wrote(alloc: str, body: str, op: str) -> None:
    outcome = found(body, alloc=alloc)
    (finding,) = outcome.findings
    assert (finding.kind, finding.op) == ("uninitialized", op)
    assert finding.message.startswith("reads byte 0x0 of global memory, which nothing has written since it was alloc")
    assert finding.location.startswith("kernel.mlir:")


@pytest.mark.parametrize(
    "before, body",
    [
        ("gpu.memcpy %A, %X : memref<64xf32>, memref<64xf32>", READ),
        ("gpu.memset %A, %zero : memref<64xf32>, f32", READ),
        ("memref.copy %X, %A : memref<64xf32> to memref<64xf32>", READ),
        ("linalg.fill ins(%zero : f32) outs(%A : memref<64xf32>)", UPDATE),
        ("memref.store %zero, %A[%c1] : memref<64xf32>", "%v = memref.load %A[%c1] : memref<64xf32>"),
        ("", f"{WRITE}\n    {READ}"),
    ],
)
def test_what_something_wrote(before: str, body: str) -> None:
    assert not found(body, before=before).findings


def test_memory_that_is_written_in_part() -> None:
    half = """%c32 = arith.constant 32 : index
  %low = memref.subview %X[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %part = memref.subview %A[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  memref.copy %low, %part : memref<32xf32, strided<[1]>> to memref<32xf32, strided<[1]>>"""
    assert not found(READ, before=half, threads=32).findings
    outcome = found(READ, before=half)
    assert kinds(outcome) == {"uninitialized"}
    assert "byte 0x80 of global memory" in outcome.findings[0].message


_TWICE = """
  mov.u32 %r1, 0;
{first}
AGAIN:
  add.u32 %r2, %r6, 1;
  mov.u32 %r6, %r2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 2;
  @%p1 bra AGAIN;
"""


@pytest.mark.parametrize(
    "body, says",
    [
        ("add.u32 %r5, %r6, 1;", "reads %r6, which nothing has written"),
        ("mad.lo.u32 %r5, %r6, %r7, %r6;", "reads %r6, %r7, which nothing has written"),
        ("@%p7 add.u32 %r5, %t, 1;", "reads %p7, which nothing has written"),
        ("st.global.u32 [%y], %r6;", "reads %r6, which nothing has written"),
        ("mov.b32 %r5, %r6; add.u32 %r5, %r5, 1;", "reads %r5, which nothing has written"),
        ("mov.b32 %r5, %r6;", ""),
        ("st.global.u16 [%y], %h1;", "reads %h1, which nothing has written"),
        ("st.global.u8 [%y], %h1;", ""),
        ("mov.b16 %h1, 1; mov.b32 %r5, {%h1, %h2}; st.global.u32 [%y], %r5;", ""),
        (_TWICE.format(first=""), "reads %r6, which nothing has written"),
        (_TWICE.format(first="mov.u32 %r6, 7;"), ""),
        ("setp.eq.u32 %p1, %t, %t; @!%p1 mov.u32 %r6, 3; add.u32 %r5, %r6, 1;", "reads %r6, which"),
        ("setp.eq.u32 %p1, %t, %t; @%p1 mov.u32 %r6, 3; add.u32 %r5, %r6, 1;", ""),
        ("setp.eq.u32 %p1, %t, 0; @%p1 mov.u32 %r6, 3; @%p1 add.u32 %r5, %r6, 1;", ""),
        ("setp.eq.u32 %p1, %t, %t; @!%p1 add.u32 %r5, %r6, 1;", ""),
        ("prmt.b32 %r5, %t, %r6, 0x3210; st.global.u32 [%y], %r5;", ""),
        ("prmt.b32 %r5, %r6, %r7, 0x3210; prmt.b32 %r5, %t, %r5, 0x3210; st.global.u32 [%y], %r5;", ""),
        ("prmt.b32 %r5, %r6, %r7, 0x3210; st.global.u32 [%y], %r5;", "reads %r5, which nothing has written"),
        ("prmt.b32 %r5, %t, %t, %r6;", "reads %r6, which nothing has written"),
        ("bra END; add.u32 %r5, %r6, 1; END:", ""),
    ],
)
def test_registers_that_nothing_has_written(body: str, says: str) -> None:
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(body))
    assert [finding.kind for finding in outcome.findings] == ["uninitialized"] * bool(says)
    assert all(says in finding.message for finding in outcome.findings)
