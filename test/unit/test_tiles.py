"""Where the work of the Hopper pipelines lies: tiles among blocks, boxes among clusters, steps of k among rounds."""

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from conftest import examples
from indices import index_of, offsets_of, sizes_of
from stepladder.extension.lib import building, tma
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.problem import matmul_text
from stepladder.pipeline import engine

QUICK = dict(deadline=None, suppress_health_check=list(HealthCheck))
CLUSTERS = [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (4, 2), (2, 4)]


def ids(x, y, size):
    """Returns what a block knows of its place: in a grid that is `y` high, in a cluster of `size` blocks."""
    return {
        "gpu.block_id x": x,
        "gpu.block_id y": y,
        "gpu.cluster_id x": x // size,
        "gpu.cluster_id y": y,
        "gpu.cluster_block_id x": x % size,
        "gpu.thread_id x": 0,
    }


def blocks_of(launch):
    """Yields what each block of a launch knows of its place."""
    width, height, _ = building.launch_sizes(launch, building.GRID)
    size = building.launch_sizes(launch, building.CLUSTER)[0]
    for y in range(height):
        for x in range(width):
            yield ids(x, y, size)


def range_of(loop, known):
    """Evaluates the range of an `scf.for`."""
    return range(*(index_of(loop.operands[number], known) for number in range(3)))


def view_of_c(root, launch):
    """Returns the view of C below an op."""
    c = launch.parent.regions[0].blocks[0].arguments[2]
    return next((view for view in walk(root, "memref.subview") if view.operands[0] == c), None)


@settings(max_examples=examples(50), **QUICK)
@given(
    st.integers(1, 14),
    st.integers(1, 14),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 40),
    st.sampled_from(CLUSTERS),
    st.booleans(),
)
@example(width=5, height=11, raster=4, blocks=7, cluster=(1, 1), ragged=False)
@example(width=4, height=6, raster=4, blocks=9, cluster=(2, 1), ragged=False)
@example(width=5, height=7, raster=2, blocks=16, cluster=(2, 2), ragged=True)
def test_every_tile_is_computed_once(width, height, raster, blocks, cluster, ragged):
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
        "raster_group": raster,
        "persistent_blocks": blocks,
        "cluster_m": rows,
        "cluster_n": columns,
    }
    with engine.mlir_context():
        run = engine.run(
            matmul_text(m, n, 64), "matmul.mlir", engine.Request("wgmma", knobs, through="make_persistent")
        )
        launch = building.find_launch(run.module)
        view = view_of_c(launch, launch)
        loops = walk(launch, "scf.for")
        assert len(loops) == (1 if blocks else 0)
        computed = Counter()
        for known in blocks_of(launch):
            for tile in range_of(loops[0], known) if loops else [None]:
                here = known if tile is None else {**known, building.body_of(loops[0]).arguments[0]: tile}
                (row, column), extents = offsets_of(view, here), sizes_of(view, here)
                assert min(extents) >= 0
                if min(extents) > 0:
                    assert extents == [min(64, m - row), min(32, n - column)]
                    computed[row, column] += 1
        assert building.launch_sizes(launch, building.GRID)[0] <= (blocks or 10**6)
    assert computed == Counter({(64 * i, 32 * j): 1 for i in range(height) for j in range(width)})


@settings(max_examples=examples(40), **QUICK)
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
    cluster, block_m, block_n, block_k, a_layout, b_layout, step, specialized
):
    assume(block_m * block_n < 256 * 256)  # sums of two warpgroups that fit registers
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
    with engine.mlir_context():
        text = matmul_text(m, n, k, a_layout=a_layout, b_layout=b_layout)
        run = engine.run(
            text, "matmul.mlir", engine.Request("wgmma", knobs, without=without, through="multicast_tiles")
        )
        launch = building.find_launch(run.module)
        loads = walk(launch, tma.LOAD)
        view = view_of_c(launch, launch)
        (expected,) = {index_of(op.operands[1], {}) for op in walk(launch, tma.EXPECT)}
        size, cell = rows * columns, (3, 2)
        place = {rank: {**ids(cell[0] * size + rank, cell[1], size)} for rank in range(size)}
        origins = {rank: offsets_of(view, known) for rank, known in place.items()}
        rings = [op for op in walk(launch, "memref.alloc") if mark(op) != "c"]
        written = {
            (rank, mark(ring)): np.zeros(ir.MemRefType(ring.results[0].type).shape, int)
            for rank in range(size)
            for ring in rings
        }
        for load in loads:
            (loop,) = building.loops_around(load)
            for rank, known in place.items():
                body = building.body_of(loop)
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


def producer_of(load):
    """Returns the view that a load writes, by way of a cast or not."""
    view = load.operands[0].owner.operation
    return view.operands[0].owner.operation if view.name == "memref.cast" else view


def mark(ring):
    """Returns which matrix an alloc holds tiles of."""
    return next(matrix for matrix in "abc" if f"operand_{matrix}" in ring.attributes)


