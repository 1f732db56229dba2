"""Concatenations as one kernel, whose threads compute neighbours: each is of one operand, or of both."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder

ROWS = 4096  # times 64 elements: enough for threads that compute eight of them

CONCATENATIONS = {
    "multiples of eight": (
        (40, 24),
        "%z = tensor.concat dim(1) %a, %b : ({a}, {b}) -> {z}",
        lambda a, b: np.concatenate([a, b], 1),
    ),
    "multiples of four": (
        (20, 44),
        "%z = tensor.concat dim(1) %a, %b : ({a}, {b}) -> {z}",
        lambda a, b: np.concatenate([a, b], 1),
    ),
    "odd boundary": (
        (31, 33),
        "%z = tensor.concat dim(1) %a, %b : ({a}, {b}) -> {z}",
        lambda a, b: np.concatenate([a, b], 1),
    ),
    "halves exchanged and negated": (
        (64, 64),
        f"""%high = tensor.extract_slice %a[0, 32] [{ROWS}, 32] [1, 1] : {{a}} to tensor<{ROWS}x32xf16>
  %low = tensor.extract_slice %a[0, 0] [{ROWS}, 32] [1, 1] : {{a}} to tensor<{ROWS}x32xf16>
  %half = tensor.empty() : tensor<{ROWS}x32xf16>
  %minus = linalg.negf ins(%high : tensor<{ROWS}x32xf16>) outs(%half : tensor<{ROWS}x32xf16>) -> tensor<{ROWS}x32xf16>
  %turned = tensor.concat dim(1) %minus, %low : (tensor<{ROWS}x32xf16>, tensor<{ROWS}x32xf16>) -> {{z}}
  %empty = tensor.empty() : {{z}}
  %z = linalg.mul ins(%turned, %b : {{z}}, {{z}}) outs(%empty : {{z}}) -> {{z}}""",
        lambda a, b: np.concatenate([-a[:, 32:], a[:, :32]], 1) * b,
    ),
}


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("name", CONCATENATIONS)
def test_concatenation(name: str) -> None:
    widths, body, reference = CONCATENATIONS[name]
    a, b, z = (f"tensor<{ROWS}x{width}xf16>" for width in (*widths, 64))
    text = f"func.func @f(%a: {a}, %b: {b}) -> {z} {{\n  {body.format(a=a, b=b, z=z)}\n  return %z : {z}\n}}\n"
    random = np.random.default_rng(0)
    arrays = [random.integers(-16, 16, (ROWS, width)).astype(np.float16) for width in widths]
    function = stepladder.compile(text, target="sm_90a", device="emulator")
    assert len(function.manifest.launches) == 1
    np.testing.assert_array_equal(np.asarray(function(*arrays)), reference(*arrays))


def test_a_part_without_elements() -> None:
    """Strides of an array without elements, which NumPy makes 0, are those of the argument."""
    text = """
func.func @f(%a: tensor<0x4xf32>, %b: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = tensor.concat dim(0) %a, %b : (tensor<0x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = tensor.empty() : tensor<3x4xf32>
  %2 = linalg.exp ins(%0 : tensor<3x4xf32>) outs(%1 : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}
"""
    empty, b = np.empty((0, 4), np.float32), np.zeros((3, 4), np.float32)
    assert np.array_equal(stepladder.compile(text, device="emulator", target="sm_80")(empty, b), np.ones((3, 4)))
