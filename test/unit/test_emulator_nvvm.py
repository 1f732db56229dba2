"""Ops of nvvm that execute as the PTX that LLVM makes of them: bulk copies, arrivals, arithmetic, conversions."""

import ml_dtypes
import numpy as np
import pytest

from llvm_kernels import THREADS, kernel, kinds, run
from stepladder.runtime.errors import StepladderError

_GLOBALS = """
    llvm.mlir.global internal @m() {addr_space = 3 : i32, alignment = 8 : i64} : i64
    llvm.mlir.global internal @s() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i32>"""
_START = """
      %m = llvm.mlir.addressof @m : !llvm.ptr<3>
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %bytes = llvm.mlir.constant(256 : i32) : i32
      %ticks = llvm.mlir.constant(1000 : i32) : i32
      %last = llvm.mlir.constant(63 : i32) : i32
      %own = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %turned = llvm.sub %last, %t : i32
      %other = llvm.getelementptr %s[%turned] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %first = llvm.icmp "eq" %t, %c0 : i32"""
_FENCE = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"
_LOAD = f"""{_START}
      llvm.cond_br %first, ^begin, ^wait
    ^begin:
      nvvm.mbarrier.init %m, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %m, %bytes : !llvm.ptr<3>, i32
      %cluster = llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr<7>
      %from = llvm.addrspacecast %X : !llvm.ptr to !llvm.ptr<1>
      nvvm.cp.async.bulk.shared.cluster.global %cluster, %from, %m, %bytes : !llvm.ptr<7>, !llvm.ptr<1>
      llvm.br ^wait
    ^wait:
      nvvm.barrier
      nvvm.mbarrier.try_wait.parity %m, %c0, %ticks : !llvm.ptr<3>, i32, i32
      %v = llvm.load %other : !llvm.ptr<3> -> i32
      llvm.store %v, %y : i32, !llvm.ptr
      llvm.return"""
_STORE = f"""{_START}
      %v = llvm.load %x : !llvm.ptr -> i32
      llvm.store %v, %other : i32, !llvm.ptr<3>
      {_FENCE}
      nvvm.barrier
      llvm.cond_br %first, ^begin, ^end
    ^begin:
      %to = llvm.addrspacecast %Y : !llvm.ptr to !llvm.ptr<1>
      nvvm.cp.async.bulk.global.shared.cta %to, %s, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
      llvm.br ^end
    ^end:
      llvm.return"""


@pytest.mark.parametrize(
    "body, left_out, found",
    [
        (_LOAD, "", set()),
        (_LOAD, "nvvm.fence.mbarrier.init", {"proxy"}),
        (_LOAD, "nvvm.mbarrier.try_wait.parity %m, %c0, %ticks : !llvm.ptr<3>, i32, i32", {"in-flight", "unwaited"}),
        (_STORE, "", set()),
        (_STORE, _FENCE, {"proxy"}),
        (_STORE, "nvvm.cp.async.bulk.wait_group 0", {"unwaited"}),
    ],
)
def test_bulk_copies(body: str, left_out: str, found: set[str]) -> None:
    x = np.arange(THREADS, dtype=np.int32)
    y, outcome = run(kernel(body.replace(left_out, "") if left_out else body, element="i32", globals_=_GLOBALS), x)
    assert kinds(outcome) == found
    if not left_out:
        np.testing.assert_array_equal(y, x[::-1])


