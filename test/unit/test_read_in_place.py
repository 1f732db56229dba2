"""Contractions whose operands kernels read in another order from where they are, on the emulator: by TMA, or by the
strides of a batch."""

import numpy as np
import pytest

import stepladder
from combinations import combinations
from conftest import PROFILE, some_steps
from contraction_text import contraction
from small_integers import small
from stepladder.emulator.functions import EmulatedFunction
from stepladder.emulator.matmul import check_steps
from stepladder.emulator.step_report import StepReport
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.functions.stage_texts import stage_texts
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

TYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8}
PIPELINES = {"sm_75": "wmma", "sm_80": "mma_sync", "sm_90a": "wgmma"}
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
WARPGROUP = {"block_m": 64, "block_n": 32, "consumer_warpgroups": 1, "stages": 2}
pytestmark = pytest.mark.usefixtures("needs_ptxas")


def _built(spec: str, sizes: dict[str, int], **settings: int | str) -> FunctionBuild:
    with mlir_context():
        made = build_any(contraction(spec, sizes), spec, Request("auto", {"target": "sm_90a", **settings}, tuned=True))
    assert isinstance(made, FunctionBuild)
    return made


@pytest.mark.parametrize(
    ("spec", "sizes", "settings"),
    [
        # The last box reaches beyond the end of k.
        ("mkl,lkn->mn", {"m": 24, "k": 3, "l": 32, "n": 40}, {}),
        ("mpkl,lkpn->mn", {"m": 64, "p": 2, "k": 4, "l": 16, "n": 64}, {"cluster_m": 1, "cluster_n": 1}),
        # The scores of an attention, of tensors with the heads inside of the sequence.
        ("bshd,bthd->bhst", {"b": 2, "h": 2, "s": 24, "t": 40, "d": 32}, {}),
        # Blocks of a cluster load slices of boxes for each other.
        (
            "mkl,lkn->mn",
            {"m": 256, "k": 4, "l": 16, "n": 64},
            {"block_m": 64, "block_n": 64, "consumer_warpgroups": 1, "cluster_m": 4, "split_k": 1},
        ),
    ],
)
def test_operands_are_read_in_place(spec: str, sizes: dict[str, int], settings: dict[str, int]) -> None:
    made = _built(spec, sizes, **settings)
    assert len(made.bundle.manifest.launches) == 1
    assert made.bundle.manifest.workspace == 0
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, 0) if not report.passed] == []
    assert function.findings == []


def test_rows_of_several_axes_are_copied() -> None:
    made = _built("mkl,nlk->mn", {"m": 64, "k": 4, "l": 16, "n": 64})
    assert len(made.bundle.manifest.launches) == 2


def test_without_the_step_a_kernel_in_front_copies() -> None:
    text = contraction("mkl,lkn->mn", {"m": 64, "k": 4, "l": 16, "n": 64})
    request = Request("wgmma", {"target": "sm_90a"}, without=("load_in_place",), tuned=True)
    with mlir_context():
        made = build_any(text, "without", request)
    assert isinstance(made, FunctionBuild)
    assert (len(made.bundle.manifest.launches), made.bundle.manifest.workspace) == (1, 64 * 64 * 2)


def test_other_targets_copy() -> None:
    made = _built("mkl,lkn->mn", {"m": 64, "k": 4, "l": 16, "n": 64}, target="sm_80")
    assert len(made.bundle.manifest.launches) == 2


STRIDES = {
    "bshd,bthd->bhst": {"a": (2, 3), "b": (2, 3)},  # scores of heads inside of sequences
    "bhst,bthd->bshd": {"b": (2, 3), "c": (2, 3)},  # and what the weights are multiplied by
    "hbsd,dthb->bhst": {"a": (2, 3)},  # B has the batch innermost
    "bshdi,bthdi->bhdst": {"a": (2, 3), "b": (2, 3)},  # a batch of three dimensions and two strides
    # Of heads that share keys or values: matmuls that read one B.
    "bshgd,bthd->bhgst": {"a": (2, 24), "b": (2, 3, 8)},
    "bhgst,bthd->bshgd": {"b": (2, 3, 8), "c": (2, 24)},
    "bshd,btd->bhst": {"a": (2, 3), "b": (2, 3)},
    "bhst,btd->bshd": {"b": (2, 3), "c": (2, 3)},
}


