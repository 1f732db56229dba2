"""What loads and stores of the LLVM dialect access beside aligned numbers: structs, arrays, pointers, bits."""

import numpy as np
import pytest

from foreign_kernels import launch_func
from foreign_kernels import run as run_module
from llvm_kernels import THREADS, run_clean
from stepladder.emulator.core.emulation import Emulation
from stepladder.mlir.llvm_layouts import layout
from stepladder.pipeline.context import mlir_context, parse_payload

NUMBERS = np.arange(THREADS, dtype=np.int32) * 0x01020304 + 7
LANES = np.arange(THREADS, dtype=np.int32)
PAIR = "!llvm.struct<(i8, i32, array<2 x f32>)>"
PACKED = "!llvm.struct<packed (i8, i32)>"
ROWS = "!llvm.array<2 x vector<3xi32>>"


def stack(type_: str) -> str:
    return f"""
      %one = llvm.mlir.constant(1 : i64) : i64
      %a = llvm.alloca %one x {type_} : (i64) -> !llvm.ptr
      %v = llvm.load %x : !llvm.ptr -> i32"""


def test_a_load_that_states_that_it_is_not_aligned() -> None:
    y = run_clean(
        """
      %p = llvm.getelementptr %X[%l] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %v = llvm.load %p {alignment = 1 : i64} : !llvm.ptr -> i32
      llvm.store %v, %y : i32, !llvm.ptr
      llvm.return""",
        NUMBERS,
    )
    memory = NUMBERS.tobytes()
    assert list(y) == [np.frombuffer(memory[t : t + 4], np.int32)[0] for t in range(THREADS)]


def test_fields_of_a_packed_struct() -> None:
    y = run_clean(
        f"""{stack(PACKED)}
      %p = llvm.getelementptr %a[0, 1] : (!llvm.ptr) -> !llvm.ptr, {PACKED}
      %byte = llvm.trunc %t : i32 to i8
      llvm.store %byte, %a : i8, !llvm.ptr
      llvm.store %v, %p {{alignment = 1 : i64}} : i32, !llvm.ptr
      %s = llvm.load %a {{alignment = 1 : i64}} : !llvm.ptr -> {PACKED}
      %first = llvm.extractvalue %s[0] : {PACKED}
      %second = llvm.extractvalue %s[1] : {PACKED}
      %number = llvm.sext %first : i8 to i32
      %sum = llvm.add %number, %second : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""",
        NUMBERS,
    )
    assert np.array_equal(y, NUMBERS + LANES)


def test_a_struct_in_memory() -> None:
    y = run_clean(
        f"""{stack(PAIR)}
      %u = llvm.mlir.undef : {PAIR}
      %f = llvm.sitofp %t : i32 to f32
      %byte = llvm.trunc %t : i32 to i8
      %u1 = llvm.insertvalue %v, %u[1] : {PAIR}
      %u2 = llvm.insertvalue %f, %u1[2, 1] : {PAIR}
      %u3 = llvm.insertvalue %byte, %u2[0] : {PAIR}
      llvm.store %u3, %a : {PAIR}, !llvm.ptr
      %p = llvm.getelementptr %a[0, 2, 1] : (!llvm.ptr) -> !llvm.ptr, {PAIR}
      %g = llvm.load %p : !llvm.ptr -> f32
      %i = llvm.fptosi %g : f32 to i32
      %s = llvm.load %a : !llvm.ptr -> {PAIR}
      %first = llvm.extractvalue %s[0] : {PAIR}
      %second = llvm.extractvalue %s[1] : {PAIR}
      %number = llvm.sext %first : i8 to i32
      %half = llvm.add %second, %i : i32
      %sum = llvm.add %half, %number : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""",
        NUMBERS,
    )
    assert np.array_equal(y, NUMBERS + 2 * LANES)


def test_an_array_of_vectors_in_memory() -> None:
    """As MLIR lowers vectors of several dimensions; each begins at a multiple of a power of two."""
    y = run_clean(
        f"""{stack(ROWS)}
      %u = llvm.mlir.undef : {ROWS}
      %z = llvm.mlir.zero : vector<3xi32>
      %w = llvm.insertelement %v, %z[%c2 : i32] : vector<3xi32>
      %u1 = llvm.insertvalue %z, %u[0] : {ROWS}
      %u2 = llvm.insertvalue %w, %u1[1] : {ROWS}
      llvm.store %u2, %a : {ROWS}, !llvm.ptr
      %p = llvm.getelementptr %a[6] : (!llvm.ptr) -> !llvm.ptr, i32
      %n = llvm.load %p : !llvm.ptr -> i32
      %s = llvm.load %a : !llvm.ptr -> {ROWS}
      %row = llvm.extractvalue %s[1] : {ROWS}
      %m = llvm.extractelement %row[%c2 : i32] : vector<3xi32>
      %sum = llvm.add %m, %n : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""",
        NUMBERS,
    )
    assert np.array_equal(y, 2 * NUMBERS)


