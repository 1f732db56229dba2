"""Products of a warp whose A is sparse: half of its elements, and metadata."""

import ml_dtypes
import numpy as np
import pytest

from foreign_kernels import launch
from foreign_kernels import run as run_module
from ptx_kernels import HEAD, Kernel, Launch, from_texts, parse
from stepladder.runtime.errors import StepladderError

_CHUNKS = {32: 2, 16: 4, 8: 4, 4: 8}  # elements of a row that four bits of metadata are for, by their bits
_DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "u8": np.uint8,
}


def _sparse(rng: np.random.Generator, k: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns A, the half of it that is held, and four bits for each chunk of a row."""
    size = _CHUNKS[bits]
    whole, held, nibbles = np.zeros((16, k), int), [], []
    for row in range(16):
        for chunk in range(k // size):
            first, second = sorted(rng.choice(4, 2, replace=False))
            if bits == 32:
                first = 2 * rng.integers(2)
                second = first + 1
            places = {32: [first // 2], 4: [2 * first, 2 * first + 1, 2 * second, 2 * second + 1]}.get(
                bits, [first, second]
            )
            numbers = rng.integers(1, 8, len(places))
            whole[row, chunk * size + np.array(places)] = numbers
            held.append(numbers)
            nibbles.append(first | second << 2)
    return whole, np.concatenate(held).reshape(16, k // 2), np.array(nibbles).reshape(16, -1)


def _metadata(nibbles: np.ndarray, bits: int, selector: int) -> np.ndarray:
    """Returns the register of each thread; those that are not selected have other bits."""
    words = np.full(32, 0x5A5A5A5A, np.int64)
    chunks = nibbles.shape[1]
    together = (nibbles.astype(np.int64) << 4 * (np.arange(chunks) % (4 if bits >= 16 else 8))).reshape(
        16, -1, 4 if bits >= 16 else 8
    )
    parts = together.sum(axis=-1)  # bits of four or eight chunks of each row
    for four in range(8):
        for part in range(parts.shape[1]):
            if bits >= 16:
                thread = parts.shape[1] * selector + part
                words[4 * four + thread] = parts[four, part] | parts[four + 8, part] << 16
            else:
                words[4 * four + 2 * part] = parts[four, part]
                words[4 * four + 2 * part + 1] = parts[four + 8, part]
    return words.astype(np.uint32)


def _registers(matrix: np.ndarray, type_: str, bits: int) -> np.ndarray:
    """Returns the registers of A, or of B transposed: (32, registers)."""
    lane, per = np.arange(32), max(1, 32 // bits)
    found = []
    for start in range(0, matrix.shape[1], 4 * per):
        for half in range(0, len(matrix), 8):
            part = matrix[half + lane[:, None] // 4, start + lane[:, None] % 4 * per + np.arange(per)]
            if bits == 4:
                found.append((part << 4 * np.arange(8)).sum(axis=1))
            else:
                found.append(np.ascontiguousarray(part.astype(_DTYPES[type_])).view(np.uint32)[:, 0])
    return np.stack(found, axis=1).astype(np.uint32)


def _run(opcode: str, registers: list[np.ndarray], selector: int, count: int) -> tuple[np.ndarray, list]:
    """Returns the registers of D, and what is found, given those of A and B, and the metadata."""
    held = np.concatenate(registers, axis=1)
    names = iter([f"%r{number}" for number in range(held.shape[1])])
    a, b, (e,) = ([next(names) for _ in range(part.shape[1])] for part in registers)
    d = [f"%r{40 + number}" for number in range(count)]
    lines = [
        *(f"ld.global.b32 %r{n}, [%d1+{4 * n}];" for n in range(held.shape[1])),
        *(f"mov.b32 {name}, 0;" for name in d),
        f"{opcode} {{{', '.join(d)}}}, {{{', '.join(a)}}}, {{{', '.join(b)}}}, {{{', '.join(d)}}}, {e}, {selector};",
        *(f"st.global.b32 [%d2+{4 * n}], {name};" for n, name in enumerate(d)),
    ]
    text = f"""{HEAD}
.visible .entry k(.param .u64 X, .param .u64 Y)
{{
  .reg .b32 %r<80>, %t;
  .reg .b64 %d<4>;
  mov.u32 %t, %tid.x;
  ld.param.u64 %d1, [X];
  ld.param.u64 %d2, [Y];
  mad.wide.u32 %d1, %t, {4 * held.shape[1]}, %d1;
  mad.wide.u32 %d2, %t, {4 * count}, %d2;
  {chr(10).join(lines)}
  ret;
}}
"""
    found = Kernel(parse(text, "k.ptx"), None, "k.ptx").bound(
        from_texts([f"{held.size}xi32", f"{32 * count}xi32=0"]), Launch((1, 1, 1), (32, 1, 1))
    )
    outcome = found.run(found.check_inputs([held.view(np.int32).ravel(), np.zeros(32 * count, np.int32)]))
    return outcome.arguments[1], outcome.findings


def _d(product: np.ndarray, dtype: type) -> np.ndarray:
    """Returns what the threads hold of D: (32, 4)."""
    lane = np.arange(32)
    return np.stack(
        [product[half + lane // 4, lane % 4 * 2 + part] for half in (0, 8) for part in (0, 1)], axis=1
    ).astype(dtype)


@pytest.mark.parametrize(
    "k, types, selector",
    [
        *((16, "f32.f16.f16.f32", selector) for selector in range(4)),
        (16, "f16.f16.f16.f16", 1),
        (32, "f16.f16.f16.f16", 0),
        (32, "f32.bf16.bf16.f32", 1),
        (8, "f32.tf32.tf32.f32", 3),
        (16, "f32.tf32.tf32.f32", 1),
        (64, "s32.u8.u8.s32", 0),
        (64, "f32.e4m3.e4m3.f32", 0),
        (128, "s32.u4.u4.s32", 0),
    ],
)
def test_sparse_products(k: int, types: str, selector: int) -> None:
    rng = np.random.default_rng(k)
    sums, type_ = types.split(".")[:2]
    bits = {"bf16": 16, "tf32": 32, "e4m3": 8}.get(type_) or int(type_[1:])
    whole, held, nibbles = _sparse(rng, k, bits)
    b = rng.integers(0, 8, (k, 8))
    registers = [
        _registers(held, type_, bits),
        _registers(b.T, type_, bits),
        _metadata(nibbles, bits, selector)[:, None],
    ]
    opcode = f"mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.{types}"
    y, findings = _run(opcode, registers, selector, 2 if sums == "f16" else 4)
    assert not findings
    dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[sums]
    np.testing.assert_array_equal(y.view(dtype).reshape(32, -1), _d(whole @ b, dtype))


def test_forms_of_sparse_products_that_are_refused() -> None:
    registers = [np.zeros((32, count), np.uint32) for count in (2, 2, 1)]
    for opcode, selector, message in (
        ("m16n8k16.row.col.f32.f16.f16.f32", 4, "sparsity selector 4: expected less than 4"),
        ("m16n8k32.row.col.s32.s8.s8.s32", 0, "of this shape and .s8: expected one of m16n8k64"),
    ):
        with pytest.raises(StepladderError, match=message):
            _run(f"mma.sp.sync.aligned.{opcode}", registers, selector, 4)


@pytest.mark.parametrize(
    "nibble, variant, finds", [(0b0001, "sp", 0), (0b0001, "sp::ordered_metadata", 1), (0, "sp", 1)]
)
def test_metadata_that_is_no_order_of_two_elements(nibble: int, variant: str, finds: int) -> None:
    registers = [np.zeros((32, count), np.uint32) for count in (2, 2)]
    registers.append(np.full((32, 1), 0x11111111 * nibble, np.uint32))
    _, findings = _run(f"mma.{variant}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", registers, 0, 4)
    assert [finding.kind for finding in findings] == ["descriptor"] * finds


def test_sparse_products_of_mlir() -> None:
    """Those of nvgpu, whose metadata is a vector, and of nvvm."""
    rng = np.random.default_rng(0)
    whole, held, nibbles = _sparse(rng, 32, 16)
    b = rng.integers(0, 8, (32, 8))
    a_held, b_held = (_registers(matrix, "f16", 16) for matrix in (held, b.T))
    inputs = [
        a_held.view(np.float16).reshape(32, 4, 2),
        b_held.view(np.float16).reshape(32, 4, 2),
        _metadata(nibbles, 16, 1).view(np.int16).reshape(32, 2),
    ]
    loads = "\n".join(
        f"%{name}1 = vector.load %{name.upper()}[%t, %c0, %c0] : memref<32x4x2xf16>, vector<1x4x2xf16>\n"
        f"%{name}0 = vector.shape_cast %{name}1 : vector<1x4x2xf16> to vector<4x2xf16>"
        for name in "xw"
    )
    parts = [
        f"%{name}_{n} = vector.extract %{name}0[{n}] : vector<2xf16> from vector<4x2xf16>"
        for n in range(4)
        for name in "xw"
    ]
    listed = [", ".join(f"%{name}_{n}" for n in range(4)) for name in "xw"]
    struct = "!llvm.struct<(vector<2xf16>, vector<2xf16>)>"
    of_nvgpu = """
        %d = nvgpu.mma.sp.sync(%x0, %w0, %z) metadata(%e) {mmaShape = [16, 8, 32], sparsitySelector = 1 : i32}
            : (vector<4x2xf16>, vector<4x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>"""
    of_nvvm = f"""
        %meta = llvm.bitcast %e : vector<2xi16> to i32
        %selector = arith.constant 1 : i32
        %n = vector.extract %z[0] : vector<2xf16> from vector<2x2xf16>
        {chr(10).join(parts)}
        %s = nvvm.mma.sp.sync A[{listed[0]}] B[{listed[1]}] C[%n, %n] sparseMetadata[%meta] selector[%selector]
            {{shape = #nvvm.shape<m = 16, n = 8, k = 32>}} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> {struct}
        %s0 = llvm.extractvalue %s[0] : {struct}
        %s1 = llvm.extractvalue %s[1] : {struct}
        %d0 = vector.insert %s0, %z[0] : vector<2xf16> into vector<2x2xf16>
        %d = vector.insert %s1, %d0[1] : vector<2xf16> into vector<2x2xf16>"""
    for product in (of_nvgpu, of_nvvm):
        text = launch(
            f"""
        %z = arith.constant dense<0.0> : vector<2x2xf16>
        {loads}
        %e = vector.load %E[%t, %c0] : memref<32x2xi16>, vector<2xi16>
        {product}
        %row = vector.shape_cast %d : vector<2x2xf16> to vector<1x2x2xf16>
        vector.store %row, %Y[%t, %c0, %c0] : memref<32x2x2xf16>, vector<1x2x2xf16>
        gpu.terminator""",
            threads=32,
            arguments="%X: memref<32x4x2xf16>, %W: memref<32x4x2xf16>, %E: memref<32x2xi16>, %Y: memref<32x2x2xf16>",
        )
        outcome = run_module(text, *inputs, np.zeros((32, 2, 2), np.float16))
        assert not outcome.findings
        np.testing.assert_array_equal(outcome.arguments[3].reshape(32, 4), _d(whole @ b, np.float16))