@settings(max_examples=examples(30), **QUICK)
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
def test_every_step_of_shared_tiles_is_computed_once(width, height, steps, blocks, cluster):
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
    with engine.mlir_context():
        run = engine.run(
            matmul_text(64 * height, 32 * width, 64 * steps, accumulate=False),
            "matmul.mlir",
            engine.Request("wgmma", knobs, through="stream_k_tail", without=("multicast_tiles",)),
        )
        launch = building.find_launch(run.module)
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


def rounds(op, known, place):
    """Yields the tile and the range of k of each round that a block takes, in the loops around an op.

    Args:
        op: what stands in the loop over k.
        known: the block's place.
        place: tells the tile's row and column, given what is known in a round.
    """
    loops = building.loops_around(op)
    tiles, steps = loops
    for number in range_of(tiles, known):
        here = {**known, building.body_of(tiles).arguments[0]: number}
        ks = range_of(steps, here)
        yield place({**here, building.body_of(steps).arguments[0]: ks[0] if ks else 0}), ks


SWIZZLE_MODES = {1: 128, 2: 64, 3: 32}


def constant_of(value):
    source = value.owner.operation
    return ir.IntegerAttr(source.attributes["value"]).value if source.name == "arith.constant" else None


def descriptor_of(value):
    """Returns the constant bits of a matrix descriptor and the units that are added to its address."""
    source, added = value.owner.operation, 0
    if source.name == "arith.addi":
        added = constant_of(source.operands[1])
        source = source.operands[0].owner.operation
    assert source.name == "arith.ori"
    return constant_of(source.operands[1]) % 2**64, added


def addresses(boxes, rows, columns, bytes_):
    """Returns the byte address of every element of a tile of boxes side by side: rows x (boxes * columns)."""
    table = np.arange(boxes * rows * columns).reshape(boxes, rows, columns) * bytes_
    return np.concatenate(list(table), axis=1)


def read_by_hardware(bits, added, bytes_, extent, depth, along_k):
    """Returns the addresses, before the swizzle, that an instruction reads: of `extent` rows or columns x `depth` of k.

    Source: PTX ISA, strides of wgmma's matrix descriptors: rows of the swizzle's width, in groups of eight.
    """
    swizzle = SWIZZLE_MODES[bits >> 62]
    leading, stride = (bits >> 16 & 0x3FFF) * 16, (bits >> 32 & 0x3FFF) * 16
    outer, inner = np.meshgrid(np.arange(extent), np.arange(depth), indexing="ij")
    if along_k:
        return 16 * added + outer // 8 * stride + outer % 8 * swizzle + inner * bytes_
    width = swizzle // bytes_
    return 16 * added + outer // width * leading + inner // 8 * stride + inner % 8 * swizzle + outer % width * bytes_


