"""Mbarriers lie in memory: what must not be done to their bytes, and to them, at each level."""

import numpy as np
import pytest

import ptx_kernels
from llvm_kernels import kernel, kinds, run
from stepladder.emulator.core.emulation import Outcome

# A thread of each warp; the mbarrier and what lies behind it in one array of shared memory.
_LLVM_GLOBALS = "llvm.mlir.global external @s() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>"
_NEEDS = """
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %c16 = llvm.mlir.constant(16 : i32) : i32
      %first = llvm.icmp "eq" %t, %c0 : i32
"""


def _by_first(ops: str, number: int) -> str:
    return f"""
      llvm.cond_br %first, ^do{number}, ^on{number}
    ^do{number}:
      {ops}
      llvm.br ^on{number}
    ^on{number}:
      nvvm.barrier"""


def llvm(*ops: str, threads: int = 64) -> Outcome:
    """Returns the findings of a kernel whose first thread does this and that, with barriers between."""
    body = _NEEDS + "".join(_by_first(op, number) for number, op in enumerate(ops)) + "\n      llvm.return"
    text = kernel(body, element="i32", globals_=_LLVM_GLOBALS, threads=threads)
    _, outcome = run(text, np.arange(64, dtype=np.int32))
    return outcome


INIT = "nvvm.mbarrier.init %s, %c1 : !llvm.ptr<3>, i32"
INVAL = "nvvm.mbarrier.inval %s : !llvm.ptr<3>"
ARRIVE = "%token = nvvm.mbarrier.arrive %s : !llvm.ptr<3> -> i64"
STORE = "llvm.store %c1, %s : i32, !llvm.ptr<3>"
BEHIND = """%p = llvm.getelementptr %s[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
      llvm.store %c1, %p : i32, !llvm.ptr<3>"""


@pytest.mark.parametrize(
    "ops, says",
    [
        ((INIT, STORE), "writes byte 0x0 of shared memory, which is part of an mbarrier that has not been invalidated"),
        ((INIT, "%v = llvm.load %s : !llvm.ptr<3> -> i32"), "reads byte 0x0 of shared memory, which is part of an mb"),
        ((INIT, INIT), "initializes the mbarrier at byte 0x0 of shared memory again"),
        ((INIT.replace("%c1", "%c0"),), "is initialized for 0 arrivals: expected 1 to 1048575"),
    ],
)
def test_what_is_done_to_an_mbarrier(ops: tuple[str, ...], says: str) -> None:
    (finding,) = llvm(*ops).findings
    assert finding.kind == "mbarrier"
    assert says in finding.message
    assert finding.location.startswith("kernel.mlir:")
    assert not finding.other or finding.other == "nvvm.mbarrier.init"


@pytest.mark.parametrize(
    "ops",
    [
        (INIT, ARRIVE, BEHIND),
        (INIT, ARRIVE, INVAL, STORE),
        (INIT, INVAL, INIT, ARRIVE),
        (STORE, INIT, ARRIVE),
    ],
)
def test_what_may_be_done(ops: tuple[str, ...]) -> None:
    assert not llvm(*ops).findings


def test_reads_before_many_mbarriers_are_known_behind_them() -> None:
    """An actor for each: the record of reads grows, and keeps what warp 0 has read before warp 1 writes it."""
    inits = "\n".join(
        f"%b{number} = llvm.getelementptr %s[{2 * number}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32\n"
        f"nvvm.mbarrier.init %b{number}, %c1 : !llvm.ptr<3>, i32"
        for number in range(20)
    )
    place = "%last = llvm.getelementptr %s[60] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32"
    body = f"""{_NEEDS}
      {place}
      %second = llvm.mlir.constant(32 : i32) : i32
      %other = llvm.icmp "eq" %t, %second : i32
      {_by_first("llvm.store %c1, %last : i32, !llvm.ptr<3>", 0)}
      llvm.cond_br %first, ^read, ^rest
    ^read:
      %v = llvm.load %last : !llvm.ptr<3> -> i32
      {inits}
      llvm.br ^rest
    ^rest:
      llvm.cond_br %other, ^write, ^end
    ^write:
      llvm.store %c1, %last : i32, !llvm.ptr<3>
      llvm.br ^end
    ^end:
      llvm.return"""
    text = kernel(body, element="i32", globals_=_LLVM_GLOBALS, threads=64)
    (finding,) = run(text, np.arange(64, dtype=np.int32))[1].findings
    assert (finding.kind, finding.op, finding.other) == ("race", "llvm.store", "llvm.load")


