"""Alignment that ops state, or that instructions need, at each level."""

import numpy as np
import pytest

import llvm_kernels
from test_emulator import kernel, run

WMMA = '!gpu.mma_matrix<16x16xf16, "AOp">'


def findings(body: str, *, globals_: str = "", **options: int) -> list[tuple[str, str]]:
    _, outcome = run(globals_ + kernel(body, **options))
    return [(finding.kind, finding.op) for finding in outcome.findings]


def shared(type_: str) -> str:
    return f'memref.global "private" @tile : {type_}\n'


@pytest.mark.parametrize(
    "op, faulty, clean",
    [
        ("memref.load", "%c1", "%c2"),
        ("memref.store", "%c1", "%c2"),
        ("vector.maskedload", "%c1", "%c2"),
        ("memref.assume_alignment", "1", "2"),
    ],
)
def test_what_an_op_says_of_an_address(op: str, faulty: str, clean: str) -> None:
    body = {
        "memref.load": "%v = memref.load %X[{0}] {{alignment = 8 : i64}} : memref<64xf32>",
        "memref.store": """
    %zero = arith.constant 0.0 : f32
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {{ memref.store %zero, %Y[{0}] {{alignment = 8 : i64}} : memref<64xf32> }}""",
        "vector.maskedload": """
    %mask = vector.create_mask %c1 : vector<2xi1>
    %rest = arith.constant dense<0.0> : vector<2xf32>
    %v = vector.maskedload %X[{0}], %mask, %rest {{alignment = 8 : i64}}
        : memref<64xf32>, vector<2xi1>, vector<2xf32> into vector<2xf32>""",
        "memref.assume_alignment": """
    %part = memref.subview %X[{0}] [4] [1] : memref<64xf32> to memref<4xf32, strided<[1], offset: {0}>>
    %same = memref.assume_alignment %part, 8 : memref<4xf32, strided<[1], offset: {0}>>""",
    }[op]
    assert findings(body.format(faulty)) == [("misaligned", op)]
    assert findings(body.format(clean)) == []


@pytest.mark.parametrize(
    "lead, column, found",
    [(20, "%c0", {"misaligned"}), (32, "%c8", {"misaligned"}), (24, "%c0", set()), (40, "%c16", set())],
)
def test_matrices_of_a_warp(lead: int, column: str, found: set[str]) -> None:
    """Rows of 16 bytes more or less, and a matrix that begins at a multiple of 32 bytes."""
    tile = f"memref<32x{lead}xf16, #gpu.address_space<workgroup>>"
    body = f"""
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %half = arith.constant 1.0 : f16
    %m = memref.get_global @tile : {tile}
    %one = gpu.subgroup_mma_constant_matrix %half : {WMMA.replace("AOp", "COp")}
    gpu.subgroup_mma_store_matrix %one, %m[%c0, {column}] {{leadDimension = {lead} : index}}
        : {WMMA.replace("AOp", "COp")}, {tile}"""
    kinds = {kind for kind, _ in findings(body, globals_=shared(tile))}
    assert kinds == found


def test_a_message_says_what_would_be_right() -> None:
    tile = "memref<32x20xf16, #gpu.address_space<workgroup>>"
    body = f"""
    %m = memref.get_global @tile : {tile}
    %a = gpu.subgroup_mma_load_matrix %m[%c0, %c0] {{leadDimension = 20 : index}} : {tile} -> {WMMA}"""
    _, outcome = run(shared(tile) + kernel(body))
    (message,) = [finding.message for finding in outcome.findings if finding.kind == "misaligned"]
    assert message == "rows are 40 bytes apart (leadDimension 20), not a multiple of 16"


@pytest.mark.parametrize("offset, found", [(1, {"misaligned"}), (4, set())])
def test_an_assumption_about_a_pointer(offset: int, found: set[str]) -> None:
    body = f"""
      %true = llvm.mlir.constant(true) : i1
      %n = llvm.mlir.constant(16 : i64) : i64
      %p = llvm.getelementptr %X[{offset}] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.intr.assume %true ["align"(%p, %n : !llvm.ptr, i64)] : i1
      llvm.return"""
    _, outcome = llvm_kernels.run(llvm_kernels.kernel(body, element="i32"), np.arange(64, dtype=np.int32))
    assert llvm_kernels.kinds(outcome) == found


@pytest.mark.parametrize("alignment, found", [(8, {"misaligned"}), (4, set())])
def test_an_atomic_update_that_says_more(alignment: int, found: set[str]) -> None:
    body = f"""
      %p = llvm.getelementptr %Y[1] : (!llvm.ptr) -> !llvm.ptr, i32
      %v = llvm.atomicrmw add %p, %c1 acq_rel {{alignment = {alignment} : i64}} : !llvm.ptr, i32
      llvm.return"""
    _, outcome = llvm_kernels.run(llvm_kernels.kernel(body, element="i32"), np.arange(64, dtype=np.int32))
    assert llvm_kernels.kinds(outcome) == found


def test_a_block_of_a_cluster_has_its_own_addresses() -> None:
    """Shared memory of an odd size: where the second block's lies in the emulator is no matter."""
    shape = "memref<36xf32, #gpu.address_space<workgroup>>"
    body = f"""
    %m = memref.get_global @tile : {shape}
    %n4 = arith.constant 4 : index
    %i = arith.remui %t, %n4 : index
    %at = arith.muli %i, %n4 : index
    %k = nvgpu.device_async_copy %X[%at], %m[%at], 4 : memref<64xf32> to {shape}
    %g = nvgpu.device_async_create_group %k
    nvgpu.device_async_wait %g"""
    found = findings(body, globals_=shared(shape), blocks=2, cluster=2)
    assert "misaligned" not in {kind for kind, _ in found}
