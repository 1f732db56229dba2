"""Attentions of functions: which ones are one kernel, and the numbers of that kernel on the emulator."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from stepladder.emulator.function_steps import check_function_steps
from stepladder.emulator.step_report import StepReport
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.cost_model import gpu
from stepladder.pipeline.functions import attention_choice
from stepladder.pipeline.functions.stage_texts import stage_texts
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.verify.function_tolerance import norm_tolerance

_CAUSAL = """%row = linalg.index 1 : index
    %column = linalg.index 2 : index
    %before = arith.cmpi ule, %column, %row : index
    %low = arith.constant 0xFF800000 : f32
    %y = arith.select %before, %scaled, %low : f32"""
_ADDED = "%y = arith.addf %scaled, %bias : f32"
_PLAIN = "%y = arith.mulf %scaled, %one : f32"


def attention(
    queries: int = 128, keys: int = 256, depth: int = 64, element: str = "f16", mask: str = _PLAIN, weights: str = ""
) -> str:
    """Returns the attention of two heads of queries that share keys and values, as linalg on tensors.

    Args:
        queries, keys, depth: extents.
        element: type of the tensors.
        mask: what makes the logits of %scaled and, of an argument, %bias.
        weights: what else the function returns: the weights, or nothing.
    """
    scores, result = f"tensor<2x{queries}x{keys}xf32>", f"tensor<2x{queries}x{depth}x{element}>"
    wide, narrow = f"tensor<2x{queries}x{depth}xf32>", f"tensor<2x{queries}x{keys}x{element}>"
    kept, bias = f"tensor<{keys}x{depth}x{element}>", f"tensor<{queries}x{keys}xf32>"
    parallel = 'iterator_types = ["parallel", "parallel", "parallel"]'
    rounded = "" if element == "f32" else f"\n    %r = arith.truncf %x : f32 to {element}"
    name = "%x" if element == "f32" else "%r"
    return f"""#all = affine_map<(h, t, s) -> (h, t, s)>
