"""Tiles, slots and steps that the blocks of a launch compute, each once."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from conftest import examples
from indices import index_of, offsets_of, sizes_of
from stepladder.extension.lib import launches, tma
from stepladder.extension.lib.control_flow import body_of, enclosing_loops
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.reference import Operation
from tile_blocks import CLUSTERS, QUICK, blocks_of, ids, mark, range_of, view_of_c


@settings(max_examples=examples(25), **QUICK)
@given(
    st.integers(1, 14),
    st.integers(1, 14),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 40),
    st.sampled_from(CLUSTERS),
    st.booleans(),
)
@example(width=5, height=11, group=4, blocks=7, cluster=(1, 1), ragged=False)
@example(width=4, height=6, group=4, blocks=9, cluster=(2, 1), ragged=False)
@example(width=5, height=7, group=2, blocks=16, cluster=(2, 2), ragged=True)
def test_every_tile_is_computed_once(
    width: int, height: int, group: int, blocks: int, cluster: tuple[int, int], ragged: bool
) -> None:
    rows, columns = cluster
    assume(blocks == 0 or blocks >= rows * columns)
    assume(width * height > 1)
    # Without edges, the grid has to be a multiple of the cluster; a grid of one row or column has none to see them by.
    if not ragged or min(width, height) == 1:
        assume(width % columns == 0 and height % rows == 0)
    m, n = 64 * height - (8 if ragged else 0), 32 * width - (8 if ragged else 0)
    knobs = {
        "block_m": 64,
        "block_n": 32,
        "consumer_warpgroups": 1,
        "raster_group": group,
        "persistent_blocks": blocks,
        "cluster_m": rows,
        "cluster_n": columns,
    }
    with mlir_context():
        run = run_pipeline(matmul_text(m, n, 64), "matmul.mlir", Request("wgmma", knobs, through="make_persistent"))
        launch = launches.find_launch(run.module)
        view = view_of_c(launch, launch)
        loops = walk(launch, "scf.for")
        assert len(loops) == (1 if blocks else 0)
        computed = Counter()
        for known in blocks_of(launch):
            for tile in range_of(loops[0], known) if loops else [None]:
                here = known if tile is None else {**known, body_of(loops[0]).arguments[0]: tile}
                (row, column), extents = offsets_of(view, here), sizes_of(view, here)
                assert min(extents) >= 0
                if min(extents) > 0:
                    assert extents == [min(64, m - row), min(32, n - column)]
                    computed[row, column] += 1
        assert launches.launch_sizes(launch, launches.GRID)[0] <= (blocks or 10**6)
    assert computed == Counter({(64 * i, 32 * j): 1 for i in range(height) for j in range(width)})


@settings(max_examples=examples(20), **QUICK)
@given(
    st.sampled_from(CLUSTERS[1:]),
    st.sampled_from([64, 128, 256]),
    st.sampled_from([64, 128, 256]),
    st.sampled_from([32, 64, 128]),
    st.sampled_from(["row", "column"]),
    st.sampled_from(["row", "column"]),
    st.integers(0, 3),
    st.booleans(),
)
@example((2, 2), 128, 256, 64, "row", "row", 0, True)
@example((1, 4), 64, 256, 64, "row", "column", 0, True)
def test_every_slot_is_written_once_by_the_blocks_of_a_cluster(
    cluster: tuple[int, int],
    block_m: int,
    block_n: int,
    block_k: int,
    a_layout: str,
    b_layout: str,
    step: int,
    specialized: bool,
) -> None:
    assume(block_m * block_n < 256 * 256)  # accumulators of two warpgroups that fit registers
    rows, columns = cluster
    m, n, k = 8 * block_m, 8 * block_n, 4 * block_k
    knobs = {
        "block_m": block_m,
        "block_n": block_n,
        "block_k": block_k,
        "cluster_m": rows,
        "cluster_n": columns,
        "consumer_warpgroups": block_m // 64 if block_m < 256 else 2,
        "stages": 1,
        "persistent_blocks": 0,
        "raster_group": 2,
    }
    without = () if specialized else ("specialize_warps",)
    with mlir_context():
        text = matmul_text(m, n, k, a_layout=a_layout, b_layout=b_layout)
        run = run_pipeline(text, "matmul.mlir", Request("wgmma", knobs, without=without, through="multicast_tiles"))
        launch = launches.find_launch(run.module)
        loads = walk(launch, tma.LOAD)
        view = view_of_c(launch, launch)
        (expected,) = {index_of(op.operands[1], {}) for op in walk(launch, tma.EXPECT)}
        size, cell = rows * columns, (3, 2)
        place = {rank: {**ids(cell[0] * size + rank, cell[1], size)} for rank in range(size)}
        origins = {rank: offsets_of(view, known) for rank, known in place.items()}
        tiles = [op for op in walk(launch, "memref.alloc") if mark(op) != "c"]
        written = {
            (rank, mark(tile)): np.zeros(ir.MemRefType(tile.results[0].type).shape, int)
            for rank in range(size)
            for tile in tiles
        }
        for load in loads:
            (loop,) = enclosing_loops(load)
            for rank, known in place.items():
                body = body_of(loop)
                known = {**known, body.arguments[0]: step * block_k, **dict.fromkeys(list(body.arguments)[1:], 0)}
                tile = producer_of(load)
                box, shape = offsets_of(tile, known), sizes_of(tile, known)
                matrix = mark(tile.operands[0].owner.operation)
                segments = list(ir.DenseI32ArrayAttr(load.attributes["operandSegmentSizes"]))
                at = [index_of(operand, known) for operand in list(load.operands)[3:5]]
                mask = 1 << rank
                if segments[-2]:
                    mask = index_of(list(load.operands)[sum(segments[:-2])], known)
                assert mask < 1 << size and mask >> rank & 1
                for reader in (reader for reader in range(size) if mask >> reader & 1):
                    part = tuple(slice(start, start + extent) for start, extent in zip(box, shape))
                    written[reader, matrix][part] += 1
                    # What arrives is what the block that reads it computes with.
                    row, column = origins[reader]
                    along = step * block_k
                    first = {
                        ("a", "row"): (along, row),
                        ("a", "column"): (row, along),
                        ("b", "row"): (column, along),
                        ("b", "column"): (along, column),
                    }[matrix, a_layout if matrix == "a" else b_layout]
                    assert at == [first[0] + box[1] * shape[3], first[1] + box[2]]
        assert all((count == 1).all() for count in written.values())
        assert (
            expected
            == 2 * (block_m + block_n) * block_k
            == 2 * sum(count.size for (rank, _), count in written.items() if rank == 0)
        )
        peers = [index_of(op.operands[1], {}) for op in walk(launch, "nvgpu.mbarrier.init")]
        assert peers == [1, knobs["consumer_warpgroups"] * (rows + columns - 1)]


def producer_of(load: Operation) -> ir.Operation:
    """Returns the view that a load writes, by way of a cast or not."""
    view = load.operands[0].owner.operation
    return view.operands[0].owner.operation if view.name == "memref.cast" else view


@settings(max_examples=examples(15), **QUICK)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(2, 11),
    st.integers(3, 30),
    st.sampled_from([(1, 1), (2, 1), (1, 2)]),
)
@example(width=5, height=8, steps=8, blocks=32, cluster=(1, 1))
@example(width=7, height=5, steps=5, blocks=24, cluster=(1, 1))
@example(width=4, height=6, steps=3, blocks=10, cluster=(2, 1))
def test_every_step_of_shared_tiles_is_computed_once(
    width: int, height: int, steps: int, blocks: int, cluster: tuple[int, int]
) -> None:
    rows, columns = cluster
    assume(width % columns == 0 and height % rows == 0 and width * height > 1)
    knobs = {
        "block_m": 64,
        "block_n": 32,
        "consumer_warpgroups": 1,
        "raster_group": 2,
        "persistent_blocks": blocks,
        "cluster_m": rows,
        "cluster_n": columns,
        "tile_scheduler": "stream_k",
    }
    with mlir_context():
        run = run_pipeline(
            matmul_text(64 * height, 32 * width, 64 * steps, accumulate=False),
            "matmul.mlir",
            Request("wgmma", knobs, through="stream_k_tail", without=("multicast_tiles",)),
        )
        launch = launches.find_launch(run.module)
        load = walk(launch, tma.LOAD)
        store = walk(launch, tma.STORE)[0]
        product = walk(launch, "nvgpu.warpgroup.mma")[0]
        computed = Counter()
        parts = Counter()
        for known in blocks_of(launch):
            loaded = [
                (*place, along)
                for place, ks in rounds(
                    load[0],
                    known,
                    lambda here: (index_of(load[0].operands[4], here), index_of(load[1].operands[3], here)),
                )
                for along in ks
            ]
            used = list(
                rounds(product, known, lambda here: tuple(index_of(store.operands[number], here) for number in (3, 2)))
            )
            # The consumers multiply what the producer loads, in the same order.
            assert loaded == [(*place, along) for place, ks in used for along in ks]
            computed.update(loaded)
            parts.update(place for place, ks in used)
            assert all(len(ks) for _, ks in used)
            # The beginning of a tile comes before the end of another, for which it may have to wait.
            later = [ks[0] > 0 for _, ks in used]
            assert later == sorted(later)
    every = Counter({(64 * i, 32 * j, 64 * s): 1 for i in range(height) for j in range(width) for s in range(steps)})
    assert computed == every
    # Tiles of whole waves are one part, the others at most three.
    assert max(parts.values()) <= 3
    whole = width * height // (rows * columns) % min(blocks // (rows * columns), width * height // (rows * columns))
    assert sum(count > 1 for count in parts.values()) <= whole * rows * columns


def rounds(
    op: Operation, known: dict[str, int], place: Callable[..., tuple[int, ...]]
) -> Iterator[tuple[object, range]]:
    """Yields the tile and the range of k of each round that a block takes, in the loops around an op.

    Args:
        op: what stands in the loop over k.
        known: the block's place.
        place: tells the tile's row and column, given what is known in a round.
    """
    loops = enclosing_loops(op)
    tiles, steps = loops
    for number in range_of(tiles, known):
        here = {**known, body_of(tiles).arguments[0]: number}
        ks = range_of(steps, here)
        yield place({**here, body_of(steps).arguments[0]: ks[0] if ks else 0}), ks