@pytest.mark.parametrize("spec, target", combinations(STRIDES, ("sm_75", "sm_80", "sm_90a")))
def test_batches_of_several_strides_are_read_in_place(spec: str, target: str) -> None:
    """Also of tiles with edges; by `wgmma` in the same way, with descriptors of several dimensions."""
    sizes = {"b": 2, "h": 3, "s": 24, "t": 40, "d": 16, "i": 8, "g": 8}
    made = _built(spec, sizes, target=target)
    *copies, matmul = made.bundle.manifest.launches
    assert len(copies) == (spec == "hbsd,dthb->bhst")
    assert made.bundle.matmul(matmul).manifest.pipeline == PIPELINES[target]
    problem = made.bundle.matmul(matmul).manifest.problem
    windows = {role: problem.window(role) for role in "abc"}
    batches = {role: window.batch for role, window in windows.items() if window is not None and window.batch}
    extents = {"bshdi,bthdi->bhdst": (2, 48)}.get(spec)
    assert batches == {role: extents or batch for role, batch in STRIDES[spec].items()}
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, 0) if not report.passed] == []
    assert function.findings == []


@pytest.mark.parametrize("element", ["f32", "f64", "i8"])
@pytest.mark.parametrize("spec", ["bshd,bthd->bhst", "bshd,bhdt->bhst"], ids=["along k", "B along n"])
def test_other_elements_are_read_by_strides(element: str, spec: str) -> None:
    """Also with infinities, for which tiles of f32 are computed again."""
    text = contraction(spec, {"b": 2, "h": 3, "s": 24, "t": 32, "d": 16})
    sums = {"i8": "i32"}.get(element, element)
    text = text.replace("xf32", f"x{sums}").replace("xf16", f"x{element}").replace("(%zero : f32)", f"(%zero : {sums})")
    text = text.replace("0.0 : f32", "0 : i32" if sums == "i32" else f"0.0 : {sums}")
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0"]
    a = small(2, 24, 3, 16).astype(TYPES[element])
    b = small(*((2, 32, 3, 16) if spec.startswith("bshd,bthd") else (2, 3, 16, 32))).astype(TYPES[element])
    if element == "f32":
        a[1, 2, 1, 3] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = np.einsum(spec, a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_array_equal(np.asarray(function(a, b)).astype(np.float64), wanted)


def test_columns_as_whole_buffers_copy_batches_of_several_strides() -> None:
    made = _built("bshd,bthd->bhst", {"b": 2, "h": 2, "s": 24, "t": 40, "d": 32}, target="sm_80", columns=False)
    assert len(made.bundle.manifest.launches) == 2


@pytest.mark.parametrize(
    ("pipeline", "knobs"),
    [
        ("mma_sync", WARPS),
        ("wmma", WARPS),
        ("wgmma", WARPGROUP | {"persistent_blocks": 4}),
        ("wgmma", WARPGROUP | {"persistent_blocks": 4, "cluster_n": 2, "schedule": "pingpong"}),
        ("wgmma", WARPGROUP | {"persistent_blocks": 0, "epilogue": "registers", "block_k": 32, "split_k": 2}),
    ],
)
@pytest.mark.parametrize("spec", ["bshd,bthd->bhst", "bhst,btd->bshd"], ids=["a matrix each", "a shared B"])
def test_steps_read_batches_of_several_strides(pipeline: str, knobs: dict[str, int | str], spec: str) -> None:
    sizes = {"b": 2, "h": 3, "s": 24, "t": 40, "d": 48}
    reports: list[StepReport] = []
    with mlir_context():
        request = Request(pipeline_file("functions"), {"strided": True})
        text = stage_texts(run_pipeline(contraction(spec, sizes), "scores", request))["f_matmul_0"]
        request, chosen = Request(pipeline, knobs), some_steps(pipeline, knobs, spec)
        run = run_pipeline(text, "stage", request)
        check_steps(text, "stage", request, reports.append, is_chosen_step=chosen, finished=run)
        with pytest.raises(StepladderError, match="A or B must have one stride"):
            run_pipeline(text, "stage", Request("wgmma_multistage"))
    assert [report.step for report in reports if report.passed is False] == []
    assert sum(report.passed is True for report in reports) * 2 > len(reports)
    steps = {"divide_batch_index", "map_to_blocks"}
    assert steps <= {step.name for step in run.steps}
    assert PROFILE != "random" or {"input", *steps} <= {report.step for report in reports if report.passed}


@pytest.mark.parametrize("sequences", [1, 2])
@pytest.mark.parametrize("form, target", combinations(["columns", "stacked", "stacked and transposed"], PIPELINES))
def test_queries_and_keys_of_one_projection_are_read_in_place(form: str, sequences: int, target: str) -> None:
    """However a front end divides it: columns side by side, or a dimension of three, which is moved outwards or not."""
    function = stepladder.compile(projected(form, sequences), target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0", "f_matmul_1"]
    x, w = small(sequences * 24, 32).astype(np.float16), small(32, 3 * 48).astype(np.float16)
    heads = (x.astype(np.float64) @ w.astype(np.float64)).reshape(sequences, 24, 3, 3, 16)
    wanted = np.einsum("bshd,bthd->bhst", heads[:, :, 0], heads[:, :, 1]).reshape(-1, 24, 24)
    np.testing.assert_array_equal(np.asarray(function(x, w)).astype(np.float64), wanted)


def projected(form: str, sequences: int) -> str:
    """Returns the scores of three heads, of queries and keys that one matmul computes with the values."""
    rows, heads = sequences * 24, f"tensor<{sequences}x24x3x16xf16>"
    batch = f"tensor<{sequences}x3x24x16xf16>"
    if form == "columns":
        parts = "".join(
            f"""  %{name}_columns = tensor.extract_slice %p[0, {48 * number}] [{rows}, 48] [1, 1]
    : tensor<{rows}x144xf16> to tensor<{rows}x48xf16>
  %{name}_heads = tensor.expand_shape %{name}_columns [[0, 1], [2, 3]] output_shape [{sequences}, 24, 3, 16]
    : tensor<{rows}x48xf16> into {heads}
"""
            for number, name in enumerate("qk")
        )
    else:
        all_heads = f"tensor<{sequences}x24x3x3x16xf16>"
        parts = f"""  %all = tensor.expand_shape %p [[0, 1], [2, 3, 4]] output_shape [{sequences}, 24, 3, 3, 16]
    : tensor<{rows}x144xf16> into {all_heads}
"""
    if form == "stacked":
        parts += "".join(
            f"""  %{name}_heads = tensor.extract_slice %all[0, 0, {number}, 0, 0] [{sequences}, 24, 1, 3, 16]
    [1, 1, 1, 1, 1] : {all_heads} to {heads}
"""
            for number, name in enumerate("qk")
        )
    if form == "stacked and transposed":
        moved = f"tensor<3x{sequences}x3x24x16xf16>"
        parts += f"""  %m = tensor.empty() : {moved}
  %moved = linalg.transpose ins(%all : {all_heads}) outs(%m : {moved}) permutation = [2, 0, 3, 1, 4]
"""
        parts += "".join(
            f"""  %{name} = tensor.extract_slice %moved[{number}, 0, 0, 0, 0] [1, {sequences}, 3, 24, 16]
    [1, 1, 1, 1, 1] : {moved} to {batch}
"""
            for number, name in enumerate("qk")
        )
    else:
        parts += "".join(
            f"""  %{name}_e = tensor.empty() : {batch}
  %{name} = linalg.transpose ins(%{name}_heads : {heads}) outs(%{name}_e : {batch}) permutation = [0, 2, 1, 3]
"""
            for name in "qk"
        )
    collapsed = f"tensor<{sequences * 3}x24x16xf16>"
    scores = f"tensor<{sequences * 3}x24x24xf32>"
    return f"""#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, n, k)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @f(%x: tensor<{rows}x32xf16>, %w: tensor<32x144xf16>) -> {scores} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{rows}x144xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{rows}x144xf32>) -> tensor<{rows}x144xf32>
  %sums = linalg.matmul ins(%x, %w : tensor<{rows}x32xf16>, tensor<32x144xf16>) outs(%z : tensor<{rows}x144xf32>)
    -> tensor<{rows}x144xf32>
  %h = tensor.empty() : tensor<{rows}x144xf16>
  %p = linalg.map {{ arith.truncf }} ins(%sums : tensor<{rows}x144xf32>) outs(%h : tensor<{rows}x144xf16>)
{parts}  %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : {batch} into {collapsed}
  %kc = tensor.collapse_shape %k [[0, 1], [2], [3]] : {batch} into {collapsed}
  %f = tensor.empty() : {scores}
  %y = linalg.fill ins(%zero : f32) outs(%f : {scores}) -> {scores}
  %s = linalg.batch_matmul indexing_maps = [#a, #b, #c] ins(%qc, %kc : {collapsed}, {collapsed}) outs(%y : {scores})
    -> {scores}
  return %s : {scores}
}}
"""
