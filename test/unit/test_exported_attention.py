"""Attention as torch-mlir writes it, in f32 of extended operands, is one kernel with f32 weights."""

import ml_dtypes
import numpy as np
import pytest

import stepladder
from exported_attention import exported, shared
from stepladder.pipeline.functions import attention_knobs

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


def of_one_projection(rows: int, is_stacked: bool) -> str:
    """Returns the attention of two heads whose queries, keys and values are columns of one tensor, or are stacked by a
    transpose, as in `torch.nn.MultiheadAttention`."""
    text = exported(rows, rows)
    head, _, rest = text.partition("func.func @f(")
    _, _, body = rest.partition("{\n")
    whole, part, heads = f"{rows}x384xf16", f"{rows}x2x64xf16", f"1x2x{rows}x64xf16"
    lines = [f"func.func @f(%all: tensor<{whole}>, %mask: tensor<{rows}x{rows}xf16>) -> tensor<{heads}> {{"]
    if is_stacked:
        lines += [
            f"%divided = tensor.expand_shape %all [[0], [1, 2]] output_shape [{rows}, 3, 128]"
            f" : tensor<{whole}> into tensor<{rows}x3x128xf16>",
            f"%stack_e = tensor.empty() : tensor<3x{rows}x128xf16>",
            f"%stack = linalg.transpose ins(%divided : tensor<{rows}x3x128xf16>)"
            f" outs(%stack_e : tensor<3x{rows}x128xf16>) permutation = [1, 0, 2]",
        ]
    for number, name in enumerate("qkv"):
        slice_ = (
            f"%stack[{number}, 0, 0] [1, {rows}, 128] [1, 1, 1] : tensor<3x{rows}x128xf16>"
            if is_stacked
            else f"%all[0, {128 * number}] [{rows}, 128] [1, 1] : tensor<{whole}>"
        )
        lines += [
            f"%{name}_part = tensor.extract_slice {slice_} to tensor<{rows}x128xf16>",
            f"%{name}_heads = tensor.expand_shape %{name}_part [[0], [1, 2]] output_shape [{rows}, 2, 64]"
            f" : tensor<{rows}x128xf16> into tensor<{part}>",
            f"%{name}_t_e = tensor.empty() : tensor<2x{rows}x64xf16>",
            f"%{name}_t = linalg.transpose ins(%{name}_heads : tensor<{part}>)"
            f" outs(%{name}_t_e : tensor<2x{rows}x64xf16>) permutation = [1, 0, 2]",
            f"%{name} = tensor.expand_shape %{name}_t [[0, 1], [2], [3]] output_shape [1, 2, {rows}, 64]"
            f" : tensor<2x{rows}x64xf16> into tensor<{heads}>",
        ]
    return head + "\n".join(lines) + "\n" + body


@pytest.mark.parametrize("is_stacked", [False, True], ids=["columns", "stacked"])
@pytest.mark.parametrize("device", ["emulator", pytest.param(0, marks=pytest.mark.gpu, id="GPU")])
@pytest.mark.usefixtures("needs_ptxas")
def test_parts_of_one_projection_are_read_in_place(device: str | int, is_stacked: bool) -> None:
    rows = 150
    function = compiled(of_one_projection(rows, is_stacked), device)
    assert stages(function) == _STAGES
    generator = np.random.default_rng(0)
    x = generator.standard_normal((rows, 384)).astype(np.float16)
    parts = [x[:, 128 * number : 128 * (number + 1)].reshape(rows, 2, 64).swapaxes(0, 1)[None] for number in range(3)]
    mask = np.zeros((rows, rows), np.float16)
    got, wanted = np.asarray(function(x, mask)), expected([*parts, mask], "")
    assert (got == wanted.astype(np.float16)).mean() > 0.98


@pytest.mark.usefixtures("needs_ptxas")
def test_keys_that_heads_share_are_not_repeated() -> None:
    """Front ends repeat keys and values for each head of queries; the kernel reads the ones that there are."""
    queries, keys = 100, 150
    function = compiled(shared(queries, keys))
    assert stages(function) == _STAGES
    q, k, v, mask = drawn(queries, keys, 64, "f16")
    got, wanted = np.asarray(function(q, k[:, 0], v[:, 0], mask)), expected([q, k[:, :1], v[:, :1], mask], "")
    assert (got == wanted.astype(np.float16)).mean() > 0.98


@pytest.mark.usefixtures("needs_ptxas")
def test_keys_after_the_queries_of_a_block_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `math = fast`, an added causal mask hides whole tiles, where blocks do not split the keys: what is there
    does not change the first queries."""
    whole = attention_knobs.Choice(rows=128, splits=1, us=0.0)
    monkeypatch.setattr(attention_knobs, "choose", lambda *_, **__: whole)
    arrays = drawn(256, 256, 64, "f16")
    arrays[2][:, :, 200:] = np.nan
    results = [
        np.asarray(compiled(exported(256, 256, mask="causal"), math=math)(*arrays)) for math in ("fast", "libdevice")
    ]
    assert not np.isnan(results[0][:, :, :128]).any() and np.isnan(results[0][:, :, 200:]).all()
    assert np.isnan(results[1]).all()


@pytest.mark.usefixtures("needs_ptxas")
def test_kernels_of_one_query() -> None:
    """Its products are reductions of rows, whose kernels compute masks from indices."""
    arrays = drawn(1, 150, 64, "f16")
    function = stepladder.compile(exported(1, 150, mask="causal"), device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function)
    assert "f_attention_0" not in stages(function)
    assert np.abs(np.asarray(function(*arrays)) - expected(arrays, "causal")).max() < 2e-3


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
