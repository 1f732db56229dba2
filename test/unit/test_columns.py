"""Columns of tensors, and merged heads, that matmuls write with a row pitch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from placed_products import product
from stepladder.emulator.functions import EmulatedFunction
from stepladder.runtime.bundle import Bundle, FunctionBuffer, read_any
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

pytestmark = pytest.mark.usefixtures("needs_ptxas")

TRANSFORMS = Path(__file__).resolve().parents[2] / "transforms"
MERGED_ALONE = (TRANSFORMS.parent / "test" / "inputs" / "payloads" / "merged_heads.mlir").read_text()


def side_by_side(widths: tuple[int, int] = (64, 24), behind: str = "", returned: str = "%c", results: str = "") -> str:
    """Returns two products of one A, of which one tensor is made, columns beside columns."""
    one, other = (f"tensor<40x{count}xf32>" for count in widths)
    weights = ", ".join(f"%{name}: tensor<48x{count}xf16>" for name, count in zip("vw", widths))
    whole = f"tensor<40x{sum(widths)}xf32>"
    return f"""func.func @f(%x: tensor<40x48xf16>, {weights}) -> ({results or whole}) {{
  %zero = arith.constant 0.0 : f32
{product("p", 40, "%x", "%v", widths[0])}{product("q", 40, "%x", "%w", widths[1])}
  %c = tensor.concat dim(1) %p, %q : ({one}, {other}) -> {whole}
{behind}  return {returned} : {results or whole}
}}
"""


ROUNDED = """  %h = tensor.empty() : tensor<40x88xf16>
  %t = linalg.map { arith.truncf } ins(%c : tensor<40x88xf32>) outs(%h : tensor<40x88xf16>)