def test_an_arrival_for_good_that_announces_bytes() -> None:
    body = f"""{_START}
      %threads = llvm.mlir.constant(64 : i32) : i32
      %v = llvm.load %x : !llvm.ptr -> i32
      llvm.store %v, %own : i32, !llvm.ptr<3>
      llvm.cond_br %first, ^begin, ^all
    ^begin:
      nvvm.mbarrier.init %m, %threads : !llvm.ptr<3>, i32
      llvm.br ^all
    ^all:
      nvvm.barrier
      nvvm.mbarrier.complete_tx %m, %c2 : !llvm.ptr<3>, i32
      %token = nvvm.mbarrier.arrive_drop.expect_tx %m, %c2 : !llvm.ptr<3>, i32 -> i64
      %ended = nvvm.mbarrier.try_wait %m, %token : !llvm.ptr<3>, i64 -> i1
      %w = llvm.load %other : !llvm.ptr<3> -> i32
      llvm.store %w, %y : i32, !llvm.ptr
      llvm.return"""
    x = np.arange(THREADS, dtype=np.int32)
    y, outcome = run(kernel(body, element="i32", globals_=_GLOBALS), x)
    assert not outcome.findings
    np.testing.assert_array_equal(y, x[::-1])


_TINY = np.float32(1e-40)


@pytest.mark.parametrize(
    "op, model",
    [
        ('"nvvm.mulf"(%v, %v) {sat = #nvvm.sat_mode<sat>} : (f32, f32) -> f32', lambda x: np.minimum(x * x, 1)),
        ('"nvvm.addf"(%v, %tiny) {ftz = true} : (f32, f32) -> f32', lambda x: x),
        ('"nvvm.ex2"(%v) {ftz = true} : (f32) -> f32', lambda x: np.exp2(x.astype(np.float64)).astype(np.float32)),
        (
            '"nvvm.divf"(%v, %three) {rnd = #nvvm.fp_rnd_mode<rm>} : (f32, f32) -> f32',
            lambda x: np.where(
                (x / np.float32(3)).astype(np.float64) > x.astype(np.float64) / 3,
                np.nextafter(x / np.float32(3), np.float32(-np.inf)),
                x / np.float32(3),
            ),
        ),
    ],
)
def test_arithmetic_with_modifiers(op: str, model: object) -> None:
    body = f"""
      %v = llvm.load %x : !llvm.ptr -> f32
      %tiny = llvm.mlir.constant({_TINY:e} : f32) : f32
      %three = llvm.mlir.constant(3.0 : f32) : f32
      %r = {op}
      llvm.store %r, %y : f32, !llvm.ptr
      llvm.return"""
    x = np.linspace(-2, 2, THREADS, dtype=np.float32)
    y, outcome = run(kernel(body), x)
    assert not outcome.findings
    np.testing.assert_array_equal(y, model(x))


def test_modifiers_that_are_refused() -> None:
    body = """
      %v = llvm.mlir.constant(dense<1.0> : vector<2xf32>) : vector<2xf32>
      %r = "nvvm.addf"(%v, %v) {rnd = #nvvm.fp_rnd_mode<rz>} : (vector<2xf32>, vector<2xf32>) -> vector<2xf32>
      llvm.return"""
    with pytest.raises(
        StepladderError, match=r"does not support nvvm.addf of vector<2xf32> with .rz: expected one of f16"
    ):
        run(kernel(body), np.zeros(THREADS, np.float32))


@pytest.mark.parametrize("name, dtype", [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)])
def test_halves_to_bytes(name: str, dtype: type) -> None:
    body = f"""
      %v = llvm.load %x : !llvm.ptr -> f16
      %two = llvm.mlir.undef : vector<2xf16>
      %one = llvm.insertelement %v, %two[%c0 : i32] : vector<2xf16>
      %both = llvm.insertelement %v, %one[%c1 : i32] : vector<2xf16>
      %bytes = nvvm.convert.f16x2.to.f8x2 %both : vector<2xf16> -> i16 ({name})
      %r = llvm.bitcast %bytes : i16 to f16
      llvm.store %r, %y : f16, !llvm.ptr
      llvm.return"""
    x = np.linspace(-100, 100, THREADS).astype(np.float16)
    y, outcome = run(kernel(body, element="f16"), x)
    assert not outcome.findings
    np.testing.assert_array_equal(y.view(dtype)[::2].astype(np.float32), x.astype(dtype).astype(np.float32))
    np.testing.assert_array_equal(y.view(np.uint8)[::2], y.view(np.uint8)[1::2])
