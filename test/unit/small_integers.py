"""Small integers as elements of the types of the matrix units."""

from __future__ import annotations

import numpy as np

# Bits of small integers, from -2 to 2, in types that NumPy has not.
_BYTES = {
    "e4m3": {0: 0x00, 1: 0x38, 2: 0x40, -1: 0xB8, -2: 0xC0},
    "e5m2": {0: 0x00, 1: 0x3C, 2: 0x40, -1: 0xBC, -2: 0xC0},
}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s8": np.int8, "s32": np.int32}


def bits_of(numbers: np.ndarray, kind: str) -> np.ndarray:
    """Small integers as elements of a type, by PTX's name: an array of unsigned integers of its width."""
    if kind in _BYTES:
        return np.vectorize(_BYTES[kind].get)(numbers).astype(np.uint8)
    if kind in ("bf16", "tf32"):
        bits = numbers.astype(np.float32).view(np.uint32)
        return (bits >> 16).astype(np.uint16) if kind == "bf16" else bits
    array = numbers.astype(DTYPES[kind])
    return array.view(f"u{array.itemsize}")


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape)


def small(*shape: int, seed: int = 0, dtype: type = np.float16) -> np.ndarray:
    """Integers from -3 to 3, others for each shape."""
    return np.random.default_rng([seed, *shape]).integers(-3, 4, shape).astype(dtype)