"""
# Heads along a middle axis of a batch: columns of [3 x 16] x [2 x 32].
HEADS = """func.func @f(%x: tensor<3x16x48xf16>, %v: tensor<3x48x32xf16>, %w: tensor<3x48x32xf16>)
    -> tensor<3x16x2x32xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x16x32xf32>) -> tensor<3x16x32xf32>
  %h = tensor.empty() : tensor<3x16x32xf16>
  %p = linalg.batch_matmul ins(%x, %v : tensor<3x16x48xf16>, tensor<3x48x32xf16>) outs(%z : tensor<3x16x32xf32>)
    -> tensor<3x16x32xf32>
  %q = linalg.batch_matmul ins(%x, %w : tensor<3x16x48xf16>, tensor<3x48x32xf16>) outs(%z : tensor<3x16x32xf32>)
    -> tensor<3x16x32xf32>
  %r = linalg.map { arith.truncf } ins(%p : tensor<3x16x32xf32>) outs(%h : tensor<3x16x32xf16>)
  %s = linalg.map { arith.truncf } ins(%q : tensor<3x16x32xf32>) outs(%h : tensor<3x16x32xf16>)
  %o = tensor.empty() : tensor<3x16x2x32xf16>
  %t = tensor.insert_slice %r into %o[0, 0, 0, 0] [3, 16, 1, 32] [1, 1, 1, 1]
    : tensor<3x16x32xf16> into tensor<3x16x2x32xf16>
  %u = tensor.insert_slice %s into %t[0, 0, 1, 0] [3, 16, 1, 32] [1, 1, 1, 1]
    : tensor<3x16x32xf16> into tensor<3x16x2x32xf16>
  return %u : tensor<3x16x2x32xf16>
}
"""


COLLAPSED = "  %u = tensor.collapse_shape %t2 [[0], [1], [2, 3]] : tensor<3x16x2x32xf16> into tensor<3x16x64xf16>\n"
COLLAPSED += "  return %u : tensor<3x16x64xf16>"
MERGED = HEADS.replace("%u = tensor.insert", "%t2 = tensor.insert")
MERGED = MERGED.replace("  return %u : tensor<3x16x2x32xf16>", COLLAPSED)
MERGED = MERGED.replace("    -> tensor<3x16x2x32xf16> {", "    -> tensor<3x16x64xf16> {")


LINEAR = """#matrices = affine_map<(b, m, n, k) -> (b, m, k)>
#weights = affine_map<(b, m, n, k) -> (k, n)>
#results = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @f(%x: tensor<2x24x48xf16>, %v: tensor<48x16xf16>, %w: tensor<48x16xf16>) -> tensor<2x24x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x24x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x24x16xf32>) -> tensor<2x24x16xf32>
  %p = linalg.contract indexing_maps = [#matrices, #weights, #results]
    ins(%x, %v : tensor<2x24x48xf16>, tensor<48x16xf16>) outs(%z : tensor<2x24x16xf32>) -> tensor<2x24x16xf32>
  %q = linalg.contract indexing_maps = [#matrices, #weights, #results]
    ins(%x, %w : tensor<2x24x48xf16>, tensor<48x16xf16>) outs(%z : tensor<2x24x16xf32>) -> tensor<2x24x16xf32>
  %c = tensor.concat dim(2) %p, %q : (tensor<2x24x16xf32>, tensor<2x24x16xf32>) -> tensor<2x24x32xf32>
  return %c : tensor<2x24x32xf32>
}
"""


def columns_of(x: np.ndarray, v: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.astype(np.float32) @ v.astype(np.float32), x.astype(np.float32) @ w.astype(np.float32)


@pytest.mark.parametrize(
    ("chip", "text", "expected", "others", "strides"),
    [
        ("sm_75", side_by_side(), lambda p, q: np.concatenate([p, q], 1), 0, {(88, 1)}),
        ("sm_90a", side_by_side(), lambda p, q: np.concatenate([p, q], 1), 0, {(88, 1)}),
        # Of a buffer between kernels, which the next one reads.
        (
            "sm_80",
            side_by_side(behind=ROUNDED, returned="%t", results="tensor<40x88xf16>"),
            lambda p, q: np.concatenate([p, q], 1),
            1,
            {(88, 1)},
        ),
        ("sm_80", HEADS, lambda p, q: np.stack([p, q], 2), 0, {(1024, 64, 1)}),
        ("sm_90a", HEADS, lambda p, q: np.stack([p, q], 2), 0, {(1024, 64, 1)}),
        # Of a batch whose rows are those of one matmul, by a broadcast weight.
        ("sm_80", LINEAR, lambda p, q: np.concatenate([p, q], 2), 0, {(768, 32, 1)}),
        # Returned in another shape.
        ("sm_80", MERGED, lambda p, q: np.concatenate([p, q], 2), 0, {(1024, 64, 1)}),
        # What another op reads too is a buffer of its own, and what no vector begins at.
        (
            "sm_80",
            side_by_side(returned="%c, %p", results="tensor<40x88xf32>, tensor<40x64xf32>"),
            lambda p, q: (np.concatenate([p, q], 1), p),
            1,
            set(),
        ),
        ("sm_80", side_by_side((64, 23)), lambda p, q: np.concatenate([p, q], 1), 1, set()),
    ],
    ids=[
        "result",
        "by TMA",
        "workspace",
        "heads",
        "heads by TMA",
        "batch of rows",
        "collapsed",
        "returned too",
        "not aligned",
    ],
)
def test_columns_are_written_in_place(
    chip: str,
    text: str,
    expected: Callable[..., np.ndarray | tuple[np.ndarray, ...]],
    others: int,
    strides: set[tuple[int, ...]],
) -> None:
    function = stepladder.compile(text, target=chip, device="emulator")
    assert isinstance(function, stepladder.Function)
    manifest = function.manifest
    assert sum(launch.kernel is not None and not launch.grouped for launch in manifest.launches) == others
    assert {buffer.strides for buffer in manifest.buffers} - {None} == strides
    assert (manifest.schema_version == 10) == bool(strides)
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, item.shape).astype(np.float16) for item in function.inputs]
    got, wanted = function(*arrays), expected(*columns_of(*arrays))
    for one, other in zip(*(item if isinstance(item, tuple) else (item,) for item in (got, wanted)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))


# Two gated pairs, each one kernel.
GATED = """#id = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<40x48xf16>, %v: tensor<48x64xf16>, %w: tensor<48x64xf16>, %t: tensor<48x64xf16>,
    %u: tensor<48x64xf16>) -> tensor<40x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<40x64xf32>) -> tensor<40x64xf32>
