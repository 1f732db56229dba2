"""Hosts in the llvm dialect: what MLIR's own passes make of a program, up to the launch of its kernels."""

import importlib

import pytest

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.mlir import bindings
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError

KERNELS = (
    "gpu-kernel-outlining,convert-scf-to-cf,convert-func-to-llvm,expand-strided-metadata,lower-affine,"
    "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,gpu.module(convert-gpu-to-nvvm),gpu-to-llvm,"
    "reconcile-unrealized-casts"
)
DECLARED = """
  func.func private @printMemrefF32(memref<*xf32>)
  func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
  func.func private @printMemrefShapeF32(memref<*xf32>)
  func.func private @verifyMemRefF32(memref<*xf32>, memref<*xf32>) -> i64
  func.func private @printMemrefF64(memref<*xf64>)
  func.func private @printI64(i64)
  llvm.func @printString(!llvm.ptr)
  llvm.func @printf(!llvm.ptr, ...) -> i32
  llvm.func @free(!llvm.ptr)
"""
# A kernel doubles what the host wrote; the host prints it.
DOUBLED = """
    %host = memref.alloc() : memref<4xf32>
    %any = memref.cast %host : memref<4xf32> to memref<*xf32>
    gpu.host_register %any : memref<*xf32>
    %three = arith.constant 3.0 : f32
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %three, %host[%i] : memref<4xf32>
    }
    gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%bx = %c4, %by2 = %c1, %bz2 = %c1) {
      %v = memref.load %host[%t] : memref<4xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %host[%t] : memref<4xf32>
      gpu.terminator
    }
    call @printMemrefF32(%any) : (memref<*xf32>) -> ()
    gpu.host_unregister %any : memref<*xf32>
    memref.dealloc %host : memref<4xf32>"""
# The same on a stream, in memory of the device, of which one half is filled by the device.
STREAM = """
    %host = memref.alloc() : memref<4xi32>
    %n = arith.constant 7 : i32
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %n, %host[%i] : memref<4xi32>
    }
    %s0 = gpu.wait async
    %device, %s1 = gpu.alloc async [%s0] () : memref<4xi32>
    %s2 = gpu.memcpy async [%s1] %device, %host : memref<4xi32>, memref<4xi32>
    %half = memref.subview %device[0] [2] [1] : memref<4xi32> to memref<2xi32, strided<[1]>>
    %s3 = gpu.memset async [%s2] %half, %n : memref<2xi32, strided<[1]>>, i32
    %s4 = gpu.launch async [%s3] blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%bx = %c4, %by2 = %c1, %bz2 = %c1) {
      %v = memref.load %device[%t] : memref<4xi32>
      %i = arith.index_cast %t : index to i32
      %w = arith.addi %v, %i : i32
      memref.store %w, %device[%t] : memref<4xi32>
      gpu.terminator
    }
    %s5 = gpu.memcpy async [%s4] %host, %device : memref<4xi32>, memref<4xi32>
    %s6 = gpu.dealloc async [%s5] %device : memref<4xi32>
    gpu.wait [%s6]
    %any = memref.cast %host : memref<4xi32> to memref<*xi32>
    call @printMemrefI32(%any) : (memref<*xi32>) -> ()"""
# The first kernel waits for what the second one, on another stream, writes.
TWO_STREAMS = """
    %flag = gpu.alloc () : memref<1xi32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    memref.store %zero, %flag[%c0] : memref<1xi32>
    %s0 = gpu.wait async
    %s1 = gpu.wait async
    %s2 = gpu.launch async [%s0] blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%bx = %c1, %by2 = %c1, %bz2 = %c1) {
      scf.while : () -> () {
        %v = memref.atomic_rmw addi %zero, %flag[%c0] : (i32, memref<1xi32>) -> i32
        %waits = arith.cmpi eq, %v, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      gpu.terminator
    }
    %s3 = gpu.launch async [%s1] blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%bx = %c1, %by2 = %c1, %bz2 = %c1) {
      %v = memref.atomic_rmw addi %one, %flag[%c0] : (i32, memref<1xi32>) -> i32
      gpu.terminator
    }
    gpu.wait [%s2]
    gpu.wait [%s3]
    %any = memref.cast %flag : memref<1xi32> to memref<*xi32>
    call @printMemrefI32(%any) : (memref<*xi32>) -> ()"""
