"""Predicted time of a warp-specialized kernel on wgmma and TMA (pipeline `wgmma`), for columns of knob settings.

A block has a multiprocessor to itself. Its producer issues loads as many k steps ahead as there are stages. A k step
takes as long as the slowest of the matrix unit, shared memory, TMA, the L2 cache, and the latency of the pipeline.
"""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model import batches
from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.cost_model.epilogues import (
    elementwise_time,
    epilogue_time,
    reduction_time,
    store_excess,
    writes_elements,
)
from stepladder.pipeline.cost_model.gpu import Gpu
from stepladder.pipeline.cost_model.preparation import preparing_time, repacking_time
from stepladder.pipeline.cost_model.terms import (
    Size,
    join,
    memory_bytes,
)
from stepladder.pipeline.cost_model.warpgroup_launch import Launch
from stepladder.pipeline.cost_model.warpgroup_step import Step

# Boxes along k up to which the start of a cluster takes this part of its time: no block waits for another's stages.
# Source: docs/results/forms_seen.json and the other measured kernels.
_FEW_BOXES, _CLUSTER_OF_FEW = 2, 0.5
# Microseconds by which a dependent launch begins sooner where the one in front leaves as many multiprocessors idle as
# it has blocks, of products with more rows and columns than these. Source: docs/results/forms_seen.json and
# forms_suspects.json.
_IDLE_START, _FEW_ROWS = 0.2, 64
# Of an element of a partial accumulator in global memory.
_PARTIAL_BYTES = 4
# Cost of hidden HBM traffic: small, but not zero, since it takes power. It decides between orders of tiles.
_HIDDEN_TRAFFIC_COST = 0.02


def _prologue_of(launch: Launch) -> Array:
    """Returns the time of the starts of blocks."""
    constants = launch.constants
    warpgroups = np.where(launch.pingpong, constants["pingpong_start"], launch.warpgroups)
    start = constants["prologue"] + constants["warpgroup"] * warpgroups
    of_cluster = constants["cluster"] * np.where(launch.steps * launch.boxes <= _FEW_BOXES, _CLUSTER_OF_FEW, 1.0)
    persistent = launch.knobs.floats("persistent_blocks", 0) > 0
    return np.where(persistent, 1.0, launch.waves) * start + np.where(launch.cluster > 1, of_cluster, 0.0)


def _hbm_of(launch: Launch) -> Array:
    """Returns the time of HBM."""
    knobs, size, gpu, constants = launch.knobs, launch.size, launch.gpu, launch.constants
    places = (launch.at_once, launch.cached, constants["evicted"], constants["hbm_halves"], launch.held)
    traffic = memory_bytes(size, launch.tiles, knobs, gpu, *places)
    in_memory = (launch.splits > 1) & knobs.equals("split_k_workspace", "memory", "cluster")
    partial = np.where(in_memory, size.stored_bytes / size.out_bytes * launch.splits * _PARTIAL_BYTES, 0.0)
    traffic = traffic + constants["hbm_partial"] * partial * launch.absent
    excess = store_excess(knobs, size, launch.tiles, launch.at_once, constants)
    traffic = traffic + excess * size.stored_bytes * launch.absent
    side_by_side = 1 + constants["hbm_cluster"] * (1 - 1 / launch.cluster)
    rate = gpu.hbm_bytes_per_us * constants["hbm"] * side_by_side
    return traffic / rate * (1 + constants["hbm_idle"] * launch.idle)


def _begin_of(launch: Launch) -> Array:
    """Returns the time from launch to launch that no kernel has a part in."""
    size, constants = launch.size, launch.constants
    has_room = (launch.at_once <= launch.gpu.multiprocessors / 2) & (np.minimum(size.m, size.n) > _FEW_ROWS)
    start = np.where(launch.by_itself, constants["launch_by_itself"], -_IDLE_START * has_room)
    return constants["launch"] + start + np.where(launch.at_exit, constants["launch_at_exit"], 0.0)


