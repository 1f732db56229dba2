"""The parser of PTX: what it reads it writes again, and what is no PTX is one clear message."""

import pytest

from ptx_kernels import HEAD, compiled, kernel, run
from stepladder.emulator.ptx import registry, syntax
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse, parse_fragment
from stepladder.runtime.errors import BAD_INPUT, StepladderError


def statement(text: str) -> syntax.Statement:
    (item,) = parse_fragment(text, "x").body
    assert isinstance(item, syntax.Statement)
    return item


@pytest.mark.parametrize("base", ["wmma", "mma.sync", "wgmma", "wgmma, cluster", "wgmma, split in memory"])
def test_round_trip_of_what_llvm_prints(base: str) -> None:
    module = parse(compiled(base).code.ptx, "kernel.ptx")
    text = str(module)
    again = parse(text, "again.ptx")
    assert str(again) == text
    assert [function.name for function in again.functions] == ["matmul_kernel"]
    assert again.functions[0].directives["maxntid"][1:] == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "ret;",
        "@%p1 bra L;",
        "@!%p1 bra.uni L;",
        "mov.b32 %r1, -1;",
        "mov.f32 %f1, 0f3F800000;",
        "mov.f64 %d1, 0d3FF0000000000000;",
        "mov.u32 %r1, %tid.x;",
        "mov.b64 %d1, symbol+16;",
        "mov.b64 {%r1, _}, %d1;",
        "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1-16];",
        "st.shared::cluster.b32 [%r1], %r2;",
        "setp.lt.and.s32 p|q, %r1, %r2, !%p3;",
        "atom.acq_rel.gpu.global.cas.b32 %r1, [%d1], %r2, %r3;",
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1], 2;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d2, {%r3, %r4}], [%r5];",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, p, 1, 1, 0, 1;",
    ],
)
def test_round_trip_of_instructions(text: str) -> None:
    assert str(statement(text)) == text
    assert str(statement(str(statement(text)))) == text


def test_numbers() -> None:
    found = statement("x 0x1F, 0b101, 017, 10U, -7, 1.5;").operands
    assert [operand.value for operand in found[:5]] == [31, 5, 15, 10, -7]
    assert str(found[5]) == "0d3FF8000000000000"


def test_comments_directives_and_variables() -> None:
    module = parse(
        '/* a\ncomment */ .version 7.8\n.target sm_90a, debug // more\n.address_size 64\n.file 1 "a.cu"\n'
        ".visible .global .align 4 .b8 table[8] = {1, 2, 0xFF, 4};\n.const .align 4 .u32 one = 1;\n"
        ".extern .shared .align 16 .b8 dynamic[];\n.weak .func f(.param .b32 a);\n"
        ".visible .entry k(.param .u64 .ptr .global .align 1 a, .param .align 64 .b8 map[128])\n"
        '.reqntid 128, 1, 1 .pragma "nounroll";\n{ .loc 1 2 3\n .reg .b32 %r<3>, n; { .reg .pred p; L: bra L; } ret; }',
        "x.ptx",
    )
    table, one, dynamic = module.variables
    assert (table.count, table.values, one.values, dynamic.count, dynamic.is_external) == (
        8,
        (1, 2, 255, 4),
        (1,),
        0,
        True,
    )
    f, k = module.functions
    assert (f.body, k.directives) == (None, {"reqntid": (128, 1, 1)})
    assert [parameter.count for parameter in k.parameters] == [None, 128]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "x.ptx:1:1: error: PTX begins with its .version, and here is 'the end'"),
        ("module {}", "x.ptx:1:1: error: PTX begins with its .version, and here is 'module'"),
        (".version 99.0", "x.ptx:1:10: error: PTX 99.0 is newer than 9.x, the newest that the emulator supports"),
        (".version 8.0\n.entry", "x.ptx:2:1: error: PTX has a .target behind its .version"),
        (".version 8.0 .target sm_90 .address_size 32", "addresses of 32 bits are not supported"),
        (HEAD + ".entry k() { ret }", "x.ptx:4:18: error: expected "),
        (HEAD + ".entry k() { ret;", "x.ptx:4:18: error: a '}' is missing"),
        (HEAD + ".entry k() { mov.b32 %r1 %r2; }", "x.ptx:4:26: error: expected ',' or ';', got '%r2'"),
        (HEAD + ".entry k() { mov.b32 \N{EURO SIGN}; }", "PTX has no '\N{EURO SIGN}' here"),
        (HEAD + ".surprise", "x.ptx:4:1: error: unknown directive '.surprise'"),
        (HEAD + ".entry k() { .reg .v4 .f32 %f; ret; }", "registers of vectors are not supported"),
    ],
)
def test_what_is_no_ptx(text: str, message: str) -> None:
    with pytest.raises(StepladderError) as caught:
        parse(text, "x.ptx")
    assert message in caught.value.render()
    assert caught.value.status == BAD_INPUT


def refusal(body: str, *, shared: str = "") -> StepladderError:
    with pytest.raises(StepladderError) as caught:
        Kernel(parse(kernel(body, shared=shared), "k.ptx"), None, "k.ptx")
    assert caught.value.status == BAD_INPUT
    return caught.value