@settings(max_examples=examples(40), **QUICK)
@given(
    st.sampled_from(["f16", "bf16", "f32", "f8E4M3FN"]),
    st.sampled_from([64, 128, 192, 256]),
    st.integers(1, 32).map(lambda eights: 8 * eights),
    st.sampled_from([16, 32, 64, 128]),
    st.integers(1, 3),
    st.data(),
)
def test_descriptors_address_what_the_instruction_multiplies(type_, block_m, block_n, block_k, warpgroups, data):
    bytes_ = {"f16": 2, "bf16": 2, "f32": 4, "f8E4M3FN": 1}[type_]
    a_layout, b_layout = "row", "column"
    if bytes_ == 2:
        a_layout, b_layout = (data.draw(st.sampled_from(["row", "column"]), name) for name in "ab")
    assume(block_m % (64 * warpgroups) == 0 and block_m * block_n // warpgroups < 255 * 128)
    assume(block_k * bytes_ % 32 == 0 and (block_m + block_n + 32) * block_k * bytes_ < 220000)
    knobs = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "consumer_warpgroups": warpgroups}
    with engine.mlir_context():
        text = matmul_text(
            2 * block_m, 2 * block_n, 2 * block_k, a_type=type_, b_type=type_, a_layout=a_layout, b_layout=b_layout
        )
        run = engine.run(text, "matmul.mlir", engine.Request("wgmma_single_stage", knobs, through="lower_to_wgmma"))
        products = [
            tuple(descriptor_of(value) for value in list(op.operands)[1:3])
            for op in walk(run.module, "nvvm.wgmma.mma_async")
        ]
    share, depth = block_m // warpgroups, 32 // bytes_
    assert len(products) == share // 64 * (block_k // depth)
    tables = {}
    for name, along_k, extent in (("a", a_layout == "row", block_m), ("b", b_layout == "column", block_n)):
        rows, columns = (extent, block_k) if along_k else (block_k, extent)
        if name == "b" and not along_k:
            columns = tma.whole_boxes(columns * bytes_) // bytes_
        width = next(swizzle for swizzle in (128, 64, 32) if columns * bytes_ % swizzle == 0) // bytes_
        table = addresses(columns // width, rows, width, bytes_)
        tables[name] = along_k, width * bytes_, table if along_k else table.T
    for number, pair in enumerate(products):
        block, step = divmod(number, block_k // depth)
        for (name, (along_k, swizzle, table)), (bits, added), extent in zip(tables.items(), pair, (64, block_n)):
            first = 64 * block if name == "a" else 0
            assert SWIZZLE_MODES[bits >> 62] == swizzle
            wanted = table[first : first + extent, step * depth : (step + 1) * depth]
            read = read_by_hardware(bits, added, bytes_, extent, depth, along_k)
            assert (read == wanted).all(), (name, block, step)


def exchanged(row, unit, swizzle):
    """Returns where TMA expects 16-byte unit `unit` of a row: exchanged by bits of the address, 128 bytes a line."""
    line = row * swizzle // 128
    return unit ^ line % 8 & swizzle // 16 - 1


@settings(max_examples=examples(12), **QUICK)
@given(
    st.sampled_from([32, 64, 96, 128, 160, 256]), st.sampled_from([64, 128]), st.sampled_from(["f32", "f16", "bf16"])
)
@example(96, 128, "f16")
@example(160, 64, "f16")
def test_sums_lie_in_boxes_as_tma_expects_them(block_n, block_m, c_type):
    """Every element of a box is written once, by the thread that holds it, to where TMA looks for it."""
    assume(block_m * block_n < 128 * 255)  # sums that fit registers
    knobs = {"block_m": block_m, "block_n": block_n, "consumer_warpgroups": 1, "persistent_blocks": 0, "stages": 1}
    with engine.mlir_context():
        run = engine.run(
            matmul_text(256, 2 * block_n, 256, c_type=c_type, accumulate=False),
            "matmul.mlir",
            engine.Request("wgmma", knobs, through="tma_store_epilogue"),
        )
        launch = building.find_launch(run.module)
        boxes = next(op for op in walk(launch, "memref.alloc") if mark(op) == "c")
        rows, width = ir.MemRefType(boxes.results[0].type).shape[2:]
        bytes_ = 4 if c_type == "f32" else 2
        (view,) = {op.operands[0].owner.operation for op in walk(launch, tma.STORE)[:1]}
        written = {}
        for thread in range(128):
            known = {"gpu.thread_id x": thread}
            warp, lane = divmod(thread, 32)
            for op in walk(launch, "vector.store"):
                if op.operands[1].owner.operation == view:
                    block, fragment, half = position(op.operands[0])
                    held = 64 * block + 16 * warp + 8 * half + lane // 4, 8 * fragment + 2 * (lane % 4)
                    row, column = (index_of(operand, known) for operand in list(op.operands)[2:4])
                    for side in (0, 1):
                        written.setdefault((row, column + side), []).append((held[0], held[1] + side))
            for op in walk(launch, "nvvm.stmatrix"):
                offset, place = address_in(op.operands[0], view, known)
                if offset is None:
                    continue
                # Lane l addresses a row of matrix l / 8, of which lanes hold two neighbours each.
                row, column = divmod(place, width)
                matrix = lane // 8
                block, fragment, half = position(register_of(op.operands[1 + matrix]))
                for held in range(8):
                    written.setdefault((row, column + held), []).append(
                        (64 * block + 16 * warp + 8 * half + lane % 8, 8 * fragment + held)
                    )
    per_unit = 16 // bytes_
    # Boxes are used in turn: what is written to the first of them later lies `width` times a number further right.
    written = {place: [held for held in all_held if held[1] < width] for place, all_held in written.items()}
    wanted = {
        (row, exchanged(row, column // per_unit, width * bytes_) * per_unit + column % per_unit): [(row, column)]
        for row in range(rows)
        for column in range(width)
    }
    assert written == wanted


def position(value):
    """Returns which pair of the held sums a value is, rounded or not."""
    source = value.owner.operation
    while source.name != "vector.extract":
        source = source.operands[0].owner.operation
    return list(ir.DenseI64ArrayAttr(source.attributes["static_position"]))


def register_of(value):
    """Returns the pair of sums that a register of `stmatrix` is made of."""
    return value.owner.operation.operands[0].owner.operation.operands[0]


def address_in(pointer, view, known):
    """Returns where an address lies in a view, in elements, as (0, place); (None, None) for one in another view."""
    cast = pointer.owner.operation.operands[0].owner.operation
    total = cast.operands[0].owner.operation
    for operand in total.operands:
        source = operand.owner.operation
        if source.name == "affine.apply":
            metadata = next(
                op
                for op in (inner.owner.operation for inner in source.operands)
                if op.name == "memref.extract_strided_metadata"
            )
            if metadata.operands[0] != view.results[0]:
                return None, None
            width = ir.MemRefType(view.results[0].type).element_type.width // 8
            return 0, index_of(operand, {**known, metadata.results[1]: 0}) // width
    raise AssertionError(total)
