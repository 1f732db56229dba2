"""Contractions whose operands kernels read in another order from where they are, on the emulator: by TMA, or by the
strides of a batch."""

import numpy as np
import pytest

import stepladder
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
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
pytestmark = pytest.mark.usefixtures("needs_ptxas")


def _contraction(spec: str, sizes: dict[str, int]) -> str:
    """Returns a payload of the dimensions of A, B and C, as `einsum` writes them."""
    inputs, c = spec.split("->")
    a, b = inputs.split(",")
    loops = dict.fromkeys(c + a + b)

    def map_of(dimensions: str) -> str:
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(dimensions)})>"

    def tensor(dimensions: str, element: str) -> str:
        return f"tensor<{'x'.join(str(sizes[name]) for name in dimensions)}x{element}>"

    return f"""func.func @contraction(%a: {tensor(a, "f16")}, %b: {tensor(b, "f16")}) -> {tensor(c, "f32")} {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : {tensor(c, "f32")}
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : {tensor(c, "f32")}) -> {tensor(c, "f32")}
  %sums = linalg.contract indexing_maps = [{map_of(a)}, {map_of(b)}, {map_of(c)}]
    ins(%a, %b : {tensor(a, "f16")}, {tensor(b, "f16")}) outs(%zeros : {tensor(c, "f32")}) -> {tensor(c, "f32")}
  return %sums : {tensor(c, "f32")}
}}
"""


def _built(spec: str, sizes: dict[str, int], **settings: int | str) -> FunctionBuild:
    with mlir_context():
        made = build_any(_contraction(spec, sizes), spec, Request("auto", {"target": "sm_90a", **settings}, tuned=True))
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
    text = _contraction("mkl,lkn->mn", {"m": 64, "k": 4, "l": 16, "n": 64})
    request = Request("wgmma", {"target": "sm_90a"}, without=("load_in_place",), tuned=True)
    with mlir_context():
        made = build_any(text, "without", request)
    assert isinstance(made, FunctionBuild)
    assert (len(made.bundle.manifest.launches), made.bundle.manifest.workspace) == (1, 64 * 64 * 2)


def test_other_targets_copy() -> None:
    made = _built("mkl,lkn->mn", {"m": 64, "k": 4, "l": 16, "n": 64}, target="sm_80")
    assert len(made.bundle.manifest.launches) == 2


@pytest.mark.parametrize("target", ["sm_75", "sm_80"])
@pytest.mark.parametrize(
    ("spec", "strides"),
    [
        ("bshd,bthd->bhst", {"a": (2, 3), "b": (2, 3)}),  # scores of heads inside of sequences
        ("bhst,bthd->bshd", {"b": (2, 3), "c": (2, 3)}),  # and what the weights are multiplied by
        ("hbsd,dthb->bhst", {"a": (2, 3)}),  # B has the batch innermost
        ("bshdi,bthdi->bhdst", {"a": (2, 3), "b": (2, 3)}),  # a batch of three dimensions and two strides
    ],
)
def test_batches_of_several_strides_are_read_in_place(
    spec: str, strides: dict[str, tuple[int, ...]], target: str
) -> None:
    """By kernels of `mma_sync` and `wmma`, whose tiles have edges here."""
    sizes = {"b": 2, "h": 3, "s": 24, "t": 40, "d": 16, "i": 8}
    made = _built(spec, sizes, target=target)
    *copies, matmul = made.bundle.manifest.launches
    assert len(copies) == (spec == "hbsd,dthb->bhst")
    problem = made.bundle.matmul(matmul).manifest.problem
    windows = {role: problem.window(role) for role in "abc"}
    batches = {role: window.batch for role, window in windows.items() if window is not None and window.batch}
    extents = {"bshdi,bthdi->bhdst": (2, 48)}.get(spec)
    assert batches == {role: extents or batch for role, batch in strides.items()}
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, 0) if not report.passed] == []
    assert function.findings == []


@pytest.mark.parametrize("element", ["f32", "f64", "i8"])
@pytest.mark.parametrize("spec", ["bshd,bthd->bhst", "bshd,bhdt->bhst"], ids=["along k", "B along n"])
def test_other_elements_are_read_by_strides(element: str, spec: str) -> None:
    """Also with infinities, for which tiles of f32 are computed again."""
    text = _contraction(spec, {"b": 2, "h": 3, "s": 24, "t": 32, "d": 16})
    sums = {"i8": "i32"}.get(element, element)
    text = text.replace("xf32", f"x{sums}").replace("xf16", f"x{element}").replace("(%zero : f32)", f"(%zero : {sums})")
    text = text.replace("0.0 : f32", "0 : i32" if sums == "i32" else f"0.0 : {sums}")
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["contraction_matmul_0"]
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


@pytest.mark.parametrize("pipeline", ["mma_sync", "wmma"])
def test_each_step_reads_batches_of_several_strides(pipeline: str) -> None:
    sizes = {"b": 2, "h": 3, "s": 24, "t": 40, "d": 16}
    reports: list[StepReport] = []
    with mlir_context():
        request = Request(pipeline_file("functions"), {"strided": True})
        text = stage_texts(run_pipeline(_contraction("bshd,bthd->bhst", sizes), "scores", request))[
            "contraction_matmul_0"
        ]
        check_steps(text, "stage", Request(pipeline, WARPS), reports.append)
        with pytest.raises(StepladderError, match="one stride between the matrices of a batch"):
            run_pipeline(text, "stage", Request("wgmma_multistage"))
    assert [report.step for report in reports if report.passed is False] == []
    assert {"input", "divide_batch_index", "map_to_blocks"} <= {report.step for report in reports if report.passed}
