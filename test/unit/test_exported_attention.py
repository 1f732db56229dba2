"""Attention as torch-mlir writes it, in f32 of extended operands, is one kernel with f32 weights."""

import ml_dtypes
import numpy as np
import pytest

import stepladder
from exported_attention import exported

_STAGES = ["f_attention_0"]


def compiled(text: str, device: str | int = "emulator", **settings: str) -> stepladder.Function:
    """Returns the function of a text, compiled with one kernel for an attention where there is one."""
    function = stepladder.compile(text, device=device, target="sm_90a", attention="true", **settings)
    assert isinstance(function, stepladder.Function)
    return function


def stages(function: stepladder.Function) -> list[str]:
    """Returns the names of what a function launches."""
    return [launch.stage for launch in function.manifest.launches]


def drawn(queries: int, keys: int, depth: int, element: str) -> list[np.ndarray]:
    """Returns queries, keys, values and a mask."""
    dtype = ml_dtypes.bfloat16 if element == "bf16" else np.float16
    generator = np.random.default_rng(0)
    shapes = (1, 2, queries, depth), (1, 2, keys, depth), (1, 2, keys, depth), (queries, keys)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def expected(arrays: list[np.ndarray], mask: str) -> np.ndarray:
    """Returns the attention in f64, with zeros where a mask hides all keys."""
    q, k, v, added = (array.astype(np.float64) for array in arrays)
    logits = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if mask == "causal":
        logits = np.where(np.tri(*logits.shape[-2:], dtype=bool), logits, -np.inf)
    if mask == "added":
        logits = logits + added
    with np.errstate(invalid="ignore"):
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights = np.nan_to_num(weights / weights.sum(-1, keepdims=True))
    return weights @ v


@pytest.mark.parametrize(
    ("queries", "keys", "depth", "element", "mask", "math"),
    [
        (130, 200, 64, "f16", "", "fast"),
        (128, 256, 128, "bf16", "causal", "fast"),
        (150, 150, 64, "bf16", "added", "libdevice"),
        (64, 77, 64, "f16", "causal", "libdevice"),
    ],
)
@pytest.mark.parametrize("device", ["emulator", pytest.param(0, marks=pytest.mark.gpu, id="GPU")])
@pytest.mark.usefixtures("needs_ptxas")
def test_numbers(device: str | int, queries: int, keys: int, depth: int, element: str, mask: str, math: str) -> None:
    """Weights are f32: nearly all results are the nearest numbers, as they are not with rounded weights."""
    function = compiled(exported(queries, keys, depth, element, mask), device, math=math)
    assert stages(function) == _STAGES
    arrays = drawn(queries, keys, depth, element)
    arrays[3][7] = -np.inf
    got, wanted = np.asarray(function(*arrays)), expected(arrays, mask)
    assert (got[:, :, 7] == 0).all() == (mask == "added")
    assert (got == wanted.astype(got.dtype)).mean() > 0.98
    assert np.abs(got.astype(np.float64) - wanted).max() <= np.abs(wanted).max() * float(ml_dtypes.finfo(got.dtype).eps)


@pytest.mark.usefixtures("needs_ptxas")
def test_keys_after_the_queries_of_a_block_are_not_read() -> None:
    """With `math = fast`, an added causal mask hides whole tiles: what is there does not change the first queries."""
    arrays = drawn(256, 256, 64, "f16")
    arrays[2][:, :, 200:] = np.nan
    results = [
        np.asarray(compiled(exported(256, 256, mask="causal"), math=math)(*arrays)) for math in ("fast", "libdevice")
    ]
    assert not np.isnan(results[0][:, :, :128]).any() and np.isnan(results[0][:, :, 200:]).all()
    assert np.isnan(results[1]).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cmpf oeq, %wide, %lowest", "cmpf ueq, %wide, %lowest"),
        ("arith.andi %is, %out", "arith.ori %is, %out"),
        ("%true = arith.constant true", "%true = arith.constant false"),
        ("%lowest = arith.constant 0xFFF0000000000000", "%lowest = arith.constant 0.0"),
    ],
    ids=["NaN", "any key", "never", "other keys"],
)
@pytest.mark.usefixtures("needs_ptxas")
def test_weights_that_are_zero_in_other_rows_stay(old: str, new: str) -> None:
    """Kernels of the products and the softmax compute them."""
    text = exported(128, 256)
    assert old in text
    assert len(stages(compiled(text.replace(old, new)))) > 1
