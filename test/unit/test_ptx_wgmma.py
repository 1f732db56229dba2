"""Products of warpgroups whose A is sparse (wgmma.mma_async.sp) or whose elements are bits, compared with NumPy."""

import ml_dtypes
import numpy as np
import pytest

from ptx_kernels import HEAD, Kernel, Launch, from_texts, parse
from stepladder.emulator.core.launched import BoundKernel
from stepladder.runtime.errors import StepladderError

_DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
}
_BYTES = 32768  # of shared memory: A at 0, B in the other half
_HALF = _BYTES // 2


def _sparse(rng: np.random.Generator, k: int, type_: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns A, the half of it that is held, and four bits for each chunk of a row."""
    size = 2 if type_ == "tf32" else 4
    whole = np.zeros((64, k), int)
    held = np.zeros((64, k // 2), int)
    nibbles = np.zeros((64, k // size), int)
    for row in range(64):
        for chunk in range(k // size):
            numbers = rng.integers(1, 8, size // 2)
            if size == 2:
                place = int(rng.integers(2))
                places, nibble = [place], 0b1110 if place else 0b0100
            else:
                places = sorted(rng.choice(4, 2, replace=False))
                nibble = places[0] | places[1] << 2
            whole[row, chunk * size + np.array(places)] = numbers
            held[row, chunk * size // 2 : (chunk + 1) * size // 2] = numbers
            nibbles[row, chunk] = nibble
    return whole, held, nibbles


def _metadata(nibbles: np.ndarray, selector: int, bits: int) -> np.ndarray:
    """Returns the register of each of 128 threads; those that are not selected have other bits.

    For 16 and 32 bits, one pair of four threads has the columns' halves: 16 bits of row g, then of row g + 8. For 8
    bits, threads 0 and 1 have the first half of rows g and g + 8, and threads 2 and 3 the second.
    """
    words = np.full(128, 0x5A5A5A5A, np.int64)
    for thread in range(128):
        warp, g, of_four = thread // 32, thread % 32 // 4, thread % 4
        row = 16 * warp + g
        if bits == 8:
            chunks = nibbles[row + 8 * (of_four % 2), 8 * (of_four // 2) : 8 * (of_four // 2) + 8]
        elif of_four // 2 == selector:
            first = 4 * (of_four % 2)
            chunks = np.concatenate([nibbles[row, first : first + 4], nibbles[row + 8, first : first + 4]])
        else:
            continue
        words[thread] = (chunks.astype(np.int64) << 4 * np.arange(8)).sum()
    return words.astype(np.uint32)


def _place(image: np.ndarray, matrix: np.ndarray, start: int, swizzle: int, *, along_k: bool) -> tuple[int, int]:
    """Writes a matrix (rows, k) to shared memory in a layout of wgmma; returns the leading and the stride offset.

    Core matrices are eight rows of 16 bytes, or of the swizzle's width, one after the other.
    """
    item = matrix.itemsize
    width = swizzle or 16
    if not along_k:
        matrix = matrix.T
    rows, columns = matrix.shape
    across = -(-columns * item // width)  # core matrices beside each other
    for row in range(rows):
        for byte in range(0, columns * item, 16):
            beside, inside = divmod(byte, width)
            at = ((row // 8) * across + beside) * 8 * width + row % 8 * width + inside
            if swizzle:
                at ^= (at >> 7 & swizzle // 16 - 1) << 4
            part = matrix[row, byte // item : (byte + 16) // item]
            image[start + at : start + at + 16] = np.ascontiguousarray(part).view(np.uint8)
    beside, below = 8 * width, across * 8 * width
    if along_k:
        return (beside, below) if not swizzle else (16, below)
    return (below, beside) if not swizzle else (beside, below)


def _descriptor(start: int, offsets: tuple[int, int], swizzle: int) -> int:
    mode = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    return start >> 4 | offsets[0] >> 4 << 16 | offsets[1] >> 4 << 32 | mode << 62


def _kernel(opcode: str, registers: int, a: str, modifiers: str, selector: int | None) -> BoundKernel:
    """Returns a kernel that multiplies what lies in shared memory; without a selector, A is not sparse."""
    sparse, metadata = ("", "") if selector is None else (".sp", f"%r5, {selector}, ")
    sums = ", ".join(f"%s{number}" for number in range(registers))
    stores = "\n".join(f"  st.global.b32 [%d4+{4 * number}], %s{number};" for number in range(registers))
    text = f"""{HEAD}
.visible .entry k(.param .u64 I, .param .u64 E, .param .u64 A, .param .u64 L, .param .u64 Y)
{{
  .reg .b32 %r<20>, %s<{registers}>, %t;
  .reg .b64 %d<20>;
  .reg .pred %p<3>;
  .shared .align 1024 .b8 s[{_BYTES}];
  mov.u32 %t, %tid.x;
  ld.param.u64 %d1, [I];
  ld.param.u64 %d2, [E];
  ld.param.u64 %d3, [A];
  ld.param.u64 %d4, [Y];
  ld.param.u64 %d5, [L];
  ld.global.b64 %d10, [%d5];
  ld.global.b64 %d11, [%d5+8];
  mad.wide.u32 %d2, %t, 4, %d2;
  mad.wide.u32 %d3, %t, 16, %d3;
  mad.wide.u32 %d4, %t, {4 * registers}, %d4;
  ld.global.b32 %r5, [%d2];
  ld.global.v4.b32 {{%r6, %r7, %r8, %r9}}, [%d3];
  mov.u32 %r1, s;
  shl.b32 %r2, %t, 4;
  add.u32 %r1, %r1, %r2;
  cvt.u64.u32 %d6, %r2;
  add.s64 %d6, %d1, %d6;
  mov.u32 %r3, 0;
COPY:
  ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%d6];
  st.shared.v4.b32 [%r1], {{%r10, %r11, %r12, %r13}};
  add.s64 %d6, %d6, 2048;
  add.u32 %r1, %r1, 2048;
  add.u32 %r3, %r3, 2048;
  setp.lt.u32 %p1, %r3, {_BYTES};
  @%p1 bra COPY;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async{sparse}.sync.aligned.{opcode} {{{sums}}}, {a}, %d11, {metadata}0{modifiers};
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
{stores}
  ret;
}}
"""
    kinds = [f"{_BYTES}xi8", "128xi32", "128x4xi32", "2xi64", f"128x{registers}xi32=out"]
    return Kernel(parse(text, "k.ptx"), None, "k.ptx").bound(from_texts(kinds), Launch((1, 1, 1), (128, 1, 1)))


def _held_by_threads(held: np.ndarray) -> np.ndarray:
    """Returns the registers of A: of each thread four, which have rows g, g + 8 and two halves of the columns."""
    per = 4 // held.itemsize
    found = np.zeros((128, 4), np.int32)
    for thread in range(128):
        row, of_four = 16 * (thread // 32) + thread % 32 // 4, thread % 4
        for number in range(4):
            first = 4 * per * (number // 2) + per * of_four
            part = held[row + 8 * (number % 2), first : first + per]
            found[thread, number] = np.ascontiguousarray(part).view(np.int32)[0]
    return found


def _d(product: np.ndarray, dtype: type) -> np.ndarray:
    """Returns what the threads hold of D: (128, columns / 2)."""
    found = np.zeros((128, product.shape[1] // 2), dtype)
    for thread in range(128):
        row, column = 16 * (thread // 32) + thread % 32 // 4, thread % 4 * 2
        for block in range(product.shape[1] // 8):
            part = product[row : row + 9 : 8, 8 * block + column : 8 * block + column + 2]
            found[thread, 4 * block : 4 * block + 4] = part.reshape(-1)
    return found


@pytest.mark.parametrize(
    "types, n, selector, swizzles, layouts, in_registers",
    [
        ("f32.f16.f16", 8, 0, (0, 0), (True, True), False),
        ("f32.f16.f16", 24, 1, (128, 128), (True, True), False),
        ("f32.bf16.bf16", 64, 1, (32, 64), (True, True), False),
        ("f16.f16.f16", 16, 0, (64, 64), (True, False), False),
        ("f32.f16.f16", 64, 0, (128, 128), (False, False), False),
        ("f32.bf16.bf16", 32, 1, (0, 0), (False, False), False),
        ("f32.bf16.bf16", 16, 0, (0, 128), (True, True), True),
        ("f32.tf32.tf32", 16, 1, (32, 128), (True, True), False),
        ("f32.tf32.tf32", 8, 0, (0, 0), (True, True), True),
        ("f32.e4m3.e5m2", 40, 0, (64, 128), (True, True), False),
        ("f16.e5m2.e4m3", 8, 0, (0, 0), (True, True), True),
        ("s32.s8.u8", 48, 0, (128, 64), (True, True), False),
        ("s32.u8.u8", 24, 0, (0, 0), (True, True), True),
    ],
)
def test_sparse_products(
    types: str,
    n: int,
    selector: int,
    swizzles: tuple[int, int],
    layouts: tuple[bool, bool],
    in_registers: bool,
) -> None:
    rng = np.random.default_rng(n)
    sums, a, b = types.split(".")
    item = np.dtype(_DTYPES[a]).itemsize
    k = 64 // item
    whole, held, nibbles = _sparse(rng, k, a)
    dense = rng.integers(0, 5, (n, k))
    image = np.zeros(_BYTES, np.uint8)
    held, dense = held.astype(_DTYPES[a]), dense.astype(_DTYPES[b])
    offsets = [
        _place(image, matrix, start, swizzle, along_k=along)
        for matrix, start, swizzle, along in zip((held, dense), (0, _HALF), swizzles, layouts)
    ]
    numbers = [_descriptor(start, pair, swizzle) for start, pair, swizzle in zip((0, _HALF), offsets, swizzles)]
    modifiers = "" if sums == "s32" else ", 1, 1"
    if item == 2:
        modifiers += "".join(f", {int(not along)}" for along in layouts[in_registers:])
    registers = n // 4 if sums == "f16" else n // 2
    where = "{%r6, %r7, %r8, %r9}" if in_registers else "%d10"
    kernel = _kernel(f"m64n{n}k{k}.{types}", registers, where, modifiers, selector)
    outcome = kernel.run(
        [
            image.view(np.int8),
            _metadata(nibbles, selector, 8 * item).view(np.int32),
            _held_by_threads(held),
            np.array(numbers, np.uint64).view(np.int64),
            np.zeros((128, registers), np.int32),
        ]
    )
    assert not outcome.findings, outcome.findings[0].render()
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[sums]
    product = whole @ dense.astype(int).T
    np.testing.assert_array_equal(outcome.arguments[4].view(dtype).reshape(128, -1), _d(product, dtype))


@pytest.mark.parametrize("in_registers", [False, True])
def test_products_of_bits(in_registers: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, (64, 256)), rng.integers(0, 2, (16, 256))
    held, dense = (np.packbits(matrix.astype(bool), axis=1, bitorder="little") for matrix in (a, b))
    image = np.zeros(_BYTES, np.uint8)
    numbers = [
        _descriptor(start, _place(image, matrix, start, swizzle, along_k=True), swizzle)
        for matrix, start, swizzle in zip((held, dense), (0, _HALF), (128, 32))
    ]
    kernel = _kernel("m64n16k256.s32.b1.b1.and.popc", 8, "{%r6, %r7, %r8, %r9}" if in_registers else "%d10", "", None)
    outcome = kernel.run(
        [
            image.view(np.int8),
            np.zeros(128, np.int32),
            _held_by_threads(held),
            np.array(numbers, np.uint64).view(np.int64),
            np.zeros((128, 8), np.int32),
        ]
    )
    assert not outcome.findings, outcome.findings[0].render()
    np.testing.assert_array_equal(outcome.arguments[4], _d(a @ b.T, np.int32))


def _found(metadata: int, swizzle: int = 0) -> list[str]:
    """Returns the findings of a product of zeros whose metadata is the same everywhere."""
    kernel = _kernel("m64n8k32.f32.f16.f16", 4, "%d10", ", 1, 1, 0, 0", 0)
    numbers = [_descriptor(0, (128, 256), 0), _descriptor(_HALF, (128, 512), swizzle)]
    words = np.full(128, metadata, np.uint32).view(np.int32)
    words[40:44] = 0x44440444
    outcome = kernel.run(
        [
            np.zeros(_BYTES, np.int8),
            words,
            np.zeros((128, 4), np.int32),
            np.array(numbers, np.uint64).view(np.int64),
            np.zeros((128, 4), np.int32),
        ]
    )
    return [finding.render() for finding in outcome.findings]


def test_findings_of_sparse_products() -> None:
    (found,) = _found(0x44444444)
    assert "descriptor" in found and "sparsity metadata 0b0000 of chunk 3 of row 18: expected two indices" in found
    assert any("has 64 bytes along k, more than the 32 of the swizzle" in found for found in _found(0x44444444, 32))


@pytest.mark.parametrize(
    "opcode, a, modifiers, selector, message",
    [
        ("m64n8k32.f32.f16.f16", "%d10", ", 1, 1, 0, 0", 2, "sparsity selector 2: expected less than 2"),
        ("m64n8k64.s32.s8.s8", "%d10", "", 1, "sparsity selector 1: expected less than 1"),
        ("m64n8k16.f32.f16.f16", "%d10", ", 1, 1, 0, 0", 0, "of this shape and these types"),
        ("m64n8k32.f32.f16.bf16", "%d10", ", 1, 1, 0, 0", 0, "of this shape and these types"),
        ("m64n8k32.f32.f16.f16", "%d10", ", 1, 1", 0, "with 8 operands: expected 10"),
        ("m64n8k32.f32.f16.f16", "%d10", ", 2, 1, 0, 0", 0, "with the operand 2: expected -1 or 1"),
        ("m64n8k32.s32.s8.f16", "%d10", "", None, "of this shape and these types"),
        ("m64n8k32.f32.s8.s8", "%d10", ", 1, 1", None, "of this shape and these types"),
        ("m64n8k512.s32.b1.b1.and.popc", "%d10", "", 0, "of this shape and these types"),
    ],
)
def test_products_that_are_refused(opcode: str, a: str, modifiers: str, selector: int | None, message: str) -> None:
    with pytest.raises(StepladderError, match=message):
        _kernel(opcode, 4, a, modifiers, selector)


def test_warpgroups_in_step_with_different_values_of_scale_d() -> None:
    """The second one adds to what it holds, and the first one does not; half a warpgroup is a finding."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-3, 4, (64, 16)).astype(np.float16), rng.integers(-3, 4, (8, 16)).astype(np.float16)
    image = np.zeros(4096, np.uint8)
    starts = 0, 2048
    numbers = [
        _descriptor(start, _place(image, matrix, start, 0, along_k=True), 0) for matrix, start in zip((a, b), starts)
    ]
    sums = "{%f0, %f1, %f2, %f3}"
    text = f"""{HEAD}
.visible .entry k(.param .u64 I, .param .u64 Y)
{{
  .reg .b32 %r<8>, %t;
  .reg .f32 %f<4>;
  .reg .b64 %d<8>;
  .reg .pred %p1;
  .shared .align 128 .b8 s[4096];
  mov.u32 %t, %tid.x;
  ld.param.u64 %d1, [I];
  ld.param.u64 %d2, [Y];
  mad.wide.u32 %d1, %t, 16, %d1;
  mad.wide.u32 %d2, %t, 16, %d2;
  ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%d1];
  mov.u32 %r5, s;
  shl.b32 %r6, %t, 4;
  add.u32 %r5, %r5, %r6;
  st.shared.v4.b32 [%r5], {{%r1, %r2, %r3, %r4}};
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ge.u32 %p1, %t, 128;
  mov.f32 %f0, 0f42C80000;
  mov.f32 %f1, %f0;
  mov.f32 %f2, %f0;
  mov.f32 %f3, %f0;
  mov.b64 %d4, {numbers[0]};
  mov.b64 %d5, {numbers[1]};
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {sums}, %d4, %d5, %p1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.v4.f32 [%d2], {sums};
  ret;
}}
"""
    product = _d(a.astype(float) @ b.astype(float).T, np.float32)
    for first, finds in ((128, 0), (64, 1)):
        source = text.replace("%t, 128;", f"%t, {first};")
        kernel = Kernel(parse(source, "k.ptx"), None, "k.ptx").bound(
            from_texts(["4096xi8", "256x4xf32=out"]), Launch((1, 1, 1), (256, 1, 1))
        )
        outcome = kernel.run([image.view(np.int8), np.zeros((256, 4), np.float32)])
        assert [finding.kind for finding in outcome.findings] == ["descriptor"] * finds
        if not finds:
            np.testing.assert_array_equal(outcome.arguments[1], np.concatenate([product, product + 100]))