"""
for _gate, _up, _name in (("%v", "%w", "one"), ("%t", "%u", "other")):
    GATED += f"""  %g{_name} = linalg.matmul ins(%x, {_gate} : tensor<40x48xf16>, tensor<48x64xf16>)
    outs(%z : tensor<40x64xf32>) -> tensor<40x64xf32>
  %u{_name} = linalg.matmul ins(%x, {_up} : tensor<40x48xf16>, tensor<48x64xf16>)
    outs(%z : tensor<40x64xf32>) -> tensor<40x64xf32>
  %{_name} = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%g{_name}, %u{_name} : tensor<40x64xf32>, tensor<40x64xf32>) outs(%e : tensor<40x64xf32>) {{
  ^bb0(%g: f32, %p: f32, %out: f32):
    %r = arith.maximumf %g, %zero : f32
    %m = arith.mulf %r, %p : f32
    linalg.yield %m : f32
  }} -> tensor<40x64xf32>
"""
GATED += """  %c = tensor.concat dim(1) %one, %other : (tensor<40x64xf32>, tensor<40x64xf32>) -> tensor<40x128xf32>
  return %c : tensor<40x128xf32>
}
"""


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90a"])
def test_columns_of_gated_pairs(chip: str) -> None:
    function = stepladder.compile(GATED, target=chip, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [buffer.strides for buffer in written(function)] == [(128, 1)] * 2
    assert all(launch.kernel is None for launch in function.manifest.launches)
    generator = np.random.default_rng(0)
    x, *others = [generator.integers(-3, 4, item.shape).astype(np.float16) for item in function.inputs]
    v, w, t, u = (x.astype(np.float32) @ item.astype(np.float32) for item in others)
    exact = np.concatenate([np.maximum(v, 0) * w, np.maximum(t, 0) * u], axis=1)
    np.testing.assert_array_equal(function(x, *others), exact)


def written(function: stepladder.Function) -> list[FunctionBuffer]:
    """Returns the buffers that the launches of a function write."""
    return [function.manifest.buffers[number] for launch in function.manifest.launches for number in launch.written]


@pytest.mark.parametrize("rows", [2, 5, 8])
def test_columns_of_few_rows(rows: int) -> None:
    """Swapped operands: the columns of the product are rows of C in the larger tensor."""
    text = side_by_side().replace("40x", f"{rows}x")
    function = stepladder.compile(text, target="sm_90a", device="emulator", swap_operands=True, groups=False)
    assert isinstance(function, stepladder.Function)
    assert [buffer.strides for buffer in written(function)] == [(88, 1)] * 2
    assert all(bundle.manifest.knobs["swap_operands"] for bundle in matmuls(function))
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, item.shape).astype(np.float16) for item in function.inputs]
    np.testing.assert_array_equal(function(*arrays), np.concatenate(columns_of(*arrays), axis=1))


def matmuls(function: stepladder.Function) -> list[Bundle]:
    """Returns the bundles of a function's matmuls."""
    return [item for item in function.bundle.kernels.values() if isinstance(item, Bundle)]


