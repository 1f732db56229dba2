"""What threads of a warp do together, and numbers of the LLVM dialect, against NumPy."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import foreign_kernels
from foreign_kernels import launch
from llvm_kernels import kernel, kinds, run, run_clean
from stepladder.runtime.errors import StepladderError

THREADS = 64
LANE = np.arange(THREADS) % 32
X = np.arange(THREADS, dtype=np.int32)


def of(ops: str, x: np.ndarray = X) -> np.ndarray:
    """Returns %r of each thread, computed from %t and the number %v of X."""
    return run_clean(
        f"""
      %all = llvm.mlir.constant(-1 : i32) : i32
      %v = llvm.load %x : !llvm.ptr -> i32
      {ops}
      llvm.store %r, %y : i32, !llvm.ptr
      llvm.return""",
        x,
    )


ODD = '%bit = llvm.and %v, %c1 : i32\n%odd = llvm.icmp "eq" %bit, %c1 : i32\n'


def test_votes() -> None:
    assert set(of(ODD + "%r = nvvm.vote.sync ballot %all, %odd -> i32").view(np.uint32)) == {0xAAAAAAAA}
    assert set(of(ODD + "%p = nvvm.vote.sync any %all, %odd -> i1\n%r = llvm.zext %p : i1 to i32")) == {1}
    assert set(of(ODD + "%p = nvvm.vote.sync all %all, %odd -> i1\n%r = llvm.zext %p : i1 to i32")) == {0}


PART = """
      %all = llvm.mlir.constant(-1 : i32) : i32
      %c5 = llvm.mlir.constant(5 : i32) : i32
      %few = llvm.icmp "ult" %t, %c5 : i32
      llvm.cond_br %few, ^part, ^end
    ^part:
      {op}
      llvm.br ^end
    ^end:
      {behind}
      llvm.return"""
TOGETHER = [
    "%r = nvvm.vote.sync ballot %all, %few -> i32",
    "%r = nvvm.shfl.sync idx %all, %t, %c1, %all : i32 -> i32",
    "%r = nvvm.redux.sync add %t, %all : i32 -> i32",
    "%r = nvvm.match.sync any %all, %t : i32 -> i32",
]


@pytest.mark.parametrize("op", TOGETHER)
def test_members_that_do_not_all_come(op: str) -> None:
    """Members must come, but for those that end without it."""
    _, outcome = run(kernel(PART.format(op=op, behind="llvm.store %c1, %y : i32, !llvm.ptr"), element="i32"), X)
    assert kinds(outcome) == {"divergent-barrier"}
    assert "waits for threads of its member mask" in outcome.findings[0].message
    _, outcome = run(kernel(PART.format(op=op, behind=""), element="i32"), X)
    assert not outcome.findings


def test_a_thread_that_exits() -> None:
    y = run_clean(PART.format(op="nvvm.exit", behind="llvm.store %c1, %y : i32, !llvm.ptr"))
    assert y.tolist() == [-1] * 5 + [1] * 59


def test_matches() -> None:
    found = of("%half = llvm.and %v, %c1 : i32\n%r = nvvm.match.sync any %all, %half : i32 -> i32")
    assert list(found.view(np.uint32)) == [0xAAAAAAAA if t % 2 else 0x55555555 for t in range(THREADS)]


@pytest.mark.parametrize(
    "kind, expected", [("add", np.add), ("max", np.maximum), ("umin", None), ("xor", np.bitwise_xor)]
)
def test_reductions(kind: str, expected: Callable[..., np.ndarray] | None) -> None:
    x = np.random.default_rng(0).integers(-100, 100, THREADS).astype(np.int32)
    found = of(f"%r = nvvm.redux.sync {kind} %v, %all : i32 -> i32", x)
    for warp in range(2):
        own = x[32 * warp : 32 * warp + 32]
        wanted = int(own.view(np.uint32).min().view(np.int32)) if expected is None else expected.reduce(own)
        assert set(found[32 * warp : 32 * warp + 32]) == {wanted}


def test_masks_of_lanes() -> None:
    assert list(of("%r = nvvm.read.ptx.sreg.lanemask.lt : i32").view(np.uint32)) == [(1 << lane) - 1 for lane in LANE]
    assert list(of("%r = nvvm.read.ptx.sreg.lanemask.ge : i32").view(np.uint32)) == [
        0xFFFFFFFF >> lane << lane & 0xFFFFFFFF for lane in LANE.tolist()
    ]


INTRINSICS = {
    "%r = llvm.intr.sadd.sat(%v, %v) : (i32, i32) -> i32": lambda v: np.clip(
        2 * v.astype(np.int64), -(2**31), 2**31 - 1
    ),
    "%r = llvm.intr.usub.sat(%c32, %v) : (i32, i32) -> i32": lambda v: np.where(v.view(np.uint32) < 32, 32 - v, 0),
    "%r = llvm.intr.fshl(%v, %c1, %c2) : (i32, i32, i32) -> i32": lambda v: v << 2,
    "%r = llvm.intr.bitreverse(%v) : (i32) -> i32": lambda v: np.array(
        [int(f"{n:032b}"[::-1], 2) for n in v.view(np.uint32)], np.uint32
    ).view(np.int32),
    "%r = llvm.intr.bswap(%v) : (i32) -> i32": lambda v: v.byteswap(),
    '%r = "llvm.intr.abs"(%v) <{is_int_min_poison = false}> : (i32) -> i32': np.abs,
    "%r = llvm.intr.ctpop(%v) : (i32) -> i32": lambda v: np.array([bin(n).count("1") for n in v.view(np.uint32)]),
    """%s = "llvm.intr.smul.with.overflow"(%v, %v) : (i32, i32) -> !llvm.struct<(i32, i1)>
       %o = llvm.extractvalue %s[1] : !llvm.struct<(i32, i1)>
       %r = llvm.zext %o : i1 to i32""": lambda v: (v.astype(np.int64) ** 2 > 2**31 - 1).astype(np.int32),
    """%a = llvm.alloca %c2 x i32 : (i32) -> !llvm.ptr
       %b = llvm.getelementptr %a[1] : (!llvm.ptr) -> !llvm.ptr, i32
       llvm.store %v, %b : i32, !llvm.ptr
       %r = llvm.load %b : !llvm.ptr -> i32""": lambda v: v,
    "%r = llvm.intr.scmp(%v, %c32) : (i32, i32) -> i32": lambda v: np.sign(v.astype(np.int64) - 32),
    "%r = llvm.intr.ucmp(%v, %c32) : (i32, i32) -> i32": lambda v: np.sign(v.view(np.uint32).astype(np.int64) - 32),
    """%f = llvm.sitofp %v : i32 to f64
       %h = llvm.mlir.constant(0.5 : f64) : f64
       %q = llvm.fmul %f, %h : f64
       %a = llvm.intr.lround(%q) : (f64) -> i32
       %b = llvm.intr.lrint(%q) : (f64) -> i32
       %r = llvm.sub %a, %b : i32""": lambda v: np.where(v % 4 == 1, v > 0, 0) - np.where(v % 4 == 3, v < 0, 0),
    """%f = llvm.sitofp %v : i32 to f32
       %g = llvm.intr.ldexp(%f, %c2) : (f32, i32) -> f32
       %s = llvm.intr.frexp(%g) : (f32) -> !llvm.struct<(f32, i32)>
       %r = llvm.extractvalue %s[1] : !llvm.struct<(f32, i32)>""": lambda v: np.frexp(4 * v.astype(np.float32))[1],
    # Numbers below 0 that are normal, and 0.
    """%f = llvm.sitofp %v : i32 to f32
       %p = "llvm.intr.is.fpclass"(%f) <{bit = 72 : i32}> : (f32) -> i1
       %r = llvm.zext %p : i1 to i32""": lambda v: (v <= 0).astype(np.int32),
    """%f = llvm.sitofp %v : i32 to f32
       %p = nvvm.convert.f32x2.to.bf16x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
       %r = llvm.bitcast %p : vector<2xbf16> to i32""": lambda v: (
        v.astype(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.uint32) * 0x10001
    ).view(np.int32),
    """%f = llvm.sitofp %v : i32 to f32
       %p = nvvm.convert.f32x2.to.f8x2 %f, %f
           {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
       %r = llvm.zext %p : i16 to i32""": lambda v: (
        np.clip(v.astype(np.float32), -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8).astype(np.int32) * 257
    ),
    """%f = llvm.sitofp %v : i32 to f32
       %r = nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rna>}""": lambda v: (
        (v.astype(np.float32).view(np.int32) + 0x1000) & ~0x1FFF
    ),
    **{
        f"""%c = llvm.atomicrmw {kind} %x, %c32 monotonic : !llvm.ptr, i32
       %r = llvm.load %x : !llvm.ptr -> i32""": function
        for kind, function in {
            "uinc_wrap": lambda v: np.where(v.view(np.uint32) >= 32, 0, v + 1),
            "udec_wrap": lambda v: np.where((v == 0) | (v.view(np.uint32) > 32), 32, v - 1),
            "usub_cond": lambda v: np.where(v.view(np.uint32) >= 32, v - 32, v),
            "usub_sat": lambda v: np.where(v.view(np.uint32) >= 32, v - 32, 0),
        }.items()
    },
}


@pytest.mark.parametrize("text", INTRINSICS)
def test_intrinsics(text: str) -> None:
    x = np.random.default_rng(1).integers(-(2**31), 2**31, THREADS).astype(np.int32)
    x[:4] = 0, 1, -1, 40000
    assert np.array_equal(of(text, x), INTRINSICS[text](x).astype(np.int32))


def test_atomic_updates_return_what_stood_there() -> None:
    y, outcome = run(
        kernel(
            """
      %first = llvm.getelementptr %Y[0] : (!llvm.ptr) -> !llvm.ptr, i32
      %old = llvm.atomicrmw add %first, %c2 monotonic : !llvm.ptr, i32
      llvm.return""",
            element="i32",
        ),
        X,
    )
    assert y[0] == -1 + 2 * THREADS and not outcome.findings


def test_only_one_thread_replaces_a_number() -> None:
    y, outcome = run(
        kernel(
            """
      %m = llvm.mlir.constant(-1 : i32) : i32
      %first = llvm.getelementptr %Y[0] : (!llvm.ptr) -> !llvm.ptr, i32
      %pair = llvm.cmpxchg %first, %m, %t acq_rel monotonic : !llvm.ptr, i32
      %won = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      llvm.return""",
            element="i32",
        ),
        X,
    )
    assert y[0] == 0 and not outcome.findings


@pytest.mark.parametrize("ordering, found", [("acq_rel", set()), ("monotonic", {"race"})])
def test_what_an_update_orders(ordering: str, found: set[str]) -> None:
    """A warp writes and counts up; another waits for the count and reads."""
    _, outcome = run(
        kernel(
            f"""
      %zero = llvm.mlir.constant(0 : i32) : i32
      %flag = llvm.mlir.addressof @flag : !llvm.ptr
      %early = llvm.icmp "ult" %t, %c32 : i32
      %partner = llvm.xor %t, %c32 : i32
      %pl = llvm.sext %partner : i32 to i64
      %there = llvm.getelementptr %Y[%pl] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      llvm.cond_br %early, ^write, ^wait
    ^write:
      llvm.store %t, %y : i32, !llvm.ptr
      %one = llvm.atomicrmw add %flag, %c1 {ordering} : !llvm.ptr, i32
      llvm.br ^end
    ^wait:
      %now = llvm.atomicrmw add %flag, %zero {ordering} : !llvm.ptr, i32
      %ready = llvm.icmp "uge" %now, %c32 : i32
      llvm.cond_br %ready, ^read, ^wait
    ^read:
      %v = llvm.load %there : !llvm.ptr -> i32
      llvm.br ^end
    ^end:
      llvm.return""",
            element="i32",
            globals_="llvm.mlir.global internal @flag(0 : i32) {addr_space = 0 : i32} : i32",
        ),
        X,
    )
    assert kinds(outcome) == found


def test_a_region_of_the_first_thread_of_each_warp() -> None:
    text = launch(
        """
        %l = gpu.lane_id
        %v = vector.load %X[%t, %c0] : memref<64x2xf32>, vector<1x2xf32>
        %r, %s = gpu.warp_execute_on_lane_0(%l)[32] args(%v : vector<1x2xf32>) -> (vector<1x2xf32>, f32) {
        ^bb0(%w: vector<32x2xf32>):
          %flat = vector.shape_cast %w : vector<32x2xf32> to vector<64xf32>
          %sum = vector.reduction <add>, %flat : vector<64xf32> into f32
          %d = arith.addf %w, %w : vector<32x2xf32>
          gpu.yield %d, %sum : vector<32x2xf32>, f32
        }
        %b_ = vector.broadcast %s : f32 to vector<1x2xf32>
        %q = arith.addf %r, %b_ : vector<1x2xf32>
        vector.store %q, %Y[%t, %c0] : memref<64x2xf32>, vector<1x2xf32>
        gpu.terminator""",
        arguments="%X: memref<64x2xf32>, %Y: memref<64x2xf32>",
    )
    x = np.arange(128, dtype=np.float32).reshape(64, 2)
    outcome = foreign_kernels.run_clean(text, x, np.zeros_like(x))
    wanted = 2 * x + np.repeat(x.reshape(2, 64).sum(axis=1), 32)[:, None]
    np.testing.assert_array_equal(outcome.arguments[1], wanted)


def test_a_vector_that_a_warp_divides_along_two_dimensions_is_refused() -> None:
    text = launch("""
        %l = gpu.lane_id
        %z = arith.constant dense<0.0> : vector<1x1xf32>
        gpu.warp_execute_on_lane_0(%l)[32] args(%z : vector<1x1xf32>) {
        ^bb0(%w: vector<4x8xf32>):
        }
        gpu.terminator""")
    with pytest.raises(StepladderError, match="warp_execute_on_lane_0 with a vector that is divided along several"):
        foreign_kernels.run(text, np.zeros(64, np.int32))
