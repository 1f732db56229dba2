"""Faults for the emulator to find: each a small edit of the IR that a pipeline made, and what must find it.

An op is dropped, moved, or given another operand or attribute; ops are counted in the order of the text. What must find
the fault are kinds of findings, and "numbers" where the result must be wrong. Where that is not obvious:

- Copies land as late as they may, when somebody waits for them. So data that nothing waits for is "in-flight" when it
  is used, and "unwaited" where it is not used. Where a wait is there but does not reach those who use the data, as
  after a dropped barrier, it has landed, and that is a "race".
- A stage that is released too early is written while products in flight read it: "in-flight"; where these are waited
  for before the next load happens to begin, nothing orders the two all the same: a "race".
- A wait for the wrong parity ends at once, like one that is not there ("in-flight"), or never ("deadlock").
- Bytes that are announced and do not come, or the reverse, are "transaction-bytes", and threads wait for them in vain.
- Fewer arrivals than an mbarrier counts are a "deadlock". More are "order", and so are threads at a barrier that the
  hardware may count for others: too many, or not ordered after the previous phase. So are products that no
  fence orders after what set their accumulators.
- TMA may read what threads wrote, complete on mbarriers, and write what other blocks wrote only after a fence: that is
  "proxy".
- Blocks of the emulator run one after the other: what they do out of order gives the right numbers here, and is a
  "race"; an arrival at another block that may have ended is "order".
- Tiles at a wrong address are "uninitialized" where no thread wrote what is read. Swizzles, transpositions, fragments
  of wrong registers and wrong boxes touch what they may: only the "numbers" show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fault_edits import Edit, become, by_some, drop, mark, move, replace, see_through, shift, take


@dataclass(frozen=True)
class Base:
    """A pipeline, its knobs, and a problem of a few small tiles: C = AB, or C = AB + C with `accumulate`."""

    pipeline: str
    size: tuple[int, int, int]
    knobs: dict[str, int | str]
    accumulate: bool = False
    c_type: str = "f32"
    b_layout: str = "row"


@dataclass(frozen=True)
class Fault:
    """A fault that is planted after a step of a base.

    Attributes:
        finds: kinds of findings that must be among those found, and "numbers" where the result must be wrong.
        says: part of a finding's message.
    """

    name: str
    base: str
    step: str
    finds: set[str]
    edits: tuple[Edit, ...] = field(repr=False)
    says: str = ""

    def plant(self, text: str) -> str:
        """Returns the IR with the fault in it."""
        for edit in self.edits:
            text = edit(text)
        return text


_WARPS = {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}
_TILES = {"block_m": 64, "block_n": 64, "block_k": 32, "raster_group": 1, "consumer_warpgroups": 1}
_ROLES = {**_TILES, "stages": 2, "persistent_blocks": 1, "dependent_launch": False}
_SHARED = {**_ROLES, "block_m": 128, "consumer_warpgroups": 2}

BASES = {
    "wmma, one buffer": Base("wmma", (64, 128, 96), {**_WARPS, "stages": 1}, accumulate=True),
    "wmma": Base("wmma", (64, 128, 128), _WARPS, accumulate=True),
    "wmma, asynchronous": Base(
        "wmma", (64, 128, 128), {**_WARPS, "prefetch": "cp_async", "stages": 3}, accumulate=True
    ),
    "mma.sync": Base("mma_sync", (64, 128, 160), {**_WARPS, "raster_group": 1}, accumulate=True),
    "wgmma, single stage": Base("wgmma_single_stage", (64, 128, 96), _TILES),
    "wgmma, edges": Base("wgmma_single_stage", (40, 88, 72), _TILES),
    "wgmma, multistage": Base("wgmma_multistage", (64, 128, 160), {**_TILES, "stages": 3}),
    "wgmma": Base("wgmma", (128, 64, 96), _ROLES),
    "wgmma, one box a tile": Base("wgmma", (128, 32, 96), {**_ROLES, "block_n": 32}),
    "wgmma, two consumers": Base("wgmma", (256, 64, 96), _SHARED),
    "wgmma, staggered": Base("wgmma", (256, 64, 160), {**_SHARED, "stages": 3, "stagger": 2}),
    "wgmma, C of f16": Base("wgmma", (128, 64, 96), _ROLES, c_type="f16"),
    "wgmma, odd rows of C": Base(
        "wgmma", (128, 45, 96), {**_ROLES, "block_n": 32, "epilogue": "rows"}, b_layout="column"
    ),
    "wgmma, pingpong": Base("wgmma", (256, 64, 96), {**_ROLES, "schedule": "pingpong"}),
    "wgmma, cluster": Base("wgmma", (256, 64, 96), {**_ROLES, "persistent_blocks": 2, "cluster_m": 2}),
    "wgmma, split reduction": Base(
        "wgmma", (64, 64, 192), {**_ROLES, "persistent_blocks": 0, "split_k": 2, "epilogue": "registers"}
    ),
    "wgmma, split in memory": Base(
        "wgmma",
        (64, 64, 192),
        {**_ROLES, "persistent_blocks": 0, "split_k": 2, "split_k_workspace": "memory", "epilogue": "registers"},
    ),
    "wgmma, last tiles shared": Base(
        "wgmma", (192, 64, 128), {**_ROLES, "persistent_blocks": 2, "tile_scheduler": "stream_k"}
    ),
}

_TRY_WAIT = "nvgpu.mbarrier.try_wait.parity"  # the producer's comes first, then the consumer's
_EXPECT = "nvgpu.mbarrier.arrive.expect_tx"
_LOAD = "nvgpu.tma.async.load"
_STORE = "nvgpu.tma.async.store"
_PRODUCTS = "nvvm.wgmma.wait.group.sync.aligned"
_STORES = "nvvm.cp.async.bulk.wait_group"
_COMMIT = "nvvm.cp.async.bulk.commit.group"
_PTX = "nvvm.inline_ptx"
_COPY = "nvgpu.device_async_copy"
_GROUP = "nvgpu.device_async_create_group"
_READ, _WRITE = "vector.transfer_read", "vector.transfer_write"
_FRAGMENT = "gpu.subgroup_mma_load_matrix"
_A_TILE = "memref<1x64x40xf16, #gpu.address_space<workgroup>>"


def _faults(base: str, step: str, *rows: tuple) -> list[Fault]:
    """Returns the faults of a base's step: rows of a name, what finds it, the edits, and what a message says."""
    return [
        Fault(row[0], base, step, row[1], row[2] if isinstance(row[2], tuple) else (row[2],), *row[3:]) for row in rows
    ]


