"""The XeTile programs of test/inputs/xetile, with matrices of any size, and their runs on the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.mlir.bindings import ir
from stepladder.runtime.problem import Problem

FOLDER = Path(__file__).parents[1] / "inputs" / "xetile"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.mlir"))
# The sizes that the files are written with.
M, N, K = 512, 768, 160
_SIZED = re.compile(r"(?:memref|tensor)<[^>]*>|output_shape \[[^]]*\]")


def program(name: str, m: int = M, n: int = N, k: int = K) -> str:
    """Returns the text of a program for matrices of other sizes; the sizes of tiles stay."""
    sizes = {str(M): str(m), str(N): str(n), str(K): str(k)}

    def resized(found: re.Match) -> str:
        return re.sub(r"(?<!\d)\d+(?!\d)", lambda number: sizes.get(number[0], number[0]), found[0])

    return _SIZED.sub(resized, (FOLDER / f"{name}.mlir").read_text(encoding="utf-8"))


def entry(name: str) -> str:
    """Returns the name of a program's function."""
    return "softmax" if name == "softmax" else "gemm"


def small_integers(emulation: Emulation, seed: int = 0) -> list[np.ndarray]:
    """Returns arguments of a program: integers from -4 to 4, whose sums are exact."""
    generator = np.random.default_rng(seed)
    return [generator.integers(-4, 5, array.shape).astype(array.dtype) for array in emulation.random_inputs(seed)]


def run_both(module: ir.Module, name: str) -> tuple[Outcome, np.ndarray, np.ndarray]:
    """Runs a program and its reference on small integers; returns the outcome, its last argument, the expected one."""
    emulation, golden = Emulation(module, entry(name)), Emulation(module, "golden")
    inputs = small_integers(emulation, 0)
    outcome = emulation.run(inputs, count=False)
    return outcome, outcome.arguments[-1], golden.run(inputs, count=False).results[0]


def product(problem: Problem, tile: tuple[int, int, int]) -> str:
    """Returns a program for a matmul, of which a work-group of one subgroup computes a tile of C.

    Args:
        problem: without elementwise ops; a column-major operand is read through a view of it.
        tile: m, n and k of the `tile_mma`.
    """
    (tile_m, tile_n, tile_k), m, n, k = tile, problem.m, problem.n, problem.k
    tiles, bases, views = {}, {}, []
    for name, (rows, columns), (height, width), type_, layout in (
        ("a", (m, k), (tile_m, tile_k), problem.a_type, problem.a_layout),
        ("b", (k, n), (tile_k, tile_n), problem.b_type, problem.b_layout),
        ("c", (m, n), (tile_m, tile_n), problem.c_type, "row"),
    ):
        base = f"memref<{rows}x{columns}x{type_}>"
        if layout == "column":
            stored = f"memref<{columns}x{rows}x{type_}>"
            base = f"memref<{rows}x{columns}x{type_}, strided<[1, {rows}]>>"
            views.append(f"  %{name} = memref.transpose %{name}_stored (i, j) -> (j, i) : {stored} to {base}")
            bases[f"{name}_stored"] = stored
        else:
            bases[name] = base
        order = "#xetile.tile_attr<{order = [0, 1]}>" if layout == "column" else "unit"
        vector = f"vector<{height}x{width}x{type_}>"
        tiles[name] = (f"!xetile.tile<{vector}, {order}>", vector, base)
    (tile_a, va, _), (tile_b, vb, _), (tile_c, vc, _) = tiles.values()
    zero = "0" if problem.c_type.startswith("i") else "0.0"
    start = f"arith.constant dense<{zero}> : {vc}"
    if problem.accumulate:
        start = f'"xetile.load_tile"(%tc) : ({tile_c}) -> {vc}'

    def init(name: str, row: str, column: str) -> str:
        made, _, base = tiles[name]
        operands = f"(%{name}, {row}, {column}) {{operandSegmentSizes = array<i32: 1, 2, 0, 0>}}"
        return f'    %t{name} = "xetile.init_tile"{operands} : ({base}, index, index) -> {made}'

    arguments = ", ".join(f"%{name}: {base}" for name, base in bases.items())
    return "\n".join(
        [
            f"func.func @product({arguments}) {{",
            *(f"  %n{number} = arith.constant {number} : index" for number in sorted({0, 1, 16, k, *tile})),
            f"  %grid_x = arith.constant {-(-n // tile_n)} : index",
            f"  %grid_y = arith.constant {-(-m // tile_m)} : index",
            *views,
            "  gpu.launch blocks(%x, %y, %z) in (%gx = %grid_x, %gy = %grid_y, %gz = %n1)",
            "      threads(%tx, %ty, %tz) in (%bx = %n16, %by = %n1, %bz = %n1) {",
            f"    %i = arith.muli %y, %n{tile_m} : index",
            f"    %j = arith.muli %x, %n{tile_n} : index",
            init("a", "%i", "%n0"),
            init("b", "%n0", "%j"),
            init("c", "%i", "%j"),
            f"    %start = {start}",
            f"    %sum:3 = scf.for %k = %n0 to %n{k} step %n{tile_k} iter_args(%acc = %start, %pa = %ta, %pb = %tb)",
            f"        -> ({vc}, {tile_a}, {tile_b}) {{",
            f'      %va = "xetile.load_tile"(%pa) : ({tile_a}) -> {va}',
            f'      %vb = "xetile.load_tile"(%pb) : ({tile_b}) -> {vb}',
            f'      %total = "xetile.tile_mma"(%va, %vb, %acc) : ({va}, {vb}, {vc}) -> {vc}',
            f'      %na = "xetile.update_tile_offset"(%pa, %n0, %n{tile_k}) : ({tile_a}, index, index) -> {tile_a}',
            f'      %nb = "xetile.update_tile_offset"(%pb, %n{tile_k}, %n0) : ({tile_b}, index, index) -> {tile_b}',
            f"      scf.yield %total, %na, %nb : {vc}, {tile_a}, {tile_b}",
            "    }",
            f'    "xetile.store_tile"(%sum#0, %tc) : ({vc}, {tile_c}) -> ()',
            "    gpu.terminator",
            "  } {intel_reqd_sub_group_size = 16 : i32}",
            "  return",
            "}",
        ]
    )
