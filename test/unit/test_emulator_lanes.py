"""Races between the threads of a warp."""

import pytest

import llvm_kernels
import ptx_kernels
from test_emulator import SHARED, kernel, run
from test_emulator_warps import X

# Each thread writes its place and reads that of the thread beside it, in its own warp.
_PTX = """
  shl.b32 %r1, %t, 2;
  mov.b32 %r2, s;
  add.u32 %r3, %r2, %r1;
  {first}
  {order}
  xor.b32 %r4, %r1, 4;
  add.u32 %r5, %r2, %r4;
  {second}
"""
_S = ".shared .align 32 .b8 s[1024];"
WRITE, READ = "st.shared.b32 [%r3], %t;", "ld.shared.b32 %r6, [%r5];"


@pytest.mark.parametrize(
    "first, order, second, found",
    [
        (WRITE, "", READ, {"race"}),
        (WRITE, "bar.warp.sync -1;", READ, set()),
        (WRITE, "bar.sync 0;", READ, set()),
        (WRITE, "", "ld.shared.b32 %r6, [%r3];", set()),
        (WRITE, "", "st.shared.b32 [%r5], 7;", {"race"}),
        (WRITE + "\n  bar.sync 0;\n  ld.shared.b32 %r6, [%r3];", "", "st.shared.b32 [%r5], 7;", {"race"}),
        (WRITE + "\n  bar.sync 0;\n  ld.shared.b32 %r6, [%r3];", "bar.warp.sync -1;", "st.shared.b32 [%r5], 7;", set()),
        (WRITE + "\n  bar.sync 0;\n  red.shared.add.u32 [%r3], %t;", "", "atom.shared.add.u32 %r6, [%r5], 1;", set()),
    ],
)
def test_threads_of_a_warp(first: str, order: str, second: str, found: set[str]) -> None:
    text = _PTX.format(first=first, order=order, second=second)
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(text, shared=_S))
    assert ptx_kernels.kinds(outcome) == found
    for finding in outcome.findings:
        assert "of the same warp" in finding.message
        assert finding.message.endswith("without a barrier or a bar.warp.sync between them")
        assert finding.other


# Each thread writes four bytes; the first eight give the rows of a matrix of 8 x 8, which are in all of these.
_MATRIX = """
  shl.b32 %r1, %t, 2;
  mov.b32 %r2, s;
  add.u32 %r3, %r2, %r1;
  shl.b32 %r4, %t, 4;
  and.b32 %r4, %r4, 127;
  add.u32 %r4, %r2, %r4;
  setp.lt.u32 %p1, %t, 32;
  @!%p1 bra END;
  {body}
END:
"""
LDMATRIX = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r4];"
STMATRIX = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%t};"
_SUMS = ", ".join(["%r6"] * 8)
STORE = f"mov.b32 %r6, 0; wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r2], {{{_SUMS}}}, 16;"


@pytest.mark.parametrize(
    "body, found",
    [
        (f"{WRITE} {LDMATRIX}", {"race"}),
        (f"{WRITE} bar.warp.sync -1; {LDMATRIX}", set()),
        (f"{WRITE} bar.warp.sync -1; {LDMATRIX} {WRITE}", set()),
        (f"{WRITE} bar.warp.sync -1; ld.shared.b32 %r6, [%r3]; {STMATRIX}", set()),
        (f"{STMATRIX} ld.shared.b32 %r6, [%r3];", {"race"}),
        (f"{STMATRIX} {WRITE}", {"race"}),
        (f"{STMATRIX} bar.warp.sync -1; ld.shared.b32 %r6, [%r3];", set()),
        (f"{STMATRIX} bar.sync 0; {WRITE}", set()),
        (f"{STORE} ld.shared.b32 %r6, [%r3];", {"race"}),
        (f"{STORE} {WRITE}", {"race"}),
        (f"{STORE} bar.warp.sync -1; ld.shared.b32 %r6, [%r3];", set()),
    ],
)
def test_matrices_of_a_warp(body: str, found: set[str]) -> None:
    """The threads of a warp wait for each other at ldmatrix, stmatrix and wmma.store, but what they wrote needs a
    barrier, and so does what stmatrix and wmma.store wrote."""
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(_MATRIX.format(body=body), shared=_S))
    assert ptx_kernels.kinds(outcome) == found


def one_writes(order: str) -> str:
    return f"""
    %first = arith.cmpi eq, %t, %c0 : index
    %v = memref.load %X[%t] : memref<64xf32>
    scf.if %first {{ memref.store %v, %s[%c0] : {SHARED} }}
    {order}
    %low = arith.cmpi ult, %t, %c32 : index
    scf.if %low {{
      %w = memref.load %s[%c0] : {SHARED}
      memref.store %w, %Y[%t] : memref<64xf32>
    }}"""


@pytest.mark.parametrize("order, found", [("", 1), ("gpu.barrier", 0)])
def test_what_one_thread_writes_for_its_warp(order: str, found: int) -> None:
    _, outcome = run(kernel(one_writes(order)))
    assert len(outcome.findings) == found
    for finding in outcome.findings:
        assert (finding.kind, finding.op, finding.other) == ("race", "memref.load", "memref.store")
        assert "which thread 0 of block (0, 0, 0) of the same warp wrote" in finding.message


