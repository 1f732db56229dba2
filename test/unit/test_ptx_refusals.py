"""Instructions of PTX in forms that the emulator does not take: the message names the form and what is taken."""

import pytest

from ptx_kernels import kernel
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse, parse_fragment
from stepladder.runtime.errors import StepladderError

SUMS = "{%r0, %r1, %r2, %r3}"
EIGHT = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
MMA = f"{SUMS}, {{%r4, %r5}}, {{%r6}}, {SUMS};"
WGMMA = "{%r0, %r1, %r2, %r3}, %d1, %d2, 1, 1, 1;"
TENSOR = "cp.reduce.async.bulk.tensor"
TYPES_OF_WMMA = "expected sums of .f16, .f32, .f64 or .s32, and one type of A and B"


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        # Types.
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%r2];", "with the types .b8: expected .b16"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared {%r1}, [%r2];", "without a type: expected .b16"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16x2 [%r2], {%r1};", "with .b16x2: expected .b16"),
        ("setmaxnreg.inc.sync.aligned.u64 32;", "with the types .u64: expected .u32"),
        ("vadd2.u32.u32 %r1, %r2, %r3, %r4;", "with the types .u32, .u32: expected 3"),
        ("vadd4.u32.u32.f32 %r1, %r2, %r3, %r4;", "with these types: expected .u32 or .s32 for each"),
        # Products.
        (
            f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f32 {MMA}",
            "with the types .f32, .f16, .f32: expected a shape, then",
        ),
        (
            f"mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {MMA}",
            "expected one type of A and B, and one of C and D",
        ),
        (f"mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32 {MMA}", "and .f16: expected one of m16n8k8, m16n8k16"),
        (f"mma.sync.aligned.m16n8k8.row.col.s32.f16.f16.s32 {MMA}", "with sums of .s32: expected .f16 or .f32"),
        (
            f"wmma.mma.sync.aligned.row.col.f32.f32 {EIGHT}, {EIGHT}, {EIGHT}, {EIGHT};",
            "expected one such as .m16n16k16",
        ),
        (f"wmma.mma.sync.aligned.row.col.m16n16k16.u32.s8.s8.u32 {EIGHT}, {SUMS}, {SUMS}, {EIGHT};", TYPES_OF_WMMA),
        (f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {EIGHT}, {SUMS}, {SUMS}, {EIGHT};", TYPES_OF_WMMA),
        (
            f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 {EIGHT}, {EIGHT}, {EIGHT}, {EIGHT};",
            "C of .f16 and D of .f32",
        ),
        (
            f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite {EIGHT}, {EIGHT}, {EIGHT}, {EIGHT};",
            "with .satfinite: only sums of .s32 have it",
        ),
        (f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16 {WGMMA}", "expected a shape, then the types of D, A and B"),
        (f"wgmma.mma_async.sync.aligned.m64n8k16.bf16.f16.f16 {WGMMA}", "with sums of .bf16: expected one of ."),
        # Copies and mbarriers.
        (
            f"{TENSOR}.global.shared::cta.add.bulk_group [%x, {{%r1}}], [%r2];",
            "expected one of .1d, .2d, .3d, .4d, .5d",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes "
            "[%r1], [%x, {%r1, %r2, %r3, %r4, %r5}], [%r2];",
            "with .tile::gather4: expected .tile",
        ),
        ("cp.async.bulk.global.shared::cta.bulk_group [%x], %r1, 16;", "of %r1: expected an address in brackets"),
        ("cp.async.cg.shared.global [%r1], [%x], %r2;", "of %r2: expected a number"),
        ("mbarrier.arrive.expect_tx.shared.b64 %d1, [%r1];", "without a number, that of .expect_tx, as last operand"),
        ("mbarrier.init.shared.b64 [%r1, %r2], 1;", "expected one address"),
        # Operands.
        ("mov.b32 {%h1, %h2, %h3}, %r1;", "with 3 parts: expected parts of 8, 16 or 32 bits, 32 in all"),
        ("mov.b64 %d1, {%r1, %r2, %r3};", "with 3 parts: expected parts of 8, 16 or 32 bits, 64 in all"),
        ("brx.idx %r1, %r2;", "expected a label of .branchtargets as second operand"),
    ],
)
def test_what_is_refused(instruction: str, message: str) -> None:
    with pytest.raises(StepladderError) as caught:
        Kernel(parse(kernel(f"  {instruction}"), "k.ptx"), None, "k.ptx")
    assert message in caught.value.message
    assert (caught.value.location or "").startswith("k.ptx:")


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".extern .global .b32 elsewhere;", "variable elsewhere is defined in another file, and one file is run"),
        (".global .pred flag;", "variable flag has the type .pred, which is not supported"),
    ],
)
def test_variables_that_are_refused(declaration: str, message: str) -> None:
    text = kernel("ret;").replace(".visible .entry", f"{declaration}\n.visible .entry")
    with pytest.raises(StepladderError) as caught:
        Kernel(parse(text, "k.ptx"), None, "k.ptx")
    assert message in caught.value.message


def test_a_statement_without_an_end() -> None:
    with pytest.raises(StepladderError, match="a ';' is missing"):
        parse_fragment("add.u32 %r1, %r2,", "k.ptx")