# A copy between rows that are apart, which calls the library, and the comparison of the two.
COPIED = """
    %wide = memref.alloc() : memref<3x4xf32>
    %narrow = memref.alloc() : memref<3x2xf32>
    scf.for %i = %c0 to %c3 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %sum = arith.addi %i, %j : index
        %n = arith.index_cast %sum : index to i32
        %v = arith.sitofp %n : i32 to f32
        memref.store %v, %wide[%i, %j] : memref<3x4xf32>
      }
    }
    %part = memref.subview %wide[0, 1] [3, 2] [1, 1] : memref<3x4xf32> to memref<3x2xf32, strided<[4, 1], offset: 1>>
    memref.copy %part, %narrow : memref<3x2xf32, strided<[4, 1], offset: 1>> to memref<3x2xf32>
    %any = memref.cast %narrow : memref<3x2xf32> to memref<*xf32>
    call @printMemrefF32(%any) : (memref<*xf32>) -> ()
    call @printMemrefShapeF32(%any) : (memref<*xf32>) -> ()
    %v = arith.constant 9.0 : f32
    memref.store %v, %narrow[%c1, %c0] : memref<3x2xf32>
    %any_part = memref.cast %part : memref<3x2xf32, strided<[4, 1], offset: 1>> to memref<*xf32>
    %errors = call @verifyMemRefF32(%any, %any_part) : (memref<*xf32>, memref<*xf32>) -> i64
    call @printI64(%errors) : (i64) -> ()"""
# A product of f64: a thread holds one number of A and of B, which no struct surrounds.
PRODUCT = """
    %A = memref.alloc() : memref<8x4xf64>
    %B = memref.alloc() : memref<4x8xf64>
    %C = memref.alloc() : memref<8x8xf64>
    %two = arith.constant 2.0 : f64
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        memref.store %two, %A[%i, %j] : memref<8x4xf64>
        memref.store %two, %B[%j, %i] : memref<4x8xf64>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        memref.store %two, %C[%i, %j] : memref<8x8xf64>
      }
    }
    gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%bx = %c32, %by2 = %c1, %bz2 = %c1) {
      %p = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 4 : index}
          : memref<8x4xf64> -> !gpu.mma_matrix<8x4xf64, "AOp">
      %q = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {leadDimension = 8 : index}
          : memref<4x8xf64> -> !gpu.mma_matrix<4x8xf64, "BOp">
      %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 8 : index}
          : memref<8x8xf64> -> !gpu.mma_matrix<8x8xf64, "COp">
      %d = gpu.subgroup_mma_compute %p, %q, %c : !gpu.mma_matrix<8x4xf64, "AOp">, !gpu.mma_matrix<4x8xf64, "BOp">
          -> !gpu.mma_matrix<8x8xf64, "COp">
      gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 8 : index}
          : !gpu.mma_matrix<8x8xf64, "COp">, memref<8x8xf64>
      gpu.terminator
    }
    %any = memref.cast %C : memref<8x8xf64> to memref<*xf64>
    call @printMemrefF64(%any) : (memref<*xf64>) -> ()"""


def run(body: str, *, lowered: bool, globals_: str = "") -> Outcome:
    passes = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.passmanager").PassManager
    constants = "\n".join(f"    %c{number} = arith.constant {number} : index" for number in range(5))
    text = f"module attributes {{gpu.container_module}} {{{DECLARED}{globals_}\n  func.func @main() {{\n{constants}"
    with mlir_context():
        module = parse_payload(f"{text}{body}\n    return\n  }}\n}}", "program.mlir")
        if lowered:
            passes.parse(f"builtin.module({KERNELS})").run(module.operation)
            assert "func.func @main" in str(module).replace("llvm.func @main", "func.func @main")
            assert "memref.alloc" not in str(module) and "unrealized" not in str(module)
        return Emulation(module, "main").run([])