ALONE = """%zero = arith.constant 0 : i32
      %is_first = arith.cmpi eq, %t, %zero : i32
      scf.if %is_first { nvvm.bar.warp.sync %all : i32 }"""


@pytest.mark.parametrize(
    "order, found",
    [
        ("", {"race"}),
        ("nvvm.bar.warp.sync %all : i32", set()),
        pytest.param(ALONE, {"divergent-barrier", "race"}, id="of-one-thread"),
    ],
)
def test_the_llvm_dialect(order: str, found: set[str]) -> None:
    body = f"""
      %all = llvm.mlir.constant(-1 : i32) : i32
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %t, %p : i32, !llvm.ptr<3>
      {order}
      %o = llvm.xor %t, %c1 : i32
      %q = llvm.getelementptr %s[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %q : !llvm.ptr<3> -> i32
      llvm.return"""
    globals_ = "llvm.mlir.global private @s() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>"
    _, outcome = llvm_kernels.run(llvm_kernels.kernel(body, element="i32", globals_=globals_), X)
    assert llvm_kernels.kinds(outcome) == found


def test_a_copy_that_its_own_thread_waited_for() -> None:
    """cp.async and its wait are of one thread: others of the warp need a barrier behind them."""
    body = """
    %g = nvgpu.device_async_copy %X[%t], %s[%t], 1 : memref<64xf32> to {0}
    %k = nvgpu.device_async_create_group %g
    nvgpu.device_async_wait %k
    {1}
    %o = arith.xori %t, %c1 : index
    %v = memref.load %s[%o] : {0}
    memref.store %v, %Y[%t] : memref<64xf32>"""
    _, outcome = run(kernel(body.format(SHARED, "")))
    assert [(finding.kind, finding.op) for finding in outcome.findings] == [("race", "memref.load")]
    _, outcome = run(kernel(body.format(SHARED, "gpu.barrier")))
    assert not outcome.findings


# The first warp arrives at an mbarrier that the second one waits for.
_ARRIVAL = """
  shl.b32 %r1, %t, 2;
  mov.b32 %r2, s;
  add.u32 %r3, %r2, %r1;
  add.u32 %r4, %r3, -128;
  setp.eq.u32 %p1, %t, 0;
  setp.eq.u32 %p2, %t, 32;
  @%p1 mbarrier.init.shared.b64 [m], {count};
  st.shared.b32 [%r3], %t;
  bar.sync 0;
  setp.ge.u32 %p3, %t, 32;
  @%p3 bra WAIT;
  {first}
  {arrive}
  bra END;
WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [m], 0;
  @!%p4 bra WAIT;
  {second}
END:
"""
_READ, _WRITE = "ld.shared.b32 %r6, [%r3];", "st.shared.b32 [%r3], 5;"
_READ_OTHERS, _WRITE_OTHERS = "ld.shared.b32 %r6, [%r4];", "st.shared.b32 [%r4], 7;"
_ALONE, _ALL = "@%p1 mbarrier.arrive.shared.b64 _, [m];", "mbarrier.arrive.shared.b64 _, [m];"


@pytest.mark.parametrize(
    "first, arrive, second, found",
    [
        (_READ, _ALONE, _WRITE_OTHERS, {"race"}),
        (_WRITE, _ALONE, _READ_OTHERS, {"race"}),
        (_READ, _ALL, _WRITE_OTHERS, set()),
        # What orders the threads of a warp before one of them arrives.
        (_READ + "bar.warp.sync -1;", _ALONE, _WRITE_OTHERS, set()),
        (_WRITE + "bar.warp.sync -1;", _ALONE, _READ_OTHERS, set()),
        (_READ + "shfl.sync.idx.b32 %r7, %r6, 0, 31, -1;", _ALONE, _WRITE_OTHERS, set()),
        (_READ + "vote.sync.any.pred %p5, %p1, -1;", _ALONE, _WRITE_OTHERS, set()),
        (_READ + "redux.sync.add.u32 %r7, %r6, -1;", _ALONE, _WRITE_OTHERS, set()),
        (_READ + "elect.sync %r7|%p1, -1;", _ALONE, _WRITE_OTHERS, set()),
        (_READ + "bar.sync 1, 32;", _ALONE, _WRITE_OTHERS, set()),
        # It is behind the others that they access again.
        (_READ + "bar.warp.sync -1;" + _READ, _ALONE, _WRITE_OTHERS, {"race"}),
        # The thread that arrives has done it itself.
        ("@%p1 " + _WRITE, _ALONE, "@%p2 " + _READ_OTHERS, set()),
        (_READ, _ALONE, "@%p2 " + _WRITE_OTHERS, set()),
        (_WRITE, _ALONE, "@%p2 " + _READ_OTHERS, set()),
    ],
)
def test_a_thread_that_arrives_alone(first: str, arrive: str, second: str, found: set[str]) -> None:
    text = _ARRIVAL.format(first=first, arrive=arrive, second=second, count=32 if arrive is _ALL else 1)
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(text, shared=_S + "\n.shared .align 8 .b64 m;"))
    assert ptx_kernels.kinds(outcome) == found
    for finding in outcome.findings:
        assert (
            "thread 0 of block (0, 0, 0) arrived at an mbarrier for its warp, without a bar.warp.sync"
            in finding.message
        )
