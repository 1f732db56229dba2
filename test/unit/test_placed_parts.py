"""Results of matmuls that are parts of one tensor, such as stacked heads: kernels write them in their places."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from stepladder.emulator.functions import EmulatedFunction
from stepladder.runtime.bundle import Bundle, FunctionBuffer, read_any
from stepladder.runtime.bundle.function_rules import check_function as check_buffers
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

pytestmark = pytest.mark.usefixtures("needs_ptxas")

LAST = "tensor<32x64xf32>"


def product(name: str, rows: int, x: str, w: str = "%w", columns: int = 64) -> str:
    sums = f"tensor<{rows}x{columns}xf32>"
    return f"""  %e{name} = tensor.empty() : {sums}
  %z{name} = linalg.fill ins(%zero : f32) outs(%e{name} : {sums}) -> {sums}
  %{name} = linalg.matmul ins({x}, {w} : tensor<{rows}x48xf16>, tensor<48x{columns}xf16>) outs(%z{name} : {sums})
    -> {sums}
"""


def joined(rows: tuple[int, int], columns: int = 64, behind: str = "", returned: str = "%c", results: str = "") -> str:
    """Returns two products of one weight, of which one tensor is made, rows behind rows."""
    one, other = (f"tensor<{count}x{columns}xf32>" for count in rows)
    whole = f"tensor<{sum(rows)}x{columns}xf32>"
    x, y = (f"tensor<{count}x48xf16>" for count in rows)
    third = ", %g: tensor<8x48xf16>" if "%g" in behind else ""
    return f"""func.func @f(%x: {x}, %y: {y}, %w: tensor<48x{columns}xf16>{third}) -> ({results or whole}) {{
  %zero = arith.constant 0.0 : f32
{product("p", rows[0], "%x", columns=columns)}{product("q", rows[1], "%y", columns=columns)}
  %c = tensor.concat dim(0) %p, %q : ({one}, {other}) -> {whole}
{behind}  return {returned} : {results or whole}
}}
"""


HALVES = f"""  %h = tensor.empty() : tensor<32x64xf16>
  %t = linalg.map {{ arith.truncf }} ins(%c : {LAST}) outs(%h : tensor<32x64xf16>)
"""
NESTED = f"""{product("r", 8, "%g")}
  %d = tensor.concat dim(0) %r, %c : (tensor<8x64xf32>, tensor<16x64xf32>) -> tensor<24x64xf32>
