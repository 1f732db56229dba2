"""PTX as other compilers write it: structs, cooperative launches, vectors of atomics, products of a warp, fences."""

from collections.abc import Callable

import numpy as np
import pytest

import llvm_kernels
from planted import check, text_of
from ptx_kernels import HEAD, kernel, kinds, run, run_clean
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.ptx.arguments import from_texts
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.runtime.errors import StepladderError


def test_updates_of_vectors() -> None:
    y = run_clean(
        """
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.global.v2.b64 [%Y], {0, 0};
  bar.sync 0;
  red.global.add.v2.f32 [%Y], {0f3F000000, 0f3F800000};
  bar.sync 0;
  @%p1 atom.global.v2.f32.add {%r1, %r2}, [%Y], {0f3F000000, 0f3F800000};
  @%p1 st.global.v2.b32 [%Y+8], {%r1, %r2};"""
    )
    assert y.view(np.float32)[:4].tolist() == [32.5, 65, 32, 64]
    _, outcome = run(kernel("  red.global.add.v4.f32 [%Y+8], {0, 0, 0, 0};"))
    assert "misaligned" in kinds(outcome)
    with pytest.raises(StepladderError, match="with other registers than for 2 elements"):
        run(kernel("  red.global.add.v2.f32 [%Y], {0f3F000000};"))


def test_blocks_of_a_cooperative_launch_meet() -> None:
    """The memory that they meet in is in two special registers, and begins as zeros."""
    body = """
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %d1, {%r2, %r1};
  st.global.b64 [%y], %d1;
  bar.sync 0;
  setp.eq.u32 %p1, %t, 0;
  membar.gl;
  @%p1 atom.global.add.u32 %r3, [%d1+4], 1;
W: ld.acquire.gpu.global.u32 %r4, [%d1+4];
  setp.ne.u32 %p2, %r4, 2;
  @%p2 bra W;
  xor.b32 %r5, %b, 1;
  shl.b32 %r5, %r5, 9;
  cvt.u64.u32 %d2, %r5;
  add.s64 %d2, %Y, %d2;
  ld.global.b64 %d3, [%d2];
  sub.s64 %d3, %d3, %d1;
  st.global.b64 [%x], %d3;"""
    _, outcome = run(kernel(body), blocks=2)
    assert not outcome.findings
    assert set(outcome.arguments[0].tolist()) == {0}


def test_a_struct_takes_the_arguments_of_its_fields() -> None:
    text = (
        HEAD
        + """.visible .entry k(.param .align 8 .b8 P[24], .param .u64 Y)
{
  .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<3>;
  mov.u32 %r1, %tid.x;
  ld.param.s8 %r2, [P];
  ld.param.u64 %d1, [P+8];
  ld.param.f32 %f1, [P+16];
  ld.param.u64 %d2, [Y];
  mul.wide.u32 %d3, %r1, 4;
  add.s64 %d1, %d1, %d3;
  add.s64 %d2, %d2, %d3;
  ld.global.s32 %r3, [%d1];
  add.s32 %r3, %r3, %r2;
  cvt.rzi.s32.f32 %r4, %f1;
  mul.lo.s32 %r3, %r3, %r4;
  st.global.s32 [%d2], %r3;
  ret;
}"""
    )
    found = Kernel(parse(text, "k.ptx"), None, "k.ptx")
    launch = Launch((1, 1, 1), (32, 1, 1))
    bound = found.bound(from_texts(["-3:i8", "32xi32=iota", "2.5:f32", "32xi32=out"]), launch)
    outcome = bound.run(bound.random_inputs(0))
    assert not outcome.findings
    assert outcome.arguments[3].tolist() == [2 * (x - 3) for x in range(32)]
    with pytest.raises(StepladderError, match="takes 2 arguments, and 3 were given"):
        found.bound(from_texts(["-3:i8", "32xi32", "32xi32"]), launch)


# What threads of a warp have together where each part of it has a mask of its own: by lane and the bits of its part.
PARTS = [
    ("redux.sync.add.s32 %r0, %t, %r1;", lambda x, part: sum(part) + (x - x % 32) * len(part)),
    ("vote.sync.ballot.b32 %r0, %p2, %r1;", lambda x, part: sum(1 << lane for lane in part if lane % 3 == 0)),
    ("vote.sync.all.pred %p3, %p1, %r1; selp.b32 %r0, 1, 0, %p3;", lambda x, part: int(part[0] == 0)),
    ("match.any.sync.b32 %r0, %r2, %r1;", lambda x, part: sum(1 << lane for lane in part if (lane - x) % 4 == 0)),
    ("match.all.sync.b32 %r0|%p3, 5, %r1;", lambda x, part: sum(1 << lane for lane in part)),
    ("elect.sync %r0|%p3, %r1; @%p3 add.u32 %r0, %r0, 100;", lambda x, part: part[0] + 100 * (x % 32 == part[0])),
]


