"""What ops state without checking it: sizes and layouts of memrefs, and addresses in bounds."""

import numpy as np
import pytest

import llvm_kernels
from foreign_kernels import INTS, run

UNKNOWN = "%d = memref.cast %Y : memref<64xi32> to memref<?xi32>\n"
ROWS = "memref<?x4xi32, strided<[?, 1]>>"


def function(body: str) -> str:
    return f"func.func @main(%Y: memref<64xi32>) {{\n{body}\nreturn\n}}"


@pytest.mark.parametrize(
    "body, kind, says",
    [
        (
            UNKNOWN + "%e = memref.cast %d : memref<?xi32> to memref<32xi32>",
            "assumption",
            "has 32 elements, and it has 64",
        ),
        (
            "%r = memref.reinterpret_cast %Y to offset: [0], sizes: [8, 4], strides: [8, 1]\n"
            "  : memref<64xi32> to memref<8x4xi32, strided<[8, 1]>>\n"
            f"%s = memref.cast %r : memref<8x4xi32, strided<[8, 1]>> to {ROWS}\n"
            f"%e = memref.cast %s : {ROWS} to memref<8x4xi32>",
            "assumption",
            "the stride of dimension 0 is 4, and it is 8",
        ),
        (
            UNKNOWN + "%n = arith.constant 3 : index\n"
            "%e = memref.expand_shape %d [[0, 1]] output_shape [%n, 16] : memref<?xi32> into memref<?x16xi32>",
            "assumption",
            "cuts a dimension of 64 into 3 x 16",
        ),
        (
            UNKNOWN + "%n = arith.constant 128 : index\n%m = memref.alloc(%n) : memref<?xi32>\n"
            "memref.copy %d, %m : memref<?xi32> to memref<?xi32>",
            "assumption",
            "64 to 128: the shapes are to be the same",
        ),
        ("%a, %b = memref.distinct_objects %Y, %Y : memref<64xi32>, memref<64xi32>", "assumption", "one allocation"),
        (
            "%b = memref.alloc() : memref<64xi8>\n%n = arith.constant 32 : index\n"
            "%v = memref.view %b[%n][] : memref<64xi8> to memref<16xi32>",
            "out-of-bounds",
            "shows bytes 32 to 96 of 64",
        ),
        (
            "%v = arith.constant dense<1> : vector<4xi32>\n%n = arith.constant 2 : index\n"
            "%m = arith.addi %n, %n : index\n"
            "%e = vector.extract %v[%m] : i32 from vector<4xi32>",
            "out-of-bounds",
            "position 4 of 4 in dimension 0",
        ),
    ],
)
def test_a_promise_that_does_not_hold(body: str, kind: str, says: str) -> None:
    (finding,) = run(function(body), INTS).findings
    assert finding.kind == kind and says in finding.message


def test_promises_that_hold() -> None:
    body = f"""
    {UNKNOWN}
    %n = arith.constant 4 : index
    %e = memref.expand_shape %d [[0, 1]] output_shape [%n, 16] : memref<?xi32> into memref<?x16xi32>
    %c = memref.collapse_shape %e [[0, 1]] : memref<?x16xi32> into memref<?xi32>
    %f = memref.cast %c : memref<?xi32> to memref<64xi32>
    %m = memref.alloc() : memref<64xi32>
    %a, %b = memref.distinct_objects %f, %m : memref<64xi32>, memref<64xi32>
    memref.copy %a, %b : memref<64xi32> to memref<64xi32>"""
    assert not run(function(body), INTS).findings


@pytest.mark.parametrize(
    "address, says",
    [
        ("%p = llvm.getelementptr inbounds %X[65] : (!llvm.ptr) -> !llvm.ptr, i32", "byte 260 of argument 0"),
        ("%p = llvm.getelementptr inbounds %x[%c1] : (!llvm.ptr, i32) -> !llvm.ptr, i32", ""),
        ("%p = llvm.getelementptr inbounds %x[%c2] : (!llvm.ptr, i32) -> !llvm.ptr, i32", "thread 63 of block"),
        ("%p = llvm.getelementptr inbounds %X[-1] : (!llvm.ptr) -> !llvm.ptr, i32", "byte -4 of argument 0"),
        ("%p = llvm.getelementptr %X[-1] : (!llvm.ptr) -> !llvm.ptr, i32", ""),
    ],
)
def test_addresses_in_bounds(address: str, says: str) -> None:
    _, outcome = llvm_kernels.run(
        llvm_kernels.kernel(f"{address}\nllvm.return", element="i32"), np.arange(64, dtype=np.int32)
    )
    assert [finding.kind for finding in outcome.findings] == ["out-of-bounds"] * bool(says)
    assert all(says in finding.message for finding in outcome.findings)
