"""The fitted constants of each family of kernels: their meaning, and the range of the fit."""

from __future__ import annotations

from dataclasses import dataclass

WARPGROUP, WARP = "warpgroup", "warp"
# Sets of constants of kernels that load weights early: of products of few and of more rows, those with two blocks on a
# multiprocessor, of pairs of products, and of kernels for such products that wait.
EARLY_FEW, EARLY_MORE, EARLY_PAIRS, WAITING = "few", "more", "pairs", "waiting"
EARLY_FEW_TWO, EARLY_MORE_TWO = "few_two", "more_two"
EARLY_FEW_SPLITS, EARLY_FEW_THIRDS = "few_splits", "few_thirds"


@dataclass(frozen=True)
class Constant:
    """A fitted constant: the least and the most that a fit tries, and what it is."""

    least: float
    most: float
    meaning: str


CONSTANTS: dict[str, dict[str, Constant]] = {
    WARPGROUP: {
        "matrix": Constant(0.85, 1.4, "time of the matrix unit, as a multiple of its time at peak"),
        "odd_eights": Constant(
            1.0,
            1.8,
            "time of the matrix unit where tiles have an odd number of eights of columns, as a multiple",
        ),
        "throttle": Constant(
            0.0, 1.0, "part by which a kernel that keeps all matrix units busy takes longer: power limit"
        ),
        "throttle_from": Constant(0.3, 0.95, "busy fraction of the matrix units above which the clock falls"),
        "shared": Constant(0.6, 2.0, "rate at which wgmma reads shared memory, as a fraction of its peak"),
        "fill": Constant(0.6, 2.0, "rate at which TMA fills shared memory, as a fraction of the L2 peak"),
        "fill_shared": Constant(0.0, 1.0, "part of the fill time of shared tiles that the blocks of a cluster share"),
        "empty": Constant(
            0.0, 2.0, "part by which the fill time is longer in clusters none of whose blocks has a tile of C"
        ),
        "neighbours": Constant(
            0.0,
            0.8,
            "part by which the fill time is longer in clusters of two that load tiles side by side in rows of memory",
        ),
        "fill_idle": Constant(
            0.0, 0.8, "part of the fill time that TMA saves where all other multiprocessors are idle"
        ),
        "row": Constant(0.3, 1.4, "least time of a row of a TMA box, ns"),
        "odd_rows": Constant(0.0, 1.5, "part by which a row that begins within a sector of the L2 cache takes longer"),
        "odd_sectors": Constant(0.0, 1.5, "part by which such rows take more of L2's rate"),
        "between_sectors": Constant(
            0.0,
            1.0,
            "fraction of odd_rows and odd_sectors for rows that begin at a sector, but not at a pair of sectors",
        ),
        "line_rows": Constant(0.0, 1.0, "part by which every second line takes longer, outside of clusters"),
        "zero_row": Constant(0.5, 12.0, "ns of a row that is outside of the matrix, which TMA fills with zeros"),
        "zero_sharing": Constant(
            0.0, 1.5, "exponent by which zero_row grows with the part of the GPU whose blocks have such rows"
        ),
        "l2": Constant(0.4, 1.3, "rate at which a multiprocessor reads L2, as a fraction of the peak"),
        "l2_alone": Constant(
            0.2,
            1.2,
            "rate at which all multiprocessors read tiles that one block or cluster reads alone, as a fraction",
        ),
        "l2_misses": Constant(
            0.2, 1.2, "rate at which they read other tiles where L2 does not hold the operands, as a fraction"
        ),
        "crowd": Constant(
            0.0, 0.2, "ns of a row that begins within a sector of L2, for each cluster that loads it at the same time"
        ),
        "latency": Constant(0.2, 1.2, "us from the request of a tile to its arrival, from L2"),
        "memory_latency": Constant(0.6, 2.5, "us from the request of a tile to its arrival, from HBM"),
        "split_loads": Constant(
            0.0, 0.4, "part by which loads take longer for every doubling of the splits of k beyond four"
        ),
        "split_shared": Constant(0.0, 2.0, "exponent by which split_loads falls with the blocks of a cluster"),
        "cluster_latency": Constant(0.0, 0.8, "us added to the latency in a cluster"),
        "cluster_doubling": Constant(0.0, 0.8, "us added by every doubling of a cluster of two"),
        "held": Constant(0.5, 2.5, "k steps of the matrix unit for which a stage is in use"),
        "step": Constant(0.0, 0.08, "us of barriers for 128 bytes of k"),
        "hbm": Constant(0.65, 0.95, "rate of HBM, as a fraction of its peak"),
        "hbm_cluster": Constant(
            0.0, 0.3, "part by which the rate of HBM is higher where blocks of a cluster read side by side"
        ),
        "hbm_store": Constant(
            1.0, 2.0, "time of a byte of C that HBM stores, as a multiple of that of a byte that it reads"
        ),
        "hbm_odd_store": Constant(
            0.0, 2.0, "further part of this time where rows of C begin within sectors of the L2 cache"
        ),
        "hbm_store_rows": Constant(
            0.0,
            0.3,
            "further part of this time for every doubling of the rows of C, beyond 64, that are stored at once",
        ),
        "hbm_alternating_store": Constant(
            0.0, 1.0, "further part of this time where two warpgroups take turns to store"
        ),
        "hbm_halves": Constant(
            0.0, 2.0, "part by which HBM takes longer for tiles that both halves of the L2 cache read from it"
        ),
        "hbm_idle": Constant(0.0, 1.0, "part by which HBM takes longer where all other multiprocessors are idle"),
        "hbm_end": Constant(0.0, 1.0, "part of the last wave's reduction and epilogue that follows its loads from HBM"),
        "hbm_partial": Constant(
            0.0,
            4.0,
            "how often HBM transfers partial accumulators in global memory where L2 does not hold the operands",
        ),
        "cached": Constant(0.3, 1.1, "part of the L2 cache that holds operands from launch to launch"),
        "cached_in_place": Constant(
            0.3, 1.3, "the same part without dependent launch, where blocks return to their multiprocessors"
        ),
        "cached_idle": Constant(
            0.0, 0.9, "part of the cached part that a dependent launch lacks where all other multiprocessors are idle"
        ),
        "cached_halves": Constant(
            0.0, 1.0, "further part of L2 that a tile takes which blocks next to both halves of the L2 cache read"
        ),
        "evicted": Constant(
            0.05,
            1.0,
            "excess over the cached part with which a problem is read from HBM entirely, as a fraction of that part",
        ),
        "prologue": Constant(0.0, 2.0, "us until the first tile has arrived"),
        "store": Constant(10.0, 150.0, "bytes a ns that a warpgroup stores by TMA"),
        "store_together": Constant(
            1.0, 12.0, "tens of bytes a ns that a multiprocessor stores while all others store too"
        ),
        "store_narrow": Constant(
            0.0, 1.0, "exponent by which stores of boxes narrower than a line of L2 take longer than those of lines"
        ),
        "store_tall": Constant(0.7, 2.5, "time of an epilogue of more than 192 rows, as a multiple"),
        "shared_line": Constant(0.0, 20.0, "ns of a line of C whose parts blocks of two clusters write"),
        "write": Constant(1.5, 8.0, "millions of bytes a us that the L2 cache takes from all blocks"),
        "column_store": Constant(
            0.05, 1.0, "rate at which a warpgroup stores elements of a transposed C, as a fraction"
        ),
        "column_write": Constant(
            1.0, 6.0, "time in which the L2 cache takes elements of a transposed C, as a multiple"
        ),
        "tile": Constant(0.0, 0.8, "us of an epilogue beside the time of its bytes"),
        "cluster": Constant(0.0, 1.0, "us of starting and ending clusters"),
        "reduce_cluster": Constant(0.1, 4.0, "us of synchronizing a reduction in the shared memory of a cluster"),
        "reduce_cluster_rate": Constant(
            10.0, 300.0, "bytes a ns of partial accumulators that a block reads from the workspace"
        ),
        "reduce_cluster_pass": Constant(0.0, 1.0, "us in which each thread reduces four elements of the workspace"),
        "reduce_memory": Constant(0.1, 5.0, "us of synchronizing a reduction in global memory"),
        "reduce_memory_rate": Constant(
            10.0, 300.0, "bytes a ns of partial accumulators that a block reads from the workspace"
        ),
        "reduce_memory_pass": Constant(0.0, 1.5, "us in which each thread reduces four elements of the workspace"),
        "reduce_memory_many": Constant(
            0.0, 2.0, "us for which a block waits for each split beyond twelve in global memory"
        ),
        "warpgroup": Constant(0.0, 0.5, "us of starting a block for every consumer warpgroup"),
        "pingpong_start": Constant(1.0, 4.0, "warpgroups whose start takes as long as that of the ping-pong schedule"),
        "launch": Constant(0.0, 2.0, "us from one launch to the next, of an empty kernel"),
        "launch_by_itself": Constant(0.0, 2.0, "us that a launch takes longer without dependent launch"),
        "loads_at_exit": Constant(
            0.0,
            1.0,
            "part of the loads' time that launch_trigger = exit saves where all other multiprocessors are idle",
        ),
        "launch_at_exit": Constant(0.0, 2.0, "us that a launch takes longer with launch_trigger = exit"),
    },
    WARP: {
        "matrix_mma_sync": Constant(0.9, 1.5, "time of the matrix unit by mma.sync, as a multiple of its time at peak"),
        "matrix_wmma": Constant(0.9, 2.2, "the same by WMMA"),
        "few_warps": Constant(
            0.0,
            4.0,
            "warps that the matrix unit waits for: of w warps on a multiprocessor it gets "
            "w / (w + few_warps) of its rate",
        ),
        "shared": Constant(0.4, 1.3, "rate of shared memory, as a fraction of its peak"),
        "l2": Constant(0.2, 1.1, "rate at which a multiprocessor reads L2, as a fraction of the peak"),
        "latency": Constant(0.3, 2.5, "us from the request of a tile to its arrival"),
        "through_registers": Constant(1.0, 2.0, "time of a k step where tiles come through registers, as a multiple"),
        "step": Constant(0.0, 0.2, "us of the barriers of a k step"),
        "hbm": Constant(0.5, 0.95, "rate of HBM, as a fraction of its peak"),
        "cached": Constant(0.3, 1.1, "part of the L2 cache that holds operands from launch to launch"),
        "prologue": Constant(0.1, 3.0, "us until the first tile has arrived"),
        "block": Constant(0.05, 0.4, "us of starting and ending a block"),
        "store": Constant(5.0, 150.0, "bytes a ns of C that a multiprocessor reads or writes"),
        "launch": Constant(0.5, 3.5, "us from one launch to the next, of an empty kernel"),
    },
}
# Of all sets but WAITING, EARLY_FEW_SPLITS and EARLY_FEW_THIRDS. How much longer a block takes is a part of the time
# that it loads.
EARLY: dict[str, Constant] = {
    "hbm": Constant(0.85, 1.05, "part of HBM's rate at which weights are read"),
    "port": Constant(15.0, 80.0, "bytes a clock that a multiprocessor loads while the other of its pair has no block"),
    "paired_port": Constant(15.0, 60.0, "the same while the other one has a block"),
    "activations": Constant(0.0, 1.5, "part of its bytes' time that a tile of the other operand adds, which L2 holds"),
    "ahead": Constant(0.3, 1.2, "part of the first stages that a block has loaded while the kernel before ended"),
    "norm": Constant(
        1.5,
        8.0,
        "exponent that joins the times of HBM and of a multiprocessor: few multiprocessors keep HBM less busy",
    ),
    "slow": Constant(-0.3, 0.2, "how much longer a block takes"),
    "tall": Constant(-0.1, 0.1, "how much longer with tiles of more than 64 rows"),
    "tallest": Constant(-0.1, 0.1, "how much longer yet with tiles of two warpgroups"),
    "shallow": Constant(0.0, 0.1, "the same for each stage below six of a multiprocessor"),
    "short": Constant(0.0, 0.2, "the same with k steps of less than 256 bytes"),
    "narrow": Constant(0.0, 0.2, "the same with few columns of each B of a pair"),
    "held": Constant(60.0, 200.0, "KiB in stages of a multiprocessor that keep HBM busy"),
    "low": Constant(0.0, 1.5, "how much longer a block takes for the KiB that its stages lack to `held`"),
    "launch": Constant(0.0, 3.0, "us from launch to launch"),
    "column": Constant(0.0, 0.06, "us that each column of the other operand adds"),
    "cluster_column": Constant(0.0, 0.1, "us that each column adds to the reduction of splits of k in a cluster"),
    "loop": Constant(-2.0, 6.0, "us of persistent blocks"),
    "wave": Constant(0.0, 4.0, "us of each further wave of other blocks, without splits of k"),
    "split_wave": Constant(0.0, 4.0, "the same for each split but one"),
    "last_wave": Constant(
        0.0, 1.0, "part of the last one of several waves that is a wave of its own, since not all blocks end at once"
    ),
}
# Of EARLY_FEW_SPLITS and EARLY_FEW_THIRDS.
SPLITS_CONSTANTS: dict[str, Constant] = {
    "hbm": Constant(0.85, 1.05, "part of HBM's rate at which weights are read"),
    "wave_column": Constant(0.0, 0.2, "us that each column of the other operand adds to each wave, for the reduction"),
    "end": Constant(0.0, 1.0, "part of a wave's time that the last blocks take longer"),
}
# Of WAITING.
WAITING_CONSTANTS: dict[str, Constant] = {
    "gap": Constant(
        0.0, 5.0, "us for which HBM is idle before a kernel of few rows that waits, beside the other terms"
    ),
    "late": Constant(0.0, 0.5, "further part of the predicted time that the other terms lack"),
    "gap_more": Constant(0.0, 5.0, "gap with more rows"),
    "late_more": Constant(0.0, 0.5, "late with more rows"),
    "wait": Constant(0.0, 5.0, "us by which a launch that waits takes longer"),
    "loop": Constant(-2.0, 6.0, "us of persistent blocks that wait"),
    "prefetched": Constant(0.0, 200.0, "KiB of weights at most that a block prefetches before it waits"),
    "cached": Constant(0.3, 1.1, "part of the L2 cache up to which weights do not make kernels load them early"),
}