@pytest.mark.parametrize("text, wanted", PARTS, ids=[row[0] for row in PARTS])
def test_parts_of_a_warp_with_masks_of_their_own(text: str, wanted: Callable[[int, list[int]], int]) -> None:
    y = run_clean(f"""
  and.b32 %r3, %t, 31;
  setp.lt.u32 %p1, %r3, 12;
  selp.b32 %r1, 0xFFF, 0xFFFFF000, %p1;
  rem.u32 %r4, %r3, 3;
  setp.eq.u32 %p2, %r4, 0;
  and.b32 %r2, %t, 3;
  {text}
  st.global.b32 [%y], %r0;""")
    parts = [list(range(12)), list(range(12, 32))]
    expected = [wanted(x, parts[x % 32 >= 12]) for x in range(64)]
    assert y.view(np.uint32)[::2].tolist() == [number % 2**32 for number in expected]


@pytest.mark.parametrize("sources, finds", [("%r2, %t", set()), ("%t, %r2", set()), ("%r2, %r3", {"uninitialized"})])
def test_pairs_of_which_a_part_is_not_written(sources: str, finds: set[str]) -> None:
    """Compilers leave out the half that nothing reads, of two numbers that one instruction rounds."""
    y, outcome = run(kernel(f"  cvt.rn.f16x2.f32 %r1, {sources};\n  st.global.b32 [%y], %r1;"))
    assert kinds(outcome) == finds
    half = y.view(np.uint16).reshape(64, 4)[:, 0 if sources.endswith("%t") else 1]
    assert finds or not half.any()  # subnormal numbers


@pytest.mark.parametrize("clock", ["%clock64", "%globaltimer"])
def test_a_wait_for_a_clock_ends(clock: str) -> None:
    body = f"""
  mov.u64 %d1, {clock};
W: mov.u64 %d2, {clock};
  sub.s64 %d3, %d2, %d1;
  setp.lt.u64 %p1, %d3, 1000000000;
  @%p1 bra W;
  setp.gt.u64 %p2, %d2, %d1;
  selp.b64 %d4, 1, 0, %p2;
  st.global.b64 [%y], %d4;"""
    y, outcome = run(kernel(body), max_steps=2000)
    assert not outcome.findings and set(y.tolist()) == {1}


FENCES = {
    "behind the barrier, by all warps": ("bar.sync 0;\n  fence.proxy.async;", set()),
    "behind the barrier, by one warp": (
        "bar.sync 0;\n  setp.lt.u32 %p7, %r1, 32;\n  @%p7 fence.proxy.async;",
        {"proxy"},
    ),
    "behind the barrier, for global memory": ("bar.sync 0;\n  fence.proxy.async.global;", {"proxy"}),
}


@pytest.mark.parametrize("place", FENCES)
def test_fences_of_the_warps_that_multiply(place: str) -> None:
    """A product of a warpgroup sees what is ordered before a fence that each of its warps has passed."""
    behind, found = FENCES[place]
    lines = [line for line in text_of("wgmma.ptx").split("\n") if "//!" not in line]
    text = "\n".join(lines).replace("  fence.proxy.async;\n", "", 1).replace("bar.sync 0;", behind, 1)
    assert check(text, "wgmma.ptx")[0] == found


# Products of a warp: A, B and C are in X, a register of 32 or 64 bits after the other, and D is written to Y.