def predict(knobs: Columns, size: Size, gpu: Gpu) -> dict[str, Array]:
    """Returns the predicted time of a launch and its terms, in us, by name.

    Args:
        knobs: columns of the pipeline's knobs; those that it does not have get their neutral value. Where
            `dependent_launch` has a row for each launch, so have the results.
        size: the problem.
        gpu: what runs it.

    Returns:
        `total`; `main loop`, `prologue`, `epilogue`, `reduction`, `launch`, and `repacking` where there is any, which
        make it up; and what bounds the main
        loop, each as if it were alone: `matrix unit`, `shared memory`, `TMA`, `L2`, `latency`, `HBM`; and `waves`, a
        number.
    """
    launch = Launch(knobs, size, gpu)
    step = Step(launch)
    constants, tiles, rounds, at_once = launch.constants, launch.tiles, launch.rounds, launch.at_once
    all_steps = rounds * launch.steps
    inner = step.time(step.fill)
    edge = step.time(step.fill + step.zeros) - inner
    edge = edge * launch.steps * np.where(step.edges > 0, np.maximum(1.0, launch.waves * step.edges), 0.0)
    edge = edge * batches.edge_factor(size)
    epilogue = epilogue_time(knobs, size, np.maximum(0.0, launch.block_m - tiles.mean_rows), at_once, gpu, constants)
    epilogue = epilogue + elementwise_time(knobs, size)
    loop = launch.steps * inner
    # In the ping-pong schedule the epilogue of one warpgroup overlaps the main loop of the other.
    hidden = np.where(launch.pingpong, join(loop, (loop + epilogue) / 2) - loop, epilogue)
    in_place = launch.by_itself | launch.at_exit
    factor = batches.main_loop_factor(launch.cluster, launch.splits, in_place, size, gpu)
    main_loop = (rounds * loop + edge) * factor
    epilogues = rounds * hidden + np.where(launch.pingpong, epilogue, 0.0)
    prologue = _prologue_of(launch)
    reduction_of_wave = reduction_time(knobs, constants)
    reduction = reduction_of_wave * np.where(launch.splits > 1, launch.waves, 1.0)
    hbm = _hbm_of(launch)
    # The blocks of the last wave reduce and store when all loads have arrived.
    from_memory = constants["prologue"] + hbm + constants["hbm_end"] * (epilogue + reduction_of_wave)
    kernel = main_loop + epilogues + prologue + reduction
    kernel = kernel + batches.time_of_two_blocks(knobs.floats("min_blocks_per_sm", 1), main_loop, size)
    busy = all_steps * step.matrix / kernel * (at_once / gpu.multiprocessors)
    kernel = kernel * (1 + constants["throttle"] * np.maximum(0.0, busy - constants["throttle_from"]))
    by_elements = np.where(writes_elements(knobs, size), constants["column_write"], 1.0)
    write_time = size.result_bytes / (constants["write"] * 1e6) * by_elements
    begin = _begin_of(launch)
    total = join(kernel, from_memory, write_time + constants["prologue"]) + _HIDDEN_TRAFFIC_COST * hbm + begin
    repack_time = repacking_time(size, gpu, constants, launch.b_loaded, launch.a_split)
    prepare_time = preparing_time(size, gpu, constants)
    total = total + repack_time + prepare_time
    times = {
        "total": total,
        "main loop": main_loop,
        "prologue": prologue,
        "epilogue": epilogues,
        "reduction": reduction,
        "launch": begin,
        **({"repacking": repack_time} if np.any(repack_time) else {}),
        **({"preparing": prepare_time} if prepare_time else {}),
        "matrix unit": all_steps * step.matrix,
        "shared memory": all_steps * step.shared,
        "TMA": all_steps * step.fill + edge,
        "L2": all_steps * step.l2,
        "latency": all_steps * step.latency,
        "HBM": hbm,
        "writes": write_time,
        "waves": rounds,
    }
    shape = np.broadcast_shapes((knobs.count,), np.shape(launch.at_exit))
    return {name: np.broadcast_to(np.asarray(value, float), shape) for name, value in times.items()}