def test_pointers_in_memory() -> None:
    y = run_clean(
        f"""{stack("!llvm.ptr")}
      llvm.store %x, %a : !llvm.ptr, !llvm.ptr
      %p = llvm.load %a : !llvm.ptr -> !llvm.ptr
      %w = llvm.load %p : !llvm.ptr -> i32
      llvm.store %w, %y : i32, !llvm.ptr
      llvm.return""",
        NUMBERS,
    )
    assert np.array_equal(y, NUMBERS)


def test_vectors_of_bits_in_memory() -> None:
    y = run_clean(
        f"""{stack("i32")}
      %bits = llvm.bitcast %v : i32 to vector<32xi1>
      llvm.store %bits, %a : vector<32xi1>, !llvm.ptr
      %w = llvm.load %a : !llvm.ptr -> i32
      %nibbles = llvm.load %a : !llvm.ptr -> vector<8xi4>
      %nibble = llvm.extractelement %nibbles[%c1 : i32] : vector<8xi4>
      %n = llvm.sext %nibble : i4 to i32
      %bytes = llvm.bitcast %nibbles : vector<8xi4> to vector<4xi8>
      %byte = llvm.extractelement %bytes[%c2 : i32] : vector<4xi8>
      %b = llvm.zext %byte : i8 to i32
      %half = llvm.add %w, %n : i32
      %sum = llvm.add %half, %b : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""",
        NUMBERS,
    )
    assert np.array_equal(y, NUMBERS + (((NUMBERS >> 4 & 15) ^ 8) - 8) + (NUMBERS >> 16 & 255))


@pytest.mark.parametrize(
    "type_, size", [("vector<32xi1>", 4), ("vector<3xi1>", 1), ("vector<8xi4>", 4), ("vector<3xf32>", 16)]
)
def test_bytes_of_vectors(type_: str, size: int) -> None:
    assert layout(type_).bytes == size


def test_a_race_of_a_field_is_found_in_it_alone() -> None:
    """Threads write neighbours that are a byte each: no two of them write the same."""
    kernel = """
        llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<65 x i8>
        llvm.func @k(%Y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
          %t = nvvm.read.ptx.sreg.tid.x : i32
          %c = llvm.mlir.zero : !llvm.array<SIZE x i8>
          %s = llvm.mlir.addressof @s : !llvm.ptr<3>
          %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
          %i = llvm.insertvalue %b, %c[0] : !llvm.array<SIZE x i8>
          llvm.store %i, %p : !llvm.array<SIZE x i8>, !llvm.ptr<3>
          llvm.return
        }""".replace("%c = ", "%b = llvm.trunc %t : i32 to i8\n          %c = ")
    found = []
    for size in ("1", "2"):
        with mlir_context():
            text = launch_func(kernel.replace("SIZE", size)).replace("%Y : memref<64xi32>)", "%p : !llvm.ptr)")
            text = text.replace("gpu.launch_func", "%p = llvm.mlir.zero : !llvm.ptr\n        gpu.launch_func")
            outcome = Emulation(parse_payload(text, "k.mlir"), "main").run([np.zeros(64, np.int32)])
        found.append({finding.kind for finding in outcome.findings})
    assert found == [set(), {"race"}]


@pytest.mark.parametrize("threads", [1, 64])
def test_vectors_of_several_dimensions_in_memory(threads: int) -> None:
    """MLIR divides transfers of such vectors through `vector.type_cast` of memory on the stack."""
    outcome = run_module(
        f"""
    func.func @main(%X: memref<64x2x3xi32>, %Y: memref<64x2x3xi32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {threads} : index
      gpu.launch blocks(%b, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
          threads(%t, %t1, %t2) in (%n0 = %n, %n1 = %c1, %n2 = %c1) {{
        %zero = arith.constant 0 : i32
        %a = memref.alloca() : memref<vector<2x3xi32>>
        %rows = vector.type_cast %a : memref<vector<2x3xi32>> to memref<2xvector<3xi32>>
        %r0 = vector.transfer_read %X[%t, %c0, %c0], %zero {{in_bounds = [true]}} : memref<64x2x3xi32>, vector<3xi32>
        %r1 = vector.transfer_read %X[%t, %c1, %c0], %zero {{in_bounds = [true]}} : memref<64x2x3xi32>, vector<3xi32>
        memref.store %r1, %rows[%c0] : memref<2xvector<3xi32>>
        memref.store %r0, %rows[%c1] : memref<2xvector<3xi32>>
        %v = memref.load %a[] : memref<vector<2x3xi32>>
        vector.transfer_write %v, %Y[%t, %c0, %c0] {{in_bounds = [true, true]}} : vector<2x3xi32>, memref<64x2x3xi32>
        gpu.terminator
      }}
      return
    }}""",
        x := np.arange(384, dtype=np.int32).reshape(64, 2, 3),
        np.full((64, 2, 3), -1, np.int32),
    )
    assert not outcome.findings
    written = outcome.arguments[1]
    assert written is not None and np.array_equal(written[:threads], x[:threads, ::-1])