def _held(matrix: np.ndarray, bits: int) -> list[np.ndarray]:
    """Returns the registers of A, or of B transposed: each holds neighbours along k, of which a row has four registers.

    Args:
        matrix: elements as bits, rows by k.
        bits: of an element.
    """
    lane, per = np.arange(32), max(1, 32 // bits)
    found = []
    for chunk in range(0, matrix.shape[1], 4 * per):
        for half in range(0, len(matrix), 8):
            columns = chunk + lane[:, None] % 4 * per + np.arange(per)
            parts = matrix[half + lane[:, None] // 4, columns].astype(object) << bits * np.arange(per).astype(object)
            found.append(parts.sum(axis=1))
    return found


def _sums(matrix: np.ndarray) -> list[np.ndarray]:
    lane = np.arange(32)
    return [matrix[half + lane // 4, lane % 4 * 2 + part] for half in range(0, len(matrix), 8) for part in range(2)]


def _product(opcode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, bits: int) -> np.ndarray:
    """Returns D, as bits, of matrices of bits."""
    width = 64 if bits == 64 else 32
    parts = [_held(a, bits), _held(b.T, bits), _sums(c)]
    count = sum(map(len, parts))
    x = np.array([[int(register[lane]) for part in parts for register in part] for lane in range(32)], np.uint64)
    letter = "d" if width == 64 else "r"
    names = iter(f"%{letter}{number}" for number in range(10, 10 + count))
    listed = [[next(names) for _ in part] for part in parts]
    loads = [
        f"ld.global.b{width} {name}, [%d1+{8 * n}];" for n, name in enumerate(name for part in listed for name in part)
    ]
    stores = [f"st.global.b{width} [%d2+{8 * n}], {name};" for n, name in enumerate(listed[2])]
    braces = ", ".join(f"{{{', '.join(names)}}}" for names in (listed[2], *listed))
    body = "\n".join(
        [
            f"mad.wide.u32 %d1, %t, {8 * count}, %X;",
            f"mad.wide.u32 %d2, %t, {8 * len(parts[2])}, %Y;",
            *loads,
            f"{opcode} {braces};",
            *stores,
        ]
    )
    text = kernel(body, head=HEAD.replace("sm_90a", "sm_90"))
    found = Kernel(parse(text, "k.ptx"), None, "k.ptx").bound(
        from_texts([f"{32 * count}xi64", f"{32 * len(parts[2])}xi64=0"]), Launch((1, 1, 1), (32, 1, 1))
    )
    outcome = found.run(found.check_inputs([x.view(np.int64).ravel(), np.zeros(32 * len(parts[2]), np.int64)]))
    assert not outcome.findings
    registers = outcome.arguments[1].view(np.uint64).reshape(32, -1)
    d = np.zeros(c.shape, np.uint64)
    lane = np.arange(32)
    for number in range(registers.shape[1]):
        d[number // 2 * 8 + lane // 4, lane % 4 * 2 + number % 2] = registers[:, number]
    return d


_LIMITS = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}


@pytest.mark.parametrize(
    "shape, a_type, b_type, behind",
    [
        ("m16n8k32", "s8", "u8", ""),
        ("m8n8k16", "u8", "s8", ""),
        ("m16n8k64", "s4", "u4", ""),
        ("m8n8k32", "u4", "u4", ""),
        ("m16n8k32", "s4", "s4", ""),
        ("m16n8k256", "b1", "b1", ".and.popc"),
        ("m8n8k128", "b1", "b1", ".xor.popc"),
    ],
)
@pytest.mark.parametrize("saturates", [False, True])
def test_products_of_integers(shape: str, a_type: str, b_type: str, behind: str, saturates: bool) -> None:
    m, n, k = map(int, shape[1:].replace("n", " ").replace("k", " ").split())
    rng = np.random.default_rng(0)
    a, b = rng.integers(*_LIMITS[a_type], (m, k)), rng.integers(*_LIMITS[b_type], (k, n))
    c = rng.choice([2**31 - 5, -(2**31) + 5, 0, 77], (m, n))
    bits = int(a_type[1:])
    if saturates and a_type == "b1":
        return
    opcode = f"mma.sync.aligned.{shape}.row.col{'.satfinite' * saturates}.s32.{a_type}.{b_type}.s32{behind}"
    d = _product(opcode, a & (1 << bits) - 1, b & (1 << bits) - 1, c & 0xFFFFFFFF, bits)
    total = ((a[:, :, None] ^ b[None]).sum(axis=1) if "xor" in behind else a @ b) + c
    wanted = np.clip(total, -(2**31), 2**31 - 1) if saturates else total.astype(np.int32)
    np.testing.assert_array_equal(d.astype(np.uint32).view(np.int32), wanted)


@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
def test_products_of_f64(shape: str) -> None:
    m, n, k = map(int, shape[1:].replace("n", " ").replace("k", " ").split())
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-9, 9, size).astype(np.float64) / 8 for size in ((m, k), (k, n), (m, n)))
    opcode = f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64"
    d = _product(opcode, *(array.view(np.uint64) for array in (a, b, c)), 64)
    np.testing.assert_array_equal(d.view(np.float64), a @ b + c)


def test_wmma_of_f64_whose_operands_are_one_register() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (8, 4)).astype(np.float64), rng.integers(-9, 9, (4, 8)).astype(np.float64)
    body = """
  .reg .f64 %f<8>;
  wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%f0}, [%X];
  wmma.load.b.sync.aligned.row.m8n8k4.global.f64 {%f1}, [%X+256];
  mov.f64 %f2, 0d3FF0000000000000;
  wmma.mma.sync.aligned.row.row.m8n8k4.f64.f64.f64.f64.rn {%f3, %f4}, {%f0}, {%f1}, {%f2, %f2};
  wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%Y], {%f3, %f4};"""
    y, outcome = run(kernel(body), np.concatenate([a.ravel(), b.ravel()]).view(np.int64), threads=32, blocks=2)
    assert kinds(outcome) == {"race"}  # the blocks write the same numbers
    np.testing.assert_array_equal(y.view(np.float64).reshape(8, 8), a @ b + 1)


@pytest.mark.parametrize("behind, wanted", [("", -(2**31) + 11), (".satfinite", 2**31 - 1)])
def test_wmma_of_integers_that_overflow(behind: str, wanted: int) -> None:
    c = ", ".join(["%r9"] * 8)
    body = f"""
  mov.u32 %r9, {2**31 - 5};
  wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {{%r1, %r2}}, [%X];
  wmma.load.b.sync.aligned.row.m16n16k16.global.s8 {{%r3, %r4}}, [%X];
  wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32{behind} {{%r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18}},
      {{%r1, %r2}}, {{%r3, %r4}}, {{{c}}};
  mad.wide.u32 %d1, %t, 8, %Y;
  st.global.u32 [%d1], %r11;"""
    y, outcome = run(kernel(body), np.full(64, 0x0101010101010101), threads=32, blocks=2)
    assert kinds(outcome) == {"race"}
    assert (y[:32].view(np.int32)[::2] == wanted).all()


def test_products_that_are_not_known() -> None:
    for types in ("s32.s8.s4.s32", "s32.b1.b1.s32", "f32.s8.s8.f32"):
        with pytest.raises(StepladderError, match=r"the emulator does not support mma\.sync"):
            one = np.zeros((8, 32), np.int64)
            _product(f"mma.sync.aligned.m8n8k32.row.col.{types}", one, one.T, np.zeros((8, 8), np.int64), 8)


@pytest.mark.parametrize(
    "k, types, behind",
    [
        (32, ("s8", "u8"), "intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>"),
        (64, ("s4", "u4"), "intOverflowBehavior = #nvvm.mma_int_overflow<satfinite>"),
        (256, ("b1", "b1"), "b1Op = #nvvm.mma_b1op<xor_popc>"),
        (256, ("b1", "b1"), "b1Op = #nvvm.mma_b1op<and_popc>"),
    ],
)
def test_products_of_integers_in_the_llvm_dialect(k: int, types: tuple[str, str], behind: str) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(*_LIMITS[types[0]], (16, k)),
        rng.integers(*_LIMITS[types[1]], (k, 8)),
        rng.integers(-9, 9, (16, 8)),
    )
    bits = int(types[0][1:])
    parts = [_held(a & (1 << bits) - 1, bits), _held((b & (1 << bits) - 1).T, bits), _sums(c & 0xFFFFFFFF)]
    listed = [register for part in parts for register in part]
    x = np.array([[int(register[lane]) for register in listed] for lane in range(32)], np.uint64).astype(np.uint32)
    names = iter(f"%r{number}" for number in range(len(listed)))
    operands = " ".join(f"{letter}[{', '.join(next(names) for _ in part)}]" for letter, part in zip("ABC", parts))
    struct = "!llvm.struct<(i32, i32, i32, i32)>"
    count = len(listed)
    lines = [f"%n = llvm.mlir.constant({count} : i32) : i32", "%from = llvm.mul %t, %n : i32"]
    for number in range(count):
        lines += [
            f"%c_{number} = llvm.mlir.constant({number} : i32) : i32",
            f"%s{number} = llvm.add %from, %c_{number} : i32",
            f"%p{number} = llvm.getelementptr %X[%s{number}] : (!llvm.ptr, i32) -> !llvm.ptr, i32",
            f"%r{number} = llvm.load %p{number} : !llvm.ptr -> i32",
        ]
    lines.append(
        f"%d = nvvm.mma.sync {operands} {{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, {behind}, "
        f"multiplicandAPtxType = #nvvm.mma_type<{types[0]}>, multiplicandBPtxType = #nvvm.mma_type<{types[1]}>, "
        f"shape = #nvvm.shape<m = 16, n = 8, k = {k}>}} : (i32, i32, i32) -> {struct}"
    )
    for number in range(4):
        lines += [
            f"%e{number} = llvm.extractvalue %d[{number}] : {struct}",
            f"%q{number} = llvm.getelementptr %Y[%s{number}] : (!llvm.ptr, i32) -> !llvm.ptr, i32",
            f"llvm.store %e{number}, %q{number} : i32, !llvm.ptr",
        ]
    text = llvm_kernels.kernel("\n".join([*lines, "llvm.return"]), element="i32", threads=32, size=32 * count)
    y, outcome = llvm_kernels.run(text, x.view(np.int32).ravel())
    assert not outcome.findings and y is not None
    wanted = ((a[:, :, None] ^ b[None]).sum(axis=1) if "xor" in behind else a @ b) + c
    np.testing.assert_array_equal(y.reshape(32, count)[:, :4], np.stack(_sums(wanted), axis=1))
