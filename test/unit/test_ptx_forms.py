"""The forms of instructions: those that ptxas accepts, and what is said of others."""

import random

import pytest

from combinations import SEED
from ptx_forms import OPERANDS, drawn, refused_by_ptxas
from ptx_kernels import HEAD, kernel
from stepladder.emulator.ptx import form_tables, forms, registry
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.runtime.errors import StepladderError

SUMS = "{%r0, %r1, %r2, %r3}"


def is_known(opcode: tuple[str, ...], family: str) -> bool:
    try:
        forms.check(opcode, family, "sm_90a")
    except StepladderError:
        return False
    return True


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("family", sorted(set(OPERANDS) & set(form_tables.FORMS)))
def test_forms_are_those_of_ptxas(family: str) -> None:
    found = drawn(random.Random(f"{SEED} {family}"), family, 120)
    refused = refused_by_ptxas([instruction for _, instruction in found])
    for opcode, instruction in found:
        said = refused.get(instruction)
        assert is_known(opcode, family) == (said is None), f"{instruction} {said}"


def test_families_of_the_tables_are_registered() -> None:
    assert set(form_tables.FORMS) <= set(registry.FAMILIES)
    assert set(form_tables.FORMS_100) <= set(form_tables.FORMS)


@pytest.mark.parametrize(
    "instruction, message",
    [
        (
            "atom.global.min.f32 %r1, [%x], %r2;",
            "PTX has no atom.global.min.f32: with .f32: expected one of .u32, .s32, .u64, .s64",
        ),
        ("red.acquire.gpu.global.add.u32 [%x], %r2;", "PTX has no red.acquire.gpu.global.add.u32: with .acquire"),
        ("setp.lo.f32 %p1, %r1, %r2;", "PTX has no setp.lo.f32: with .f32: expected one of .u16, .u32, .u64"),
        ("st.release.u32 [%x], %r1;", "PTX has no st.release.u32: without one of .cta, .cluster, .gpu, .sys"),
        ("ld.shared.nc.f32 %r1, [%r2];", "PTX has no ld.shared.nc.f32: with .nc"),
        ("bar.sync.aligned 0;", "PTX has no bar.sync.aligned: with .aligned"),
        (
            "mbarrier.arrive.release.shared.b64 _, [%r1];",
            "PTX has no mbarrier.arrive.release.shared.b64: without one of .cta, .cluster",
        ),
        ("add.f32x2 %d1, %d2, %d3;", "sm_90a has no add.f32x2: it needs sm_100 or later"),
        (
            "cp.reduce.async.bulk.shared::cta.global.bulk_group.add.u32 [%r1], [%x], 16;",
            "cp.reduce.async.bulk.shared::cta.global.bulk_group.add.u32: with .shared::cta in this place",
        ),
        ("add.u32.fast %r1, %r2, %r3;", "the emulator does not support add.u32.fast with .fast"),
        (
            f"mma.sync.aligned.m16n8k8.row.col.satfinite.f32.f16.f16.f32 {SUMS}, {{%r4, %r5}}, {{%r6}}, {SUMS};",
            "with .satfinite: only sums of .s32 have it",
        ),
        (
            f"mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32 {SUMS}, {{%r4, %r5}}, {{%r6}}, {SUMS};",
            "with these layouts: expected .row.col",
        ),
        # Operands that a form does not take.
        ("setp.lt.f16 %p1|%p2, %h1, %h2;", "the emulator does not support setp.lt.f16 with two results"),
        ("match.any.sync.b32 %r1|%p1, %r2, -1;", "match.any.sync.b32 with a predicate as second result"),
        ("bar.sync 16;", "bar.sync of barrier 16: expected 0 to 15"),
        ("barrier.sync 0, 33;", "barrier.sync of 33 threads: expected a multiple of 32"),
        ("mbarrier.arrive.shared::cluster.b64 %d1, [%r1];", "an arrival at another block has none"),
        ("mbarrier.test_wait.shared.b64 %p1, [%r1], %d1, %r2;", "with 4 operands: expected 3"),
        # Variables of another space.
        ("ld.shared.u64 %d1, [X];", "of X, which is in .param::entry: expected a variable in .shared"),
        ("ld.global.u32 %r1, [S];", "of S, which is in .shared: expected a variable in .global"),
        ("ld.u64 %d1, [X+8];", "of X, which is in .param::entry: expected a variable in .global, .shared, .local"),
        ("st.param.u64 [X], %d1;", "of X, a parameter of the kernel"),
    ],
)
def test_what_is_refused(instruction: str, message: str) -> None:
    with pytest.raises(StepladderError) as caught:
        Kernel(parse(kernel(f"  {instruction}", shared=".shared .align 8 .b8 S[64];"), "k.ptx"), None, "k.ptx")
    assert message in caught.value.message
    assert caught.value.location == "k.ptx:25:3"


def test_a_later_target_has_more_forms() -> None:
    text = kernel("  add.f32x2 %d1, %d2, %d3;", head=HEAD.replace("sm_90a", "sm_100a"))
    Kernel(parse(text, "k.ptx"), None, "k.ptx")
