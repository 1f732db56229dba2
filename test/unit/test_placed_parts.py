"""Results of matmuls that are parts of one tensor, such as stacked heads: kernels write them in their places."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepladder
from placed_products import product
from stepladder.emulator.functions import EmulatedFunction
from stepladder.runtime.bundle import read_any
from stepladder.runtime.bundle.function_rules import check_function as check_buffers
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

pytestmark = pytest.mark.usefixtures("needs_ptxas")

LAST = "tensor<32x64xf32>"


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
        ("number", 7, "must be of a result of f16, got 7"),
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