"""
OVERLAP = """  %e = tensor.empty() : tensor<12x64xf32>
  %s = tensor.insert_slice %p into %e[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<12x64xf32>
  %t = tensor.insert_slice %q into %s[4, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<12x64xf32>
"""
SWAPPED = "  %d = tensor.concat dim(0) %q, %p : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>\n"


def rows_of(x: np.ndarray, y: np.ndarray, w: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    p, q, *rest = (item.astype(np.float32) @ w.astype(np.float32) for item in (x, y, *others))
    return [p, q, np.concatenate([p, q]), *rest]


@pytest.mark.parametrize(
    ("text", "expected", "others", "parts"),
    [
        (joined((7, 33)), lambda p, q, c: c, 0, ["result_part"] * 2),
        (joined((8, 24), behind=HALVES, returned="%t", results="tensor<32x64xf16>"), lambda p, q, c: c, 1, []),
        (
            joined((8, 8), behind=NESTED, returned="%d", results="tensor<24x64xf32>"),
            lambda p, q, c, r: np.concatenate([r, c]),
            0,
            ["result_part"] * 3,
        ),
        # The copy of a part that is a result too.
        (
            joined((8, 24), returned="%c, %p", results=f"{LAST}, tensor<8x64xf32>"),
            lambda p, q, c: (c, p),
            1,
            ["result_part"] * 2,
        ),
        # Parts of one tensor alone are in their places.
        (
            joined((8, 8), behind=SWAPPED, returned="%c, %d", results="tensor<16x64xf32>, tensor<16x64xf32>"),
            lambda p, q, c: (c, np.concatenate([q, p])),
            1,
            ["result_part"] * 2,
        ),
        (joined((7, 33), columns=5), lambda p, q, c: c, 1, []),  # 140 bytes
        (
            joined((8, 8), behind=OVERLAP, returned="%t", results="tensor<12x64xf32>"),
            lambda p, q, c: np.concatenate([p[:4], q]),
            1,
            [],
        ),
    ],
    ids=["result", "workspace", "nested", "returned too", "of two tensors", "not aligned", "overlapping"],
)
def test_parts_are_written_in_place(
    text: str, expected: Callable[..., np.ndarray | tuple[np.ndarray, ...]], others: int, parts: list[str]
) -> None:
    function = stepladder.compile(text, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    manifest = function.manifest
    assert sum(launch.kernel is not None and not launch.grouped for launch in manifest.launches) == others
    assert [buffer.kind for buffer in manifest.buffers if buffer.kind == "result_part"] == parts
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, item.shape).astype(np.float16) for item in function.inputs]
    got = function(*arrays)
    wanted = expected(*rows_of(*arrays))
    for one, other in zip(*(item if isinstance(item, tuple) else (item,) for item in (got, wanted)), strict=True):
        np.testing.assert_array_equal(one, other)
    reports = check_function(function.bundle, EmulatedFunction(function.bundle), 0)
    assert all(report.passed for report in reports)


def test_few_rows_on_a_gpu_of_one_pipeline() -> None:
    """The first pipeline has no such target: the prediction for groups is that of another one."""
    text = joined((8, 8), returned="%p, %q", results="tensor<8x64xf32>, tensor<8x64xf32>")
    function = stepladder.compile(text, target="sm_75", device="emulator")
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, shape).astype(np.float16) for shape in ((8, 48), (8, 48), (48, 64))]
    for got, wanted in zip(function(*arrays), rows_of(*arrays)):
        np.testing.assert_array_equal(got, wanted)


STATES = """func.func @f(%x: tensor<8x32xf16>, %w: tensor<32x32xf16>) -> (tensor<4x8x32xf16>, tensor<8x32xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<4x8x32xf16>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%all = %none, %h = %x) -> (tensor<4x8x32xf16>, tensor<8x32xf16>) {
    %e = tensor.empty() : tensor<8x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
    %m = linalg.matmul ins(%h, %w : tensor<8x32xf16>, tensor<32x32xf16>) outs(%f : tensor<8x32xf32>) -> tensor<8x32xf32>
    %o = tensor.empty() : tensor<8x32xf16>
    %t = linalg.map { arith.truncf } ins(%m : tensor<8x32xf32>) outs(%o : tensor<8x32xf16>)
    %s = tensor.insert_slice %t into %all[%i, 0, 0] [1, 8, 32] [1, 1, 1] : tensor<8x32xf16> into tensor<4x8x32xf16>
    scf.yield %s, %t : tensor<4x8x32xf16>, tensor<8x32xf16>
  }
  return %r#0, %r#1 : tensor<4x8x32xf16>, tensor<8x32xf16>
}
"""


def test_states_of_a_loop_are_written_and_read_in_a_result(tmp_path: Path) -> None:
    """A matmul reads the state that the one before it wrote; the last one is copied, as it is a result too."""
    function = stepladder.compile(STATES, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    buffers = function.manifest.buffers
    assert [(item.kind, item.offset) for item in buffers if "part" in item.kind] == [
        ("result_part", 512 * place) for place in range(4)
    ]
    assert function.manifest.schema_version == 9 and function.manifest.workspace == 0
    assert all(report.passed for report in check_function(function.bundle, EmulatedFunction(function.bundle), 0))
    function.save(tmp_path / "states.bundle")
    read = read_any(tmp_path / "states.bundle")
    assert all(report.passed for report in check_function(read, EmulatedFunction(read), 1))
    original = json.loads((tmp_path / "states.bundle" / "manifest.json").read_text())
    first = next(place for place, item in enumerate(original["buffers"]) if item["kind"] == "result_part")
    for field, value, message in (
        ("offset", 8, "must be a multiple of 16, with 512 bytes inside of 2048, got 8"),
        ("number", 7, "must be of a result in memory of its own of f16, got 7"),
        ("kind", "part", "of argument 0, which a kernel writes"),
        (None, 8, "is 'result_part', which requires schema_version 9"),
    ):
        edited = json.loads(json.dumps(original))
        if field is None:
            edited["schema_version"] = value
        else:
            edited["buffers"][first][field] = value
        (tmp_path / "states.bundle" / "manifest.json").write_text(json.dumps(edited))
        with pytest.raises(StepladderError, match=message):
            read_any(tmp_path / "states.bundle")


def test_a_part_that_no_kernel_writes_is_missing() -> None:
    function = stepladder.compile(STATES, target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    manifest = function.manifest
    without = dataclasses.replace(manifest, launches=(manifest.launches[0], *manifest.launches[2:]))
    with pytest.raises(StepladderError, match="8x32xf16 at byte 512 of result 0, which no kernel before has written"):
        check_buffers(dataclasses.replace(function.bundle, manifest=without))
    without = dataclasses.replace(manifest, launches=manifest.launches[:3])
    with pytest.raises(StepladderError, match="must write result 0"):
        check_buffers(dataclasses.replace(function.bundle, manifest=without))


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


def test_columns_are_copied_where_a_pipeline_does_not_write_them() -> None:
    """`split_f32 = registers` takes whole buffers."""
    for text, chosen in (
        (side_by_side().replace("f16", "f32"), {"split_f32": "registers"}),
        (PROJECTED, {"split_f32": "registers"}),
        (PROJECTED.replace("f32", "f16"), {"columns": False}),
        (side_by_side(), {"columns": False}),
    ):
        function = stepladder.compile(text, target="sm_90a", device="emulator", **chosen)
        assert isinstance(function, stepladder.Function)
        assert "f_elementwise_0" in [launch.stage for launch in function.manifest.launches]
        assert all(buffer.strides is None for buffer in function.manifest.buffers)