def test_an_mbarrier_is_gone_when_it_has_been_invalidated() -> None:
    finding = llvm(INIT, INVAL, ARRIVE).findings[0]
    assert (finding.kind, finding.op) == ("uninitialized", "nvvm.mbarrier.arrive")
    (finding,) = llvm(INIT, INVAL, "%v = llvm.load %s : !llvm.ptr<3> -> i32").findings
    assert finding.kind == "uninitialized"


def test_all_threads_initialize_it() -> None:
    body = f"{_NEEDS}\n      {INIT}\n      nvvm.barrier\n      llvm.return"
    _, outcome = run(kernel(body, element="i32", globals_=_LLVM_GLOBALS), np.arange(64, dtype=np.int32))
    assert "mbarrier" in kinds(outcome)
    assert any("64 threads initialize the mbarrier at byte 0x0" in finding.message for finding in outcome.findings)


def test_more_bytes_than_an_mbarrier_counts() -> None:
    wanted = "%many = llvm.mlir.constant(1048576 : i32) : i32\n"
    expect = "nvvm.mbarrier.arrive.expect_tx %s, %many : !llvm.ptr<3>, i32"
    assert kinds(llvm(INIT, wanted + expect)) == {"transaction-bytes"}
    assert not llvm(INIT, wanted.replace("1048576", "1048575") + expect).findings


# PTX.

SHARED = ".shared .align 16 .b8 s[64];"
_PTX_INIT = "  mov.b32 %r1, s;\n  setp.eq.u32 %p1, %t, 0;\n  @%p1 mbarrier.init.shared.b64 [%r1], 64;\n  bar.sync 0;\n"
_PTX_ARRIVE = "  mbarrier.arrive.shared.b64 %d1, [%r1];\n"
_OTHER = "  setp.eq.u32 %p2, %t, 32;\n  @%p2 "


@pytest.mark.parametrize(
    "rest, kind, says",
    [
        ("  @%p1 st.shared.b32 [%r1+4], %t;", "mbarrier", "writes byte 0x4"),
        ("  @%p1 atom.shared.add.u32 %r2, [%r1], 1;", "mbarrier", "writes byte 0x0"),
        ("  @%p1 mbarrier.init.shared.b64 [%r1], 64;", "mbarrier", "again, without an mbarrier.inval"),
        (_PTX_ARRIVE + _OTHER + "mbarrier.inval.shared.b64 [%r1];", "race", "which warp 0 of block (0, 0, 0) used"),
    ],
)
def test_ptx(rest: str, kind: str, says: str) -> None:
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(_PTX_INIT + rest, shared=SHARED))
    assert ptx_kernels.kinds(outcome) == {kind}
    assert says in outcome.findings[0].message


@pytest.mark.parametrize(
    "rest",
    [
        "  @%p1 st.shared.b32 [%r1+8], %t;",
        _PTX_ARRIVE + "  bar.sync 0;\n" + _OTHER + "mbarrier.inval.shared.b64 [%r1];\n  @%p2 st.shared.b32 [%r1], %t;",
    ],
)
def test_ptx_without_findings(rest: str) -> None:
    ptx_kernels.run_clean(_PTX_INIT + rest, shared=SHARED)


def test_bytes_that_others_read_become_an_mbarrier() -> None:
    """Shared memory is used again for an mbarrier, and nothing orders that behind the reads of it."""
    write = "  mov.b32 %r1, s;\n  setp.eq.u32 %p1, %t, 0;\n  @%p1 st.shared.b32 [%r1], %t;\n  bar.sync 0;\n"
    read = "  ld.shared.b32 %r2, [%r1];\n"
    again = "  @%p1 mbarrier.init.shared.b64 [%r1], 64;\n"
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(write + read + again, shared=SHARED))
    assert ptx_kernels.kinds(outcome) == {"race"}
    ptx_kernels.run_clean(write + read + "  bar.sync 0;\n" + again, shared=SHARED)


# nvgpu.

_GROUP = "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>"


@pytest.mark.parametrize("number, found", [(1, set()), (2, {"out-of-bounds"})])
def test_a_group_has_so_many(number: int, found: set[str]) -> None:
    text = f"""
func.func @f(%X: memref<4xf32>, %Y: memref<4xf32>) {{
  %c1 = arith.constant 1 : index
  %n = arith.constant {number} : index
  gpu.launch blocks(%b, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
      threads(%t, %t1, %t2) in (%n0 = %c1, %n1 = %c1, %n2 = %c1) {{
    %m = nvgpu.mbarrier.create -> {_GROUP}
    nvgpu.mbarrier.init %m[%n], %c1 : {_GROUP}
    gpu.terminator
  }}
  return
}}"""
    _, outcome = run(text, np.zeros(4, np.float32))
    assert {finding.kind for finding in outcome.findings if "there is no mbarrier" in finding.message} == found
    assert found or not outcome.findings
