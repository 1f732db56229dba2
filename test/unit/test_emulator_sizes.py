"""Memrefs whose sizes differ between the threads that execute an op."""

import numpy as np

from foreign_kernels import launch, run

OF_ROW = "memref<1x?xi32, strided<[8, 1], offset: ?>>"
ROWS = f"""
  %n = arith.addi %t, %c1 : index
  %x = memref.subview %X[%t, 0] [1, %n] [1, 1] : memref<8x8xi32> to {OF_ROW}
  %y = memref.subview %Y[%t, 0] [1, %n] [1, 1] : memref<8x8xi32> to {OF_ROW}
"""


def rows(body: str) -> tuple[np.ndarray, list]:
    """Returns Y of 8 rows, of which thread t has t + 1 elements, and what is found; X counts from 0."""
    text = launch(ROWS + body + "\n  gpu.terminator", threads=8, arguments="%X: memref<8x8xi32>, %Y: memref<8x8xi32>")
    outcome = run(text, np.arange(64, dtype=np.int32).reshape(8, 8), np.full((8, 8), -1, np.int32))
    return outcome.arguments[1], outcome.findings


def test_copies_of_different_sizes() -> None:
    y, findings = rows(f"memref.copy %x, %y : {OF_ROW} to {OF_ROW}")
    assert not findings
    assert y.tolist() == [[8 * row + column if column <= row else -1 for column in range(8)] for row in range(8)]


def test_memory_of_different_sizes() -> None:
    y, findings = rows(
        f"""
  %own = memref.alloca(%n) : memref<?xi32>
  scf.for %i = %c0 to %n step %c1 {{
    %v = memref.load %x[%c0, %i] : {OF_ROW}
    memref.store %v, %own[%i] : memref<?xi32>
  }}
  %v = memref.load %own[%t] : memref<?xi32>
  memref.store %v, %Y[%t, %c0] : memref<8x8xi32>"""
    )
    assert not findings
    assert y[:, 0].tolist() == [9 * row for row in range(8)]


def test_a_promise_that_one_thread_breaks() -> None:
    _, findings = rows(f"%all = memref.cast %x : {OF_ROW} to memref<1x8xi32, strided<[8, 1], offset: ?>>")
    assert [finding.kind for finding in findings] == ["assumption"]
    assert "dimension 1 has 8 elements, and it has 1" in findings[0].message
    _, findings = rows(
        """
  %two = arith.minui %n, %c1 : index
  %flat = memref.reinterpret_cast %X to offset: [0], sizes: [%n], strides: [1] : memref<8x8xi32> to memref<?xi32>
  %cut = memref.expand_shape %flat [[0, 1]] output_shape [%two, 1] : memref<?xi32> into memref<?x1xi32>"""
    )
    assert "cuts a dimension of 2 into 1 x 1" in findings[0].message


ADDRESSES = """
  %c32 = arith.constant 32 : index
  %c4 = arith.constant 4 : index
  %row = arith.muli %t, %c32 : index
  %bytes = arith.muli %n, %c4 : index
  %size = arith.index_cast %bytes : index to i64
""" + "\n".join(
    f"""
  %{name}i = memref.extract_aligned_pointer_as_index %{name.upper()} : memref<8x8xi32> -> index
  %{name}a = arith.addi %{name}i, %row : index
  %{name}n = arith.index_cast %{name}a : index to i64
  %{name}p = llvm.inttoptr %{name}n : i64 to !llvm.ptr"""
    for name in "xy"
)


def test_blocks_of_memory_of_different_sizes() -> None:
    copy = '"llvm.intr.memcpy"(%yp, %xp, %size) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()'
    y, findings = rows(ADDRESSES + copy)
    assert not findings
    assert y.tolist() == [[8 * row + column if column <= row else -1 for column in range(8)] for row in range(8)]
    fill = """
  %byte = arith.index_cast %t : index to i8
  "llvm.intr.memset"(%yp, %byte, %size) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()"""
    y, findings = rows(ADDRESSES + fill)
    assert not findings
    assert y.tolist() == [[0x1010101 * row if column <= row else -1 for column in range(8)] for row in range(8)]


def test_stacks_of_different_sizes() -> None:
    y, findings = rows(
        """
  %count = arith.index_cast %n : index to i64
  %own = llvm.alloca %count x i32 : (i64) -> !llvm.ptr
  %place = arith.index_cast %t : index to i64
  %at = llvm.getelementptr %own[%place] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %number = arith.index_cast %n : index to i32
  llvm.store %number, %at : i32, !llvm.ptr
  %v = llvm.load %at : !llvm.ptr -> i32
  memref.store %v, %Y[%t, %c0] : memref<8x8xi32>"""
    )
    assert not findings
    assert y[:, 0].tolist() == list(range(1, 9))


def test_a_view_beyond_its_buffer() -> None:
    """What is beyond it is left out, also where there is no dynamic shared memory at all."""
    outcome = run(
        """
    func.func @main(%Y: memref<4xi32>) {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %c20 = arith.constant 20 : index
      %five = arith.constant 5 : i32
      %bytes = memref.alloc() : memref<16xi8>
      %view = memref.view %bytes[%c4][] : memref<16xi8> to memref<32xi32>
      memref.store %five, %view[%c0] : memref<32xi32>
      memref.store %five, %view[%c20] : memref<32xi32>
      %v = memref.load %view[%c0] : memref<32xi32>
      memref.store %v, %Y[%c0] : memref<4xi32>
      return
    }""",
        np.zeros(4, np.int32),
    )
    assert [finding.message for finding in outcome.findings] == [
        "shows bytes 4 to 132 of 16",
        "the host touches element [20] of 3xi32",
    ]
    assert outcome.arguments[0].tolist() == [5, 0, 0, 0]
    _, findings = rows(
        """
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %view = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
    to memref<8xindex, #gpu.address_space<workgroup>>
  memref.store %t, %view[%t] : memref<8xindex, #gpu.address_space<workgroup>>
  %v = memref.load %view[%t] : memref<8xindex, #gpu.address_space<workgroup>>"""
    )
    assert {finding.kind for finding in findings} == {"out-of-bounds"} and len(findings) == 3