def test_columns_of_a_bundle(tmp_path: Path) -> None:
    """Columns of one launch each, and of one for both; what a manifest says about them is checked."""
    for groups in (False, True):
        function = stepladder.compile(side_by_side(), target="sm_80", device="emulator", groups=groups)
        assert isinstance(function, stepladder.Function)
        assert len(function.manifest.launches) == 2 - groups
        assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))
        path = tmp_path / f"columns{groups}.bundle"
        function.save(path)
        read = read_any(path)
        assert all(report.passed for report in check_function(read, EmulatedFunction(read), 1))
        original = json.loads((path / "manifest.json").read_text())
        first = next(place for place, item in enumerate(original["buffers"]) if "strides" in item)
        for field, value, message in (
            ("schema_version", 9, "strides' requires schema_version 10"),
            ("strides", [87, 1], "and the kernel takes"),
            ("strides", [88, 2], "must be of dense rows that are apart"),
            ("strides", [48, 1], "must be of dense rows that are apart"),
            ("offset", 16, "must write result 0"),
        ):
            edited = json.loads(json.dumps(original))
            (edited if field == "schema_version" else edited["buffers"][first])[field] = value
            (path / "manifest.json").write_text(json.dumps(edited))
            with pytest.raises(StepladderError, match=message):
                read_any(path)


# The merged heads of an attention, and the projection that follows.
PROJECTED = """func.func @f(%p: tensor<4x16x32xf32>, %v: tensor<4x32x16xf32>, %w: tensor<64x32xf32>)
    -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x16x32xf32>, tensor<4x32x16xf32>) outs(%z : tensor<4x16x16xf32>)
    -> tensor<4x16x16xf32>
  %g = tensor.empty() : tensor<16x4x16xf32>
  %t = linalg.transpose ins(%o : tensor<4x16x16xf32>) outs(%g : tensor<16x4x16xf32>) permutation = [1, 0, 2]
  %m = tensor.collapse_shape %t [[0], [1, 2]] : tensor<16x4x16xf32> into tensor<16x64xf32>
  %h = tensor.empty() : tensor<16x32xf32>
  %y = linalg.fill ins(%zero : f32) outs(%h : tensor<16x32xf32>) -> tensor<16x32xf32>
  %r = linalg.matmul ins(%m, %w : tensor<16x64xf32>, tensor<64x32xf32>) outs(%y : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
"""


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90a"])
def test_merged_heads_of_a_function(chip: str) -> None:
    """No kernel transposes them."""
    function = stepladder.compile(PROJECTED.replace("f32", "f16"), target=chip, device="emulator")
    assert isinstance(function, stepladder.Function)
    assert [launch.stage for launch in function.manifest.launches] == ["f_matmul_0", "f_matmul_1"]
    generator = np.random.default_rng(0)
    p, v, w = (generator.integers(-1, 2, item.shape).astype(np.float16) for item in function.inputs)
    merged = np.einsum("hmk,hkn->mhn", p.astype(np.float64), v.astype(np.float64)).reshape(16, 64)
    np.testing.assert_array_equal(function(p, v, w), (merged @ w.astype(np.float64)).astype(np.float16))
    assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))


def test_columns_are_copied_where_a_pipeline_does_not_write_them(tmp_path: Path) -> None:
    """One with a step that takes whole buffers."""
    own = tmp_path / "mma_sync.mlir"
    own.write_text((TRANSFORMS / "mma_sync.mlir").read_text())
    step = (TRANSFORMS / "steps" / "tile_to_blocks.mlir").read_text()
    assert "windows == 0 or takes_windows" in step
    (tmp_path / "tile_to_blocks.mlir").write_text(step.replace("windows == 0 or takes_windows", "windows == 0"))
    for text, chosen in (
        (side_by_side(), {"pipeline": own, "target": "sm_80"}),
        (PROJECTED, {"pipeline": own, "target": "sm_80"}),
        (MERGED_ALONE, {"pipeline": own, "target": "sm_80"}),
        (PROJECTED.replace("f32", "f16"), {"columns": False, "target": "sm_90a"}),
        (side_by_side(), {"columns": False, "target": "sm_90a"}),
    ):
        function = stepladder.compile(text, device="emulator", **chosen)
        assert isinstance(function, stepladder.Function)
        assert any(launch.stage.endswith("_elementwise_0") for launch in function.manifest.launches)
        assert all(buffer.strides is None for buffer in function.manifest.buffers)
