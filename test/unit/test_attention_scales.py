"""Scales and masks of scores in an attention, and its weights that are rounded on request, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from stepladder.verify.function_tolerance import norm_tolerance
from test_attention import attention, with_wide_weights

_QUERIES, _KEYS, _DEPTH = 40, 100, 64
_POSITIONS = """%row = linalg.index 1 : index
    %column = linalg.index 2 : index
    %before = arith.cmpi ule, %column, %row : index
    %low = arith.constant 0xFF800000 : f32
    """
_SELECTED = _POSITIONS + "%y = arith.select %before, %scaled, %low : f32"
_ADDED = _POSITIONS + "%m = arith.select %before, %zero, %low : f32\n    %y = arith.addf %m, %scaled : f32"
_BEHIND = _POSITIONS + "%hidden = arith.select %before, %x, %low : f32\n    %y = arith.mulf %hidden, %scale : f32"
_NUMBERS = "%y = arith.addf %scaled, %bias : f32"
_TWICE = "%y = arith.addf %scaled, %x : f32"


def _text(scale: float, mask: str) -> str:
    text = attention(_QUERIES, _KEYS, mask=mask)
    assert "arith.constant 0.125 : f32" in text
    return text.replace("arith.constant 0.125 : f32", f"arith.constant {scale} : f32")


def _expected(arrays: list[np.ndarray], scale: float, mask: str) -> np.ndarray:
    q, k, v, bias = (array.astype(np.float64) for array in arrays)
    scores = q @ k.T
    logits = scores * scale + (bias if mask == _NUMBERS else scores if mask == _TWICE else 0.0)
    if mask in (_SELECTED, _ADDED, _BEHIND):
        logits = np.where(np.tri(*logits.shape[1:], dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(
    ("scale", "mask"),
    [
        (0.125, _SELECTED),
        (0.125, _ADDED),
        (0.125, _BEHIND),
        (0.125, _NUMBERS),
        (0.125, _TWICE),
        (-0.125, _SELECTED),
        (1.5, _ADDED),
    ],
    ids=["selected", "added", "scaled behind", "numbers", "read twice", "negative", "above one"],
)
def test_scales(scale: float, mask: str) -> None:
    """Also those that cannot be left to the exponential."""
    function = stepladder.compile(_text(scale, mask), target="sm_90a", device="emulator", attention=True)
    assert [launch.stage for launch in function.manifest.launches] == ["f_attention_0"]
    generator = np.random.default_rng(0)
    shapes = (2, _QUERIES, _DEPTH), (_KEYS, _DEPTH), (_KEYS, _DEPTH)
    arrays = [generator.standard_normal(shape).astype(np.float16) for shape in shapes]
    arrays.append(generator.standard_normal((_QUERIES, _KEYS), np.float32))
    wanted = _expected(arrays, scale, mask)
    assert abs(np.asarray(function(*arrays)) - wanted).max() <= abs(wanted).max() * np.finfo(np.float16).eps


@pytest.mark.usefixtures("needs_ptxas")
def test_weights_are_rounded_on_request() -> None:
    """The error grows by at most what rounding the result adds, which is allowed then."""
    text = with_wide_weights()
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape).astype(np.float16) for shape in ((2, 128, 64), (256, 64), (256, 64))]
    arrays.append(np.zeros((128, 256), np.float32))
    wanted = _expected(arrays, 0.125, "")
    errors, allowed = [], []
    for weights in ("f32", "rounded"):
        function = stepladder.compile(
            text, target="sm_90a", device="emulator", attention=True, attention_weights=weights
        )
        assert isinstance(function, stepladder.Function)
        assert ("round_weights" in function.manifest.steps) == (weights == "rounded")
        errors.append(np.linalg.norm(np.asarray(function(*arrays)) - wanted) / np.linalg.norm(wanted))
        allowed.append(norm_tolerance(function.bundle))
    assert errors[0] < errors[1] <= allowed[1]
    assert allowed[1] - allowed[0] == pytest.approx(2.0**-11)