def test_all_unknown_instructions_are_reported_at_once() -> None:
    error = refusal(
        "  tex.2d.v4.f32.s32 {%r1}, [t, {%r2}];\n  tcgen05.ld.x1 %r1;\n  add.f128 %r1, %r2, %r3;\n  tcgen05.ld.x1 %r1;"
    )
    assert error.message.startswith("the emulator does not support tex.2d.v4.f32.s32")
    assert error.location == "k.ptx:25:3"
    assert list(error.notes) == [
        "k.ptx:26:3: the emulator does not support tcgen05.ld.x1, and in 1 more place",
        "k.ptx:27:3: PTX has no add.f128: with .f128: expected one of .u16, .s16, .u32, .s32, .u64, .s64, .f16, "
        ".f16x2, .bf16, .bf16x2, .f32, .f64, .u16x2, .s16x2",
    ]


def test_a_type_that_registers_do_not_have() -> None:
    error = refusal("  .reg .b256 %q<2>;")
    assert (error.location, error.message) == ("k.ptx:25:3", "registers of type .b256 are not supported")


@pytest.mark.parametrize(
    "body, message",
    [
        ("add.rz.f16 %h1, %h2, %h3;", "PTX has no add.rz.f16: with .rz"),
        ("add.cc.u16 %h1, %h2, %h3;", "PTX has no add.cc.u16: with .cc"),
        ("mov.sync %r1, %r2;", "with .sync: expected one of .pred, .b16"),
        ("setp.eq.u32.u32 %p1, %r1, %r2;", "setp.eq.u32.u32: with .u32"),
        ("set.eq.u32 %r1, %r2, %r3;", "set.eq.u32: without one of .u16"),
        ("slct.b32 %r1, %r2, %r3, %r3;", "slct.b32: without one of .s32, .f32"),
        ("cvt.rn.f32 %r1, %r2;", "cvt.rn.f32: without one of .u8"),
        ("not.rn %r1, %r2;", "not.rn: with .rn: expected one of .pred"),
        ("add.u32 %r1, %r2;", "with 2 operands: expected 3"),
        ("add.u32 %r1, %h1, 1;", "of %h1, which has 16 bits, as .u32"),
        ("add.u32 %r1, nowhere, 1;", "of nowhere: there is no such register or variable"),
        ("add.u32 %r99, %r1, 1;", "there is no such register"),
        ("bra NOWHERE;", "there is no label NOWHERE"),
        ("ld.release.global.b32 %r1, [%x];", "ld.release.global.b32: with .release"),
        ("ld.global.v2.b32 %r1, [%x];", "with 1 registers for 2 elements"),
        ("cp.async.ca.shared.global [%r1], [%x], 12;", "of 12 bytes: expected 4 or 8 or 16"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};", "registers for A, B and C"),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2}, %x, %y, 1, 1, 1, 0, 0;",
            "2 registers for its sums",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, {%r5}, %y, 1, 1, 1, 0;",
            "with 1 registers for A",
        ),
        ("call f, (%r1);", "the emulator does not support call"),
    ],
)
def test_forms_that_are_not_known(body: str, message: str) -> None:
    error = refusal(f"  {body}")
    assert message in error.message
    assert error.location.startswith("k.ptx:25:")


def test_variables_that_are_not_known() -> None:
    assert "is in .tex" in refusal("", shared=".tex .u64 t;").message
    assert refusal("", shared=".shared .f128 t;").message == "variable t has the type .f128, which is not supported"


def test_which_kernel() -> None:
    two = kernel("") + kernel("").replace(HEAD, "").replace(" k(", " l(")
    with pytest.raises(StepladderError, match="there are several kernels: name one"):
        Kernel(parse(two, "k.ptx"), None, "k.ptx")
    assert Kernel(parse(two, "k.ptx"), "l", "k.ptx").name == "l"
    with pytest.raises(StepladderError, match="there is no kernel m") as caught:
        Kernel(parse(two, "k.ptx"), "m", "k.ptx")
    assert caught.value.notes == ("kernels: k, l",)
    with pytest.raises(StepladderError, match="there is no kernel"):
        Kernel(parse(HEAD, "k.ptx"), None, "k.ptx")


def test_families_have_a_text() -> None:
    assert all(family.decode.__doc__ for family in registry.FAMILIES.values())


TABLE = """
.global .align 8 .b64 list[3] = {10, 20, 30};
.global .align 8 .u64 places[3] = {list, generic(list)+8, list+16};
"""


def test_addresses_of_variables_as_initial_values() -> None:
    text = """
    rem.u32 %r1, %t, 3;
    mul.wide.u32 %d1, %r1, 8;
    mov.u64 %d2, places;
    add.u64 %d2, %d2, %d1;
    ld.global.u64 %d3, [%d2];
    ld.b64 %d4, [%d3];
    st.global.b64 [%y], %d4;"""
    y, outcome = run(kernel(text, head=HEAD + TABLE))
    assert not outcome.findings and y.tolist() == [10 + 10 * (t % 3) for t in range(64)]
    (_, places) = parse(f".version 8.0\n.target sm_90\n.address_size 64\n{TABLE}", "t.ptx").variables
    assert str(places) == ".global .align 8 .u64 places[3] = {list, list+8, list+16};"


@pytest.mark.parametrize("value", ["later", "generic(tile)", "form"])
def test_addresses_that_no_initial_value_has(value: str) -> None:
    head = f".shared .b64 tile;\n.extern .func form;\n.global .u64 first = {value};\n.global .b32 later;\n"
    with pytest.raises(StepladderError, match="expected a function with a body, or a variable of"):
        run(kernel("st.global.b64 [%y], 0;", head=HEAD + head))
