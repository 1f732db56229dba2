"""Batches that A and B have inside, as `mbk` and `kbn`: kernels read matrices with a row pitch, and none transposes
them."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from bundles import change, edit_manifest, refusal
from combinations import combinations
from contraction_text import contraction
from stepladder.cli.main import main
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.problem import Window

pytestmark = pytest.mark.usefixtures("needs_ptxas")

SAME = "affine_map<(i, j, k) -> (i, j, k)>"
SIZES = {"b": 3, "m": 33, "n": 40, "k": 24}


def exact(a: np.ndarray, b: np.ndarray, axes: str) -> np.ndarray:
    return np.einsum(axes, a.astype(np.float64), b.astype(np.float64))


def check(function: Callable[..., object], axes: str, sizes: Mapping[str, int], kind: type) -> None:
    """Compares a contraction with NumPy's, of small integers.

    Args:
        function: computes it.
        axes: of A, B and C, as `einsum` writes them.
        sizes: of the axes.
        kind: type of A's and B's elements.
    """
    rng = np.random.default_rng(0)
    shapes = ([sizes[axis] for axis in item] for item in axes.partition("->")[0].split(","))
    a, b = (rng.integers(-2, 3, shape).astype(kind) for shape in shapes)
    np.testing.assert_array_equal(np.asarray(function(a, b)), exact(a, b, axes))


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("a, b", list(itertools.product(["mbk", "bmk"], ["kbn", "nbk"])))
def test_batches_inside_are_read_where_they_are(a: str, b: str, target: str) -> None:
    kernel = stepladder.compile(contraction(f"{a},{b}->bmn", SIZES), target=target, device="emulator")
    assert isinstance(kernel, stepladder.Kernel)
    problem = kernel.manifest.problem
    assert problem.b_window is not None and (problem.a_window is not None) == (a == "mbk")
    assert not kernel.manifest.front
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, [SIZES[axis] for axis in axes]).astype(np.float16) for axes in (a, b))
    np.testing.assert_array_equal(np.asarray(kernel(x, y)), exact(x, y, f"{a},{b}->bmn"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "a, element, sizes", [("mbk", "f32", {}), ("mbk", "f16", {"k": 25})], ids=["f32", "rows that are not aligned"]
)
def test_other_elements_and_rows_are_copied(
    a: str, element: str, sizes: dict[str, int], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for axis, size in sizes.items():
        monkeypatch.setitem(SIZES, axis, size)
    function = stepladder.compile(contraction(f"{a},bkn->bmn", SIZES, element), target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    rng = np.random.default_rng(0)
    kind = {"f32": np.float32, "f16": np.float16}[element]
    x, y = (rng.integers(-2, 3, [SIZES[axis] for axis in axes]).astype(kind) for axes in (a, "bkn"))
    np.testing.assert_array_equal(np.asarray(function(x, y)), exact(x, y, f"{a},bkn->bmn"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "axes, kernels",
    [("mbk,nbk->bmn", {"sm_80": 1, "sm_90a": 1}), ("cmbk,cnbk->cbmn", {"sm_80": 1, "sm_90a": 1})]
    + [("mbk,bkn->bmn", {"sm_80": 1, "sm_90a": 2})],  # B is not along k
)
def test_elements_of_8_bits_along_k(axes: str, kernels: dict[str, int], target: str) -> None:
    """Sums over blocks of k, which have scales of their own, of fp8: `wgmma` reads the blocks where they are."""
    sizes = SIZES | {"c": 2, "k": 32}
    function = stepladder.compile(contraction(axes, sizes, "f8E4M3FN"), target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert len(function.manifest.launches) == kernels[target]
    check(function, axes, sizes, ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_kernel_of_a_function_reads_them_too(target: str) -> None:
    """Two products of one A, and one that is both operands: each is one kernel, and no other one copies."""
    x, w = "tensor<32x3x24xf16>", "tensor<24x3x40xf16>"
    maps = ("(m, b, k)", "(k, b, n)", "(b, m, n)"), ("(m, b, k)", "(n, b, k)", "(b, m, n)")
    own = [", ".join(f"affine_map<(b, m, n, k) -> {axes}>" for axes in item) for item in maps]
    text = f"""func.func @f(%A: {x}, %B: {w}) -> (tensor<3x32x40xf32>, tensor<3x32x32xf32>) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x32x40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x32x40xf32>) -> tensor<3x32x40xf32>
  %p = linalg.contract indexing_maps = [{own[0]}] ins(%A, %B : {x}, {w}) outs(%z : tensor<3x32x40xf32>)
    -> tensor<3x32x40xf32>
  %d = tensor.empty() : tensor<3x32x32xf32>
  %y = linalg.fill ins(%zero : f32) outs(%d : tensor<3x32x32xf32>) -> tensor<3x32x32xf32>
  %q = linalg.contract indexing_maps = [{own[1]}] ins(%A, %A : {x}, {x}) outs(%y : tensor<3x32x32xf32>)
    -> tensor<3x32x32xf32>
  return %p, %q : tensor<3x32x40xf32>, tensor<3x32x32xf32>
}}
"""
    function = stepladder.compile(text, target=target, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.kernel for launch in function.manifest.launches] == [None, None]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 3, 24), (24, 3, 40)))
    first, second = function(a, b)
    np.testing.assert_array_equal(np.asarray(first), exact(a, b, "mbk,kbn->bmn"))
    np.testing.assert_array_equal(np.asarray(second), exact(a, a, "mbk,nbk->bmn"))


EXPERTS = (
    ("td,edf->tef", {}, 3),
    ("edf,td->tef", {}, 3),
    ("td,gedf->tgef", {}, 6),
    ("td,edf->tef", {"f": 24}, 3),
    ("td,edf->tef", {"t": 520, "f": 24}, None),  # many rows and few columns: one matmul of copied weights
    ("td,edf->tef", {"f": 8}, None),
    ("td,edf->tef", {"f": 65}, None),  # rows of the result that are not aligned
)


@pytest.mark.parametrize("case, target", combinations(EXPERTS, ("sm_75", "sm_80", "sm_90a")))
def test_weights_of_experts_are_read_where_they_are(case: tuple[str, dict[str, int], int | None], target: str) -> None:
    axes, sizes, batch = case
    sizes = {"t": 40, "e": 3, "g": 2, "d": 32, "f": 72} | sizes
    kernel = stepladder.compile(contraction(axes, sizes), target=target, device="emulator")
    assert isinstance(kernel, stepladder.Kernel) == (batch is not None)
    if isinstance(kernel, stepladder.Kernel):
        problem = kernel.manifest.problem
        assert (problem.batch, problem.m, problem.n) == (batch, 40, sizes["f"])
        assert not kernel.manifest.front
    check(kernel, axes, sizes, np.float16)


HEADS = (
    ("qhd,td->hqt", {}, 4),
    ("hqt,td->qhd", {}, 4),
    ("td,qhd->thq", {}, 4),
    ("qghd,dt->ghqt", {}, 8),
    ("qhd,td->hqt", {"q": 20, "h": 24}, 20),  # the larger matrices are those of 24 heads
    ("qhd,td->hqt", {"q": 12}, None),  # few rows: one matmul of copied queries
    ("qhd,td->hqt", {"t": 520}, None),
    ("qghd,td->hgqt", {}, None),  # three groups
)


@pytest.mark.parametrize("case, target", combinations(HEADS, ("sm_75", "sm_80", "sm_90a")))
def test_heads_that_share_keys_are_a_batch(case: tuple[str, dict[str, int], int | None], target: str) -> None:
    """The queries of each head are read where they are, and results of each are written where the heads are merged."""
    axes, sizes, batch = case
    sizes = {"q": 40, "h": 4, "g": 2, "t": 24, "d": 32} | sizes
    kernel = stepladder.compile(contraction(axes, sizes), target=target, device="emulator")
    assert isinstance(kernel, stepladder.Kernel) == (batch is not None)
    if isinstance(kernel, stepladder.Kernel):
        assert kernel.manifest.problem.batch == batch
        assert not kernel.manifest.front
    check(kernel, axes, sizes, np.float16)


def test_matrices_that_a_kernel_prepares_are_loaded_with_their_strides(tmp_path: Path) -> None:
    """The descriptor of the workspace that A is made in, whose batch is inside, has the pitch of its rows."""
    text = contraction("mbk,bkn->bmn", SIZES)
    made, given = f"tensor<{SIZES['m']}x{SIZES['b']}x{SIZES['k']}xf16>", "%a"
    text = text.replace(f"func.func @f({given}:", "func.func @f(%x:").replace(
        "  %zero",
        f"""  %low = arith.constant 0.0 : f16
  %w = tensor.empty() : {made}
  %a = linalg.generic {{indexing_maps = [{SAME}, {SAME}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x : {made}) outs(%w : {made}) {{
  ^bb0(%in: f16, %out: f16):
    %y = arith.maximumf %in, %low : f16
    linalg.yield %y : f16
  }} -> {made}
  %zero""",
        1,
    )
    path = tmp_path / "prepared.bundle"
    with mlir_context():
        build(text, "prepared.mlir", Request("wgmma", {"block_m": 64, "block_n": 32, "consumer_warpgroups": 1})).write(
            path
        )
    manifest = read_bundle(path).manifest
    assert manifest.problem.a_window == Window((33, 3, 24), 0, (24, 72, 1))
    assert (manifest.tma_descriptors[0].role, manifest.tma_descriptors[0].strides) == ("w0", (48, 144))
    assert main(["emulate", str(path)]) == 0  # runs the PTX of both kernels, with these descriptors
    edit_manifest(path, change("tma_descriptors.0.strides", [144, 48]))
    assert "strides' must be [1584, 48], those of 'w0'" in refusal(path)