FAULTS = [
    *_faults(
        "wmma, one buffer",
        "hoist_accumulators",
        ("barrier behind the copies dropped", {"race"}, drop("gpu.barrier", 0), "reads"),
        ("barrier before the next copies dropped", {"race"}, drop("gpu.barrier", 1), "writes"),
        ("barrier for half of the warps", {"race"}, by_some("gpu.barrier", 0, 64), "reads"),
        ("barrier for half a warp", {"divergent-barrier"}, by_some("gpu.barrier", 0, 16), "16 of 32 threads"),
        ("k loop begins a step late", {"numbers"}, become("scf.for", 0, 0, 32)),
        ("rows of A's second fragment are those of its first", {"numbers"}, take(_READ, 10, 2, _READ, 8, 2)),
        ("fragment of A shifted by a row", {"numbers"}, shift(_READ, 8, 2)),
        (
            "rows of the padded tile overlap",
            {"race", "numbers"},
            replace(_A_TILE, _A_TILE.replace("f16, ", "f16, strided<[2560, 24, 1]>, ")),
        ),
        ("rows of the padded tile too short", {"out-of-bounds"}, replace(_A_TILE, _A_TILE.replace("40", "24"))),
        ("copies by the thread beside", {"out-of-bounds", "uninitialized"}, shift("affine.apply", 0, 0)),
        ("all warps store at the first rows of C", {"race", "numbers"}, become(_WRITE, 7, 2, 0)),
    ),
    *_faults(
        "wmma, one buffer",
        "map_to_blocks",
        ("all blocks compute the same tile", {"race", "numbers"}, become("affine.apply", 0, 0, 0), "another block"),
    ),
    *_faults(
        "wmma",
        "hoist_prefetch",
        ("loop without its last step left out", {"out-of-bounds"}, become("scf.for", 0, 1, 128)),
        ("tile of B laid over that of A", {"race", "numbers"}, become("memref.view", 1, 1, 5120)),
        ("tile of B ends beyond what there is", {"out-of-bounds"}, shift("memref.view", 1, 1, 128)),
        ("stage of a read always the first", {"race", "numbers"}, become(_FRAGMENT, 4, 1, 0)),
        (
            "one stage for both buffers",
            {"race"},
            replace("affine_map<(d0) -> ((d0 floordiv 32) mod 2)>", "affine_map<(d0) -> (1)>"),
        ),
    ),
    *_faults(
        "wmma, asynchronous",
        "pipeline_copies",
        ("wait for copies dropped", {"in-flight"}, drop("nvgpu.device_async_wait")),
    ),
    *_faults(
        "mma.sync",
        "pipeline_copies",
        ("wait for copies dropped", {"in-flight"}, drop("nvgpu.device_async_wait")),
        ("wait for a group too few", {"in-flight"}, mark("nvgpu.device_async_wait", 0, "numGroups", "2 : i32")),
        ("copies of the loop in no group", {"in-flight"}, drop(_GROUP, 2, instead=1)),
        ("first copies in one group with the next", {"in-flight"}, drop(_GROUP, 0, instead=1)),
        ("barrier after the wait dropped", {"race"}, drop("gpu.barrier")),
        ("two stages instead of three", {"race"}, replace("floordiv 32) mod 3)>", "floordiv 32) mod 2)>")),
        ("a read without the swizzle", {"numbers"}, see_through("nvgpu.ldmatrix", 0, 3)),
        ("a copy without the swizzle", {"numbers"}, see_through(_COPY, 8, 3)),
        ("ldmatrix transposes A", {"numbers"}, mark("nvgpu.ldmatrix", 0, "transpose", "true")),
        ("ldmatrix from between 16 bytes", {"misaligned"}, shift("nvgpu.ldmatrix", 0, 3, 4)),
        (
            "a register of B taken from another fragment",
            {"numbers"},
            take("vector.from_elements", 9, 0, "vector.from_elements", 8, 0),
        ),
        ("C said to be aligned to 16 bytes", {"misaligned"}, mark("vector.load", 0, "alignment", "16 : i64")),
        ("a copy from between 16 bytes", {"misaligned"}, shift(_COPY, 0, 6, 4)),
        ("a copy from rows beyond A", {"out-of-bounds"}, shift(_COPY, 1, 5, 8)),
        ("copies beyond the last tile are not of zeros", {"out-of-bounds"}, become(_COPY, 8, 7, 8)),
    ),
    *_faults(
        "mma.sync",
        "interleave_copies",
        ("wait for copies dropped from the loop", {"in-flight"}, drop("nvgpu.device_async_wait", 1)),
        ("barrier dropped from the loop", {"race"}, drop("gpu.barrier", 1)),
    ),
    *_faults(
        "wgmma, single stage",
        "direct_store_epilogue",
        ("wait for the tiles dropped", {"in-flight"}, drop(_TRY_WAIT, 1)),
        ("parity of the consumer flipped", {"in-flight"}, shift(_TRY_WAIT, 1, 1)),
        ("parity of the producer flipped", {"deadlock"}, shift(_TRY_WAIT, 0, 1)),
        ("more bytes announced", {"transaction-bytes", "deadlock"}, shift(_EXPECT, 0, 1, 16)),
        ("fewer bytes announced", {"transaction-bytes", "deadlock"}, shift(_EXPECT, 0, 1, -16)),
        ("no bytes announced", {"in-flight"}, become(_EXPECT, 0, 1, 0)),
        ("tile of B not loaded", {"transaction-bytes", "deadlock"}, drop(_LOAD, 1)),
        ("release before the products are done", {"in-flight"}, mark("nvgpu.warpgroup.mma", 0, "waitGroup", "1 : i64")),
        ("release dropped", {"deadlock"}, drop("nvgpu.mbarrier.arrive")),
        ("mbarrier that waits for one more", {"deadlock"}, shift("nvgpu.mbarrier.init", 0, 1)),
        ("mbarrier not initialized", {"uninitialized"}, drop("nvgpu.mbarrier.init", 1)),
        ("fence after the initialization dropped", {"proxy"}, drop("nvvm.fence.mbarrier.init")),
        ("barrier after the initialization dropped", {"race"}, drop("gpu.barrier"), "after its initialization"),
        ("A's box loaded from the next columns", {"numbers"}, shift(_LOAD, 0, 3, 8)),
        ("A's box loaded from between 16 bytes", {"misaligned"}, shift(_LOAD, 0, 3, 4), "of a row"),
        ("B read as if it ran along k", {"numbers"}, replace("{transposeB, ", "{")),
    ),
    *_faults(
        "wgmma, single stage",
        "pack_shared_memory",
        ("tile of B not aligned for TMA", {"misaligned"}, shift("memref.view", 1, 1, -64)),
        ("tile of B not aligned for its swizzle", {"misaligned"}, shift("memref.view", 1, 1, -512)),
    ),
    *_faults(
        "wgmma, edges",
        "direct_store_epilogue",
        ("rows beyond C stored", {"out-of-bounds"}, become("arith.cmpi", 2, 1, 64)),
        ("columns beyond C stored", {"out-of-bounds"}, become("arith.cmpi", 10, 1, 64)),
    ),
    *_faults(
        "wgmma, multistage",
        "multistage_loads",
        (
            "loads of A into the stage that was read last",
            {"uninitialized", "numbers"},
            take("memref.subview", 5, 1, "memref.subview", 3, 1),
        ),
        ("loads beyond the last tile", {"unwaited"}, become("arith.cmpi", 4, 1, 224)),
        ("loads two steps ahead begin a step late", {"deadlock"}, become("scf.for", 1, 0, 32)),
    ),
    *_faults(
        "wgmma",
        "specialize_warps",
        ("producer waits for no stage", {"in-flight"}, drop(_TRY_WAIT, 0)),
        ("consumer waits for no tile", {"in-flight"}, drop(_TRY_WAIT, 1)),
        ("parity of the producer flipped", {"deadlock"}, shift(_TRY_WAIT, 0, 1)),
        ("parity of the consumer flipped", {"in-flight"}, shift(_TRY_WAIT, 1, 1)),
        ("producer loads a tile too few", {"deadlock"}, become("scf.for", 2, 1, 64)),
        ("producer loads a tile too many", {"unwaited"}, become("scf.for", 2, 1, 128)),
        ("three stages in memory for two", {"out-of-bounds"}, become("arith.cmpi", 3, 1, 3)),
        (
            "stage released whose products may still run",
            {"in-flight"},
            mark("nvgpu.warpgroup.mma", 0, "waitGroup", "2 : i64"),
        ),
        ("the wrong stage released", {"deadlock"}, take("nvgpu.mbarrier.arrive", 0, 1, _TRY_WAIT, 1, 3)),
        (
            "last stage released before the products are done",
            {"race"},
            move(_PRODUCTS, 0, before="nvgpu.warpgroup.mma.store"),
        ),
        ("last stage not released", {"deadlock"}, drop("nvgpu.mbarrier.arrive", 1)),
        ("wait for the last products dropped", {"in-flight"}, drop(_PRODUCTS), "accesses accumulators"),
        ("last products may still run", {"in-flight"}, mark(_PRODUCTS, 0, "group", "1 : i64"), "accesses accumulators"),
        ("stage released by every thread", {"order"}, mark("arith.cmpi", 4, "predicate", "9 : i64")),
    ),
    *_faults(
        "wgmma",
        "tma_store_epilogue",
        ("fence before the store dropped", {"proxy"}, drop("nvvm.fence.proxy", 0)),
        ("fence behind the barrier", {"proxy"}, move("nvvm.barrier", 1, before="nvvm.fence.proxy"), "belongs in front"),
        ("wait for a box to be read dropped", {"in-flight"}, drop(_STORES, 0)),
        ("wait for a box too few", {"in-flight"}, mark(_STORES, 0, "group", "2 : i32")),
        ("barrier after the wait for a box dropped", {"race"}, drop("nvvm.barrier", 0)),
        ("barrier before the store dropped", {"race"}, drop("nvvm.barrier", 1)),
        ("stores in no group", {"in-flight"}, drop(_COMMIT, 0)),
        ("wait for the last boxes dropped", {"unwaited"}, drop(_STORES, 2)),
        ("box stored at a wrong address", {"numbers"}, take(_STORE, 1, 2, _STORE, 0, 2)),
        ("barrier of a number that there is not", {"out-of-bounds"}, become("nvvm.barrier", 0, 0, 16)),
        ("barrier for fewer threads than come", {"order"}, become("nvvm.barrier", 0, 1, 96)),
        (
            "accumulators said to be aligned to 16 bytes",
            {"misaligned"},
            mark("vector.store", 0, "alignment", "16 : i64"),
        ),
        ("barrier for more threads than come", {"deadlock"}, become("nvvm.barrier", 0, 1, 160)),
    ),
    *_faults(
        "wgmma",
        "lower_to_wgmma",
        ("descriptor of A with another swizzle", {"numbers"}, shift("arith.ori", 0, 1, 1 << 62)),
        ("descriptor of A with a longer stride", {"numbers"}, shift("arith.ori", 0, 1, 1 << 32)),
        ("descriptor beyond shared memory", {"out-of-bounds"}, shift("arith.ori", 0, 1, 1 << 13)),
        ("next step along k too near", {"numbers"}, shift("nvvm.wgmma.mma_async", 1, 1, -1)),
        ("fence before the products dropped", {"order"}, drop("nvvm.wgmma.fence.aligned")),
        ("products in no group", {"in-flight"}, drop("nvvm.wgmma.commit.group.sync.aligned")),
    ),
    *_faults(
        "wgmma, one box a tile",
        "tma_store_epilogue",
        ("wait as if boxes of tiles followed each other", {"in-flight"}, mark(_STORES, 0, "group", "1 : i32")),
    ),
    *_faults(
        "wgmma, two consumers",
        "tma_store_epilogue",
        ("stage free when one of two has read it", {"order"}, become("nvgpu.mbarrier.init", 1, 1, 1)),
        ("stage free when a third has read it", {"deadlock"}, become("nvgpu.mbarrier.init", 1, 1, 3)),
        ("one barrier for both warpgroups", {"order"}, become("nvvm.barrier", 1, 0, 1)),
        ("both warpgroups write the same box", {"race"}, become("memref.subview", 5, 1, 0)),
    ),
    *_faults(
        "wgmma, odd rows of C",
        "row_store_epilogue",
        ("rows stored before the warp has written them", {"race"}, drop("nvvm.bar.warp.sync", 1)),
        ("rows written before the warp has read the last ones", {"race"}, drop("nvvm.bar.warp.sync", 0)),
        ("unit from the row above", {"numbers"}, become("vector.load", 1, 1, 0)),
        ("unit stored beside where it begins", {"misaligned"}, become("vector.store", -1, 3, 0)),
    ),
    *_faults(
        "wgmma, C of f16",
        "tma_store_epilogue",
        ("stmatrix writes rows without the swizzle", {"numbers"}, become("arith.xori", 2, 1, 0)),
        ("stmatrix transposes", {"numbers"}, mark("nvvm.stmatrix", 0, "layout", "#nvvm.mma_layout<col>")),
    ),
    *_faults(
        "wgmma, pingpong",
        "pingpong_consumers",
        (
            "named barriers of the consumers swapped",
            {"deadlock"},
            take("nvvm.barrier", 0, 0, "nvvm.barrier.arrive", 0, 0),
        ),
        ("named barrier not arrived at", {"deadlock"}, drop("nvvm.barrier.arrive", 1)),
        ("first named barrier not arrived at", {"deadlock"}, drop("nvvm.barrier.arrive", 0)),
        ("consumer waits for no named barrier", {"in-flight"}, drop("nvvm.barrier")),
        ("consumer continues at the wrong stage", {"in-flight"}, shift("scf.for", 4, 3)),
    ),
    *_faults("wgmma, staggered", "stagger_consumers", ("no arrival", {"deadlock"}, drop("nvvm.barrier.arrive"))),
    *_faults(
        "wgmma, cluster",
        "multicast_tiles",
        ("multicast leaves a block out", {"transaction-bytes", "deadlock"}, become("arith.shli", 0, 0, 1)),
        ("multicast to a block that there is not", {"out-of-bounds"}, become("arith.shli", 0, 0, 7)),
        ("stage free when one block has read it", {"order"}, become("nvgpu.mbarrier.init", 1, 1, 1)),
        ("stage free when a third block has read it", {"deadlock"}, become("nvgpu.mbarrier.init", 1, 1, 3)),
        ("release told to the own block only", {"deadlock"}, become(_PTX, 0, 1, 0)),
        ("slice of B loaded at a wrong address", {"in-flight", "uninitialized"}, become("memref.subview", 1, 2, 0)),
        (
            "cluster's barrier after the initialization dropped",
            {"race"},
            (drop("nvvm.cluster.wait", 0), drop("nvvm.cluster.arrive", 0)),
            "after its initialization",
        ),
        (
            "cluster's barrier at the end dropped",
            {"order"},
            (drop("nvvm.cluster.wait", 1), drop("nvvm.cluster.arrive", 1)),
        ),
        ("wait for the cluster at the end dropped", {"order"}, drop("nvvm.cluster.wait", 1)),
    ),
    *_faults(
        "wgmma, split reduction",
        "direct_store_epilogue",
        (
            "barrier before the other block's accumulators dropped",
            {"race"},
            (drop("nvvm.cluster.wait"), drop("nvvm.cluster.arrive")),
        ),
        ("wait for the cluster dropped", {"race"}, drop("nvvm.cluster.wait")),
        ("the same block's accumulators read twice", {"numbers"}, become("nvvm.mapa", 1, 1, 0)),
        (
            "block may end while the other reads its accumulators",
            {"order"},
            (drop("nvvm.cluster.wait", -1), drop("nvvm.cluster.arrive", -1)),
        ),
        ("part of the reduction is the other block's", {"numbers"}, become("affine.apply", 1, 0, 0)),
    ),
    *_faults(
        "wgmma, split in memory",
        "direct_store_epilogue",
        ("other block not waited for", {"race"}, drop(_PTX, 1)),
        ("waits for one block more than there are", {"deadlock"}, become(_PTX, 1, 2, 3)),
        ("arrives before all threads have written", {"race"}, drop("nvvm.barrier", 0)),
        ("reads before the thread that waits is back", {"race"}, drop("nvvm.barrier", 1)),
        ("the own accumulators read twice", {"numbers"}, become("vector.load", 1, 1, 0)),
        ("promised to be what it is not", {"assumption"}, become("llvm.intr.assume", 0, 0, 0)),
        ("part of the reduction is the other block's", {"numbers"}, become("affine.apply", 1, 0, 0)),
    ),
    *_faults(
        "wgmma, last tiles shared",
        "stream_k_tail",
        ("semaphore not waited for", {"race"}, drop(_PTX, 0)),
        ("semaphore released before the accumulators are there", {"race"}, mark(_STORES, 2, "read", "unit")),
        ("fence after the semaphore dropped", {"proxy"}, drop(_PTX, 1)),
        ("semaphore not released", {"deadlock"}, drop(_PTX, -1)),
        ("semaphore of another number", {"deadlock"}, shift(_PTX, -1, 1)),
    ),
]