func.func @f(%q: {result}, %k: {kept}, %v: {kept}, %bias: {bias}) -> ({result}{f", {narrow}" if weights else ""}) {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant {depth**-0.5} : f32
  %0 = tensor.empty() : {scores}
  %1 = linalg.fill ins(%zero : f32) outs(%0 : {scores}) -> {scores}
  %2 = linalg.contract indexing_maps = [affine_map<(h, t, s, d) -> (h, t, d)>, affine_map<(h, t, s, d) -> (s, d)>,
      affine_map<(h, t, s, d) -> (h, t, s)>] ins(%q, %k : {result}, {kept}) outs(%1 : {scores}) -> {scores}
  %3 = linalg.generic {{indexing_maps = [#all, affine_map<(h, t, s) -> (t, s)>, #all], {parallel}}}
      ins(%2, %bias : {scores}, {bias}) outs(%0 : {scores}) {{
  ^bb0(%x: f32, %bias_: f32, %out: f32):
    %scaled = arith.mulf %x, %scale : f32
    {mask.replace("%bias", "%bias_")}
    linalg.yield %y : f32
  }} -> {scores}
  %4 = linalg.softmax dimension(2) ins(%3 : {scores}) outs(%0 : {scores}) -> {scores}
  %5 = tensor.empty() : {narrow}
  %6 = linalg.generic {{indexing_maps = [#all, #all], {parallel}}} ins(%4 : {scores}) outs(%5 : {narrow}) {{
  ^bb0(%x: f32, %out: {element}):{rounded}
    linalg.yield {name} : {element}
  }} -> {narrow}
  %7 = tensor.empty() : {wide}
  %8 = linalg.fill ins(%zero : f32) outs(%7 : {wide}) -> {wide}
  %9 = linalg.contract indexing_maps = [affine_map<(h, t, d, s) -> (h, t, s)>, affine_map<(h, t, d, s) -> (s, d)>,
      affine_map<(h, t, d, s) -> (h, t, d)>] ins(%6, %v : {narrow}, {kept}) outs(%8 : {wide}) -> {wide}
  %10 = tensor.empty() : {result}
  %11 = linalg.generic {{indexing_maps = [#all, #all], {parallel}}} ins(%9 : {wide}) outs(%10 : {result}) {{
  ^bb0(%x: f32, %out: {element}):{rounded}
    linalg.yield {name} : {element}
  }} -> {result}
  return %11{", %6" if weights else ""} : {result}{f", {narrow}" if weights else ""}
}}
"""


def with_wide_weights() -> str:
    """Returns an attention whose weights are f32."""
    text = attention().replace("tensor<2x128x256xf16>", "tensor<2x128x256xf32>")
    for narrow, wide in (
        ("^bb0(%x: f32, %out: f16)", "^bb0(%x: f32, %out: f32)"),
        ("%r = arith.truncf %x : f32 to f16\n    linalg.yield %r : f16", "linalg.yield %x : f32"),
    ):
        assert narrow in text
        text = text.replace(narrow, wide, 1)
    return text


def is_outlined(text: str) -> bool:
    """Returns whether the attention of a function becomes a function of its own."""
    with mlir_context():
        run = run_pipeline(text, "attention.mlir", Request(pipeline_file("functions"), {"attention": True}))
        return "call @f_attention_0" in next(step.text for step in run.steps if step.name == "outline_attention")


@pytest.mark.parametrize(
    "text",
    [
        attention(),
        attention(256, 384, 128, "bf16", _CAUSAL),
        attention(mask=_ADDED),
        attention(1, 131),
        attention(keys=65),
        with_wide_weights(),
    ],
    ids=["plain", "causal", "added mask", "odd extents", "few keys", "wide weights"],
)
def test_attention_is_outlined(text: str) -> None:
    assert is_outlined(text)


@pytest.mark.parametrize(
    "text",
    [
        attention(keys=64),
        attention(depth=32),
        attention(element="f32"),
        attention(weights="too"),
        attention().replace("dimension(2)", "dimension(1)"),
    ],
    ids=[
        "one tile of keys",
        "short heads",
        "f32",
        "weights are read",
        "softmax of queries",
    ],
)
def test_other_products_stay(text: str) -> None:
    assert not is_outlined(text)


def expected(arrays: list[np.ndarray], is_causal: bool, has_bias: bool) -> np.ndarray:
    """Returns what `attention` computes, in f64."""
    q, k, v, bias = (array.astype(np.float64) for array in arrays)
    logits = q @ k.T * q.shape[-1] ** -0.5
    if is_causal:
        logits = np.where(np.tri(q.shape[1], k.shape[0], dtype=bool), logits, -np.inf)
    if has_bias:
        logits = logits + bias
    with np.errstate(invalid="ignore"):
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    ("element", "depth", "mask", "math"), [("bf16", 64, _CAUSAL, "fast"), ("f16", 128, _ADDED, "libdevice")]
)
@pytest.mark.parametrize("device", ["emulator", pytest.param(0, marks=pytest.mark.gpu, id="GPU")])
def test_numbers(device: str | int, element: str, depth: int, mask: str, math: str, tmp_path: Path) -> None:
    """With a mask of numbers, a row without keys in the first tile, and one without any, which is NaN."""
    queries, keys = 128, 256
    function = stepladder.compile(
        attention(queries, keys, depth, element, mask), target="sm_90a", device=device, math=math
    )
    (launch,) = function.manifest.launches
    assert launch.stage == "f_attention_0" and launch.kernel.dynamic_shared_memory > 48 * 1024
    assert launch.kernel.flops == 2 * 2 * (2 * queries * keys * depth)
    function.save(str(tmp_path / "attention.bundle"))
    (kept,) = stepladder.load(str(tmp_path / "attention.bundle"), device=device).manifest.launches
    assert kept == launch
    generator = np.random.default_rng(0)
    dtype = ml_dtypes.bfloat16 if element == "bf16" else np.float16
    shapes = (2, queries, depth), (keys, depth), (keys, depth)
    arrays = [(2 * generator.standard_normal(shape)).astype(dtype) for shape in shapes]
    bias = generator.standard_normal((queries, keys), np.float32)
    bias[3, :130] = bias[5] = -np.inf
    arrays.append(bias)
    got = np.asarray(function(*arrays)).astype(np.float64)
    wanted = expected(arrays, mask == _CAUSAL, mask == _ADDED)
    assert np.isnan(got[:, 5]).all() == (mask == _ADDED)
    # Weights are rounded, and the result: half of a last bit each.
    assert np.nanmax(abs(got - wanted)) <= abs(wanted[~np.isnan(wanted)]).max() * float(ml_dtypes.finfo(dtype).eps)
    assert (np.isnan(got) == np.isnan(wanted)).all()


@pytest.mark.parametrize(
    ("queries", "keys", "mask", "math"),
    [
        (100, 200, _PLAIN, "fast"),
        (130, 257, _CAUSAL, "fast"),
        (77, 197, _ADDED, "fast"),
        (300, 130, _CAUSAL, "libdevice"),
    ],
    ids=["plain", "causal", "added mask", "more queries than keys"],
)
@pytest.mark.parametrize("device", ["emulator", pytest.param(0, marks=pytest.mark.gpu, id="GPU")])
def test_tiles_beyond_queries_and_keys(device: str | int, queries: int, keys: int, mask: str, math: str) -> None:
    """What is there is neither read nor written: no finding of the emulator, and the numbers of the others."""
    text = attention(queries, keys, mask=mask)
    function = stepladder.compile(text, target="sm_90a", device=device, math=math, attention=True)
    assert [launch.stage for launch in function.manifest.launches] == ["f_attention_0"]
    generator = np.random.default_rng(0)
    shapes = (2, queries, 64), (keys, 64), (keys, 64)
    arrays = [(2 * generator.standard_normal(shape)).astype(np.float16) for shape in shapes]
    arrays.append(generator.standard_normal((queries, keys), np.float32))
    wanted = expected(arrays, mask == _CAUSAL, mask == _ADDED)
    assert abs(np.asarray(function(*arrays)) - wanted).max() <= abs(wanted).max() * np.finfo(np.float16).eps


@pytest.mark.usefixtures("needs_ptxas")
def test_the_least_number_hides_keys() -> None:
    """Front ends hide keys by the least number. Its product with the logarithm of e is infinite, where all keys of a
    tile, or of a row, are hidden; a row without other keys is the mean of the values."""
    function = stepladder.compile(attention(mask=_ADDED), target="sm_90a", device="emulator", attention="true")
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape).astype(np.float16) for shape in ((2, 128, 64), (256, 64), (256, 64))]
    bias = np.zeros((128, 256), np.float32)
    bias[3, :130] = bias[5] = np.finfo(np.float32).min
    wanted = expected([*arrays, np.where(bias < 0, np.float32(-1e6), bias)], is_causal=False, has_bias=True)
    wanted[:, 5] = arrays[2].astype(np.float64).mean(0)
    assert abs(np.asarray(function(*arrays, bias)) - wanted).max() < 2e-3


@pytest.mark.usefixtures("needs_ptxas")
def test_one_tile_of_keys_is_kernels_of_its_products() -> None:
    """Also where one kernel is asked for: it would copy no tiles ahead."""
    function = stepladder.compile(attention(keys=64), target="sm_90a", device="emulator", attention=True)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0", "f_rows_0", "f_matmul_1"]


@pytest.mark.parametrize(
    ("shape", "is_one"), [((8192, 2048, 128), True), ((128, 16384, 128), False)], ids=["many queries", "few queries"]
)
def test_the_faster_way_is_chosen(shape: tuple[int, int, int], is_one: bool) -> None:
    """A block reads all keys of its head, and few blocks take longer than kernels of the products."""
    with mlir_context():
        request = Request(pipeline_file("functions"), {"attention": True})
        texts = stage_texts(run_pipeline(attention(*shape), "attention.mlir", request))
        assert attention_choice.is_slower(texts, Request("auto"), "sm_90a") != is_one


def test_the_way_depends_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of few multiprocessors computes the blocks one after the other; kernels take what they read."""
    with mlir_context():
        request = Request(pipeline_file("functions"), {"attention": True})
        texts = stage_texts(run_pipeline(attention(8192, 2048, 128), "attention.mlir", request))
        found = gpu.load("h200")
        monkeypatch.setattr(gpu, "load", lambda key: {"few": dataclasses.replace(found, multiprocessors=8)}[key])
        assert attention_choice.is_slower(texts, Request("auto", gpu="few"), "sm_90a")


@pytest.mark.usefixtures("needs_ptxas")
def test_what_is_rounded_in_registers_is_allowed() -> None:
    """The weights, and the scores where they have 16 bits between."""
    rounded = "%h = arith.truncf %scaled : f32 to f16\n    %y = arith.extf %h : f16 to f32"
    allowed = []
    for mask in (_PLAIN, rounded):
        function = stepladder.compile(
            attention(256, 384, mask=mask), target="sm_90a", device="emulator", attention=True
        )
        assert isinstance(function, stepladder.Function)
        assert [launch.stage for launch in function.manifest.launches] == ["f_attention_0"]
        allowed.append(norm_tolerance(function.bundle))
    assert allowed[1] - allowed[0] == pytest.approx(2.0**-11)


@pytest.mark.filterwarnings("ignore:invalid value")  # of minus infinity, rounded
def test_each_step_on_the_emulator() -> None:
    reports: list[StepReport] = []
    with mlir_context():
        request = Request(pipeline_file("functions"), {"attention": True})
        text = stage_texts(run_pipeline(attention(100, 200, mask=_CAUSAL), "attention.mlir", request))["f_attention_0"]
        check_function_steps(text, "attention.mlir", Request(pipeline_file("attention")), reports.append)
    assert [report.step for report in reports][:5] == [
        "input",
        "distribute_attention",
        "bufferize_function",
        "copy_tiles_ahead",
        "decouple_warpgroups",
    ]
    assert all(report.passed for report in reports)