def printed(outcome: Outcome) -> str:
    """What a program prints, without addresses."""
    return "\n".join(line.partition("rank")[2] or line for line in outcome.output.splitlines())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (DOUBLED, "[6,  6,  6,  6]"),
        (STREAM, "[7,  8,  9,  10]"),
        (TWO_STREAMS, "[1]"),
        (COPIED, "[[1,   2], \n [2,   3], \n [3,   4]]"),
        (PRODUCT, "[[18,   18,   18,   18,   18,   18,   18,   18], \n"),
    ],
    ids=["doubled", "stream", "two streams", "copied", "product"],
)
def test_lowered_programs_print_what_they_did(body: str, expected: str) -> None:
    outcomes = [run(body, lowered=lowered) for lowered in (False, True)]
    assert not [finding.message for outcome in outcomes for finding in outcome.findings]
    assert printed(outcomes[0]) == printed(outcomes[1])
    assert expected in outcomes[1].output


def test_elements_that_differ_are_counted() -> None:
    assert run(COPIED, lowered=True).output.endswith("\n1")


@pytest.mark.parametrize(
    ("calls", "kind", "message"),
    [
        ("llvm.call @free(%p) : (!llvm.ptr) -> ()\n" * 2, "use-after-free", "frees memory that has already been freed"),
        (
            """%q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i32
            llvm.call @free(%q) : (!llvm.ptr) -> ()""",
            "out-of-bounds",
            "where no memory begins",
        ),
        (
            """llvm.call @free(%p) : (!llvm.ptr) -> ()
            %v = llvm.load %p : !llvm.ptr -> i32""",
            "use-after-free",
            "touches memory that has been freed",
        ),
        ("%v = llvm.load %end : !llvm.ptr -> i32", "out-of-bounds", ""),
    ],
)
def test_memory_that_c_allocates(calls: str, kind: str, message: str) -> None:
    body = f"""
    %bytes = llvm.mlir.constant(16 : i64) : i64
    %null = llvm.mlir.zero : !llvm.ptr
    llvm.call @free(%null) : (!llvm.ptr) -> ()
    %p = llvm.call @aligned_alloc(%bytes, %bytes) : (i64, i64) -> !llvm.ptr
    %end = llvm.getelementptr %p[4] : (!llvm.ptr) -> !llvm.ptr, i32
    {calls}"""
    (finding,) = run(body, lowered=False, globals_="llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr").findings
    assert finding.kind == kind and message in finding.message


# Globals, and their initial values.

STRUCT = "!llvm.struct<(i8, f32, array<2 x i16>, ptr)>"
TABLES = f"""
  llvm.mlir.global internal constant @form("%d %g %s|%c %%\\0A\\00") : !llvm.array<16 x i8>
  llvm.mlir.global internal constant @word("w\\C3\\A9\\00") : !llvm.array<4 x i8>
  llvm.mlir.global internal constant @bytes("\\FF\\01") : !llvm.array<2 x i8>
  llvm.mlir.global internal @zeros(#llvm.zero) : {STRUCT}
  llvm.mlir.global internal @pair([-5 : i32, 2.5 : f32]) : !llvm.struct<(i32, f32)>
  llvm.mlir.global internal @table() : {STRUCT} {{
    %s0 = llvm.mlir.undef : {STRUCT}
    %a = llvm.mlir.constant(7 : i8) : i8
    %b = llvm.mlir.constant(1.5 : f32) : f32
    %c = llvm.mlir.constant(dense<[3, -4]> : tensor<2xi16>) : !llvm.array<2 x i16>
    %d = llvm.mlir.addressof @word : !llvm.ptr
    %s1 = llvm.insertvalue %a, %s0[0] : {STRUCT}
    %s2 = llvm.insertvalue %b, %s1[1] : {STRUCT}
    %s3 = llvm.insertvalue %c, %s2[2] : {STRUCT}
    %s4 = llvm.insertvalue %d, %s3[3] : {STRUCT}
    llvm.return %s4 : {STRUCT}
  }}"""


def field(symbol: str, type_: str, *places: int, of: str = STRUCT) -> str:
    name = "_".join([symbol, *map(str, places)])
    return f"""
    %base_{name} = llvm.mlir.addressof @{symbol} : !llvm.ptr
    %at_{name} = llvm.getelementptr %base_{name}[0, {", ".join(map(str, places))}] : (!llvm.ptr) -> !llvm.ptr, {of}
    %{name} = llvm.load %at_{name} : !llvm.ptr -> {type_}"""


