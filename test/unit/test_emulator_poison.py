"""Flags under which the result of an integer op is poison."""

import numpy as np
import pytest

from llvm_kernels import THREADS, kernel, run

X = np.arange(THREADS, dtype=np.int32)


def findings(op: str, *, x: np.ndarray = X) -> list:
    """Returns the findings of an op on %v, the number of X that a thread has, and %t, its own number."""
    body = f"""
      %v = llvm.load %x : !llvm.ptr -> i32
      %w = llvm.sext %v : i32 to i64
      %big = llvm.mlir.constant(2147483600 : i32) : i32
      %huge = llvm.mlir.constant(9223372036854775800 : i64) : i64
      {op}
      llvm.return"""
    _, outcome = run(kernel(body, element="i32"), x)
    return list(outcome.findings)


@pytest.mark.parametrize(
    "op, x, says",
    [
        ("llvm.add %v, %big overflow<nsw> : i32", X, "thread 48 of block (0, 0, 0): 48 + 2147483600 overflows i32"),
        ("llvm.sub %t, %c32 overflow<nuw> : i32", X, "0 - 32 overflows unsigned i32"),
        ("llvm.mul %v, %big overflow<nsw> : i32", X, "2 * 2147483600"),
        ("llvm.add %w, %huge overflow<nsw> : i64", X, "8 + 9223372036854775800 overflows i64"),
        ("llvm.shl %v, %c2 overflow<nsw> : i32", X << 25, "536870912 << 2"),
        ("llvm.trunc %w overflow<nuw> : i64 to i8", X * 8, "256 does not fit i8"),
        ("llvm.udiv exact %v, %c2 : i32", X, "1 / 2 has a remainder"),
        ("llvm.ashr exact %v, %c1 : i32", X, "1 >> 1 shifts out bits"),
        ("arith.shrui %v, %c1 exact : i32", X, "1 >> 1 shifts out bits"),
        ("arith.divsi %v, %c2 exact : i32", X, "1 / 2 has a remainder"),
        ("arith.extui %v nneg : i32 to i64", -X, "-1 is negative"),
        ("llvm.or disjoint %v, %c2 : i32", X, "0x2 | 0x2 have bits in common"),
        ("llvm.zext nneg %v : i32 to i64", -X, "-1 is negative"),
        ("arith.addi %v, %big overflow<nsw> : i32", X, "48 + 2147483600 overflows i32"),
        ("arith.muli %w, %huge overflow<nsw, nuw> : i64", X, "2 * 9223372036854775800"),
    ],
)
def test_a_flag_that_does_not_hold(op: str, x: np.ndarray, says: str) -> None:
    (finding,) = {finding.message: finding for finding in findings("%r = " + op, x=x)}.values()
    assert (finding.kind, finding.op) == ("poison", op.split()[0])
    assert says in finding.message
    assert finding.message.endswith("the result is poison")
    assert finding.location.startswith("kernel.mlir:")


@pytest.mark.parametrize(
    "op, x",
    [
        ("llvm.add %v, %big overflow<nsw> : i32", X % 48),
        ("llvm.add %v, %big : i32", X),
        ("llvm.add %v, %big overflow<nuw> : i32", X),
        ("llvm.sub %t, %c32 overflow<nsw> : i32", X),
        ("llvm.add %w, %huge overflow<nsw> : i64", X % 8),
        ("llvm.shl %v, %c2 overflow<nsw, nuw> : i32", X << 23),
        ("llvm.trunc %w overflow<nsw> : i64 to i8", X),
        ("llvm.udiv exact %v, %c2 : i32", 2 * X),
        ("llvm.or disjoint %v, %c1 : i32", 2 * X),
        ("llvm.zext nneg %v : i32 to i64", X),
    ],
)
def test_a_flag_that_holds(op: str, x: np.ndarray) -> None:
    assert not findings("%r = " + op, x=x)


def test_threads_that_do_not_come_to_it() -> None:
    """Only the threads that execute an op are asked."""
    body = """llvm.cond_br %few, ^do, ^end
    ^do:
      %r = llvm.add %v, %big overflow<nsw> : i32
      llvm.br ^end
    ^end:"""
    assert not findings('%few = llvm.icmp "ult" %t, %c32 : i32\n      ' + body)
    assert findings('%few = llvm.icmp "uge" %t, %c32 : i32\n      ' + body)


def test_vectors() -> None:
    vector = """%one = llvm.mlir.constant(dense<[0, 2147483647]> : vector<2xi32>) : vector<2xi32>
      %two = llvm.mlir.constant(dense<{0}> : vector<2xi32>) : vector<2xi32>
      %r = llvm.add %one, %two overflow<nsw> : vector<2xi32>"""
    assert not findings(vector.format(0))
    (finding,) = findings(vector.format(1))
    assert "2147483647 + 1 overflows i32" in finding.message
