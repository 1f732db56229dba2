"""Conversions of PTX that round in a direction, beside exact arithmetic, and those that ptxas refuses."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from ptx_kernels import kernel, run, run_clean
from stepladder.runtime.errors import StepladderError

_TYPES = {"f16": (np.float16, "%h"), "bf16": (ml_dtypes.bfloat16, "%h"), "f32": (np.float32, "%r")}


def _all_of(type_: str) -> list[float]:
    """Returns the finite numbers of a type of 16 bits, in order."""
    with np.errstate(invalid="ignore"):  # of signalling NaN
        numbers = np.arange(1 << 16, dtype=np.uint16).view(_TYPES[type_][0]).astype(float)
    return sorted(set(numbers[np.isfinite(numbers)]))


_ALL = {type_: _all_of(type_) for type_ in ("f16", "bf16")}


def _rounded(number: Fraction, type_: str, mode: str) -> float:
    """Returns a number rounded to one of 16 bits; the number lies between two of them."""
    held = _ALL[type_]
    place = int(np.searchsorted(np.array(held), float(number)))
    near = held[max(0, place - 2) : place + 2]
    below = max(value for value in near if Fraction(value) <= number)
    above = min(value for value in near if Fraction(value) >= number)
    if mode == "rz":
        return below if number > 0 else above
    if mode == "rn" and below != above:
        half = (Fraction(below) + Fraction(above)) / 2
        if number == half:
            bits = np.array([below, above], _TYPES[type_][0]).view(np.uint16)
            return (below, above)[int(bits[0] % 2)]
        return below if number < half else above
    return below if mode in ("rm", "rn") else above


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("source", ["f32", "f64", "s32", "s64"])
def test_numbers_of_16_bits(type_: str, source: str, mode: str) -> None:
    rng = np.random.default_rng(4)
    if source.startswith("f"):
        given = rng.normal(size=64) * 10.0 ** rng.integers(-6, 4, 64)
        held = np.zeros((64, 8), np.uint8)
        numbers = given.astype(np.float32 if source == "f32" else float)
        held[:, : numbers.itemsize] = numbers[:, None].view(np.uint8)
        x = held.view(np.int64)[:, 0]
    else:
        most = 60_000 if type_ == "f16" else 1 << (31 if source == "s32" else 62)
        x = numbers = rng.integers(-most, most, 64)
        if type_ == "bf16" and source == "s64":  # halfway between two numbers, but for what f64 loses
            x[:8] = (0x101 << 50) + np.arange(-4, 4)
    register = "%r1" if source.endswith("32") else "%d1"
    body = f"""
  ld.global.b{source[1:]} {register}, [%x];
  cvt.{mode}.{type_}.{source} %h1, {register};
  st.global.b16 [%y], %h1;"""
    y = run_clean(body, x).view(np.uint16)[::4].view(_TYPES[type_][0]).astype(float)
    exact = [Fraction(float(number)) if source.startswith("f") else Fraction(int(number)) for number in numbers]
    assert y.tolist() == [_rounded(number, type_, mode) for number in exact]


def test_tf32_towards_zero() -> None:
    x = np.arange(64) * 0x12345 + 0x3F812345
    y = run_clean("  ld.global.b32 %r1, [%x];\n  cvt.rz.tf32.f32 %r2, %r1;\n  st.global.b32 [%y], %r2;", x)
    assert (y & 0xFFFFFFFF).tolist() == (x & ~0x1FFF).tolist()


def test_integers_that_saturate_at_one() -> None:
    y = run_clean("  cvt.rn.sat.f32.s32 %r2, %t;\n  st.global.b32 [%y], %r2;").view(np.float32)[::2]
    assert y.tolist() == [0.0] + 63 * [1.0]


@pytest.mark.parametrize(
    "instruction, message",
    [
        ("cvt.f16.f32 %h1, %r1;", "without one of .rn, .rz, .rm, .rp"),
        ("cvt.rn.f32.f16 %r1, %h1;", "PTX has no cvt.rn.f32.f16: with .rn"),
        ("cvt.s32.f32 %r1, %r2;", "without one of .rni, .rzi, .rmi, .rpi"),
        ("cvt.rn.s32.f32 %r1, %r2;", "with .rn: expected one of .rni, .rzi, .rmi, .rpi"),
        ("cvt.rna.f16.f32 %h1, %r2;", "with .rna: expected one of .rn, .rz, .rm, .rp"),
        ("cvt.rn.sat.bf16.f32 %h1, %r2;", r"with \.sat"),
        # Arithmetic of types that it does not have.
        ("add.b32 %r1, %r2, %r3;", "with .b32: expected one of .u16, .s16, .u32"),
        ("and.u32 %r1, %r2, %r3;", "with .u32: expected one of .pred, .b16, .b32, .b64"),
        ("abs.u32 %r1, %r2;", "with .u32: expected one of .s16, .s32, .s64, .f16"),
        ("rem.f32 %r1, %r2, %r3;", "with .f32: expected one of .u16"),
        ("rcp.approx.f16 %h1, %h2;", "with .f16: expected .f32"),
    ],
)
def test_instructions_that_ptxas_refuses(instruction: str, message: str) -> None:
    with pytest.raises(StepladderError, match=message):
        run(kernel(f"  {instruction}"))