def test_initial_values_of_globals() -> None:
    body = (
        field("table", "i8", 0)
        + field("table", "f32", 1)
        + field("table", "i16", 2, 1)
        + field("table", "!llvm.ptr", 3)
        + field("zeros", "f32", 1)
        + field("pair", "i32", 0, of="!llvm.struct<(i32, f32)>")
        + field("bytes", "i8", 0, of="!llvm.array<2 x i8>")
        + """
    %form = llvm.mlir.addressof @form : !llvm.ptr
    %letter = llvm.mlir.constant(33 : i32) : i32
    %wide = llvm.fpext %table_1 : f32 to f64
    %none = llvm.fpext %zeros_1 : f32 to f64
    %sign = llvm.sext %table_2_1 : i16 to i32
    %small = llvm.sext %bytes_0 : i8 to i32
    llvm.call @printString(%table_3) : (!llvm.ptr) -> ()
    %n = llvm.call @printf(%form, %sign, %wide, %table_3, %letter) vararg(!llvm.func<i32 (ptr, ...)>)
        : (!llvm.ptr, i32, f64, !llvm.ptr, i32) -> i32
    %m = llvm.call @printf(%form, %pair_0, %none, %table_3, %letter) vararg(!llvm.func<i32 (ptr, ...)>)
        : (!llvm.ptr, i32, f64, !llvm.ptr, i32) -> i32
    %l = llvm.call @printf(%form, %small, %none, %table_3, %letter) vararg(!llvm.func<i32 (ptr, ...)>)
        : (!llvm.ptr, i32, f64, !llvm.ptr, i32) -> i32"""
    )
    outcome = run(body, lowered=False, globals_=TABLES)
    assert not outcome.findings
    assert outcome.output == "wé-4 1.5 wé|! %\n-5 0 wé|! %\n-1 0 wé|! %\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%p = llvm.mlir.addressof @free : !llvm.ptr", "of @free: expected a global, not a function"),
        ("%p = llvm.mlir.addressof @named : !llvm.ptr", "llvm.mlir.global with the value @free"),
    ],
)
def test_globals_that_the_emulator_does_not_know(text: str, message: str) -> None:
    named = "llvm.mlir.global internal @named(@free) : !llvm.ptr" if "named" in text else ""
    with pytest.raises(StepladderError, match=message):
        run(text, lowered=False, globals_=named)


def test_a_kernel_reads_a_global_that_a_struct_initializes() -> None:
    outcome = run(
        """
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)""",
        lowered=False,
        globals_="""
  gpu.module @m {
    llvm.mlir.global internal constant @two() : !llvm.struct<(i32, array<2 x f32>)> {
      %0 = llvm.mlir.zero : !llvm.struct<(i32, array<2 x f32>)>
      %1 = llvm.mlir.constant(2.5 : f32) : f32
      %2 = llvm.insertvalue %1, %0[1, 1] : !llvm.struct<(i32, array<2 x f32>)>
      llvm.return %2 : !llvm.struct<(i32, array<2 x f32>)>
    }
    llvm.func @k() attributes {gpu.kernel} {
      %0 = llvm.mlir.addressof @two : !llvm.ptr
      %1 = llvm.load %0 : !llvm.ptr -> !llvm.struct<(i32, array<2 x f32>)>
      %2 = llvm.extractvalue %1[1, 1] : !llvm.struct<(i32, array<2 x f32>)>
      %3 = llvm.fpext %2 : f32 to f64
      gpu.printf "%g ", %3 : f64
      llvm.return
    }
  }""",
    )
    assert outcome.output == "2.5 " * 4
    assert not outcome.findings


def test_c_library_is_of_the_host() -> None:
    with pytest.raises(StepladderError, match="no function @free with a body"):
        run(
            """
    %p = llvm.mlir.zero : !llvm.ptr
    gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%bx = %c4, %by2 = %c1, %bz2 = %c1) {
      llvm.call @free(%p) : (!llvm.ptr) -> ()
      gpu.terminator
    }""",
            lowered=False,
        )
