"""Renumbered blocks: every block of the grid is still computed once, whatever grid and raster."""

import math

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from stepladder import engine
from stepladder.bindings import ir
from stepladder.payload import matmul_text
from stepladder.traverse import walk

TILE = 128


def value_of(expression, symbols):
    """Evaluates an affine expression."""
    match expression:
        case ir.AffineSymbolExpr():
            return symbols[expression.position]
        case ir.AffineConstantExpr():
            return expression.value
    left, right = value_of(expression.lhs, symbols), value_of(expression.rhs, symbols)
    match expression:
        case ir.AffineAddExpr():
            return left + right
        case ir.AffineMulExpr():
            return left * right
        case ir.AffineModExpr():
            return left % right
        case ir.AffineFloorDivExpr():
            return left // right
    raise AssertionError(expression)


def index_of(value, ids):
    """Evaluates an index of the kernel for block numbers `ids`, by dimension."""
    source = value.owner
    if source.name == "gpu.block_id":
        return next(number for axis, number in ids.items() if f"dim {axis}" in str(source.attributes["dimension"]))
    assert source.name == "affine.apply"
    map_ = ir.AffineMapAttr(source.attributes["map"]).value
    assert map_.n_dims == 0
    return value_of(map_.results[0], [index_of(operand, ids) for operand in source.operands])


def tiles_in_order(width, height, raster):
    """Returns the (row, column) of the tile of C that each block computes, in the order of the blocks' numbers."""
    with engine.mlir_context():
        run = engine.run(matmul_text(height * TILE, width * TILE, 32), "matmul.mlir",
                         engine.Request("mma_sync", {"raster": raster}, through="rasterize_blocks"))
        views = [view for view in walk(run.module, "memref.subview")
                 if list(ir.DenseI64ArrayAttr(view.attributes["static_sizes"])) == [TILE, TILE]]
        if not views:
            assert width == height == 1  # the tile is all of C
            return [(0, 0)]
        c = views[-1]
        indices = list(c.operands)[1:]
        static = list(ir.DenseI64ArrayAttr(c.attributes["static_offsets"]))

        def tile(x, y):
            dynamic = iter(indices)
            return tuple((index_of(next(dynamic), {"x": x, "y": y}) if offset < 0 else offset) / TILE
                         for offset in static)

        return [tile(x, y) for y in range(height) for x in range(width)]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 24), st.integers(1, 24), st.sampled_from([1, 2, 4, 8, 16, 32]))
@example(1, 8, 8)
@example(8, 1, 8)
@example(7, 16, 8)
@example(5, 12, 8)
@example(64, 32, 8)
def test_renumbering_is_a_bijection_of_the_grid(width, height, raster):
    tiles = tiles_in_order(width, height, raster)
    assert sorted(tiles) == [(row, column) for row in range(height) for column in range(width)]
    rows = math.gcd(raster, height)
    # Down a column of `rows` block rows, then the next column; then the next rows.
    assert tiles == [(group * rows + row, column) for group in range(height // rows) for column in range(width)
                     for row in range(rows)]
